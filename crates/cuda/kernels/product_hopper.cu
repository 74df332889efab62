// Product of rows and weights for Hopper: copies of tiles into a ring of stages, products of
// warpgroups out of it. The bits are those of product_portable.cu.
//
// A tile is 128 x 128 x 64: a thread copies, two warpgroups of 64 x 128 multiply; six stages of
// 32 KB. Each warp gives a stage back for itself: one arrival a warpgroup would let a slow warp's
// stage be written over. Roof on an H100 at 256 rows: the weights' bytes; at 8,000 rows: about
// 640 TFLOP/s. Occupancy: one block a multiprocessor.
#include "hopper.cuh"
#include "product.cuh"

namespace hopper {
constexpr int PRODUCT_THREADS = 3 * WARPGROUP, TILE_M = 128, TILE_N = 128, TILE_K = BOX_COLUMNS;
constexpr int STAGES = 6, X_BYTES = TILE_M * TILE_K * 2, STAGE_BYTES = (TILE_M + TILE_N) * TILE_K * 2;
// Of a stage: one for its copies; four warps of both warpgroups that multiply.
constexpr int PRODUCT_SHARED = STAGES * STAGE_BYTES + BOX_ALIGNMENT, READERS = 8;

struct alignas(64) HopperProduct {
  TensorMap x_tiles, w_tiles;  // boxes of 128 rows
  Product product;
};

// Writes the logits of a warp's rows, and (maximum, sum of exponentials) of the tile's columns: 64
// columns are summed by four lanes, 16 each in order, then the two halves are added.
DEVICE void write_logits(const Product& p, const float (&total)[16][4], int rows, int m, int n) {
  int lane = threadIdx.x % 32, first_column = n + lane % 4 * 2;
  EACH (h, 2) {
    int row = m + lane / 4 + h * 8, window = row < rows ? p.windows[row] : 0;
    float largest = -INFINITY, halves[2];
    EACH (j, 16)
      EACH (e, 2) {
        int column = first_column + j * 8 + e;
        write_logit(p, rows, row, column, window, total[j][h * 2 + e]);
        if (is_counted(p, column, window)) largest = fmaxf(largest, total[j][h * 2 + e]);
      }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    EACH (side, 2) {
      float sum = 0;
      EACH (j, 8)
        EACH (e, 2) {
          int of_tile = side * 8 + j;
          float power = exp_fixed(__fsub_rn(total[of_tile][h * 2 + e], largest));
          if (is_counted(p, first_column + of_tile * 8 + e, window)) sum = __fadd_rn(sum, power);
        }
      sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
      halves[side] = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
    }
    size_t at = (size_t)row * p.tiles + (n / TILE_N - p.first_tile);
    if (lane % 4 == 0 && row < rows)
      p.statistics[at] = make_float2(largest, __fadd_rn(halves[0], halves[1]));
  }
}

// Copies the tiles of all items, one stage after another: one thread does.
template <Ending ENDING>
DEVICE void copy_tiles(const HopperProduct& h, const ProductTiles& all, char* stages,
                       uint64_t* full, uint64_t* empty) {
  Ring<STAGES> at;
  int steps = all.of_run * (all.parts > 1 ? 1 : h.product.runs);
  for (int item = blockIdx.x; item < all.tiles; item += gridDim.x) {
    auto [m, n, part] = tile_of<ENDING, TILE_M, TILE_N>(h.product, all, item);
    for (int step = 0; step < steps; step++) {
      int k = (part * all.of_run + step) * TILE_K;
      char* to = stages + at.stage * STAGE_BYTES;
      barrier_wait(empty + at.stage, at.parity ^ 1);
      barrier_expect(full + at.stage, STAGE_BYTES);
      copy_box(to, h.x_tiles, full + at.stage, k, m);
      copy_box(to + X_BYTES, h.w_tiles, full + at.stage, k, n);
      at.advance();
    }
  }
}

// Multiplies 64 rows of all items: a warpgroup does.
template <Ending ENDING>
DEVICE void multiply_tiles(const Product& p, const ProductTiles& all, int consumer, char* stages,
                           uint64_t* full, uint64_t* empty) {
  Ring<STAGES> at;
  int lane = threadIdx.x % 32, warp = threadIdx.x % WARPGROUP / 32, rows = all.rows;
  int runs = all.parts > 1 ? 1 : p.runs;
  auto give_back = [&](int stage) {
    if (lane == 0) barrier_arrive(empty + stage);
  };
  for (int item = blockIdx.x; item < all.tiles; item += gridDim.x) {
    auto [m, n, part] = tile_of<ENDING, TILE_M, TILE_N>(p, all, item);
    m += consumer * 64;
    if (m >= rows) {  // nothing to multiply: its stages are given back as they come
      for (int step = 0; step < all.of_run * runs; step++) {
        barrier_wait(full + at.stage, at.parity);
        give_back(at.stage);
        at.advance();
      }
      continue;
    }
    float total[16][4], sum[16][4];
    NO_UNROLL
    for (int run = 0; run < runs; run++) {
      int before = -1;  // a stage that products may still read
      for (int step = 0; step < all.of_run; step++) {
        barrier_wait(full + at.stage, at.parity);
        char* x = stages + at.stage * STAGE_BYTES + consumer * 64 * TILE_K * 2;
        char* w = stages + at.stage * STAGE_BYTES + X_BYTES;
        products_begin();
        EACH (k, TILE_K / 16)
          multiply_64(sum, box_descriptor(x + k * 32), box_descriptor(w + k * 32),
                      step > 0 || k > 0);
        products_commit();
        products_wait<1>();
        if (before >= 0) give_back(before);
        before = at.stage;
        at.advance();
      }
      products_wait<0>();
      give_back(before);
      EACH (j, 16)
        EACH (e, 4) total[j][e] = run == 0 ? sum[j][e] : __fadd_rn(total[j][e], sum[j][e]);
    }
    m += warp * 16;
    if constexpr (ENDING == LOGITS) {
      write_logits(p, total, rows, m, n);
    } else {
      EACH (j, 16)
        EACH (h, 2)
          write_pair<ENDING>(p, rows, m + lane / 4 + h * 8, n + j * 8 + lane % 4 * 2, part,
                             total[j][h * 2], total[j][h * 2 + 1]);
    }
  }
}

template <Ending ENDING>
DEVICE void multiply(const HopperProduct& h) {
  char* stages = shared_memory<char>();
  uint64_t* full = (uint64_t*)(stages + STAGES * STAGE_BYTES);
  uint64_t* empty = full + STAGES;
  make_barriers<STAGES>(full, empty, READERS);
  ProductTiles all = cut<ENDING, TILE_M, TILE_N, TILE_K>(h.product);
  int warpgroup = threadIdx.x / WARPGROUP;
  if (warpgroup == 0) {
    registers_leave<40>();
    if (threadIdx.x == 0) copy_tiles<ENDING>(h, all, stages, full, empty);
  } else {
    registers_take<232>();
    multiply_tiles<ENDING>(h.product, all, warpgroup - 1, stages, full, empty);
  }
}
}  // namespace hopper
using hopper::HopperProduct;

#define PRODUCT(name, ending)                                             \
  extern "C" __global__ void __launch_bounds__(hopper::PRODUCT_THREADS, 1) \
      name(const GRID_CONSTANT HopperProduct p) {                         \
    hopper::multiply<ending>(p);                                          \
  }
PRODUCT(hopper_product_sums, SUMS)      // as product_portable.cu has them
PRODUCT(hopper_product_add, ADD)
PRODUCT(hopper_product_bf16, BF16)
PRODUCT(hopper_product_swiglu, SWIGLU)
PRODUCT(hopper_product_logits, LOGITS)
#undef PRODUCT

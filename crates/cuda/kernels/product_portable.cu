// Product of rows and weights by a ring of cp.async stages and mma.sync, for any GPU from sm_80 on.
//
// A tile is 128 x 128 x 64: 8 warps of 32 x 64, three stages of 32 KB. Roof on an H100 at 256 rows:
// the weights' bytes; at 8,000 rows: about 390 TFLOP/s, which mma.sync reaches there. Occupancy:
// one block a multiprocessor, by registers.
#include "product.cuh"

constexpr int PRODUCT_THREADS = 256, TILE_M = 128, TILE_N = 128, TILE_K = 64, STAGES = 3;
constexpr int STAGE = (TILE_M + TILE_N) * TILE_K, PRODUCT_SHARED = STAGES * STAGE * 2;

// Writes what a thread holds of a tile: rows lane / 4 and 8 more of two 16-row parts, and two
// columns of every 8.
template <Ending ENDING>
DEVICE void write_sums(const Product& p, const float (&total)[2][8][4], int rows, int m, int n,
                       int part) {
  int row = m + threadIdx.x % 32 / 4, column = n + threadIdx.x % 4 * 2;
  EACH (i, 2)
    EACH (j, 8)
      EACH (h, 2)
        write_pair<ENDING>(p, rows, row + i * 16 + h * 8, column + j * 8, part,
                           total[i][j][h * 2], total[i][j][h * 2 + 1]);
}

// Writes the logits of each row's window, and (maximum, sum of exponentials) of the tile's columns:
// 64 columns are summed by four lanes, 16 each in order, then the two halves are added.
DEVICE void write_logits(const Product& p, const float (&total)[2][8][4], int rows, int m, int n) {
  float* halves = shared_memory<float>();  // [2, TILE_M]: the stages are read
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, side = warp / 4;
  int first_row = warp % 4 * 32 + lane / 4, first_column = n + side * 64 + lane % 4 * 2;
  float largest[2][2];
  int window[2][2];
  EACH (i, 2)
    EACH (h, 2) {
      int in_tile = first_row + i * 16 + h * 8, row = m + in_tile;
      window[i][h] = row < rows ? p.windows[row] : 0;
      float most = -INFINITY;
      EACH (j, 8)
        EACH (e, 2) {
          int column = first_column + j * 8 + e;
          float value = total[i][j][h * 2 + e];
          write_logit(p, rows, row, column, window[i][h], value);
          if (is_counted(p, column, window[i][h])) most = fmaxf(most, value);
        }
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      if (lane % 4 == 0) halves[side * TILE_M + in_tile] = most;
      largest[i][h] = most;
    }
  __syncthreads();
  EACH (i, 2)
    EACH (h, 2) {
      int in_tile = first_row + i * 16 + h * 8;
      largest[i][h] = fmaxf(largest[i][h], halves[(1 - side) * TILE_M + in_tile]);
    }
  __syncthreads();  // before the halves are written again
  EACH (i, 2)
    EACH (h, 2) {
      float sum = 0;
      EACH (j, 8)
        EACH (e, 2) {
          float power = exp_fixed(__fsub_rn(total[i][j][h * 2 + e], largest[i][h]));
          bool counts = is_counted(p, first_column + j * 8 + e, window[i][h]);
          if (counts) sum = __fadd_rn(sum, power);
        }
      sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
      sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
      if (lane % 4 == 0) halves[side * TILE_M + first_row + i * 16 + h * 8] = sum;
    }
  __syncthreads();
  if (side == 0 && lane % 4 == 0)
    EACH (i, 2)
      EACH (h, 2) {
        int in_tile = first_row + i * 16 + h * 8;
        float sum = __fadd_rn(halves[in_tile], halves[TILE_M + in_tile]);
        size_t at = (size_t)(m + in_tile) * p.tiles + (n / TILE_N - p.first_tile);
        if (m + in_tile < rows) p.statistics[at] = make_float2(largest[i][h], sum);
      }
  __syncthreads();  // before the stages are loaded again
}

template <Ending ENDING>
DEVICE void multiply(const Product& p) {
  bf16* stages = shared_memory<bf16>();
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int warp_m = warp % 4 * 32, warp_n = warp / 4 * 64;
  ProductTiles all = cut<ENDING, TILE_M, TILE_N, TILE_K>(p);
  int rows = all.rows, of_run = all.of_run, steps = all.parts > 1 ? of_run : p.k / TILE_K;
  for (int item = blockIdx.x; item < all.tiles; item += gridDim.x) {
    ProductTile tile = tile_of<ENDING, TILE_M, TILE_N>(p, all, item);
    int m = tile.m, n = tile.n, part = tile.part;
    auto load = [&](int step) {
      bf16* to = stages + step % STAGES * STAGE;
      int k = (part * of_run + step) * TILE_K;
      for (int i = threadIdx.x; step < steps && i < (TILE_M + TILE_N) * 8; i += PRODUCT_THREADS) {
        int row = i / 8 % TILE_M, at = i % 8;
        bool is_x = i / 8 < TILE_M, there = is_x ? m + row < rows : n + row < p.n;
        const bf16* from = is_x ? p.x + (size_t)(there ? m + row : 0) * p.k
                                : p.w + (size_t)(there ? n + row : 0) * p.k;
        copy16_async(piece(to + (is_x ? 0 : TILE_M * TILE_K), row, at, 8), from + k + at * 8,
                     there);
      }
      copies_commit();
    };
    float total[2][8][4], sum[2][8][4];
    for (int stage = 0; stage < STAGES - 1; stage++) load(stage);
    for (int step = 0; step < steps; step++) {
      copies_wait<STAGES - 2>();
      __syncthreads();  // all have copied this stage and have read the one that is loaded next
      load(step + STAGES - 1);
      bf16* x = stages + step % STAGES * STAGE;
      bf16* w = x + TILE_M * TILE_K;
      if (step % of_run == 0)
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 8; j++)
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
      for (int k = 0; k < TILE_K / 16; k++) {
        uint32_t a[2][4];
        for (int i = 0; i < 2; i++)
          load_matrices(a[i], piece(x, warp_m + i * 16 + lane % 16, k * 2 + lane / 16, 8));
        for (int j = 0; j < 4; j++) {
          uint32_t b[4];
          int row = warp_n + j * 16 + lane % 8 + lane / 16 * 8;
          load_matrices(b, piece(w, row, k * 2 + lane / 8 % 2, 8));
          for (int i = 0; i < 2; i++) {
            multiply_16x8x16(sum[i][j * 2], a[i], b[0], b[1]);
            multiply_16x8x16(sum[i][j * 2 + 1], a[i], b[2], b[3]);
          }
        }
      }
      if (step % of_run == of_run - 1)
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 8; j++)
            for (int e = 0; e < 4; e++)
              total[i][j][e] =
                  step < of_run ? sum[i][j][e] : __fadd_rn(total[i][j][e], sum[i][j][e]);
    }
    copies_wait<0>();
    __syncthreads();  // the stages are free
    if constexpr (ENDING == LOGITS) write_logits(p, total, rows, m, n);
    else write_sums<ENDING>(p, total, rows, m + warp_m, n + warp_n, part);
  }
}

#define PRODUCT(name, ending)                                                           \
  extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS) name(const Product p) { \
    multiply<ending>(p);                                                                \
  }
PRODUCT(product_sums, SUMS)      // out: [parts, part_rows, n] f32
PRODUCT(product_add, ADD)        // out: [rows, n] f32, to which the sums are added
PRODUCT(product_bf16, BF16)      // out: [rows, n] bf16
PRODUCT(product_swiglu, SWIGLU)  // out: [rows, n / 2] bf16
PRODUCT(product_logits, LOGITS)  // out: [rows, columns] f32
#undef PRODUCT

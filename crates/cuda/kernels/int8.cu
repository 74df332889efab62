// Products of rows and weights in 8 bits, and the rounding of rows for them, for any GPU from
// sm_80 on.
//
// A row of weights and a row of the left side are rounded as int8.cuh says. Sums of integers are
// exact, so that neither tiles nor the split of a sum change a bit, and products have the bits of
// the processor's.
//
// A tile is 128 x 128 x 128: 8 warps of 32 x 64, three stages of 32 KB. Expected on an H100, for a
// layer of Qwen3-1.7B at 256 rows: 17 us by the weights' bytes, 33 us by arithmetic at 780 TOP/s,
// twice what mma.sync reaches in bfloat16; product_portable.cu takes 66 us, product_hopper.cu 45
// us. Occupancy: two blocks a multiprocessor on Hopper, elsewhere one, by shared memory.
// quantize_rows: 2 us at 256 rows of 2,048, bound by its launch; two a layer,
// since norms are rounded where they are made (rows.cu).
#include "int8.cuh"
#include "product.cuh"

namespace int8 {
constexpr int THREADS = 256, WARPS = THREADS / 32, TILE_M = 128, TILE_N = 128, TILE_K = 128;
constexpr int STAGES = 3, STAGE = (TILE_M + TILE_N) * TILE_K, SHARED = STAGES * STAGE;
}  // namespace int8

struct alignas(64) QuantizeRows {
  const int* rows;  // in device memory
  const bf16* x;    // [rows, width]
  char* integers;   // [rows, width]
  float* factors;   // [rows]: what an integer of the row stands for
  int width;        // a multiple of 8
};
struct alignas(64) Int8Product {
  const int* rows;         // in device memory
  const char* x;           // [rows, k]
  const char* w;           // [n, k]
  const float* x_factors;  // [rows]; of int8_swiglu
  const float* w_factors;  // [n]; of int8_swiglu
  void* out;               // by the ending
  int n, k;                // k: a multiple of 64 · parts, at most 133,144, so that sums fit 32 bits
  int parts;               // of K: a block takes one, and writes it to a place of its own
  int part_rows;           // rows of a part
};

namespace int8 {
// Writes a row as integers, a warp: 8 values a lane at a time.
DEVICE void quantize(const bf16* x, char* integers, float* factor, int width) {
  int lane = threadIdx.x % 32, most = 0;
  for (int i = lane * 8; i < width; i += 256) {
    uint4 packed = *(const uint4*)(x + i);
    uint32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w};
    EACH (j, 4) most = max(most, max((int)(pairs[j] & 0x7fff), (int)(pairs[j] >> 16 & 0x7fff)));
  }
  Rounding rounding = row_rounding(most << 16);
  if (lane == 0) *factor = rounding.factor;
  for (int i = lane * 8; i < width; i += 256) {
    uint4 packed = *(const uint4*)(x + i);
    uint32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w}, bytes[2] = {0, 0};
    EACH (j, 8) {
      bf16 value = (bf16)(pairs[j / 2] >> j % 2 * 16);
      bytes[j / 4] |= low_byte(to_float(value), rounding.inverse) << j % 4 * 8;
    }
    *(uint2*)(integers + i) = uint2{bytes[0], bytes[1]};
  }
}

// Writes two elements of a row that stand side by side.
template <Ending ENDING>
DEVICE void write_pair(const Int8Product& p, int rows, int row, int column, int part, int x,
                       int y) {
  if (row >= rows || column >= p.n) return;
  size_t at = (size_t)row * p.n + column;
  if constexpr (ENDING == SUMS) {
    int* to = (int*)p.out + (size_t)part * p.part_rows * p.n + at;
    *(uint2*)to = uint2{(uint32_t)x, (uint32_t)y};
  } else {  // gate and up stand side by side
    float of_row = p.x_factors[row];
    float gate = scaled_sum(x, of_row, p.w_factors[column]);
    float up = scaled_sum(y, of_row, p.w_factors[column + 1]);
    ((bf16*)p.out)[at / 2] = to_bf16(__fmul_rn(silu(gate), up));
  }
}

template <Ending ENDING>
DEVICE void multiply(const Int8Product& p) {
  char* stages = shared_memory<char>();
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int warp_m = warp % 4 * 32, warp_n = warp / 4 * 64;
  int rows = *p.rows, tiles_m = (rows + TILE_M - 1) / TILE_M, tiles_n = (p.n + TILE_N - 1) / TILE_N;
  int of_part = p.k / p.parts, steps = (of_part + TILE_K - 1) / TILE_K;
  for (int item = blockIdx.x; item < tiles_m * tiles_n * p.parts; item += gridDim.x) {
    // Neighbours share a tile of weights.
    int m = item % tiles_m * TILE_M, part = item / tiles_m % p.parts;
    int n = item / tiles_m / p.parts * TILE_N;
    auto load = [&](int step) {
      char* to = stages + step % STAGES * STAGE;
      for (int i = threadIdx.x; step < steps && i < (TILE_M + TILE_N) * 8; i += THREADS) {
        int row = i / 8 % TILE_M, at = i % 8, k = step * TILE_K + at * 16;
        bool is_x = i / 8 < TILE_M;
        // The last tile of a part may be half of one: zeros add nothing.
        bool there = (is_x ? m + row < rows : n + row < p.n) && k < of_part;
        const char* from = is_x ? p.x + (size_t)(there ? m + row : 0) * p.k
                                : p.w + (size_t)(there ? n + row : 0) * p.k;
        copy16_async(piece((bf16*)(to + (is_x ? 0 : TILE_M * TILE_K)), row, at, 8),
                     from + (there ? part * of_part + k : 0), there);
      }
      copies_commit();
    };
    int sum[2][8][4];
    EACH (i, 2)
      EACH (j, 8)
        EACH (e, 4) sum[i][j][e] = 0;
    for (int stage = 0; stage < STAGES - 1; stage++) load(stage);
    for (int step = 0; step < steps; step++) {
      copies_wait<STAGES - 2>();
      __syncthreads();  // all have copied this stage and have read the one that is loaded next
      load(step + STAGES - 1);
      bf16* x = (bf16*)(stages + step % STAGES * STAGE);
      bf16* w = x + TILE_M * TILE_K / 2;
      for (int k = 0; k < TILE_K / 32; k++) {
        uint32_t a[2][4];
        EACH (i, 2)
          load_matrices(a[i], piece(x, warp_m + i * 16 + lane % 16, k * 2 + lane / 16, 8));
        EACH (j, 4) {
          uint32_t b[4];
          int row = warp_n + j * 16 + lane % 8 + lane / 16 * 8;
          load_matrices(b, piece(w, row, k * 2 + lane / 8 % 2, 8));
          EACH (i, 2) {
            multiply_16x8x32(sum[i][j * 2], a[i], b[0], b[1]);
            multiply_16x8x32(sum[i][j * 2 + 1], a[i], b[2], b[3]);
          }
        }
      }
    }
    copies_wait<0>();
    __syncthreads();  // the stages are free
    int row = m + warp_m + lane / 4, column = n + warp_n + lane % 4 * 2;
    EACH (i, 2)
      EACH (j, 8)
        EACH (h, 2)
          write_pair<ENDING>(p, rows, row + i * 16 + h * 8, column + j * 8, part, sum[i][j][h * 2],
                             sum[i][j][h * 2 + 1]);
  }
}
}  // namespace int8

extern "C" __global__ void __launch_bounds__(int8::THREADS, 2) quantize_rows(const QuantizeRows q) {
  int first = blockIdx.x * int8::WARPS + threadIdx.x / 32;
  for (int row = first; row < *q.rows; row += gridDim.x * int8::WARPS) {
    size_t at = (size_t)row * q.width;
    int8::quantize(q.x + at, q.integers + at, q.factors + row, q.width);
  }
}
// out: [parts, part_rows, n] i32
extern "C" __global__ void __launch_bounds__(int8::THREADS, 2) int8_sums(const Int8Product p) {
  int8::multiply<SUMS>(p);
}
// out: [rows, n / 2] bf16; parts is 1
extern "C" __global__ void __launch_bounds__(int8::THREADS, 2) int8_swiglu(const Int8Product p) {
  int8::multiply<SWIGLU>(p);
}

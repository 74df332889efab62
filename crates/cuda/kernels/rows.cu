// Kernels of single rows: embedding, norms, heads with rotary positions, sums of logits.
//
// A warp takes a row, or eight rows of one head; sums are in an order that depends on a row's width
// alone. All are bound by memory: a row is read and written once.
#include "int8.cuh"

constexpr int ROWS_THREADS = 256, ROWS_WARPS = ROWS_THREADS / 32, SUMS_SHARED = 128;

struct alignas(64) EmbedNorm {
  const int* rows;      // in device memory
  const int* tokens;    // [rows]
  const bf16* table;    // [vocabulary, width]
  const float* weight;  // [width], of the norm
  float* x;             // [rows, width]
  bf16* normed;         // [rows, width]; or null, for a norm in 8 bits
  char* integers;       // [rows, width], where `normed` is null
  float* factors;       // [rows]: what an integer of the row stands for
  int width;            // a multiple of 4
  float factor, epsilon;
};
struct alignas(64) Norm {
  const int* rows;
  const float* sums;            // [parts, part_rows, width]; or i32, with factors
  const float* row_factors;     // [rows], or null: of sums of 8-bit integers
  const float* column_factors;  // [width], or null
  const float* weight;          // [width]
  float* x;                     // [rows, width]
  bf16* normed;                 // [rows, width]; or null, for a norm in 8 bits
  char* integers;               // [rows, width], where `normed` is null
  float* factors;               // [rows]; may be row_factors, which a warp reads before it writes
  int width, parts, part_rows;
  float epsilon;
};
struct alignas(64) Heads {
  const int* rows;
  const float* sums;            // [parts, part_rows, heads + 2 key_heads, C]; or i32, with factors
  const float* row_factors;     // [rows], or null: of sums of 8-bit integers
  const float* column_factors;  // [heads + 2 key_heads, C], or null
  const float* bias;            // [heads + 2 key_heads, C], or null
  const float* query_norm;      // [C], or null
  const float* key_norm;        // [C], or null
  const float* cosines;         // [positions, C / 2]
  const float* sines;           // [positions, C / 2]
  const int* positions;         // [rows]
  const int* destinations;      // [rows]: page · 64 + place, or ~slot
  bf16* queries;                // [rows, heads, C]
  bf16* keys;                   // [pages, key_heads, 64, C]
  bf16* values;                 // [pages, key_heads, C, 64]
  bf16* own;                    // [slots, 2, key_heads, C]
  int parts, part_rows, heads, key_heads;
  float epsilon;
};
struct alignas(64) HeadRows {
  const int* rows;    // how many are taken
  const int* taken;   // [rows]: which
  const float* x;     // [all rows, width]
  const bf16* heads;  // [all rows, heads_width]
  float* taken_x;     // [rows, width]
  bf16* taken_heads;  // [rows, heads_width]
  int width, heads_width;
};
struct alignas(64) RowSums {
  const int* rows;
  const float2* statistics;  // [rows, tiles]: maximum and sum of each tile's logits
  float* normalisers;        // [rows]: ln of the sum of all exponentials
  int tiles;
};

DEVICE int first_warp() { return blockIdx.x * ROWS_WARPS + threadIdx.x / 32; }
DEVICE int all_warps() { return gridDim.x * ROWS_WARPS; }

// A lane's part of a row's norm, once it has summed its squares: as bfloat16, or in 8 bits, rounded
// from f32 as the processor does.
template <class N>
DEVICE void write_normed(const N& n, int row, float squares) {
  size_t at = (size_t)row * n.width;
  int first = threadIdx.x % 32 * 4;
  float mean = __fdiv_rn(warp_sum(squares), (float)n.width);
  float scale = __fdiv_rn(1.0f, __fsqrt_rn(mean + n.epsilon));
  auto normed = [&](int i) -> float4 {
    float4 v = *(const float4*)(n.x + at + i), w = *(const float4*)(n.weight + i);
    return {v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w};
  };
  if (n.normed) {
    for (int i = first; i < n.width; i += 128) {
      float4 v = normed(i);
      *(uint2*)(n.normed + at + i) = uint2{pack_bf16(v.x, v.y), pack_bf16(v.z, v.w)};
    }
    return;
  }
  int most = 0;
  for (int i = first; i < n.width; i += 128) {
    float4 v = normed(i);
    most = max(max(most, max(magnitude(v.x), magnitude(v.y))),
               max(magnitude(v.z), magnitude(v.w)));
  }
  Rounding rounding = row_rounding(most);
  if (first == 0) n.factors[row] = rounding.factor;
  for (int i = first; i < n.width; i += 128) {
    float4 v = normed(i);
    *(uint32_t*)(n.integers + at + i) =
        low_byte(v.x, rounding.inverse) | low_byte(v.y, rounding.inverse) << 8 |
        low_byte(v.z, rounding.inverse) << 16 | low_byte(v.w, rounding.inverse) << 24;
  }
}

extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) embed_norm(const EmbedNorm e) {
  for (int row = first_warp(); row < *e.rows; row += all_warps()) {
    const bf16* from = e.table + (size_t)e.tokens[row] * e.width;
    float* x = e.x + (size_t)row * e.width;
    float squares = 0;
    for (int i = threadIdx.x % 32 * 4; i < e.width; i += 128) {
      uint2 packed = *(const uint2*)(from + i);
      float4 v = {to_float((bf16)packed.x) * e.factor, to_float((bf16)(packed.x >> 16)) * e.factor,
                  to_float((bf16)packed.y) * e.factor, to_float((bf16)(packed.y >> 16)) * e.factor};
      squares = squares + v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
      *(float4*)(x + i) = v;
    }
    write_normed(e, row, squares);
  }
}

extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) norm_rows(const Norm n) {
  for (int row = first_warp(); row < *n.rows; row += all_warps()) {
    float* x = n.x + (size_t)row * n.width;
    const float* sums = n.sums + (size_t)row * n.width;
    float squares = 0;
    for (int i = threadIdx.x % 32 * 4; i < n.width; i += 128) {
      float4 v = *(const float4*)(x + i);
      if (n.parts) {
        // The total is whole before it is added, as in `product_add`.
        float4 total;
        size_t stride = (size_t)n.part_rows * n.width;
        if (n.row_factors) {
          uint4 sum = {0, 0, 0, 0};
          NO_UNROLL
          for (int part = 0; part < n.parts; part++) {
            uint4 s = *(const uint4*)(sums + part * stride + i);
            sum = {sum.x + s.x, sum.y + s.y, sum.z + s.z, sum.w + s.w};
          }
          float of_row = n.row_factors[row];
          float4 of = *(const float4*)(n.column_factors + i);
          total = {scaled_sum(sum.x, of_row, of.x), scaled_sum(sum.y, of_row, of.y),
                   scaled_sum(sum.z, of_row, of.z), scaled_sum(sum.w, of_row, of.w)};
        } else {
          total = *(const float4*)(sums + i);
          NO_UNROLL
          for (int part = 1; part < n.parts; part++) {
            float4 s = *(const float4*)(sums + part * stride + i);
            total = {total.x + s.x, total.y + s.y, total.z + s.z, total.w + s.w};
          }
        }
        v = {v.x + total.x, v.y + total.y, v.z + total.z, v.w + total.w};
        *(float4*)(x + i) = v;
      }
      squares = squares + v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    write_normed(n, row, squares);
  }
}

// A lane's values of a head are those at lane + 32 i, so a value and the one it turns with, C / 2
// further, lie in one lane.
template <int C>
DEVICE void read_head(const Heads& h, int row, int head, float (&value)[C / 32]) {
  int lane = threadIdx.x % 32, width = (h.heads + 2 * h.key_heads) * C;
  for (int i = 0; i < C / 32; i++) {
    int column = head * C + lane + i * 32;
    const float* sums = h.sums + (size_t)row * width + column;
    size_t stride = (size_t)h.part_rows * width;
    float total = sums[0];
    if (h.row_factors) {
      uint32_t sum = 0;
      NO_UNROLL
      for (int part = 0; part < h.parts; part++) sum += ((const uint32_t*)sums)[part * stride];
      total = scaled_sum(sum, h.row_factors[row], h.column_factors[column]);
    } else {
      NO_UNROLL
      for (int part = 1; part < h.parts; part++) total += sums[part * stride];
    }
    value[i] = h.bias ? total + h.bias[column] : total;
  }
}

template <int C>
DEVICE void write_heads(const Heads& h) {
  int lane = threadIdx.x % 32, all_heads = h.heads + 2 * h.key_heads, rows = *h.rows;
  int groups = (rows + 7) / 8;
  for (int item = first_warp(); item < groups * all_heads; item += all_warps()) {
    int first = item / all_heads * 8, head = item % all_heads, count = min(8, rows - first);
    if (head < h.heads + h.key_heads) {
      bool is_query = head < h.heads;
      const float* weight = is_query ? h.query_norm : h.key_norm;
      NO_UNROLL
      for (int row = first; row < first + count; row++) {
        float value[C / 32];
        read_head<C>(h, row, head, value);
        if (weight) {
          float squares = 0;
          for (int i = 0; i < C / 32; i++) squares += value[i] * value[i];
          float mean = __fdiv_rn(warp_sum(squares), (float)C);
          float scale = __fdiv_rn(1.0f, __fsqrt_rn(mean + h.epsilon));
          for (int i = 0; i < C / 32; i++) value[i] = value[i] * (scale * weight[lane + i * 32]);
        }
        for (int i = 0; i < C / 64; i++) {
          size_t at = (size_t)h.positions[row] * (C / 2) + lane + i * 32;
          float x = value[i], y = value[i + C / 64];
          value[i] = x * h.cosines[at] - y * h.sines[at];
          value[i + C / 64] = y * h.cosines[at] + x * h.sines[at];
        }
        int destination = h.destinations[row], of_key = head - h.heads;
        bf16* to = is_query ? h.queries + ((size_t)row * h.heads + head) * C
                   : destination < 0
                       ? h.own + ((size_t)~destination * 2 * h.key_heads + of_key) * C
                       : h.keys + (((size_t)(destination / 64) * h.key_heads + of_key) * 64 +
                                   destination % 64) *
                                      C;
        for (int i = 0; i < C / 32; i++) to[lane + i * 32] = to_bf16(value[i]);
      }
      continue;
    }
    int of_key = head - h.heads - h.key_heads;
    bf16 value[8][C / 32];
    EACH (r, 8) {
      float read[C / 32];
      if (r < count) read_head<C>(h, first + r, head, read);
      for (int i = 0; i < C / 32; i++) value[r][i] = r < count ? to_bf16(read[i]) : (bf16)0;
    }
    // Eight rows that fill 16 bytes of each column of a page: one store a column.
    bool whole = count == 8 && h.destinations[first] >= 0 && h.destinations[first] % 8 == 0;
    for (int r = 1; r < count; r++)
      whole = whole && h.destinations[first + r] == h.destinations[first] + r;
    EACH (r, 8) {
      if (r >= count) break;
      int destination = h.destinations[first + r];
      if (destination < 0) {
        bf16* to = h.own + (((size_t)~destination * 2 + 1) * h.key_heads + of_key) * C;
        for (int i = 0; i < C / 32; i++) to[lane + i * 32] = value[r][i];
        continue;
      }
      bf16* to = h.values + ((size_t)(destination / 64) * h.key_heads + of_key) * C * 64 +
                 destination % 64;
      for (int i = 0; i < C / 32; i++) {
        bf16* column = to + (size_t)(lane + i * 32) * 64;
        if (!whole) {
          *column = value[r][i];
        } else if (r == 0) {
          uint4 packed = {
              value[0][i] | (uint32_t)value[1][i] << 16, value[2][i] | (uint32_t)value[3][i] << 16,
              value[4][i] | (uint32_t)value[5][i] << 16, value[6][i] | (uint32_t)value[7][i] << 16};
          *(uint4*)column = packed;
        }
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) heads_64(const Heads h) {
  write_heads<64>(h);
}
extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) heads_128(const Heads h) {
  write_heads<128>(h);
}

// The rows whose logits are wanted, side by side: what the last layer computes goes on with them.
extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) head_rows(const HeadRows h) {
  int lane = threadIdx.x % 32;
  for (int row = first_warp(); row < *h.rows; row += all_warps()) {
    size_t from = h.taken[row];
    for (int i = lane * 4; i < h.width; i += 128)
      *(float4*)(h.taken_x + (size_t)row * h.width + i) =
          *(const float4*)(h.x + from * h.width + i);
    for (int i = lane * 8; i < h.heads_width; i += 256)
      *(uint4*)(h.taken_heads + (size_t)row * h.heads_width + i) =
          *(const uint4*)(h.heads + from * h.heads_width + i);
  }
}

// A block a row. Threads take every 256th tile, then warps are added in order.
extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 2) row_sums(const RowSums r) {
  float* of_warps = shared_memory<float>();
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int row = blockIdx.x; row < *r.rows; row += gridDim.x) {
    const float2* tiles = r.statistics + (size_t)row * r.tiles;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < r.tiles; i += ROWS_THREADS) largest = fmaxf(largest, tiles[i].x);
    largest = warp_max(largest);
    if (lane == 0) of_warps[warp] = largest;
    __syncthreads();
    for (int i = 0; i < ROWS_WARPS; i++) largest = fmaxf(largest, of_warps[i]);
    __syncthreads();  // before they are written again
    float sum = 0;
    for (int i = threadIdx.x; i < r.tiles; i += ROWS_THREADS)
      sum += tiles[i].y * exp_fixed(tiles[i].x - largest);
    sum = warp_sum(sum);
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < ROWS_WARPS; i++) sum += of_warps[i];
    if (threadIdx.x == 0) r.normalisers[row] = largest + log_fixed(sum);
    __syncthreads();
  }
}

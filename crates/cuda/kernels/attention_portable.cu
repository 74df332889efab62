// Attention in stages, for any GPU from sm_80 on: to pages of prompts by tiles of rows, then to a
// beam's own tokens.
//
// Keys are cut into runs of 512 at absolute positions. A run is summed from zero, page by page with
// a rising maximum; runs are merged in order, then own tokens. One block does all runs of a tile,
// or a block each: equal bits. Source: xGR, arXiv 2512.11529, §5.2; ours orders every sum.
//
// A tile is 128 rows (positions or beams, times the query heads of one key head), 8 warps of 16;
// two pages in shared memory. Bound by mma.sync for prompts, by latency for beams.
#include "device.cuh"

constexpr int ATTENTION_THREADS = 256, ATTENTION_ROWS = 128, PAGE = 64, RUN_PAGES = 8;
constexpr int RUN = RUN_PAGES * PAGE, MERGE_THREADS = 256;
template <int C>
constexpr int ATTENTION_SHARED = (ATTENTION_ROWS * C + 2 * 2 * PAGE * C) * 2;

struct AttentionItem {
  int request, key_head, first_row;  // first_row: beams or positions times heads of the group
  int run;                           // or -1: all, and the rows are written whole
};
struct AttentionRequest {
  int first_row, rows;  // rows of the pass
  int first_page;       // in the table of pages
};
struct alignas(64) Attention {
  const PassSizes* sizes;
  const AttentionItem* items;
  const AttentionRequest* requests;
  const int* pages;
  const int* visible;     // [rows]: keys in pages that a row sees; never falls within a request
  const int* own_tokens;  // [rows]
  const int* ancestors;   // [own tokens, most_rows]: slots
  const bf16* queries;    // [rows, heads, C]
  const bf16* keys;       // [pages, key_heads, 64, C]
  const bf16* values;     // [pages, key_heads, C, 64]; places past the tokens are zero
  const bf16* own;        // [slots, 2, key_heads, C]
  float* sums;            // [runs, most_rows, heads, C], not divided
  float2* statistics;     // [runs, most_rows, heads]: maximum, sum
  bf16* out;              // [rows, heads, C]
  int heads, key_heads, most_rows;
  float scale;  // of scores, in units of log2
};

// A softmax's sums so far, relative to its maximum.
struct Weights {
  float old, now;
};
// Weights of two maxima. Where neither side saw a key both are 0: -inf - -inf would be NaN.
DEVICE Weights merge(float& largest, float& sum, float other_largest, float other_sum) {
  float now = fmaxf(largest, other_largest);
  if (now == -INFINITY) return {0.0f, 0.0f};
  Weights w = {exp2_fixed(largest - now), exp2_fixed(other_largest - now)};
  largest = now;
  sum = sum * w.old + other_sum * w.now;
  return w;
}

template <int C>
DEVICE void load_page(const Attention& a, const AttentionRequest& r, int head, int page, bf16* to) {
  size_t from = ((size_t)a.pages[r.first_page + page] * a.key_heads + head) * PAGE * C;
  for (int i = threadIdx.x; i < PAGE * C / 8; i += ATTENTION_THREADS) {
    int row = i / (C / 8), at = i % (C / 8);
    copy16_async(piece(to, row, at, C / 8), a.keys + from + i * 8, true);
    row = i / (PAGE / 8), at = i % (PAGE / 8);
    copy16_async(piece(to + PAGE * C, row, at, PAGE / 8), a.values + from + i * 8, true);
  }
  copies_commit();
}

template <int C>
DEVICE void attend(const Attention& a) {
  bf16* queries = shared_memory<bf16>();
  bf16* buffers = queries + ATTENTION_ROWS * C;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = a.heads / a.key_heads;
  for (int number = blockIdx.x; number < a.sizes->items; number += gridDim.x) {
    AttentionItem item = a.items[number];
    AttentionRequest r = a.requests[item.request];
    int rows = r.rows * group, last = min(item.first_row + ATTENTION_ROWS, rows) - 1;
    int end = a.visible[r.first_row + last / group], first_page = max(item.run, 0) * RUN_PAGES;
    if (item.run >= 0) end = min(end, (item.run + 1) * RUN);
    int pages = (end + PAGE - 1) / PAGE - first_page;

    int visible[2];
    for (int h = 0; h < 2; h++) {
      int packed = item.first_row + warp * 16 + lane / 4 + h * 8;
      visible[h] = packed < rows ? a.visible[r.first_row + packed / group] : 0;
    }
    for (int i = threadIdx.x; pages > 0 && i < ATTENTION_ROWS * C / 8; i += ATTENTION_THREADS) {
      int row = i / (C / 8), at = i % (C / 8), packed = item.first_row + row;
      int head = item.key_head * group + packed % group;
      bool there = packed < rows;
      size_t from = ((size_t)(r.first_row + packed / group) * a.heads + head) * C + at * 8;
      copy16_async(piece(queries, row, at, C / 8), a.queries + (there ? from : 0), there);
    }
    if (pages > 0) load_page<C>(a, r, item.key_head, first_page, buffers);

    float total[C / 8][4], out[C / 8][4];
    float total_largest[2] = {-INFINITY, -INFINITY}, total_sum[2] = {0, 0};
    float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int i = 0; i < C / 8; i++)
      for (int e = 0; e < 4; e++) total[i][e] = out[i][e] = 0;
    for (int page = 0; page < pages; page++) {
      bf16* keys = buffers + page % 2 * 2 * PAGE * C;
      bf16* values = keys + PAGE * C;
      if (page + 1 < pages) {
        bf16* next = buffers + (page + 1) % 2 * 2 * PAGE * C;
        load_page<C>(a, r, item.key_head, first_page + page + 1, next);
        copies_wait<1>();
      } else {
        copies_wait<0>();
      }
      __syncthreads();
      float score[PAGE / 8][4];
      for (int n = 0; n < PAGE / 8; n++)
        for (int e = 0; e < 4; e++) score[n][e] = 0;
      for (int k = 0; k < C / 16; k++) {
        uint32_t query[4];
        load_matrices(query, piece(queries, warp * 16 + lane % 16, k * 2 + lane / 16, C / 8));
        for (int n = 0; n < PAGE / 16; n++) {
          uint32_t b[4];
          int row = n * 16 + lane % 8 + lane / 16 * 8;
          load_matrices(b, piece(keys, row, k * 2 + lane / 8 % 2, C / 8));
          multiply_16x8x16(score[n * 2], query, b[0], b[1]);
          multiply_16x8x16(score[n * 2 + 1], query, b[2], b[3]);
        }
      }
      float most[2] = {largest[0], largest[1]};
      for (int n = 0; n < PAGE / 8; n++)
        for (int e = 0; e < 4; e++) {
          int key = (first_page + page) * PAGE + n * 8 + lane % 4 * 2 + e % 2;
          score[n][e] = key < visible[e / 2] ? score[n][e] * a.scale : -INFINITY;
          most[e / 2] = fmaxf(most[e / 2], score[n][e]);
        }
      for (int h = 0; h < 2; h++) {
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 1));
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 2));
        // A row that has seen no key yet: -inf less 0, not less -inf.
        float base = most[h] == -INFINITY ? 0.0f : most[h];
        float factor = exp2_fixed(largest[h] - base);  // 0 at first, 1 where the maximum stays
        largest[h] = most[h];
        sum[h] *= factor;
        for (int i = 0; i < C / 8; i++) {
          out[i][h * 2] *= factor;
          out[i][h * 2 + 1] *= factor;
        }
        for (int n = 0; n < PAGE / 8; n++)
          for (int e = h * 2; e < h * 2 + 2; e++) {
            score[n][e] = exp2_fixed(score[n][e] - base);
            sum[h] += score[n][e];
          }
      }
      for (int k = 0; k < PAGE / 16; k++) {
        uint32_t weight[4] = {pack_bf16(score[k * 2][0], score[k * 2][1]),
                              pack_bf16(score[k * 2][2], score[k * 2][3]),
                              pack_bf16(score[k * 2 + 1][0], score[k * 2 + 1][1]),
                              pack_bf16(score[k * 2 + 1][2], score[k * 2 + 1][3])};
        for (int n = 0; n < C / 16; n++) {
          uint32_t b[4];
          int row = n * 16 + lane % 8 + lane / 16 * 8;
          load_matrices(b, piece(values, row, k * 2 + lane / 8 % 2, PAGE / 8));
          multiply_16x8x16(out[n * 2], weight, b[0], b[1]);
          multiply_16x8x16(out[n * 2 + 1], weight, b[2], b[3]);
        }
      }
      __syncthreads();  // before the buffer is loaded again
      if (item.run < 0 && (page % RUN_PAGES == RUN_PAGES - 1 || page == pages - 1))
        for (int h = 0; h < 2; h++) {
          float whole = sum[h] + __shfl_xor_sync(~0u, sum[h], 1);
          whole += __shfl_xor_sync(~0u, whole, 2);
          Weights w = merge(total_largest[h], total_sum[h], largest[h], whole);
          for (int i = 0; i < C / 8; i++)
            for (int e = h * 2; e < h * 2 + 2; e++) {
              total[i][e] = total[i][e] * w.old + out[i][e] * w.now;
              out[i][e] = 0;
            }
          largest[h] = -INFINITY;
          sum[h] = 0;
        }
    }
    for (int h = 0; h < 2; h++) {
      float whole = sum[h] + __shfl_xor_sync(~0u, sum[h], 1);
      whole += __shfl_xor_sync(~0u, whole, 2);
      int packed = item.first_row + warp * 16 + lane / 4 + h * 8;
      if (packed >= rows) continue;
      size_t row =
          (size_t)(r.first_row + packed / group) * a.heads + item.key_head * group + packed % group;
      if (item.run < 0) {
        float inverse = __fdiv_rn(1.0f, total_sum[h]);
        for (int i = 0; i < C / 8; i++)
          *(uint32_t*)(a.out + row * C + i * 8 + lane % 4 * 2) =
              pack_bf16(total[i][h * 2] * inverse, total[i][h * 2 + 1] * inverse);
      } else {
        row += (size_t)item.run * a.most_rows * a.heads;
        if (lane % 4 == 0) a.statistics[row] = make_float2(largest[h], whole);
        for (int i = 0; i < C / 8; i++)
          *(float2*)(a.sums + row * C + i * 8 + lane % 4 * 2) =
              make_float2(out[i][h * 2], out[i][h * 2 + 1]);
      }
    }
  }
}
#define ATTEND(name, width)                                                                 \
  extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS) name(const Attention a) { \
    attend<width>(a);                                                                       \
  }
ATTEND(prompt_attention_64, 64)
ATTEND(prompt_attention_128, 128)
#undef ATTEND

// A warp a row and head adds the runs in order and then the row's own tokens, found by the slots of
// its ancestors. A lane has C / 32 values side by side.
template <int C>
DEVICE void merge_runs_and_own(const Attention& a) {
  constexpr int VALUES = C / 32;
  int lane = threadIdx.x % 32, warps = gridDim.x * (MERGE_THREADS / 32);
  for (int item = blockIdx.x * (MERGE_THREADS / 32) + threadIdx.x / 32;
       item < a.sizes->merge_rows * a.heads; item += warps) {
    int row = a.sizes->first_merge + item / a.heads, head = item % a.heads;
    int key_head = head / (a.heads / a.key_heads), runs = (a.visible[row] + RUN - 1) / RUN;
    size_t at = (size_t)row * a.heads + head, stride = (size_t)a.most_rows * a.heads;
    float query[VALUES], out[VALUES], largest = -INFINITY, sum = 0;
    for (int i = 0; i < VALUES; i++) {
      query[i] = to_float(a.queries[at * C + lane * VALUES + i]);
      out[i] = 0;
    }
    for (int run = 0; run < runs; run++) {
      float2 of_run = a.statistics[run * stride + at];
      Weights w = merge(largest, sum, of_run.x, of_run.y);
      const float* sums = a.sums + (run * stride + at) * C + lane * VALUES;
      for (int i = 0; i < VALUES; i++) out[i] = out[i] * w.old + sums[i] * w.now;
    }
    for (int token = 0; token < a.own_tokens[row]; token++) {
      size_t slot = a.ancestors[(size_t)token * a.most_rows + row];
      const bf16* key = a.own + (slot * 2 * a.key_heads + key_head) * C + lane * VALUES;
      const bf16* value = key + a.key_heads * C;
      float score = 0;
      for (int i = 0; i < VALUES; i++) score += query[i] * to_float(key[i]);
      Weights w = merge(largest, sum, warp_sum(score) * a.scale, 1.0f);
      for (int i = 0; i < VALUES; i++) out[i] = out[i] * w.old + to_float(value[i]) * w.now;
    }
    float inverse = __fdiv_rn(1.0f, sum);
    for (int i = 0; i < VALUES; i += 2)
      *(uint32_t*)(a.out + at * C + lane * VALUES + i) =
          pack_bf16(out[i] * inverse, out[i + 1] * inverse);
  }
}
#define MERGE(name, width)                                                              \
  extern "C" __global__ void __launch_bounds__(MERGE_THREADS) name(const Attention a) { \
    merge_runs_and_own<width>(a);                                                       \
  }
MERGE(merge_own_64, 64)
MERGE(merge_own_128, 128)
#undef MERGE

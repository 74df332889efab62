// Attention in stages, for any GPU from sm_80 on: to pages of prompts by tiles of rows, then to a
// beam's own tokens.
//
// 8 warps of 16 rows; two pages in shared memory. Bound by mma.sync for prompts, by latency for
// beams.
#include "attention.cuh"

constexpr int ATTENTION_THREADS = 256, MERGE_THREADS = 256;
template <int C>
constexpr int ATTENTION_SHARED = (ATTENTION_ROWS * C + 2 * 2 * PAGE * C) * 2;

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
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int number = blockIdx.x; number < a.sizes->items; number += gridDim.x) {
    AttentionTile t = tile_of(a, number);
    int first = t.item.first_row + warp * 16 + lane / 4, visible[2];
    read_visible(a, t, first, visible);
    for (int i = threadIdx.x; t.pages > 0 && i < ATTENTION_ROWS * C / 8; i += ATTENTION_THREADS) {
      int row = i / (C / 8), at = i % (C / 8), packed = t.item.first_row + row;
      bool there = packed < t.rows;
      size_t from = there ? head_row(a, t, packed) * C + at * 8 : 0;
      copy16_async(piece(queries, row, at, C / 8), a.queries + from, there);
    }
    if (t.pages > 0) load_page<C>(a, t.request, t.item.key_head, t.first_page, buffers);

    Softmax<C> total, run;
    total.clear();
    run.clear();
    for (int page = 0; page < t.pages; page++) {
      bf16* keys = buffers + page % 2 * 2 * PAGE * C;
      bf16* values = keys + PAGE * C;
      if (page + 1 < t.pages) {
        bf16* next = buffers + (page + 1) % 2 * 2 * PAGE * C;
        load_page<C>(a, t.request, t.item.key_head, t.first_page + page + 1, next);
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
      run.weigh(score, (t.first_page + page) * PAGE, visible, a.scale);
      for (int k = 0; k < PAGE / 16; k++) {
        uint32_t weight[4];
        pack_weights(score, k, weight);
        for (int n = 0; n < C / 16; n++) {
          uint32_t b[4];
          int row = n * 16 + lane % 8 + lane / 16 * 8;
          load_matrices(b, piece(values, row, k * 2 + lane / 8 % 2, PAGE / 8));
          multiply_16x8x16(run.out[n * 2], weight, b[0], b[1]);
          multiply_16x8x16(run.out[n * 2 + 1], weight, b[2], b[3]);
        }
      }
      __syncthreads();  // before the buffer is loaded again
      bool ends = page % RUN_PAGES == RUN_PAGES - 1 || page == t.pages - 1;
      if (t.item.run < 0 && ends) total.add(run);
    }
    write_rows<C>(a, t, first, total, run);
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

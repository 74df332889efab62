// What kernels of attention to prompts share: arguments, and softmaxes of a thread's two rows.
//
// Keys are cut into runs of 512 at absolute positions. A run is summed from zero, page by page with
// a rising maximum; runs are merged in order, then own tokens. One block does all runs of a tile,
// or a block each: equal bits. Source: xGR, arXiv 2512.11529, §5.2; ours orders every sum.
//
// A tile is 128 rows (positions or beams, times the query heads of one key head), 16 a warp. A
// thread has two of them: lane / 4 and 8 more, and two values of every 8 of a row.
#pragma once
#include "device.cuh"

constexpr int ATTENTION_ROWS = 128, PAGE = 64, RUN_PAGES = 8, RUN = RUN_PAGES * PAGE;

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

// An item's place: its request, its rows, the pages that it reads.
struct AttentionTile {
  AttentionItem item;
  AttentionRequest request;
  int rows, first_page, pages;
};
DEVICE AttentionTile tile_of(const Attention& a, int number) {
  AttentionItem item = a.items[number];
  AttentionRequest r = a.requests[item.request];
  int group = a.heads / a.key_heads, rows = r.rows * group;
  int last = min(item.first_row + ATTENTION_ROWS, rows) - 1;
  int end = a.visible[r.first_row + last / group], first_page = max(item.run, 0) * RUN_PAGES;
  if (item.run >= 0) end = min(end, (item.run + 1) * RUN);
  return {item, r, rows, first_page, (end + PAGE - 1) / PAGE - first_page};
}
// Place of a row of a tile's request among the heads of all rows.
DEVICE size_t head_row(const Attention& a, const AttentionTile& t, int packed) {
  int group = a.heads / a.key_heads;
  int head = t.item.key_head * group + packed % group;
  return (size_t)(t.request.first_row + packed / group) * a.heads + head;
}
// Keys that a thread's two rows see, `first` being the first of them.
DEVICE void read_visible(const Attention& a, const AttentionTile& t, int first, int (&visible)[2]) {
  for (int h = 0; h < 2; h++) {
    int packed = first + h * 8;
    bool there = packed < t.rows;
    visible[h] = there ? a.visible[t.request.first_row + packed / (a.heads / a.key_heads)] : 0;
  }
}

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

// What a thread has summed of its two rows: maximum, sum of weights, values by their weights.
template <int C>
struct Softmax {
  float largest[2], sum[2], out[C / 8][4];
  DEVICE void clear() {
    for (int h = 0; h < 2; h++) largest[h] = -INFINITY, sum[h] = 0;
    for (int i = 0; i < C / 8; i++)
      for (int e = 0; e < 4; e++) out[i][e] = 0;
  }
  // Makes weights of the scores of a page whose first key is `key`.
  DEVICE void weigh(float (&score)[PAGE / 8][4], int key, const int (&visible)[2], float scale) {
    int column = key + threadIdx.x % 4 * 2;
    float most[2] = {largest[0], largest[1]};
    for (int n = 0; n < PAGE / 8; n++)
      for (int e = 0; e < 4; e++) {
        bool seen = column + n * 8 + e % 2 < visible[e / 2];
        score[n][e] = seen ? score[n][e] * scale : -INFINITY;
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
  }
  // A row's sum of weights: over its four lanes.
  DEVICE float whole(int h) const {
    float all = sum[h] + __shfl_xor_sync(~0u, sum[h], 1);
    return all + __shfl_xor_sync(~0u, all, 2);
  }
  // Adds a run that has ended, and lets the next begin from zero.
  DEVICE void add(Softmax& run) {
    for (int h = 0; h < 2; h++) {
      Weights w = merge(largest[h], sum[h], run.largest[h], run.whole(h));
      for (int i = 0; i < C / 8; i++)
        for (int e = h * 2; e < h * 2 + 2; e++) {
          out[i][e] = out[i][e] * w.old + run.out[i][e] * w.now;
          run.out[i][e] = 0;
        }
      run.largest[h] = -INFINITY;
      run.sum[h] = 0;
    }
  }
};
// Weights of 16 keys as the left side of a product.
DEVICE void pack_weights(const float (&score)[PAGE / 8][4], int k, uint32_t (&weight)[4]) {
  weight[0] = pack_bf16(score[k * 2][0], score[k * 2][1]);
  weight[1] = pack_bf16(score[k * 2][2], score[k * 2][3]);
  weight[2] = pack_bf16(score[k * 2 + 1][0], score[k * 2 + 1][1]);
  weight[3] = pack_bf16(score[k * 2 + 1][2], score[k * 2 + 1][3]);
}

// Writes a thread's two rows: whole, or as the sums of a run.
template <int C>
DEVICE void write_rows(const Attention& a, const AttentionTile& t, int first,
                       const Softmax<C>& total, const Softmax<C>& run) {
  int lane = threadIdx.x % 32;
  for (int h = 0; h < 2; h++) {
    float whole = run.whole(h);
    int packed = first + h * 8;
    if (packed >= t.rows) continue;
    size_t row = head_row(a, t, packed);
    if (t.item.run < 0) {
      float inverse = __fdiv_rn(1.0f, total.sum[h]);
      for (int i = 0; i < C / 8; i++)
        *(uint32_t*)(a.out + row * C + i * 8 + lane % 4 * 2) =
            pack_bf16(total.out[i][h * 2] * inverse, total.out[i][h * 2 + 1] * inverse);
    } else {
      row += (size_t)t.item.run * a.most_rows * a.heads;
      if (lane % 4 == 0) a.statistics[row] = make_float2(run.largest[h], whole);
      for (int i = 0; i < C / 8; i++)
        *(float2*)(a.sums + row * C + i * 8 + lane % 4 * 2) =
            make_float2(run.out[i][h * 2], run.out[i][h * 2 + 1]);
    }
  }
}

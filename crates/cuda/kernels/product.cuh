// What the products share: arguments, and what becomes of an element.
//
// An element is the sum of `runs` parts of K, each summed from zero in steps of 16 and added in
// order, so its bits depend on its row and column alone: not on the tile, the other rows or the
// grid.
#pragma once
#include "device.cuh"

struct alignas(64) Product {
  const int* rows;        // in device memory
  const bf16* x;          // [rows, k]
  const bf16* w;          // [n, k]
  void* out;              // by the ending
  const int* windows;     // [rows]: first column of a row's logits
  float2* statistics;     // [rows, tiles of n]: maximum and sum of logits
  int n, k, runs;         // k: a multiple of 64 · runs
  int split;              // sums: a block takes one run, and writes it to a part of its own
  int part_rows;          // rows of a part
  int first_tile, tiles;  // logits: tiles of columns
  int columns;            // logits: width of a window
  int whole;              // logits: statistics over all columns, not only those of the window
};

enum Ending { SUMS, ADD, BF16, SWIGLU, LOGITS };

// x · sigmoid(x)
DEVICE float silu(float x) {
  float power = __fmul_rn(-x, LOG2E);
  return __fdiv_rn(x, __fadd_rn(1.0f, exp2_fixed(power > 126.0f ? 126.0f : power)));
}

// Writes two elements of a row that stand side by side.
template <Ending ENDING>
DEVICE void write_pair(const Product& p, int rows, int row, int column, int part, float x,
                       float y) {
  if (row >= rows || column >= p.n) return;
  size_t at = (size_t)row * p.n + column;
  if constexpr (ENDING == SUMS) {
    float* to = (float*)p.out + (size_t)part * p.part_rows * p.n + at;
    *(float2*)to = make_float2(x, y);
  } else if constexpr (ENDING == ADD) {
    float2* to = (float2*)((float*)p.out + at);
    float2 old = *to;
    *to = make_float2(__fadd_rn(old.x, x), __fadd_rn(old.y, y));
  } else if constexpr (ENDING == BF16) {
    *(uint32_t*)((bf16*)p.out + at) = pack_bf16(x, y);
  } else if constexpr (ENDING == SWIGLU) {  // gate and up stand side by side
    ((bf16*)p.out)[at / 2] = to_bf16(__fmul_rn(silu(x), y));
  }
}

// True for a column that a row's statistics are of: all are, or those of its window.
DEVICE bool is_counted(const Product& p, int column, int window) {
  return column < p.n && (p.whole || (uint32_t)(column - window) < (uint32_t)p.columns);
}
// Writes a logit to its row's window.
DEVICE void write_logit(const Product& p, int rows, int row, int column, int window, float value) {
  uint32_t place = column - window;
  if (row < rows && column < p.n && place < (uint32_t)p.columns)
    ((float*)p.out)[(size_t)row * p.columns + place] = value;
}

// A tile of the work: rows by columns, of a part of K.
struct ProductTile {
  int m, n, part;
};
// How the work is cut into tiles. Neighbours share a tile of weights.
struct ProductTiles {
  int rows, tiles_m, tiles, parts, of_run;  // of_run: steps of K of a run
};
template <Ending ENDING, int M, int N, int K>
DEVICE ProductTiles cut(const Product& p) {
  int rows = *p.rows, tiles_m = (rows + M - 1) / M;
  int tiles_n = ENDING == LOGITS ? p.tiles : (p.n + N - 1) / N;
  int parts = ENDING == SUMS && p.split ? p.runs : 1;
  return {rows, tiles_m, tiles_m * tiles_n * parts, parts, p.k / K / p.runs};
}
template <Ending ENDING, int M, int N>
DEVICE ProductTile tile_of(const Product& p, const ProductTiles& all, int item) {
  int n = item / all.tiles_m / all.parts * N + (ENDING == LOGITS ? p.first_tile * N : 0);
  return {item % all.tiles_m * M, n, item / all.tiles_m % all.parts};
}

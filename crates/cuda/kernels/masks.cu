// Masks of grammars over logits: what a row may not continue with becomes -inf.
//
// Words are those of XGrammar's and llguidance's bitmasks: bit i % 32 of word i / 32. Bound by
// memory: forbidden logits are written, allowed ones are not read.
#include "device.cuh"

constexpr int MASK_THREADS = 256;

struct alignas(64) BitMask {
  const int* rows;        // in device memory
  const int* masks_of;    // [rows]: which mask a row has, or null: its own number; below 0: none
  const uint32_t* masks;  // [masks, words]
  float* logits;          // [rows, columns]
  int columns, words;     // columns past the words stay
};

extern "C" __global__ void __launch_bounds__(MASK_THREADS) apply_bitmask(const BitMask m) {
  int columns = min(m.columns, m.words * 32);
  for (int row = blockIdx.y; row < *m.rows; row += gridDim.y) {
    int mask = m.masks_of ? m.masks_of[row] : row;
    if (mask < 0) continue;
    const uint32_t* words = m.masks + (size_t)mask * m.words;
    for (int i = blockIdx.x * MASK_THREADS + threadIdx.x; i < columns;
         i += gridDim.x * MASK_THREADS)
      if (!(words[i / 32] >> i % 32 & 1)) m.logits[(size_t)row * m.columns + i] = -INFINITY;
  }
}

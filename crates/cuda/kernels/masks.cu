// Masks of grammars over logits: what a row may not continue with becomes -inf.
//
// Words are those of XGrammar's and llguidance's bitmasks: bit i % 32 of word i / 32. Bound by
// memory: forbidden logits are written, allowed ones are not read. 64 rows of 128,256 logits of
// which hardly any is allowed: 33 MB of f32, 11 us of an H100 (3 TB/s), 5.5 of bf16.
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

// Masks over the logits of a caller, of any type: minus infinity is bits.
struct alignas(64) RowMasks {
  const int* rows;        // [count]: rows that are masked, those outside of the logits not; or null:
                          // the first ones
  const int* masks_of;    // [count]: their masks, below 0 none, past the last one that allows
                          // nothing; or null: that of the row's own number
  const uint32_t* masks;  // [num_masks, words]
  void* logits;           // [num_rows, columns]; columns past the words are allowed by no mask
  int count, num_rows, num_masks, columns, words;
  int row_stride, mask_stride;  // from row to row, in elements
  uint32_t infinity;            // bits of minus infinity
};

// Logits that a thread looks at in one go: bits of one word.
constexpr int MASK_COLUMNS = 4;

template <class T>
DEVICE void mask_rows(const RowMasks& m) {
  struct alignas(MASK_COLUMNS * sizeof(T)) Columns {
    T of[MASK_COLUMNS];
  };
  T infinity = (T)m.infinity;
  int stride = gridDim.x * MASK_THREADS * MASK_COLUMNS;
  for (int at = blockIdx.y; at < m.count; at += gridDim.y) {
    int row = m.rows ? m.rows[at] : at;
    int mask = m.masks_of ? m.masks_of[at] : row;
    if (row < 0 || row >= m.num_rows || mask < 0) continue;
    int words = mask < m.num_masks ? m.words : 0;
    const uint32_t* of_mask = m.masks + (size_t)mask * m.mask_stride;
    T* logits = (T*)m.logits + (size_t)row * m.row_stride;
    for (int first = (blockIdx.x * MASK_THREADS + threadIdx.x) * MASK_COLUMNS; first < m.columns;
         first += stride) {
      uint32_t allowed = first / 32 < words ? of_mask[first / 32] >> first % 32 & 15 : 0;
      T* to = logits + first;
      bool whole = first + MASK_COLUMNS <= m.columns && (size_t)to % sizeof(Columns) == 0;
      if (allowed == 0 && whole) {
        *(Columns*)to = {infinity, infinity, infinity, infinity};
        continue;
      }
      for (int i = 0; i < MASK_COLUMNS; i++)
        if (!(allowed >> i & 1) && first + i < m.columns) to[i] = infinity;
    }
  }
}

extern "C" __global__ void __launch_bounds__(MASK_THREADS) mask_rows_16(const RowMasks m) {
  mask_rows<uint16_t>(m);
}
extern "C" __global__ void __launch_bounds__(MASK_THREADS) mask_rows_32(const RowMasks m) {
  mask_rows<uint32_t>(m);
}

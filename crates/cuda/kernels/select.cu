// Exact best extensions of beams by (score, parent, code), through bins of scores below the best.
//
// A row's position is a range of ranks in each segment of a catalog. Codes of a level are kept by
// rank, or at the first levels as a mask a prefix and the rank at which each extension begins. A
// filter is a bit a rank with the count of set bits before each word: a range holds an allowed item
// if two counts differ. Six launches a level serve several searches, a column of blocks each. Goal:
// 25 microseconds a level at 256 x 8,192, by launches and latency.
#include "device.cuh"

constexpr int BINS = 4096, SORTED = 4096, SELECT_THREADS = 256, SORT_THREADS = 1024;

struct Range {
  uint32_t begin, end;
  uint32_t key;  // the prefix as a number, at masked levels
};
struct Filter {
  const uint32_t* bits;    // null: every rank
  const uint32_t* before;  // set bits before each word
};
struct Level {
  const uint16_t* by_rank;  // [items]; null at a masked level
  const uint32_t* masks;    // [prefixes, words]
  const uint32_t* starts;   // [prefixes * codes + 1]
};
struct Extension {
  float score;
  uint32_t parent, code;
};
struct alignas(16) Search {
  const float* logits;     // [rows, codes]
  const float* scores;     // [rows], best first
  const Range* positions;  // [rows, segments]
  const Level* levels;     // [segments]
  const Filter* filters;   // [segments]
  uint32_t* masks;         // [rows, codes / 32], zero
  float* normalisers;      // [rows]
  uint32_t* histogram;     // [BINS], zero
  uint32_t* state;         // [4], zero: last bin kept, candidates, extensions, bad rows
  uint64_t* candidates;    // [capacity]
  Extension* best;         // [width]
  Range* next;             // [width, segments]
  int rows, segments, codes, width, capacity;  // width: at most SORTED
  int normalised;                              // normalisers are given
  float floor;                                 // scores below it are dropped
};
struct alignas(64) Select {
  const Search* searches;  // one a column of blocks
};
enum { CUT, COUNT, FOUND, BAD };

struct ScoresShared {
  float of_warps[8];
  uint32_t histogram[BINS];
  uint32_t padding[24];
};
struct SortShared {
  uint64_t keys[SORTED];
  uint32_t digits[256];
  uint64_t prefix;
  uint32_t need, count;
  uint32_t padding[28];
};
constexpr int SCORES_SHARED = sizeof(ScoresShared), BINS_SHARED = 128,
              SORT_SHARED = sizeof(SortShared);

DEVICE uint32_t rank_count(const Filter& f, uint32_t rank) {
  uint32_t within = rank % 32 ? f.bits[rank / 32] & ((1u << rank % 32) - 1) : 0;
  return f.before[rank / 32] + __popc(within);
}
// Order of scores as an order of integers; of equal scores the one at a lower place is larger.
DEVICE uint64_t key_of(float total, uint32_t place) {
  uint32_t bits = __float_as_uint(total);
  bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
  return (uint64_t)bits << 32 | (uint32_t)~place;
}
DEVICE float total_of(const Search& s, int row, int code, float normaliser) {
  float total = s.scores[row] + (s.logits[(size_t)row * s.codes + code] - normaliser);
  return total + 0.0f;  // no -0
}
// Scores only fall, so the best row's bounds all: bins of 1/64 nat below it.
DEVICE int bin_of(const Search& s, float total) {
  float below = (s.scores[0] - total) * 64.0f;
  return below >= (float)(BINS - 1) ? BINS - 1 : below > 0.0f ? (int)below : 0;
}
DEVICE bool is_allowed(const Search& s, uint32_t place) {
  return s.masks[place / 32] >> place % 32 & 1;
}

// Grid: any x searches.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) allowed_codes(const Select select) {
  const Search& s = select.searches[blockIdx.y];
  int words = s.codes / 32;
  for (int item = blockIdx.x; item < s.rows * s.segments; item += gridDim.x) {
    int row = item / s.segments, segment = item % s.segments;
    Range at = s.positions[item];
    Level level = s.levels[segment];
    Filter filter = s.filters[segment];
    uint32_t* mask = s.masks + (size_t)row * words;
    if (at.begin == at.end) continue;
    if (level.by_rank) {
      for (uint32_t rank = at.begin + threadIdx.x; rank < at.end; rank += SELECT_THREADS)
        if (!filter.bits || filter.bits[rank / 32] >> rank % 32 & 1) {
          uint32_t code = level.by_rank[rank];
          atomicOr(mask + code / 32, 1u << code % 32);
        }
      continue;
    }
    for (int word = threadIdx.x; word < words; word += SELECT_THREADS) {
      uint32_t bits = level.masks[(size_t)at.key * words + word], kept = bits;
      for (uint32_t left = filter.bits ? bits : 0; left; left &= left - 1) {
        int code = word * 32 + __ffs(left) - 1;
        const uint32_t* starts = level.starts + (size_t)at.key * s.codes + code;
        if (rank_count(filter, starts[0]) == rank_count(filter, starts[1])) kept &= ~(left & -left);
      }
      if (kept) atomicOr(mask + word, kept);
    }
  }
}

// Grid: any x searches. A row's sum is in an order that depends on its length alone.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) row_scores(const Select select) {
  ScoresShared& shared = *shared_memory<ScoresShared>();
  const Search& s = select.searches[blockIdx.y];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < BINS; i += SELECT_THREADS) shared.histogram[i] = 0;
  __syncthreads();
  for (int row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const float* logits = s.logits + (size_t)row * s.codes;
    float normaliser = s.normalised ? s.normalisers[row] : 0;
    if (!s.normalised) {
      float largest = -INFINITY, sum = 0;
      for (int i = threadIdx.x; i < s.codes; i += SELECT_THREADS)
        largest = fmaxf(largest, logits[i]);
      largest = warp_max(largest);
      if (lane == 0) shared.of_warps[warp] = largest;
      __syncthreads();
      for (int i = 0; i < 8; i++) largest = fmaxf(largest, shared.of_warps[i]);
      __syncthreads();  // before they are written again
      for (int i = threadIdx.x; i < s.codes; i += SELECT_THREADS)
        sum += exp_fixed(logits[i] - largest);
      sum = warp_sum(sum);
      if (lane == 0) shared.of_warps[warp] = sum;
      __syncthreads();
      sum = 0;
      for (int i = 0; i < 8; i++) sum += shared.of_warps[i];
      normaliser = largest + log_fixed(sum);
      if (threadIdx.x == 0) s.normalisers[row] = normaliser;
    }
    if (threadIdx.x == 0 && !(fabsf(normaliser) < INFINITY)) atomicAdd(s.state + BAD, 1u);
    for (int i = threadIdx.x; i < s.codes; i += SELECT_THREADS)
      if (is_allowed(s, row * s.codes + i)) {
        float total = total_of(s, row, i, normaliser);
        if (total >= s.floor) atomicAdd(shared.histogram + bin_of(s, total), 1u);
      }
    __syncthreads();  // before the next row's maxima are written
  }
  for (int i = threadIdx.x; i < BINS; i += SELECT_THREADS)
    if (shared.histogram[i]) atomicAdd(s.histogram + i, shared.histogram[i]);
}

// Grid: 1 x searches. The last bin that is needed.
extern "C" __global__ void __launch_bounds__(SORT_THREADS) pick_bin(const Select select) {
  uint32_t* of_warps = shared_memory<uint32_t>();
  const Search& s = select.searches[blockIdx.y];
  int t = threadIdx.x, lane = t % 32;
  uint32_t own[4], sum = 0;
  for (int i = 0; i < 4; i++) sum += own[i] = s.histogram[t * 4 + i];
  uint32_t before = sum;
  for (int d = 1; d < 32; d <<= 1) {
    uint32_t other = __shfl_up_sync(~0u, before, d);
    if (lane >= d) before += other;
  }
  if (lane == 31) of_warps[t / 32] = before;
  __syncthreads();
  before -= sum;
  for (int w = 0; w < t / 32; w++) before += of_warps[w];
  uint32_t width = s.width;
  for (int i = 0; i < 4; i++) {
    int bin = t * 4 + i;
    if (before < width && (before + own[i] >= width || bin == BINS - 1)) s.state[CUT] = bin;
    before += own[i];
  }
}

// Grid: any x searches. Keys are distinct, so the order in which places are taken does not show.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) keep_candidates(const Select select) {
  const Search& s = select.searches[blockIdx.y];
  int cut = s.state[CUT];
  for (int row = blockIdx.x; row < s.rows; row += gridDim.x) {
    float normaliser = s.normalisers[row];
    for (int i = threadIdx.x; i < s.codes; i += SELECT_THREADS) {
      uint32_t at = row * s.codes + i;
      if (!is_allowed(s, at)) continue;
      float total = total_of(s, row, i, normaliser);
      if (!(total >= s.floor) || bin_of(s, total) > cut) continue;
      uint32_t place = atomicAdd(s.state + COUNT, 1u);
      if (place < (uint32_t)s.capacity) s.candidates[place] = key_of(total, at);
    }
  }
}

// Visits the keys of all allowed extensions: for the few steps whose candidates do not fit.
template <class F>
DEVICE void for_each_key(const Search& s, F visit) {
  for (int place = threadIdx.x; place < s.rows * s.codes; place += SORT_THREADS)
    if (is_allowed(s, place)) {
      int row = place / s.codes;
      float total = total_of(s, row, place % s.codes, s.normalisers[row]);
      if (total >= s.floor) visit(key_of(total, place));
    }
}

// Grid: 1 x searches. Candidates come in any order and leave in one.
extern "C" __global__ void __launch_bounds__(SORT_THREADS) sort_best(const Select select) {
  SortShared& shared = *shared_memory<SortShared>();
  const Search& s = select.searches[blockIdx.y];
  int t = threadIdx.x;
  uint32_t n = s.state[COUNT];
  if (n <= SORTED && n <= (uint32_t)s.capacity) {
    for (uint32_t i = t; i < SORTED; i += SORT_THREADS)
      shared.keys[i] = i < n ? s.candidates[i] : 0;
  } else {
    // The width-th largest key, eight bits at a time; keys are distinct, so exactly `width` are
    // kept.
    uint64_t prefix = 0;
    uint32_t need = s.width;
    for (int shift = 56; shift >= 0; shift -= 8) {
      if (t < 256) shared.digits[t] = 0;
      __syncthreads();
      for_each_key(s, [&](uint64_t key) {
        if (shift == 56 || key >> (shift + 8) == prefix >> (shift + 8))
          atomicAdd(shared.digits + (key >> shift & 255), 1u);
      });
      __syncthreads();
      if (t == 0) {
        int digit = 255;
        while (digit > 0 && shared.digits[digit] < need) need -= shared.digits[digit--];
        shared.prefix = prefix | (uint64_t)digit << shift;
        shared.need = need;
      }
      __syncthreads();
      prefix = shared.prefix;
      need = shared.need;
      __syncthreads();  // before they are written again
    }
    for (int i = t; i < SORTED; i += SORT_THREADS) shared.keys[i] = 0;
    if (t == 0) shared.count = 0;
    __syncthreads();
    for_each_key(s, [&](uint64_t key) {
      if (key >= prefix) shared.keys[atomicAdd(&shared.count, 1u)] = key;
    });
    __syncthreads();
    n = shared.count;
  }
  __syncthreads();
  // Bitonic, largest first.
  for (int size = 2; size <= SORTED; size *= 2)
    for (int step = size / 2; step; step /= 2) {
      for (int i = t; i < SORTED / 2; i += SORT_THREADS) {
        int low = i / step * step * 2 + i % step, high = low + step;
        bool falls = (low & size) == 0;
        uint64_t x = shared.keys[low], y = shared.keys[high];
        if ((x < y) == falls) {
          shared.keys[low] = y;
          shared.keys[high] = x;
        }
      }
      __syncthreads();
    }
  int found = min((int)n, s.width);
  if (t == 0) s.state[FOUND] = found;
  for (int i = t; i < found; i += SORT_THREADS) {
    uint32_t place = ~(uint32_t)shared.keys[i], bits = (uint32_t)(shared.keys[i] >> 32);
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    s.best[i] = {__uint_as_float(bits), place / s.codes, place % s.codes};
  }
}

// Grid: any x searches. Ranges of the children.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) advance(const Select select) {
  const Search& s = select.searches[blockIdx.y];
  int items = (int)s.state[FOUND] * s.segments;
  for (int item = blockIdx.x * SELECT_THREADS + threadIdx.x; item < items;
       item += gridDim.x * SELECT_THREADS) {
    int segment = item % s.segments;
    Extension e = s.best[item / s.segments];
    Range at = s.positions[e.parent * s.segments + segment];
    Range to = {0, 0, at.key * s.codes + e.code};
    Level level = s.levels[segment];
    if (level.by_rank && at.begin < at.end) {
      uint32_t bounds[2];
      for (int side = 0; side < 2; side++) {  // the first rank of the code, and of the one after it
        uint32_t low = side ? bounds[0] : at.begin, high = at.end;
        while (low < high) {
          uint32_t middle = low + (high - low) / 2;
          if (level.by_rank[middle] < e.code + side) low = middle + 1;
          else high = middle;
        }
        bounds[side] = low;
      }
      to.begin = bounds[0];
      to.end = bounds[1];
    } else if (at.begin < at.end) {
      const uint32_t* starts = level.starts + (size_t)at.key * s.codes + e.code;
      to.begin = starts[0];
      to.end = starts[1];
    }
    s.next[item] = to;
  }
}

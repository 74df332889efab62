// Exact best extensions of beams by (score, parent, code), through bins of scores below the best.
//
// A row's position is a range of ranks in each segment of a catalog. Codes of a level are masked: a
// mask a prefix and the rank at which each extension begins; by rank: the code of every item; or
// listed: the code of every prefix, the rank at which it begins, and a bit a rank where one does. A
// filter is a bit a rank with the count of set bits before each word, and a sorted list of ranks
// that are taken out of it: a range holds an allowed item if its ends differ by more than the
// list's. Seven launches a level serve several searches, a column of blocks each; the rows of a
// level may be known on the device alone.
//
// Predictions, of an H100 (132 multiprocessors, 3 TB/s, 5.5 TB/s from its second cache, 1 us from
// launch to launch in a graph), by kernel for 256 rows of 8,192 codes, and for 2 searches of 70
// rows of 2,048, over 20 million items of 8 levels:
//
//   clear_step       0.3 MB; 1 wave                                                     1.5   1.5
//   allowed_codes    masked, 256 rows: 256 pieces, 2 waves of 2 chains of 4 loads; by
//                    rank: 256 ranges of some ranks, 1 wave, a chain of 3 loads         3     2.5
//   row_scores       8 MB, three times from the second cache; 2 M exponentials of 25
//                    operations: 2 of 7 us; 2 rows a block                              7     2.5
//   pick_bin         16 KB, 1 block, 5 shuffles, 32 additions                           2     2
//   keep_candidates  8 MB once, 2 rows a block                                          3     2
//   sort_best        78 rounds of 2 pairs a thread and a barrier, 60 cycles each        4     4
//   advance          a thread a child and segment: a chain of 2 x 12 loads at most      4     4
//   in all, microseconds                                                               24.5  18.5
//   continue_beams   between levels: 1 wave, a chain of 3 loads                         2     2
//   begin_level      of a caller's arrays: 1 block, a structure of 208 bytes a thread   2     2
//   write_beams      of a caller's arrays: 1 wave, a chain of 3 loads, 8 tokens a beam  2     2
//
// A filter adds to a masked level two counts a code, of four loads: 256 x 8,192 x 16 bytes, 6 us.
// Ranges of more than 16,384 ranks are cut: the root of a level by rank with 20 million items is
// 1,221 pieces of 32 KB, 10 a multiprocessor: 40 MB, 15 us.
#include "extension.cuh"

constexpr int BINS = 4096, SORTED = 4096, SELECT_THREADS = 256, SORT_THREADS = 1024;

struct Range {
  uint32_t begin, end;
  uint32_t key;  // the prefix as a number, at masked levels
};
struct Filter {
  const uint32_t* bits;      // null: every rank
  const uint32_t* before;    // set bits before each word
  const uint32_t* excluded;  // ranks that are taken out, each of them set; ascending
  int num_excluded;
};
struct Level {
  const void* codes;             // of each rank, or of each listed prefix; null at a masked level
  const uint32_t* masks;         // masked: [prefixes, words]
  const uint32_t* starts;        // masked: [prefixes * codes + 1]; listed: [prefixes + 1]; or null
  const uint32_t* begin_bits;    // listed: a bit a rank at which a prefix begins
  const uint32_t* begin_counts;  // listed: set bits before each word
  int wide;                      // codes have 32 bits, and not 16
};
struct alignas(16) Search {
  const float* logits;     // [rows, columns]; code c is column first + c
  const float* scores;     // [rows], best first
  const Range* positions;  // [rows, segments]
  const Level* levels;     // [segments]
  const Filter* filters;   // [segments]
  const uint32_t* live;    // number of rows, where the device knows it alone; or null
  uint32_t* masks;         // [rows, codes / 32 rounded up], zero
  float* normalisers;      // [rows]
  uint32_t* histogram;     // [BINS], zero
  uint32_t* state;         // [4], zero: last bin kept, candidates, extensions, bad rows
  uint64_t* candidates;    // [capacity]
  Extension* best;         // [width]
  Range* next;             // [width, segments]
  float* next_scores;      // [width]; or null
  int rows, segments, codes, columns, first;
  int width, capacity;  // width: at most SORTED
  int normalised;       // normalisers are given
  float floor;          // scores below it are dropped
};
struct alignas(64) Select {
  const Search* searches;  // one a column of blocks
};
struct alignas(64) BeamRows {
  const Extension* extensions;  // [count]
  const uint32_t* count;
  const int* ancestors;  // [passes - 1, most_rows]: slots of the rows that are continued
  int* next_ancestors;   // [passes, most_rows]
  int* tokens;           // [rows], in the description of the pass
  int* pass_ancestors;   // [passes, pass_rows], likewise
  int rows, passes, most_rows, pass_rows;
  int first_token, first_slot;
};
// A level of several searches over arrays of a caller, which only their addresses are known of.
struct alignas(64) CallerLevel {
  Search* searches;         // [requests], written by begin_level
  const float* logits;      // [requests, rows, columns]
  const float* scores;      // [requests, rows]; of a first level: one
  const Range* positions;   // [requests, rows, segments]; of a first level: [segments]
  const Level* levels;      // [segments]
  const Filter* filters;    // [segments]; or [requests, segments]
  const uint32_t* found;    // [requests, 4]: states of the level before; null: a first level
  const long long* tokens;  // [requests, rows, level]
  uint32_t* masks;          // [requests, rows, words]
  float* normalisers;       // [requests, rows]
  uint32_t* histogram;      // [requests, BINS]
  uint32_t* state;          // [requests, 4]
  uint64_t* candidates;     // [requests, SORTED]
  Extension* best;          // [requests, width]
  Range* next;              // [requests, width, segments]
  float* next_scores;       // [requests, width]: -inf past those that were found
  long long* next_tokens;   // [requests, width, level + 1]: 0 there
  long long* parents;       // [requests, width]: 0 there
  int requests, rows, segments, codes, columns, width, level;
  int first;         // token and column of code 0
  int own_filters;   // each request has its own
  int normalised;    // logits are log-probabilities
  float floor;
};
enum { CUT, COUNT, FOUND, BAD };

// Units of a level that a block looks at in one go: ranks or listed prefixes; codes of a mask.
constexpr uint32_t PIECE = 16384, MASKED_PIECE = 1024;

struct PiecesShared {
  uint32_t ends[SELECT_THREADS];  // pieces up to each item of a batch
  uint32_t of_warps[8];
  uint32_t padding[24];
};
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
constexpr int PIECES_SHARED = sizeof(PiecesShared), SCORES_SHARED = sizeof(ScoresShared),
              BINS_SHARED = 128, SORT_SHARED = sizeof(SortShared);

DEVICE int rows_of(const Search& s) { return s.live ? min((int)*s.live, s.rows) : s.rows; }
DEVICE int words_of(const Search& s) { return (s.codes + 31) / 32; }

// Set bits before a rank.
DEVICE uint32_t rank_count(const uint32_t* bits, const uint32_t* before, uint32_t rank) {
  uint32_t within = rank % 32 ? bits[rank / 32] & ((1u << rank % 32) - 1) : 0;
  return before[rank / 32] + __popc(within);
}
// The first of the ascending numbers from `low` to `high` that is not below another.
template <class T>
DEVICE uint32_t first_not_below(const T* numbers, uint32_t low, uint32_t high, uint32_t number) {
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (numbers[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
DEVICE uint32_t first_code_not_below(const Level& level, uint32_t low, uint32_t high,
                                     uint32_t code) {
  return level.wide ? first_not_below((const uint32_t*)level.codes, low, high, code)
                    : first_not_below((const uint16_t*)level.codes, low, high, code);
}
DEVICE uint32_t code_at(const Level& level, uint32_t place) {
  return level.wide ? ((const uint32_t*)level.codes)[place] : ((const uint16_t*)level.codes)[place];
}
DEVICE uint32_t excluded_before(const Filter& f, uint32_t rank) {
  return first_not_below(f.excluded, 0, f.num_excluded, rank);
}
// The filter as it is seen within a range: mostly nothing of the list lies there.
DEVICE Filter filter_within(Filter f, const Range& at) {
  if (f.num_excluded) {
    uint32_t begin = excluded_before(f, at.begin), end = excluded_before(f, at.end);
    f.excluded += begin;
    f.num_excluded = end - begin;
  }
  return f;
}
DEVICE bool allows_all(const Filter& f) { return !f.bits && !f.num_excluded; }
DEVICE bool allows_rank(const Filter& f, uint32_t rank) {
  if (f.bits && !(f.bits[rank / 32] >> rank % 32 & 1)) return false;
  if (!f.num_excluded) return true;
  uint32_t place = excluded_before(f, rank);
  return place == (uint32_t)f.num_excluded || f.excluded[place] != rank;
}
DEVICE bool allows_any(const Filter& f, uint32_t begin, uint32_t end) {
  uint32_t count = end - begin;
  if (f.bits) count = rank_count(f.bits, f.before, end) - rank_count(f.bits, f.before, begin);
  if (f.num_excluded && count) count -= excluded_before(f, end) - excluded_before(f, begin);
  return count > 0;
}
// Order of scores as an order of integers; of equal scores the one at a lower place is larger.
DEVICE uint64_t key_of(float total, uint32_t place) {
  uint32_t bits = __float_as_uint(total);
  bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
  return (uint64_t)bits << 32 | (uint32_t)~place;
}
DEVICE const float* logits_of(const Search& s, int row) {
  return s.logits + (size_t)row * s.columns;
}
DEVICE float total_of(const Search& s, int row, int code, float normaliser) {
  float total = s.scores[row] + (logits_of(s, row)[s.first + code] - normaliser);
  return total + 0.0f;  // no -0
}
// Scores only fall, so the best row's bounds all: bins of 1/64 nat below it.
DEVICE int bin_of(const Search& s, float total) {
  float below = (s.scores[0] - total) * 64.0f;
  return below >= (float)(BINS - 1) ? BINS - 1 : below > 0.0f ? (int)below : 0;
}
DEVICE bool is_allowed(const Search& s, int row, int code) {
  return s.masks[(size_t)row * words_of(s) + code / 32] >> code % 32 & 1;
}

// Units of a level within a range: codes of its mask, places of its listed prefixes, or ranks.
struct Span {
  uint32_t begin, end;
};
DEVICE Span span_of(const Level& level, const Range& at, int codes) {
  if (at.begin == at.end) return {0, 0};
  if (level.masks) return {0, (uint32_t)codes};
  if (!level.starts) return {at.begin, at.end};
  return {rank_count(level.begin_bits, level.begin_counts, at.begin),
          rank_count(level.begin_bits, level.begin_counts, at.end)};
}
DEVICE uint32_t pieces_of(const Level& level, const Span& span) {
  uint32_t piece = level.masks ? MASKED_PIECE : PIECE;
  return (span.end - span.begin + piece - 1) / piece;
}
// Sets the codes of a piece of a level with masks in a row.
DEVICE void set_masked(const Level& level, const Filter& filter, const Range& at, int codes,
                       Span span, uint32_t* mask) {
  uint32_t words = (codes + 31) / 32;
  const uint32_t* of_prefix = level.masks + (size_t)at.key * words;
  if (allows_all(filter)) {
    for (uint32_t word = span.begin / 32 + threadIdx.x; word * 32 < span.end;
         word += SELECT_THREADS)
      if (of_prefix[word]) atomicOr(mask + word, of_prefix[word]);
    return;
  }
  // A warp has one word, and each lane a code of it.
  const uint32_t* starts = level.starts + (size_t)at.key * codes;
  int lane = threadIdx.x % 32;
  for (uint32_t first = span.begin + threadIdx.x / 32 * 32; first < span.end;
       first += SELECT_THREADS) {
    bool has = of_prefix[first / 32] >> lane & 1;
    const uint32_t* start = starts + first + lane;
    uint32_t kept = __ballot_sync(~0u, has && allows_any(filter, start[0], start[1]));
    if (lane == 0 && kept) atomicOr(mask + first / 32, kept);
  }
}
// Sets the codes of a piece of a level by rank or of listed prefixes in a row.
DEVICE void set_stored(const Level& level, const Filter& filter, Span span, uint32_t* mask) {
  int lane = threadIdx.x % 32;
  for (uint32_t first = span.begin + threadIdx.x / 32 * 32; first < span.end;
       first += SELECT_THREADS) {
    uint32_t unit = first + lane, word = ~0u, bits = 0;
    if (unit < span.end) {
      bool allowed = level.starts ? allows_all(filter) || allows_any(filter, level.starts[unit],
                                                                     level.starts[unit + 1])
                                  : allows_rank(filter, unit);
      uint32_t code = code_at(level, unit);
      word = code / 32;
      if (allowed) bits = 1u << code % 32;
    }
    // Codes ascend within a range, so those of one word lie in neighbouring lanes: the first of
    // them sets the bits of all.
    for (int d = 1; d < 32; d <<= 1) {
      uint32_t other = __shfl_down_sync(~0u, bits, d), its_word = __shfl_down_sync(~0u, word, d);
      if (its_word == word) bits |= other;
    }
    uint32_t word_before = __shfl_up_sync(~0u, word, 1);
    if (bits && (lane == 0 || word_before != word)) atomicOr(mask + word, bits);
  }
}

// Grid: any x searches. Zeroes what the kernels of a step add to.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) clear_step(const Select select) {
  const Search& s = select.searches[blockIdx.y];
  int words = rows_of(s) * words_of(s), stride = gridDim.x * SELECT_THREADS;
  int first = blockIdx.x * SELECT_THREADS + threadIdx.x;
  for (int i = first; i < words; i += stride) s.masks[i] = 0;
  for (int i = first; i < BINS; i += stride) s.histogram[i] = 0;
  if (first < 4) s.state[first] = 0;
}

// Grid: any x searches. Ranges are cut into pieces, so that a popular prefix is no block's alone.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 4) allowed_codes(const Select select) {
  PiecesShared& shared = *shared_memory<PiecesShared>();
  const Search& s = select.searches[blockIdx.y];
  int items = rows_of(s) * s.segments, words = words_of(s), lane = threadIdx.x % 32;
  uint32_t turn = blockIdx.x;  // the next piece of this block, from the batch's first
  for (int batch = 0; batch < items; batch += SELECT_THREADS) {
    int mine = batch + threadIdx.x;
    uint32_t end = 0;
    if (mine < items) {
      Level level = s.levels[mine % s.segments];
      end = pieces_of(level, span_of(level, s.positions[mine], s.codes));
    }
    for (int d = 1; d < 32; d <<= 1) {
      uint32_t other = __shfl_up_sync(~0u, end, d);
      if (lane >= d) end += other;
    }
    if (lane == 31) shared.of_warps[threadIdx.x / 32] = end;
    __syncthreads();
    for (int w = 0; w < threadIdx.x / 32; w++) end += shared.of_warps[w];
    shared.ends[threadIdx.x] = end;  // the last batch's were read before the barrier above
    __syncthreads();
    uint32_t pieces = shared.ends[SELECT_THREADS - 1];
    for (; turn < pieces; turn += gridDim.x) {
      int within = first_not_below(shared.ends, 0, SELECT_THREADS, turn + 1);
      uint32_t piece = turn - (within ? shared.ends[within - 1] : 0);
      int item = batch + within, segment = item % s.segments;
      Range at = s.positions[item];
      Level level = s.levels[segment];
      Filter filter = filter_within(s.filters[segment], at);
      Span span = span_of(level, at, s.codes);
      uint32_t size = level.masks ? MASKED_PIECE : PIECE;
      span.begin += piece * size;
      span.end = span.end - span.begin > size ? span.begin + size : span.end;
      uint32_t* mask = s.masks + (size_t)(item / s.segments) * words;
      if (level.masks) set_masked(level, filter, at, s.codes, span, mask);
      else set_stored(level, filter, span, mask);
    }
    turn -= pieces;
  }
}

// Grid: any x searches. A row's sum is in an order that depends on its length alone.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) row_scores(const Select select) {
  ScoresShared& shared = *shared_memory<ScoresShared>();
  const Search& s = select.searches[blockIdx.y];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < BINS; i += SELECT_THREADS) shared.histogram[i] = 0;
  __syncthreads();
  int rows = rows_of(s);
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* logits = logits_of(s, row);
    float normaliser = s.normalised ? s.normalisers[row] : 0;
    if (!s.normalised) {
      float largest = -INFINITY, sum = 0;
      for (int i = threadIdx.x; i < s.columns; i += SELECT_THREADS)
        largest = fmaxf(largest, logits[i]);
      largest = warp_max(largest);
      if (lane == 0) shared.of_warps[warp] = largest;
      __syncthreads();
      for (int i = 0; i < 8; i++) largest = fmaxf(largest, shared.of_warps[i]);
      __syncthreads();  // before they are written again
      for (int i = threadIdx.x; i < s.columns; i += SELECT_THREADS)
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
      if (is_allowed(s, row, i)) {
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
  int cut = s.state[CUT], rows = rows_of(s);
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float normaliser = s.normalisers[row];
    for (int i = threadIdx.x; i < s.codes; i += SELECT_THREADS) {
      if (!is_allowed(s, row, i)) continue;
      float total = total_of(s, row, i, normaliser);
      if (!(total >= s.floor) || bin_of(s, total) > cut) continue;
      uint32_t place = atomicAdd(s.state + COUNT, 1u);
      if (place < (uint32_t)s.capacity) s.candidates[place] = key_of(total, row * s.codes + i);
    }
  }
}

// Visits the keys of all allowed extensions: for the few steps whose candidates do not fit.
template <class F>
DEVICE void for_each_key(const Search& s, F visit) {
  uint32_t places = (uint32_t)rows_of(s) * s.codes;
  for (uint32_t place = threadIdx.x; place < places; place += SORT_THREADS) {
    int row = place / s.codes, code = place % s.codes;
    if (!is_allowed(s, row, code)) continue;
    float total = total_of(s, row, code, s.normalisers[row]);
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

// Range of the items of a prefix that go on with a code, empty where none of them is allowed.
DEVICE Range child_of(const Level& level, const Filter& filter, const Range& at, int codes,
                      uint32_t code) {
  Range to = {0, 0, at.key * codes + code};
  if (at.begin == at.end) return to;
  if (level.masks) {
    const uint32_t* start = level.starts + (size_t)at.key * codes + code;
    to.begin = start[0];
    to.end = start[1];
  } else if (level.starts) {
    Span span = span_of(level, at, codes);
    uint32_t place = first_code_not_below(level, span.begin, span.end, code);
    if (place < span.end && code_at(level, place) == code) {
      to.begin = level.starts[place];
      to.end = level.starts[place + 1];
    }
  } else {
    to.begin = first_code_not_below(level, at.begin, at.end, code);
    to.end = first_code_not_below(level, to.begin, at.end, code + 1);
  }
  if (!allows_any(filter, to.begin, to.end)) to.begin = to.end = 0;
  return to;
}

// Grid: any x searches. Positions and scores of the children.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) advance(const Select select) {
  const Search& s = select.searches[blockIdx.y];
  int items = (int)s.state[FOUND] * s.segments;
  for (int item = blockIdx.x * SELECT_THREADS + threadIdx.x; item < items;
       item += gridDim.x * SELECT_THREADS) {
    int segment = item % s.segments, child = item / s.segments;
    Extension e = s.best[child];
    Range at = s.positions[e.parent * s.segments + segment];
    s.next[item] = child_of(s.levels[segment], s.filters[segment], at, s.codes, e.code);
    if (segment == 0 && s.next_scores) s.next_scores[child] = e.score;
  }
}

// Grid: any. Tokens and slots of a pass over what a step found, into a description that stands for
// any beams. Rows past those that were found continue row 0; nobody reads what they compute.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) continue_beams(const BeamRows b) {
  int count = min((int)*b.count, b.rows);
  for (int row = blockIdx.x * SELECT_THREADS + threadIdx.x; row < b.rows;
       row += gridDim.x * SELECT_THREADS) {
    Extension e = {0, 0, 0};
    if (row < count) e = b.extensions[row];
    b.tokens[row] = b.first_token + (int)e.code;
    for (int pass = 0; pass < b.passes; pass++) {
      int slot = b.first_slot + row;
      if (pass + 1 < b.passes) slot = b.ancestors[pass * b.most_rows + e.parent];
      b.next_ancestors[pass * b.most_rows + row] = slot;
      b.pass_ancestors[pass * b.pass_rows + row] = slot;
    }
  }
}

// Grid: any. Describes a caller's level as searches, in memory of the caller's: nothing of it is
// known to the host but addresses, so that it is captured and replayed with the rest.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) begin_level(const CallerLevel c) {
  int stride = gridDim.x * SELECT_THREADS, first = blockIdx.x * SELECT_THREADS + threadIdx.x;
  size_t words = (size_t)c.rows * ((c.codes + 31) / 32);
  for (int i = first; i < c.requests; i += stride) {
    size_t row = c.found ? (size_t)i * c.rows : 0;
    Search s = {};
    s.logits = c.logits + (size_t)i * c.rows * c.columns;
    s.scores = c.scores + row;
    s.positions = c.positions + row * c.segments;
    s.levels = c.levels;
    s.filters = c.filters + (c.own_filters ? (size_t)i * c.segments : 0);
    s.live = c.found ? c.found + (size_t)i * 4 + FOUND : nullptr;
    s.masks = c.masks + i * words;
    s.normalisers = c.normalisers + (size_t)i * c.rows;
    s.histogram = c.histogram + (size_t)i * BINS;
    s.state = c.state + (size_t)i * 4;
    s.candidates = c.candidates + (size_t)i * SORTED;
    s.best = c.best + (size_t)i * c.width;
    s.next = c.next + (size_t)i * c.width * c.segments;
    s.rows = c.rows;
    s.segments = c.segments;
    s.codes = c.codes;
    s.columns = c.columns;
    s.first = c.first;
    s.width = c.width;
    s.capacity = SORTED;
    s.normalised = c.normalised;
    s.floor = c.floor;
    c.searches[i] = s;
  }
  if (!c.normalised) return;
  for (int i = first; i < c.requests * c.rows; i += stride) c.normalisers[i] = 0;
}

// Grid: any x requests. What a caller's level found, with the tokens up to it.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS) write_beams(const CallerLevel c) {
  int request = blockIdx.y, found = c.state[(size_t)request * 4 + FOUND], tokens = c.level + 1;
  for (int i = blockIdx.x * SELECT_THREADS + threadIdx.x; i < c.width;
       i += gridDim.x * SELECT_THREADS) {
    size_t place = (size_t)request * c.width + i;
    Extension e = {-INFINITY, 0, 0};
    if (i < found) e = c.best[place];
    c.next_scores[place] = e.score;
    c.parents[place] = e.parent;
    const long long* before = c.tokens + ((size_t)request * c.rows + e.parent) * c.level;
    long long* to = c.next_tokens + place * tokens;
    for (int level = 0; level < c.level; level++) to[level] = i < found ? before[level] : 0;
    to[c.level] = i < found ? c.first + (int)e.code : 0;
  }
}

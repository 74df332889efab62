// Launches of the emulated kernels by number, and the layout of their arguments as C++ has it.
//
// Each kernel file is compiled here as it stands, in this one unit.
#include "device.cuh"

#include "attention_hopper.cu"
#include "attention_portable.cu"
#include "draft.cu"
#include "int8.cu"
#include "masks.cu"
#include "product_hopper.cu"
#include "product_portable.cu"
#include "rows.cu"
#include "select.cu"

#include "trials.h"

#include <cstddef>

namespace {
struct Entry {
  const char* name;
  unsigned threads;
  size_t shared_bytes, argument_bytes;
  const char* (*run)(const Entry&, dim3, const void*);
};
template <class A, void (*KERNEL)(const A)>
const char* run(const Entry& entry, dim3 grid, const void* bytes) {
  // A copy, as a device makes at the launch.
  A arguments;
  memcpy(&arguments, bytes, sizeof arguments);
  return emulator::run(entry.name, KERNEL, grid, entry.threads, entry.shared_bytes, arguments);
}
#define KERNEL(name, arguments, threads, shared) \
  {#name, threads, shared, sizeof(arguments), run<arguments, name>}

// In the order of `Kernel` in palmette-cuda.
const Entry KERNELS[] = {
    KERNEL(product_sums, Product, PRODUCT_THREADS, PRODUCT_SHARED),
    KERNEL(product_add, Product, PRODUCT_THREADS, PRODUCT_SHARED),
    KERNEL(product_bf16, Product, PRODUCT_THREADS, PRODUCT_SHARED),
    KERNEL(product_swiglu, Product, PRODUCT_THREADS, PRODUCT_SHARED),
    KERNEL(product_logits, Product, PRODUCT_THREADS, PRODUCT_SHARED),
    KERNEL(hopper_product_sums, HopperProduct, hopper::PRODUCT_THREADS, hopper::PRODUCT_SHARED),
    KERNEL(hopper_product_add, HopperProduct, hopper::PRODUCT_THREADS, hopper::PRODUCT_SHARED),
    KERNEL(hopper_product_bf16, HopperProduct, hopper::PRODUCT_THREADS, hopper::PRODUCT_SHARED),
    KERNEL(hopper_product_swiglu, HopperProduct, hopper::PRODUCT_THREADS, hopper::PRODUCT_SHARED),
    KERNEL(hopper_product_logits, HopperProduct, hopper::PRODUCT_THREADS, hopper::PRODUCT_SHARED),
    KERNEL(quantize_rows, QuantizeRows, int8::THREADS, 0),
    KERNEL(int8_sums, Int8Product, int8::THREADS, int8::SHARED),
    KERNEL(int8_swiglu, Int8Product, int8::THREADS, int8::SHARED),
    KERNEL(embed_norm, EmbedNorm, ROWS_THREADS, 0),
    KERNEL(norm_rows, Norm, ROWS_THREADS, 0),
    KERNEL(heads_64, Heads, ROWS_THREADS, 0),
    KERNEL(heads_128, Heads, ROWS_THREADS, 0),
    KERNEL(head_rows, HeadRows, ROWS_THREADS, 0),
    KERNEL(row_sums, RowSums, ROWS_THREADS, SUMS_SHARED),
    KERNEL(prompt_attention_64, Attention, ATTENTION_THREADS, ATTENTION_SHARED<64>),
    KERNEL(prompt_attention_128, Attention, ATTENTION_THREADS, ATTENTION_SHARED<128>),
    KERNEL(hopper_prompt_attention_64, HopperAttention, hopper::ATTENTION_THREADS,
           hopper::ATTENTION_SHARED<64>),
    KERNEL(hopper_prompt_attention_128, HopperAttention, hopper::ATTENTION_THREADS,
           hopper::ATTENTION_SHARED<128>),
    KERNEL(merge_own_64, Attention, MERGE_THREADS, 0),
    KERNEL(merge_own_128, Attention, MERGE_THREADS, 0),
    KERNEL(clear_step, Select, SELECT_THREADS, 0),
    KERNEL(allowed_codes, Select, SELECT_THREADS, PIECES_SHARED),
    KERNEL(row_scores, Select, SELECT_THREADS, SCORES_SHARED),
    KERNEL(pick_bin, Select, SORT_THREADS, BINS_SHARED),
    KERNEL(keep_candidates, Select, SELECT_THREADS, 0),
    KERNEL(sort_best, Select, SORT_THREADS, SORT_SHARED),
    KERNEL(advance, Select, SELECT_THREADS, 0),
    KERNEL(continue_beams, BeamRows, SELECT_THREADS, 0),
    KERNEL(begin_level, CallerLevel, SELECT_THREADS, 0),
    KERNEL(write_beams, CallerLevel, SELECT_THREADS, 0),
    KERNEL(apply_bitmask, BitMask, MASK_THREADS, 0),
    KERNEL(mask_rows_16, RowMasks, MASK_THREADS, 0),
    KERNEL(mask_rows_32, RowMasks, MASK_THREADS, 0),
    KERNEL(draft_states, DraftStates, DRAFT_THREADS, 0),
};
constexpr int NUM_KERNELS = sizeof KERNELS / sizeof *KERNELS;

thread_local std::string text;

template <class T>
void write_struct(const char* name) {
  text +=
      std::string(name) + " " + std::to_string(sizeof(T)) + " " + std::to_string(alignof(T)) + "\n";
}
void write_field(const char* name, size_t offset, size_t bytes) {
  text +=
      std::string("  ") + name + " " + std::to_string(offset) + " " + std::to_string(bytes) + "\n";
}
#define FIELD(type, name) write_field(#name, offsetof(type, name), sizeof(type::name));
// FIELD of each name: every round of EXPAND goes one name on.
#define EXPAND(...) EXPAND3(EXPAND3(EXPAND3(__VA_ARGS__)))
#define EXPAND3(...) EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__)))
#define EXPAND2(...) EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__)))
#define EXPAND1(...) __VA_ARGS__
#define PARENTHESES ()
#define NEXT() FIELDS
#define FIELDS(type, name, ...) FIELD(type, name) __VA_OPT__(NEXT PARENTHESES(type, __VA_ARGS__))
#define LAYOUT(type, ...)    \
  write_struct<type>(#type); \
  EXPAND(FIELDS(type, __VA_ARGS__))
}  // namespace

// Runs a kernel. Returns a message about the fault that ended it, until the thread's next launch;
// null where there was none.
extern "C" const char* palmette_emulator_launch(int kernel, const unsigned* grid,
                                                const void* arguments, uint64_t seed, int halves) {
  if (kernel < 0 || kernel >= NUM_KERNELS) return "no kernel has this number";
  emulator::Launch& l = emulator::launch_state;
  l.random_state = (seed * 0x9e3779b97f4a7c15ull) ^ 88172645463325252ull;
  if (!l.random_state) l.random_state = 1;
  l.lagging = 0;
  l.halves = halves;
  return KERNELS[kernel].run(KERNELS[kernel], {grid[0], grid[1], grid[2]}, arguments);
}

// Accesses by ldmatrix to banks that were taken, since this thread began.
extern "C" uint64_t palmette_emulator_conflicts() { return emulator::launch_state.conflicts; }

// A step of the matrix units: 16 products of bf16 onto `sum`.
extern "C" float palmette_emulator_step(float sum, const uint16_t* a, const uint16_t* b,
                                        int halves) {
  emulator::Factors x, y;
  for (int k = 0; k < 16; k++) {
    x.set(k, a[k]);
    y.set(k, b[k]);
  }
  emulator::launch_state.halves = halves;
  return emulator::step16(sum, x, y);
}
// A product of a warp, 16 x 8 x 32 bytes onto `d`: what each of 32 lanes holds of a, b and d.
namespace {
struct ByteFragments {
  const uint32_t (*a)[4];
  const uint32_t (*b)[2];
  int (*d)[4];
};
void multiply_bytes(const ByteFragments f) {
  int lane = threadIdx.x;
  multiply_16x8x32(f.d[lane], f.a[lane], f.b[lane][0], f.b[lane][1]);
}
}  // namespace
extern "C" const char* palmette_emulator_multiply_bytes(const uint32_t (*a)[4],
                                                        const uint32_t (*b)[2], int (*d)[4]) {
  return emulator::run("multiply_bytes", multiply_bytes, {1, 1, 1}, 32, 0, ByteFragments{a, b, d});
}
extern "C" float palmette_emulator_exp2(float x) { return exp2_fixed(x); }
extern "C" float palmette_emulator_log(float x) { return log_fixed(x); }

// Memory that begins as NaN and ends at a guard page, but for what aligns it to 16 bytes; null
// where there is none.
extern "C" void* palmette_emulator_take(size_t bytes) {
  size_t pages = (bytes + emulator::PAGE_BYTES) / emulator::PAGE_BYTES * emulator::PAGE_BYTES;
  size_t all = pages + emulator::PAGE_BYTES;
  char* map = (char*)mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  mprotect(map + pages, emulator::PAGE_BYTES, PROT_NONE);
  char* data = (char*)((uintptr_t)(map + pages - bytes) & ~(uintptr_t)15);
  memset(data, 0xff, map + pages - data);
  return data;
}
extern "C" void palmette_emulator_give_back(void* data, size_t bytes) {
  size_t pages = (bytes + emulator::PAGE_BYTES) / emulator::PAGE_BYTES * emulator::PAGE_BYTES;
  uintptr_t end =
      ((uintptr_t)data + bytes + emulator::PAGE_BYTES - 1) & ~(emulator::PAGE_BYTES - 1);
  munmap((char*)end - pages, pages + emulator::PAGE_BYTES);
}

// A line a kernel: name, threads, bytes of shared memory, bytes of arguments.
extern "C" const char* palmette_emulator_kernels() {
  text.clear();
  for (const Entry& e : KERNELS)
    text += std::string(e.name) + " " + std::to_string(e.threads) + " " +
            std::to_string(e.shared_bytes) + " " + std::to_string(e.argument_bytes) + "\n";
  return text.c_str();
}

// A line a struct: name, bytes, alignment. Then a line a field: name, offset, bytes.
extern "C" const char* palmette_emulator_layouts() {
  text.clear();
  LAYOUT(PassSizes, rows, head_rows, items, merge_rows, first_merge);
  LAYOUT(Product, rows, x, w, out, windows, statistics, n, k, runs, split, part_rows, first_tile,
         tiles, columns, whole);
  LAYOUT(HopperProduct, x_tiles, w_tiles, product);
  LAYOUT(QuantizeRows, rows, x, integers, factors, width);
  LAYOUT(Int8Product, rows, x, w, x_factors, w_factors, out, n, k, parts, part_rows);
  LAYOUT(EmbedNorm, rows, tokens, table, weight, x, normed, integers, factors, width, factor, epsilon);
  LAYOUT(Norm, rows, sums, row_factors, column_factors, weight, x, normed, integers, factors, width,
         parts, part_rows, epsilon);
  LAYOUT(Heads, rows, sums, row_factors, column_factors, bias, query_norm, key_norm, cosines, sines, positions, destinations,
         queries, keys, values, own, parts, part_rows, heads, key_heads, epsilon);
  LAYOUT(HeadRows, rows, taken, x, heads, taken_x, taken_heads, width, heads_width);
  LAYOUT(RowSums, rows, statistics, normalisers, tiles);
  LAYOUT(AttentionItem, request, key_head, first_row, run);
  LAYOUT(AttentionRequest, first_row, rows, first_page);
  LAYOUT(Attention, sizes, items, requests, pages, visible, own_tokens, ancestors, queries, keys,
         values, own, sums, statistics, out, heads, key_heads, most_rows, scale);
  LAYOUT(HopperAttention, key_tiles, value_tiles, attention);
  LAYOUT(Range, begin, end, key);
  LAYOUT(Filter, bits, before, excluded, num_excluded);
  LAYOUT(Level, codes, masks, starts, begin_bits, begin_counts, wide);
  LAYOUT(Extension, score, parent, code);
  LAYOUT(Search, logits, scores, positions, levels, filters, live, masks, normalisers, histogram,
         state, candidates, best, next, next_scores, rows, segments, codes, columns, first, width,
         capacity, normalised, floor);
  LAYOUT(Select, searches);
  LAYOUT(CallerLevel, searches, logits, scores, positions, levels, filters, found, tokens, masks,
         normalisers, histogram, state, candidates, best, next, next_scores, next_tokens, parents,
         requests, rows, segments, codes, columns, width, level, first, own_filters, normalised,
         floor);
  LAYOUT(BeamRows, extensions, count, ancestors, next_ancestors, tokens, pass_ancestors, rows,
         passes, most_rows, pass_rows, first_token, first_slot);
  LAYOUT(BitMask, rows, masks_of, masks, logits, columns, words);
  LAYOUT(RowMasks, rows, masks_of, masks, logits, count, num_rows, num_masks, columns, words,
         row_stride, mask_stride, infinity);
  LAYOUT(DraftStates, rows, extensions, sums, before, codes, hidden, states, inputs, width, parts,
         part_rows, squashes);
  return text.c_str();
}

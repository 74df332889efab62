// Attention to pages of prompts for Hopper: pages copied into a ring of stages, products of
// warpgroups with queries and weights in registers. The bits are those of attention_portable.cu.
//
// A thread copies; two warpgroups of 64 rows share each page; four stages of a page's keys and
// values. Bound by the products for prompts, by latency for beams. Occupancy: one block a
// multiprocessor.
#include "hopper.cuh"
#include "attention.cuh"

namespace hopper {
constexpr int ATTENTION_THREADS = 3 * WARPGROUP, PAGES = 4, PAGE_READERS = 8;
template <int C>
constexpr int PAGE_BYTES = PAGE * C * 2;  // of keys, and of values
template <int C>
constexpr int ATTENTION_SHARED = PAGES * 2 * PAGE_BYTES<C> + BOX_ALIGNMENT;

struct alignas(64) HopperAttention {
  TensorMap key_tiles;    // [pages · key_heads · 64, C], boxes of 64 rows
  TensorMap value_tiles;  // [pages · key_heads · C, 64], boxes of C rows
  Attention attention;
};

// Copies the pages of all items, one stage after another: one thread does.
template <int C>
DEVICE void copy_pages(const HopperAttention& h, char* stages, uint64_t* full, uint64_t* empty) {
  const Attention& a = h.attention;
  Ring<PAGES> at;
  for (int number = blockIdx.x; number < a.sizes->items; number += gridDim.x) {
    AttentionTile t = ::tile_of(a, number);
    for (int page = t.first_page; page < t.first_page + t.pages; page++) {
      int place = a.pages[t.request.first_page + page] * a.key_heads + t.item.key_head;
      char* keys = stages + at.stage * 2 * PAGE_BYTES<C>;
      barrier_wait(empty + at.stage, at.parity ^ 1);
      barrier_expect(full + at.stage, 2 * PAGE_BYTES<C>);
      for (int half = 0; half < C / BOX_COLUMNS; half++)
        copy_box(keys + half * PAGE * BOX_COLUMNS * 2, h.key_tiles, full + at.stage,
                 half * BOX_COLUMNS, place * PAGE);
      copy_box(keys + PAGE_BYTES<C>, h.value_tiles, full + at.stage, 0, place * C);
      at.advance();
    }
  }
}

// Attends with 64 rows of all items: a warpgroup does.
template <int C>
DEVICE void attend_rows(const Attention& a, int consumer, char* stages, uint64_t* full,
                        uint64_t* empty) {
  Ring<PAGES> at;
  int warp = threadIdx.x % WARPGROUP / 32, lane = threadIdx.x % 32;
  auto give_back = [&] {
    if (lane == 0) barrier_arrive(empty + at.stage);
    at.advance();
  };
  for (int number = blockIdx.x; number < a.sizes->items; number += gridDim.x) {
    AttentionTile t = ::tile_of(a, number);
    int first_of_group = t.item.first_row + consumer * 64;
    if (first_of_group >= t.rows) {  // no row: its pages are given back as they come
      for (int page = 0; page < t.pages; page++) {
        barrier_wait(full + at.stage, at.parity);
        give_back();
      }
      continue;
    }
    int first = first_of_group + warp * 16 + lane / 4;
    uint32_t query[C / 16][4];
    EACH (h, 2) {
      int packed = first + h * 8;
      const bf16* from = a.queries + head_row(a, t, min(packed, t.rows - 1)) * C + lane % 4 * 2;
      EACH (k, C / 16)
        EACH (side, 2)
          query[k][side * 2 + h] =
              packed < t.rows ? *(const uint32_t*)(from + k * 16 + side * 8) : 0;
    }
    Softmax<C> total, run;
    total.clear();
    run.clear();
    NO_UNROLL
    for (int page = 0; page < t.pages; page++) {
      char* keys = stages + at.stage * 2 * PAGE_BYTES<C>;
      char* values = keys + PAGE_BYTES<C>;
      barrier_wait(full + at.stage, at.parity);
      float score[PAGE / 8][4];
      products_begin();
      EACH (k, C / 16) {
        char* box = keys + k / 4 * PAGE * BOX_COLUMNS * 2;
        multiply_64(score, query[k], box_descriptor(box + k % 4 * 32), k > 0);
      }
      products_commit();
      products_wait<0>();
      // Read for each page anew: two registers more would not be there.
      int visible[2];
      read_visible(a, t, first, visible);
      run.weigh(score, (t.first_page + page) * PAGE, visible, a.scale);
      uint32_t weight[PAGE / 16][4];
      EACH (k, PAGE / 16)
        pack_weights(score, k, weight[k]);
      products_begin();
      EACH (k, PAGE / 16)
        multiply_64(run.out, weight[k], box_descriptor(values + k * 32), true);
      products_commit();
      products_wait<0>();
      give_back();
      bool ends = page % RUN_PAGES == RUN_PAGES - 1 || page == t.pages - 1;
      if (t.item.run < 0 && ends) total.add(run);
    }
    write_rows<C>(a, t, first, total, run);
  }
}

template <int C>
DEVICE void attend(const HopperAttention& h) {
  char* stages = shared_memory<char>();
  uint64_t* full = (uint64_t*)(stages + PAGES * 2 * PAGE_BYTES<C>);
  uint64_t* empty = full + PAGES;
  make_barriers<PAGES>(full, empty, PAGE_READERS);
  int warpgroup = threadIdx.x / WARPGROUP;
  if (warpgroup == 0) {
    registers_leave<24>();
    if (threadIdx.x == 0) copy_pages<C>(h, stages, full, empty);
  } else {
    registers_take<240>();
    attend_rows<C>(h.attention, warpgroup - 1, stages, full, empty);
  }
}
}  // namespace hopper
using hopper::HopperAttention;

#define ATTEND(name, width)                                                  \
  extern "C" __global__ void __launch_bounds__(hopper::ATTENTION_THREADS, 1) \
      name(const GRID_CONSTANT HopperAttention a) {                          \
    hopper::attend<width>(a);                                                \
  }
ATTEND(hopper_prompt_attention_64, 64)
ATTEND(hopper_prompt_attention_128, 128)
#undef ATTEND

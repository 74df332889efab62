// Models of Hopper's asynchronous instructions: barriers that count bytes, copies of tiles, products
// of a warpgroup.
//
// Copies and products happen as late or as early as the seed says. Accumulators are NaN until they
// are waited for, and the left side in registers is read when the product is made. Not modelled:
// fences between ordinary stores and these instructions, clusters, numbers of registers.
#pragma once
#include "emulator.h"

namespace emulator {

// ---- Barriers, in their own 8 bytes of shared memory

struct Barrier {
  uint16_t missing, arrivals;  // of the phase; of each
  uint32_t parity : 1;
  int32_t bytes : 31;  // expected and not yet there
};
static_assert(sizeof(Barrier) == 8);

inline Barrier& barrier_at(uint64_t* at) {
  if ((uintptr_t)at % 8) fail("a barrier that is not aligned");
  Barrier& barrier = *(Barrier*)at;
  if (barrier.arrivals == 0xffff) fail("a barrier that nobody made");
  return barrier;
}
inline void barrier_make(uint64_t* at, uint32_t arrivals) {
  Barrier made = {};
  made.missing = made.arrivals = (uint16_t)arrivals;
  memcpy((void*)at, &made, 8);
  launch_state.has_unseen_barriers = true;
}
inline void end_phase(Barrier& barrier) {
  if (barrier.missing || barrier.bytes) return;
  barrier.parity ^= 1;
  barrier.missing = barrier.arrivals;
}
inline void barrier_arrive(uint64_t* at, uint32_t bytes) {
  Barrier& barrier = barrier_at(at);
  if (barrier.missing == 0) fail("an arrival more than a phase has");
  if (std::abs(barrier.bytes + (int)bytes) >= 1 << 20) fail("more bytes than a barrier counts");
  barrier.bytes += (int)bytes;
  barrier.missing--;
  end_phase(barrier);
}
inline bool has_ended(uint64_t* at, uint32_t parity) { return barrier_at(at).parity != parity; }

// ---- Copies of tiles

constexpr uint64_t TILES_MARK = 0x73656c6974;
constexpr size_t BOX_BYTES = 128;

// Where 16 bytes of a box lie: the piece's number within its 128 bytes, changed by the row.
inline char* swizzled(char* at) { return (char*)((uintptr_t)at ^ ((uintptr_t)at >> 7 & 7) << 4); }
inline char* in_shared(char* at, size_t bytes) {
  Launch& l = launch_state;
  if (at < l.shared || at + bytes > l.shared + l.shared_bytes)
    fail("a copy or product outside of shared memory");
  return at;
}

inline void make_copy(const BoxCopy& copy) {
  const Tiles& tiles = copy.tiles;
  for (uint32_t row = 0; row < tiles.box_rows; row++)
    for (int piece = 0; piece < (int)BOX_BYTES / 16; piece++) {
      char* to = swizzled(copy.to + row * BOX_BYTES + piece * 16);
      for (int i = 0; i < 8; i++) {
        // Below zero is outside, as past the end.
        uint64_t column = (int64_t)copy.column + piece * 8 + i, of_row = (int64_t)copy.row + row;
        bool there = column < tiles.columns && of_row < tiles.rows;
        if (there) memcpy(to + i * 2, tiles.data + (of_row * tiles.columns + column) * 2, 2);
        else memset(to + i * 2, 0, 2);
      }
    }
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= (int)(tiles.box_rows * BOX_BYTES);
  end_phase(barrier);
}
inline void copy_box(void* to, const char* map, uint64_t* barrier, int column, int row) {
  Tiles tiles;
  memcpy(&tiles, map, sizeof tiles);
  if (tiles.mark != TILES_MARK) fail("a copy by what is no map of tiles");
  if ((uintptr_t)map % 64) fail("a map of tiles that is not aligned");
  if ((uintptr_t)to % 1024) fail("a box that does not begin at a multiple of 1024 bytes");
  if (launch_state.has_unseen_barriers) fail("a copy before a fence of the barriers that were made");
  in_shared((char*)to, tiles.box_rows * BOX_BYTES);
  barrier_at(barrier);
  BoxCopy copy = {tiles, (char*)to, barrier, column, row};
  if (launch_state.random() % 4 == 0) make_copy(copy);
  else launch_state.box_copies.push_back(copy);
}

// ---- Products of a warpgroup

// A row of 16 values, by a descriptor of shared memory.
inline void read_row(uint64_t descriptor, int row, Factors& factors) {
  if (descriptor >> 62 != 1) fail("a product of what is not swizzled by 128 bytes");
  uintptr_t window = (uintptr_t)launch_state.shared & ~(uintptr_t)0x3ffff;
  size_t begin = (descriptor & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
  char* from = (char*)window + begin + row / 8 * stride + row % 8 * BOX_BYTES;
  for (int piece = 0; piece < 2; piece++) {
    uint16_t values[8];
    memcpy(values, in_shared(swizzled(from + piece * 16), 16), 16);
    for (int i = 0; i < 8; i++) factors.set(piece * 8 + i, values[i]);
  }
}
// A warp's 16 rows. Whether warps read shared memory together is not promised, so they do not.
inline void make_product(int warpgroup, GroupProduct& product, int warp) {
  Launch& l = launch_state;
  Fiber* lanes = &l.fibers[warpgroup * 128 + warp * 32];
  static thread_local Factors rows[16], columns[256];
  for (int r = 0; r < 16; r++) {
    if (!product.has_registers) {
      read_row(product.a, warp * 16 + r, rows[r]);
      continue;
    }
    for (int k = 0; k < 16; k++) {
      const uint32_t* of_lane = product.registers[warp * 32 + r % 8 * 4 + k % 8 / 2];
      rows[r].set(k, of_lane[r / 8 + k / 8 * 2] >> k % 2 * 16 & 0xffff);
    }
  }
  for (int n = 0; n < product.n; n++) read_row(product.b, n, columns[n]);
  for (int lane = 0; lane < 32; lane++) {
    std::vector<float>& d = lanes[lane].in_flight.at(product.sums[warp * 32 + lane]).values;
    for (int i = 0; i < product.n / 2; i++) {
      int row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      d[i] = step16(product.adds ? d[i] : 0.0f, rows[row], columns[column]);
    }
  }
  product.made |= 1u << warp;
}
inline void multiply_64(float* d, int n, uint64_t a, const uint32_t* registers, uint64_t b,
                        bool adds) {
  Fiber& f = *current;
  int warpgroup = f.number / 128, thread = f.number % 128;
  if (!f.has_begun) fail("a product without a fence before it");
  auto& all = launch_state.products[warpgroup];
  if (all.size() == f.products) all.push_back({a, b, n, adds, registers != nullptr});
  GroupProduct& product = all[f.products++];
  if (product.a != a || product.b != b || product.n != n || product.adds != adds)
    fail("threads of a warpgroup disagree about a product");
  product.registers[thread] = registers;
  product.sums[thread] = d;
  auto [at, is_new] = f.in_flight.try_emplace(d);
  if (is_new) {
    at->second = {std::vector<float>(d, d + n / 2), 0};
    std::fill(d, d + n / 2, NAN);
  }
  at->second.products++;
  product.issued++;
}
inline void products_commit() { current->product_groups.push_back(current->products); }
inline void products_wait(int last) {
  Fiber& f = *current;
  f.has_begun = false;
  int done = (int)f.product_groups.size() - last;
  if (done <= 0) return;
  size_t end = f.product_groups[done - 1];
  auto& all = launch_state.products[f.number / 128];
  unsigned warp = 1u << f.number % 128 / 32;
  wait_until(Place::Products, [&all, end, warp] { return !end || all[end - 1].made & warp; });
  for (; f.products_seen < end; f.products_seen++) {
    float* d = all[f.products_seen].sums[f.number % 128];
    auto at = f.in_flight.find(d);
    if (--at->second.products) continue;
    std::copy(at->second.values.begin(), at->second.values.end(), d);
    f.in_flight.erase(at);
  }
  f.product_groups.erase(f.product_groups.begin(), f.product_groups.begin() + done);
}

// ---- What happens by itself

// Makes some of the copies and products that were asked for, each product after those before it.
inline void run_asynchronous() {
  Launch& l = launch_state;
  for (size_t i = 0; i < l.box_copies.size();) {
    if (l.random() % 3) {
      i++;
      continue;
    }
    BoxCopy copy = l.box_copies[i];
    l.box_copies.erase(l.box_copies.begin() + i);
    make_copy(copy);
  }
  for (size_t group = 0; group < l.products.size(); group++) {
    unsigned behind = 0;  // warps that have not made an earlier product
    for (size_t& at = l.products_made[group]; at < l.products[group].size(); at++)
      if (l.products[group][at].made != 15) break;
    for (size_t at = l.products_made[group]; at < l.products[group].size() && behind != 15; at++) {
      GroupProduct& product = l.products[group][at];
      if (product.issued < 128) break;
      for (int warp = 0; warp < 4; warp++) {
        if ((product.made | behind) >> warp & 1) continue;
        if (l.random() % 3) {
          behind |= 1u << warp;
          continue;
        }
        make_product((int)group, product, warp);
      }
    }
  }
}
inline bool has_asynchronous() {
  Launch& l = launch_state;
  if (!l.box_copies.empty()) return true;
  for (size_t group = 0; group < l.products.size(); group++)
    for (size_t at = l.products_made[group]; at < l.products[group].size(); at++)
      if (l.products[group][at].issued == 128 && l.products[group][at].made != 15) return true;
  return false;
}
}  // namespace emulator

// Trials of the models themselves: small kernels whose results are known, and misuses that have to
// be faults. Each is run by its name, over its threads and shared memory.
#pragma once
#include "hopper.cuh"

namespace trials {
struct Nothing {};

inline void expect(bool holds, const char* what) {
  if (!holds) emulator::fail(what);
}
// A matrix whose value at a row and column is known.
constexpr int ROWS = 5, COLUMNS = 72;
inline bf16 value_at(int row, int column) { return (bf16)(row * 256 + column + 1); }
inline TensorMap map_of(const bf16* data, int rows, int columns, int box_rows) {
  TensorMap map = {};
  emulator::Tiles tiles = {emulator::TILES_MARK, (const char*)data, (uint64_t)rows,
                           (uint64_t)columns, (uint32_t)box_rows};
  memcpy(map.opaque, &tiles, sizeof tiles);
  return map;
}
inline const bf16* matrix() {
  alignas(16) static bf16 data[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = value_at(i / COLUMNS, i % COLUMNS);
  return data;
}
// Shared memory of the trials: two boxes, then barriers.
struct Shared {
  bf16 a[64 * 64], b[256 * 64];
  uint64_t barrier[2];
  char rest[1024 - 16];
};

// A box at the matrix's end and before its beginning: values, zeros outside, swizzled.
inline void boxes(const Nothing&) {
  Shared& s = *shared_memory<Shared>();
  TensorMap map = map_of(matrix(), ROWS, COLUMNS, 8);
  for (int round = 0; round < 2; round++) {
    int column = round ? -8 : 64, row = round ? -2 : 3;
    if (threadIdx.x == 0) {
      barrier_make(s.barrier, 1);
      barriers_made();
      barrier_expect(s.barrier, 8 * 128);
      copy_box(s.a, map, s.barrier, column, row);
    }
    __syncthreads();
    barrier_wait(s.barrier, 0);
    for (int i = 0; i < 8 * 64; i++) {
      int of_row = row + i / 64, of_column = column + i % 64;
      bool there = of_row >= 0 && of_row < ROWS && of_column >= 0 && of_column < COLUMNS;
      const bf16* at = piece(s.a, i / 64, i % 64 / 8, 8) + i % 8;
      expect(*at == (there ? value_at(of_row, of_column) : 0), "a value of a box is wrong");
    }
    __syncthreads();
  }
}

// A phase ends with the last arrival and the last byte, in either order; parities take turns.
inline void phases(const Nothing&) {
  Shared& s = *shared_memory<Shared>();
  TensorMap map = map_of(matrix(), ROWS, COLUMNS, 8);
  if (threadIdx.x == 0) {
    barrier_make(s.barrier, 3);
    barriers_made();
    barrier_wait(s.barrier, 1);  // one before the first counts as ended
    for (uint32_t parity = 0; parity < 2; parity++) {
      barrier_expect(s.barrier, 8 * 128);
      barrier_arrive(s.barrier);
      copy_box(s.a, map, s.barrier, 0, 0);
      expect(!emulator::has_ended(s.barrier, parity), "a phase ended before all arrived");
      barrier_arrive(s.barrier);
      barrier_wait(s.barrier, parity);
      expect(s.a[0] == value_at(0, 0), "a phase ended before its bytes were there");
    }
  }
}

// Products of all widths, with the left side in shared memory or in registers: steps one after
// another, each element for itself; NaN until they are waited for.
template <int WIDTH, bool IN_REGISTERS>
inline void products(const Nothing&) {
  Shared& s = *shared_memory<Shared>();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto number = [](int i) { return to_bf16((i * 37 % 101 - 50) * (i % 7 == 0 ? 1e-3f : 0.25f)); };
  for (int i = threadIdx.x; i < 64 * 64; i += 128)
    *(piece(s.a, i / 64, i % 64 / 8, 8) + i % 8) = number(i);
  for (int i = threadIdx.x; i < WIDTH * 8 * 64; i += 128)
    *(piece(s.b, i / 64, i % 64 / 8, 8) + i % 8) = number(i + 5);
  __syncthreads();
  int row = warp * 16 + lane / 4;
  float d[WIDTH][4];
  uint32_t left[4][4];  // of each step: nobody writes them while the step is in flight
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < 4; i++) {
      int from = (row + i % 2 * 8) * 64 + k * 16 + i / 2 * 8 + lane % 4 * 2;
      left[k][i] = number(from) | (uint32_t)number(from + 1) << 16;
    }
    uint64_t b = box_descriptor((char*)s.b + k * 32);
    products_begin();
    if constexpr (IN_REGISTERS) multiply_64(d, left[k], b, k > 0);
    else multiply_64(d, box_descriptor((char*)s.a + k * 32), b, k > 0);
    products_commit();
    expect(d[WIDTH - 1][3] != d[WIDTH - 1][3], "sums are there before they are waited for");
    if (k == 1) products_wait<1>();  // the one before may still be in flight: nothing is looked at
    else products_wait<0>();
  }
  products_wait<0>();
  for (int i = 0; i < WIDTH * 4; i++) {
    int of_row = row + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    float want = 0;
    for (int k = 0; k < 4; k++) {
      emulator::Factors x, y;
      for (int j = 0; j < 16; j++) {
        x.set(j, number(of_row * 64 + k * 16 + j));
        y.set(j, number(column * 64 + k * 16 + j + 5));
      }
      want = emulator::step16(want, x, y);
    }
    expect(__float_as_uint(d[0][i]) == __float_as_uint(want), "an element of a product is wrong");
  }
}

// ---- Misuses

inline void no_fence(const Nothing&) {
  float d[8][4] = {};
  Shared& s = *shared_memory<Shared>();
  multiply_64(d, box_descriptor(s.a), box_descriptor(s.b), false);
}
inline void no_wait(const Nothing&) {
  float d[8][4] = {};
  Shared& s = *shared_memory<Shared>();
  products_begin();
  multiply_64(d, box_descriptor(s.a), box_descriptor(s.b), false);
  products_commit();
}
inline void not_alike(const Nothing&) {
  float d[8][4] = {};
  Shared& s = *shared_memory<Shared>();
  products_begin();
  multiply_64(d, box_descriptor(s.a), box_descriptor(s.b), threadIdx.x == 7);
  products_commit();
  products_wait<0>();
}
inline void copy_wrongly(int offset, bool made, bool seen, bool mapped) {
  Shared& s = *shared_memory<Shared>();
  if (threadIdx.x) return;
  TensorMap map = map_of(matrix(), ROWS, COLUMNS, 8);
  if (!mapped) map.opaque[0]++;
  if (made) barrier_make(s.barrier, 1);
  if (seen) barriers_made();
  copy_box(s.a + offset, map, s.barrier, 0, 0);
}
inline void box_not_aligned(const Nothing&) { copy_wrongly(64, true, true, true); }
inline void no_barrier(const Nothing&) { copy_wrongly(0, false, true, true); }
inline void barrier_not_seen(const Nothing&) { copy_wrongly(0, true, false, true); }
inline void no_map(const Nothing&) { copy_wrongly(0, true, true, false); }
inline void nobody_waits(const Nothing&) {
  // Until one is left in flight: an early copy is done by then.
  copy_wrongly(0, true, true, true);
  if (threadIdx.x == 0)
    for (int i = 0; i < 100; i++) {
      TensorMap map = map_of(matrix(), ROWS, COLUMNS, 8);
      copy_box(shared_memory<Shared>()->a, map, shared_memory<Shared>()->barrier, 0, 0);
    }
}
inline void too_many_arrive(const Nothing&) {
  Shared& s = *shared_memory<Shared>();
  if (threadIdx.x) return;
  barrier_make(s.barrier, 1);
  barrier_expect(s.barrier, 16);
  barrier_arrive(s.barrier);
}
inline void never_ends(const Nothing&) {
  Shared& s = *shared_memory<Shared>();
  if (threadIdx.x == 0) barrier_make(s.barrier, 1);
  __syncthreads();
  barrier_wait(s.barrier, 0);
}
inline void load_not_aligned(const Nothing&) {
  volatile float4* from = (volatile float4*)((char*)shared_memory<Shared>() + 4);
  expect(from->x == from->y, "NaN is no number");
}

struct Trial {
  const char* name;
  unsigned threads;
  void (*kernel)(const Nothing&);
};
const Trial ALL[] = {
    {"boxes", 64, boxes},
    {"phases", 64, phases},
    {"products of 64 columns", 128, products<8, false>},
    {"products of 128 columns", 128, products<16, false>},
    {"products of 256 columns", 128, products<32, false>},
    {"products of registers and 64 columns", 128, products<8, true>},
    {"products of registers and 128 columns", 128, products<16, true>},
    {"no fence", 128, no_fence},
    {"no wait", 128, no_wait},
    {"threads that are not alike", 128, not_alike},
    {"a box that is not aligned", 64, box_not_aligned},
    {"no barrier", 64, no_barrier},
    {"a barrier that is not seen", 64, barrier_not_seen},
    {"no map", 64, no_map},
    {"nobody waits", 64, nobody_waits},
    {"too many arrive", 64, too_many_arrive},
    {"a phase that never ends", 64, never_ends},
    {"a load that is not aligned", 64, load_not_aligned},
};
}  // namespace trials

// Runs a trial. Returns a message about the fault that ended it, until the thread's next launch;
// null where there was none.
extern "C" const char* palmette_emulator_trial(const char* name, uint64_t seed) {
  emulator::launch_state.random_state = (seed * 0x9e3779b97f4a7c15ull) | 1;
  emulator::launch_state.halves = false;
  for (const trials::Trial& trial : trials::ALL)
    if (!strcmp(trial.name, name))
      return emulator::run(trial.name, trial.kernel, {1, 1, 1}, trial.threads,
                           sizeof(trials::Shared), trials::Nothing());
  return "no trial has this name";
}

// Emulator of a CUDA block: threads are fibers in a seeded, unfair order, and copies complete late.
//
// Kernels see it only through device.cuh, whose functions are PTX on a device. Modelled: barriers,
// shuffles, ballots and atomics; groups of cp.async, which complete at once or at their wait as the
// seed says; ldmatrix and its bank conflicts; mma.sync to the bit; what hopper.h has. Shared memory
// begins as NaN and ends at a guard page, and every access is aligned. Not modelled: order of memory
// between blocks, other bank conflicts, time.
//
// A fault of a kernel (an access outside of its memory, a deadlock) leaves the launch by a jump and
// becomes a message; what the abandoned fibers held is leaked.
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#ifndef __x86_64__
#error "the switch of fibers is assembly for x86-64"
#endif

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct dim3 {
  unsigned x, y, z;
};

namespace emulator {

// Saves the callee's registers and the stack pointer, and takes up another stack.
extern "C" void emulator_switch(void** save, void* load);
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

constexpr size_t STACK_BYTES = 128 << 10, PAGE_BYTES = 4096, MOST_SHARED = 227 << 10;
constexpr size_t WINDOW_BYTES = 256 << 10;
constexpr int MOST_THREADS = 1024;

enum class Place { Ready, Ended, Barrier, Warp, Phase, Products };
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
// Sums of a thread that products are writing, and how many of them.
struct InFlight {
  std::vector<float> values;
  int products;
};
struct Fiber {
  void* stack_pointer;
  Place at;
  dim3 index;
  int number;
  unsigned mask;               // lanes that meet in a collective
  unsigned char slots[2][32];  // what collectives hand over, by turns
  int turn;
  std::vector<Copy> copies;    // of cp.async, in flight
  std::vector<size_t> groups;  // ends of committed groups within them
  std::function<bool()> until;  // what it waits for at a phase or for products
  // Of its warpgroup's products: issued, waited for, ends of groups, and what they write.
  size_t products, products_seen;
  std::vector<size_t> product_groups;
  std::map<float*, InFlight> in_flight;
  bool has_begun;
};
// What a driver makes of a matrix: see Emulator::tensor_map.
struct Tiles {
  uint64_t mark;
  const char* data;
  uint64_t rows, columns;
  uint32_t box_rows;
};
// A copy of a tile that was asked for.
struct BoxCopy {
  Tiles tiles;
  char* to;
  uint64_t* barrier;
  int column, row;
};
// A product of a warpgroup that was asked for: operands, its threads' registers, warps that made it.
struct GroupProduct {
  uint64_t a, b;
  int n;
  bool adds, has_registers;
  const uint32_t* registers[128];
  float* sums[128];
  int issued;
  unsigned made;
};

// 16 values of bf16: integers of 8 bits, 7 of them after the point, and exponents.
struct Factors {
  int32_t mantissas[16], exponents[16];
  void set(int at, uint32_t bits) {
    int exponent = bits >> 7 & 255, mantissa = bits & 127;
    if (exponent) mantissa |= 128;
    else exponent = 1;
    mantissas[at] = bits >> 15 & 1 ? -mantissa : mantissa;
    exponents[at] = exponent - 127;
  }
  float value(int at) const { return std::ldexp((float)mantissas[at], exponents[at] - 7); }
};
// Operands of a warp's product, once its lanes have met.
struct WarpProduct {
  uint64_t meeting = 0;
  Factors rows[16], columns[8];
};
struct ByteProduct {
  uint64_t meeting = 0;
  int8_t rows[16][32], columns[8][32];
  bool is_zero[16];  // of rows: most of a test's tile are past its rows
};

// Everything of a launch; each host thread has its own.
struct Launch {
  const char* kernel = "";
  std::function<void()> body;
  dim3 grid, block, index;
  std::vector<Fiber> fibers;
  void* host_stack;
  char* stacks = nullptr;
  char* shared_window = nullptr;
  char* shared = nullptr;
  uint64_t random_state = 1, lagging = 0, conflicts = 0;
  bool halves = false;  // the matrix units of Ampere and Ada
  sigjmp_buf fault;
  volatile bool running = false;
  std::string message;
  std::vector<Fiber*> ready;
  size_t shared_bytes = 0;
  bool has_unseen_barriers = false;
  std::vector<BoxCopy> box_copies;
  std::vector<std::deque<GroupProduct>> products;  // by warpgroup
  std::vector<size_t> products_made;               // of each, from the first on
  uint64_t meetings[MOST_THREADS / 32] = {};        // of each warp's lanes, so far
  WarpProduct warp_products[MOST_THREADS / 32];
  ByteProduct byte_products[MOST_THREADS / 32];

  uint64_t random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 11;
  }
};
inline thread_local Launch launch_state;
inline thread_local Fiber* current;

[[noreturn]] inline void fail(const char* what) {
  Launch& l = launch_state;
  char text[400];
  int thread = current ? current->number : -1;
  snprintf(text, sizeof text, "%s, block (%u, %u, %u), thread %d: %s", l.kernel, l.index.x,
           l.index.y, l.index.z, thread, what);
  l.message = text;
  siglongjmp(l.fault, 1);
}

// Accesses that are not aligned are traps, which the compiler puts there: see build.rs.
inline const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int NUM_FAULTS = sizeof FAULTS / sizeof *FAULTS;
inline struct sigaction previous_actions[NUM_FAULTS];
inline void on_fault(int number, siginfo_t* information, void*) {
  if (launch_state.running) {
    char text[100];
    const char* what = number == SIGFPE   ? "a division by zero"
                       : number == SIGILL ? "an access that is not aligned"
                                          : "access to %p, outside of its memory or not aligned";
    snprintf(text, sizeof text, what, information->si_addr);
    fail(text);
  }
  // Not ours: the access is made once more, for the handler that was there.
  for (int i = 0; i < NUM_FAULTS; i++)
    if (FAULTS[i] == number) sigaction(number, &previous_actions[i], nullptr);
}
inline void catch_faults() {
  static bool once = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    // Left by a jump, so its signal is not to stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < NUM_FAULTS; i++) sigaction(FAULTS[i], &action, &previous_actions[i]);
    return true;
  }();
  (void)once;
}

inline void yield(Place at) {
  Fiber* self = current;
  self->at = at;
  emulator_switch(&self->stack_pointer, launch_state.host_stack);
}
inline void wait_until(Place at, std::function<bool()> until) {
  current->until = std::move(until);
  if (!current->until()) yield(at);
}
inline void enter() {
  launch_state.body();
  Fiber* self = current;
  if (!self->copies.empty()) fail("ended with copies in flight");
  if (self->products_seen < self->products) fail("ended with products that nobody waited for");
  self->at = Place::Ended;
  emulator_switch(&self->stack_pointer, launch_state.host_stack);
  abort();
}

inline void complete_copies(size_t groups) {
  Fiber& f = *current;
  size_t end = groups ? f.groups[groups - 1] : 0;
  for (size_t i = 0; i < end; i++) {
    memset(f.copies[i].to, 0, 16);
    memcpy(f.copies[i].to, f.copies[i].from, f.copies[i].bytes);
  }
  f.copies.erase(f.copies.begin(), f.copies.begin() + end);
  f.groups.erase(f.groups.begin(), f.groups.begin() + groups);
  for (size_t& group : f.groups) group -= end;
}

// ---- The matrix units' arithmetic

constexpr int SPECIAL = 128;  // exponent of infinities and NaN

// A step of N products of bf16 onto an f32, as measured on Hopper by others (arXiv 2511.10909): the
// products and the sum before are aligned to the largest exponent, cut to BITS bits after the
// point, added exactly, and cut to f32 toward zero.
template <int N, int BITS>
__attribute__((always_inline)) inline float fused_step(float sum, const Factors& a,
                                                       const Factors& b, int first) {
  constexpr int NONE = -1000;
  uint32_t bits;
  memcpy(&bits, &sum, 4);
  int of_sum = bits >> 23 & 255, most = NONE, special = of_sum == 255;
  int32_t mantissa = bits & 0x7fffff, products[N], exponents[N];
  if (of_sum) mantissa |= 0x800000;
  else of_sum = 1;
  of_sum -= 127;
  for (int k = 0; k < N; k++) {
    int of_a = a.exponents[first + k], of_b = b.exponents[first + k];
    products[k] = a.mantissas[first + k] * b.mantissas[first + k];
    exponents[k] = of_a + of_b;
    most = std::max(most, products[k] ? exponents[k] : NONE);
    special |= (of_a == SPECIAL) | (of_b == SPECIAL);
  }
  if (special) {
    auto plain = [](const Factors& f, int at) -> double {
      if (f.exponents[at] != SPECIAL) return f.value(at);
      uint32_t magnitude = 0x7f800000u | (uint32_t)(std::abs(f.mantissas[at]) & 127) << 16;
      float value = 0;
      memcpy(&value, &magnitude, 4);
      return f.mantissas[at] < 0 ? -value : value;
    };
    double total = sum;
    for (int k = 0; k < N; k++) total += plain(a, first + k) * plain(b, first + k);
    return (float)total;
  }
  if (mantissa) most = std::max(most, of_sum);
  // Below 2^27 each, so that 8 of them fit.
  int32_t halves[2] = {0, 0};
  for (int k = 0; k < N; k++) {
    int shift = std::max(std::min(most - exponents[k], 31), 0);
    int32_t magnitude = (uint32_t)std::abs(products[k]) << (BITS - 14) >> shift;
    halves[k / 8] += products[k] < 0 ? -magnitude : magnitude;
  }
  int64_t total = (int64_t)mantissa << (BITS - 23) >> std::min(most - of_sum, 62);
  if (!mantissa) total = 0;
  total = (bits >> 31 ? -total : total) + halves[0] + halves[1];
  if (!total) return 0.0f;
  uint64_t magnitude = std::abs(total);
  int top = 63 - __builtin_clzll(magnitude);
  if (top > 23) magnitude = magnitude >> (top - 23) << (top - 23);  // toward zero
  double value = std::ldexp((double)magnitude, most - BITS);
  return (float)(total < 0 ? -value : value);
}
// Compiled for wide vectors too, which are taken where the processor has them.
__attribute__((target_clones("avx2", "default"))) static float step_of_hopper(float sum,
                                                                               const Factors& a,
                                                                               const Factors& b) {
  return fused_step<16, 25>(sum, a, b, 0);
}
__attribute__((target_clones("avx2", "default"))) static float step_of_ampere(float sum,
                                                                               const Factors& a,
                                                                               const Factors& b) {
  return fused_step<8, 24>(fused_step<8, 24>(sum, a, b, 0), a, b, 8);
}
inline float step16(float sum, const Factors& a, const Factors& b) {
  // Most rows of a test's tile are zeros, past its rows: the sum as it is, but for -0.
  int32_t any = 0, ordinary = sum - sum == 0;
  for (int k = 0; k < 16; k++) {
    any |= a.mantissas[k];
    ordinary &= b.exponents[k] != SPECIAL;
  }
  if (!any && ordinary) return sum + 0.0f;
  return launch_state.halves ? step_of_ampere(sum, a, b) : step_of_hopper(sum, a, b);
}

// ---- Collectives of a warp

template <class T>
inline const T& of_lane(int lane, int turn) {
  return *(const T*)launch_state.fibers[current->number / 32 * 32 + lane].slots[turn];
}
template <class T, class F>
inline auto collective(unsigned mask, const T& value, F&& result) {
  static_assert(sizeof(T) <= 32);
  int turn = current->turn;
  memcpy(current->slots[turn], &value, sizeof value);
  current->turn ^= 1;
  current->mask = mask;
  yield(Place::Warp);
  return result(turn);
}
// d[16x8] += a[16x16] b[16x8] of a warp: see device.cuh. The lane that comes first reads what all
// have handed over.
inline void multiply_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Operands {
    uint32_t a[4], b[2];
  } mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  int lane = current->number % 32, warp = current->number / 32;
  collective(~0u, mine, [&](int turn) {
    WarpProduct& product = launch_state.warp_products[warp];
    if (product.meeting != launch_state.meetings[warp]) {
      product.meeting = launch_state.meetings[warp];
      for (int from = 0; from < 32; from++) {
        const Operands& its = of_lane<Operands>(from, turn);
        for (int i = 0; i < 8; i++) {
          int k = from % 4 * 2 + i % 2 + i / 4 * 8;
          product.rows[from / 4 + i / 2 % 2 * 8].set(k, its.a[i / 2] >> i % 2 * 16 & 0xffff);
          if (i / 2 % 2 == 0) product.columns[from / 4].set(k, its.b[i / 4] >> i % 2 * 16 & 0xffff);
        }
      }
    }
    for (int i = 0; i < 4; i++)
      d[i] = step16(d[i], product.rows[lane / 4 + i / 2 * 8], product.columns[lane % 4 * 2 + i % 2]);
    return 0;
  });
}
// d[16x8] += a[16x32] b[32x8] of signed bytes: see device.cuh. The sums are exact.
inline void multiply_16x8x32(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Operands {
    uint32_t a[4], b[2];
  } mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  int lane = current->number % 32, warp = current->number / 32;
  collective(~0u, mine, [&](int turn) {
    ByteProduct& product = launch_state.byte_products[warp];
    if (product.meeting != launch_state.meetings[warp]) {
      product.meeting = launch_state.meetings[warp];
      memset(product.is_zero, true, sizeof product.is_zero);
      for (int from = 0; from < 32; from++) {
        const Operands& its = of_lane<Operands>(from, turn);
        for (int i = 0; i < 16; i++) {
          int row = from / 4 + i / 4 % 2 * 8, k = from % 4 * 4 + i % 4 + i / 8 * 16;
          product.rows[row][k] = (int8_t)(its.a[i / 4] >> i % 4 * 8);
          product.is_zero[row] &= product.rows[row][k] == 0;
        }
        for (int i = 0; i < 8; i++) {
          int k = from % 4 * 4 + i % 4 + i / 4 * 16;
          product.columns[from / 4][k] = (int8_t)(its.b[i / 4] >> i % 4 * 8);
        }
      }
    }
    for (int i = 0; i < 4; i++) {
      if (product.is_zero[lane / 4 + i / 2 * 8]) continue;
      const int8_t* row = product.rows[lane / 4 + i / 2 * 8];
      const int8_t* column = product.columns[lane % 4 * 2 + i % 2];
      for (int k = 0; k < 32; k++) d[i] += row[k] * column[k];
    }
    return 0;
  });
}
// Rows of one 8x8 matrix that lie in the same banks.
inline void count_conflicts(int turn) {
  for (int matrix = 0; matrix < 4; matrix++) {
    int in[8] = {}, most = 0;
    for (int row = 0; row < 8; row++)
      most = std::max(most, ++in[(uintptr_t)of_lane<const char*>(matrix * 8 + row, turn) / 16 % 8]);
    launch_state.conflicts += most - 1;
  }
}

// ---- The order of threads

inline void release() {
  Launch& l = launch_state;
  size_t waiting = 0, live = 0;
  for (Fiber& f : l.fibers) {
    live += f.at != Place::Ended;
    waiting += f.at == Place::Barrier;
  }
  // Threads that have ended count as arrived.
  if (waiting && waiting == live)
    for (Fiber& f : l.fibers)
      if (f.at == Place::Barrier) f.at = Place::Ready;
  for (size_t first = 0; first < l.fibers.size(); first += 32) {
    Fiber* warp = &l.fibers[first];
    size_t lanes = std::min<size_t>(32, l.fibers.size() - first);
    for (size_t lane = 0; lane < lanes; lane++) {
      if (warp[lane].at != Place::Warp) continue;
      unsigned mask = warp[lane].mask;
      bool all = true;
      for (size_t k = 0; k < 32 && all; k++)
        if (mask >> k & 1) all = k < lanes && warp[k].at == Place::Warp && warp[k].mask == mask;
      if (!all) continue;
      l.meetings[first / 32]++;
      for (size_t k = 0; k < 32; k++)
        if (mask >> k & 1) warp[k].at = Place::Ready;
    }
  }
}

void run_asynchronous();
bool has_asynchronous();

inline const char* waits_at(Place at) {
  switch (at) {
    case Place::Barrier: return "deadlock: waits at __syncthreads";
    case Place::Phase: return "deadlock: waits for a phase of a barrier";
    case Place::Products: return "deadlock: waits for products";
    default: return "deadlock: waits for its warp";
  }
}
inline void run_block() {
  Launch& l = launch_state;
  for (;;) {
    bool live = false;
    l.ready.clear();
    for (Fiber& f : l.fibers) {
      live |= f.at != Place::Ended;
      if ((f.at == Place::Phase || f.at == Place::Products) && f.until()) f.at = Place::Ready;
      if (f.at == Place::Ready) l.ready.push_back(&f);
    }
    if (!live) {
      if (!l.box_copies.empty()) fail("the block ended with copies of tiles in flight");
      return;
    }
    run_asynchronous();
    if (l.ready.empty()) {
      if (has_asynchronous()) continue;
      bool may_go_on = false;
      for (Fiber& f : l.fibers)
        may_go_on |= (f.at == Place::Phase || f.at == Place::Products) && f.until();
      if (may_go_on) continue;
      for (Fiber& f : l.fibers)
        if (f.at != Place::Ended) {
          current = &f;
          fail(waits_at(f.at));
        }
    }
    // Warps in a random order, some left behind for long: what no barrier orders must show, which a
    // fair order never does.
    if (l.random() % 16 == 0) {
      uint64_t some = l.random(), more = l.random();
      l.lagging = l.random() % 3 == 0 ? 0 : l.random() % 2 ? some : some | more;
    }
    bool ran = false;
    for (int pass = 0; pass < 2 && !ran; pass++) {
      for (size_t i = l.ready.size(); i > 1; i--)
        std::swap(l.ready[i - 1], l.ready[l.random() % i]);
      for (Fiber* f : l.ready)
        if (pass || !(l.lagging >> (f->number / 32) & 1)) {
          current = f;
          emulator_switch(&l.host_stack, f->stack_pointer);
          ran = true;
        }
    }
    current = nullptr;
    release();
  }
}

inline void prepare(size_t threads, size_t shared_bytes) {
  Launch& l = launch_state;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (!l.stacks) {
    l.stacks =
        (char*)mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    char* window = (char*)mmap(nullptr, 2 * WINDOW_BYTES, PROT_NONE, flags, -1, 0);
    if (l.stacks == MAP_FAILED || window == MAP_FAILED) fail("no memory for stacks");
    // Aligned, since descriptors of products have the last 18 bits of an address.
    l.shared_window = (char*)(((uintptr_t)window + WINDOW_BYTES - 1) & ~(WINDOW_BYTES - 1));
  }
  if (threads > MOST_THREADS) fail("more threads than a block may have");
  if (shared_bytes > MOST_SHARED) fail("more shared memory than a block may have");
  size_t pages = (shared_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  char* begin = l.shared_window + PAGE_BYTES;
  mprotect(begin, MOST_SHARED + PAGE_BYTES, PROT_NONE);
  if (pages) mprotect(begin, pages, PROT_READ | PROT_WRITE);
  // Aligned as its size is, so that it ends at the guard page.
  size_t alignment = std::min<size_t>(std::max<size_t>(shared_bytes & -shared_bytes, 128), 1024);
  l.shared = (char*)((uintptr_t)(begin + pages - shared_bytes) & ~(alignment - 1));
  l.shared_bytes = shared_bytes;
  l.fibers.resize(threads);
}

// Runs a kernel over its grid. Returns a message about the fault that ended it, or null.
template <class K, class A>
const char* run(const char* name, K kernel, dim3 grid, unsigned threads, size_t shared_bytes,
                const A& arguments) {
  Launch& l = launch_state;
  catch_faults();
  l.kernel = name;
  l.index = {0, 0, 0};
  current = nullptr;
  // Saves no mask of signals: it does not change.
  if (sigsetjmp(l.fault, 0)) {
    l.running = false;
    return l.message.c_str();
  }
  l.running = true;
  prepare(threads, shared_bytes);
  l.body = [&] { kernel(arguments); };
  l.grid = grid;
  l.block = {threads, 1, 1};
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        l.index = {x, y, z};
        memset(l.shared, 0xff, shared_bytes);
        l.has_unseen_barriers = false;
        l.box_copies.clear();
        l.products.assign(threads / 128, {});
        l.products_made.assign(threads / 128, 0);
        for (unsigned t = 0; t < threads; t++) {
          Fiber& f = l.fibers[t];
          f.copies.clear();
          f.groups.clear();
          f.index = {t, 0, 0};
          f.number = (int)t;
          f.turn = 0;
          f.products = f.products_seen = 0;
          f.product_groups.clear();
          f.in_flight.clear();
          f.has_begun = false;
          f.at = Place::Ready;
          // As if it had been called: registers to take up, where to go, and the alignment of a
          // call.
          void** top = (void**)(l.stacks + (t + 1) * STACK_BYTES) - 2;
          top[0] = (void*)enter;
          f.stack_pointer = top - 6;
        }
        run_block();
      }
  l.running = false;
  return nullptr;
}
}  // namespace emulator

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define threadIdx (emulator::current->index)
#define blockIdx (emulator::launch_state.index)
#define blockDim (emulator::launch_state.block)
#define gridDim (emulator::launch_state.grid)
inline void __syncthreads() { emulator::yield(emulator::Place::Barrier); }
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  int lane = emulator::current->number % 32;
  return emulator::collective(mask, value,
                              [=](int t) { return emulator::of_lane<T>(lane ^ distance, t); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int distance) {
  int lane = emulator::current->number % 32, from = lane >= distance ? lane - distance : lane;
  return emulator::collective(mask, value, [=](int t) { return emulator::of_lane<T>(from, t); });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance) {
  int lane = emulator::current->number % 32, from = lane + distance < 32 ? lane + distance : lane;
  return emulator::collective(mask, value, [=](int t) { return emulator::of_lane<T>(from, t); });
}
inline unsigned __ballot_sync(unsigned mask, bool value) {
  return emulator::collective(mask, value, [](int t) {
    unsigned bits = 0;
    for (int lane = 0; lane < 32; lane++)
      bits |= (unsigned)emulator::of_lane<bool>(lane, t) << lane;
    return bits;
  });
}
template <class T>
T atomicAdd(T* at, T value) {
  T old = *at;
  *at += value;
  return old;
}
template <class T>
T atomicOr(T* at, T value) {
  T old = *at;
  *at |= value;
  return old;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
inline int min(int x, int y) { return x < y ? x : y; }
inline int max(int x, int y) { return x > y ? x : y; }
inline float __uint_as_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
inline uint32_t __float_as_uint(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }

#include "hopper.h"

// What kernels need beyond plain CUDA C++: inline PTX on a device, models of emulator.h on a CPU.
//
// Everything here has the same bits in both. Arithmetic that the compiler might fuse or approximate
// is named: `exp2_fixed`, `log_fixed`, `__fdiv_rn`, `__fsqrt_rn`.
#pragma once
#ifdef EMULATED
#include "emulator.h"
#define DEVICE inline
#define UNROLL
#define NO_UNROLL
#else
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#endif
// A loop that is unrolled whatever its size: it indexes registers.
#define EACH(i, count) \
  UNROLL               \
  for (int i = 0; i < count; i++)
typedef uint16_t bf16;  // bits; arithmetic is in f32

constexpr float LOG2E = 1.44269504f;

DEVICE float to_float(bf16 value) { return __uint_as_float((uint32_t)value << 16); }
// To nearest, ties to even; NaN is that of the device's instruction.
DEVICE uint32_t pack_bf16(float low, float high) {
#ifdef EMULATED
  auto round = [](float value) -> uint32_t {
    uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  };
  return round(low) | round(high) << 16;
#else
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#endif
}
DEVICE bf16 to_bf16(float value) { return (bf16)pack_bf16(value, 0.0f); }

// 2^x for x up to 127, within 1 unit in the last place; 0 below -126, NaN for NaN. `ex2.approx`
// promises no bits. The polynomial is that of Cephes.
DEVICE float exp2_fixed(float x) {
  float clamped = x < -126.0f ? -126.0f : x;
  float shifted = __fadd_rn(clamped, 12582912.0f);  // the whole part is in its last bits
  float f = __fsub_rn(clamped, __fsub_rn(shifted, 12582912.0f));
  float p = 1.535336188e-4f;
  p = __fmaf_rn(p, f, 1.339887440e-3f);
  p = __fmaf_rn(p, f, 9.618437358e-3f);
  p = __fmaf_rn(p, f, 5.550332471e-2f);
  p = __fmaf_rn(p, f, 2.402264791e-1f);
  p = __fmaf_rn(p, f, 6.931472029e-1f);
  p = __fmaf_rn(p, f, 1.0f);
  float value = __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
  // A device's NaN has bits that the addition above would turn into a number.
  return x < -126.0f ? 0.0f : x == x ? value : x;
}
// ln x of an ordinary positive number, within 1 unit in the last place; +inf and NaN stay.
DEVICE float log_fixed(float x) {
  if (!(x < INFINITY)) return x;
  uint32_t bits = __float_as_uint(x);
  int e = (int)(bits >> 23) - 126;
  float m = __uint_as_float((bits & 0x7fffffu) | 0x3f000000u);  // in [1/2, 1)
  if (m < 0.707106781f) {
    e--;
    m = __fadd_rn(m, m);
  }
  m = __fsub_rn(m, 1.0f);
  float z = __fmul_rn(m, m), p = 7.0376836292e-2f;
  p = __fmaf_rn(p, m, -1.1514610310e-1f);
  p = __fmaf_rn(p, m, 1.1676998740e-1f);
  p = __fmaf_rn(p, m, -1.2420140846e-1f);
  p = __fmaf_rn(p, m, 1.4249322787e-1f);
  p = __fmaf_rn(p, m, -1.6668057665e-1f);
  p = __fmaf_rn(p, m, 2.0000714765e-1f);
  p = __fmaf_rn(p, m, -2.4999993993e-1f);
  p = __fmaf_rn(p, m, 3.3333331174e-1f);
  float y = __fmul_rn(__fmul_rn(m, z), p);
  y = __fmaf_rn((float)e, -2.12194440e-4f, y);
  y = __fmaf_rn(-0.5f, z, y);
  return __fmaf_rn((float)e, 0.693359375f, __fadd_rn(m, y));
}
// e^x for x up to 88.
DEVICE float exp_fixed(float x) { return exp2_fixed(__fmul_rn(x, LOG2E)); }

// Dynamic shared memory, seen as what the kernel keeps there.
template <class T>
DEVICE T* shared_memory() {
#ifdef EMULATED
  return (T*)emulator::launch_state.shared;
#else
  extern __shared__ __align__(1024) char bytes[];
  return (T*)bytes;
#endif
}
#ifndef EMULATED
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
#endif

// Sum and maximum over a warp, the same in every lane.
DEVICE float warp_sum(float value) {
  for (int d = 16; d; d >>= 1) value = __fadd_rn(value, __shfl_xor_sync(~0u, value, d));
  return value;
}
DEVICE float warp_max(float value) {
  for (int d = 16; d; d >>= 1) value = fmaxf(value, __shfl_xor_sync(~0u, value, d));
  return value;
}

// ---- Asynchronous copies of 16 bytes to shared memory, zeros where `valid` is false

DEVICE void copy16_async(void* to, const void* from, bool valid) {
#ifdef EMULATED
  if (((uintptr_t)to | (uintptr_t)from) % 16) emulator::fail("a copy that is not aligned");
  emulator::current->copies.push_back({to, from, valid ? 16 : 0});
#else
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
#endif
}
DEVICE void copies_commit() {
#ifdef EMULATED
  emulator::Fiber& f = *emulator::current;
  f.groups.push_back(f.copies.size());
  if (emulator::launch_state.random() % 4 == 0) emulator::complete_copies(f.groups.size());
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until no more than the LAST groups are in flight.
template <int LAST>
DEVICE void copies_wait() {
#ifdef EMULATED
  size_t groups = emulator::current->groups.size();
  if (groups > LAST) emulator::complete_copies(groups - LAST);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(LAST) : "memory");
#endif
}

// ---- Fragments and products of a warp. g = lane / 4, q = lane % 4.

// Four 8x8 matrices of bf16; lane l gives the address of row l % 8 of matrix l / 8, and gets of
// each matrix the values (g, 2q) and (g, 2q + 1).
DEVICE void load_matrices(uint32_t (&r)[4], const void* row) {
#ifdef EMULATED
  int lane = emulator::current->number % 32;
  if ((uintptr_t)row % 16) emulator::fail("a matrix that is not aligned");
  emulator::collective(~0u, row, [&](int turn) {
    if (lane == 0) emulator::count_conflicts(turn);
    for (int m = 0; m < 4; m++) {
      const char* from = emulator::of_lane<const char*>(m * 8 + lane / 4, turn);
      memcpy(&r[m], from + lane % 4 * 4, 4);
    }
    return 0;
  });
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}
// d[16x8] += a[16x16] b[16x8]. Of a: rows g and g + 8 of columns 2q.., then of columns 8 + 2q..; of
// b: column g of rows 2q.. and 8 + 2q..; of d: (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1).
DEVICE void multiply_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef EMULATED
  emulator::multiply_16x8x16(d, a, b0, b1);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// d[16x8] += a[16x32] b[32x8] of signed bytes. Of a: rows g and g + 8 of columns 4q.., then of
// columns 16 + 4q..; of b: column g of rows 4q.. and 16 + 4q..; of d as above. load_matrices gives
// both sides: a row of its matrices is 16 bytes.
DEVICE void multiply_16x8x32(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef EMULATED
  emulator::multiply_16x8x32(d, a, b0, b1);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Address of 16 bytes in a tile whose rows are `width` such pieces long, so that the same piece of
// 8 rows in a row lies in different banks.
DEVICE bf16* piece(bf16* tile, int row, int at, int width) {
  return tile + (row * width + (at ^ (row & 7))) * 8;
}

// Sizes of a pass, in device memory: a captured launch serves any number of rows, and none.
struct PassSizes {
  int rows;        // of tokens, prompts' and beams'
  int head_rows;   // whose logits are wanted
  int items;       // of attention to prompts
  int merge_rows;  // whose attention is merged, from `first_merge`
  int first_merge;
};

// Instructions of Hopper (sm_90a): barriers that count bytes, copies of tiles, products of a
// warpgroup. Inline PTX on a device, models of hopper.h under emulation.
#pragma once
#include "device.cuh"

// A matrix of bf16 and the box of 64 columns that a copy takes of it, as the host's driver made it.
struct alignas(64) TensorMap {
  char opaque[128];
};

#ifdef EMULATED
#include "hopper.h"
#define GRID_CONSTANT
#else
// Its address is what copies of tiles are given, so that it is not to be copied to registers.
#define GRID_CONSTANT __grid_constant__
#endif

constexpr int BOX_COLUMNS = 64, WARPGROUP = 128;
// Boxes begin at multiples of it, so that the swizzle of 128 bytes begins with them.
constexpr int BOX_ALIGNMENT = 1024;

// ---- Barriers in shared memory: a phase ends when all have arrived and all bytes are there

DEVICE void barrier_make(uint64_t* barrier, uint32_t arrivals) {
#ifdef EMULATED
  emulator::barrier_make(barrier, arrivals);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
#endif
}
// Lets copies see the barriers that this thread made; the block's other threads need a barrier.
DEVICE void barriers_made() {
#ifdef EMULATED
  emulator::launch_state.has_unseen_barriers = false;
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
DEVICE void barrier_arrive(uint64_t* barrier) {
#ifdef EMULATED
  emulator::barrier_arrive(barrier, 0);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}
// Arrives, and lets the phase wait for so many bytes of copies.
DEVICE void barrier_expect(uint64_t* barrier, uint32_t bytes) {
#ifdef EMULATED
  emulator::barrier_arrive(barrier, bytes);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
#endif
}
// Waits until the phase of this parity has ended; one before the first counts as ended.
DEVICE void barrier_wait(uint64_t* barrier, uint32_t parity) {
#ifdef EMULATED
  emulator::wait_until(emulator::Place::Phase,
                       [=] { return emulator::has_ended(barrier, parity); });
#else
  asm volatile(
      "{\n.reg .pred ended;\n"
      "AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@!ended bra AGAIN;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}

// Makes two barriers a stage, for the block: what is full by copies alone, what is empty once so many
// warps have read it.
template <int STAGES>
DEVICE void make_barriers(uint64_t* full, uint64_t* empty, uint32_t readers) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      barrier_make(full + stage, 1);
      barrier_make(empty + stage, readers);
    }
    barriers_made();
  }
  __syncthreads();  // before anyone waits at them
}

// A place in a ring of stages, and the parity of its round.
template <int STAGES>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  DEVICE void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// ---- Copies of tiles

// Copies the box at a column and row, rows of 128 bytes, swizzled; zeros outside of the matrix. By
// one thread; the bytes of the whole box are those that `barrier` waits for.
DEVICE void copy_box(void* to, const TensorMap& map, uint64_t* barrier, int column, int row) {
#ifdef EMULATED
  emulator::copy_box(to, map.opaque, barrier, column, row);
#else
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
#endif
}

// ---- Registers: a warpgroup that copies leaves some to those that multiply

template <int REGISTERS>
DEVICE void registers_leave() {
#ifndef EMULATED
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}
template <int REGISTERS>
DEVICE void registers_take() {
#ifndef EMULATED
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

// ---- Products of a warpgroup: asynchronous, in groups

// Of a box in shared memory, from the first of 16 columns on: the right side, or the left.
DEVICE uint64_t box_descriptor(const void* box) {
#ifdef EMULATED
  uint64_t address = (uintptr_t)box & 0x3ffff;
#else
  uint64_t address = shared_address(box) & 0x3ffff;
#endif
  // In units of 16 bytes: the address, a stride that this layout does not use, 8 rows; then the
  // swizzle of 128 bytes.
  return address >> 4 | (uint64_t)1 << 16 | (uint64_t)(8 * 128 >> 4) << 32 | (uint64_t)1 << 62;
}
// Before the first product of a group, and after registers that it has were touched.
DEVICE void products_begin() {
#ifdef EMULATED
  emulator::current->has_begun = true;
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
DEVICE void products_commit() {
#ifdef EMULATED
  emulator::products_commit();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Waits until no more than the LAST groups are in flight. Until then nobody looks at their
// registers.
template <int LAST>
DEVICE void products_wait() {
#ifdef EMULATED
  emulator::products_wait(LAST);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LAST) : "memory");
#endif
}

#define OF_4(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define OF_16(d, j) OF_4(d, j), OF_4(d, j + 1), OF_4(d, j + 2), OF_4(d, j + 3)
#define OF_32(d, j) OF_16(d, j), OF_16(d, j + 4)
#define OF_64(d, j) OF_32(d, j), OF_32(d, j + 8)
#define NAMES_32                                                                                \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64                                                                                \
  NAMES_32                                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_128                                                                                \
  NAMES_64                                                                                       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "   \
  "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, "   \
  "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PRODUCT_OF(n) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 "

// d[64 x N] += a[64 x 16] b[N x 16]^T, from zero unless `adds`; N by the width of d. A warp has 16
// rows, a lane of them what multiply_16x8x16 gives it of each 8 columns.
template <int WIDTH>
DEVICE void multiply_64(float (&d)[WIDTH][4], uint64_t a, uint64_t b, bool adds) {
  static_assert(WIDTH == 8 || WIDTH == 16 || WIDTH == 32);
#ifdef EMULATED
  emulator::multiply_64(d[0], WIDTH * 8, a, nullptr, b, adds);
#else
  int keeps = adds;
  if constexpr (WIDTH == 8)
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %34, 0;\n" PRODUCT_OF(64) NAMES_32
                 "}, %32, %33, keeps, 1, 1, 0, 0;\n}"
                 : OF_32(d, 0)
                 : "l"(a), "l"(b), "r"(keeps));
  else if constexpr (WIDTH == 16)
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %66, 0;\n" PRODUCT_OF(128) NAMES_64
                 "}, %64, %65, keeps, 1, 1, 0, 0;\n}"
                 : OF_64(d, 0)
                 : "l"(a), "l"(b), "r"(keeps));
  else
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %130, 0;\n" PRODUCT_OF(256) NAMES_128
                 "}, %128, %129, keeps, 1, 1, 0, 0;\n}"
                 : OF_64(d, 0), OF_64(d, 16)
                 : "l"(a), "l"(b), "r"(keeps));
#endif
}
// The same with the left side in registers, laid out as multiply_16x8x16's: nobody writes them
// before the group is waited for.
template <int WIDTH>
DEVICE void multiply_64(float (&d)[WIDTH][4], const uint32_t (&a)[4], uint64_t b, bool adds) {
  static_assert(WIDTH == 8 || WIDTH == 16);
#ifdef EMULATED
  emulator::multiply_64(d[0], WIDTH * 8, 0, a, b, adds);
#else
  int keeps = adds;
  if constexpr (WIDTH == 8)
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %37, 0;\n" PRODUCT_OF(64) NAMES_32
                 "}, {%32, %33, %34, %35}, %36, keeps, 1, 1, 0;\n}"
                 : OF_32(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keeps));
  else
    asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %69, 0;\n" PRODUCT_OF(128) NAMES_64
                 "}, {%64, %65, %66, %67}, %68, keeps, 1, 1, 0;\n}"
                 : OF_64(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keeps));
#endif
}
#undef OF_4
#undef OF_16
#undef OF_32
#undef OF_64
#undef NAMES_32
#undef NAMES_64
#undef NAMES_128
#undef PRODUCT_OF

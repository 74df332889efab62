//! Tiles of AMX: eight registers of 16 rows of 64 bytes, and what multiplies them.
//!
//! Linux gives a process its tiles when it asks, once, and from then on its threads' signal frames
//! are 8 KiB larger. A thread has tiles for the time of one product: they are released at its end,
//! so that a thread which is switched away has none to be saved.
//!
//! The intrinsics are not stable yet, so each instruction is a line of assembly.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, __get_cpuid_max, _xgetbv};
use std::sync::LazyLock;

/// Rows of a tile.
pub(super) const TILE_ROWS: usize = 16;

/// Bytes of a tile's row, and of a cache line.
pub(super) const TILE_BYTES: usize = 64;

/// True where the processor has AMX for bytes, and the operating system lets this process use it.
pub(super) fn have_bytes() -> bool {
    *FEATURES & INT8 != 0
}

/// True where the processor has AMX for bfloat16, and the system lets this process use it.
pub(super) fn have_bf16() -> bool {
    *FEATURES & BF16 != 0
}

/// Instructions of AMX that are here, as leaf 7 of the processor's description says it; nothing
/// where the system refuses tiles, or has never heard of them.
///
/// Asked once for the process: the question is one for the host of a virtual machine.
static FEATURES: LazyLock<u32> = LazyLock::new(|| {
    // SAFETY: every processor of this architecture has the instruction.
    #[allow(unused_unsafe, reason = "safe in later versions than the oldest one that builds this")]
    let features = unsafe {
        match __get_cpuid_max(0) {
            (7.., _) => __cpuid_count(7, 0).edx,
            _ => 0,
        }
    };
    if features & TILE != 0 && has_state() && is_permitted() { features } else { 0 }
});

const BF16: u32 = 1 << 22;
const TILE: u32 = 1 << 24;
const INT8: u32 = 1 << 25;

/// The parts of a thread's state that the system saves: tiles and their configuration.
fn has_state() -> bool {
    const TILES: u64 = 1 << 17 | 1 << 18;
    // SAFETY: a processor whose system saves vectors has the instruction, and all callers have
    // AVX-512.
    is_x86_feature_detected!("avx512f") && unsafe { saved_state() } & TILES == TILES
}

#[target_feature(enable = "xsave")]
fn saved_state() -> u64 {
    // SAFETY: the function is compiled for the instruction, and register 0 always is.
    unsafe { _xgetbv(0) }
}

/// Asks Linux for the tiles of this process and its threads.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the call takes two numbers and touches no memory of this process; the instruction
    // changes the three registers named here.
    unsafe {
        asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// No other system's way to ask is known here.
#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// The thread's tiles, all eight of 16 rows of 64 bytes, for the time of a product.
pub(super) struct Tiles(());

impl Tiles {
    /// # Safety
    /// [`have_bytes`] or [`have_bf16`] must be true, and nothing else on this thread may use tiles
    /// meanwhile.
    #[inline(always)]
    pub(super) unsafe fn take() -> Self {
        /// Palette 1; bytes of a row of each tile, in 16 bits from byte 16 on; rows of each, in 8
        /// bits from byte 48 on.
        #[repr(C, align(64))]
        struct Configuration([u8; 64]);
        const ALL: Configuration = {
            let mut bytes = [0; 64];
            bytes[0] = 1;
            let mut tile = 0;
            while tile < 8 {
                bytes[16 + 2 * tile] = TILE_BYTES as u8;
                bytes[48 + tile] = TILE_ROWS as u8;
                tile += 1;
            }
            Configuration(bytes)
        };
        static CONFIGURATION: Configuration = ALL;
        // SAFETY: the instruction reads the 64 bytes, which are a valid configuration; the caller
        // says that there are tiles.
        unsafe {
            asm!(
                "ldtilecfg [{place}]",
                place = in(reg) CONFIGURATION.0.as_ptr(),
                options(nostack, preserves_flags, readonly),
            );
        }
        Self(())
    }
}

impl Drop for Tiles {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: there are tiles, or there would be no `self`; nobody else uses them.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) }
    }
}

/// Fills tile T with zeros.
///
/// # Safety
/// Tiles are configured, as for all of these: 16 rows of 64 bytes each.
#[inline(always)]
pub(super) unsafe fn zero<const T: u8>() {
    // SAFETY: the caller says that there are tiles.
    unsafe { asm!("tilezero tmm{t}", t = const T, options(nostack, preserves_flags, nomem)) }
}

/// Reads a tile's 16 rows of 64 bytes, `pitch` bytes apart.
///
/// # Safety
/// The rows can be read.
#[inline(always)]
pub(super) unsafe fn load<const T: u8>(rows: *const u8, pitch: usize) {
    // SAFETY: the caller says that there are tiles, and what can be read.
    unsafe {
        asm!(
            "tileloadd tmm{t}, [{rows} + {pitch}]",
            t = const T,
            rows = in(reg) rows,
            pitch = in(reg) pitch,
            options(nostack, preserves_flags, readonly),
        );
    }
}

/// Adds to each sum of tile C the products of A's row of signed bytes and B's column.
///
/// # Safety
/// Tiles are configured.
#[inline(always)]
pub(super) unsafe fn add_products_of_bytes<const C: u8, const A: u8, const B: u8>() {
    // SAFETY: the caller says that there are tiles.
    unsafe {
        asm!(
            "tdpbssd tmm{c}, tmm{a}, tmm{b}",
            c = const C,
            a = const A,
            b = const B,
            options(nostack, preserves_flags, nomem),
        );
    }
}

/// Adds to each sum of tile C, in f32, the products of A's row of bfloat16 and B's column.
///
/// # Safety
/// Tiles are configured.
#[inline(always)]
pub(super) unsafe fn add_products_of_bf16<const C: u8, const A: u8, const B: u8>() {
    // SAFETY: the caller says that there are tiles.
    unsafe {
        asm!(
            "tdpbf16ps tmm{c}, tmm{a}, tmm{b}",
            c = const C,
            a = const A,
            b = const B,
            options(nostack, preserves_flags, nomem),
        );
    }
}

/// Writes a tile's 16 rows of 16 sums, `pitch` bytes apart.
///
/// # Safety
/// The rows can be written.
#[inline(always)]
pub(super) unsafe fn store<const T: u8>(rows: *mut i32, pitch: usize) {
    // SAFETY: the caller says that there are tiles, and what can be written.
    unsafe {
        asm!(
            "tilestored [{rows} + {pitch}], tmm{t}",
            t = const T,
            rows = in(reg) rows,
            pitch = in(reg) pitch,
            options(nostack, preserves_flags),
        );
    }
}

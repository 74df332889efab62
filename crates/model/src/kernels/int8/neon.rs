//! Sums by NEON. Left sides are their integers, signed.

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, vdupq_n_s32, vget_low_s8, vld1q_s8, vmull_high_s8, vmull_s8,
    vpadalq_s16, vpaddq_s32, vreinterpretq_s8_s32, vst1q_s32,
};

use super::product::{GROUP, PanelGroup, Product, Sums};
use crate::kernels::panels::PANEL;

/// Vectors of a panel's row: four columns each.
const VECTORS: usize = 4;

/// Products of bytes in 16 bits, whose pairs are added to 32.
struct Neon;

/// Dot products of four bytes.
struct NeonDot;

/// A product by NEON.
#[target_feature(enable = "neon")]
pub(super) fn run<const M: usize>(product: Product<'_, M>) {
    product.run::<Neon>();
}

/// A product by NEON's dot products.
#[target_feature(enable = "neon,dotprod")]
pub(super) fn run_dot<const M: usize>(product: Product<'_, M>) {
    product.run::<NeonDot>();
}

/// Puts a row's scale behind its integers.
#[inline(always)]
fn encode(row: &mut [f32], scale: f32) {
    let groups = row.len().div_ceil(GROUP);
    row[groups] = scale;
}

impl Sums for Neon {
    const IS_RAISED: bool = false;
    const TAKES_PANELS_IN_TURN: bool = true;

    #[inline(always)]
    fn encode(row: &mut [f32], scale: f32) {
        encode(row, scale);
    }

    /// 2 rows of 16 columns take 16 of the 32 registers: sums of a column's halves lie apart.
    #[inline(always)]
    fn cover<const M: usize, const Q: usize>(
        product: &mut Product<'_, M>,
        places: [(usize, usize); Q],
    ) {
        let row = product.tiles::<Self, 2, Q>(0, places);
        product.tiles::<Self, 1, Q>(row, places);
    }

    #[inline(always)]
    unsafe fn tile<const R: usize, const Q: usize>(
        x: [&[f32]; R],
        panels: [&[PanelGroup]; Q],
        _: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R] {
        let mut sums = [[[0; PANEL]; Q]; R];
        for q in 0..Q {
            // SAFETY: the caller says that the processor has the instructions.
            let panel = unsafe { tile(x, panels[q]) };
            for r in 0..R {
                sums[r][q] = panel[r];
            }
        }
        sums
    }
}

impl Sums for NeonDot {
    const IS_RAISED: bool = false;
    const TAKES_PANELS_IN_TURN: bool = true;

    #[inline(always)]
    fn encode(row: &mut [f32], scale: f32) {
        encode(row, scale);
    }

    /// 6 rows of 16 columns take 24 of the 32 registers.
    #[inline(always)]
    fn cover<const M: usize, const Q: usize>(
        product: &mut Product<'_, M>,
        places: [(usize, usize); Q],
    ) {
        let row = product.tiles::<Self, 6, Q>(0, places);
        let row = product.tiles::<Self, 3, Q>(row, places);
        product.tiles::<Self, 1, Q>(row, places);
    }

    #[inline(always)]
    unsafe fn tile<const R: usize, const Q: usize>(
        x: [&[f32]; R],
        panels: [&[PanelGroup]; Q],
        _: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R] {
        let mut sums = [[[0; PANEL]; Q]; R];
        for q in 0..Q {
            // SAFETY: the caller says that the processor has the instructions.
            let panel = unsafe { dot_tile(x, panels[q]) };
            for r in 0..R {
                sums[r][q] = panel[r];
            }
        }
        sums
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn tile<const R: usize>(x: [&[f32]; R], panel: &[PanelGroup]) -> [[i32; PANEL]; R] {
    let zero = vdupq_n_s32(0);
    // Two sums for each column: of the first and of the last two values of its groups.
    let mut sums = [[[zero; 2]; VECTORS]; R];
    for (place, group) in panel.iter().enumerate() {
        let weights = vectors(group);
        for r in 0..R {
            let four = vreinterpretq_s8_s32(vdupq_n_s32(x[r][place].to_bits() as i32));
            for v in 0..VECTORS {
                let low: int16x8_t = vmull_s8(vget_low_s8(weights[v]), vget_low_s8(four));
                let high: int16x8_t = vmull_high_s8(weights[v], four);
                sums[r][v][0] = vpadalq_s16(sums[r][v][0], low);
                sums[r][v][1] = vpadalq_s16(sums[r][v][1], high);
            }
        }
    }
    let mut whole = [[zero; VECTORS]; R];
    for r in 0..R {
        for v in 0..VECTORS {
            whole[r][v] = vpaddq_s32(sums[r][v][0], sums[r][v][1]);
        }
    }
    stored(&whole)
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot_tile<const R: usize>(x: [&[f32]; R], panel: &[PanelGroup]) -> [[i32; PANEL]; R] {
    let mut sums = [[vdupq_n_s32(0); VECTORS]; R];
    for (place, group) in panel.iter().enumerate() {
        let weights = vectors(group);
        for r in 0..R {
            let four = vreinterpretq_s8_s32(vdupq_n_s32(x[r][place].to_bits() as i32));
            for v in 0..VECTORS {
                sums[r][v] = dot(sums[r][v], weights[v], four);
            }
        }
    }
    stored(&sums)
}

/// Adds to each sum the products of its four bytes. (The intrinsic for it is not stable yet.)
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot(sums: int32x4_t, weights: int8x16_t, four: int8x16_t) -> int32x4_t {
    let mut sums = sums;
    // SAFETY: the instruction reads and writes these registers only, and the function is compiled
    // for it.
    unsafe {
        std::arch::asm!(
            "sdot {sums:v}.4s, {weights:v}.16b, {four:v}.16b",
            sums = inout(vreg) sums,
            weights = in(vreg) weights,
            four = in(vreg) four,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

#[inline]
#[target_feature(enable = "neon")]
fn vectors(group: &PanelGroup) -> [int8x16_t; VECTORS] {
    let at = |v: usize| {
        let part = &group.0[v * 16..][..16];
        // SAFETY: the slice has the 16 bytes that are read.
        unsafe { vld1q_s8(part.as_ptr()) }
    };
    [at(0), at(1), at(2), at(3)]
}

#[inline]
#[target_feature(enable = "neon")]
fn stored<const R: usize>(sums: &[[int32x4_t; VECTORS]; R]) -> [[i32; PANEL]; R] {
    let mut out = [[0; PANEL]; R];
    for r in 0..R {
        for v in 0..VECTORS {
            let part = &mut out[r][v * 4..][..4];
            // SAFETY: the slice has the 16 bytes that are written.
            unsafe { vst1q_s32(part.as_mut_ptr(), sums[r][v]) };
        }
    }
    out
}

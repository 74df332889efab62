//! Sums by AVX2, which multiplies unsigned bytes by signed ones and adds pairs of products in 16
//! bits.
//!
//! Left sides are magnitudes, `[⌈k / 4⌉, 4]`, and behind them masks of the same size: all bits of a
//! byte are set where the integer is negative. Weights are turned by the mask, `q ^ mask`, which is
//! `q` or `−q − 1`, so that a sum of `|p| · (q ^ mask)` lacks what is the same in every column: the
//! magnitudes of the row's negative integers.
//!
//! A pair of products is within ±2 · 127 · 128 = ±32,512, so that nothing saturates. Pairs are
//! summed in 16 bits that wrap around, and their upper bytes in another 16 bits: 256 of these fit,
//! and the sum of 256 lower bytes does too, which is what is left of the first when the second is
//! taken from it. Both together are the exact sum.
//!
//! PERF: on Zen 2, multiplications of integers have one of four ports, so that widening every pair
//! of products by one more (`vpmaddwd` by ones) would take as long as products in f32. Here a
//! pair's five instructions share all four: turning, multiplying, two additions and a shift.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_broadcast_ss, _mm256_castps_si256,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_srai_epi16,
    _mm256_storeu_si256, _mm256_sub_epi16, _mm256_xor_si256,
};

use super::product::{GROUP, PanelGroup, Product, Sums, bytes_of};
use crate::kernels::panels::PANEL;

struct Avx2;

/// Groups whose pairs are summed before they are widened.
const NARROW_GROUPS: usize = 256;

/// True for rows of `k` values that have room for magnitudes, masks, scale and correction.
pub(super) fn fits(depth: usize) -> bool {
    2 * depth.div_ceil(GROUP) + 2 <= depth
}

/// A product by AVX2, of a depth that [`fits`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<const M: usize>(product: Product<'_, M>) {
    product.run::<Avx2>();
}

impl Sums for Avx2 {
    const IS_RAISED: bool = false;
    const TAKES_PANELS_IN_TURN: bool = true;

    #[inline(always)]
    fn encode(row: &mut [f32], scale: f32) {
        let groups = row.len().div_ceil(GROUP);
        let (magnitudes, masks) = bytes_of(row).split_at_mut(groups * GROUP);
        // At most 127 each, so that 32 bits hold the sum of as many as a product may have.
        let mut negative = 0;
        let (chunks, rest) = magnitudes.as_chunks_mut::<CHUNK>();
        let (mask_chunks, mask_rest) = masks[..groups * GROUP].as_chunks_mut::<CHUNK>();
        for (bytes, masks) in chunks.iter_mut().zip(mask_chunks) {
            negative += split(bytes, masks);
        }
        negative += split(rest, mask_rest);
        row[2 * groups] = scale;
        row[2 * groups + 1] = f32::from_bits(negative);
    }

    #[inline(always)]
    fn scale_place(groups: usize) -> usize {
        2 * groups
    }

    #[inline(always)]
    fn correction(row: &[f32], groups: usize) -> i32 {
        row[2 * groups + 1].to_bits() as i32
    }

    /// 2 rows of 16 columns take 8 of the 16 registers, 3 would leave too few for what is on the
    /// way. Panels are taken in turn.
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
        ahead: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R] {
        let mut sums = [[[0; PANEL]; Q]; R];
        for q in 0..Q {
            // SAFETY: the caller says that the processor has the instructions.
            let panel = unsafe { tile(x, panels[q], ahead[q]) };
            for r in 0..R {
                sums[r][q] = panel[r];
            }
        }
        sums
    }
}

/// Bytes whose sum fits into 16 bits, by which the compiler makes vectors of it.
const CHUNK: usize = 64;

/// Makes magnitudes of some integers, and masks of their signs; returns the sum of the magnitudes
/// of negative ones.
#[inline(always)]
fn split(bytes: &mut [u8], masks: &mut [u8]) -> u32 {
    let mut negative = 0_u16;
    for (byte, mask) in bytes.iter_mut().zip(masks) {
        let integer = *byte as i8;
        *mask = (integer >> 7) as u8;
        *byte = integer.unsigned_abs();
        negative += u16::from(*byte & *mask);
    }
    u32::from(negative)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn tile<const R: usize>(
    x: [&[f32]; R],
    panel: &[PanelGroup],
    ahead: &[PanelGroup],
) -> [[i32; PANEL]; R] {
    let groups = panel.len();
    let mut magnitudes: [&[f32]; R] = [&[]; R];
    let mut masks: [&[f32]; R] = [&[]; R];
    for r in 0..R {
        magnitudes[r] = &x[r][..groups];
        masks[r] = &x[r][groups..2 * groups];
    }
    let mut sums = [[_mm256_setzero_si256(); 2]; R];
    for start in (0..groups).step_by(NARROW_GROUPS) {
        // Sums of pairs, wrapped around, and of their upper bytes.
        let mut low = [[_mm256_setzero_si256(); 2]; R];
        let mut high = [[_mm256_setzero_si256(); 2]; R];
        for place in start..groups.min(start + NARROW_GROUPS) {
            // SAFETY: `place < groups`, the length of all these slices. A group has the 64 bytes
            // that are read, of any alignment. PERF: with checks the loop has twice the
            // instructions.
            let weights = unsafe {
                let group = panel.get_unchecked(place).0.as_ptr().cast::<__m256i>();
                [_mm256_loadu_si256(group), _mm256_loadu_si256(group.add(1))]
            };
            palmette_mapped::prefetch(ahead, place);
            for r in 0..R {
                // SAFETY: as above. PERF: as floats, which are loaded into all lanes at once;
                // integers go through another register.
                let (magnitudes, mask) = unsafe {
                    let magnitudes = _mm256_broadcast_ss(magnitudes[r].get_unchecked(place));
                    let mask = _mm256_broadcast_ss(masks[r].get_unchecked(place));
                    (_mm256_castps_si256(magnitudes), _mm256_castps_si256(mask))
                };
                for v in 0..2 {
                    let turned = _mm256_xor_si256(weights[v], mask);
                    let pairs = _mm256_maddubs_epi16(magnitudes, turned);
                    low[r][v] = _mm256_add_epi16(low[r][v], pairs);
                    high[r][v] = _mm256_add_epi16(high[r][v], _mm256_srai_epi16::<8>(pairs));
                }
            }
        }
        for r in 0..R {
            for v in 0..2 {
                sums[r][v] = _mm256_add_epi32(sums[r][v], widened(low[r][v], high[r][v]));
            }
        }
    }
    let mut out = [[0; PANEL]; R];
    for r in 0..R {
        for v in 0..2 {
            let place = out[r][v * PANEL / 2..].as_mut_ptr().cast::<__m256i>();
            // SAFETY: each half of the array has the 32 bytes that are written, of any alignment.
            unsafe { _mm256_storeu_si256(place, sums[r][v]) };
        }
    }
    out
}

/// The sums of a column's two halves, by their sums in 16 bits, wrapped around, and those of the
/// upper bytes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn widened(low: __m256i, high: __m256i) -> __m256i {
    // Sums of lower bytes, from 0 to 65,535, taken 32,768 lower as signed numbers.
    let lower = _mm256_sub_epi16(low, _mm256_slli_epi16::<8>(high));
    let lower = _mm256_xor_si256(lower, _mm256_set1_epi16(i16::MIN));
    let lower = _mm256_madd_epi16(lower, _mm256_set1_epi16(1));
    let upper = _mm256_madd_epi16(high, _mm256_set1_epi16(256));
    let both = _mm256_add_epi32(lower, upper);
    _mm256_add_epi32(both, _mm256_set1_epi32(2 * 32_768))
}

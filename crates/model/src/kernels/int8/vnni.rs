//! Sums by AVX-512 VNNI, which multiplies unsigned bytes by signed ones: left sides are 128 higher.

use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use super::portable::raise;
use super::product::{PanelGroup, Product, Sums};
use crate::kernels::panels::PANEL;

struct Vnni;

/// A product by AVX-512 VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn run<const M: usize>(product: Product<'_, M>) {
    product.run::<Vnni>();
}

impl Sums for Vnni {
    const IS_RAISED: bool = true;
    const TAKES_PANELS_IN_TURN: bool = false;

    #[inline(always)]
    fn encode(row: &mut [f32], scale: f32) {
        raise(row, scale);
    }

    /// 24 sums of 16 columns in the 32 registers.
    #[inline(always)]
    fn cover<const M: usize, const Q: usize>(
        product: &mut Product<'_, M>,
        places: [(usize, usize); Q],
    ) {
        let row = product.tiles::<Self, 12, Q>(0, places);
        let row = product.tiles::<Self, 8, Q>(row, places);
        let row = product.tiles::<Self, 4, Q>(row, places);
        product.tiles::<Self, 1, Q>(row, places);
    }

    #[inline(always)]
    unsafe fn tile<const R: usize, const Q: usize>(
        x: [&[f32]; R],
        panels: [&[PanelGroup]; Q],
        ahead: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R] {
        // SAFETY: the caller says that the processor has the instructions.
        unsafe { tile(x, panels, ahead[0]) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile<const R: usize, const Q: usize>(
    x: [&[f32]; R],
    panels: [&[PanelGroup]; Q],
    ahead: &[PanelGroup],
) -> [[[i32; PANEL]; Q]; R] {
    let mut values = [[_mm512_setzero_si512(); Q]; R];
    'sums: for place in 0..panels[0].len() {
        let mut b = [_mm512_setzero_si512(); Q];
        for q in 0..Q {
            // Never taken: panels are of one length.
            let Some(group) = panels[q].get(place) else { break 'sums };
            // SAFETY: a group has the 64 bytes that are read, of any alignment.
            b[q] = unsafe { _mm512_loadu_si512(group.0.as_ptr().cast::<__m512i>()) };
        }
        palmette_mapped::prefetch(ahead, place);
        for r in 0..R {
            // Never taken: a row has more values than groups.
            let Some(four) = x[r].get(place) else { break 'sums };
            let four = _mm512_set1_epi32(four.to_bits() as i32);
            for q in 0..Q {
                values[r][q] = _mm512_dpbusd_epi32(values[r][q], four, b[q]);
            }
        }
    }
    let mut sums = [[[0; PANEL]; Q]; R];
    for r in 0..R {
        for q in 0..Q {
            // SAFETY: the array has the 64 bytes that are written, of any alignment.
            unsafe {
                _mm512_storeu_si512(sums[r][q].as_mut_ptr().cast::<__m512i>(), values[r][q]);
            }
        }
    }
    sums
}

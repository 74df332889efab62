//! Sums by plain code, which the compiler makes vectors of as it can.

use super::product::{GROUP, PanelGroup, Product, Sums, bytes_of};
use crate::kernels::panels::PANEL;

pub(super) struct Portable;

impl Sums for Portable {
    const IS_RAISED: bool = true;
    const TAKES_PANELS_IN_TURN: bool = false;

    #[inline(always)]
    fn encode(row: &mut [f32], scale: f32) {
        raise(row, scale);
    }

    #[inline(always)]
    fn cover<const M: usize, const Q: usize>(
        product: &mut Product<'_, M>,
        places: [(usize, usize); Q],
    ) {
        product.tiles::<Self, 1, Q>(0, places);
    }

    #[inline(always)]
    unsafe fn tile<const R: usize, const Q: usize>(
        x: [&[f32]; R],
        panels: [&[PanelGroup]; Q],
        _: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R] {
        let mut sums = [[[0; PANEL]; Q]; R];
        for r in 0..R {
            for q in 0..Q {
                for (group, value) in panels[q].iter().zip(x[r]) {
                    let x: [u8; GROUP] = bytemuck::cast(*value);
                    for lane in 0..PANEL {
                        for place in 0..GROUP {
                            let (x, weight) = (x[place], group.0[lane * GROUP + place]);
                            sums[r][q][lane] += i32::from(x) * i32::from(weight);
                        }
                    }
                }
            }
        }
        sums
    }
}

/// Adds 128 to a row's integers, and puts its scale behind them.
#[inline(always)]
pub(super) fn raise(row: &mut [f32], scale: f32) {
    let depth = row.len();
    bytes_of(row)[..depth].iter_mut().for_each(|byte| *byte ^= 128);
    row[depth.div_ceil(GROUP)] = scale;
}

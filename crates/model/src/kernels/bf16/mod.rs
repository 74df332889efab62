//! Products whose two sides are rounded to bfloat16 as they come, with sums in f32.
//!
//! # What is computed
//! Values are rounded to the nearest bfloat16, of two to the even one; those below the smallest
//! normal number, and sums that come to less, are 0. Along `k` there are blocks of 32 places, the
//! last one filled up with zeros. Within a block two chains `fma(x[i, k], B[k, j], chain)` begin at
//! 0, one over its even places and one over its odd ones; then both are added, and what they come
//! to is added to the running value, which begins at 0 or at what `out` held.
//!
//! So an element depends neither on other rows and columns nor on the processor: this is what
//! `tdpbf16ps` of AMX does, and plain code does the same, only too slowly to be offered
//! ([`is_fast`]). Next to sums in f32 an element is off by up to 2⁻⁸ of the sum of its products'
//! magnitudes, mostly much less.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod amx;
mod portable;

use super::panels::{Panels, RowsMut, RowsRef};

/// Places along `k` that are summed before they are added to an element.
pub(crate) const BLOCK: usize = 32;

/// True on processors that have instructions for these products.
pub(crate) fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return amx::is_here();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// `out = x · b`, or added to what `out` holds.
pub(crate) fn multiply_bf16(out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_>, add: bool) {
    #[cfg(target_arch = "x86_64")]
    if b.depth() > 0 && amx::is_here() {
        // SAFETY: `is_here` has asked the processor and the system for all that it takes.
        return unsafe { amx::multiply(out, x, b, add) };
    }
    portable::multiply(out, x, b, add);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::kernels::panels::{PANEL, PackedMatrix, PanelRow};

    /// Numbers of either sign, times powers of two up to `spread` each way.
    fn values(count: usize, seed: u32, spread: i32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut step = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut value = || {
            let exponent = step() as i32 % (2 * spread + 1) - spread;
            (step() as f32 / (1 << 23) as f32 - 1.0) * 2.0_f32.powi(exponent)
        };
        (0..count).map(|_| value()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// To the bit, for any shape, magnitudes whose products are no normal numbers among them.
        #[test]
        fn the_processor_has_the_bits_of_plain_code(
            rows in 1_usize..70, depth in prop_oneof![1_usize..80, 250_usize..600],
            columns in 1_usize..70, step in 1_usize..3, add: bool, seed: u32,
            spread in prop_oneof![Just(2), Just(20), Just(60), Just(125)],
        ) {
            let x = values(rows * (depth + 3), seed, spread);
            let data: Vec<PanelRow> = values(columns.div_ceil(PANEL) * depth * step * PANEL, !seed, spread)
                .as_chunks().0.to_vec();
            let b = Panels::new(&data, (depth * step, step), depth, columns);
            let x = RowsRef { data: &x, rows, stride: depth + 3 };
            let before = values(rows * (columns + 2), seed ^ 5, spread);
            let of = |multiply: fn(RowsMut<'_>, RowsRef<'_>, Panels<'_>, bool)| {
                let mut out = before.clone();
                multiply(RowsMut { data: &mut out, stride: columns + 2 }, x, b, add);
                out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            prop_assert!(of(multiply_bf16) == of(portable::multiply));
        }
    }

    #[test]
    fn sums_are_as_near_as_is_said() {
        let (rows, depth, columns) = (5, 777, 20);
        let (x, right) = (values(rows * depth, 1, 2), values(columns * depth, 2, 2));
        let packed = PackedMatrix::transposed(&right, depth);
        let mut out = vec![0.0; rows * columns];
        let to = RowsMut { data: &mut out, stride: columns };
        multiply_bf16(to, RowsRef { data: &x, rows, stride: depth }, packed.view(), false);
        for (place, &got) in out.iter().enumerate() {
            let (x, b) = (&x[place / columns * depth..], &right[place % columns * depth..]);
            let products = (0..depth).map(|k| f64::from(x[k]) * f64::from(b[k]));
            let exact: f64 = products.clone().sum();
            let most = products.map(f64::abs).sum::<f64>() / 256.0;
            assert!((f64::from(got) - exact).abs() < most, "{got} for {exact}");
        }
    }

    #[test]
    fn it_is_said_where_only_plain_code_was_checked() {
        if !is_fast() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no AMX for bfloat16 here");
        }
    }
}

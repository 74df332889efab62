//! Matrices of 8-bit integers, and products of rows with them.
//!
//! # What is computed
//! A column `j` of weights is `s_j · q_kj` with integers `q` from −127 to 127 and `s_j` its largest
//! magnitude over 127; a row `i` of the left side likewise, `t_i · p_ik`, when it comes to a
//! product. Element `(i, j)` is then `(t_i · s_j) · Σ_k p_ik q_kj`, the sum exact. So it does not
//! depend on other rows, on how the work is divided, or on the processor's instructions. There is
//! one file for each set of those ([`Kernel`]), and plain code for processors that have none of
//! them.
//!
//! Left sides are rounded where they lie: what a row held is lost, which spares a second buffer. In
//! which form its integers lie there is the kernel's own affair ([`Sums::encode`]). Weights lie in
//! one form, which all of them read: `amx.rs` says why it is one of tiles too.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernel;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod product;
#[cfg(target_arch = "x86_64")]
mod vnni;

use self::kernel::Kernel;
use self::portable::Portable;
use self::product::{Product, Sink};
use super::activation::Activation;
use super::panels::{PackedMatrix, RowsMut};

pub use self::kernel::Int8Kernel;
pub use self::product::{Int8Matrix, round_to_int8};

impl Int8Matrix {
    /// Rounds the transpose of a row-major matrix: `rows` is `[n, k]`, as weights are stored, and
    /// `k` is `depth`. `None` where it is too small or too large for it.
    ///
    /// # Panics
    /// When `depth` is 0, or `rows` is not whole rows.
    pub fn transposed(rows: &[f32], depth: usize) -> Option<Self> {
        Self::rounded(&PackedMatrix::transposed(rows, depth))
    }

    /// `out += x · self`: `x` `[rows, k]`, `out` `[rows, n]`, row-major. `x` is rounded in place.
    ///
    /// # Panics
    /// When `out` is shorter than its rows.
    pub fn multiply_add(&self, out: &mut [f32], x: &mut [f32]) {
        self.multiply(RowsMut { data: out, stride: self.num_columns() }, x, true);
    }

    /// `out = x · self`, or added to what `out` holds. `x` is `[rows, k]` and is rounded in place.
    pub(crate) fn multiply(&self, out: RowsMut<'_>, x: &mut [f32], add: bool) {
        run(Product { out, x, right: [self], sink: if add { Sink::Add } else { Sink::Replace } });
    }
}

/// `out = activation(x · gate) · (x · up)`, element by element. `x` is `[rows, k]` and is rounded
/// in place.
pub(crate) fn multiply_gated_int8(
    out: RowsMut<'_>,
    x: &mut [f32],
    gate: &Int8Matrix,
    up: &Int8Matrix,
    activation: Activation,
) {
    assert_eq!(
        (gate.depth(), gate.num_columns()),
        (up.depth(), up.num_columns()),
        "gate and up differ in shape"
    );
    run(Product { out, x, right: [gate, up], sink: Sink::Gated(activation) });
}

fn run<const M: usize>(product: Product<'_, M>) {
    run_by(product.right[0].kernel().0, product);
}

/// Multiplies by a kernel of [`Kernel::all_here`].
fn run_by<const M: usize>(kernel: Kernel, product: Product<'_, M>) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 if avx2::fits(product.right[0].depth()) => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled
            // for.
            unsafe { avx2::run(product) }
        }
        #[cfg(target_arch = "x86_64")]
        Kernel::Vnni | Kernel::Amx => {
            let mut product = product;
            // SAFETY: `Kernel::all_here` has asked the processor for what the functions are
            // compiled for, and for tiles where there is to be AMX.
            unsafe {
                if kernel == Kernel::Amx && amx::run(&mut product) {
                    return;
                }
                vnni::run(product);
            }
        }
        #[cfg(target_arch = "aarch64")]
        Kernel::Neon => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled
            // for.
            unsafe { neon::run(product) }
        }
        #[cfg(target_arch = "aarch64")]
        Kernel::NeonDot => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled
            // for.
            unsafe { neon::run_dot(product) }
        }
        // Too few rows for the form in which AVX2 takes its left sides count as well.
        _ => product.run::<Portable>(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::activation::{gelu_tanh, silu};
    use super::*;

    fn values(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let step = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(step).collect()
    }

    /// The definition: a vector's integers, and what one stands for.
    fn integers(values: &[f32]) -> (Vec<i64>, f32) {
        let most = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        if most == 0.0 {
            return (vec![0; values.len()], 0.0);
        }
        let inverse = 127.0 / most;
        let integer = |value: &f32| (value * inverse).round_ties_even() as i64;
        (values.iter().map(integer).collect(), most / 127.0)
    }

    fn element(x: &[f32], weight: &[f32]) -> f32 {
        product_of(&integers(x), &integers(weight))
    }

    fn product_of((p, t): &(Vec<i64>, f32), (q, s): &(Vec<i64>, f32)) -> f32 {
        let sum: i64 = p.iter().zip(q).map(|(p, q)| p * q).sum();
        sum as f32 * (t * s)
    }

    fn matrix(weight: &[f32], depth: usize) -> Int8Matrix {
        Int8Matrix::rounded(&PackedMatrix::transposed(weight, depth)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// To the bit, for any shape: so no row depends on how many there are. By every kernel that
        /// there is here.
        #[test]
        fn products_are_sums_of_integers(
            rows in 0_usize..70, depth in prop_oneof![2_usize..70, 47_usize..200],
            columns in 1_usize..70, sink in 0..4, kernel: prop::sample::Selector, seed: u32,
        ) {
            let kernel = kernel.select(Kernel::all_here());
            let (x, stride) = (values(rows * depth, seed), columns + 3);
            let [one, two] = [1, 2].map(|n| values(columns * depth, seed ^ n));
            let before = values(rows * stride, seed ^ 7);
            let (mut out, mut rounded) = (before.clone(), x.clone());
            let (gate, up) = (matrix(&one, depth), matrix(&two, depth));
            let (to, x_mut) = (RowsMut { data: &mut out, stride }, &mut rounded[..]);
            let activation = if sink == 2 { Activation::Silu } else { Activation::GeluTanh };
            match sink {
                0 => run_by(kernel, Product { out: to, x: x_mut, right: [&gate], sink: Sink::Replace }),
                1 => run_by(kernel, Product { out: to, x: x_mut, right: [&gate], sink: Sink::Add }),
                _ => {
                    let sink = Sink::Gated(activation);
                    run_by(kernel, Product { out: to, x: x_mut, right: [&gate, &up], sink });
                }
            }
            let of_rows = |all: &[f32]| -> Vec<_> { all.chunks_exact(depth).map(integers).collect() };
            let (x, one, two) = (of_rows(&x), of_rows(&one), of_rows(&two));
            for row in 0..rows {
                for place in 0..stride {
                    let held = before[row * stride + place];
                    let at = |columns: &[_]| product_of(&x[row], &columns[place]);
                    let want = match sink {
                        _ if place >= columns => held,
                        0 => at(&one),
                        1 => held + at(&one),
                        2 => silu(at(&one)) * at(&two),
                        _ => gelu_tanh(at(&one)) * at(&two),
                    };
                    prop_assert_eq!(out[row * stride + place].to_bits(), want.to_bits());
                }
            }
        }
    }

    #[test]
    fn it_is_near_the_product_of_what_was_rounded() {
        let (rows, depth, columns) = (5, 96, 40);
        let (x, weight) = (values(rows * depth, 1), values(columns * depth, 2));
        let mut out = vec![0.0; rows * columns];
        let to = RowsMut { data: &mut out, stride: columns };
        matrix(&weight, depth).multiply(to, &mut x.clone(), false);
        for (place, &got) in out.iter().enumerate() {
            let (x, weight) = (&x[place / columns * depth..], &weight[place % columns * depth..]);
            let exact: f64 = (0..depth).map(|k| f64::from(x[k]) * f64::from(weight[k])).sum();
            // Each of 96 terms is off by at most 0.5 · 0.002 · 2, mostly much less.
            assert!((f64::from(got) - exact).abs() < 0.02, "{got} for {exact}");
        }
    }

    #[test]
    fn rows_of_zeros_and_rows_without_numbers() {
        let weight = matrix(&values(20 * 6, 5), 6);
        for (fill, is_zero) in [(0.0, true), (f32::NAN, false), (f32::INFINITY, false)] {
            let mut x = vec![0.25; 6];
            x[3] = fill;
            if is_zero {
                x.fill(0.0);
            }
            let mut out = vec![1.0; 20];
            weight.multiply(RowsMut { data: &mut out, stride: 20 }, &mut x, false);
            assert!(
                out.iter().all(|&v| if is_zero { v == 0.0 } else { !v.is_finite() }),
                "{out:?}"
            );
        }
        // So small that 127 of them would overflow.
        let mut x = vec![1e-45; 6];
        let mut out = vec![1.0; 20];
        weight.multiply(RowsMut { data: &mut out, stride: 20 }, &mut x, false);
        assert!(out.iter().all(|&v| v == 0.0), "{out:?}");
    }

    /// All integers at their ends, of either sign, over depths beyond what 16 bits sum up: by every
    /// kernel.
    #[test]
    fn the_largest_sums_are_exact() {
        // Enough rows for tiles.
        let (rows, columns) = (7, 18);
        for depth in [1023, 1024, 1028, 4100, Int8Matrix::MAX_DEPTH] {
            let sign = |k: usize, by: usize| if (k / by).is_multiple_of(2) { 1.0 } else { -1.0 };
            for (by_x, by_weight) in [(depth, depth), (1, 1), (1, depth), (depth, 1), (2, 3)] {
                let x: Vec<f32> = (0..rows * depth).map(|k| sign(k % depth, by_x)).collect();
                let column: Vec<f32> = (0..depth).map(|k| sign(k, by_weight)).collect();
                let weight: Vec<f32> = (0..columns)
                    .flat_map(|j| column.iter().map(move |value| value * sign(j, 1)))
                    .collect();
                let matrix = matrix(&weight, depth);
                let want = [0, 1].map(|j| element(&x[..depth], &weight[j * depth..][..depth]));
                for kernel in Kernel::all_here() {
                    let (mut out, mut rounded) = (vec![0.0; rows * columns], x.clone());
                    let to = RowsMut { data: &mut out, stride: columns };
                    let right = [&matrix];
                    run_by(
                        kernel,
                        Product { out: to, x: &mut rounded, right, sink: Sink::Replace },
                    );
                    for (place, &got) in out.iter().enumerate() {
                        let want = want[place % columns % 2];
                        assert_eq!(got.to_bits(), want.to_bits(), "{kernel:?}, {depth} rows");
                    }
                }
            }
        }
    }

    #[test]
    fn depths_that_cannot_be_are_left_to_others() {
        let of =
            |depth: usize| Int8Matrix::rounded(&PackedMatrix::transposed(&vec![1.0; depth], depth));
        assert!(of(1).is_none() && of(Int8Matrix::MAX_DEPTH + 1).is_none());
        let depth = Int8Matrix::MAX_DEPTH;
        let mut out = [0.0];
        let mut x = vec![1.0; depth];
        of(depth).unwrap().multiply(RowsMut { data: &mut out, stride: 1 }, &mut x, false);
        assert!((out[0] / depth as f32 - 1.0).abs() < 1e-5, "{out:?}");
        assert_eq!(matrix(&values(37 * 5, 3), 5).num_values(), 37 * 5);
    }
}

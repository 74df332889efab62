//! Matrices of 8-bit integers, and products of rows with them.
//!
//! # What is computed
//! A column `j` of weights is `s_j · q_kj` with integers `q` from −127 to 127 and `s_j` its largest magnitude over 127;
//! a row `i` of the left side likewise, `t_i · p_ik`, when it comes to a product. Element `(i, j)` is then
//! `(t_i · s_j) · Σ_k p_ik q_kj`, the sum exact. So it does not depend on other rows, on how the work is divided, or on
//! the processor's instructions. There is one file for each set of those ([`Kernel`]), and plain code for processors that
//! have none of them.
//!
//! Left sides are rounded where they lie: what a row held is lost, which spares a second buffer. In which form its
//! integers lie there is the kernel's own affair ([`Sums::encode`]).
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vnni;

use self::portable::Portable;
use super::activation::{Activation, gelu_tanh, relu, silu};
use super::panels::{PANEL, PackedMatrix, PanelRow, RowsMut, Stored};

/// Values along `k` that are multiplied and added in one step.
const GROUP: usize = 4;

/// Four rows of a panel: each column's four values side by side.
type PanelGroup = [i8; PANEL * GROUP];

/// A matrix `[k, n]` of integers in panels, `[⌈n / 16⌉, ⌈k / 4⌉, 16, 4]`, and a scale for each column.
#[derive(Clone, Debug)]
pub(crate) struct Int8Matrix {
    /// Places past `n` and `k` hold 0.
    data: Vec<PanelGroup>,
    /// Scale of a column: the value that its integer 1 stands for.
    scales: Vec<PanelRow>,
    /// 128 times the sum of a column's integers: what is too much in a product by a kernel that takes left sides 128 higher.
    excess: Vec<[i32; PANEL]>,
    depth: usize,
    columns: usize,
}

impl Int8Matrix {
    /// Fewest rows: a rounded row of the left side has its scale behind its integers.
    const MIN_DEPTH: usize = 2;

    /// Largest number of rows: a longer sum could exceed 32 bits.
    const MAX_DEPTH: usize = (i32::MAX / (255 * 127)) as usize;

    /// Rounds a matrix. `None` where it has too few or too many rows for it.
    pub(crate) fn rounded<W: Stored>(matrix: &PackedMatrix<W>) -> Option<Self> {
        let (depth, columns) = (matrix.depth(), matrix.num_columns());
        if !(Self::MIN_DEPTH..=Self::MAX_DEPTH).contains(&depth) {
            return None;
        }
        let (panels, groups) = (columns.div_ceil(PANEL), depth.div_ceil(GROUP));
        let mut rounded = Self {
            data: vec![[0; PANEL * GROUP]; panels * groups],
            scales: vec![[0.0; PANEL]; panels],
            excess: vec![[0; PANEL]; panels],
            depth,
            columns,
        };
        let mut column = vec![0.0; depth];
        for j in 0..columns {
            let (panel, lane) = (j / PANEL, j % PANEL);
            matrix.copy_column(j, &mut column);
            let (scale, inverse) = scale_of(&column);
            rounded.scales[panel][lane] = scale;
            for (k, &value) in column.iter().enumerate() {
                let integer = low_byte(value, inverse) as i8;
                let group = &mut rounded.data[panel * groups + k / GROUP];
                group[lane * GROUP + k % GROUP] = integer;
                rounded.excess[panel][lane] += 128 * i32::from(integer);
            }
        }
        Some(rounded)
    }

    /// Values of the matrix, without those that fill panels.
    pub(crate) fn num_values(&self) -> usize {
        self.depth * self.columns
    }

    /// k
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.data) + size_of_val(&*self.scales) + size_of_val(&*self.excess)
    }

    /// `out = x · self`, or added to what `out` holds. `x` is `[rows, k]` and is rounded in place.
    pub(crate) fn multiply(&self, out: RowsMut<'_>, x: &mut [f32], add: bool) {
        run(Product { out, x, right: [self], sink: if add { Sink::Add } else { Sink::Replace } });
    }
}

/// `out = activation(x · gate) · (x · up)`, element by element. `x` is `[rows, k]` and is rounded in place.
pub(crate) fn multiply_gated_int8(
    out: RowsMut<'_>,
    x: &mut [f32],
    gate: &Int8Matrix,
    up: &Int8Matrix,
    activation: Activation,
) {
    assert_eq!((gate.depth, gate.columns), (up.depth, up.columns), "gate and up differ in shape");
    run(Product { out, x, right: [gate, up], sink: Sink::Gated(activation) });
}

/// Destination of a product's values.
#[derive(Clone, Copy)]
enum Sink {
    Replace,
    Add,
    /// Gated product of two matrices: one's values gate the other's.
    Gated(Activation),
}

/// Rows times one matrix, or two of the same shape.
struct Product<'a, const M: usize> {
    out: RowsMut<'a>,
    x: &'a mut [f32],
    right: [&'a Int8Matrix; M],
    sink: Sink,
}

/// The instructions that sums are computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Plain code; several times slower than products in f32.
    Portable,
    /// AVX2: products of bytes, summed in halves of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 VNNI: four products of bytes are added to 32 bits in one instruction.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// NEON, as every 64-bit ARM processor has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// NEON's dot products of four bytes (`FEAT_DotProd`).
    #[cfg(target_arch = "aarch64")]
    NeonDot,
}

impl Kernel {
    /// The fastest that this processor has.
    pub(crate) fn here() -> Self {
        Self::all_here().last().unwrap_or(Self::Portable)
    }

    /// Kernels that this processor has, the fastest last.
    fn all_here() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let others = [
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"), Self::Avx2),
            (
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni"),
                Self::Vnni,
            ),
        ];
        #[cfg(target_arch = "aarch64")]
        let others = [
            (std::arch::is_aarch64_feature_detected!("neon"), Self::Neon),
            (std::arch::is_aarch64_feature_detected!("dotprod"), Self::NeonDot),
        ];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let others: [(bool, Self); 0] = [];
        let others = others.into_iter().filter_map(|(is_here, kernel)| is_here.then_some(kernel));
        [Self::Portable].into_iter().chain(others)
    }
}

/// True on processors that have instructions with which products take no longer than in f32.
///
/// Plain NEON makes two instructions of what the dot products of later processors do in one for four times as many
/// values: no more than in f32.
pub(crate) fn is_fast() -> bool {
    match Kernel::here() {
        Kernel::Portable => false,
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Vnni => true,
        #[cfg(target_arch = "aarch64")]
        Kernel::Neon => false,
        #[cfg(target_arch = "aarch64")]
        Kernel::NeonDot => true,
    }
}

fn run<const M: usize>(product: Product<'_, M>) {
    run_by(Kernel::here(), product);
}

/// Multiplies by a kernel of [`Kernel::all_here`].
fn run_by<const M: usize>(kernel: Kernel, product: Product<'_, M>) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 if avx2::fits(product.right[0].depth) => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled for.
            unsafe { avx2::run(product) }
        }
        #[cfg(target_arch = "x86_64")]
        Kernel::Vnni => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled for.
            unsafe { vnni::run(product) }
        }
        #[cfg(target_arch = "aarch64")]
        Kernel::Neon => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled for.
            unsafe { neon::run(product) }
        }
        #[cfg(target_arch = "aarch64")]
        Kernel::NeonDot => {
            // SAFETY: `Kernel::all_here` has asked the processor for what the function is compiled for.
            unsafe { neon::run_dot(product) }
        }
        // Too few rows for the form in which AVX2 takes its left sides count as well.
        _ => product.run::<Portable>(),
    }
}

/// A way to compute a tile's sums: of R rows of `x`, `[R, k]` encoded, and Q panels of `groups` groups each.
trait Sums {
    /// True where left sides are stored 128 higher, so that sums are too large by [`Int8Matrix::excess`].
    const IS_RAISED: bool;

    /// True where a tile's panels are summed one after another. Then tiles are of four panels where there are so many, so
    /// that rows stay in the nearest cache, and the first one fetches all panels that come next.
    const TAKES_PANELS_IN_TURN: bool;

    /// Brings a row's integers, `k` bytes at its beginning, into the form in which [`tile`](Self::tile) takes them, and
    /// puts what an integer stands for at [`scale_place`](Self::scale_place).
    fn encode(row: &mut [f32], scale: f32);

    /// Place of a row's scale, behind the `groups` groups of its integers.
    fn scale_place(groups: usize) -> usize {
        groups
    }

    /// A number added to each sum of an encoded row.
    fn correction(_row: &[f32], _groups: usize) -> i32 {
        0
    }

    /// Covers all rows of a product at some panels, with tiles as large as sums fit into registers.
    fn cover<const M: usize, const Q: usize>(
        product: &mut Product<'_, M>,
        places: [(usize, usize); Q],
    ) where
        Self: Sized;

    /// # Safety
    /// The processor must have the instructions that the implementation is compiled for.
    unsafe fn tile<const R: usize, const Q: usize>(
        x: [&[f32]; R],
        panels: [&[PanelGroup]; Q],
        ahead: [&[PanelGroup]; Q],
    ) -> [[[i32; PANEL]; Q]; R];
}

impl<const M: usize> Product<'_, M> {
    #[inline(always)]
    fn run<S: Sums>(mut self) {
        let depth = self.right[0].depth;
        for row in self.x.chunks_exact_mut(depth) {
            let scale = round_row(row);
            S::encode(row, scale);
        }
        let panels = self.right[0].scales.len();
        if M == 2 {
            for panel in 0..panels {
                S::cover(&mut self, [(0, panel), (M - 1, panel)]);
            }
            return;
        }
        let mut first = 0;
        if S::TAKES_PANELS_IN_TURN {
            while first + 4 <= panels {
                S::cover(&mut self, [0, 1, 2, 3].map(|panel| (0, first + panel)));
                first += 4;
            }
        }
        while first + 2 <= panels {
            S::cover(&mut self, [(0, first), (0, first + 1)]);
            first += 2;
        }
        if first < panels {
            S::cover(&mut self, [(0, first)]);
        }
    }

    /// Computes tiles of R rows from `row` on; returns the first row of a smaller rest.
    #[inline(always)]
    fn tiles<S: Sums, const R: usize, const Q: usize>(
        &mut self,
        mut row: usize,
        places: [(usize, usize); Q],
    ) -> usize {
        let depth = self.right[0].depth;
        let groups = depth.div_ceil(GROUP);
        let rows = self.x.len() / depth;
        let mut panels: [&[PanelGroup]; Q] = [&[]; Q];
        let mut next: [&[PanelGroup]; Q] = [&[]; Q];
        for q in 0..Q {
            let (matrix, panel) = places[q];
            let data = &self.right[matrix].data;
            panels[q] = &data[panel * groups..][..groups];
            // Of one matrix the next two panels come after both of these, of two each one's next.
            let after = if M == 2 { panel + 1 } else { panel + Q };
            next[q] = data.get(after * groups..).unwrap_or_default();
        }
        while row + R <= rows {
            let mut x: [&[f32]; R] = [&[]; R];
            for r in 0..R {
                x[r] = &self.x[(row + r) * depth..][..depth];
            }
            let ahead = match (S::TAKES_PANELS_IN_TURN, row) {
                // Tiles fetch the panels that come next in turn.
                (false, _) => [next[row / R % Q]; Q],
                // The first one fetches them all.
                (true, 0) => next,
                (true, _) => [&[][..]; Q],
            };
            // SAFETY: `run` chose `S` by what the processor has.
            let sums = unsafe { S::tile::<R, Q>(x, panels, ahead) };
            for r in 0..R {
                self.finish::<S, Q>(row + r, &sums[r], places);
            }
            row += R;
        }
        row
    }

    /// Brings a row's sums into `out`.
    #[inline(always)]
    fn finish<S: Sums, const Q: usize>(
        &mut self,
        row: usize,
        sums: &[[i32; PANEL]; Q],
        places: [(usize, usize); Q],
    ) {
        let depth = self.right[0].depth;
        let (x, groups) = (&self.x[row * depth..][..depth], depth.div_ceil(GROUP));
        let (row_scale, correction) = (x[S::scale_place(groups)], S::correction(x, groups));
        let mut values = [[0.0; PANEL]; Q];
        for q in 0..Q {
            let (matrix, panel) = places[q];
            let (scales, excess) =
                (&self.right[matrix].scales[panel], &self.right[matrix].excess[panel]);
            for lane in 0..PANEL {
                let off = if S::IS_RAISED { -excess[lane] } else { correction };
                let sum = sums[q][lane].wrapping_add(off);
                values[q][lane] = sum as f32 * (row_scale * scales[lane]);
            }
        }
        let columns = self.right[0].columns;
        let RowsMut { data, stride } = &mut self.out;
        let out = &mut data[row * *stride..][..columns];
        if let (Sink::Gated(activation), [gate, .., up]) = (self.sink, &values[..]) {
            let mut gated = [0.0; PANEL];
            match activation {
                Activation::Silu => {
                    for lane in 0..PANEL {
                        gated[lane] = silu(gate[lane]) * up[lane];
                    }
                }
                Activation::GeluTanh => {
                    for lane in 0..PANEL {
                        gated[lane] = gelu_tanh(gate[lane]) * up[lane];
                    }
                }
                Activation::Relu => {
                    for lane in 0..PANEL {
                        gated[lane] = relu(gate[lane]) * up[lane];
                    }
                }
            }
            let out = of_panel(out, places[0].1);
            out.copy_from_slice(&gated[..out.len()]);
            return;
        }
        for q in 0..Q {
            let out = of_panel(out, places[q].1);
            match self.sink {
                Sink::Add => out.iter_mut().zip(&values[q]).for_each(|(out, value)| *out += value),
                _ => out.copy_from_slice(&values[q][..out.len()]),
            }
        }
    }
}

/// The values of a row that belong to a panel.
#[inline(always)]
fn of_panel(row: &mut [f32], panel: usize) -> &mut [f32] {
    let start = panel * PANEL;
    let end = row.len().min(start + PANEL);
    &mut row[start..end]
}

/// Scale of integers whose largest magnitude is to be 127, and its inverse. NaN if a value is.
#[inline(always)]
fn scale_of(values: &[f32]) -> (f32, f32) {
    // As integers, magnitudes have their order, and NaN comes last.
    let magnitude = |value: &f32| value.to_bits() & 0x7fff_ffff;
    let (chunks, rest) = values.as_chunks::<PANEL>();
    let mut most = [0; PANEL];
    for chunk in chunks {
        for lane in 0..PANEL {
            most[lane] = most[lane].max(magnitude(&chunk[lane]));
        }
    }
    let most = rest.iter().map(magnitude).chain(most).fold(0, u32::max);
    let most = f32::from_bits(most);
    let scale = most / 127.0;
    // Values so small that their inverse is infinite are 0, with which they cannot do harm.
    let inverse = 127.0 / most;
    if inverse.is_infinite() { (0.0, 0.0) } else { (scale, inverse) }
}

/// The low byte of a value times `inverse`, rounded to the nearest integer, of two to the even one.
#[inline(always)]
fn low_byte(value: f32, inverse: f32) -> u8 {
    // Added to 1.5 · 2²³, a small number leaves its nearest integer in the lowest bits.
    (value * inverse + 12_582_912.0).to_bits() as u8
}

/// [`low_byte`] of each value.
#[inline(always)]
fn low_bytes(values: &PanelRow, inverse: f32) -> [u8; PANEL] {
    let mut bytes = [0; PANEL];
    for lane in 0..PANEL {
        bytes[lane] = low_byte(values[lane], inverse);
    }
    bytes
}

/// Rounds a row of `k` values where it lies: `k` bytes, each an integer, and zeros up to whole groups. Returns what an
/// integer stands for.
#[inline(always)]
fn round_row(row: &mut [f32]) -> f32 {
    let (scale, inverse) = scale_of(row);
    let depth = row.len();
    let mut start = 0;
    // Values are taken out first: bytes are written before the places that values are yet to be read from.
    while let Some(&values) = row[start..].first_chunk::<PANEL>() {
        let bytes: [u8; PANEL] = low_bytes(&values, inverse);
        let places: [f32; PANEL / GROUP] = bytemuck::cast(bytes);
        row[start / GROUP..][..PANEL / GROUP].copy_from_slice(&places);
        start += PANEL;
    }
    for place in start..depth {
        let byte = low_byte(row[place], inverse);
        bytes_of(row)[place] = byte;
    }
    bytes_of(row)[depth..depth.next_multiple_of(GROUP)].fill(0);
    scale
}

fn bytes_of(row: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(row)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let ((p, t), (q, s)) = (integers(x), integers(weight));
        let sum: i64 = p.iter().zip(&q).map(|(p, q)| p * q).sum();
        sum as f32 * (t * s)
    }

    fn matrix(weight: &[f32], depth: usize) -> Int8Matrix {
        Int8Matrix::rounded(&PackedMatrix::transposed(weight, depth)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// To the bit, for any shape: so no row depends on how many there are. By every kernel that there is here.
        #[test]
        fn products_are_sums_of_integers(
            rows in 0_usize..40, depth in 2_usize..70, columns in 1_usize..70,
            sink in 0..4, kernel: prop::sample::Selector, seed: u32,
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
            for row in 0..rows {
                for place in 0..stride {
                    let held = before[row * stride + place];
                    let at = |weight: &[f32]| element(
                        &x[row * depth..][..depth], &weight[place * depth..][..depth]
                    );
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

    /// All integers at their ends, of either sign, over depths beyond what 16 bits sum up: by every kernel.
    #[test]
    fn the_largest_sums_are_exact() {
        let columns = 18;
        for depth in [1023, 1024, 1028, 4100, Int8Matrix::MAX_DEPTH] {
            let sign = |k: usize, by: usize| if (k / by).is_multiple_of(2) { 1.0 } else { -1.0 };
            for (by_x, by_weight) in [(depth, depth), (1, 1), (1, depth), (depth, 1), (2, 3)] {
                let x: Vec<f32> = (0..2 * depth).map(|k| sign(k % depth, by_x)).collect();
                let column: Vec<f32> = (0..depth).map(|k| sign(k, by_weight)).collect();
                let weight: Vec<f32> = (0..columns)
                    .flat_map(|j| column.iter().map(move |value| value * sign(j, 1)))
                    .collect();
                let matrix = matrix(&weight, depth);
                for kernel in Kernel::all_here() {
                    let (mut out, mut rounded) = (vec![0.0; 2 * columns], x.clone());
                    let to = RowsMut { data: &mut out, stride: columns };
                    let right = [&matrix];
                    run_by(
                        kernel,
                        Product { out: to, x: &mut rounded, right, sink: Sink::Replace },
                    );
                    for (place, &got) in out.iter().enumerate() {
                        let want =
                            element(&x[..depth], &weight[place % columns * depth..][..depth]);
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

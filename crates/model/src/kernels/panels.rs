//! Matrices in panels of sixteen columns, and the products that inference makes with them.
//!
//! Columns `16 p .. 16 p + 16` of a matrix lie together as panel `p`, one row of the panel after
//! another, so that a product reads them in order and rearranges nothing. Weights are brought into
//! this form when they are loaded, keys and values when they are cached.
//!
//! # What is computed
//! Element `(i, j)` of `x · B` is the chain `fma(x[i, k−1], B[k−1, j], … fma(x[i, 0], B[0, j],
//! start))`, where `start` is 0 or what `out` held: one running value along `k`, rounded once a
//! step. So it does not depend on how many other rows or columns there are, on how the work is
//! divided, or on how wide the processor's vectors are. The `gemm` crate promises none of these,
//! and arranges both sides anew for each product.

use std::fmt::Debug;
use std::ops::Range;

use bytemuck::Pod;
use pulp::{Arch, Simd, WithSimd};

use super::activation::{Activation, Gate, GeluTanh, Relu, Silu};

/// Columns of a panel.
pub(crate) const PANEL: usize = 16;

/// One row of a panel.
pub(crate) type PanelRow<W = f32> = [W; PANEL];

/// A value in a place of a panel: an f32, or the bits of one that is kept shorter and read exactly.
pub(crate) trait Stored: Pod + Debug + Send + Sync {
    /// The value.
    fn value(self) -> f32;

    /// The values of a panel's row, V vectors.
    fn read<S: Simd, const V: usize>(simd: S, row: &PanelRow<Self>) -> [S::f32s; V];
}

impl Stored for f32 {
    #[inline(always)]
    fn value(self) -> f32 {
        self
    }

    #[inline(always)]
    fn read<S: Simd, const V: usize>(_: S, row: &PanelRow) -> [S::f32s; V] {
        bytemuck::cast(*row)
    }
}

/// The bits of a bfloat16, which are the upper half of the f32 of the same value.
pub(crate) type Bf16 = u16;

impl Stored for Bf16 {
    #[inline(always)]
    fn value(self) -> f32 {
        f32::from_bits(u32::from(self) << 16)
    }

    #[inline(always)]
    fn read<S: Simd, const V: usize>(_: S, row: &PanelRow<Self>) -> [S::f32s; V] {
        let mut values = [0.0; PANEL];
        for lane in 0..PANEL {
            values[lane] = row[lane].value();
        }
        bytemuck::cast(values)
    }
}

/// The bfloat16 nearest to a value, of two the even one.
pub(crate) fn to_bf16(value: f32) -> Bf16 {
    half::bf16::from_f32(value).to_bits()
}

/// A matrix `[k, n]` in panels, `[⌈n / 16⌉, k, 16]`; columns past `n` are 0. `W` is how a value is
/// kept.
#[derive(Clone, Debug)]
pub struct PackedMatrix<W = f32> {
    data: Vec<PanelRow<W>>,
    depth: usize,
    columns: usize,
}

/// A view of a matrix `[k, n]` in panels: row `r` of panel `p` is `data[p * panel_stride + r *
/// row_stride]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a, W = f32> {
    data: &'a [PanelRow<W>],
    panel_stride: usize,
    row_stride: usize,
    /// k
    depth: usize,
    /// Columns of the first panel that are left out, below [`PANEL`].
    lead: usize,
    /// n, those left out included.
    columns: usize,
}

/// The left side of a product: `[m, k]`, rows `stride` values apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsRef<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) stride: usize,
}

/// Target of a product: rows `stride` values apart.
#[derive(Debug)]
pub(crate) struct RowsMut<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) stride: usize,
}

impl PackedMatrix {
    /// Packs the transpose of a row-major matrix: `rows` is `[n, k]`, as weights are stored, and
    /// `k` is `depth`.
    ///
    /// # Panics
    /// When `depth` is 0, or `rows` is not whole rows.
    pub fn transposed(rows: &[f32], depth: usize) -> Self {
        Self::packed(rows, depth)
    }

    /// `out = x · self`: `x` `[rows, k]`, `out` `[rows, n]`, both row-major.
    ///
    /// # Panics
    /// When a slice is shorter than its rows.
    pub fn multiply(&self, out: &mut [f32], x: &[f32], rows: usize) {
        let out = RowsMut { data: out, stride: self.columns };
        multiply(out, RowsRef { data: x, rows, stride: self.depth }, self.view());
    }

    /// A copy with each value rounded to the nearest bfloat16.
    pub(crate) fn to_bf16(&self) -> PackedMatrix<Bf16> {
        let data = self.data.iter().map(|row| row.map(to_bf16)).collect();
        PackedMatrix { data, depth: self.depth, columns: self.columns }
    }
}

impl PackedMatrix<Bf16> {
    /// A copy with the values as f32.
    pub(crate) fn to_f32(&self) -> PackedMatrix {
        let data = self.data.iter().map(|row| row.map(Stored::value)).collect();
        PackedMatrix { data, depth: self.depth, columns: self.columns }
    }
}

#[expect(private_bounds, reason = "none of these functions is public")]
impl<W: Stored> PackedMatrix<W> {
    /// [`transposed`](PackedMatrix::transposed) of values kept in any way.
    pub(crate) fn packed(rows: &[W], depth: usize) -> Self {
        let columns = rows.len() / depth;
        assert_eq!(columns * depth, rows.len(), "rows of {depth} values");
        let mut data = vec![[W::zeroed(); PANEL]; columns.div_ceil(PANEL) * depth];
        for (column, row) in rows.chunks_exact(depth).enumerate() {
            let (panel, lane) = (column / PANEL, column % PANEL);
            let panel = &mut data[panel * depth..(panel + 1) * depth];
            panel.iter_mut().zip(row).for_each(|(places, &value)| places[lane] = value);
        }
        Self { data, depth, columns }
    }

    /// Values of the matrix, without those that fill the last panel.
    pub(crate) fn num_values(&self) -> usize {
        self.depth * self.columns
    }

    /// k
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// n
    pub(crate) fn num_columns(&self) -> usize {
        self.columns
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.data)
    }

    /// Copies one column to `out`, `[k]`.
    pub(crate) fn copy_column(&self, column: usize, out: &mut [f32]) {
        let panel = &self.data[column / PANEL * self.depth..][..self.depth];
        out.iter_mut().zip(panel).for_each(|(out, row)| *out = row[column % PANEL].value());
    }

    /// The whole as a view.
    pub(crate) fn view(&self) -> Panels<'_, W> {
        self.columns(0..self.columns)
    }

    /// Some of the columns.
    pub(crate) fn columns(&self, columns: Range<usize>) -> Panels<'_, W> {
        assert!(columns.start <= columns.end && columns.end <= self.columns, "{columns:?}");
        let (first, lead) = (columns.start / PANEL, columns.start % PANEL);
        let data = &self.data[(first * self.depth).min(self.data.len())..];
        let columns = columns.end - first * PANEL;
        Panels { lead, ..Panels::new(data, (self.depth, 1), self.depth, columns) }
    }
}

impl<'a, W: Stored> Panels<'a, W> {
    /// A view with the given strides, `(panel, row)`, in panel rows.
    pub(crate) fn new(
        data: &'a [PanelRow<W>],
        (panel_stride, row_stride): (usize, usize),
        depth: usize,
        columns: usize,
    ) -> Self {
        if depth > 0 && columns > 0 {
            let last = (columns - 1) / PANEL * panel_stride + (depth - 1) * row_stride;
            assert!(last < data.len(), "{depth} x {columns} over {} panel rows", data.len());
        }
        Self { data, panel_stride, row_stride, depth, lead: 0, columns }
    }

    pub(super) fn num_panels(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// k
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The rows from which a panel begins, and the distance of its next row.
    #[inline(always)]
    pub(super) fn rows_of(&self, panel: usize) -> (&'a [PanelRow<W>], usize) {
        (&self.data[panel * self.panel_stride..], self.row_stride)
    }

    /// Places of a panel's columns in a row of a product, of a view from whose first panel none is
    /// left out.
    #[inline(always)]
    pub(super) fn columns_of(&self, panel: usize) -> Range<usize> {
        debug_assert_eq!(self.lead, 0);
        panel * PANEL..self.columns.min((panel + 1) * PANEL)
    }

    /// The rows from which the next two panels begin, to be fetched ahead; nothing after the last.
    #[inline(always)]
    fn panels_after(&self, panel: usize) -> [&'a [PanelRow<W>]; 2] {
        [1, 2].map(|after| self.data.get((panel + after) * self.panel_stride..).unwrap_or_default())
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> Panel<'a, W> {
        Panel { rows: &self.data[panel * self.panel_stride..], step: self.row_stride }
    }
}

/// `out = x · b`
pub(crate) fn multiply<W: Stored>(out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_, W>) {
    Arch::new().dispatch(Product { out, x, b, add: false });
}

/// `out += x · b`
pub(crate) fn multiply_add<W: Stored>(out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_, W>) {
    Arch::new().dispatch(Product { out, x, b, add: true });
}

/// `out = activation(x · gate) · (x · up)`, element by element; the gated values never go to memory
/// apart.
pub(crate) fn multiply_gated<W: Stored>(
    out: RowsMut<'_>,
    x: RowsRef<'_>,
    gate: Panels<'_, W>,
    up: Panels<'_, W>,
    activation: Activation,
) {
    assert_eq!((gate.depth, gate.columns), (up.depth, up.columns), "gate and up differ in shape");
    let arch = Arch::new();
    match activation {
        Activation::Silu => arch.dispatch(GatedProduct { out, x, gate, up, by: Silu }),
        Activation::GeluTanh => arch.dispatch(GatedProduct { out, x, gate, up, by: GeluTanh }),
        Activation::Relu => arch.dispatch(GatedProduct { out, x, gate, up, by: Relu }),
    }
}

/// One panel, its rows `step` apart.
#[derive(Clone, Copy)]
struct Panel<'a, W> {
    rows: &'a [PanelRow<W>],
    step: usize,
}

struct Product<'a, W> {
    out: RowsMut<'a>,
    x: RowsRef<'a>,
    b: Panels<'a, W>,
    add: bool,
}

struct GatedProduct<'a, G, W> {
    out: RowsMut<'a>,
    x: RowsRef<'a>,
    gate: Panels<'a, W>,
    up: Panels<'a, W>,
    by: G,
}

impl<W: Stored> WithSimd for Product<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let panels = self.b.num_panels();
        for first in (0..panels - panels % 2).step_by(2) {
            let pair = [self.b.panel(first), self.b.panel(first + 1)];
            let (x, depth) = (self.x, self.b.depth);
            let next = self.b.panels_after(first + 1);
            let tiles = &mut ProductTiles { product: &mut self, first };
            for_each_tile(simd, x, depth, pair, next, tiles);
        }
        if panels % 2 == 1 {
            let last = [self.b.panel(panels - 1)];
            let (x, depth, first) = (self.x, self.b.depth, panels - 1);
            let tiles = &mut ProductTiles { product: &mut self, first };
            for_each_tile(simd, x, depth, last, [&[]; 2], tiles);
        }
    }
}

impl<G: Gate, W: Stored> WithSimd for GatedProduct<'_, G, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for panel in 0..self.gate.num_panels() {
            let pair = [self.gate.panel(panel), self.up.panel(panel)];
            let (x, depth) = (self.x, self.gate.depth);
            let [gate, _] = self.gate.panels_after(panel);
            let [up, _] = self.up.panels_after(panel);
            let tiles = &mut GatedTiles { product: &mut self, panel };
            for_each_tile(simd, x, depth, pair, [gate, up], tiles);
        }
    }
}

/// Source and target of the values of tiles. Tiles are R rows of Q panels.
trait Tiles<const Q: usize> {
    /// The values that chains begin with.
    fn start<const R: usize>(&self, row: usize) -> [[PanelRow; Q]; R];
    /// Takes what the chains come to.
    fn finish<const R: usize>(&mut self, row: usize, tile: &[[PanelRow; Q]; R]);
}

struct ProductTiles<'p, 'a, W> {
    product: &'p mut Product<'a, W>,
    /// The tiles' first panel.
    first: usize,
}

struct GatedTiles<'p, 'a, G, W> {
    product: &'p mut GatedProduct<'a, G, W>,
    panel: usize,
}

impl<W> ProductTiles<'_, '_, W> {
    /// The columns of a tile's panel that are wanted, and their places in a row of `out`.
    #[inline(always)]
    fn columns(&self, panel: usize) -> (Range<usize>, Range<usize>) {
        let b = &self.product.b;
        let start = (self.first + panel) * PANEL;
        let wanted = start.max(b.lead)..(start + PANEL).min(b.columns);
        (wanted.start - start..wanted.end - start, wanted.start - b.lead..wanted.end - b.lead)
    }
}

impl<const Q: usize, W> Tiles<Q> for ProductTiles<'_, '_, W> {
    #[inline(always)]
    fn start<const R: usize>(&self, row: usize) -> [[PanelRow; Q]; R] {
        let mut tile = [[[0.0; PANEL]; Q]; R];
        if self.product.add {
            let RowsMut { data, stride } = &self.product.out;
            for r in 0..R {
                for q in 0..Q {
                    let (inner, outer) = self.columns(q);
                    tile[r][q][inner].copy_from_slice(&data[(row + r) * stride..][outer]);
                }
            }
        }
        tile
    }

    #[inline(always)]
    fn finish<const R: usize>(&mut self, row: usize, tile: &[[PanelRow; Q]; R]) {
        for r in 0..R {
            for q in 0..Q {
                let (inner, outer) = self.columns(q);
                let RowsMut { data, stride } = &mut self.product.out;
                let out = &mut data[(row + r) * *stride..][outer];
                match out.as_chunks_mut::<PANEL>() {
                    ([whole], []) => *whole = tile[r][q],
                    _ => out.copy_from_slice(&tile[r][q][inner]),
                }
            }
        }
    }
}

impl<G: Gate, W> Tiles<2> for GatedTiles<'_, '_, G, W> {
    #[inline(always)]
    fn start<const R: usize>(&self, _: usize) -> [[PanelRow; 2]; R] {
        [[[0.0; PANEL]; 2]; R]
    }

    #[inline(always)]
    fn finish<const R: usize>(&mut self, row: usize, tile: &[[PanelRow; 2]; R]) {
        let start = self.panel * PANEL;
        let count = PANEL.min(self.product.gate.columns - start);
        let by = self.product.by;
        let RowsMut { data, stride } = &mut self.product.out;
        for r in 0..R {
            let [gate, up] = &tile[r];
            let mut gated = [0.0; PANEL];
            for lane in 0..PANEL {
                gated[lane] = by.of(gate[lane]) * up[lane];
            }
            data[(row + r) * *stride + start..][..count].copy_from_slice(&gated[..count]);
        }
    }
}

/// Covers all rows with tiles as large as their running values fit into registers: 24 vectors of 32
/// with AVX-512, 12 of 16 with AVX2. What is left over at the end takes smaller ones.
#[inline(always)]
fn for_each_tile<S: Simd, W: Stored, const Q: usize>(
    simd: S,
    x: RowsRef<'_>,
    depth: usize,
    panels: [Panel<'_, W>; Q],
    next: [&[PanelRow<W>]; 2],
    tiles: &mut impl Tiles<Q>,
) {
    let row = match S::F32_LANES {
        16 => {
            let row = tiles_of::<S, W, 1, Q, 12>(simd, x, 0, depth, panels, next, tiles);
            let row = tiles_of::<S, W, 1, Q, 8>(simd, x, row, depth, panels, next, tiles);
            let row = tiles_of::<S, W, 1, Q, 4>(simd, x, row, depth, panels, next, tiles);
            tiles_of::<S, W, 1, Q, 1>(simd, x, row, depth, panels, next, tiles)
        }
        8 => {
            let row = tiles_by_panel::<S, W, 2, Q, 6>(simd, x, 0, depth, panels, next, tiles);
            let row = tiles_of::<S, W, 2, Q, 3>(simd, x, row, depth, panels, next, tiles);
            let row = tiles_of::<S, W, 2, Q, 2>(simd, x, row, depth, panels, next, tiles);
            tiles_of::<S, W, 2, Q, 1>(simd, x, row, depth, panels, next, tiles)
        }
        4 => {
            let row = tiles_of::<S, W, 4, Q, 2>(simd, x, 0, depth, panels, next, tiles);
            tiles_of::<S, W, 4, Q, 1>(simd, x, row, depth, panels, next, tiles)
        }
        _ => tiles_of::<S, W, PANEL, Q, 1>(simd, x, 0, depth, panels, next, tiles),
    };
    debug_assert_eq!(row, x.rows);
}

/// Computes tiles of R rows from `row` on; returns the first row of a smaller rest.
#[inline(always)]
fn tiles_of<S: Simd, W: Stored, const V: usize, const Q: usize, const R: usize>(
    simd: S,
    x: RowsRef<'_>,
    mut row: usize,
    depth: usize,
    panels: [Panel<'_, W>; Q],
    next: [&[PanelRow<W>]; 2],
    tiles: &mut impl Tiles<Q>,
) -> usize {
    while row + R <= x.rows {
        // Tiles fetch the two panels that come next in turn.
        let ahead = next[row / R % 2];
        let start = tiles.start::<R>(row);
        let tile = chains::<S, W, V, Q, R>(simd, x, row, depth, panels, ahead, start);
        tiles.finish::<R>(row, &tile);
        row += R;
    }
    row
}

/// [`tiles_of`], each panel's chains on their own: twice the rows then fit into registers, and a
/// row's value serves half as many chains.
///
/// PERF: with AVX2, 6 rows of a panel are 12 running values, 2 vectors of weights and one of `x`,
/// 15 of 16 registers; 3 rows of two panels are 17.
#[inline(always)]
fn tiles_by_panel<S: Simd, W: Stored, const V: usize, const Q: usize, const R: usize>(
    simd: S,
    x: RowsRef<'_>,
    mut row: usize,
    depth: usize,
    panels: [Panel<'_, W>; Q],
    next: [&[PanelRow<W>]; 2],
    tiles: &mut impl Tiles<Q>,
) -> usize {
    while row + R <= x.rows {
        // The first tile fetches all that comes next.
        let fetch = row < R;
        let mut tile = tiles.start::<R>(row);
        for q in 0..Q {
            let ahead = if fetch { next[q] } else { &[] };
            let mut start = [[[0.0; PANEL]; 1]; R];
            for r in 0..R {
                start[r][0] = tile[r][q];
            }
            let one = chains::<S, W, V, 1, R>(simd, x, row, depth, [panels[q]], ahead, start);
            for r in 0..R {
                tile[r][q] = one[r][0];
            }
        }
        tiles.finish::<R>(row, &tile);
        row += R;
    }
    row
}

/// Runs the chains of one tile along `k`, in registers; a row of a panel is V vectors.
#[inline(always)]
fn chains<S: Simd, W: Stored, const V: usize, const Q: usize, const R: usize>(
    simd: S,
    x: RowsRef<'_>,
    row: usize,
    depth: usize,
    panels: [Panel<'_, W>; Q],
    ahead: &[PanelRow<W>],
    start: [[PanelRow; Q]; R],
) -> [[PanelRow; Q]; R] {
    // Loops, not `map` and `from_fn`: those stay calls, and the compiler then no longer knows the
    // slices' lengths.
    let mut rows: [&[f32]; R] = [&[]; R];
    let mut values = [[[simd.splat_f32s(0.0); V]; Q]; R];
    for r in 0..R {
        rows[r] = &x.data[(row + r) * x.stride..][..depth];
        for q in 0..Q {
            values[r][q] = bytemuck::cast(start[r][q]);
        }
    }
    let mut place = 0;
    'chains: for k in 0..depth {
        let mut b = [[simd.splat_f32s(0.0); V]; Q];
        for q in 0..Q {
            // Never taken: `Panels::new` has checked the last place. PERF: a way out that ends the
            // loop, where indexing would have one that panics, for which the compiler keeps copies
            // of all running values.
            let Some(row) = panels[q].rows.get(place) else { break 'chains };
            b[q] = W::read::<S, V>(simd, row);
        }
        // PERF: weights come from the third-level cache, once for each block of rows. In a profile
        // of a request without this and with blocks of 96 rows, a third of the samples in this loop
        // lay where `b` is read.
        palmette_mapped::prefetch(ahead, place);
        place += panels[0].step;
        for r in 0..R {
            let x = simd.splat_f32s(rows[r][k]);
            for q in 0..Q {
                for v in 0..V {
                    values[r][q][v] = simd.mul_add_f32s(x, b[q][v], values[r][q][v]);
                }
            }
        }
    }
    let mut tile = [[[0.0; PANEL]; Q]; R];
    for r in 0..R {
        for q in 0..Q {
            tile[r][q] = bytemuck::cast(values[r][q]);
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::activation::{gelu_tanh, silu};

    fn values(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let step = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(step).collect()
    }

    /// The definition: element `(i, j)` of `x · weightᵀ`, begun at `start`.
    fn chain(x: &[f32], weight: &[f32], depth: usize, (i, j): (usize, usize), start: f32) -> f32 {
        let (x, weight) = (&x[i * depth..][..depth], &weight[j * depth..][..depth]);
        x.iter().zip(weight).fold(start, |sum, (x, w)| x.mul_add(*w, sum))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// To the bit, for any shape: so no row depends on how many there are.
        #[test]
        fn products_are_chains(
            rows in 0_usize..40, depth in 1_usize..50, columns in 1_usize..70,
            from in 0.0..1.0_f64, to in 0.0..1.0_f64, add: bool, seed: u32,
        ) {
            let at = |share: f64| (share * (columns + 1) as f64) as usize;
            let wanted = at(from.min(to))..at(from.max(to));
            let (x, weight) = (values(rows * depth, seed), values(columns * depth, !seed));
            let stride = wanted.len() + 3;
            let before = values(rows * stride, seed ^ 7);
            let mut out = before.clone();
            let packed = PackedMatrix::transposed(&weight, depth);
            let left = RowsRef { data: &x, rows, stride: depth };
            let right = packed.columns(wanted.clone());
            let to = RowsMut { data: &mut out, stride };
            if add { multiply_add(to, left, right) } else { multiply(to, left, right) }
            for row in 0..rows {
                for place in 0..stride {
                    let held = before[row * stride + place];
                    let want = if place < wanted.len() {
                        let start = if add { held } else { 0.0 };
                        chain(&x, &weight, depth, (row, wanted.start + place), start)
                    } else {
                        held
                    };
                    prop_assert_eq!(out[row * stride + place].to_bits(), want.to_bits());
                }
            }
        }

        #[test]
        fn gated_products_are_chains_too(
            rows in 0_usize..30, depth in 1_usize..40, columns in 1_usize..50, seed: u32, gelu: bool,
        ) {
            let (activation, by): (_, fn(f32) -> f32) = match gelu {
                true => (Activation::GeluTanh, gelu_tanh),
                false => (Activation::Silu, silu),
            };
            let x = values(rows * depth, seed);
            let [gate, up] = [1, 2].map(|n| values(columns * depth, seed ^ n));
            let [gates, ups] = [&gate, &up].map(|w| PackedMatrix::transposed(w, depth));
            let mut out = vec![0.0; rows * columns];
            let left = RowsRef { data: &x, rows, stride: depth };
            let to = RowsMut { data: &mut out, stride: columns };
            multiply_gated(to, left, gates.view(), ups.view(), activation);
            for row in 0..rows {
                for column in 0..columns {
                    let at = |w: &[f32]| chain(&x, w, depth, (row, column), 0.0);
                    let want = by(at(&gate)) * at(&up);
                    prop_assert_eq!(out[row * columns + column].to_bits(), want.to_bits());
                }
            }
        }
    }

    /// Products with values kept as bfloat16 are those with the same values as f32, to the bit; and
    /// what is one already is not rounded.
    #[test]
    fn bfloat16_gives_the_bits_of_f32() {
        for (rows, depth, columns) in
            [(1, 7, 16), (5, 33, 40), (12, 64, 31), (29, 3, 1), (6, 50, 48)]
        {
            let x = values(rows * depth, 1);
            let [gate, up] = [2, 3].map(|seed| {
                let narrow: Vec<Bf16> =
                    values(columns * depth, seed).into_iter().map(to_bf16).collect();
                let full: Vec<f32> = narrow.iter().map(|value| value.value()).collect();
                (PackedMatrix::packed(&narrow, depth), PackedMatrix::transposed(&full, depth))
            });
            assert_eq!(gate.1.to_bf16().data, gate.0.data);
            assert_eq!(gate.0.to_f32().data, gate.1.data);
            let left = RowsRef { data: &x, rows, stride: depth };
            let start = values(rows * columns, 9);
            for what in 0..4 {
                let [mut narrow, mut full] = [start.clone(), start.clone()];
                let [a, b] = [&mut narrow, &mut full].map(|data| RowsMut { data, stride: columns });
                let by = if what == 2 { Activation::Silu } else { Activation::GeluTanh };
                match what {
                    0 => {
                        multiply(a, left, gate.0.view());
                        multiply(b, left, gate.1.view());
                    }
                    1 => {
                        multiply_add(a, left, gate.0.view());
                        multiply_add(b, left, gate.1.view());
                    }
                    _ => {
                        multiply_gated(a, left, gate.0.view(), up.0.view(), by);
                        multiply_gated(b, left, gate.1.view(), up.1.view(), by);
                    }
                }
                let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&narrow), bits(&full), "{rows} x {depth} x {columns}, {what}");
            }
        }
    }

    #[test]
    fn columns_come_back_out() {
        let weight = values(37 * 5, 3);
        let packed = PackedMatrix::transposed(&weight, 5);
        assert_eq!(packed.num_values(), 37 * 5);
        let mut column = [0.0; 5];
        for (index, row) in weight.chunks_exact(5).enumerate() {
            packed.copy_column(index, &mut column);
            assert_eq!(column, row);
        }
    }

    #[test]
    #[should_panic(expected = "panel rows")]
    fn a_view_beyond_its_data_is_refused() {
        Panels::new(&[[0.0; PANEL]; 5], (3, 1), 3, 17);
    }
}

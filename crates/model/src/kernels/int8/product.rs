//! Products of rows with matrices of 8-bit integers, whatever instructions sum.

use super::kernel::Int8Kernel;
use crate::kernels::activation::{Activation, gelu_tanh, relu, silu};
use crate::kernels::panels::{PANEL, PackedMatrix, PanelRow, RowsMut, Stored};

/// Values along `k` that are multiplied and added in one step.
pub(super) const GROUP: usize = 4;

/// Four rows of a panel, one cache line: each column's four values side by side.
///
/// PERF: aligned, since a vector that lies across two lines takes two reads.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct PanelGroup(pub(super) [i8; PANEL * GROUP]);

/// Groups that one tile of weights has with AMX. Behind a matrix's last panel lie zeros up to whole
/// tiles: a panel's last tile is read whole, and what is not the panel's in it is multiplied by 0.
pub(super) const TILE_GROUPS: usize = 16;

/// A matrix `[k, n]` of integers in panels, `[⌈n / 16⌉, ⌈k / 4⌉, 16, 4]`, and a scale for each
/// column.
///
/// Every kernel reads this one form: sixteen groups of a panel are a tile of AMX as they lie.
#[derive(Clone, Debug)]
pub struct Int8Matrix {
    /// Places past `n` and `k` hold 0.
    data: Vec<PanelGroup>,
    /// Scale of a column: the value that its integer 1 stands for.
    scales: Vec<PanelRow>,
    /// 128 times the sum of a column's integers: what is too much in a product by a kernel that
    /// takes left sides 128 higher.
    excess: Vec<[i32; PANEL]>,
    depth: usize,
    columns: usize,
    /// Instructions by which its products are computed.
    kernel: Int8Kernel,
}

impl Int8Matrix {
    /// Fewest rows: a rounded row of the left side has its scale behind its integers.
    const MIN_DEPTH: usize = 2;

    /// Largest number of rows: a longer sum could exceed 32 bits.
    pub const MAX_DEPTH: usize = (i32::MAX / (255 * 127)) as usize;

    /// Rounds a matrix. `None` where it has too few or too many rows for it.
    pub(crate) fn rounded<W: Stored>(matrix: &PackedMatrix<W>) -> Option<Self> {
        let (depth, columns) = (matrix.depth(), matrix.num_columns());
        if !(Self::MIN_DEPTH..=Self::MAX_DEPTH).contains(&depth) {
            return None;
        }
        let (panels, groups) = (columns.div_ceil(PANEL), depth.div_ceil(GROUP));
        let behind = groups.next_multiple_of(TILE_GROUPS) - groups;
        let mut rounded = Self {
            data: vec![PanelGroup([0; PANEL * GROUP]); panels * groups + behind],
            scales: vec![[0.0; PANEL]; panels],
            excess: vec![[0; PANEL]; panels],
            depth,
            columns,
            kernel: Int8Kernel::here(),
        };
        let (mut column, mut integers) = (vec![0.0; depth], vec![0; depth]);
        for j in 0..columns {
            let (panel, lane) = (j / PANEL, j % PANEL);
            matrix.copy_column(j, &mut column);
            rounded.scales[panel][lane] = round_to_int8(&column, &mut integers);
            for (k, &integer) in integers.iter().enumerate() {
                let group = &mut rounded.data[panel * groups + k / GROUP];
                group.0[lane * GROUP + k % GROUP] = integer;
                rounded.excess[panel][lane] += 128 * i32::from(integer);
            }
        }
        Some(rounded)
    }

    /// Values of the matrix, without those that fill panels.
    pub(crate) fn num_values(&self) -> usize {
        self.depth * self.columns
    }

    pub(super) fn num_columns(&self) -> usize {
        self.columns
    }

    /// k
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Instructions by which products are computed.
    pub(super) fn kernel(&self) -> Int8Kernel {
        self.kernel
    }

    /// Has products computed by another kernel, to the same bits.
    pub(crate) fn set_kernel(&mut self, kernel: Int8Kernel) {
        self.kernel = kernel;
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.data) + size_of_val(&*self.scales) + size_of_val(&*self.excess)
    }
}

/// Destination of a product's values.
#[derive(Clone, Copy)]
pub(super) enum Sink {
    Replace,
    Add,
    /// Gated product of two matrices: one's values gate the other's.
    Gated(Activation),
}

/// Rows times one matrix, or two of the same shape.
pub(super) struct Product<'a, const M: usize> {
    pub(super) out: RowsMut<'a>,
    pub(super) x: &'a mut [f32],
    pub(super) right: [&'a Int8Matrix; M],
    pub(super) sink: Sink,
}

/// A way to compute a tile's sums: of R rows of `x`, `[R, k]` encoded, and Q panels of `groups`
/// groups each.
pub(super) trait Sums {
    /// True where left sides are stored 128 higher, so that sums are too large by
    /// [`Int8Matrix::excess`].
    const IS_RAISED: bool;

    /// True where a tile's panels are summed one after another. Then tiles are of four panels where
    /// there are so many, so that rows stay in the nearest cache, and the first one fetches all
    /// panels that come next.
    const TAKES_PANELS_IN_TURN: bool;

    /// Brings a row's integers, `k` bytes at its beginning, into the form in which
    /// [`tile`](Self::tile) takes them, and puts what an integer stands for at
    /// [`scale_place`](Self::scale_place).
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
    pub(super) fn run<S: Sums>(mut self) {
        let depth = self.right[0].depth;
        for row in self.x.chunks_exact_mut(depth) {
            let scale = round_row(row);
            S::encode(row, scale);
        }
        let panels = self.num_panels();
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
    pub(super) fn tiles<S: Sums, const R: usize, const Q: usize>(
        &mut self,
        mut row: usize,
        places: [(usize, usize); Q],
    ) -> usize {
        let depth = self.right[0].depth;
        let groups = depth.div_ceil(GROUP);
        let rows = self.x.len() / depth;
        let (mut panels, next) = self.panels(places);
        for q in 0..Q {
            panels[q] = &panels[q][..groups];
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
                let x = &self.x[(row + r) * depth..][..depth];
                let (scale, correction) = (x[S::scale_place(groups)], S::correction(x, groups));
                if S::IS_RAISED {
                    self.finish::<true, Q>(row + r, (&sums[r], 0), scale, places);
                } else {
                    self.finish::<false, Q>(row + r, (&sums[r], correction), scale, places);
                }
            }
            row += R;
        }
        row
    }

    #[inline(always)]
    pub(super) fn num_panels(&self) -> usize {
        self.right[0].scales.len()
    }

    /// The groups from which some panels begin, and from which those begin that come after them.
    #[inline(always)]
    pub(super) fn panels<'p, const Q: usize>(
        &self,
        places: [(usize, usize); Q],
    ) -> ([&'p [PanelGroup]; Q], [&'p [PanelGroup]; Q])
    where
        Self: 'p,
    {
        let groups = self.right[0].depth.div_ceil(GROUP);
        let mut panels: [&[PanelGroup]; Q] = [&[]; Q];
        let mut next: [&[PanelGroup]; Q] = [&[]; Q];
        for q in 0..Q {
            let (matrix, panel) = places[q];
            let data = &self.right[matrix].data;
            panels[q] = &data[panel * groups..];
            // Of one matrix the next two panels come after both of these, of two each one's next.
            let after = if M == 2 { panel + 1 } else { panel + Q };
            next[q] = data.get(after * groups..).unwrap_or_default();
        }
        (panels, next)
    }

    /// Brings a row's sums into `out`: each with a correction, or less the column's excess where
    /// the row was raised.
    #[inline(always)]
    pub(super) fn finish<const IS_RAISED: bool, const Q: usize>(
        &mut self,
        row: usize,
        (sums, correction): (&[[i32; PANEL]; Q], i32),
        row_scale: f32,
        places: [(usize, usize); Q],
    ) {
        let mut values = [[0.0; PANEL]; Q];
        for q in 0..Q {
            let (matrix, panel) = places[q];
            let (scales, excess) =
                (&self.right[matrix].scales[panel], &self.right[matrix].excess[panel]);
            for lane in 0..PANEL {
                let off = if IS_RAISED { -excess[lane] } else { correction };
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
    // As integers, magnitudes have their order, and NaN comes last. PERF: one plain fold, which the
    // compiler makes vectors of; of sixteen running values it makes gathers.
    let most = values.iter().map(|value| value.to_bits() & 0x7fff_ffff).fold(0, u32::max);
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

/// Rounds values to integers from −127 to 127; returns what 1 stands for.
///
/// So a column of weights is rounded, which files have as a row.
///
/// # Panics
/// When the slices are of different lengths.
pub fn round_to_int8(values: &[f32], integers: &mut [i8]) -> f32 {
    assert_eq!(values.len(), integers.len(), "as many integers as values");
    let (scale, inverse) = scale_of(values);
    for (integer, &value) in integers.iter_mut().zip(values) {
        *integer = low_byte(value, inverse) as i8;
    }
    scale
}

/// Rounds a row of `k` values where it lies: `k` bytes, each an integer, and zeros up to whole
/// groups. Returns what an integer stands for.
#[inline(always)]
pub(super) fn round_row(row: &mut [f32]) -> f32 {
    let (scale, inverse) = scale_of(row);
    let depth = row.len();
    let mut start = 0;
    // Values are taken out first: bytes are written before the places that values are yet to be
    // read from.
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

pub(super) fn bytes_of(row: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(row)
}

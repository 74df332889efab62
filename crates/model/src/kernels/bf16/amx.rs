//! The products by AMX: tiles of 16 rows of 32 values with tiles of 16 columns of as many.
//!
//! Both sides are rounded into tiles that lie on the stack: rows once for all panels, up to
//! [`CHUNK`] places of them, panels as they come. A chunk's sums go on from what `out` has of the
//! chunk before.

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_permutexvar_epi16, _mm512_setzero_ps, _mm512_storeu_si512,
};
use std::mem::transmute;

use super::BLOCK;
use crate::kernels::panels::{PANEL, PanelRow, Panels, RowsMut, RowsRef};
use crate::kernels::tiles::{
    self, TILE_BYTES, TILE_ROWS, Tiles, add_products_of_bf16, load, store, zero,
};

/// Rows of sums that four tiles hold.
const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// Places along `k` that are taken at once, whole blocks.
const CHUNK: usize = 256;

/// Two bfloat16 side by side, sixteen times: a row of a tile.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct TileRow([u16; BLOCK]);

/// True where the processor has the tiles and the vectors.
pub(super) fn is_here() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512bf16")
        && tiles::have_bf16()
}

/// [`multiply_bf16`](super::multiply_bf16) by AMX.
///
/// # Safety
/// [`is_here`] must be true.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn multiply(out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_>, add: bool) {
    // SAFETY: the caller says that there are tiles, and no other product has them meanwhile.
    let tiles = unsafe { Tiles::take() };
    let product = Product {
        _tiles: tiles,
        out,
        b,
        sums: Sums([[[0.0; PANEL]; 2]; BLOCK_ROWS]),
        right: [[[TileRow([0; BLOCK]); TILE_ROWS]; 2]; 2],
    };
    // PERF: queries have few places, and zeros for a whole chunk's would take long beside them.
    match b.depth() {
        ..=64 => by_chunks::<{ 64 / BLOCK }>(product, x, add),
        65..=128 => by_chunks::<{ 128 / BLOCK }>(product, x, add),
        _ => by_chunks::<{ CHUNK / BLOCK }>(product, x, add),
    }
}

/// The product, chunk by chunk of B blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn by_chunks<const B: usize>(mut product: Product<'_>, x: RowsRef<'_>, add: bool) {
    let (mut rows, b) = ([[TileRow([0; BLOCK]); BLOCK_ROWS]; B], product.b);
    for first in (0..x.rows).step_by(BLOCK_ROWS) {
        let count = BLOCK_ROWS.min(x.rows - first);
        for start in (0..b.depth()).step_by(B * BLOCK) {
            let places = start..b.depth().min(start + B * BLOCK);
            for r in 0..count {
                let row = &x.data[(first + r) * x.stride..][places.clone()];
                for (place, values) in row.chunks(BLOCK).enumerate() {
                    round_row(&mut rows[place][r], values);
                }
            }
            let rows = &rows[..places.len().div_ceil(BLOCK)];
            let add = add || start > 0;
            let panels = b.num_panels();
            for panel in (0..panels - panels % 2).step_by(2) {
                product.block((first, count), rows, start, [panel, panel + 1], add);
            }
            if panels % 2 == 1 {
                product.block((first, count), rows, start, [panels - 1], add);
            }
        }
    }
}

/// A product's target and right side.
struct Product<'p> {
    /// Held until the product is done.
    _tiles: Tiles,
    out: RowsMut<'p>,
    b: Panels<'p>,
    /// Sums of a block, as tiles read and write them.
    sums: Sums,
    /// Tiles of two panels: those that are multiplied, and the next.
    right: [[[TileRow; TILE_ROWS]; 2]; 2],
}

/// Sums of two tiles' rows and two panels.
#[repr(C, align(64))]
struct Sums([[PanelRow; 2]; BLOCK_ROWS]);

impl Product<'_> {
    /// Adds the products of `rows`, `count` rows from `first` on with the places of `k` from
    /// `start` on, and Q panels; or puts them in `out`.
    ///
    /// Tiles 0 to 3 are sums, of two tiles of rows by two panels; 4 and 5 are of rows, 6 and 7 of
    /// panels.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn block<const Q: usize>(
        &mut self,
        (first, count): (usize, usize),
        rows: &[[TileRow; BLOCK_ROWS]],
        start: usize,
        panels: [usize; Q],
        add: bool,
    ) {
        const { assert!(Q == 1 || Q == 2) }
        let (has_second, last) = (count > TILE_ROWS, rows.len() - 1);
        let pitch = size_of::<[PanelRow; 2]>();
        if add {
            for r in 0..count {
                for q in 0..Q {
                    let columns = self.b.columns_of(panels[q]);
                    let held = &self.out.data[(first + r) * self.out.stride..][columns];
                    self.sums.0[r][q][..held.len()].copy_from_slice(held);
                }
            }
        }
        let sums: *mut PanelRow = self.sums.0.as_mut_ptr().cast();
        // SAFETY: tiles are configured as long as `self` lives, 16 rows of 64 bytes each, and there
        // are twice as many rows of sums of two panels.
        unsafe {
            if add {
                load::<0>(sums.cast(), pitch);
                load::<1>(sums.add(1).cast(), pitch);
                load::<2>(sums.add(2 * TILE_ROWS).cast(), pitch);
                load::<3>(sums.add(2 * TILE_ROWS + 1).cast(), pitch);
            } else {
                zero::<0>();
                zero::<1>();
                zero::<2>();
                zero::<3>();
            }
        }
        // PERF: a tile is read only after the next one was rounded, by when what was written of it
        // has left the processor's buffer: tiles cannot be read from there.
        let [mut right, mut next] = self.right.each_mut();
        for q in 0..Q {
            round_panel(&mut right[q], self.b, panels[q], start);
        }
        for (place, rows) in rows.iter().enumerate() {
            if place < last {
                for q in 0..Q {
                    round_panel(&mut next[q], self.b, panels[q], start + (place + 1) * BLOCK);
                }
            }
            // SAFETY: each tile has 16 rows of 64 bytes, in the arrays `rows` and `right`.
            unsafe {
                load::<4>(rows.as_ptr().cast(), TILE_BYTES);
                load::<6>(right[0].as_ptr().cast(), TILE_BYTES);
                add_products_of_bf16::<0, 4, 6>();
                if Q == 2 {
                    load::<7>(right[Q - 1].as_ptr().cast(), TILE_BYTES);
                    add_products_of_bf16::<1, 4, 7>();
                }
                if has_second {
                    load::<5>(rows[TILE_ROWS..].as_ptr().cast(), TILE_BYTES);
                    add_products_of_bf16::<2, 5, 6>();
                    if Q == 2 {
                        add_products_of_bf16::<3, 5, 7>();
                    }
                }
            }
            (right, next) = (next, right);
        }
        // SAFETY: as where they were read.
        unsafe {
            store::<0>(sums.cast(), pitch);
            if Q == 2 {
                store::<1>(sums.add(1).cast(), pitch);
            }
            if has_second {
                store::<2>(sums.add(2 * TILE_ROWS).cast(), pitch);
                if Q == 2 {
                    store::<3>(sums.add(2 * TILE_ROWS + 1).cast(), pitch);
                }
            }
        }
        for r in 0..count {
            for q in 0..Q {
                let columns = self.b.columns_of(panels[q]);
                let out = &mut self.out.data[(first + r) * self.out.stride..][columns];
                match out.as_chunks_mut::<PANEL>() {
                    ([whole], []) => *whole = self.sums.0[r][q],
                    _ => out.copy_from_slice(&self.sums.0[r][q][..out.len()]),
                }
            }
        }
    }
}

/// Makes a tile's row of up to 32 values, rounded, and zeros after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn round_row(row: &mut TileRow, values: &[f32]) {
    let mut whole = [0.0; BLOCK];
    let values = match values.first_chunk::<BLOCK>() {
        Some(values) => values,
        None => {
            whole[..values.len()].copy_from_slice(values);
            &whole
        }
    };
    // SAFETY: the array has the 32 values that are read.
    let [low, high] =
        unsafe { [_mm512_loadu_ps(values.as_ptr()), _mm512_loadu_ps(values[PANEL..].as_ptr())] };
    write(row, bits_of(_mm512_cvtne2ps_pbh(high, low)));
}

/// Makes a tile of 32 rows of a panel from `start` on, rounded, two by two; zeros after the last.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn round_panel(tile: &mut [TileRow; TILE_ROWS], b: Panels<'_>, panel: usize, start: usize) {
    /// Values of one row and of the next in turn, of 16 and 16 that follow each other.
    static IN_TURN: TileRow = {
        let mut places = [0; BLOCK];
        let mut n = 0;
        while n < BLOCK {
            places[n] = (n / 2 + n % 2 * PANEL) as u16;
            n += 1;
        }
        TileRow(places)
    };
    // SAFETY: a row of a tile has the 64 bytes that are read.
    let in_turn = unsafe { _mm512_loadu_si512(IN_TURN.0.as_ptr().cast::<__m512i>()) };
    // SAFETY: a row of a panel has the 16 values that are read.
    let read = |row: &PanelRow| unsafe { _mm512_loadu_ps(row.as_ptr()) };
    let (rows, step) = b.rows_of(panel);
    let (first, end) = (start * step, b.depth() * step);
    for (pair, tile_row) in tile.iter_mut().enumerate() {
        let place = first + 2 * pair * step;
        let even = if place < end { read(&rows[place]) } else { _mm512_setzero_ps() };
        let odd = if place + step < end { read(&rows[place + step]) } else { _mm512_setzero_ps() };
        let both = bits_of(_mm512_cvtne2ps_pbh(odd, even));
        write(tile_row, _mm512_permutexvar_epi16(in_turn, both));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bits_of(values: __m512bh) -> __m512i {
    // SAFETY: both are 512 bits, of which any are a value.
    unsafe { transmute(values) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn write(row: &mut TileRow, bits: __m512i) {
    // SAFETY: the row has the 64 bytes that are written.
    unsafe { _mm512_storeu_si512(row.0.as_mut_ptr().cast::<__m512i>(), bits) };
}

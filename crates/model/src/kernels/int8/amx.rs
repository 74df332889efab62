//! Sums by AMX, which multiplies tiles of 16 rows of 64 bytes with tiles of 16 columns of as many.
//!
//! A tile of weights is sixteen groups of a panel as they lie. A tile of the left side is 64 bytes
//! of sixteen rows, which lie together: rows of integers are moved to the beginning of the memory
//! that their values were in, [`Rows`] apart, with zeros up to whole tiles and their scale behind.
//! Four tiles of sums, of 32 rows and 32 columns, take two tiles of either side for each 64 values
//! along `k`, which with these four are all that there are.
//!
//! What is read past a panel's last group is multiplied by the zeros of the rows, and what is read
//! past the last row makes sums that nobody takes; so there is one form of tiles and no other
//! configuration. Sums are exact, of signed bytes by signed bytes, and nothing is corrected.

use std::ops::Range;

use super::product::{GROUP, PanelGroup, Product, TILE_GROUPS, round_row};
use crate::kernels::panels::PANEL;
use crate::kernels::tiles::{
    TILE_BYTES, TILE_ROWS, Tiles, add_products_of_bytes, load, store, zero,
};

/// Rows of sums that four tiles hold.
const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// Fewest rows for which tiles are taken: what they do takes as long for one row as for sixteen.
const MIN_ROWS: usize = 5;

/// Places of a product's rows once they are encoded, in values of 4 bytes.
#[derive(Clone, Copy)]
struct Rows {
    /// Place of the first row: at a cache line's beginning.
    start: usize,
    /// Distance of the next row. An odd number of lines where depths are multiples of 128, so that
    /// sixteen rows lie in sixteen sets of the cache.
    stride: usize,
    depth: usize,
    count: usize,
}

impl Rows {
    /// `None` where `x`, rows of `depth` values, has no room for them.
    #[inline(always)]
    fn new(x: &[f32], depth: usize) -> Option<Self> {
        const LINE: usize = TILE_BYTES / size_of::<f32>();
        let stride = depth.div_ceil(TILE_BYTES) * LINE + LINE;
        let (count, start) = (x.len() / depth, x.as_ptr().align_offset(TILE_BYTES));
        // A row's new place ends before the values of the next.
        let is_behind = start < LINE && start + stride <= depth;
        // Tiles are read whole.
        let end = start + count.next_multiple_of(TILE_ROWS) * stride;
        let fits = count >= MIN_ROWS && is_behind && end <= x.len();
        fits.then_some(Self { start, stride, depth, count })
    }

    /// Rounds every row and moves its integers to their place.
    #[inline(always)]
    fn encode(self, x: &mut [f32]) {
        for row in 0..self.count {
            let from = row * self.depth;
            let scale = round_row(&mut x[from..][..self.depth]);
            let to = self.place(row);
            let groups = self.depth.div_ceil(GROUP);
            x.copy_within(from..from + groups, to);
            let behind = self.scale_place(row);
            x[to + groups..behind].fill(0.0);
            x[behind] = scale;
        }
    }

    /// Place of a row's integers.
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.start + row * self.stride
    }

    /// Place of a row's scale.
    #[inline(always)]
    fn scale_place(self, row: usize) -> usize {
        self.place(row) + self.steps() * TILE_GROUPS
    }

    /// Tiles along `k`.
    #[inline(always)]
    fn steps(self) -> usize {
        self.depth.div_ceil(TILE_BYTES)
    }
}

/// A product by AMX; `false`, with nothing done, where rows are too few or too short for it.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn run<const M: usize>(product: &mut Product<'_, M>) -> bool {
    let Some(rows) = Rows::new(product.x, product.right[0].depth()) else { return false };
    let x = std::mem::take(&mut product.x);
    rows.encode(x);
    // SAFETY: the caller has asked `tiles::have_bytes`, and products of others take no tiles here.
    let tiles = TileSums(unsafe { Tiles::take() });
    let panels = product.num_panels();
    if M == 2 {
        let places = (0..panels).map(|panel| [(0, panel), (M - 1, panel)]);
        tiles.cover(product, x, rows, places);
    } else {
        let pairs = (0..panels - panels % 2).step_by(2);
        tiles.cover(product, x, rows, pairs.map(|panel| [(0, panel), (0, panel + 1)]));
        let last = (panels - panels % 2..panels).map(|panel| [(0, panel)]);
        tiles.cover(product, x, rows, last);
    }
    true
}

/// Sums of two tiles' rows, as the processor stores them.
#[repr(C, align(64))]
struct Block<const Q: usize>([[[i32; PANEL]; Q]; BLOCK_ROWS]);

/// A block's rows that have their sums, and not yet their values in the product's target.
struct Unfinished<'p, 'a, const M: usize, const Q: usize> {
    product: &'p mut Product<'a, M>,
    x: &'p [f32],
    all: Rows,
    /// Rows that are left.
    rows: Range<usize>,
    places: [(usize, usize); Q],
}

impl<const M: usize, const Q: usize> Unfinished<'_, '_, M, Q> {
    /// Finishes some more rows, `count` at most.
    #[inline(always)]
    fn finish(&mut self, block: &Block<Q>, count: usize) {
        for row in self.rows.start..self.rows.end.min(self.rows.start + count) {
            let scale = self.x[self.all.scale_place(row)];
            let sums = &block.0[row % BLOCK_ROWS];
            self.product.finish::<false, Q>(row, (sums, 0), scale, self.places);
            self.rows.start = row + 1;
        }
    }
}

/// The tiles, which have the form that sums need for as long as they are held.
struct TileSums(Tiles);

impl TileSums {
    /// Computes all rows of a product at some panels, block by block.
    ///
    /// PERF: a block's sums are brought to where they belong between the steps of the next one:
    /// tiles are multiplied meanwhile, and the vectors have nothing else to do.
    #[inline(always)]
    fn cover<const M: usize, const Q: usize>(
        &self,
        product: &mut Product<'_, M>,
        x: &[f32],
        rows: Rows,
        places: impl Iterator<Item = [(usize, usize); Q]>,
    ) {
        let mut blocks = [const { Block([[[0; PANEL]; Q]; BLOCK_ROWS]) }; 2];
        let [mut block, mut before] = blocks.each_mut();
        let mut unfinished = Unfinished { product, x, all: rows, rows: 0..0, places: [(0, 0); Q] };
        for places in places {
            let (panels, next) = unfinished.product.panels(places);
            for first in (0..rows.count).step_by(BLOCK_ROWS) {
                // The first blocks fetch the panels that come next in turn.
                let ahead = next.get(first / BLOCK_ROWS).copied().unwrap_or_default();
                self.sums(block, first, panels, ahead, (&mut unfinished, before));
                unfinished.rows = first..rows.count.min(first + BLOCK_ROWS);
                unfinished.places = places;
                (block, before) = (before, block);
            }
        }
        unfinished.finish(before, BLOCK_ROWS);
    }

    /// Sums of a block's rows, from `first` on, and Q panels. Meanwhile finishes the block before.
    ///
    /// Tiles 0 to 3 are sums, of two tiles of rows by two panels; 4 and 5 are of rows, 6 and 7 of
    /// panels.
    #[inline(always)]
    fn sums<const M: usize, const Q: usize>(
        &self,
        block: &mut Block<Q>,
        first: usize,
        panels: [&[PanelGroup]; Q],
        ahead: &[PanelGroup],
        (unfinished, before): (&mut Unfinished<'_, '_, M, Q>, &Block<Q>),
    ) {
        const { assert!(Q == 1 || Q == 2) }
        let rows = unfinished.all;
        let (steps, pitch) = (rows.steps(), rows.stride * size_of::<f32>());
        let x = &unfinished.x[rows.place(first)..];
        let (tile_values, has_second) = (TILE_ROWS * rows.stride, first + TILE_ROWS < rows.count);
        assert!(x.len() >= tile_values << u32::from(has_second), "tiles of rows are whole");
        // SAFETY: the tiles are configured as long as `self` lives.
        unsafe {
            zero::<0>();
            zero::<1>();
            zero::<2>();
            zero::<3>();
        }
        for step in 0..steps {
            let at = step * TILE_GROUPS;
            // What is read at once: the last panel of a matrix has whole tiles behind it.
            let part = panels.map(|panel| &panel[at..at + TILE_GROUPS]);
            // SAFETY: a tile's last row begins `15 · stride` values after its first, and `at + 16`
            // is at most `stride`, so that it ends within the tile's values, which the assertion
            // has counted. A panel's part has 16 groups of 64 bytes. The tiles are configured for
            // these sizes as long as `self` lives.
            unsafe {
                load::<4>(x.as_ptr().add(at).cast(), pitch);
                load::<6>(part[0].as_ptr().cast(), TILE_BYTES);
                add_products_of_bytes::<0, 4, 6>();
                if Q == 2 {
                    load::<7>(part[Q - 1].as_ptr().cast(), TILE_BYTES);
                    add_products_of_bytes::<1, 4, 7>();
                }
                if has_second {
                    load::<5>(x.as_ptr().add(tile_values + at).cast(), pitch);
                    add_products_of_bytes::<2, 5, 6>();
                    if Q == 2 {
                        add_products_of_bytes::<3, 5, 7>();
                    }
                }
            }
            if let Some(ahead) = ahead.get(at..at + TILE_GROUPS) {
                for place in 0..TILE_GROUPS {
                    palmette_mapped::prefetch(ahead, place);
                }
            }
            unfinished.finish(before, BLOCK_ROWS.div_ceil(steps));
        }
        let (first, second) = block.0.split_at_mut(TILE_ROWS);
        let pitch = size_of::<[[i32; PANEL]; Q]>();
        // SAFETY: each half of the block has 16 rows, `pitch` apart, of Q times 64 bytes.
        unsafe {
            store::<0>(first[0][0].as_mut_ptr(), pitch);
            if Q == 2 {
                store::<1>(first[0][Q - 1].as_mut_ptr(), pitch);
            }
            if has_second {
                store::<2>(second[0][0].as_mut_ptr(), pitch);
                if Q == 2 {
                    store::<3>(second[0][Q - 1].as_mut_ptr(), pitch);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::portable::Portable;
    use super::super::product::{Int8Matrix, Sink};
    use super::*;
    use crate::kernels::panels::RowsMut;
    use crate::kernels::{Activation, tiles};

    fn values(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|n| (n ^ seed).wrapping_mul(2_654_435_761) as i32 as f32).collect()
    }

    /// Bits that a product leaves of `rows` rows of an `x` that begins `offset` values after a
    /// cache line, by `run`, which may say that it left it undone.
    fn product_by(
        (rows, depth, columns, offset): (usize, usize, usize, usize),
        is_gated: bool,
        run: impl Fn(Product<'_, 1>) -> bool,
        run_gated: impl Fn(Product<'_, 2>) -> bool,
    ) -> Option<Vec<u32>> {
        let right =
            [1, 2].map(|seed| Int8Matrix::transposed(&values(columns * depth, seed), depth));
        let [one, two] = right.each_ref().map(|matrix| matrix.as_ref().unwrap());
        let mut room = vec![0.0; rows * depth + 32];
        let start = room.as_ptr().align_offset(TILE_BYTES) + offset;
        let x = &mut room[start..][..rows * depth];
        x.copy_from_slice(&values(rows * depth, 3));
        let mut out = values(rows * columns, 4);
        let to = RowsMut { data: &mut out, stride: columns };
        let is_done = match is_gated {
            false => run(Product { out: to, x, right: [one], sink: Sink::Add }),
            true => {
                let sink = Sink::Gated(Activation::Silu);
                run_gated(Product { out: to, x, right: [one, two], sink })
            }
        };
        is_done.then(|| out.into_iter().map(f32::to_bits).collect())
    }

    /// Blocks whole and in part, one panel and several, depths around whole tiles, rows at any
    /// place of a cache line; on several threads at once, which take and release their tiles.
    #[test]
    fn tiles_have_the_bits_of_plain_code() {
        if !tiles::have_bytes() {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: no AMX here, so its products were not checked"
            );
            return;
        }
        let by_tiles = |shape: (usize, usize, usize, usize), is_gated| {
            // SAFETY: there is AMX, and no processor has it without the rest.
            let run = |mut product: Product<'_, 1>| unsafe { super::run(&mut product) };
            // SAFETY: as above.
            let run_gated = |mut product: Product<'_, 2>| unsafe { super::run(&mut product) };
            product_by(shape, is_gated, run, run_gated)
        };
        let by_plain_code = |shape: (usize, usize, usize, usize), is_gated| {
            let run = |product: Product<'_, 1>| {
                product.run::<Portable>();
                true
            };
            let run_gated = |product: Product<'_, 2>| {
                product.run::<Portable>();
                true
            };
            product_by(shape, is_gated, run, run_gated)
        };
        let check = |thread: usize| {
            for depth in [64, 127, 128, 129, 191, 256] {
                for rows in [9, 16, 17, 31, 32, 33, 48, 49, 65] {
                    for (columns, is_gated) in [(16, false), (37, false), (50, true), (8, true)] {
                        let shape = (rows, depth, columns, (rows + thread) % 16);
                        let got = by_tiles(shape, is_gated).expect("rows for tiles");
                        assert!(Some(got) == by_plain_code(shape, is_gated), "{shape:?}");
                    }
                }
            }
            // Too few, and too short.
            for (rows, depth) in [(0, 128), (1, 128), (4, 128), (40, 2), (40, 31)] {
                assert!(by_tiles((rows, depth, 20, 0), false).is_none(), "{rows} of {depth}");
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || check(thread));
            }
        });
    }
}

//! The catalog's own index.

use std::time::Instant;

use palmette_catalog::index::{CatalogState, CodeRows, Index, IndexOptions, ItemSet, MaskRows};
use palmette_catalog_filter::RankSet;

use super::Engine;
use crate::generate::Shape;
use crate::measure::Beams;
use crate::random::mix;

/// The catalog's index behind the comparison's trait.
#[derive(Clone, Debug)]
pub struct IndexEngine {
    index: Index,
}

/// Rows on their way into an index, and how to index them.
#[derive(Debug)]
pub struct IndexBuilder {
    rows: CodeRows,
    options: IndexOptions,
}

/// Ranks that a filter keeps.
#[derive(Debug)]
pub(crate) struct IndexFilter {
    kept: Vec<u32>,
    items: ItemSet,
    /// Milliseconds that making a set for steps of the ranks took.
    pub(crate) set_ms: f64,
}

impl IndexEngine {
    /// A builder with a number of dense levels; without it the index chooses.
    pub(crate) fn builder_with(shape: &Shape, dense: Option<usize>) -> IndexBuilder {
        let rows = CodeRows::with_capacity(&vec![shape.vocab; shape.levels], shape.items);
        IndexBuilder { rows, options: IndexOptions { dense_levels: dense, ..Default::default() } }
    }

    /// Distinct semantic IDs.
    pub(crate) fn num_ids(&self) -> u64 {
        self.index.num_prefixes(self.index.num_levels() - 1)
    }

    pub(crate) fn num_dense_levels(&self) -> usize {
        self.index.num_dense_levels()
    }

    /// A filter that keeps each rank with the probability `share`, from a seed; `None` where it
    /// keeps none.
    pub(crate) fn random_filter(&self, share: f64, seed: u64) -> Option<IndexFilter> {
        // A share of 1 is the bound 2^64, which saturates; the last value is let through as well.
        let bound = (share * 2_f64.powi(64)) as u64;
        let seed = mix(seed);
        let num_items = self.index.num_items();
        let is_kept = |rank: &u64| mix(seed ^ rank) <= bound;
        let kept: Vec<u32> = (0..num_items).filter(is_kept).map(|rank| rank as u32).collect();
        if kept.is_empty() {
            return None;
        }
        let ranks = RankSet::from_ranks(num_items, kept.iter().map(|&rank| u64::from(rank)));
        let begun = Instant::now();
        let items = self.index.item_set(ranks);
        Some(IndexFilter { kept, items, set_ms: begun.elapsed().as_secs_f64() * 1e3 })
    }

    /// Fills masks as [`Engine::fill_masks`] does, into rows that clear what they set last.
    pub(crate) fn fill_mask_rows(&self, states: &[CatalogState], rows: &mut MaskRows) {
        self.index.fill_mask_rows(states, None, &[], rows);
    }

    /// Fills masks as [`Engine::fill_masks`] does, for the items that a filter keeps.
    pub(crate) fn fill_filtered_masks(
        &self,
        states: &[CatalogState],
        filter: &IndexFilter,
        words_per_row: usize,
        out: &mut [u32],
    ) {
        self.index.fill_masks(states, Some(&filter.items), &[], words_per_row, out);
    }
}

impl IndexFilter {
    /// Bytes of the set.
    pub(crate) fn bytes(&self) -> usize {
        self.items.bytes()
    }

    /// Prefixes of kept items, each of which is as likely as the others.
    pub(crate) fn beams<'a>(
        &'a self,
        index: &'a IndexEngine,
        count: usize,
        seed: u64,
    ) -> Beams<'a> {
        let levels = index.index.num_levels();
        Beams::drawn_by(levels, count, seed, move |random, codes| {
            let rank = self.kept[random.below(self.kept.len() as u64) as usize];
            codes.copy_from_slice(&index.index.codes(u64::from(rank)));
        })
    }
}

impl Engine for IndexEngine {
    const NAME: &'static str = "index";
    const EXACT: bool = true;
    type Builder = IndexBuilder;
    type State = CatalogState;

    /// Rows of whole words, twice while they are sorted, and a byte each; then the index beside
    /// the sorted rows, which takes less.
    fn peak_bytes(shape: &Shape) -> u64 {
        let code_bits = u32::BITS - (shape.vocab - 1).leading_zeros();
        let words = (code_bits as u64 * shape.levels as u64).div_ceil(64).max(1);
        shape.items as u64 * (2 * 8 * words + 1)
    }

    fn builder(shape: &Shape) -> IndexBuilder {
        Self::builder_with(shape, None)
    }

    fn push(builder: &mut IndexBuilder, codes: &[u32]) {
        builder.rows.push(codes).expect("a shape was checked against the index's limits");
    }

    fn build(builder: IndexBuilder) -> Result<Self, String> {
        let index = Index::build(builder.rows, &builder.options);
        Ok(Self { index: index.map_err(|error| error.to_string())? })
    }

    fn bytes(&self) -> usize {
        self.index.bytes()
    }

    fn start(&self) -> CatalogState {
        self.index.start()
    }

    fn advance(&self, state: &CatalogState, code: u32) -> Option<CatalogState> {
        self.index.child(state, code)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        !self.index.find(codes).is_empty()
    }

    fn fill_masks(&self, states: &[CatalogState], words_per_row: usize, out: &mut [u32]) {
        self.index.fill_masks(states, None, &[], words_per_row, out);
    }

    fn successors(&self, states: &[CatalogState], mut visit: impl FnMut(u32, u32, CatalogState)) {
        self.index.successors(states, None, |beam, code, next| visit(beam as u32, code, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Distribution, GeneratedItems};

    #[test]
    fn a_filter_keeps_its_share_and_its_masks_lead_to_what_it_keeps() {
        let shape = Shape { items: 4000, levels: 3, vocab: 16 };
        let items = GeneratedItems::new(shape, Distribution::Uniform, 2).expect("a sound shape");
        let mut builder = IndexEngine::builder_with(&shape, Some(1));
        items.for_each_block(|rows| {
            rows.chunks_exact(3).for_each(|codes| IndexEngine::push(&mut builder, codes));
        });
        let engine = IndexEngine::build(builder).expect("an index");
        assert_eq!(engine.num_dense_levels(), 1);
        let filter = engine.random_filter(0.02, 5).expect("some ranks");
        assert!((40..160).contains(&filter.kept.len()), "{}", filter.kept.len());
        assert_eq!(engine.random_filter(1.0, 5).expect("all ranks").kept.len(), 4000);
        assert!(engine.random_filter(1e-12, 5).is_none());

        let kept: Vec<Vec<u32>> =
            filter.kept.iter().map(|&rank| engine.index.codes(u64::from(rank))).collect();
        let mut beams = filter.beams(&engine, 10, 1);
        for level in 0..3 {
            for state in beams.draw(&engine, level).expect("items of the index") {
                let prefix = &engine.index.codes(state.ranks().start)[..level];
                let mut mask = [0];
                engine.fill_filtered_masks(&[state], &filter, 1, &mut mask);
                let follows =
                    kept.iter().filter(|codes| codes.starts_with(prefix)).map(|codes| codes[level]);
                let expected = follows.fold(0, |mask, code| mask | 1 << code);
                assert_ne!(expected, 0, "beams are prefixes of kept items");
                assert_eq!(mask, [expected], "after {prefix:?}");
            }
        }
    }
}

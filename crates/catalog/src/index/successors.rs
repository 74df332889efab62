//! Successors of many beams: the codes that may follow, and the states after them.

use super::sparse::SparseLevel;
use super::step::{READ_WINDOW, WINDOW, is_asked};
use super::{CatalogState, Index, ItemSet};

impl Index {
    /// Visits what may follow each state, in order of the states and then of the codes: the place
    /// of the state in `states`, the code, and the position after it. With `items`, only what leads
    /// to an item of that set, as in [`fill_masks`](Self::fill_masks).
    ///
    /// Cost: one read a code, and finding where the next prefix begins. No allocation.
    pub fn successors(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        mut visit: impl FnMut(usize, u32, CatalogState),
    ) {
        let mut first = 0;
        for run in states.chunk_by(|a, b| a.level == b.level) {
            let level = run[0].level();
            let mut visit = |place: usize, code, next| visit(first + place, code, next);
            match self.sparse_level(level) {
                None => self.visit_dense_children(run, items, &mut visit),
                Some(sparse) if items.is_none() && !sparse.knows_starts() => {
                    self.visit_children_of_ranks(sparse, run, &mut visit);
                }
                Some(sparse) => self.visit_children(sparse, run, items, &mut visit),
            }
            first += run.len();
        }
    }

    /// Visits the successors of states at a level of codes by rank, all allowed.
    ///
    /// PERF: a function of its own, as for masks: from cold caches its code is waited for too.
    #[inline(never)]
    fn visit_children_of_ranks(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        visit: &mut impl FnMut(usize, u32, CatalogState),
    ) {
        let mut place = 0;
        for states in states.chunks(READ_WINDOW) {
            self.read_codes_of_ranks(sparse, states);
            for state in states {
                sparse.for_each_run(self.within(state), |code, ranks| {
                    visit(place, code as u32, self.state(ranks, 0, state.level() + 1));
                });
                place += 1;
            }
        }
    }

    /// Visits the successors of states at a level that keeps codes.
    #[inline(never)]
    fn visit_children(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        visit: &mut impl FnMut(usize, u32, CatalogState),
    ) {
        let level = states[0].level();
        let mut place = 0;
        for states in states.chunks(WINDOW) {
            let members = items.map(|items| items.members(self, level));
            let places = self.bring_in(sparse, states, members);
            for (state, places) in states.iter().zip(places) {
                let members = members.filter(|_| is_asked(state));
                let mut at = places.start;
                sparse.for_each_child(self.within(state), places.start, |code, ranks| {
                    if members.is_none_or(|members| members.has_child(at, ranks.clone())) {
                        visit(place, code as u32, self.state(ranks, 0, level + 1));
                    }
                    at += 1;
                });
                place += 1;
            }
        }
    }

    /// Visits the successors of states at a dense level.
    fn visit_dense_children(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        visit: &mut impl FnMut(usize, u32, CatalogState),
    ) {
        for (place, state) in states.iter().enumerate() {
            self.for_each_dense_child(state, items, |code, child| visit(place, code, child));
        }
    }

    fn for_each_dense_child(
        &self,
        state: &CatalogState,
        items: Option<&ItemSet>,
        mut visit: impl FnMut(u32, CatalogState),
    ) {
        let level = state.level();
        if level >= self.dense.num_levels() {
            return;
        }
        let size = self.dense.size(level);
        for (at, &word) in self.kept_mask(state, items).unwrap_or_default().iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let code = at as u32 * 32 + left.trailing_zeros();
                left &= left - 1;
                if code < size {
                    let key = u64::from(state.key) * u64::from(size) + u64::from(code);
                    let ranks = self.dense.ranks(level + 1, key);
                    visit(code, self.state(ranks, key, level + 1));
                }
            }
        }
    }
}

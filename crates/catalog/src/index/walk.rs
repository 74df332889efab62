//! One state at a time.

use std::ops::Range;

use super::{CatalogState, Index};

impl Index {
    /// The position before the first code.
    pub fn start(&self) -> CatalogState {
        self.state(0..self.num_items, 0, 0)
    }

    /// The position over `code`, if any item has it there.
    ///
    /// Cost: at dense levels two reads; below, counting the prefixes before the range, a binary
    /// search over the children's codes, and finding where the child begins and ends.
    pub fn child(&self, state: &CatalogState, code: u32) -> Option<CatalogState> {
        let level = state.level();
        let (ranks, key) = match self.sparse_level(level) {
            Some(sparse) => (sparse.child(&self.within(state), code)?, 0),
            None => self.dense_child(state, code)?,
        };
        (!ranks.is_empty()).then(|| self.state(ranks, key, level + 1))
    }

    /// The positions one code further, ascending by code.
    ///
    /// Cost: as many children as there are; at dense levels a bit of the mask and two reads each.
    pub fn children(&self, state: &CatalogState) -> Vec<(u32, CatalogState)> {
        let mut children = Vec::new();
        self.successors(&[*state], None, |_, code, child| children.push((code, child)));
        children
    }

    /// Ranks of the items whose semantic ID has fewer codes than there are levels, ascending.
    ///
    /// Cost: none where the last level has a code an item, as in large catalogs: then there are no
    /// such items. Else a walk over all prefixes.
    pub fn shorter_items(&self) -> Vec<u64> {
        let last = self.num_levels().checked_sub(1).and_then(|level| self.sparse_level(level));
        if last.is_some_and(|level| level.form() == "by_rank") {
            return Vec::new();
        }
        let (mut found, mut states) = (Vec::new(), vec![self.start()]);
        for _ in 0..self.num_levels() {
            let mut next = Vec::new();
            found.extend(states.iter().flat_map(|state| self.items_at(state)));
            self.successors(&states, None, |_, _, child| next.push(child));
            states = next;
        }
        found.sort_unstable();
        found
    }

    /// The ranks of the items whose whole semantic ID is this prefix: the first of its range,
    /// several on a collision.
    pub fn items_at(&self, state: &CatalogState) -> Range<u64> {
        let within = self.within(state);
        let end = match self.sparse_level(state.level()) {
            Some(sparse) => sparse.first_child(&within),
            // No ID ends before the last dense level; past the last level every one has.
            None if state.level() < self.num_levels() => within.start,
            None => within.end,
        };
        within.start..end
    }

    /// The ranks of the items with exactly this semantic ID; empty if there are none.
    pub fn find(&self, codes: &[u32]) -> Range<u64> {
        let end = codes.iter().try_fold(self.start(), |state, &code| self.child(&state, code));
        end.map_or(0..0, |state| self.items_at(&state))
    }

    /// The semantic ID of an item.
    ///
    /// # Panics
    /// When `rank` is not below `num_items`.
    pub fn codes(&self, rank: u64) -> Vec<u32> {
        assert!(rank < self.num_items, "rank {rank} of {}", self.num_items);
        let mut codes = Vec::with_capacity(self.num_levels());
        self.prefix_of(rank, self.num_levels(), |code| codes.push(code));
        codes
    }

    /// The prefix of `num_codes` codes that an item has, or its whole ID where that is shorter.
    /// `visit` sees its codes in order.
    pub(crate) fn prefix_of(
        &self,
        rank: u64,
        num_codes: usize,
        mut visit: impl FnMut(u32),
    ) -> CatalogState {
        let mut state = self.start();
        for _ in 0..num_codes.min(self.num_levels()) {
            let Some((code, next)) = self.next_of(&state, rank) else { break };
            visit(code);
            state = next;
        }
        state
    }

    /// The code by which the item `rank` continues `state`, which it has, and the position after
    /// it; `None` where its ID ends.
    pub(super) fn next_of(&self, state: &CatalogState, rank: u64) -> Option<(u32, CatalogState)> {
        let (code, ranks) = self.child_with(state, rank)?;
        let size = self.dense_size(state.level()).unwrap_or(0);
        let key = u64::from(state.key) * u64::from(size) + u64::from(code);
        Some((code, self.state(ranks, key, state.level() + 1)))
    }

    /// The code and range of the child of `state` that holds the item `rank`.
    fn child_with(&self, state: &CatalogState, rank: u64) -> Option<(u32, Range<u64>)> {
        let level = state.level();
        match self.sparse_level(level) {
            Some(sparse) => sparse.child_with(&self.within(state), rank),
            None => {
                let size = u64::from(self.dense_size(level)?);
                let key = self.dense.key_of(rank, level + 1);
                Some(((key % size) as u32, self.dense.ranks(level + 1, key)))
            }
        }
    }

    fn dense_size(&self, level: usize) -> Option<u32> {
        (level < self.dense.num_levels()).then(|| self.dense.size(level))
    }

    fn dense_child(&self, state: &CatalogState, code: u32) -> Option<(Range<u64>, u64)> {
        let level = state.level();
        let size = self.dense_size(level).filter(|&size| code < size)?;
        let key = u64::from(state.key) * u64::from(size) + u64::from(code);
        Some((self.dense.ranks(level + 1, key), key))
    }

    /// A state whose range lies within the items, whatever a file says.
    #[inline]
    pub(super) fn state(&self, ranks: Range<u64>, key: u64, level: usize) -> CatalogState {
        let key = if level < self.dense.num_masked() { key as u32 } else { 0 };
        let end = ranks.end.min(self.num_items);
        let start = ranks.start.min(end);
        CatalogState { start: start as u32, end: end as u32, key, level: level as u32 }
    }

    /// The range of a state, which may come from another index.
    #[inline]
    pub(super) fn within(&self, state: &CatalogState) -> Range<u64> {
        let end = u64::from(state.end).min(self.num_items);
        u64::from(state.start).min(end)..end
    }

    /// Fails unless the levels describe IDs in strictly ascending order, with masks that agree.
    /// Codes ascend under every prefix, no ID is empty, and no prefix begins where an ID has ended.
    ///
    /// Goes through the levels one by one and keeps the length of each ID that has ended.
    pub(super) fn check_order(&self) -> Result<(), String> {
        let num_items = self.num_items as usize;
        let mut ended = vec![false; num_items];
        // Where the prefixes of the level above begin.
        let mut parents = vec![false; num_items];
        let keys = 0..self.dense.num_keys(self.dense.num_levels());
        let ranks = keys.map(|key| self.dense.ranks(self.dense.num_levels(), key));
        for ranks in ranks.filter(|ranks| !ranks.is_empty()) {
            parents[ranks.start as usize] = true;
        }
        for (at, level) in self.sparse.iter().enumerate() {
            let number = self.dense.num_levels() + at;
            let (mut prefix, mut last_code) = (0, None);
            for rank in 0..num_items {
                if parents[rank] {
                    last_code = None;
                }
                let begins = level.begins_at(rank as u64, parents[rank]);
                parents[rank] = begins;
                if ended[rank] {
                    if begins {
                        return Err(format!("rank {rank} goes on past its end at level {number}"));
                    }
                } else if begins {
                    let code = level.code_at(rank as u64, prefix);
                    prefix += 1;
                    if last_code.is_some_and(|last| last >= code) {
                        return Err(format!(
                            "codes of level {number} do not ascend at rank {rank}"
                        ));
                    }
                    last_code = Some(code);
                } else if last_code.is_none() {
                    if number == 0 {
                        return Err(format!("rank {rank} has an empty semantic ID"));
                    }
                    ended[rank] = true;
                }
            }
            if prefix != level.num_prefixes() {
                return Err(format!("level {number} has {prefix} prefixes and says otherwise"));
            }
        }
        self.check_last_masks()
    }

    /// Fails unless the masks of the level below the dense ones are right.
    fn check_last_masks(&self) -> Result<(), String> {
        let level = self.dense.num_levels();
        if self.dense.num_masked() == level {
            return Ok(());
        }
        let mut masks = vec![0; self.dense.masks(level).len()];
        let all = palmette_catalog_filter::RankSet::full(self.num_items);
        self.fill_last_masks(&mut masks, &all, None);
        match masks == self.dense.masks(level) {
            true => Ok(()),
            false => Err(format!("the masks of level {level} are wrong")),
        }
    }
}

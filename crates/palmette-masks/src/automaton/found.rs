//! Small set of the masks whose union is asked for.

use crate::mask_pool::PoolId;

/// The masks whose union is asked for, each once.
#[derive(Debug)]
pub(super) struct FoundMasks {
    first: [PoolId; MOST_FOUND],
    len: usize,
    /// All masks where they are more.
    all: Vec<PoolId>,
}

/// Number of masks that are collected without asking for memory.
const MOST_FOUND: usize = 16;

impl Default for FoundMasks {
    fn default() -> Self {
        Self { first: [PoolId(0); MOST_FOUND], len: 0, all: Vec::new() }
    }
}

impl FoundMasks {
    /// Adds a mask.
    pub(super) fn insert(&mut self, mask: PoolId) {
        let known = if self.all.is_empty() { &self.first[..self.len] } else { &self.all };
        if known.contains(&mask) {
            return;
        }
        if self.all.is_empty() && self.len < MOST_FOUND {
            self.first[self.len] = mask;
            self.len += 1;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        self.all.push(mask);
    }

    /// Masks in ascending order.
    pub(super) fn sorted(&mut self) -> &[PoolId] {
        let known = if self.all.is_empty() { &mut self.first[..self.len] } else { &mut *self.all };
        known.sort_unstable();
        known
    }
}

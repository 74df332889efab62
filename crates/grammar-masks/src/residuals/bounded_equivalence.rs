//! Bounded equivalence of two residuals: equal unless certain bytes are read.
//!
//! A string in which a date is found somewhere takes what any string takes until it ends: only a
//! quote can tell the two apart, and few tokens have one. So the states of both are gone through
//! together, leaving out the bytes that tell them apart ([`telling`](BoundedEquivalence::telling))
//! as these are found. Pairs of states that are reached by other bytes only are alike below all
//! nodes of the vocabulary's trie below which there are only other bytes.

use hashbrown::{HashMap, HashSet};

use super::byte_groups::{Groups, NUM_GROUPS, group, group_bit};
use super::mask_failure::MaskFailure;
use super::transition_table::LocalId;
use super::transitions::Transitions;
use super::trie_shape::TrieShape;
use crate::Budget;

/// Pairs of residuals that only certain bytes tell apart.
#[derive(Debug, Default)]
pub(super) struct BoundedEquivalence {
    /// Numbers of bytes for which pairs agree; 255, which is any number, where all pairs were gone
    /// through.
    pairs: HashMap<(LocalId, LocalId), u8>,
    /// Groups of bytes that may tell them apart.
    telling: Groups,
}

/// Pairs are gone through up to here.
const MAX_PAIRS: usize = 64;

/// Few tokens are longer.
const MAX_DEPTH: u8 = 20;

/// Pairs that differ by common bytes so many bytes from the first are left, as counts are where
/// they are used up.
const FAR: u8 = 4;

/// Bytes that are rare in tokens and begin what takes many steps to go through, such as escapes and
/// dates: they count as telling without a look.
const RARE: &[u8] = b"\\0123456789";

impl BoundedEquivalence {
    /// Finds the bytes that tell `root`'s residuals apart.
    ///
    /// # Errors
    /// When a limit is exceeded or the budget used up.
    pub(super) fn find(
        steps: &mut Transitions<'_>,
        shape: &TrieShape,
        root: (LocalId, LocalId),
        budget: &mut Budget<'_>,
    ) -> Result<Self, MaskFailure> {
        let rare = |byte: &&u8| shape.is_rare(group(**byte));
        let rare = RARE.iter().filter(rare).fold(0, |groups, &byte| groups | group_bit(byte));
        let mut search = Search { steps, shape, budget, telling: rare, reached: Vec::new() };
        while !search.explore(root)? {}
        Ok(search.finish())
    }

    /// True when two residuals cannot be told apart by at most `height` bytes of the groups
    /// `below`.
    #[inline]
    pub(super) fn holds(&self, pair: (LocalId, LocalId), below: Groups, height: u8) -> bool {
        below & self.telling == 0 && self.pairs.get(&pair).is_some_and(|&known| known >= height)
    }

    /// An upper bound on the nodes to be walked.
    pub(super) fn weight(&self, shape: &TrieShape) -> u64 {
        (0..NUM_GROUPS)
            .filter(|group| self.telling >> group & 1 == 1)
            .map(|group| u64::from(shape.weight(group)))
            .sum()
    }
}

struct Search<'s, 'a, 'b, 'c> {
    steps: &'s mut Transitions<'a>,
    shape: &'s TrieShape,
    budget: &'b mut Budget<'c>,
    telling: Groups,
    reached: Vec<ReachedPair>,
}

/// A pair, in the order of how few bytes lead to it.
struct ReachedPair {
    pair: (LocalId, LocalId),
    depth: u8,
    /// From where, by which group; `None` for the first.
    from: Option<(usize, usize)>,
    /// True when all pairs after it have been reached.
    explored: bool,
}

impl Search<'_, '_, '_, '_> {
    /// Reaches what can be reached; `false` where a group that was used turns out to be telling.
    fn explore(&mut self, root: (LocalId, LocalId)) -> Result<bool, MaskFailure> {
        let mut known: HashSet<_> = HashSet::from_iter([root]);
        self.reached.clear();
        self.reached.push(ReachedPair { pair: root, depth: 0, from: None, explored: false });
        let mut at = 0;
        while at < self.reached.len() && self.reached.len() < MAX_PAIRS {
            let ReachedPair { pair, depth, .. } = self.reached[at];
            if depth >= MAX_DEPTH {
                break;
            }
            self.steps.complete(pair.0, self.telling, self.budget)?;
            self.steps.complete(pair.1, self.telling, self.budget)?;
            self.budget.spend(u64::from(u8::MAX))?;
            for byte in 0..=u8::MAX {
                let group = group(byte);
                if self.telling >> group & 1 == 1 {
                    continue;
                }
                let own = self.steps.advance(pair.0, byte, self.budget)?;
                let like = self.steps.advance(pair.1, byte, self.budget)?;
                if own == like {
                    continue;
                }
                match own.zip(like) {
                    Some(next) if same_ends(self.steps, next) => {
                        if known.insert(next) {
                            let from = Some((at, group));
                            self.reached.push(ReachedPair {
                                pair: next,
                                depth: depth.saturating_add(1),
                                from,
                                explored: false,
                            });
                        }
                    }
                    _ => {
                        let blamed = self.blamed(at, group);
                        if depth >= FAR && self.shape.is_common(blamed) {
                            return Ok(true);
                        }
                        self.telling |= 1 << blamed;
                        if blamed != group {
                            return Ok(false);
                        }
                    }
                }
            }
            self.reached[at].explored = true;
            at += 1;
        }
        Ok(true)
    }

    /// The rarest group on the way to a difference.
    fn blamed(&self, at: usize, last: usize) -> usize {
        let mut blamed = last;
        let mut at = at;
        while let Some((from, group)) = self.reached[at].from {
            if self.shape.weight(group) < self.shape.weight(blamed) {
                blamed = group;
            }
            at = from;
        }
        blamed
    }

    /// Pairs reached by fewer bytes than the first that was left; they stay among pairs that were
    /// gone through for as long as bytes are missing to that one.
    fn finish(self) -> BoundedEquivalence {
        let Self { steps, telling, reached, .. } = self;
        let open = reached.iter().find(|reached| !reached.explored).map(|reached| reached.depth);
        let bytes = |depth| open.map_or(Some(u8::MAX), |open: u8| open.checked_sub(depth));
        let alike = reached.iter().filter(|reached| same_ends(steps, reached.pair));
        let pairs = alike.filter_map(|reached| Some((reached.pair, bytes(reached.depth)?)));
        BoundedEquivalence { pairs: pairs.collect(), telling }
    }
}

/// True when both lexemes may end here, on the same condition, or none. Only the first pair may
/// differ in that: it is gone through from its first byte on, but bytes that tell its residuals
/// apart may lead back to it.
fn same_ends(steps: &Transitions<'_>, (own, like): (LocalId, LocalId)) -> bool {
    steps.ends_if(own) == steps.ends_if(like)
}

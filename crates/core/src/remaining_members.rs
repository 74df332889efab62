//! Remainders of member sets: members without a few that were written.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, SlotId, VocabularyTrie, mask,
};

/// A member set without some of its members. Cursors are those of the whole set.
///
/// Missing members are kept as *cuts*: the first places along the spellings of missing members from
/// which no other member is reached. A place that is no cut, and lies below none, has a member.
///
/// Cost: to make, a walk along each missing spelling, and 256 steps at each place where several
/// ways part; a step is a look-up more than the whole set's; an effect takes the tokens below the
/// cuts out of a row of its own.
#[derive(Clone, Debug)]
pub struct RemainingMembers {
    whole: Arc<dyn MemberSet>,
    /// Ascending.
    missing: Box<[MemberId]>,
    cuts: HashSet<Cursor>,
    /// Places on the way to missing members, cuts included.
    paths: HashSet<Cursor>,
}

impl RemainingMembers {
    /// The set without some of its members, `missing`, which are spelled so.
    pub fn new(
        whole: Arc<dyn MemberSet>,
        spelling: MemberSpelling,
        missing: impl IntoIterator<Item = MemberId>,
    ) -> Self {
        let (cuts, paths) = Default::default();
        let none = Self { whole, missing: Box::default(), cuts, paths };
        none.less(spelling, missing)
    }

    /// This set without some members more, which may be among those that are missing already.
    #[must_use]
    pub fn without(
        &self,
        spelling: MemberSpelling,
        missing: impl IntoIterator<Item = MemberId>,
    ) -> Self {
        self.clone().less(spelling, missing)
    }

    fn less(
        mut self,
        spelling: MemberSpelling,
        missing: impl IntoIterator<Item = MemberId>,
    ) -> Self {
        let is_new = |member: &MemberId| !self.is_missing(*member);
        let mut more: Vec<MemberId> = missing.into_iter().filter(is_new).collect();
        more.sort_unstable();
        more.dedup();
        let mut all = [&*self.missing, &*more].concat();
        all.sort_unstable();
        self.missing = all.into();
        let (mut spelled, mut ways) = (Vec::new(), HashMap::new());
        for member in more {
            spelled.clear();
            self.whole.spell(member, spelling, &mut spelled);
            self.cut(&spelled, &mut ways);
        }
        self
    }

    /// Walks along a missing spelling, and cuts it off above the longest part that no other member
    /// has. `ways` remembers the ways on from places where several part.
    fn cut(&mut self, spelled: &[u8], ways: &mut HashMap<Cursor, Box<[(u8, Cursor)]>>) {
        let mut places: Vec<Cursor> = self.whole.start().into_iter().collect();
        for &byte in spelled {
            let next = places.last().and_then(|at| self.whole.advance(at, byte));
            places.extend(next);
        }
        // Up to here there is one way on from each place, and no member ends at it.
        let (mut one_way, mut run) = (vec![false; places.len()], Vec::new());
        let mut at = 0;
        while at < places.len() {
            run.clear();
            self.whole.forced(&places[at], &mut run);
            let end = (at + run.len()).min(places.len());
            one_way[at..end].fill(true);
            at = end.max(at + 1);
        }
        // From the end up to the first place from which a member is reached another way.
        let mut cut = places.len();
        for (at, place) in places.iter().enumerate().rev() {
            if !one_way[at] {
                let ways = ways.entry(place.clone()).or_insert_with(|| {
                    let way = |byte| Some((byte, self.whole.advance(place, byte)?));
                    (0..=u8::MAX).filter_map(way).collect()
                });
                let is_other = |byte: u8| spelled.get(at) != Some(&byte);
                let is_live =
                    |(byte, next): &(u8, Cursor)| is_other(*byte) && !self.cuts.contains(next);
                let ends = self.whole.member(place).is_some_and(|member| !self.is_missing(member));
                if ends || ways.iter().any(is_live) {
                    break;
                }
            }
            cut = at;
        }
        self.cuts.extend(places.get(cut).cloned());
        // Nothing is asked of places below a cut.
        self.paths.extend(places.into_iter().take(cut + 1));
    }

    fn is_missing(&self, member: MemberId) -> bool {
        self.missing.binary_search(&member).is_ok()
    }

    /// Clears the tokens below a node of the trie that lead below a cut.
    fn clear_below(&self, at: &Cursor, trie: &VocabularyTrie, node: usize, mask: &mut [u32]) {
        let mut open = vec![(node, at.clone(), self.cuts.contains(at))];
        while let Some((node, at, is_cut)) = open.pop() {
            for child in trie.children(node) {
                let Some(next) = self.whole.advance(&at, child.byte) else { continue };
                let is_cut = is_cut || self.cuts.contains(&next);
                if is_cut {
                    let own = trie.tokens_in(trie.own_ranks(child.index));
                    own.iter().for_each(|&token| mask::remove(mask, token));
                } else if !self.paths.contains(&next) {
                    continue;
                }
                open.push((child.index, next, is_cut));
            }
        }
    }
}

impl MemberSet for RemainingMembers {
    fn start(&self) -> Option<Cursor> {
        self.whole.start().filter(|start| !self.cuts.contains(start))
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        self.whole.advance(at, byte).filter(|next| !self.cuts.contains(next))
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        self.whole.member(at).filter(|&member| !self.is_missing(member))
    }

    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        if !self.paths.contains(at) {
            return self.whole.effect(at, trie, node, mask, ends, budget);
        }
        let first = ends.len();
        let mut row = vec![0; mask.len()];
        let found = self.whole.effect(at, trie, node, &mut row, ends, budget);
        self.clear_below(at, trie, node as usize, &mut row);
        mask.iter_mut().zip(row).for_each(|(word, more)| *word |= more);
        let mut kept = first;
        for at in first..ends.len() {
            if !self.is_missing(ends[at].1) {
                ends[kept] = ends[at];
                kept += 1;
            }
        }
        ends.truncate(kept);
        found
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        let mut at = at.clone();
        loop {
            let first = bytes.len();
            self.whole.forced(&at, bytes);
            for &byte in &bytes[first..] {
                let Some(next) = self.advance(&at, byte) else { return };
                at = next;
            }
            if !self.paths.contains(&at) || self.member(&at).is_some() {
                return;
            }
            let mut ways = (0..=u8::MAX).filter_map(|byte| Some((byte, self.advance(&at, byte)?)));
            let (Some((byte, next)), None) = (ways.next(), ways.next()) else { return };
            bytes.push(byte);
            at = next;
        }
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        self.whole.text(member, bytes);
    }

    fn spell(&self, member: MemberId, spelling: MemberSpelling, bytes: &mut Vec<u8>) {
        self.whole.spell(member, spelling, bytes);
    }

    fn len(&self) -> u64 {
        self.whole.len() - self.missing.len() as u64
    }

    fn longest(&self) -> Option<usize> {
        self.whole.longest()
    }

    fn is_empty(&self) -> bool {
        self.start().is_none()
    }
}

/// Cache of remainders by slot: a text writes one member after another, so that the set without
/// some members is mostly one that is known without one more.
#[derive(Debug, Default)]
pub struct RemainderCache {
    /// The last ones of each slot, the newest at the end.
    known: Mutex<HashMap<SlotId, Vec<Arc<RemainingMembers>>>>,
}

/// Remainders of a slot that are remembered: of texts that are written side by side.
const MAX_REMAINDERS: usize = 16;

impl RemainderCache {
    /// The set of a slot, `whole`, without some of its members, which are spelled so.
    pub fn remainder(
        &self,
        slot: SlotId,
        (whole, spelling): (&Arc<dyn MemberSet>, MemberSpelling),
        missing: impl IntoIterator<Item = MemberId>,
    ) -> Arc<RemainingMembers> {
        let mut missing: Vec<MemberId> = missing.into_iter().collect();
        missing.sort_unstable();
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_part = |known: &&Arc<RemainingMembers>| {
            known.missing.iter().all(|member| missing.binary_search(member).is_ok())
        };
        let nearest = lock().get(&slot).and_then(|known| {
            let parts = known.iter().filter(is_part);
            parts.max_by_key(|known| known.missing.len()).cloned()
        });
        // Made without the lock, so that others need not wait.
        let set = Arc::new(match nearest {
            Some(known) => known.without(spelling, missing),
            None => RemainingMembers::new(Arc::clone(whole), spelling, missing),
        });
        let mut known = lock();
        let known = known.entry(slot).or_default();
        if known.len() >= MAX_REMAINDERS {
            known.remove(0);
        }
        known.push(Arc::clone(&set));
        set
    }
}

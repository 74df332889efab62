//! Members near a text: those few edits away, found by descending with a row of edit distances.

use palmette_core::MemberId;

use crate::arrays::{ImplicitTrie, Prefix};
use crate::set::LexiconSet;

/// The most edits of what is near, as long as texts are not shorter.
const MAX_EDITS: u8 = 3;
/// Longer texts have no near ones.
const MAX_BYTES: usize = 200;
/// Prefixes that are looked at, at most.
const MAX_VISITS: usize = 1 << 16;

/// A member that a text may have been meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearMember {
    /// The member.
    pub member: MemberId,
    /// Edits of bytes that lead to it; `None` where it only begins alike.
    pub edits: Option<u8>,
}

impl LexiconSet {
    /// The member with this text.
    pub fn find(&self, text: &[u8]) -> Option<MemberId> {
        let rank = self.lexicon().rank(text).filter(|_| !text.is_empty())?;
        self.is_any(Prefix { lo: rank, hi: rank + 1, depth: 0 }).then_some(MemberId(rank as u64))
    }

    /// All members in ascending order of their texts.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        let (len, mut from) =
            (self.lexicon().len(), usize::from(self.lexicon().view().has_empty()));
        std::iter::from_fn(move || {
            let rank = self.next_chosen(from, len)?;
            from = rank + 1;
            Some(MemberId(rank as u64))
        })
    }

    /// Members that a text may have been meant for, `count` at most: those that fewest edits of
    /// bytes lead to, three at most, and then those that begin most alike.
    ///
    /// Cost: a row of distances for each prefix that is near, 65,536 of them at most.
    pub fn nearest(&self, text: &[u8], count: usize) -> Vec<NearMember> {
        if count == 0 || text.is_empty() || text.len() > MAX_BYTES {
            return Vec::new();
        }
        let mut near = Vec::new();
        let mut visits = MAX_VISITS;
        // A text of which every byte is another is not near.
        let most = MAX_EDITS.min((text.len() - 1) as u8);
        for max_edits in most.min(1)..=most {
            near = self.within(text, max_edits, &mut visits);
            if near.len() >= count || visits == 0 {
                break;
            }
        }
        near.sort_unstable();
        near.truncate(count);
        let with_edits = |(edits, member)| NearMember { member, edits: Some(edits) };
        let mut members: Vec<NearMember> = near.into_iter().map(with_edits).collect();
        self.add_alike(text, count, &mut members);
        members
    }

    /// Members that `max_edits` edits of `text` lead to, each with its edits.
    fn within(&self, text: &[u8], max_edits: u8, visits: &mut usize) -> Vec<(u8, MemberId)> {
        let strings = self.lexicon().view();
        let width = text.len() + 1;
        // Rows of all prefixes on the way: entry `j` is the distance of the prefix from the first
        // `j` bytes of the text (Levenshtein).
        let mut rows: Vec<u8> = (0..width).map(|j| j.min(usize::from(u8::MAX)) as u8).collect();
        let mut found = Vec::new();
        let mut open: Vec<(Prefix, Option<u8>)> =
            strings.root().into_iter().map(|root| (root, None)).collect();
        while let Some((at, byte)) = open.pop() {
            if *visits == 0 {
                break;
            }
            *visits -= 1;
            rows.truncate(at.depth.max(1) * width);
            if let Some(byte) = byte {
                push_row(&mut rows, text, byte);
            }
            let row = &rows[rows.len() - width..];
            if row.iter().all(|&distance| distance > max_edits) {
                continue;
            }
            let mut lo = at.lo;
            if strings.ends_at(at) {
                let whole = Prefix { hi: lo + 1, ..at };
                let edits = row[width - 1];
                if edits <= max_edits && self.is_any(whole) {
                    found.push((edits, MemberId(lo as u64)));
                }
                lo += 1;
            }
            while lo < at.hi {
                let hi = strings.next_child(lo, at.hi, at.depth);
                let child = Prefix { lo, hi, depth: at.depth + 1 };
                let byte = strings.tail(lo, at.depth).first;
                if self.is_any(child) {
                    open.push((child, byte));
                }
                lo = hi;
            }
        }
        found
    }

    /// Adds the members that share most of the text's first bytes, up to `count` in all.
    fn add_alike(&self, text: &[u8], count: usize, members: &mut Vec<NearMember>) {
        let strings = self.lexicon().view();
        let mut below: Vec<Prefix> = Vec::new();
        let mut at = strings.root();
        for &byte in text {
            let child = at.and_then(|at| strings.child(at, byte)).filter(|&at| self.is_any(at));
            below.extend(child);
            at = child;
        }
        // At least half of the text: what begins otherwise was hardly meant.
        below.drain(..below.len().min(text.len().div_ceil(2) - 1));
        for at in below.into_iter().rev() {
            let mut from = at.lo;
            while members.len() < count {
                let Some(rank) = self.next_chosen(from, at.hi) else { break };
                let member = MemberId(rank as u64);
                if members.iter().all(|known| known.member != member) {
                    members.push(NearMember { member, edits: None });
                }
                from = rank + 1;
            }
        }
    }
}

/// Adds the row of a prefix that is longer by `byte` than the one of the last row.
fn push_row(rows: &mut Vec<u8>, text: &[u8], byte: u8) {
    let before = rows.len() - (text.len() + 1);
    let mut last = rows[before].saturating_add(1);
    rows.push(last);
    for (j, &other) in text.iter().enumerate() {
        let replaced = rows[before + j].saturating_add(u8::from(other != byte));
        let removed = rows[before + j + 1].saturating_add(1);
        last = replaced.min(removed).min(last.saturating_add(1));
        rows.push(last);
    }
}

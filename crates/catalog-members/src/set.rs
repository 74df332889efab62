//! The values of a field as a member set: a union over segments.

use std::sync::OnceLock;

use palmette_catalog_live::{CatalogView, MAX_SEGMENTS};
use palmette_core::{Budget, Cursor, Interrupted, MemberId, MemberSet, VocabularyTrie};
use palmette_lexicon::LexiconSet;
use smallvec::SmallVec;

/// The values of a field that some items of a view have.
///
/// A union of one [`LexiconSet`] a segment: a value that several segments have is one member, that
/// of the first of them. A cursor has a bit for each segment whose values go on so, what was read,
/// and a range of each of these segments.
#[derive(Debug)]
pub struct FieldSet {
    /// Sets that have members, the one with the most strings first.
    parts: Box<[LexiconSet]>,
    num_items: u64,
    /// The way from members to items, where members are ids.
    numbers: Option<ItemNumbers>,
    /// Number of members, once counted.
    len: OnceLock<u64>,
}

/// The way from an id to the number of its item.
#[derive(Clone, Debug)]
pub(crate) enum ItemNumbers {
    View(CatalogView),
    /// Items are numbered by the ranks of their ids.
    Ranks,
}

/// Bits of a member's number that are its rank within a part.
const RANK_BITS: u32 = 32;
/// Words of a cursor before its ranges.
const HEAD_WORDS: usize = 2;
const _: () = assert!(LexiconSet::CURSOR_WORDS == 2, "a range, and what was read");

impl FieldSet {
    pub(crate) fn new(
        mut parts: Vec<LexiconSet>,
        num_items: u64,
        numbers: Option<ItemNumbers>,
    ) -> Self {
        parts.retain(|part| part.start().is_some());
        // What the others have besides is counted by looking each of theirs up.
        parts.sort_by_key(|part| std::cmp::Reverse(part.lexicon().len()));
        assert!(parts.len() <= u64::BITS as usize, "{} segments", parts.len());
        Self { parts: parts.into(), num_items, numbers, len: OnceLock::new() }
    }

    /// Number of items that match and have a value.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// The member with this text.
    pub fn find(&self, text: &str) -> Option<MemberId> {
        let found = |(place, part): (usize, &LexiconSet)| {
            Some(member_of(place, part.find(text.as_bytes())?))
        };
        self.parts.iter().enumerate().find_map(found)
    }

    /// The number of the item that a member is the id of, in the view or by its rank in the
    /// lexicon; `None` where members are no ids.
    pub fn item(&self, member: MemberId) -> Option<u64> {
        match self.numbers.as_ref()? {
            ItemNumbers::Ranks => Some(member.0),
            ItemNumbers::View(view) => {
                let mut id = Vec::new();
                self.text(member, &mut id);
                view.find(std::str::from_utf8(&id).ok()?)
            }
        }
    }

    /// True if a member of this set has the same number in another.
    pub fn is_numbered_as(&self, other: &Self) -> bool {
        let is_same = |(own, other): (&LexiconSet, &LexiconSet)| {
            std::ptr::eq(&**own.lexicon(), &**other.lexicon())
        };
        self.parts.len() <= other.parts.len() && self.parts.iter().zip(&other.parts).all(is_same)
    }

    /// Members that a text may have been meant for, the nearest first, `count` at most.
    pub fn nearest(&self, text: &str, count: usize) -> Vec<String> {
        let mut near = Vec::new();
        for part in &self.parts {
            for found in part.nearest(text.as_bytes(), count) {
                let text = part.lexicon().text(found.member.0 as usize);
                let order = (found.edits.is_none(), found.edits);
                near.push((order, String::from_utf8_lossy(&text).into_owned()));
            }
        }
        // A text that several parts have is in each as near.
        near.sort_unstable();
        near.dedup();
        near.truncate(count);
        near.into_iter().map(|(_, text)| text).collect()
    }

    /// The parts that a cursor is within, each with its place and its own cursor.
    fn parts_at<'a>(
        &'a self,
        at: &'a Cursor,
    ) -> impl Iterator<Item = (usize, &'a LexiconSet, Cursor)> {
        let (places, read, ranges) = match *at.words() {
            [ref range, read] if self.parts.len() == 1 => (1, read, std::slice::from_ref(range)),
            [places, read, ref ranges @ ..] => (places, read, ranges),
            _ => (0, 0, &[][..]),
        };
        let alive = self.parts.iter().enumerate().filter(move |(at, _)| places >> at & 1 == 1);
        let cursors = ranges.iter().map(move |&range| Cursor::new(&[range, read]));
        alive.zip(cursors).map(|((place, part), cursor)| (place, part, cursor))
    }

    /// The cursor of these parts, in the order of their places; `None` where there is none.
    fn cursor(&self, parts: impl Iterator<Item = (usize, Cursor)>) -> Option<Cursor> {
        let mut parts = parts.peekable();
        parts.peek()?;
        if self.parts.len() == 1 {
            return parts.next().map(|(_, cursor)| cursor);
        }
        let mut words = SmallVec::<[u64; HEAD_WORDS + MAX_SEGMENTS]>::from_slice(&[0; HEAD_WORDS]);
        for (place, cursor) in parts {
            words[0] |= 1 << place;
            words[1] = cursor.words()[1];
            words.push(cursor.words()[0]);
        }
        Some(Cursor::new(&words))
    }
}

impl MemberSet for FieldSet {
    fn start(&self) -> Option<Cursor> {
        let starts = self.parts.iter().enumerate();
        self.cursor(starts.filter_map(|(place, part)| Some((place, part.start()?))))
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        let next = |(place, part, at): (usize, &LexiconSet, Cursor)| {
            Some((place, part.advance(&at, byte)?))
        };
        self.cursor(self.parts_at(at).filter_map(next))
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        self.parts_at(at).find_map(|(place, part, at)| Some(member_of(place, part.member(&at)?)))
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
        let first = ends.len();
        let mut num_with_ends = 0;
        for (place, part, at) in self.parts_at(at) {
            let own = ends.len();
            part.effect(&at, trie, node, mask, ends, budget)?;
            let own = &mut ends[own..];
            own.iter_mut().for_each(|(_, member)| *member = member_of(place, *member));
            num_with_ends += u32::from(!own.is_empty());
        }
        if num_with_ends > 1 {
            keep_first_parts(ends, first);
        }
        Ok(())
    }

    /// Adds what the parts have alike.
    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        let (first, mut is_first) = (bytes.len(), true);
        let mut other = Vec::new();
        for (_, part, at) in self.parts_at(at) {
            if is_first {
                part.forced(&at, bytes);
                is_first = false;
                continue;
            }
            other.clear();
            part.forced(&at, &mut other);
            let alike = bytes[first..].iter().zip(&other).take_while(|(a, b)| a == b).count();
            bytes.truncate(first + alike);
        }
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        let (place, rank) = (member.0 >> RANK_BITS, member.0 & u64::from(u32::MAX));
        self.parts[place as usize].text(MemberId(rank), bytes);
    }

    /// Cost: once, a look-up of each value in the other segments, but for ids, of which no two
    /// items have one.
    fn len(&self) -> u64 {
        *self.len.get_or_init(|| {
            if self.numbers.is_some() {
                return self.num_items;
            }
            let counts = self.parts.iter().enumerate().map(|(place, part)| match place {
                0 => part.len(),
                _ => num_missing(part, &self.parts[..place]),
            });
            counts.sum()
        })
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// Number of members that none of the others has.
fn num_missing(part: &LexiconSet, others: &[LexiconSet]) -> u64 {
    let mut text = Vec::new();
    let is_missing = |member: &MemberId| {
        text.clear();
        part.text(*member, &mut text);
        others.iter().all(|other| other.find(&text).is_none())
    };
    part.members().filter(is_missing).count() as u64
}

/// Leaves of the ends after the first few one for each node: below a node a text ends in one way,
/// so that ends at one node are one member, of several parts.
#[cold]
fn keep_first_parts(ends: &mut Vec<(u32, MemberId)>, first: usize) {
    ends[first..].sort_unstable();
    let mut kept = first;
    for at in first..ends.len() {
        if kept == first || ends[kept - 1].0 != ends[at].0 {
            ends[kept] = ends[at];
            kept += 1;
        }
    }
    ends.truncate(kept);
}

fn member_of(place: usize, member: MemberId) -> MemberId {
    MemberId((place as u64) << RANK_BITS | member.0)
}

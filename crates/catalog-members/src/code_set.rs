//! Semantic IDs as a member set: the numbers of the tokens that spell an item's codes.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use palmette_catalog::index::ItemSet;
use palmette_catalog::{Catalog, CatalogState, CodeTokens};
use palmette_catalog_live::{CatalogView, ItemRef, MAX_SEGMENTS};
use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, NUMBER_BYTES, NUMBER_MARK,
    TokenId, VocabularyTrie,
};
use smallvec::SmallVec;

use crate::number_path::NumberPath;

/// The semantic IDs that some items of a view have, in a model's own tokens.
///
/// A spelling is the [number](TokenId::to_spelling) of one token a code, so no text is one. Items
/// that share an ID are one member. A union over segments: a cursor is the catalog's state in each
/// segment whose items go on so, and what was read of a token's number.
#[derive(Debug)]
pub struct CodeSet {
    view: CatalogView,
    tokens: Arc<CodeTokens>,
    /// Segments with items that may be written, the oldest first.
    parts: Box<[Part]>,
    num_items: u64,
    /// Number of members, once counted.
    len: OnceLock<u64>,
}

/// Items of a segment that may be written.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) segment: u32,
    /// `None` for all.
    pub(crate) items: Option<Arc<ItemSet>>,
}

/// Bits of a member's number that are the rank of its first item.
const RANK_BITS: u32 = 32;
/// Words of a part's state in a cursor.
const STATE_WORDS: usize = 2;
/// Bit of a cursor's first word from which on it has the parts; below are the bytes read.
const PLACES_BIT: u32 = 32;
const _: () = assert!(MAX_SEGMENTS <= 32, "a bit for each part");

/// First bytes of a token's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NumberPrefix {
    /// Bytes that were read, the mark included: fewer than all.
    len: u32,
    /// The bytes after the mark as a number.
    value: u32,
}

/// A number's prefix with one more byte.
enum NextPrefix {
    Prefix(NumberPrefix),
    Token(TokenId),
}

impl NumberPrefix {
    fn from_word(word: u64) -> Self {
        Self { len: (word >> 24) as u32 & 0xFF, value: word as u32 & 0xFF_FFFF }
    }

    fn to_word(self) -> u64 {
        u64::from(self.len << 24 | self.value)
    }

    /// The tokens whose numbers begin so.
    fn tokens(self) -> RangeInclusive<u32> {
        let open_bits = u32::BITS - 8 * self.len.saturating_sub(1);
        let open = u32::MAX.checked_shr(u32::BITS - open_bits).unwrap_or(0);
        let first = self.value.checked_shl(open_bits).unwrap_or(0);
        first..=first | open
    }

    fn then(self, byte: u8) -> Option<NextPrefix> {
        let Self { len, value } = self;
        if len == 0 {
            let is_mark = byte == NUMBER_MARK;
            return is_mark.then_some(NextPrefix::Prefix(Self { len: 1, value: 0 }));
        }
        let value = value << 8 | u32::from(byte);
        Some(match len as usize + 1 == NUMBER_BYTES {
            true => NextPrefix::Token(TokenId(value)),
            false => NextPrefix::Prefix(Self { len: len + 1, value }),
        })
    }
}

impl Part {
    fn any_in(&self, ranks: std::ops::Range<u64>) -> bool {
        match &self.items {
            Some(items) => items.ranks().any_in(ranks),
            None => !ranks.is_empty(),
        }
    }

    /// The items of a range of ranks that may be written.
    fn items_in(&self, ranks: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        ranks.filter(|&rank| self.items.as_ref().is_none_or(|all| all.ranks().contains(rank)))
    }
}

impl CodeSet {
    /// The set of a view's items, whose codes all have tokens.
    pub(crate) fn new(view: CatalogView, tokens: Arc<CodeTokens>, parts: Vec<Part>) -> Self {
        let mut set =
            Self { view, tokens, parts: parts.into(), num_items: 0, len: OnceLock::new() };
        let count = |part: &Part| match &part.items {
            Some(items) => items.len(),
            None => set.catalog(part).num_items(),
        };
        set.num_items = set.parts.iter().map(count).sum();
        set
    }

    /// Number of items that may be written.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// The items' view.
    pub fn view(&self) -> &CatalogView {
        &self.view
    }

    /// The tokens that spell codes.
    pub fn tokens(&self) -> &Arc<CodeTokens> {
        &self.tokens
    }

    /// Codes of the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        let levels = self.parts.iter().map(|part| self.catalog(part).num_levels());
        levels.max().unwrap_or(0)
    }

    /// The semantic ID of a member.
    ///
    /// # Panics
    /// When the set has no such member.
    pub fn codes(&self, member: MemberId) -> Vec<u32> {
        let (part, rank) = self.place_of(member);
        self.catalog(part).codes(rank)
    }

    /// The numbers of the items that have a member's semantic ID and may be written, in the order
    /// in which they are recommended; one at least.
    ///
    /// # Panics
    /// When the set has no such member.
    pub fn items(&self, member: MemberId) -> impl Iterator<Item = u64> + '_ {
        let codes = self.codes(member);
        self.parts.iter().flat_map(move |part| {
            let ranks = self.catalog(part).find(&codes);
            let number = |rank| self.view.number(ItemRef { segment: part.segment, rank });
            part.items_in(ranks).map(number)
        })
    }

    /// The member with this semantic ID.
    pub fn find(&self, codes: &[u32]) -> Option<MemberId> {
        let found = |(place, part): (usize, &Part)| {
            let rank = part.items_in(self.catalog(part).find(codes)).next()?;
            Some(member_of(place, rank))
        };
        self.parts.iter().enumerate().find_map(found)
    }

    /// The member that these tokens spell.
    pub fn find_tokens(&self, tokens: &[TokenId]) -> Option<MemberId> {
        let code = |(level, &token): (usize, &TokenId)| self.tokens.code(level, token);
        let codes: Option<Vec<u32>> = tokens.iter().enumerate().map(code).collect();
        self.find(&codes?)
    }

    fn place_of(&self, member: MemberId) -> (&Part, u64) {
        let (place, rank) = (member.0 >> RANK_BITS, member.0 & u64::from(u32::MAX));
        (&self.parts[place as usize], rank)
    }

    fn catalog(&self, part: &Part) -> &Catalog {
        match &self.view {
            CatalogView::Frozen(filters) => filters.catalog(),
            CatalogView::Snapshot(snapshot) => {
                snapshot.segments()[part.segment as usize].segment().catalog()
            }
        }
    }

    /// The parts that a cursor is within, each with its place and its state.
    fn parts_at<'a>(
        &'a self,
        at: &'a Cursor,
    ) -> impl Iterator<Item = (usize, &'a Part, CatalogState)> {
        let (head, states) = at.words().split_first().map_or((0, &[][..]), |(head, s)| (*head, s));
        let places = head >> PLACES_BIT;
        let alive = self.parts.iter().enumerate().filter(move |(at, _)| places >> at & 1 == 1);
        let states = states.as_chunks::<STATE_WORDS>().0;
        let states = states.iter().map(|&words| CatalogState::from_words(words));
        alive.zip(states).map(|((place, part), state)| (place, part, state))
    }

    /// The cursor of these parts, in the order of their places, before a token; `None` where there
    /// is none.
    fn cursor(&self, parts: impl Iterator<Item = (usize, CatalogState)>) -> Option<Cursor> {
        let mut words = SmallVec::<[u64; 1 + STATE_WORDS * MAX_SEGMENTS]>::from_slice(&[0]);
        for (place, state) in parts {
            words[0] |= 1 << (PLACES_BIT + place as u32);
            words.extend_from_slice(&state.to_words());
        }
        (words.len() > 1).then(|| Cursor::new(&words))
    }

    /// Visits the tokens that may follow a state of a part, ascending.
    fn for_each_child(&self, part: &Part, state: CatalogState, mut visit: impl FnMut(TokenId)) {
        let Some(level) = self.tokens.levels().get(state.level()) else { return };
        let (index, items) = (self.catalog(part).index(), part.items.as_deref());
        level.in_order(
            |child| index.successors(&[state], items, |_, code, _| child(code, ())),
            |token, ()| visit(token),
        );
    }

    /// The least and the greatest token that may follow at a cursor, of a range.
    fn children_in(&self, at: &Cursor, range: RangeInclusive<u32>) -> Option<(TokenId, TokenId)> {
        let mut bounds: Option<(TokenId, TokenId)> = None;
        for (_, part, state) in self.parts_at(at) {
            self.for_each_child(part, state, |token| {
                if range.contains(&token.0) {
                    let (least, most) = bounds.unwrap_or((token, token));
                    bounds = Some((least.min(token), most.max(token)));
                }
            });
        }
        bounds
    }

    /// The cursor after a token, of one before it.
    fn after(&self, at: &Cursor, token: TokenId) -> Option<Cursor> {
        let next = |(place, part, state): (usize, &Part, CatalogState)| {
            let code = self.tokens.code(state.level(), token)?;
            let next = self.catalog(part).child(&state, code)?;
            part.any_in(next.ranks()).then_some((place, next))
        };
        self.cursor(self.parts_at(at).filter_map(next))
    }

    /// Number of semantic IDs of a part that no part before it has.
    fn count(&self, place: usize) -> u64 {
        let part = &self.parts[place];
        let catalog = self.catalog(part);
        let is_known = |codes: &[u32]| {
            let before = self.parts[..place].iter();
            let mut found = before.map(|part| (part, self.catalog(part).find(codes)));
            found.any(|(part, ranks)| part.any_in(ranks))
        };
        let (mut count, mut codes, mut open) = (0, Vec::new(), vec![(0, catalog.start())]);
        while let Some((code, state)) = open.pop() {
            if let Some(last) = state.level().checked_sub(1) {
                codes.truncate(last);
                codes.push(code);
                let is_member = part.any_in(catalog.items_at(&state));
                count += u64::from(is_member && !is_known(&codes));
            }
            let (index, items) = (catalog.index(), part.items.as_deref());
            index.successors(&[state], items, |_, code, next| open.push((code, next)));
        }
        count
    }
}

impl MemberSet for CodeSet {
    fn start(&self) -> Option<Cursor> {
        let start = |(place, part): (usize, &Part)| (place, self.catalog(part).start());
        let starts = self.parts.iter().enumerate().map(start);
        self.cursor(starts.filter(|(place, state)| self.parts[*place].any_in(state.ranks())))
    }

    /// Cost: of the last byte of a token a look-up in each segment; of another a pass over the
    /// codes that may follow.
    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        match prefix_of(at).then(byte)? {
            NextPrefix::Token(token) => self.after(at, token),
            NextPrefix::Prefix(prefix) => {
                self.children_in(at, prefix.tokens())?;
                let mut words = SmallVec::<[u64; 4]>::from_slice(at.words());
                words[0] = words[0] >> PLACES_BIT << PLACES_BIT | prefix.to_word();
                Some(Cursor::new(&words))
            }
        }
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        if prefix_of(at).len > 0 {
            return None;
        }
        self.parts_at(at).filter(|(_, _, state)| state.level() > 0).find_map(
            |(place, part, state)| {
                let rank = part.items_in(self.catalog(part).items_at(&state)).next()?;
                Some(member_of(place, rank))
            },
        )
    }

    /// Asks the codes that may follow for their tokens, and no others.
    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        budget.spend(1)?;
        let top = node as usize;
        if trie.end(top) == top + 1 {
            return Ok(());
        }
        ends.extend(self.member(at).map(|member| (node, member)));
        let prefix = prefix_of(at);
        // Few of a vocabulary's nodes have a number below them.
        if prefix.len == 0 && trie.child(top, NUMBER_MARK).is_none() {
            return Ok(());
        }
        let range = prefix.tokens();
        // Numbers that tokens go on after, which those of vocabularies do not.
        let mut deeper = SmallVec::<[(usize, TokenId); 4]>::new();
        for (_, part, state) in self.parts_at(at) {
            let mut path = NumberPath::new(trie, top, prefix.len as usize);
            let mut walked = Ok(());
            self.for_each_child(part, state, |token| {
                if walked.is_err() || !range.contains(&token.0) {
                    return;
                }
                walked = path.find(token, mask, budget).map(|found| {
                    let below = found.filter(|&node| trie.end(node) > node + 1);
                    deeper.extend(below.map(|node| (node, token)));
                });
            });
            walked?;
        }
        deeper.sort_unstable();
        deeper.dedup();
        for (node, token) in deeper {
            if let Some(next) = self.after(at, token) {
                self.effect(&next, trie, node as u32, mask, ends, budget)?;
            }
        }
        Ok(())
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        let (mut at, mut prefix) = (at.clone(), prefix_of(at));
        while self.member(&at).is_none() {
            let Some((least, most)) = self.children_in(&at, prefix.tokens()) else { return };
            let (least_number, most_number) = (least.to_spelling(), most.to_spelling());
            let alike = least_number.iter().zip(&most_number).take_while(|(a, b)| a == b);
            let alike = alike.skip(prefix.len as usize).map(|(byte, _)| byte);
            bytes.extend(alike);
            if least != most {
                return;
            }
            let Some(next) = self.after(&at, least) else { return };
            (at, prefix) = (next, NumberPrefix::default());
        }
    }

    /// Adds the codes with dashes between them.
    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        for (level, code) in self.codes(member).into_iter().enumerate() {
            if level > 0 {
                bytes.push(b'-');
            }
            bytes.extend_from_slice(code.to_string().as_bytes());
        }
    }

    fn spell(&self, member: MemberId, _: MemberSpelling, bytes: &mut Vec<u8>) {
        for (level, code) in self.codes(member).into_iter().enumerate() {
            let token = self.tokens.token(level, code);
            bytes.extend(token.iter().flat_map(|token| token.to_spelling()));
        }
    }

    /// Cost: once, a walk over all prefixes of the items.
    fn len(&self) -> u64 {
        *self.len.get_or_init(|| (0..self.parts.len()).map(|place| self.count(place)).sum())
    }

    fn longest(&self) -> Option<usize> {
        Some(self.num_levels() * NUMBER_BYTES)
    }

    fn is_empty(&self) -> bool {
        self.num_items == 0
    }
}

fn prefix_of(at: &Cursor) -> NumberPrefix {
    at.words().first().map_or(NumberPrefix::default(), |&word| NumberPrefix::from_word(word))
}

fn member_of(place: usize, rank: u64) -> MemberId {
    MemberId((place as u64) << RANK_BITS | rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_ranges_of_tokens() {
        let mut prefix = NumberPrefix::default();
        assert_eq!(prefix.tokens(), 0..=u32::MAX);
        let mut ranges = Vec::new();
        for byte in TokenId(0x0102_FF04).to_spelling() {
            match prefix.then(byte).expect("a number") {
                NextPrefix::Prefix(next) => prefix = NumberPrefix::from_word(next.to_word()),
                NextPrefix::Token(token) => assert_eq!(token, TokenId(0x0102_FF04)),
            }
            ranges.push(prefix.tokens());
        }
        let expected = [
            0..=u32::MAX,
            0x0100_0000..=0x01FF_FFFF,
            0x0102_0000..=0x0102_FFFF,
            0x0102_FF00..=0x0102_FFFF,
        ];
        assert_eq!(ranges[..4], expected);
        assert!(NumberPrefix::default().then(b'a').is_none());
    }
}

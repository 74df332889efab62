//! How tokens go on at a place within them, by the parser's stack.
//!
//! Whatever lexeme it is, it ends at the same few places of tokens: any string, however many of its characters are left, ends at a quote.
//! What may come there depends on the parser's stack, and of that mostly on a few states. So it is kept by place and these states, and a
//! mask is put together from what was found for other lexemes.

use hashbrown::HashMap;
use palmette_core::TokenId;

use super::level::ExceptId;
use super::lexemes::LexemeId;
use super::suffixes::SuffixId;
use super::tops::{TopId, Tops};
use super::{PieceId, Pieces, Unread};
use crate::lr::StateId;
use crate::masks::chunks::Chunks;
use crate::masks::hash_index::HashIndex;
use crate::masks::stack_trees::StackTrees;

/// Tokens that may go on at a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Ascending, with the lengths of what is left of them there; 0 before their first byte.
    pub(super) tokens: Box<[(TokenId, u32)]>,
    /// Pieces within which other tokens stay, ascending; only before their first byte.
    pub(super) stayed: Box<[PieceId]>,
}

/// A number into [`Tails`]; equal numbers are equal tails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::masks) struct TailId(pub(super) u32);

impl TailId {
    /// The tail of no tokens.
    pub(super) const NOTHING: Self = Self(0);
}

/// The tails of a grammar, as far as they were asked for.
#[derive(Debug)]
pub(in crate::masks) struct Tails {
    trees: StackTrees<Option<TailId>>,
    /// The numbers of the places' trees.
    numbers: HashMap<SuffixId, u32>,
    tails: Chunks<Tail>,
    ids: HashIndex,
    /// Tails without exceptions.
    without: HashMap<(TailId, ExceptId), TailId>,
    /// By lexeme, the tokens that end within its text.
    texts: HashMap<LexemeId, TailId>,
    bytes: usize,
}

impl Default for Tails {
    fn default() -> Self {
        let mut made = Self {
            trees: StackTrees::default(),
            numbers: HashMap::new(),
            tails: Chunks::default(),
            ids: HashIndex::default(),
            without: HashMap::new(),
            texts: HashMap::new(),
            bytes: 0,
        };
        let nothing = made.intern(Tail::default());
        debug_assert_eq!(nothing, TailId::NOTHING, "it is the first one");
        made
    }
}

impl Tails {
    /// About how much memory they take.
    pub(in crate::masks) fn memory_bytes(&self) -> usize {
        self.trees.memory_bytes()
            + self.numbers.len() * size_of::<(SuffixId, u32)>()
            + self.without.len() * size_of::<(TailId, ExceptId, TailId)>()
            + self.texts.len() * size_of::<(LexemeId, TailId)>()
            + self.ids.memory_bytes()
            + self.bytes
    }

    pub(super) fn get(&self, id: TailId) -> &Tail {
        &self.tails[id.0 as usize]
    }

    /// The tokens of a tail.
    pub(in crate::masks) fn tokens(&self, id: TailId) -> impl Iterator<Item = TokenId> {
        self.get(id).tokens.iter().map(|&(token, _)| token)
    }

    /// Within which pieces the others of a tail stay, ascending.
    pub(in crate::masks) fn stayed(&self, id: TailId) -> &[PieceId] {
        &self.get(id).stayed
    }

    /// How many tokens a tail has.
    pub(in crate::masks) fn num_tokens(&self, id: TailId) -> usize {
        self.get(id).tokens.len()
    }

    /// Forgets all but the tails themselves: what they were found by is numbers into pieces that are no more.
    pub(in crate::masks) fn forget(&mut self) {
        self.trees = StackTrees::default();
        self.numbers.clear();
        self.without.clear();
        self.texts.clear();
    }

    /// The tail at a place on a stack, if it is known.
    ///
    /// # Errors
    /// [`Unread::Deeper`] where it depends on what is not known of the stack.
    pub(super) fn find(
        &self,
        place: SuffixId,
        tops: &mut Tops<'_>,
        stack: TopId,
    ) -> Result<Option<TailId>, Unread> {
        let mut at = stack;
        let tree = self.numbers.get(&place);
        let mut node = tree.and_then(|&tree| self.trees.top(tree, tops.state(at)));
        while let Some(here) = node {
            if let Some(known) = *self.trees.known(here) {
                return Ok(Some(known));
            }
            let Some(below) = tops.below(at)? else { break };
            at = below;
            node = self.trees.child(here, tops.state(at));
        }
        Ok(None)
    }

    /// Remembers the tail at a place on all stacks that begin with these states.
    pub(super) fn remember(&mut self, place: SuffixId, states: &[StateId], tail: Tail) -> TailId {
        let id = self.intern(tail);
        let next = self.numbers.len() as u32;
        let tree = *self.numbers.entry(place).or_insert(next);
        let node = self.trees.make(tree, states);
        self.trees.know(node, Some(id));
        id
    }

    /// A tail without exceptions.
    pub(super) fn without(&mut self, tail: TailId, except: ExceptId, pieces: &Pieces) -> TailId {
        if let Some(&known) = self.without.get(&(tail, except)) {
            return known;
        }
        let except_of = pieces.except(except);
        let Tail { tokens, stayed } = self.get(tail);
        let counts = |&&(token, left): &&(TokenId, u32)| !except_of.contains(token, left);
        let left = tokens.iter().filter(counts).copied().collect();
        let left = Tail { tokens: left, stayed: stayed.clone() };
        let found = self.intern(left);
        self.without.insert((tail, except), found);
        found
    }

    /// The tail of the tokens that end within the text of a lexeme, which are taken out of `tokens`.
    pub(super) fn of_text(&mut self, lexeme: LexemeId, tokens: &mut Vec<(TokenId, u32)>) -> TailId {
        if let Some(&known) = self.texts.get(&lexeme) {
            tokens.clear();
            return known;
        }
        tokens.sort_unstable();
        tokens.dedup();
        let found = self.intern(Tail { tokens: tokens.drain(..).collect(), ..Tail::default() });
        self.texts.insert(lexeme, found);
        found
    }

    fn intern(&mut self, tail: Tail) -> TailId {
        let hash = tail.hash();
        let same = |number: u32| self.tails[number as usize] == tail;
        if let Some(known) = self.ids.find(hash, same) {
            return TailId(known);
        }
        let next = self.tails.len() as u32;
        self.ids.insert(hash, next);
        self.bytes += size_of::<Tail>() + size_of_val(&*tail.tokens) + size_of_val(&*tail.stayed);
        self.tails.push(tail);
        TailId(next)
    }
}

impl Tail {
    fn hash(&self) -> u64 {
        let tokens =
            self.tokens.iter().map(|&(token, left)| u64::from(token.0) << 32 | u64::from(left));
        let stayed = self.stayed.iter().map(|piece| u64::from(piece.0) << 32 | u64::from(u32::MAX));
        tokens
            .chain(stayed)
            .fold(0, |hash, part| (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23))
    }
}

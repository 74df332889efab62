//! Sets of suffixes accepted at a place within tokens, by the parser's stack.
//!
//! Whatever lexeme it is, it ends at the same few places of tokens: any string, however many of its characters are left, ends at a quote.
//! What may come there depends on the parser's stack, and of that mostly on a few states. So it is kept by place and these states, and a
//! mask is put together from what was found for other lexemes.

use palmette_core::TokenId;

use super::level::{Component, ExceptId};
use super::lexemes::LexemeId;
use super::mask_nodes::{ComponentsId, MaskNodes, SaidOfMask};
use super::pending::PendingSets;
use super::tail_nodes::TailNodes;
use super::{PieceId, Pieces};
use crate::masks::interned::{GrowingMap, Interned};
use crate::masks::read_nodes::ReadNodes;

/// Tokens that may go on at a place.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tail {
    /// Ascending, with the lengths of what is left of them there; 0 before their first byte.
    pub(super) tokens: Box<[(TokenId, u32)]>,
    /// Pieces within which other tokens stay, ascending; only before their first byte.
    pub(super) stayed: Box<[PieceId]>,
}

/// A number into [`Tails`]; equal numbers are equal tails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::masks) struct TailId(u32);

impl TailId {
    /// The tail of no tokens.
    pub(super) const NOTHING: Self = Self(0);
}

/// The tails of a grammar, as far as they were asked for.
#[derive(Debug)]
pub(in crate::masks) struct Tails {
    tails: Interned<Tail>,
    pub(super) nodes: TailNodes,
    pub(super) mask_nodes: MaskNodes,
    pub(super) pending: PendingSets,
    /// Tails without exceptions.
    without: GrowingMap<(TailId, ExceptId), TailId>,
    /// By lexeme, the tokens that end within its text.
    texts: GrowingMap<LexemeId, TailId>,
    /// What the tails own.
    bytes: usize,
}

impl Default for Tails {
    fn default() -> Self {
        let mut made = Self {
            tails: Interned::default(),
            nodes: TailNodes::default(),
            mask_nodes: MaskNodes::default(),
            pending: PendingSets::default(),
            without: GrowingMap::default(),
            texts: GrowingMap::default(),
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
        self.tails.memory_bytes()
            + self.nodes.memory_bytes()
            + self.mask_nodes.memory_bytes()
            + self.pending.memory_bytes()
            + self.without.memory_bytes()
            + self.texts.memory_bytes()
            + self.bytes
    }

    pub(super) fn get(&self, id: TailId) -> &Tail {
        self.tails.get(id.0)
    }

    /// What stacks say of masks, by lexeme in progress.
    pub(in crate::masks) fn of_masks(&self) -> &ReadNodes<SaidOfMask> {
        &self.mask_nodes.nodes
    }

    /// What a mask is made of.
    pub(in crate::masks) fn components(&self, id: ComponentsId) -> &[Component] {
        self.mask_nodes.components(id)
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
        self.nodes = TailNodes::default();
        self.mask_nodes = MaskNodes::default();
        self.pending = PendingSets::default();
        self.without = GrowingMap::default();
        self.texts = GrowingMap::default();
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

    /// The tail of the tokens of several, of what is left of which the lengths are those `at_front`, or as they are.
    pub(super) fn union(&mut self, one: TailId, others: &[TailId], at_front: bool) -> TailId {
        match (one, others) {
            (_, []) => return one,
            (TailId::NOTHING, &[other]) if !at_front => return other,
            _ => {}
        }
        let all = || std::iter::once(one).chain(others.iter().copied()).map(|id| self.get(id));
        let tokens = all().flat_map(|tail| &tail.tokens);
        let mut tokens: Vec<_> =
            tokens.map(|&(token, left)| (token, if at_front { 0 } else { left })).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let mut stayed: Vec<_> = all().flat_map(|tail| &tail.stayed).copied().collect();
        stayed.sort_unstable();
        stayed.dedup();
        self.intern(Tail { tokens: tokens.into(), stayed: stayed.into() })
    }

    /// The number of a tail.
    pub(super) fn intern(&mut self, tail: Tail) -> TailId {
        let bytes = size_of_val(&*tail.tokens) + size_of_val(&*tail.stayed);
        let (number, is_new) = self.tails.intern(tail);
        self.bytes += if is_new { bytes } else { 0 };
        TailId(number)
    }
}

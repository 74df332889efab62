//! Set of suffixes accepted at a place within tokens.

use palmette_core::TokenId;

use super::member_begin::MemberBegin;
use super::residual_id::ResidualId;

/// Tokens that may go on at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SuffixSet {
    /// Ascending, with the lengths of what is left of them there; 0 before their first byte.
    pub(super) tokens: Vec<(TokenId, u32)>,
    /// Residuals by which other tokens are consumed whole, ascending; only before their first byte.
    pub(crate) consuming: Vec<ResidualId>,
    /// Sets whose tokens go on too, ascending: those with many tokens, and in the set of a mask, or
    /// of a step, all that it is made of.
    pub(crate) parts: Vec<SuffixSetId>,
    pub(crate) kind: SetKind,
}

/// Kind of a suffix set, by what it stands for beside its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum SetKind {
    /// Tokens alone.
    #[default]
    Tokens,
    /// A node of this number from a file, of which only the mask is known.
    Restored(u32),
    /// The tokens that go on with a member, which its set tells. Such a set is only a part of
    /// others.
    Member(MemberBegin),
}

/// A number into [`SuffixSets`](super::SuffixSets); equal numbers are equal suffix sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SuffixSetId(pub(super) u32);

impl SuffixSet {
    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.consuming.clear();
        self.parts.clear();
        self.kind = SetKind::Tokens;
    }

    /// Tokens of its own, but for those consumed whole.
    pub(crate) fn tokens(&self) -> impl ExactSizeIterator<Item = TokenId> {
        self.tokens.iter().map(|&(token, _)| token)
    }
}

impl SuffixSetId {
    /// The suffix set of no tokens.
    pub(super) const NOTHING: Self = Self(0);
}

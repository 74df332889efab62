//! A grammar under bindings, and the members of its texts.

use std::sync::Arc;

use palmette_core::{SlotId, TokenId};
use palmette_grammar::{GrammarConstraint, GrammarScratch, RecognizerError, Slot, WrittenMember};

use crate::bound_sets::{BoundSet, BoundSets, Member};

/// A grammar whose slots have their sets. Cheap to clone; threads share it.
#[derive(Clone, Debug)]
pub struct BoundGrammar {
    constraint: GrammarConstraint,
    sets: Arc<BoundSets>,
    sources: Arc<[BoundSource]>,
}

/// Source of a binding, as it is at the binding's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundSource {
    /// The name that it is bound by.
    pub name: String,
    /// Generation of a live catalog.
    pub generation: Option<u64>,
    /// Items, or documents, in all.
    pub num_items: u64,
    /// Substrings of documents that may be written, or items of which a field may be: of the field
    /// with the most of them, where the grammar names several.
    pub eligible: u64,
}

impl BoundGrammar {
    pub(crate) fn new(
        constraint: GrammarConstraint,
        sets: BoundSets,
        sources: Vec<BoundSource>,
    ) -> Self {
        Self { constraint, sets: Arc::new(sets), sources: sources.into() }
    }

    /// The grammar as a [`Constraint`](palmette_core::Constraint).
    pub fn constraint(&self) -> &GrammarConstraint {
        &self.constraint
    }

    /// The sources of its sets, ascending by name.
    pub fn sources(&self) -> &[BoundSource] {
        &self.sources
    }

    /// Sets by slot, in the order of [`GrammarConstraint::slots`].
    pub fn sets(&self) -> &[BoundSet] {
        self.sets.as_slice()
    }

    /// The id of the item of a named catalog that these tokens spell as codes.
    pub fn item_of_tokens(&self, name: &str, tokens: &[TokenId]) -> Option<String> {
        self.sets.item_of_tokens(name, tokens)
    }

    /// A slot with its set; `None` of a set that the grammar brings.
    pub(crate) fn slot(&self, slot: SlotId) -> Option<(&BoundSet, &Slot)> {
        let (place, slots) = (slot.index(), self.constraint.slots());
        self.sets.as_slice().get(place).zip(slots.get(place))
    }

    /// A member with its names; `None` of a set that the grammar brings.
    pub(crate) fn named_member(&self, member: WrittenMember) -> Option<Member> {
        self.sets.member(member)
    }

    /// The members that a text has, in their order; `None` where it begins no text of the language.
    /// A member counts where it has ended, or where the text may end with it.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn members(&self, text: &[u8]) -> Result<Option<Vec<Member>>, RecognizerError> {
        self.members_with(text, &mut GrammarScratch::default())
    }

    /// [`members`](Self::members) with memory that the caller keeps.
    ///
    /// # Errors
    /// As [`members`](Self::members).
    pub fn members_with(
        &self,
        text: &[u8],
        scratch: &mut GrammarScratch,
    ) -> Result<Option<Vec<Member>>, RecognizerError> {
        let written = self.constraint.members(text, scratch)?;
        Ok(self.named(written))
    }

    /// The members that a text in tokens has, among them semantic IDs, which are none of its bytes;
    /// places count the bytes that `num_bytes` gives for each token.
    ///
    /// # Errors
    /// As [`members`](Self::members).
    ///
    /// # Panics
    /// When a token is not in the vocabulary.
    pub fn members_of_tokens(
        &self,
        tokens: &[TokenId],
        num_bytes: impl Fn(TokenId) -> usize,
    ) -> Result<Option<Vec<Member>>, RecognizerError> {
        let scratch = &mut GrammarScratch::default();
        Ok(self.named(self.constraint.members_of_tokens(tokens, num_bytes, scratch)?))
    }

    /// Members with their names, but for those of sets that the grammar brings.
    fn named(&self, written: Option<Vec<WrittenMember>>) -> Option<Vec<Member>> {
        let named = |all: Vec<WrittenMember>| {
            all.into_iter().filter_map(|member| self.sets.member(member)).collect()
        };
        written.map(named)
    }
}

//! A grammar under bindings, and the members of its texts.

use std::ops::Range;
use std::sync::Arc;

use palmette_catalog_members::{FieldSet, ID_FIELD};
use palmette_core::MemberSet;
use palmette_grammar::{GrammarConstraint, GrammarScratch, RecognizerError, WrittenMember};

/// A grammar whose slots have their sets. Cheap to clone; threads share it.
#[derive(Clone, Debug)]
pub struct BoundGrammar {
    constraint: GrammarConstraint,
    /// Sets by slot.
    sets: Arc<[Arc<FieldSet>]>,
    sources: Arc<[BoundSource]>,
}

/// Source of a binding, as it is at the binding's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundSource {
    /// The name that it is bound by.
    pub name: String,
    /// Generation of a live catalog.
    pub generation: Option<u64>,
    /// Items in all.
    pub num_items: u64,
    /// Items of which a field may be written: of the field with the most of them, where the grammar
    /// names several.
    pub eligible: u64,
}

/// Member of a bound set that a text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name of the set.
    pub set: String,
    /// The field: `id` or an attribute.
    pub field: String,
    /// The value, which may be spelled another way in the text.
    pub value: String,
    /// The number of the item, where the value is its id.
    pub item: Option<u64>,
    /// Bytes of its spelling within the text.
    pub span: Range<usize>,
}

impl BoundGrammar {
    pub(crate) fn new(
        constraint: GrammarConstraint,
        sets: Vec<Arc<FieldSet>>,
        sources: Vec<BoundSource>,
    ) -> Self {
        Self { constraint, sets: sets.into(), sources: sources.into() }
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
    pub fn sets(&self) -> &[Arc<FieldSet>] {
        &self.sets
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
        Ok(written.map(|all| all.into_iter().map(|member| self.named(member)).collect()))
    }

    fn named(&self, WrittenMember { slot, member, span }: WrittenMember) -> Member {
        let (of, set) = (&self.constraint.slots()[slot.index()], &self.sets[slot.index()]);
        let mut value = Vec::new();
        set.text(member, &mut value);
        Member {
            set: of.name.clone(),
            field: of.field.clone().unwrap_or_else(|| ID_FIELD.to_owned()),
            value: String::from_utf8_lossy(&value).into_owned(),
            item: set.item(member),
            span,
        }
    }
}

//! A grammar under bindings, and the members of its texts.

use std::ops::Range;
use std::sync::Arc;

use palmette_catalog_members::{CODES_FIELD, CodeSet, FieldSet, ID_FIELD};
use palmette_core::{MemberSet, TokenId};
use palmette_grammar::{GrammarConstraint, GrammarScratch, RecognizerError, WrittenMember};
use palmette_lexicon::{DocumentPlace, SubstringSet};

/// A grammar whose slots have their sets. Cheap to clone; threads share it.
#[derive(Clone, Debug)]
pub struct BoundGrammar {
    constraint: GrammarConstraint,
    /// Sets by slot, of those that are bound.
    sets: Arc<[BoundSet]>,
    sources: Arc<[BoundSource]>,
}

/// Set of a slot.
#[derive(Clone, Debug)]
pub enum BoundSet {
    /// Values of a catalog's field.
    Field(Arc<FieldSet>),
    /// Semantic IDs of a catalog's items.
    Codes(Arc<CodeSet>),
    /// Substrings of documents.
    Quotes(SubstringSet),
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

/// Member of a bound set that a text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name of the set.
    pub set: String,
    /// The field: `id`, `codes` or an attribute; of documents, the unit that is quoted.
    pub field: String,
    /// The value, which may be spelled another way in the text. Of codes it is the id of the item:
    /// where several share a semantic ID, of the one that is recommended first.
    pub value: String,
    /// The number of the item, where the value is its id.
    pub item: Option<u64>,
    /// The place of the documents where the value stands first, where it is a quote.
    pub place: Option<DocumentPlace>,
    /// Bytes of its spelling within the text.
    pub span: Range<usize>,
}

impl BoundSet {
    /// The set itself.
    pub fn members(&self) -> Arc<dyn MemberSet> {
        match self {
            Self::Field(set) => Arc::clone(set) as Arc<dyn MemberSet>,
            Self::Codes(set) => Arc::clone(set) as Arc<dyn MemberSet>,
            Self::Quotes(set) => Arc::new(set.clone()),
        }
    }

    /// Items of which a value may be written, or substrings.
    pub(crate) fn num_items(&self) -> u64 {
        match self {
            Self::Field(set) => set.num_items(),
            Self::Codes(set) => set.num_items(),
            Self::Quotes(set) => set.len(),
        }
    }
}

impl BoundGrammar {
    pub(crate) fn new(
        constraint: GrammarConstraint,
        sets: Vec<BoundSet>,
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
    pub fn sets(&self) -> &[BoundSet] {
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
        Ok(written.map(|all| all.into_iter().filter_map(|member| self.named(member)).collect()))
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
        let written = self.constraint.members_of_tokens(tokens, num_bytes, scratch)?;
        Ok(written.map(|all| all.into_iter().filter_map(|member| self.named(member)).collect()))
    }

    /// A member with its names; `None` of a set that the grammar brings.
    fn named(&self, WrittenMember { slot, member, span }: WrittenMember) -> Option<Member> {
        let set = self.sets.get(slot.index())?;
        let of = &self.constraint.slots()[slot.index()];
        let mut value = Vec::new();
        let (field, item, place) = match set {
            BoundSet::Field(set) => {
                set.text(member, &mut value);
                (of.field.as_deref().unwrap_or(ID_FIELD), set.item(member), None)
            }
            BoundSet::Codes(set) => {
                let item = set.items(member).next();
                value.extend(item.iter().flat_map(|&item| set.view().id(item).bytes()));
                (CODES_FIELD, item, None)
            }
            BoundSet::Quotes(set) => {
                set.text(member, &mut value);
                let unit = set.substrings().rule().unit().name();
                (unit, None, Some(set.substrings().first_place(member)))
            }
        };
        Some(Member {
            set: of.name.clone(),
            field: field.to_owned(),
            value: String::from_utf8_lossy(&value).into_owned(),
            item,
            place,
            span,
        })
    }
}

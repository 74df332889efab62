//! Sets of a grammar's slots, and the members that texts have of them.

use std::ops::Range;
use std::sync::Arc;

use palmette_catalog_members::{CODES_FIELD, CodeSet, FieldSet, ID_FIELD};
use palmette_core::{Binding, MemberSet, TokenId};
use palmette_grammar::{Slot, WrittenMember};
use palmette_lexicon::{DocumentPlace, SubstringSet};

use crate::error::{BindingError, Shortage};

/// Sets of slots in their order, with what they are taken from.
#[derive(Clone, Debug, Default)]
pub struct BoundSets {
    slots: Vec<Slot>,
    sets: Vec<BoundSet>,
    /// Slots whose sets have no member.
    shortages: Vec<Shortage>,
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

/// Item that a search found, with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedItem {
    /// The item's id.
    pub id: String,
    /// Sum of the log-probabilities of its tokens.
    pub score: f32,
}

/// Member of a bound set that a text has.
#[derive(Clone, Debug, PartialEq)]
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
    /// The id of the item, where one is meant.
    pub id: Option<String>,
    /// The place of the documents where the value stands first, where it is a quote.
    pub place: Option<DocumentPlace>,
    /// Bytes of its spelling within the text, without the quotes around it.
    pub span: Range<usize>,
    /// The items of the search that found it, best first, its own first; none where its tokens were
    /// drawn.
    pub ranked: Vec<RankedItem>,
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

impl BoundSets {
    pub(crate) fn new(slots: &[Slot], sets: Vec<BoundSet>, shortages: Vec<Shortage>) -> Self {
        Self { slots: slots.to_vec(), sets, shortages }
    }

    /// The sets by slot.
    pub fn as_slice(&self) -> &[BoundSet] {
        &self.sets
    }

    /// The sets as a grammar takes them.
    pub fn binding(&self) -> Arc<Binding> {
        let sets = self.sets.iter().map(BoundSet::members);
        Arc::new(Binding::new(sets.collect::<Vec<_>>()))
    }

    /// The error of a grammar that has no text with these sets.
    pub fn no_text(&self) -> BindingError {
        BindingError::NoText(self.shortages.clone())
    }

    /// The id of the item of a named catalog that these tokens spell as codes.
    pub fn item_of_tokens(&self, name: &str, tokens: &[TokenId]) -> Option<String> {
        let named = self.slots.iter().zip(&self.sets).filter(|(slot, _)| slot.name == name);
        let mut found = named.filter_map(|(_, set)| match set {
            BoundSet::Codes(set) => {
                let item = set.items(set.find_tokens(tokens)?).next()?;
                Some(set.view().id(item).to_owned())
            }
            BoundSet::Field(_) | BoundSet::Quotes(_) => None,
        });
        found.next()
    }

    /// A member of a text with its names; `None` of a set that the grammar brings.
    pub fn member(&self, WrittenMember { slot, member, span }: WrittenMember) -> Option<Member> {
        let set = self.sets.get(slot.index())?;
        let of = &self.slots[slot.index()];
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
        let value = String::from_utf8_lossy(&value).into_owned();
        // The quote that ends it tells where it ends, and is part of no value.
        let quote = usize::from(of.spelling.close().is_some());
        let span = span.start..span.end.saturating_sub(quote).max(span.start);
        Some(Member {
            set: of.name.clone(),
            field: field.to_owned(),
            id: item.map(|_| value.clone()),
            value,
            item,
            place,
            span,
            ranked: Vec::new(),
        })
    }
}

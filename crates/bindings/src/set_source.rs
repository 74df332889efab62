//! Source of a name's sets: a catalog's fields under a filter, or documents.

use std::sync::Arc;

use palmette_catalog::{CodeTokens, Filter};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::{CatalogFields, CodeSet, FieldError, FieldSet, ID_FIELD};
use palmette_grammar::{Slot, SlotKind};
use palmette_lexicon::{BuildError, Lexicon, LexiconBuilder, SubstringSet, Substrings};

use crate::bound_sets::BoundSet;
use crate::error::BindingError;

/// Source of the sets that one name stands for. Cheap to clone.
///
/// A catalog is pinned to the view that it was made of.
#[derive(Clone, Debug)]
pub struct SetSource(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A catalog, lexicon or list, and the items of it that may be written.
    Catalog { fields: CatalogFields, filter: Option<Filter> },
    /// Documents that are quoted.
    Documents(Arc<[String]>),
}

impl SetSource {
    /// Items of a view of a catalog, frozen or live, all of them.
    pub fn from_catalog(view: impl Into<CatalogView>) -> Self {
        Self::from_fields(CatalogFields::new(view.into()))
    }

    /// The strings of a lexicon.
    pub fn from_lexicon(lexicon: Arc<Lexicon>) -> Self {
        Self::from_fields(CatalogFields::from_lexicon(lexicon))
    }

    /// A list of texts; those that stand twice count once, and the empty text is no member.
    ///
    /// # Errors
    /// When a text is longer than a lexicon takes, 64 KiB.
    pub fn from_values<T: AsRef<str>>(
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, BuildError> {
        let mut builder = LexiconBuilder::new();
        for value in values {
            builder.push(value.as_ref().as_bytes())?;
        }
        Ok(Self::from_lexicon(Arc::new(builder.finish())))
    }

    /// The fields of a catalog.
    pub fn from_fields(fields: CatalogFields) -> Self {
        Self(Kind::Catalog { fields, filter: None })
    }

    /// Documents that a grammar quotes.
    pub fn from_documents<T: Into<String>>(documents: impl IntoIterator<Item = T>) -> Self {
        Self(Kind::Documents(documents.into_iter().map(Into::into).collect()))
    }

    /// The items that match a filter too; documents as they are.
    #[must_use]
    pub fn matching(mut self, filter: &Filter) -> Self {
        self.narrow(filter);
        self
    }

    /// True of documents, which have no items to filter.
    pub fn is_documents(&self) -> bool {
        matches!(self.0, Kind::Documents(_))
    }

    /// The fields of a catalog; `None` of documents.
    pub fn fields(&self) -> Option<&CatalogFields> {
        match &self.0 {
            Kind::Catalog { fields, .. } => Some(fields),
            Kind::Documents(_) => None,
        }
    }

    pub(crate) fn narrow(&mut self, other: &Filter) {
        if let Kind::Catalog { filter, .. } = &mut self.0 {
            *filter = Some(filter.as_ref().map_or_else(|| other.clone(), |known| known.and(other)));
        }
    }

    /// Items, or documents, in all.
    pub(crate) fn num_items(&self) -> u64 {
        match &self.0 {
            Kind::Catalog { fields, .. } => fields.num_items(),
            Kind::Documents(documents) => documents.len() as u64,
        }
    }

    pub(crate) fn generation(&self) -> Option<u64> {
        self.fields()?.view().and_then(CatalogView::generation)
    }

    /// The catalog and the filter of its items; `None` of documents.
    pub(crate) fn catalog(&self) -> Option<(&CatalogFields, Option<&Filter>)> {
        match &self.0 {
            Kind::Catalog { fields, filter } => Some((fields, filter.as_ref())),
            Kind::Documents(_) => None,
        }
    }

    /// The set of a slot.
    pub(crate) fn set(
        &self,
        slot: &Slot,
        code_tokens: Option<&Result<Arc<CodeTokens>, String>>,
    ) -> Result<BoundSet, BindingError> {
        match (&self.0, slot.kind) {
            (Kind::Catalog { fields, filter }, SlotKind::Catalog) => {
                Ok(BoundSet::Field(Arc::new(field_set(fields, filter.as_ref(), slot)?)))
            }
            (Kind::Documents(documents), SlotKind::Documents(rule)) => {
                let quotes = Substrings::new(documents.iter(), rule)
                    .map_err(|error| BindingError::Documents { name: slot.name.clone(), error })?;
                Ok(BoundSet::Quotes(SubstringSet::new(Arc::new(quotes), slot.spelling)))
            }
            (Kind::Catalog { fields, filter }, SlotKind::Codes) => {
                let codes = code_set(fields, filter.as_ref(), slot, code_tokens)?;
                Ok(BoundSet::Codes(Arc::new(codes)))
            }
            (_, kind) => Err(BindingError::Kind {
                slot: slot.label(),
                name: slot.name.clone(),
                asked: match kind {
                    SlotKind::Catalog | SlotKind::Codes => "a catalog",
                    SlotKind::Documents(_) => "documents",
                },
                bound: if self.is_documents() { "documents" } else { "a catalog" },
            }),
        }
    }
}

/// The values of a slot's field under its own filter and the request's.
fn field_set(
    fields: &CatalogFields,
    given: Option<&Filter>,
    slot: &Slot,
) -> Result<FieldSet, BindingError> {
    let field = slot.field.as_deref().unwrap_or(ID_FIELD);
    filtered(given, slot, |filter| fields.set(field, filter, slot.spelling))
}

/// The semantic IDs of a slot's items under its own filter and the request's.
fn code_set(
    fields: &CatalogFields,
    given: Option<&Filter>,
    slot: &Slot,
    tokens: Option<&Result<Arc<CodeTokens>, String>>,
) -> Result<CodeSet, BindingError> {
    let (label, name) = (slot.label(), slot.name.clone());
    let tokens = match tokens {
        Some(Ok(tokens)) => tokens,
        other => {
            let reason = match other {
                Some(Err(reason)) => reason.clone(),
                _ => "no model is given that has tokens for them".to_owned(),
            };
            return Err(BindingError::NoCodeTokens { slot: label, name, reason });
        }
    };
    filtered(given, slot, |filter| fields.codes(filter, tokens))
}

/// The set under the request's filter and a slot's own, with errors by whose filter it is.
fn filtered<T>(
    given: Option<&Filter>,
    slot: &Slot,
    set: impl Fn(Option<&Filter>) -> Result<T, FieldError>,
) -> Result<T, BindingError> {
    let own = slot.filter.as_deref().map(Filter::parse).transpose();
    let slot_filter =
        |error| BindingError::SlotFilter { slot: slot.label(), error: Box::new(error) };
    let own = own.map_err(slot_filter)?;
    let filter = match (given, &own) {
        (Some(given), Some(own)) => Some(given.and(own)),
        (given, own) => own.clone().or_else(|| given.cloned()),
    };
    set(filter.as_ref()).map_err(|error| {
        let of_slot = || own.as_ref().and_then(|own| set(Some(own)).err()?.filter().cloned());
        let (name, of_request) = (slot.name.clone(), error.filter().cloned());
        match of_request {
            Some(of_request) => match of_slot() {
                Some(of_slot) => slot_filter(of_slot),
                None => BindingError::Filter { name, error: Box::new(of_request) },
            },
            None => BindingError::Field { slot: slot.label(), name, error: Box::new(error) },
        }
    })
}

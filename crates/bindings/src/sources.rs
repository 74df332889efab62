//! Sources of sets by name: what a request gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_catalog::{CodeTokens, Filter, nearest};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::{CatalogFields, FieldSet, ID_FIELD};
use palmette_core::Binding;
use palmette_grammar::{BindError, GrammarConstraint, Slot, SlotKind};
use palmette_lexicon::{Lexicon, LexiconBuilder, SubstringSet, Substrings};

use crate::bound_grammar::{BoundGrammar, BoundSet, BoundSource};
use crate::error::{BindingError, Shortage};

/// The sets of one request by the names that grammars call them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    sources: BTreeMap<String, Source>,
    /// Tokens that spell the codes of catalogs.
    pub(crate) code_tokens: BTreeMap<String, Arc<CodeTokens>>,
}

/// Source of a name's sets.
#[derive(Clone, Debug)]
enum Source {
    /// A catalog, lexicon or list, and the items of it that may be written.
    Catalog { fields: CatalogFields, filter: Option<Filter> },
    /// Documents that are quoted.
    Documents(Arc<[String]>),
}

impl Bindings {
    /// Bindings of no name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a name to a view of a catalog, frozen or live: to all items of it. A name that was
    /// bound before is bound anew, without a filter.
    #[must_use]
    pub fn catalog(self, name: impl Into<String>, view: impl Into<CatalogView>) -> Self {
        self.fields(name, CatalogFields::new(view.into()))
    }

    /// Binds a name to the strings of a lexicon.
    #[must_use]
    pub fn lexicon(self, name: impl Into<String>, lexicon: Arc<Lexicon>) -> Self {
        self.fields(name, CatalogFields::from_lexicon(lexicon))
    }

    /// Binds a name to a list of texts; those that stand twice count once, and the empty text is no
    /// member.
    ///
    /// # Errors
    /// When a text is longer than a lexicon takes, 64 KiB.
    pub fn values<T: AsRef<str>>(
        self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, BindingError> {
        let (name, mut builder) = (name.into(), LexiconBuilder::new());
        for value in values {
            if let Err(error) = builder.push(value.as_ref().as_bytes()) {
                return Err(BindingError::Value { name, error });
            }
        }
        Ok(self.lexicon(name, Arc::new(builder.finish())))
    }

    /// Binds a name to the fields of a catalog.
    #[must_use]
    pub fn fields(mut self, name: impl Into<String>, fields: CatalogFields) -> Self {
        self.sources.insert(name.into(), Source::Catalog { fields, filter: None });
        self
    }

    /// Binds a name to documents that a grammar quotes (`x-substring`, `%substring`,
    /// `<substring:…>`).
    #[must_use]
    pub fn documents<T: Into<String>>(
        mut self,
        name: impl Into<String>,
        documents: impl IntoIterator<Item = T>,
    ) -> Self {
        let documents = documents.into_iter().map(Into::into).collect();
        self.sources.insert(name.into(), Source::Documents(documents));
        self
    }

    /// Leaves of a name's items those that match a filter too, as JSON text.
    ///
    /// # Errors
    /// When it is no filter, or the name is not bound.
    pub fn filter(self, name: &str, filter: &str) -> Result<Self, BindingError> {
        match Filter::parse(filter) {
            Ok(filter) => self.matching(name, &filter),
            Err(error) => Err(BindingError::Filter { name: name.to_owned(), error: error.into() }),
        }
    }

    /// Leaves of a name's items those that match a filter too.
    ///
    /// # Errors
    /// When the name is not bound.
    pub fn matching(mut self, name: &str, filter: &Filter) -> Result<Self, BindingError> {
        let Some(Source::Catalog { filter: known, .. }) = self.sources.get_mut(name) else {
            return Err(BindingError::Unfiltered { name: name.to_owned() });
        };
        *known = Some(known.as_ref().map_or_else(|| filter.clone(), |known| known.and(filter)));
        Ok(self)
    }

    /// The names that are bound, ascending.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// True where no name is bound.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The fields that a name is bound to; `None` where it is bound to documents, or not.
    pub fn fields_of(&self, name: &str) -> Option<&CatalogFields> {
        match self.sources.get(name)? {
            Source::Catalog { fields, .. } => Some(fields),
            Source::Documents(_) => None,
        }
    }

    /// A grammar with each of its slots bound by name. One without slots takes no bindings.
    ///
    /// Cost: the first time for a field of a catalog, or a segment of it, making its index; the
    /// first time for a filter, a pass over its items; else some look-ups. The grammar is compiled
    /// again only where sets are empty, once for each combination of them.
    ///
    /// # Errors
    /// When a name is missing or too many, a field is not there, a filter does not fit, or no text
    /// is left.
    pub fn bind(&self, grammar: &GrammarConstraint) -> Result<BoundGrammar, BindingError> {
        let slots = grammar.slots();
        self.check_names(slots)?;
        if slots.is_empty() {
            return Ok(BoundGrammar::new(grammar.clone(), Vec::new(), Vec::new()));
        }
        self.check_code_tokens(grammar)?;
        let sets: Result<Vec<_>, _> = slots.iter().map(|slot| self.set(slot)).collect();
        let sets = sets?;
        let binding = Binding::new(sets.iter().map(BoundSet::members).collect::<Vec<_>>());
        let constraint = grammar.bind_all(Arc::new(binding)).map_err(|error| match error {
            BindError::Empty { .. } => BindingError::NoText(self.shortages(slots, &sets)),
            BindError::Compile(error) => BindingError::Compile(error.into()),
        })?;
        let sources = self.sources.iter().map(|(name, source)| {
            let of_name = slots.iter().zip(&sets).filter(|(slot, _)| slot.name == *name);
            BoundSource {
                name: name.clone(),
                generation: source.generation(),
                num_items: source.num_items(),
                eligible: of_name.map(|(_, set)| set.num_items()).max().unwrap_or(0),
            }
        });
        let sources = sources.collect();
        Ok(BoundGrammar::new(constraint, sets, sources))
    }

    fn set(&self, slot: &Slot) -> Result<BoundSet, BindingError> {
        match (self.sources.get(&slot.name), slot.kind) {
            (None, _) => Err(self.unbound(slot)),
            (Some(Source::Catalog { fields, filter }), SlotKind::Codes) => {
                Ok(BoundSet::Codes(Arc::new(self.code_set(slot, fields, filter.as_ref())?)))
            }
            (Some(Source::Catalog { fields, filter }), SlotKind::Catalog) => {
                Ok(BoundSet::Field(Arc::new(field_set(fields, filter.as_ref(), slot)?)))
            }
            (Some(Source::Documents(documents)), SlotKind::Documents(rule)) => {
                let quotes = Substrings::new(documents.iter(), rule)
                    .map_err(|error| BindingError::Documents { name: slot.name.clone(), error })?;
                Ok(BoundSet::Quotes(SubstringSet::new(Arc::new(quotes), slot.spelling)))
            }
            (Some(source), kind) => Err(BindingError::Kind {
                slot: slot.label(),
                asked: match kind {
                    SlotKind::Catalog | SlotKind::Codes => "a catalog",
                    SlotKind::Documents(_) => "documents",
                },
                bound: if source.is_documents() { "documents" } else { "a catalog" },
            }),
        }
    }

    /// Refuses names that are missing, and those that the grammar does not ask for.
    fn check_names(&self, slots: &[Slot]) -> Result<(), BindingError> {
        if let Some(slot) = slots.iter().find(|slot| !self.sources.contains_key(&slot.name)) {
            return Err(self.unbound(slot));
        }
        let mut known: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
        known.sort_unstable();
        known.dedup();
        let Some(name) = self.names().find(|name| !known.contains(name)) else { return Ok(()) };
        let hint = match (nearest(name, known.iter().copied()), &*known) {
            (Some(nearest), _) => format!("the nearest that it names is {nearest}"),
            (None, []) => "it names none: leave it out".to_owned(),
            (None, names) => format!("it names {}", names.join(", ")),
        };
        Err(BindingError::Unused { name: name.to_owned(), hint })
    }

    fn unbound(&self, slot: &Slot) -> BindingError {
        let hint = match nearest(&slot.name, self.names()) {
            Some(nearest) => format!("the nearest that is bound is {nearest}"),
            None if self.is_empty() => "nothing is bound".to_owned(),
            None => format!("bound are {}", self.names().collect::<Vec<_>>().join(", ")),
        };
        BindingError::Unbound { slot: slot.label(), name: slot.name.clone(), hint }
    }

    fn shortages(&self, slots: &[Slot], sets: &[BoundSet]) -> Vec<Shortage> {
        let empty = slots.iter().zip(sets).filter(|(_, set)| set.members().is_empty());
        let short = empty.map(|(slot, _)| {
            let source = &self.sources[&slot.name];
            let (num_items, is_documents) = (source.num_items(), source.is_documents());
            Shortage { slot: slot.label(), num_items, is_documents }
        });
        short.collect()
    }
}

impl Source {
    fn is_documents(&self) -> bool {
        matches!(self, Self::Documents(_))
    }

    /// Items, or documents, in all.
    fn num_items(&self) -> u64 {
        match self {
            Self::Catalog { fields, .. } => fields.num_items(),
            Self::Documents(documents) => documents.len() as u64,
        }
    }

    fn generation(&self) -> Option<u64> {
        match self {
            Self::Catalog { fields, .. } => fields.view().and_then(CatalogView::generation),
            Self::Documents(_) => None,
        }
    }
}

/// The values of a slot's field under its own filter and the request's.
fn field_set(
    fields: &CatalogFields,
    given: Option<&Filter>,
    slot: &Slot,
) -> Result<FieldSet, BindingError> {
    let filter = slot_filter(given, slot)?;
    let field = slot.field.as_deref().unwrap_or(ID_FIELD);
    fields.set(field, filter.as_ref(), slot.spelling).map_err(|error| {
        let error = Box::new(error);
        BindingError::Field { slot: slot.label(), name: slot.name.clone(), error }
    })
}

/// The request's filter and a slot's own as one.
pub(crate) fn slot_filter(
    given: Option<&Filter>,
    slot: &Slot,
) -> Result<Option<Filter>, BindingError> {
    let own = slot.filter.as_deref().map(Filter::parse).transpose();
    let no_filter = |error| BindingError::SlotFilter { slot: slot.label(), error: Box::new(error) };
    Ok(match (given, own.map_err(no_filter)?) {
        (Some(given), Some(own)) => Some(given.and(&own)),
        (given, own) => own.or_else(|| given.cloned()),
    })
}

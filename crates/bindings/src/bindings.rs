//! Sets of one request by name, and their way into a grammar's slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_catalog::{CodeTokens, Filter, nearest};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::CatalogFields;
use palmette_core::Binding;
use palmette_grammar::{BindError, GrammarConstraint, Recognizer, Slot, SlotKind};
use palmette_lexicon::Lexicon;

use crate::bound_grammar::{BoundGrammar, BoundSource};
use crate::bound_sets::BoundSets;
use crate::error::{BindingError, Shortage};
use crate::scope_sources::scoped_items;
use crate::set_source::SetSource;

/// The sets of one request by the names that grammars call them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    pub(crate) sources: BTreeMap<String, SetSource>,
    /// Tokens that spell the codes of catalogs.
    pub(crate) code_tokens: BTreeMap<String, Result<Arc<CodeTokens>, String>>,
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
        self.source(name, SetSource::from_catalog(view))
    }

    /// Binds a name to the strings of a lexicon.
    #[must_use]
    pub fn lexicon(self, name: impl Into<String>, lexicon: Arc<Lexicon>) -> Self {
        self.source(name, SetSource::from_lexicon(lexicon))
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
        let name = name.into();
        match SetSource::from_values(values) {
            Ok(source) => Ok(self.source(name, source)),
            Err(error) => Err(BindingError::Value { name, error }),
        }
    }

    /// Binds a name to the fields of a catalog.
    #[must_use]
    pub fn fields(self, name: impl Into<String>, fields: CatalogFields) -> Self {
        self.source(name, SetSource::from_fields(fields))
    }

    /// Binds a name to documents that a grammar quotes (`x-substring`, `%substring`,
    /// `<substring:…>`).
    #[must_use]
    pub fn documents<T: Into<String>>(
        self,
        name: impl Into<String>,
        documents: impl IntoIterator<Item = T>,
    ) -> Self {
        self.source(name, SetSource::from_documents(documents))
    }

    /// Binds a name to a source, in place of the one that it had.
    #[must_use]
    pub fn source(mut self, name: impl Into<String>, source: SetSource) -> Self {
        self.sources.insert(name.into(), source);
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
        let source = self.sources.get_mut(name).filter(|source| !source.is_documents());
        let Some(source) = source else {
            return Err(BindingError::Unfiltered { name: name.to_owned() });
        };
        source.narrow(filter);
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
        let sets = self.sets(slots)?;
        if slots.is_empty() {
            return Ok(BoundGrammar::new(grammar.clone(), sets, Vec::new()));
        }
        self.check_code_tokens(grammar)?;
        let binding = self.binding(grammar.recognizer(), &sets)?;
        let constraint = grammar.bind_all(binding).map_err(|error| match error {
            BindError::Empty { .. } => sets.no_text(),
            BindError::Short(short) => BindingError::Short(short),
            BindError::Compile(error) => BindingError::Compile(error.into()),
        })?;
        let sources = self.sources.iter().map(|(name, source)| {
            let of_name = slots.iter().zip(sets.as_slice()).filter(|(slot, _)| slot.name == *name);
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

    /// The sets of a grammar's slots as it takes them, with the items behind its scopes.
    ///
    /// # Errors
    /// When a scope is about items, and its name is not bound to a catalog that has what it needs.
    pub fn binding(
        &self,
        recognizer: &Recognizer,
        sets: &BoundSets,
    ) -> Result<Arc<Binding>, BindingError> {
        let catalog = |name: &str| self.sources.get(name)?.catalog();
        let binding = sets.binding();
        Ok(match scoped_items(recognizer, sets.as_slice(), catalog)? {
            None => binding,
            Some(items) => Arc::new(Arc::unwrap_or_clone(binding).with_items(items)),
        })
    }

    /// The sets of slots alone, for who reads texts without a vocabulary.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), but for sets without members.
    pub fn sets(&self, slots: &[Slot]) -> Result<BoundSets, BindingError> {
        self.check_names(slots)?;
        let sets = slots.iter().map(|slot| match self.sources.get(&slot.name) {
            None => Err(self.unbound(slot)),
            Some(source) => source.set(slot, self.code_tokens.get(&slot.name)),
        });
        let sets = sets.collect::<Result<Vec<_>, _>>()?;
        let empty = slots.iter().zip(&sets).filter(|(_, set)| set.members().is_empty());
        let short = empty.map(|(slot, _)| Shortage {
            slot: slot.label(),
            num_items: self.sources[&slot.name].num_items(),
            quotes: match slot.kind {
                SlotKind::Documents(rule) => Some(rule),
                SlotKind::Catalog | SlotKind::Codes => None,
            },
        });
        let short = short.collect();
        Ok(BoundSets::new(slots, sets, short))
    }

    /// The source of a name.
    pub fn get(&self, name: &str) -> Option<&SetSource> {
        self.sources.get(name)
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
        let is_documents = matches!(slot.kind, SlotKind::Documents(_));
        BindingError::Unbound { slot: slot.label(), name: slot.name.clone(), is_documents, hint }
    }
}

//! Catalogs and documents of the command's options, for all grammars that name them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use palmette_bindings::{BindingError, Bindings, BoundGrammar, BoundSets, SetSource};
use palmette_catalog_members::ID_FIELD;
use palmette_core::{Constraint, MemberSpelling};
use palmette_grammar::{BoundRecognizer, GrammarConstraint, Recognizer, Slot};
use palmette_lexicon::DocumentsError;
use palmette_recommend::code_tokens;
use palmette_text::question::{CatalogError, NamedCatalogs};

/// Catalogs and documents by their names, opened once.
#[derive(Debug)]
pub(crate) struct OpenCatalogs {
    sources: BTreeMap<String, NamedSource>,
    /// Folder of the model that writes, whose tokens spell the codes of catalogs.
    model: Option<PathBuf>,
}

/// Source of a name, with its files.
#[derive(Debug)]
pub(super) struct NamedSource {
    source: SetSource,
    /// One of a catalog; a document in each.
    files: Vec<String>,
    /// True once a grammar named it.
    is_named: AtomicBool,
}

impl NamedSource {
    pub(super) fn new(source: SetSource, files: Vec<String>) -> Self {
        Self { source, files, is_named: AtomicBool::new(false) }
    }

    /// The source, for a grammar that names it.
    fn take(&self) -> SetSource {
        self.is_named.store(true, Ordering::Relaxed);
        self.source.clone()
    }

    fn option(&self) -> &'static str {
        if self.source.is_documents() { "document" } else { "catalog" }
    }
}

impl OpenCatalogs {
    pub(super) fn new(sources: BTreeMap<String, NamedSource>) -> Self {
        Self { sources, model: None }
    }

    /// These for the texts of a model.
    pub(crate) fn for_model(self, folder: &Path) -> Self {
        Self { model: Some(folder.to_owned()), ..self }
    }

    /// Adds the tokens that spell codes, where a grammar names them and there is a model.
    fn with_code_tokens(&self, bindings: Bindings, grammar: &GrammarConstraint) -> Bindings {
        let Some(folder) = &self.model else { return bindings };
        let num_tokens = grammar.num_tokens();
        bindings.spelled(grammar, |view| {
            code_tokens(folder, view, num_tokens).map_err(|error| error.to_string())
        })
    }

    /// The sources that slots name; what others name is not theirs.
    fn bindings(&self, slots: &[Slot]) -> Bindings {
        let named = slots.iter().filter_map(|slot| self.sources.get_key_value(&slot.name));
        named.fold(Bindings::new(), |all, (name, source)| all.source(name, source.take()))
    }

    /// The sets of these slots.
    pub(super) fn sets(&self, slots: &[Slot]) -> anyhow::Result<BoundSets> {
        self.bindings(slots).sets(slots).map_err(|error| self.explained(error))
    }

    /// A grammar made ready under the sets of its slots.
    pub(super) fn bind_ready(
        &self,
        recognizer: &Arc<Recognizer>,
        sets: &BoundSets,
    ) -> anyhow::Result<BoundRecognizer> {
        let bindings = self.bindings(recognizer.source().open_slots());
        let binding = bindings.binding(recognizer, sets).map_err(|error| self.explained(error))?;
        let lack = recognizer.lack(&binding)?;
        match BoundRecognizer::new(recognizer, binding)? {
            Some(bound) => Ok(bound),
            None if lack.scopes.is_empty() => Err(sets.no_text().into()),
            None => Err(BindingError::Short(recognizer.shortages(&lack)).into()),
        }
    }

    /// A grammar with its slots bound.
    pub(crate) fn bind(&self, grammar: &GrammarConstraint) -> anyhow::Result<BoundGrammar> {
        let bindings = self.with_code_tokens(self.bindings(grammar.slots()), grammar);
        bindings.bind(grammar).map_err(|error| self.explained(error))
    }

    /// True where an item of a slot's catalog has this value, whatever the filters.
    pub(super) fn has(&self, slot: &Slot, value: &str) -> bool {
        let fields = self.sources.get(&slot.name).and_then(|of| of.source.fields());
        let all = fields.and_then(|of| of.set(field_of(slot), None, MemberSpelling::Raw).ok());
        all.is_some_and(|all| all.find(value).is_some())
    }

    /// The file of a document.
    pub(super) fn file(&self, name: &str, document: usize) -> &str {
        let files = self.sources.get(name).map_or(&[][..], |of| &of.files);
        files.get(document).map_or("", String::as_str)
    }

    /// The first option whose catalog or documents no grammar has named so far.
    pub(crate) fn unnamed(&self) -> Option<String> {
        let is_named = |source: &NamedSource| source.is_named.load(Ordering::Relaxed);
        let mut unnamed = self.sources.iter().filter(|(_, source)| !is_named(source));
        unnamed.next().map(|(name, source)| format!("--{} {name}", source.option()))
    }

    /// An error of binding with the option that it is about.
    fn explained(&self, error: BindingError) -> anyhow::Error {
        let of_option = |name: &str, place: usize| {
            let option = self.sources.get(name).map_or("catalog", NamedSource::option);
            format!("--{option} {name}={}", self.file(name, place))
        };
        let option = match &error {
            BindingError::Unbound { slot, name, is_documents, .. } => {
                return anyhow::anyhow!("{}", unbound(slot, name, *is_documents));
            }
            BindingError::Documents { name, error } => match error {
                DocumentsError::TooLarge { number, .. } => of_option(name, *number),
                _ => of_option(name, 0),
            },
            BindingError::Filter { name, .. } => format!("--filter {name}"),
            BindingError::Field { name, .. } | BindingError::Scope { name, .. } => {
                of_option(name, 0)
            }
            BindingError::Unused { .. }
            | BindingError::Unfiltered { .. }
            | BindingError::Value { .. }
            | BindingError::Kind { .. }
            | BindingError::SlotFilter { .. }
            | BindingError::NoCodeTokens { .. }
            | BindingError::OtherVocabulary { .. }
            | BindingError::NoText(_)
            | BindingError::Short(_)
            | BindingError::Compile(_) => return error.into(),
        };
        Err::<(), _>(error).context(option).expect_err("an error")
    }
}

/// A set that no option gives.
fn unbound(slot: &str, name: &str, is_documents: bool) -> String {
    match is_documents {
        false => format!("the grammar names the catalog {slot}; {}", advice(name, is_documents)),
        true => format!("the grammar quotes documents {slot}; {}", advice(name, is_documents)),
    }
}

fn advice(name: &str, is_documents: bool) -> String {
    match is_documents {
        false => format!("say which it is: --catalog {name}=FILE"),
        true => format!("say which they are: --document {name}=FILE"),
    }
}

impl NamedCatalogs for OpenCatalogs {
    fn get(&self, name: &str, generation: Option<&str>) -> Result<SetSource, CatalogError> {
        let source = self.sources.get(name).ok_or(CatalogError::Unknown)?;
        match generation {
            None => Ok(source.take()),
            Some(_) => Err(CatalogError::Generation(
                "catalogs of options are read as they are on disk; leave it out".to_owned(),
            )),
        }
    }

    fn names(&self) -> Vec<String> {
        self.sources.keys().cloned().collect()
    }

    fn advice(&self, name: &str, is_documents: bool) -> String {
        advice(name, is_documents)
    }

    fn bind(
        &self,
        bindings: &Bindings,
        grammar: &GrammarConstraint,
    ) -> Result<BoundGrammar, BindingError> {
        self.with_code_tokens(bindings.clone(), grammar).bind(grammar)
    }
}

/// The field of a slot.
pub(super) fn field_of(slot: &Slot) -> &str {
    slot.field.as_deref().unwrap_or(ID_FIELD)
}

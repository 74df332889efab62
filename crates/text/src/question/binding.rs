//! Binding of a checked grammar to the sets of its question and those of the surface.

use std::collections::BTreeMap;

use palmette_bindings::{BindingError, Bindings, BoundGrammar, SetSource};
use palmette_catalog_filter::nearest;
use palmette_document::Fault;
use palmette_grammar::GrammarConstraint;

use super::catalogs::{CatalogMembers, pointer};
use super::check::{FormCheck, Refusal};
use super::settings::CatalogError;

/// Fault of a set that cannot be had, with what that makes of the question.
type SourceFault = (Option<Refusal>, Fault);

impl FormCheck<'_> {
    /// A grammar with the sets of its names; `at` is the member that it is from.
    pub(super) fn bound(
        &mut self,
        given: Option<&BTreeMap<String, CatalogMembers>>,
        grammar: &GrammarConstraint,
        at: &str,
    ) -> Option<BoundGrammar> {
        let mut bindings = Bindings::new();
        let mut is_sound = true;
        for (name, members) in given.into_iter().flatten() {
            match self.source(name, members) {
                Ok(source) => bindings = bindings.source(name, source),
                Err((refusal, fault)) => {
                    self.refuse(refusal, fault);
                    is_sound = false;
                }
            }
        }
        let is_given = |name: &str| given.is_some_and(|given| given.contains_key(name));
        for slot in grammar.slots().iter().filter(|slot| !is_given(&slot.name)) {
            if bindings.names().any(|name| name == slot.name) {
                continue;
            }
            let Some(catalogs) = &self.settings.catalogs else { break };
            match catalogs.get(&slot.name, None) {
                Ok(source) => bindings = bindings.source(&slot.name, source),
                // Whoever binds says what there is.
                Err(CatalogError::Unknown) => {}
                Err(error) => {
                    let (refusal, detail) = refused(error);
                    self.refuse(refusal, Fault::new(pointer(&slot.name, ""), detail));
                    is_sound = false;
                }
            }
        }
        if !is_sound {
            return None;
        }
        let bound = match &self.settings.catalogs {
            Some(catalogs) => catalogs.bind(&bindings, grammar),
            None => bindings.bind(grammar),
        };
        bound.map_err(|error| self.unbound(error, is_given, at)).ok()
    }

    /// Refuses sets where no grammar asks for any.
    pub(super) fn no_catalogs(&mut self, given: Option<&BTreeMap<String, CatalogMembers>>) {
        if given.is_some_and(|given| !given.is_empty()) {
            let detail = "no member names a form of the answer, which would name catalogs; leave them out, or give response_format, \
                          structured_outputs, a guided_… member, or tools";
            self.fault(Fault::new("/catalogs", detail));
        }
    }

    /// The set of a name.
    fn source(&self, name: &str, members: &CatalogMembers) -> Result<SetSource, SourceFault> {
        let plain = |fault| (None, fault);
        let catalog = members.catalog_name(name).map_err(plain)?;
        let filter = members.filter(name).map_err(plain)?;
        let source = match (catalog, &members.values, &members.documents) {
            (Some(catalog), ..) => self.catalog(name, catalog, members)?,
            (None, Some(values), _) => self.values(name, values)?,
            (None, None, documents) => self.documents(name, documents.as_deref().unwrap_or(&[]))?,
        };
        Ok(match filter {
            Some(filter) => source.matching(&filter),
            None => source,
        })
    }

    fn catalog(
        &self,
        name: &str,
        catalog: &str,
        members: &CatalogMembers,
    ) -> Result<SetSource, SourceFault> {
        let generation = members.generation(name).map_err(|fault| (None, fault))?;
        let catalogs = self.settings.catalogs.as_ref();
        let found = catalogs.map_or(Err(CatalogError::Unknown), |catalogs| {
            catalogs.get(catalog, generation.as_deref())
        });
        found.map_err(|error| {
            let member = match error {
                CatalogError::Generation(_) | CatalogError::Gone(_) => "generation",
                _ if members.catalog.is_some() => "catalog",
                _ => "",
            };
            let names = catalogs.map_or_else(Vec::new, |catalogs| catalogs.names());
            let (refusal, detail) = match error {
                CatalogError::Unknown => (None, unknown(catalog, &names)),
                error => refused(error),
            };
            (refusal, Fault::new(pointer(name, member), detail))
        })
    }

    fn values(&self, name: &str, values: &[String]) -> Result<SetSource, SourceFault> {
        let at = || pointer(name, "values");
        let (most, most_bytes) =
            (self.settings.limits.max_values, self.settings.limits.max_value_bytes);
        let bytes: usize = values.iter().map(String::len).sum();
        if values.len() > most || bytes > most_bytes {
            let detail = format!(
                "{} values of {bytes} bytes; {most} of {most_bytes} bytes are taken: send fewer, or make a catalog of them",
                values.len()
            );
            return Err((Some(Refusal::TooLarge), Fault::new(at(), detail)));
        }
        SetSource::from_values(values).map_err(|error| (None, Fault::new(at(), error.to_string())))
    }

    fn documents(&self, name: &str, documents: &[String]) -> Result<SetSource, SourceFault> {
        let most = self.settings.limits.max_document_bytes;
        let bytes: usize = documents.iter().map(String::len).sum();
        if bytes > most {
            let detail = format!("the documents have {bytes} bytes; {most} are taken: send less");
            return Err((Some(Refusal::TooLarge), Fault::new(pointer(name, "documents"), detail)));
        }
        Ok(SetSource::from_documents(documents))
    }

    /// Notes an error of binding with the member that is at fault.
    fn unbound(&mut self, error: BindingError, is_given: impl Fn(&str) -> bool, at: &str) {
        // What the question does not bring is the grammar's to name.
        let of = |name: &str, member: &str| match is_given(name) {
            true => pointer(name, member),
            false => at.to_owned(),
        };
        let mut detail = error.to_string();
        let (pointer, refusal) = match error {
            BindingError::Unbound { name, is_documents, .. } => {
                if let Some(catalogs) = &self.settings.catalogs {
                    detail = format!("{detail}; {}", catalogs.advice(&name, is_documents));
                }
                (pointer(&name, ""), None)
            }
            BindingError::Unused { name, .. } | BindingError::Unfiltered { name } => {
                (pointer(&name, ""), None)
            }
            BindingError::Value { name, .. } => (of(&name, "values"), None),
            BindingError::Documents { name, .. } => {
                (of(&name, "documents"), Some(Refusal::TooLarge))
            }
            BindingError::Kind { name, .. } => (of(&name, ""), None),
            BindingError::Filter { name, .. } => (of(&name, "filter"), None),
            BindingError::Field { .. }
            | BindingError::SlotFilter { .. }
            | BindingError::NoCodeTokens { .. }
            | BindingError::OtherVocabulary { .. }
            | BindingError::Scope { .. }
            | BindingError::Compile(_) => (at.to_owned(), None),
            // The detail says how many each scope has and needs.
            BindingError::Short(_) => (at.to_owned(), Some(Refusal::NoText(Vec::new()))),
            BindingError::NoText(shortages) => (at.to_owned(), Some(Refusal::NoText(shortages))),
        };
        self.refuse(refusal, Fault::new(pointer, detail));
    }
}

/// A catalog that may not be used, in words.
fn refused(error: CatalogError) -> (Option<Refusal>, String) {
    match error {
        CatalogError::Unknown => (None, String::new()),
        CatalogError::Forbidden(detail) => (Some(Refusal::Forbidden), detail),
        CatalogError::Generation(detail) => (None, detail),
        CatalogError::Gone(detail) => (Some(Refusal::Gone), detail),
    }
}

fn unknown(name: &str, names: &[String]) -> String {
    let there = match (nearest(name, names.iter().map(String::as_str)), names) {
        (Some(nearest), _) => format!("the nearest is {nearest:?}"),
        (None, []) => "there are none; give values".to_owned(),
        (None, names) => format!("there are {}", names.join(", ")),
    };
    format!("there is no catalog {name:?}; {there}")
}

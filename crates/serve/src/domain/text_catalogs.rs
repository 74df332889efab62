//! Catalogs of the table as texts name them: with the permissions of the request's key.

use std::sync::Arc;
use std::time::Instant;

use palmette_bindings::{BindingError, Bindings, BoundGrammar, SetSource};
use palmette_grammar::GrammarConstraint;
use palmette_text::question::{CatalogError, NamedCatalogs};

use super::code_tokens::KeptCodeTokens;
use super::generations::view_at;
use super::permissions;
use super::registry::Table;
use super::texts::ServedText;
use crate::problem::Problem;
use crate::wire::GenerationParam;

/// The catalogs of one table, for one question. Asked on a thread that has the permissions of the
/// request.
#[derive(Debug)]
pub(crate) struct TextCatalogs {
    table: Arc<Table>,
    /// Name of the text model, for metrics.
    model: String,
    /// The tokens by which it spells codes.
    codes: Option<Arc<KeptCodeTokens>>,
}

impl TextCatalogs {
    /// The catalogs of questions that no text model is asked; `label` stands for one in metrics.
    pub(crate) fn without_model(table: &Arc<Table>, label: &str) -> Arc<Self> {
        let (table, model) = (Arc::clone(table), label.to_owned());
        Arc::new(Self { table, model, codes: None })
    }

    /// The catalogs of questions to a text model.
    pub(crate) fn for_model(table: &Arc<Table>, served: &ServedText) -> Arc<Self> {
        let (table, model) = (Arc::clone(table), served.name.clone());
        Arc::new(Self { table, model, codes: Some(Arc::clone(&served.codes)) })
    }
}

impl NamedCatalogs for TextCatalogs {
    fn get(&self, name: &str, generation: Option<&str>) -> Result<SetSource, CatalogError> {
        let (catalog, lexicon) = (self.table.catalogs.get(name), self.table.lexicons.get(name));
        if catalog.is_none() && lexicon.is_none() {
            return Err(CatalogError::Unknown);
        }
        permissions::check_catalog(name).map_err(|error| CatalogError::Forbidden(error.detail))?;
        let catalog = match (catalog, lexicon) {
            (Some(catalog), _) => catalog,
            (None, Some(lexicon)) if generation.is_none() => {
                return Ok(SetSource::from_lexicon(Arc::clone(lexicon)));
            }
            (None, _) => {
                let detail = "a lexicon never changes and has no generations; leave it out";
                return Err(CatalogError::Generation(detail.to_owned()));
            }
        };
        let generation = GenerationParam { generation: generation.map(str::to_owned) }.name();
        let view = view_at(catalog, generation.as_ref()).map_err(no_generation)?;
        Ok(SetSource::from_catalog(view))
    }

    fn names(&self) -> Vec<String> {
        let names = self.table.catalogs.keys().chain(self.table.lexicons.keys());
        let mut names: Vec<String> =
            names.filter(|name| permissions::permits(name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn advice(&self, name: &str, is_documents: bool) -> String {
        if is_documents {
            return format!("give them in catalogs: {{{name:?}: {{\"documents\": […]}}}}");
        }
        let there = match &*self.names() {
            [] => "this server has none".to_owned(),
            names => format!("this server has {}", names.join(", ")),
        };
        format!("give it in catalogs: {{{name:?}: {{\"catalog\": …}}}}, or values; {there}")
    }

    fn bind(
        &self,
        bindings: &Bindings,
        grammar: &GrammarConstraint,
    ) -> Result<BoundGrammar, BindingError> {
        let began = Instant::now();
        let bound = match &self.codes {
            Some(codes) => bindings.clone().spelled(grammar, |view| codes.of(view)).bind(grammar),
            None => bindings.bind(grammar),
        };
        if !bindings.is_empty() {
            metrics::histogram!("palmette_text_bind_seconds", "model" => self.model.clone())
                .record(began.elapsed().as_secs_f64());
        }
        bound
    }
}

/// A generation that a catalog does not have, for a question about texts.
fn no_generation(problem: Problem) -> CatalogError {
    match problem.status {
        410 => CatalogError::Gone(problem.detail),
        _ => CatalogError::Generation(problem.detail),
    }
}

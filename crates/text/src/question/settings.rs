//! Settings of a surface: limits, defaults and the moment by which questions are checked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use palmette_bindings::{BindingError, Bindings, BoundGrammar, SetSource};
use palmette_grammar::GrammarConstraint;
use palmette_grammar::frontends::structural_tag::ToolFormat;

use crate::model::TextModel;
use crate::sources::JsonForm;

/// Limits of questions. The default is a server's, for clients that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimits {
    /// Answers to all prompts of a question.
    pub max_answers: usize,
    /// Stop texts.
    pub max_stops: usize,
    /// Bytes of a stop text.
    pub max_stop_bytes: usize,
    /// Largest number of most likely tokens at one place.
    pub max_logprobs: usize,
    /// Tokens of a prompt and its answer, where that is less than the model reads.
    pub max_positions: usize,
    /// Values of a question's own that are bound to one name.
    pub max_values: usize,
    /// Bytes of such values together.
    pub max_value_bytes: usize,
    /// Bytes of the documents that are bound to one name.
    pub max_document_bytes: usize,
}

impl Default for TextLimits {
    fn default() -> Self {
        Self {
            max_answers: 64,
            max_stops: 16,
            max_stop_bytes: 1024,
            max_logprobs: 20,
            max_positions: usize::MAX,
            max_values: 100_000,
            max_value_bytes: 8 << 20,
            max_document_bytes: 4 << 20,
        }
    }
}

impl TextLimits {
    /// Limits of a program that works for its own user: those of the model, and a number of answers
    /// that is no slip of the pen.
    pub const OWN: Self = Self {
        max_answers: 10_000,
        max_stops: usize::MAX,
        max_stop_bytes: usize::MAX,
        max_logprobs: usize::MAX,
        max_positions: usize::MAX,
        max_values: usize::MAX,
        max_value_bytes: usize::MAX,
        max_document_bytes: usize::MAX,
    };
}

/// Values of members that a question leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct TextDefaults {
    /// Temperature of the sampler.
    pub temperature: f32,
    /// Seed of the random numbers. Whoever has a source of randomness draws one for each question.
    pub seed: u64,
    /// Limit on the tokens of an answer to a chat. `None` for as many as there is room for.
    pub chat_tokens: Option<usize>,
    /// Limit on the tokens of a completion.
    pub completion_tokens: Option<usize>,
    /// Form of JSON.
    pub json: JsonForm,
    /// Schemas by their URIs that those of a question may refer to, besides its own.
    pub resources: BTreeMap<String, String>,
}

/// Codes of OpenAI's interface, which clients count on.
impl Default for TextDefaults {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            seed: 0,
            chat_tokens: None,
            completion_tokens: Some(16),
            json: JsonForm::default(),
            resources: BTreeMap::new(),
        }
    }
}

impl TextDefaults {
    /// Temperature of a user at a terminal, where OpenAI's interface has 1: the likeliest text, and
    /// the same each time.
    pub const TERMINAL_TEMPERATURE: f32 = 0.0;
    /// Limit on tokens for a user at a terminal. OpenAI's interface has the whole context, or 16;
    /// this is enough for an answer, and an end for a model that finds none.
    pub const TERMINAL_TOKENS: usize = 512;

    /// Defaults of a user at a terminal. All but temperature and tokens are those of OpenAI's
    /// interface.
    pub fn terminal() -> Self {
        Self {
            temperature: Self::TERMINAL_TEMPERATURE,
            chat_tokens: Some(Self::TERMINAL_TOKENS),
            completion_tokens: Some(Self::TERMINAL_TOKENS),
            ..Self::default()
        }
    }
}

/// Settings by which a surface checks questions.
#[derive(Clone, Debug, Default)]
pub struct TextSettings {
    /// Limits.
    pub limits: TextLimits,
    /// Values of members that a question leaves open.
    pub defaults: TextDefaults,
    /// Format of calls; the one that the model's chat template shows where there is none.
    pub tool_format: Option<ToolFormat>,
    /// Seconds since 1970, for chat templates that print the date.
    pub now: Option<i64>,
    /// Catalogs for the names of grammars; `None` where questions bring all of them.
    pub catalogs: Option<Arc<dyn NamedCatalogs>>,
}

/// Catalogs of a surface, by the names that questions and grammars call them.
pub trait NamedCatalogs: fmt::Debug + Send + Sync {
    /// The catalog of a name, pinned as it is now or at a generation (a number, or the name of one
    /// that is kept).
    ///
    /// # Errors
    /// When there is none, or it may not be used.
    fn get(&self, name: &str, generation: Option<&str>) -> Result<SetSource, CatalogError>;

    /// Names that a question may have meant, ascending.
    fn names(&self) -> Vec<String>;

    /// Advice on how to give the catalog, or the documents, of a name that nothing is bound to.
    fn advice(&self, name: &str, is_documents: bool) -> String;

    /// Gives a grammar's names their sets. A surface that measures this does it here.
    ///
    /// # Errors
    /// As [`Bindings::bind`].
    fn bind(
        &self,
        bindings: &Bindings,
        grammar: &GrammarConstraint,
    ) -> Result<BoundGrammar, BindingError> {
        bindings.bind(grammar)
    }
}

/// A catalog that a question cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// There is none of this name.
    Unknown,
    /// The asker may not use it; the value, the rule and the way out.
    Forbidden(String),
    /// The catalog has no such generation.
    Generation(String),
    /// The generation is not kept any more.
    Gone(String),
}

impl TextSettings {
    /// The format in which a model writes calls.
    pub(super) fn tool_format(&self, model: &TextModel) -> Option<ToolFormat> {
        let own = || model.tool_format().map(|format| model.spoken(format));
        self.tool_format.or_else(own)
    }
}

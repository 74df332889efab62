//! A grammar as its author wrote it, whatever the language.

use palmette_grammar_regex::parse::RegexError;
use palmette_grammar_syntax::json_schema::{self, JsonSchemaError, JsonSchemaOptions, Warning};
use palmette_grammar_syntax::{gbnf, lark, regex, structural_tag};

use crate::{Budget, Grammar, Interrupted};

/// A text that a front end reads, and how: all that a [`Grammar`] depends on.
///
/// Equal sources make equal grammars, so a source is what a [`GrammarCache`](crate::GrammarCache)
/// knows them by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GrammarSource {
    /// Lark's language.
    Lark {
        /// The grammar.
        text: String,
        /// Options of its reader.
        options: lark::LarkOptions,
    },
    /// llama.cpp's EBNF.
    Gbnf {
        /// The grammar.
        text: String,
        /// Options of its reader.
        options: gbnf::GbnfOptions,
    },
    /// A JSON Schema.
    JsonSchema {
        /// The schema.
        text: String,
        /// Options of its reader.
        options: JsonSchemaOptions,
    },
    /// A structural tag: free text in which triggers begin regions that schemas hold.
    StructuralTag {
        /// The document.
        text: String,
        /// Options of its reader.
        options: structural_tag::StructuralTagOptions,
    },
    /// Tools, or a request with tools, in the format in which a model writes calls.
    Tools {
        /// The request.
        text: String,
        /// The texts around calls.
        format: structural_tag::ToolFormat,
        /// Options of its reader.
        options: structural_tag::StructuralTagOptions,
    },
    /// One regular expression for the whole text.
    Regex {
        /// The expression.
        text: String,
        /// Options of its reader.
        options: regex::RegexOptions,
    },
}

/// A text that its front end refuses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// Lark's language.
    #[error(transparent)]
    Lark(#[from] lark::LarkError),
    /// llama.cpp's EBNF.
    #[error(transparent)]
    Gbnf(#[from] gbnf::GbnfError),
    /// A JSON Schema.
    #[error(transparent)]
    JsonSchema(#[from] JsonSchemaError),
    /// A structural tag, or tools.
    #[error(transparent)]
    StructuralTag(#[from] structural_tag::StructuralTagError),
    /// A regular expression.
    #[error(transparent)]
    Regex(#[from] RegexError),
}

impl SourceError {
    /// The reason for which reading stopped before its end, where it was not the text's fault.
    pub fn interrupted(&self) -> Option<Interrupted> {
        match self {
            Self::Lark(error) => error.interrupted(),
            Self::Gbnf(error) => error.interrupted,
            Self::JsonSchema(error) => error.interrupted(),
            Self::StructuralTag(error) => error.interrupted,
            Self::Regex(error) => error.interrupted,
        }
    }
}

impl GrammarSource {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Lark { text, .. }
            | Self::Gbnf { text, .. }
            | Self::JsonSchema { text, .. }
            | Self::StructuralTag { text, .. }
            | Self::Tools { text, .. }
            | Self::Regex { text, .. } => text,
        }
    }

    /// Reads it; gives warnings, too: what in it has no effect, and what dialects read differently.
    ///
    /// # Errors
    /// When the front end refuses it.
    pub fn parse(&self) -> Result<(Grammar, Vec<Warning>), SourceError> {
        self.parse_with_budget(&mut Budget::unlimited())
    }

    /// [`parse`](Self::parse) within a budget of work.
    ///
    /// # Errors
    /// When the front end refuses it, the budget is used up, or the work is called off
    /// ([`SourceError::interrupted`]).
    pub fn parse_with_budget(
        &self,
        budget: &mut Budget<'_>,
    ) -> Result<(Grammar, Vec<Warning>), SourceError> {
        let grammar = match self {
            Self::Lark { text, options } => {
                return Ok(lark::parse_with_budget(text, options, budget)?);
            }
            Self::Gbnf { text, options } => gbnf::parse_with_budget(text, options, budget)?,
            Self::Regex { text, options } => {
                return Ok(regex::parse_with_warnings(text, options, budget)?);
            }
            Self::StructuralTag { text, options } => {
                return Ok(structural_tag::parse_with_budget(text, options, budget)?);
            }
            Self::Tools { text, format, options } => {
                let read = structural_tag::parse_tools_with_budget(text, format, options, budget);
                return Ok(read?);
            }
            Self::JsonSchema { text, options } => {
                return Ok(json_schema::parse_with_budget(text, options, budget)?);
            }
        };
        Ok((grammar, Vec::new()))
    }
}

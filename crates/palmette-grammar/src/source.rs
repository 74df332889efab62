//! A grammar as its author wrote it, whatever the language.

use crate::Grammar;
use crate::frontends::json_schema::{self, JsonSchemaError, JsonSchemaOptions, Warning};
use crate::frontends::{gbnf, lark, regex};
use crate::regex::parse::RegexError;

/// A text that a front end reads, and how: all that a [`Grammar`] depends on.
///
/// Equal sources make equal grammars, so a source is what a [`GrammarCache`](crate::GrammarCache) knows them by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GrammarSource {
    /// Lark's language.
    Lark {
        /// The grammar.
        text: String,
        /// How it is read.
        options: lark::LarkOptions,
    },
    /// llama.cpp's EBNF.
    Gbnf {
        /// The grammar.
        text: String,
        /// How it is read.
        options: gbnf::GbnfOptions,
    },
    /// A JSON Schema.
    JsonSchema {
        /// The schema.
        text: String,
        /// How it is read.
        options: JsonSchemaOptions,
    },
    /// One regular expression for the whole text.
    Regex {
        /// The expression.
        text: String,
        /// How it is read.
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
    /// A regular expression.
    #[error(transparent)]
    Regex(#[from] RegexError),
}

impl GrammarSource {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Lark { text, .. }
            | Self::Gbnf { text, .. }
            | Self::JsonSchema { text, .. }
            | Self::Regex { text, .. } => text,
        }
    }

    /// Reads it; gives what in it has no effect, too, which only schemas have.
    ///
    /// # Errors
    /// When the front end refuses it.
    pub fn parse(&self) -> Result<(Grammar, Vec<Warning>), SourceError> {
        let grammar = match self {
            Self::Lark { text, options } => lark::parse(text, options)?,
            Self::Gbnf { text, options } => gbnf::parse(text, options)?,
            Self::Regex { text, options } => regex::parse(text, options)?,
            Self::JsonSchema { text, options } => {
                return Ok(json_schema::parse_with_warnings(text, options)?);
            }
        };
        Ok((grammar, Vec::new()))
    }
}

//! A grammar as its author wrote it, whatever the language.

use palmette_grammar_regex::parse::RegexError;
use palmette_grammar_syntax::json_schema::{self, JsonSchemaError, JsonSchemaOptions, Warning};
use palmette_grammar_syntax::{gbnf, lark, regex, structural_tag};
use serde::de::DeserializeOwned;

use crate::{Budget, Grammar, Interrupted, Span};

/// A text that a front end reads, and how: all that a [`Grammar`] depends on.
///
/// Equal sources make equal grammars, so a source is what a [`GrammarCache`](crate::GrammarCache)
/// knows them by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "a source is compiled once and never in a list")]
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

/// A language or options of one that no front end has.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// No language of this name.
    #[error("there is no language {name:?}; there are {}", GrammarSource::LANGUAGES.join(", "))]
    Language {
        /// The name given.
        name: String,
    },
    /// No options of the language.
    #[error("options of {language}: {message}; give an object of its options, as JSON")]
    Options {
        /// The language.
        language: &'static str,
        /// The value, its place in the text of the options, and the rule.
        message: String,
    },
    /// Tools without the format in which a model writes calls.
    #[error(
        "the option \"format\" of tools says how the model writes calls: one of {}",
        structural_tag::ToolFormat::names()
    )]
    Format,
    /// A text beside a language that has one text alone.
    #[error("{language} takes no text of a grammar, and {len} bytes are given; leave it empty")]
    Text {
        /// The language.
        language: &'static str,
        /// Length of the text given.
        len: usize,
    },
}

impl SourceError {
    /// The place in the source text, with its line and column; `text` is the source. `None` for the
    /// whole.
    pub fn span(&self, text: &str) -> Option<Span> {
        match self {
            Self::Lark(error) => error.problems().first().and_then(|problem| problem.span),
            Self::Gbnf(error) => Some(error.span),
            Self::JsonSchema(error) => error.span(),
            Self::StructuralTag(error) => error.span,
            Self::Regex(error) => {
                let mut offset = error.offset.min(text.len());
                while !text.is_char_boundary(offset) {
                    offset -= 1;
                }
                Some(Span::locate(text, offset, offset))
            }
        }
    }

    /// The part of the document that it is about, as a JSON pointer; `None` where the source is no
    /// JSON.
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::JsonSchema(error) => Some(error.pointer()),
            Self::StructuralTag(error) => Some(&error.pointer),
            Self::Lark(_) | Self::Gbnf(_) | Self::Regex(_) => None,
        }
    }

    /// The message without a place in the text of a document, which its pointer names; others than
    /// who wrote the document may have put it into text.
    pub fn message_by_pointer(&self) -> String {
        match self {
            Self::JsonSchema(error) => error.without_span().to_string(),
            Self::StructuralTag(error) => error.without_span().to_string(),
            Self::Lark(_) | Self::Gbnf(_) | Self::Regex(_) => self.to_string(),
        }
    }

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
    /// Names of languages, as [`in_language`](Self::in_language) takes them.
    pub const LANGUAGES: [&str; 7] =
        ["json_schema", "json_object", "lark", "gbnf", "regex", "structural_tag", "tools"];

    /// A source in a language by its name. `options` are those of the language as a JSON object, as
    /// [files](crate::SavedGrammar) write them: members left out have their default, and the empty
    /// text is no options. Those of `tools` have the name of a [format](structural_tag::ToolFormat)
    /// besides.
    ///
    /// `json_object` is the schema of any object, and takes no text.
    ///
    /// # Errors
    /// When there is no such language, or no such option.
    ///
    /// ```
    /// # use palmette_grammar::GrammarSource;
    /// let options = r#"{"whitespace": "compact"}"#;
    /// let source = GrammarSource::in_language("json_schema", "{}".to_owned(), options)?;
    /// assert_eq!(source.language(), "json_schema");
    /// # Ok::<(), palmette_grammar::OptionsError>(())
    /// ```
    pub fn in_language(language: &str, text: String, options: &str) -> Result<Self, OptionsError> {
        Ok(match language {
            "json_schema" => Self::JsonSchema { text, options: read("json_schema", options)? },
            "json_object" if !text.is_empty() => {
                return Err(OptionsError::Text { language: "json_object", len: text.len() });
            }
            "json_object" => {
                let text = r#"{"type":"object"}"#.to_owned();
                Self::JsonSchema { text, options: read("json_object", options)? }
            }
            "lark" => Self::Lark { text, options: read("lark", options)? },
            "gbnf" => Self::Gbnf { text, options: read("gbnf", options)? },
            "regex" => Self::Regex { text, options: read("regex", options)? },
            "structural_tag" => {
                Self::StructuralTag { text, options: read("structural_tag", options)? }
            }
            "tools" => {
                let refused = |error: serde_json::Error| OptionsError::Options {
                    language: "tools",
                    message: error.to_string(),
                };
                let mut members: serde_json::Map<_, _> = read("tools", options)?;
                let format = members.remove("format").ok_or(OptionsError::Format)?;
                let format = serde_json::from_value(format).map_err(|_| OptionsError::Format)?;
                let options = serde_json::from_value(members.into()).map_err(refused)?;
                Self::Tools { text, format, options }
            }
            name => return Err(OptionsError::Language { name: name.to_owned() }),
        })
    }

    /// The language's name.
    pub fn language(&self) -> &'static str {
        match self {
            Self::JsonSchema { .. } => "json_schema",
            Self::Lark { .. } => "lark",
            Self::Gbnf { .. } => "gbnf",
            Self::Regex { .. } => "regex",
            Self::StructuralTag { .. } => "structural_tag",
            Self::Tools { .. } => "tools",
        }
    }

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

/// Options of a language; the default ones where nothing is given.
fn read<T: DeserializeOwned>(language: &'static str, options: &str) -> Result<T, OptionsError> {
    let options = if options.trim().is_empty() { "{}" } else { options };
    // A list would be read by the order of its values.
    let members: serde_json::Result<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(options);
    members
        .and_then(|members| serde_json::from_value(serde_json::Value::Object(members)))
        .map_err(|error| OptionsError::Options { language, message: error.to_string() })
}

//! The syntaxes of grammars, and which one a file has.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;

/// Syntax of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Syntax {
    /// Lark's dialect of EBNF
    Lark,
    /// GBNF, the EBNF of llama.cpp
    Gbnf,
    /// JSON Schema, drafts 4 to 2020-12
    JsonSchema,
    /// A regular expression, in the syntax of Rust's regex crate
    Regex,
}

impl Syntax {
    /// Syntax by a file's ending.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        Ok(match ending.to_ascii_lowercase().as_str() {
            "lark" => Self::Lark,
            "gbnf" | "ebnf" => Self::Gbnf,
            "json" => Self::JsonSchema,
            "regex" | "re" => Self::Regex,
            _ => bail!(
                "{}: its ending does not say how the grammar is written; rename it to end in .lark, .gbnf, \
                 .ebnf, .json or .regex, or add --syntax",
                path.display()
            ),
        })
    }

    /// The name in a file of cases.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Gbnf => "gbnf",
            Self::JsonSchema => "json_schema",
            Self::Regex => "regex",
        }
    }
}

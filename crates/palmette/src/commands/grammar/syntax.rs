//! The syntaxes of grammars, and which one a file has.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;
use palmette_grammar::Grammar;
use palmette_grammar::frontends::{gbnf, json_schema, lark, regex};

/// How a grammar is written.
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
    /// By the file's ending.
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

    /// By the name in a file of cases.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        Ok(match name {
            "lark" => Self::Lark,
            "gbnf" => Self::Gbnf,
            "json_schema" => Self::JsonSchema,
            "regex" => Self::Regex,
            _ => bail!(
                "a grammar of kind {name:?} is not read; there are lark, gbnf, json_schema and regex"
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

    /// Reads a grammar, from this rule on where the syntax has rules.
    pub(crate) fn parse(self, source: &str, start: Option<&str>) -> anyhow::Result<Grammar> {
        Ok(match self {
            Self::Lark => {
                let options = start.map(lark::LarkOptions::from_rule).unwrap_or_default();
                lark::parse(source, &options)?
            }
            Self::Gbnf => {
                let mut options = gbnf::GbnfOptions::default();
                if let Some(start) = start {
                    options.root = start.to_owned();
                }
                gbnf::parse(source, &options)?
            }
            Self::JsonSchema | Self::Regex if start.is_some() => {
                bail!("--start names a rule, but a {} has none; leave it out", self.name())
            }
            Self::JsonSchema => {
                json_schema::parse(source, &json_schema::JsonSchemaOptions::default())?
            }
            Self::Regex => regex::parse(
                source.trim_end_matches(['\n', '\r']),
                &regex::RegexOptions::default(),
            )?,
        })
    }
}

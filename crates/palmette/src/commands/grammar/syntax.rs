//! The syntaxes of grammars, and which one a file has.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;
use palmette_grammar::Grammar;
use palmette_grammar::frontends::{gbnf, lark, regex};

/// How a grammar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Syntax {
    /// Lark's dialect of EBNF
    Lark,
    /// GBNF, the EBNF of llama.cpp
    Gbnf,
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
            "regex" | "re" => Self::Regex,
            _ => bail!(
                "{}: its ending does not say how the grammar is written; rename it to end in .lark, .gbnf, \
                 .ebnf or .regex, or add --syntax",
                path.display()
            ),
        })
    }

    /// By the name in a file of cases.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        Ok(match name {
            "lark" => Self::Lark,
            "gbnf" => Self::Gbnf,
            "regex" => Self::Regex,
            _ => bail!("a grammar of kind {name:?} is not read; there are lark, gbnf and regex"),
        })
    }

    /// The name in a file of cases.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Gbnf => "gbnf",
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
            Self::Regex => {
                if let Some(start) = start {
                    bail!("--start is {start}, but a regular expression has no rules");
                }
                regex::parse(
                    source.trim_end_matches(['\n', '\r']),
                    &regex::RegexOptions::default(),
                )?
            }
        })
    }
}

//! Options of reading a grammar: choices of several commands.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::{
    Digits, Escapes, Inexpressible, JsonSchemaOptions, PropertyOrder, Separators, Whitespace,
};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::frontends::structural_tag::{
    StructuralTagOptions, ToolFormat, is_structural_tag,
};
use palmette_grammar::{GrammarSource, Lexing};

use super::Syntax;
use super::schema_option::{SchemaOption, schema_option};

/// Choices that the file leaves open.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct ReadingArgs {
    /// Start rule [default: start in Lark, root in GBNF]
    #[arg(long, value_name = "RULE")]
    start: Option<String>,
    /// In Lark: how texts are cut into lexemes [default: contextual, longest where the grammar has
    /// blocks by indentation]
    #[arg(long, value_name = "WAY")]
    lexing: Option<Cutting>,
    /// In JSON Schema: in which order the members of an object may come
    #[arg(long, value_name = "ORDER", default_value = "any", help_heading = "JSON Schema")]
    order: Order,
    #[command(flatten)]
    spaces: SpaceArgs,
    /// In JSON Schema: how long numbers may be
    #[arg(long, value_name = "POLICY", default_value = "bounded", help_heading = "JSON Schema")]
    digits: NumberLengths,
    /// In JSON Schema: with which escapes a string may be written
    #[arg(long, value_name = "POLICY", default_value = "needed", help_heading = "JSON Schema")]
    escapes: Escaped,
    /// In JSON Schema: leave out what no grammar can express, such as uniqueItems, with a warning;
    /// texts that break it are then allowed
    #[arg(long, help_heading = "JSON Schema")]
    relax: bool,
    /// In JSON Schema: refuse what a grammar can express in part only, such as the formats hostname
    /// and regex, and formats that are not known, so that what is allowed is valid in every respect
    #[arg(long, conflicts_with = "relax", help_heading = "JSON Schema")]
    strict: bool,
    /// Rarer options, repeatable: draft=4|6|7|2019-09|2020-12 of schemas that name none;
    /// formats=false, integer_fractions=false; closed_objects=true (no members beside the declared
    /// ones, unless the schema says what they may be); distinct_members=true (no optional member
    /// twice, however many there are; masks take longer); max_tracked; max_listed (more strings of
    /// an enumeration are a set, each written in one way), max_listed_bytes (so are more bytes of
    /// those that are written in one way at any rate), max_string_tokens (no string value of more
    /// tokens); and the limits max_depth, max_nesting,
    /// max_cases, max_states, max_rules, max_work
    #[arg(long, value_name = "NAME=VALUE", value_parser = schema_option, help_heading = "JSON Schema")]
    option: Vec<SchemaOption>,
    /// A schema that others refer to by its URI, repeatable; nothing is downloaded. The drafts' own
    /// metaschemas are known
    #[arg(long, value_name = "URI=FILE", value_parser = resource, help_heading = "JSON Schema")]
    resource: Vec<(String, PathBuf)>,
    #[arg(long, value_name = "FORMAT", help_heading = "JSON Schema", help = TOOLS_HELP.as_str())]
    tools: Option<String>,
}

/// Help of `--tools`, with the names of all formats.
static TOOLS_HELP: LazyLock<String> = LazyLock::new(|| {
    let names = ToolFormat::names();
    format!("Read the file as tools, or a request with tools, and allow calls in a format: {names}")
});

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Escaped {
    /// In strings of any text all; in others those of characters that need one, or are not ASCII
    #[default]
    Needed,
    /// Any, such as \u003c for <
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum NumberLengths {
    /// At most 40 digits before and after the point, and exponents of doubles; more where bounds or
    /// divisors have more
    #[default]
    Bounded,
    /// Any number of digits
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Cutting {
    /// Each lexeme is the longest of the terminals that the parser could take at its place
    Contextual,
    /// Each lexeme is the longest of all terminals
    Longest,
    /// In any way
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Order {
    /// Any; optional ones may come again where an object declares more than four
    #[default]
    Any,
    /// The schema's order
    Schema,
}

/// Whitespace of JSON texts.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct SpaceArgs {
    /// In JSON: what may stand between the tokens of the text
    #[arg(long, value_name = "POLICY", default_value = "bounded", help_heading = "JSON Schema")]
    whitespace: Spaces,
    /// In JSON: the comma and the colon with the blanks around them, and none elsewhere, as a list
    /// of two texts: '[", ", ": "]'
    #[arg(
        long,
        value_name = "JSON",
        value_parser = separators,
        conflicts_with = "whitespace",
        help_heading = "JSON Schema"
    )]
    separators: Option<Separators>,
}

impl SpaceArgs {
    pub(crate) fn policy(&self) -> Whitespace {
        self.separators.map_or(self.whitespace.into(), Whitespace::Separators)
    }
}

fn separators(given: &str) -> Result<Separators, String> {
    serde_json::from_str(given)
        .map_err(|error| format!("{error}; it is a list of two texts, such as [\", \", \": \"]"))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Spaces {
    /// A blank, or a line break and at most 40, before each token; nothing at the end. A model
    /// cannot go on writing blanks
    #[default]
    Bounded,
    /// Any amount of whitespace
    Flexible,
    /// None
    Compact,
    /// One space after each comma and colon
    Spaced,
}

impl From<Spaces> for Whitespace {
    fn from(spaces: Spaces) -> Self {
        match spaces {
            Spaces::Bounded => Self::Bounded,
            Spaces::Flexible => Self::Flexible,
            Spaces::Compact => Self::Compact,
            Spaces::Spaced => Self::Spaced,
        }
    }
}

impl ReadingArgs {
    /// True when nothing was chosen.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// A grammar's source, with these choices.
    pub(crate) fn source(&self, syntax: Syntax, text: String) -> anyhow::Result<GrammarSource> {
        let rules = matches!(syntax, Syntax::Lark | Syntax::Gbnf);
        if let Some(start) = self.start.as_deref().filter(|_| !rules) {
            bail!("--start names a rule, {start}, but a {} has none; leave it out", syntax.name());
        }
        ensure!(
            self.lexing.is_none() || syntax == Syntax::Lark,
            "--lexing is for Lark; this is read as {}",
            syntax.name()
        );
        let (has_option, has_resource) = (!self.option.is_empty(), !self.resource.is_empty());
        for (given, name) in [
            (self.relax, "--relax"),
            (self.strict, "--strict"),
            (has_option, "--option"),
            (has_resource, "--resource"),
        ] {
            let read = syntax.name();
            ensure!(
                !given || syntax == Syntax::JsonSchema,
                "{name} is for JSON Schema; this is read as {read}"
            );
        }
        let start = self.start.as_deref();
        Ok(match syntax {
            Syntax::Lark => {
                let mut options = start.map(LarkOptions::from_rule).unwrap_or_default();
                options.lexing = self.lexing.map(|way| match way {
                    Cutting::Contextual => Lexing::Contextual,
                    Cutting::Longest => Lexing::Longest,
                    Cutting::Any => Lexing::Any,
                });
                GrammarSource::Lark { text, options }
            }
            Syntax::Gbnf => {
                let mut options = GbnfOptions::default();
                if let Some(start) = start {
                    options.root = start.to_owned();
                }
                GrammarSource::Gbnf { text, options }
            }
            Syntax::JsonSchema if self.tools.is_some() => GrammarSource::Tools {
                text,
                format: *self.tool_format()?,
                options: StructuralTagOptions { json_schema: self.json_schema()? },
            },
            // No schema has this type.
            Syntax::JsonSchema if is_structural_tag(&text) => {
                let options = StructuralTagOptions { json_schema: self.json_schema()? };
                GrammarSource::StructuralTag { text, options }
            }
            Syntax::JsonSchema => GrammarSource::JsonSchema { text, options: self.json_schema()? },
            Syntax::Regex => {
                let text = text.trim_end_matches(['\n', '\r']).to_owned();
                GrammarSource::Regex { text, options: RegexOptions::default() }
            }
        })
    }

    fn tool_format(&self) -> anyhow::Result<&'static ToolFormat> {
        ToolFormat::of_name(self.tools.as_deref().unwrap_or_default()).context("--tools")
    }

    fn json_schema(&self) -> anyhow::Result<JsonSchemaOptions> {
        let default = JsonSchemaOptions::default();
        let mut options = JsonSchemaOptions {
            order: match self.order {
                Order::Any => default.order,
                Order::Schema => PropertyOrder::Schema,
            },
            escapes: match self.escapes {
                Escaped::Needed => default.escapes,
                Escaped::Any => Escapes::Any,
            },
            whitespace: self.spaces.policy(),
            digits: match self.digits {
                NumberLengths::Bounded => default.digits,
                NumberLengths::Any => Digits::Any,
            },
            inexpressible: match (self.strict, self.relax) {
                (true, _) => Inexpressible::Refused,
                (false, true) => Inexpressible::Ignored,
                (false, false) => Inexpressible::Approximated,
            },
            ..default
        };
        self.option.iter().for_each(|option| option.set(&mut options));
        options.resources = resources(&self.resource)?;
        Ok(options)
    }
}

/// Reads `URI=FILE`.
pub(crate) fn resource(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.rsplit_once('=').filter(|(uri, file)| !uri.is_empty() && !file.is_empty());
    let (uri, file) = parts.ok_or("a schema that others refer to is given as URI=FILE")?;
    Ok((uri.to_owned(), PathBuf::from(file)))
}

/// The texts of schemas that others refer to, by URI.
pub(crate) fn resources(given: &[(String, PathBuf)]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for (uri, path) in given {
        let named = || format!("--resource {uri}={}", path.display());
        let text = crate::input::read_text(path, "a schema").with_context(named)?;
        ensure!(texts.insert(uri.clone(), text).is_none(), "--resource gives {uri} twice");
    }
    Ok(texts)
}

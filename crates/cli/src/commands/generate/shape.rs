//! Options that say what a text must fit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_document::RawJson;
use palmette_grammar::frontends::structural_tag::is_structural_tag;
use palmette_grammar::{Budget, RecognizerLimits, SavedGrammar};
use palmette_text::question::{StructuredOutputs, TextDefaults, TextMembers};
use palmette_text::sources::JsonForm;
use palmette_text::{Constrained, TextModel, ToolFormat};
use serde_json::{Value, json};

use crate::commands::grammar::{OpenCatalogs, SpaceArgs, Syntax, resource, resources};
use crate::input;

/// The constraint of a text: at most one of these.
#[derive(Clone, Debug, Args)]
pub(super) struct ShapeArgs {
    /// A grammar: .lark, .gbnf, .json (a schema or structural tag), .regex, or .pmg of `palmette
    /// grammar compile`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["schema", "regex", "tools", "response_format"], help_heading = "Under a grammar")]
    grammar: Option<PathBuf>,
    /// Syntax of the grammar [default: by the file's ending]
    #[arg(long, value_name = "SYNTAX", requires = "grammar", help_heading = "Under a grammar")]
    syntax: Option<Syntax>,
    /// A JSON Schema
    #[arg(long, value_name = "FILE", conflicts_with_all = ["regex", "tools", "response_format"], help_heading = "Under a grammar")]
    schema: Option<PathBuf>,
    /// A regular expression for the whole text
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["tools", "response_format"], help_heading = "Under a grammar")]
    regex: Option<String>,
    /// Tools that the model may call, as OpenAI's, Anthropic's and MCP's interfaces define them;
    /// the chat template is told of them
    #[arg(long, value_name = "FILE", help_heading = "Under a grammar")]
    pub(super) tools: Option<PathBuf>,
    /// Tool choice: auto, none, required, or the name of a tool
    #[arg(long, value_name = "CHOICE", help_heading = "Under a grammar")]
    pub(super) tool_choice: Option<String>,
    /// At most one call
    #[arg(long, help_heading = "Under a grammar")]
    pub(super) one_call: bool,
    /// Format of the model's calls, one of those of `grammar check --tools` [default: by its chat
    /// template]
    #[arg(long, value_name = "FORMAT", help_heading = "Under a grammar")]
    pub(super) tool_format: Option<String>,
    /// A response format, as in OpenAI's interface: {"type": "json_schema", "json_schema":
    /// {"schema": …}}
    #[arg(long, value_name = "FILE", help_heading = "Under a grammar")]
    pub(super) response_format: Option<PathBuf>,
    #[command(flatten)]
    spaces: SpaceArgs,
    /// A schema that others refer to by its URI, repeatable; nothing is downloaded
    #[arg(long, value_name = "URI=FILE", value_parser = resource, help_heading = "Under a grammar")]
    resource: Vec<(String, PathBuf)>,
    /// Objects of a schema may have members that it does not declare, unless it forbids them
    #[arg(long, help_heading = "Under a grammar")]
    open_objects: bool,
    /// Members of an object come in any order, and not as the schema declares them
    #[arg(long, help_heading = "Under a grammar")]
    any_order: bool,
}

/// A set that texts must be in, by an option.
#[derive(Debug)]
pub(super) enum Shape {
    /// Members of a question that say it, and the file or option that it is from.
    Members(Box<TextMembers>, String),
    /// A compiled grammar, which no document has.
    Compiled(Box<SavedGrammar>, String),
}

impl ShapeArgs {
    /// The grammar of the options; tools and response formats belong to a question.
    pub(super) fn read(&self) -> anyhow::Result<Option<Shape>> {
        self.format()?;
        let (syntax, text, name) = match (&self.grammar, &self.schema, &self.regex) {
            (Some(path), ..)
                if self.syntax.is_none() && path.extension().is_some_and(|e| e == "pmg") =>
            {
                let name = path.display().to_string();
                let saved = SavedGrammar::open(path).with_context(|| name.clone())?;
                return Ok(Some(Shape::Compiled(Box::new(saved), name)));
            }
            (Some(path), ..) => {
                ensure!(
                    self.syntax.is_some() || path.as_os_str() != "-",
                    "standard input has no ending that tells how the grammar is written; say --syntax lark, gbnf, json-schema or regex"
                );
                let syntax = self.syntax.map_or_else(|| Syntax::of(path), Ok)?;
                (syntax, input::read_request(path)?, path.display().to_string())
            }
            (_, Some(path), _) => {
                (Syntax::JsonSchema, input::read_request(path)?, path.display().to_string())
            }
            (_, _, Some(pattern)) => (Syntax::Regex, pattern.clone(), "--regex".to_owned()),
            _ => return Ok(None),
        };
        let members = members(syntax, text).with_context(|| name.clone())?;
        // What cannot be read at all is said before the model is loaded.
        let resources = self.resources()?;
        let defaults = TextDefaults { json: self.form(), resources, ..TextDefaults::terminal() };
        if let Some(named) = members.grammar(&defaults).with_context(|| name.clone())? {
            let budget = &mut Budget::new(PARSE_STEPS);
            named.source.parse_with_budget(budget).with_context(|| name.clone())?;
        }
        Ok(Some(Shape::Members(Box::new(members), name)))
    }

    /// Schemas that others refer to, by their URIs.
    pub(super) fn resources(&self) -> anyhow::Result<BTreeMap<String, String>> {
        resources(&self.resource)
    }

    /// The form of JSON.
    pub(super) fn form(&self) -> JsonForm {
        JsonForm {
            closed_objects: !self.open_objects,
            in_order: !self.any_order,
            whitespace: self.spaces.policy(),
        }
    }

    /// The format that the options name.
    pub(super) fn format(&self) -> anyhow::Result<Option<&'static ToolFormat>> {
        let named = self.tool_format.as_deref().map(ToolFormat::of_name);
        named.transpose().map_err(|error| anyhow::anyhow!("--tool-format: {error}"))
    }

    /// The tools of the options.
    pub(super) fn tools(&self) -> anyhow::Result<Option<Value>> {
        json_file(self.tools.as_ref())
    }

    /// The response format of the options.
    pub(super) fn response_format(&self) -> anyhow::Result<Option<Value>> {
        json_file(self.response_format.as_ref())
    }
}

/// Steps of reading a grammar that is a user's own: some minutes.
const PARSE_STEPS: u64 = 20_000_000_000;

/// The members of a question that ask for a text in a syntax.
fn members(syntax: Syntax, text: String) -> anyhow::Result<TextMembers> {
    let in_language = |language: &str, text: String| TextMembers {
        response_format: Some(json!({"type": language, "grammar": text})),
        ..TextMembers::default()
    };
    let outputs = StructuredOutputs::default();
    let outputs = match syntax {
        Syntax::Lark => return Ok(in_language("lark", text)),
        Syntax::Gbnf => return Ok(in_language("gbnf", text)),
        Syntax::Regex => {
            let text = text.trim_end_matches(['\n', '\r']).to_owned();
            StructuredOutputs { regex: Some(text), ..outputs }
        }
        Syntax::JsonSchema => {
            let is_tag = is_structural_tag(&text);
            let document = Some(RawJson::from_text(&text).context("it is no JSON")?);
            match is_tag {
                true => StructuredOutputs { structural_tag: document, ..outputs },
                false => StructuredOutputs { json: document, ..outputs },
            }
        }
    };
    Ok(TextMembers { structured_outputs: Some(outputs), ..TextMembers::default() })
}

impl Shape {
    /// The file or option that it is from.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Members(_, name) | Self::Compiled(_, name) => name,
        }
    }

    /// A compiled grammar over the model's tokens.
    pub(super) fn reopen(
        saved: &SavedGrammar,
        model: &TextModel,
        catalogs: &OpenCatalogs,
    ) -> anyhow::Result<Constrained> {
        let (budget, limits) = (&mut Budget::new(PARSE_STEPS), RecognizerLimits::default());
        let reopened = saved.compile(model.vocabulary(), &limits, budget)?;
        Ok(catalogs.bind(&reopened.constraint)?.into())
    }
}

fn json_file(path: Option<&PathBuf>) -> anyhow::Result<Option<Value>> {
    let Some(path) = path else { return Ok(None) };
    // By the rule of questions: of two members of one name one would be lost.
    let value = palmette_document::read(input::read_request(path)?.as_bytes());
    Ok(Some(value.with_context(|| path.display().to_string())?))
}

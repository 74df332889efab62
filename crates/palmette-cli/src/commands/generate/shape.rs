//! Constraints of a text, from options and from lines of a batch.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, Whitespace};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::frontends::structural_tag::{StructuralTagOptions, is_structural_tag};
use palmette_grammar::{Budget, GrammarSource, RecognizerLimits, SavedGrammar};
use palmette_text::sources::JsonForm;
use palmette_text::{Constrained, TextModel, ToolFormat, sources};
use serde_json::Value;

use super::text_of;
use crate::commands::grammar::{Spaces, Syntax, resource, resources};

/// The constraint of a text: at most one of these.
#[derive(Clone, Debug, Args)]
pub(super) struct ShapeArgs {
    /// A grammar: .lark, .gbnf, .json (a schema or structural tag), .regex, or .pmg of `palmette grammar compile`
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
    /// Tools that the model may call, as OpenAI's, Anthropic's and MCP's interfaces define them; the chat template is told of them
    #[arg(long, value_name = "FILE", help_heading = "Under a grammar")]
    pub(super) tools: Option<PathBuf>,
    /// Tool choice: auto, none, required, or the name of a tool
    #[arg(long, value_name = "CHOICE", help_heading = "Under a grammar")]
    pub(super) tool_choice: Option<String>,
    /// At most one call
    #[arg(long, help_heading = "Under a grammar")]
    pub(super) one_call: bool,
    /// Format of the model's calls: hermes (Qwen3), llama3, mistral, mistral-list, deepseek or harmony (gpt-oss) [default: by its chat template]
    #[arg(long, value_name = "FORMAT", help_heading = "Under a grammar")]
    pub(super) tool_format: Option<String>,
    /// A response format, as in OpenAI's interface: {"type": "json_schema", "json_schema": {"schema": …}}
    #[arg(long, value_name = "FILE", help_heading = "Under a grammar")]
    pub(super) response_format: Option<PathBuf>,
    /// Whitespace between the tokens of JSON
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "bounded",
        help_heading = "Under a grammar"
    )]
    whitespace: Spaces,
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

/// A set that texts must be in.
#[derive(Debug)]
pub(super) enum Shape {
    /// A grammar in a file, or a pattern, with its name in messages.
    Source(Box<GrammarSource>, String),
    Compiled(Box<SavedGrammar>, String),
}

impl ShapeArgs {
    /// The grammar of the options; tools and response formats belong to a request.
    pub(super) fn read(&self) -> anyhow::Result<Option<Arc<Shape>>> {
        self.format()?;
        let shape = match (&self.grammar, &self.schema, &self.regex) {
            (Some(path), ..)
                if self.syntax.is_none() && path.extension().is_some_and(|e| e == "pmg") =>
            {
                let name = path.display().to_string();
                let saved = SavedGrammar::open(path).with_context(|| name.clone())?;
                Shape::Compiled(Box::new(saved), name)
            }
            (Some(path), ..) => {
                ensure!(
                    self.syntax.is_some() || path.as_os_str() != "-",
                    "standard input has no ending that tells how the grammar is written; say --syntax lark, gbnf, json-schema or regex"
                );
                let syntax = self.syntax.map_or_else(|| Syntax::of(path), Ok)?;
                Shape::Source(
                    Box::new(self.source(syntax, text_of(path)?)?),
                    path.display().to_string(),
                )
            }
            (_, Some(path), _) => {
                let source = self.source(Syntax::JsonSchema, text_of(path)?)?;
                Shape::Source(Box::new(source), path.display().to_string())
            }
            (_, _, Some(pattern)) => Shape::Source(
                Box::new(self.source(Syntax::Regex, pattern.clone())?),
                "--regex".to_owned(),
            ),
            _ => return Ok(None),
        };
        // What cannot be read at all is said before the model is loaded.
        if let Shape::Source(source, name) = &shape {
            source
                .parse_with_budget(&mut Budget::new(20_000_000_000))
                .with_context(|| name.clone())?;
        }
        Ok(Some(Arc::new(shape)))
    }

    /// The source of a text in a syntax, with the options.
    pub(super) fn source(&self, syntax: Syntax, text: String) -> anyhow::Result<GrammarSource> {
        Ok(match syntax {
            Syntax::Lark => GrammarSource::Lark { text, options: LarkOptions::default() },
            Syntax::Gbnf => GrammarSource::Gbnf { text, options: GbnfOptions::default() },
            Syntax::Regex => {
                let text = text.trim_end_matches(['\n', '\r']).to_owned();
                GrammarSource::Regex { text, options: RegexOptions::default() }
            }
            Syntax::JsonSchema if is_structural_tag(&text) => {
                let options = StructuralTagOptions { json_schema: self.json_schema()? };
                GrammarSource::StructuralTag { text, options }
            }
            Syntax::JsonSchema => GrammarSource::JsonSchema { text, options: self.json_schema()? },
        })
    }

    /// The grammar of tools, or of a response format, with the options.
    pub(super) fn with_options(&self, source: GrammarSource) -> anyhow::Result<GrammarSource> {
        let json_schema = self.json_schema()?;
        Ok(match source {
            GrammarSource::JsonSchema { text, .. } => {
                GrammarSource::JsonSchema { text, options: json_schema }
            }
            GrammarSource::StructuralTag { text, .. } => {
                GrammarSource::StructuralTag { text, options: StructuralTagOptions { json_schema } }
            }
            GrammarSource::Tools { text, format, .. } => {
                GrammarSource::Tools { text, format, options: StructuralTagOptions { json_schema } }
            }
            other => other,
        })
    }

    fn json_schema(&self) -> anyhow::Result<JsonSchemaOptions> {
        let resources = resources(&self.resource)?;
        Ok(JsonSchemaOptions { resources, ..self.form().options() })
    }

    /// The form of JSON.
    pub(super) fn form(&self) -> JsonForm {
        JsonForm {
            closed_objects: !self.open_objects,
            in_order: !self.any_order,
            whitespace: Whitespace::from(self.whitespace),
        }
    }

    /// The format that the options name.
    fn format(&self) -> anyhow::Result<Option<&'static ToolFormat>> {
        let named = self.tool_format.as_deref().map(palmette_text::tool_format_named);
        named.transpose().map_err(|error| anyhow::anyhow!("--tool-format: {error}"))
    }

    /// The format in which the model writes calls.
    pub(super) fn format_of(&self, model: &TextModel) -> anyhow::Result<ToolFormat> {
        match (self.format()?, model.tool_format()) {
            (Some(format), _) | (None, Some(format)) => Ok(model.spoken(format)),
            (None, None) => bail!(
                "{}: its chat template shows no format of tool calls that is known; say --tool-format hermes, llama3, mistral, \
                 mistral-list, deepseek or harmony",
                model.name()
            ),
        }
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

fn json_file(path: Option<&PathBuf>) -> anyhow::Result<Option<Value>> {
    let Some(path) = path else { return Ok(None) };
    let value = serde_json::from_str(&text_of(path)?).context("it is no JSON");
    Ok(Some(value.with_context(|| path.display().to_string())?))
}

/// A constraint over the model's tokens, and what in its source has no effect.
pub(super) type Compiled = (Constrained, Vec<String>);

impl Shape {
    pub(super) fn compile(&self, model: &TextModel) -> anyhow::Result<Compiled> {
        match self {
            Self::Source(source, name) => compile(model, source).with_context(|| name.clone()),
            Self::Compiled(saved, name) => {
                let budget = &mut Budget::new(20_000_000_000);
                let limits = RecognizerLimits::default();
                let reopened = saved.compile(model.vocabulary(), &limits, budget);
                let reopened = reopened.with_context(|| name.clone())?;
                Ok((Constrained::Grammar(reopened.constraint), Vec::new()))
            }
        }
    }
}

/// Compiles a source, or takes what was compiled before.
pub(super) fn compile(model: &TextModel, source: &GrammarSource) -> anyhow::Result<Compiled> {
    let grammar = model.compile(source)?;
    Ok((Constrained::by(&grammar), grammar.notes()))
}

/// The source of a request's tools and response format; `None` where any text is allowed.
pub(super) fn source_of(
    request: &Value,
    format: Option<&ToolFormat>,
    form: JsonForm,
) -> anyhow::Result<Option<GrammarSource>> {
    match format {
        Some(format) => Ok(Some(sources::of_tools(request, format, form).context("tools")?)),
        None => Ok(sources::of_response_format(&request["response_format"], form)?),
    }
}

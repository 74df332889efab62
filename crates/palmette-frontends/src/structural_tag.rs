//! Structural tags: free text in which a trigger begins a region that a schema or grammar holds, as XGrammar and vLLM take them.
//!
//! ```json
//! {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<function="], "tags": [
//!     {"begin": "<function=get_time>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</function>"}]}}
//! ```
//!
//! A format is one of `const_string`, `json_schema`, `regex`, `grammar` (GBNF), `any_text`, `sequence`, `or`, `optional`, `star`, `plus`,
//! `repeat`, `tag`, `triggered_tags`, `tags_with_separator`, `token`, `exclude_token` and `any_tokens`; the older form with `structures` and
//! `triggers` is read, too.
//!
//! A text that a format fixes and in which names such as `<tool_call>` or `[TOOL_CALLS]` stand may be written by these tokens, where
//! the vocabulary has them as special ones, as well as by its characters.
//!
//! Free text holds no trigger and not the end of the tag around it: each is found where it first stands.

mod formats;
mod free_text;
mod tools;

pub use tools::{TOOL_FORMATS, ToolFormat, structural_tag_of};

use crate::json_schema::source::{Json, JsonId, Source};
use crate::json_schema::{JsonSchemaLimits, JsonSchemaOptions, Warning};
use crate::{Budget, Grammar, Interrupted, Span};

/// Options under which a structural tag is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StructuralTagOptions {
    /// The options of its schemas.
    pub json_schema: JsonSchemaOptions,
}

/// A structural tag that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", place(*.span), at(.pointer))]
pub struct StructuralTagError {
    /// The place in the source text; `None` for the whole.
    pub span: Option<Span>,
    /// The part that it is about, as a JSON pointer.
    pub pointer: String,
    /// The rule that is broken, and the way out.
    pub message: String,
    /// Interruption of the work, if the budget ran out or it was called off.
    pub interrupted: Option<Interrupted>,
}

fn place(span: Option<Span>) -> String {
    span.map_or(String::new(), |span| format!("{span}: "))
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("at {pointer:?}: ") }
}

/// Reads a structural tag, the `format` of one, or a `response_format` that is one.
///
/// # Errors
/// The place and the rule that is broken: no JSON, a format that is not known, a tag without its trigger, a schema or grammar that
/// is refused.
pub fn parse(source: &str, options: &StructuralTagOptions) -> Result<Grammar, StructuralTagError> {
    parse_with_budget(source, options, &mut Budget::unlimited()).map(|(grammar, _)| grammar)
}

/// [`parse`], as long as the budget lasts and nobody calls it off; with what its schemas say without effect.
///
/// # Errors
/// As [`parse`], and when the work is interrupted.
pub fn parse_with_budget(
    source: &str,
    options: &StructuralTagOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), StructuralTagError> {
    let mut json = Source::default();
    let depth = JsonSchemaLimits::default().max_depth;
    let root = json.add(None, source, depth, budget).map_err(|error| StructuralTagError {
        span: None,
        pointer: String::new(),
        message: error.to_string(),
        interrupted: error.interrupted(),
    })?;
    formats::Formats::new(&json, options, budget).document(root)
}

/// True when a JSON document is a structural tag.
pub fn is_structural_tag(source: &str) -> bool {
    let mut json = Source::default();
    let depth = JsonSchemaLimits::default().max_depth;
    let root = json.add(None, source, depth, &mut Budget::unlimited());
    root.is_ok_and(|root| has_type(&json, root))
}

fn has_type(json: &Source, id: JsonId) -> bool {
    let named = json.object(id).and_then(|object| object.get("type"));
    named.is_some_and(
        |id| matches!(json.json(id), Json::String(name) if &**name == "structural_tag"),
    )
}

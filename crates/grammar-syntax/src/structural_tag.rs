//! Structural tags: free text in which a trigger begins a region that a schema or grammar holds, as
//! XGrammar and vLLM take them.
//!
//! ```json
//! {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<function="], "tags": [
//!     {"begin": "<function=get_time>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</function>"}]}}
//! ```
//!
//! A format is one of `const_string`, `json_schema`, `regex`, `grammar` (GBNF), `any_text`,
//! `sequence`, `or`, `optional`, `star`, `plus`, `repeat`, `tag`, `triggered_tags`,
//! `tags_with_separator`, `dispatch`, `token`, `exclude_token`, `any_tokens`,
//! `token_triggered_tags` and `token_dispatch`; the older form with `structures` and `triggers` is
//! read, too. A member that is null is as if it were not there;
//! one that is not read is an error where it is misspelt, and a warning otherwise.
//!
//! Tools of a request are read the same way ([`parse_tools`]): a [`ToolFormat`] is data, the texts
//! around a call.
//!
//! A text that a format fixes and in which names such as `<tool_call>` or `[TOOL_CALLS]` stand may
//! be written by these tokens, where the vocabulary has them as special ones, as well as by its
//! characters.
//!
//! Free text holds no trigger and not the end of the tag around it: each is found where it first
//! stands.

mod answer;
mod calls;
mod document;
mod error;
mod format;
mod known_tool_formats;
mod members;
mod options;
mod request;
mod rules;
mod tool;
mod tool_formats;

pub use crate::json_schema::{
    ArgumentStyle, ITEM, PARAMETER_STYLES, ParameterStyle, ValueNotation,
};
pub use error::StructuralTagError;
pub use known_tool_formats::TOOL_FORMATS;
pub use options::StructuralTagOptions;
pub use tool::ARGUMENT_SCHEMAS;
pub use tool_formats::{CALL_ID, NAME, NUMBER, TemplateMarks, ToolFormat, UnknownToolFormat};

use crate::json_schema::source::{JsonId, Source};
use crate::json_schema::{JsonSchemaLimits, Warning};
use crate::{Budget, Grammar};

/// Reads a structural tag, the `format` of one, or a `response_format` that is one.
///
/// # Errors
/// The place and the rule that is broken: no JSON, a format that is not known, a tag without its
/// trigger, a schema or grammar that is refused.
pub fn parse(
    document: &str,
    options: &StructuralTagOptions,
) -> Result<Grammar, StructuralTagError> {
    parse_with_budget(document, options, &mut Budget::unlimited()).map(|(grammar, _)| grammar)
}

/// [`parse`], as long as the budget lasts and nobody calls it off; with what of it has no effect.
///
/// # Errors
/// As [`parse`], and when the work is interrupted.
pub fn parse_with_budget(
    document: &str,
    options: &StructuralTagOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), StructuralTagError> {
    let (json, root) = source(document, budget)?;
    made(&json, options, budget, |members| document::document(members, root))
}

/// The grammar of answers to a request with tools in a format: its tools, alone, in a list, or in a
/// request with `tools`, `tool_choice`, `parallel_tool_calls` and the format of an answer without a
/// call.
///
/// # Errors
/// When the document is none of these, a tool has no name, two have the same one, one is chosen
/// that is not there, or a schema or grammar is refused; each at its place in the document.
pub fn parse_tools(
    request: &str,
    format: &ToolFormat,
    options: &StructuralTagOptions,
) -> Result<Grammar, StructuralTagError> {
    let read = parse_tools_with_budget(request, format, options, &mut Budget::unlimited());
    read.map(|(grammar, _)| grammar)
}

/// [`parse_tools`], as long as the budget lasts and nobody calls it off; with what of it has no
/// effect.
///
/// # Errors
/// As [`parse_tools`], and when the work is interrupted.
pub fn parse_tools_with_budget(
    request: &str,
    format: &ToolFormat,
    options: &StructuralTagOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), StructuralTagError> {
    let (json, root) = source(request, budget)?;
    let layout = format::Schema::default();
    made(&json, options, budget, |members| request::request(members, root, format, &layout))
}

/// Warnings about what in a request with tools has no effect; its schemas and grammars are not
/// read.
///
/// # Errors
/// As [`parse_tools`], but for schemas and grammars.
pub fn check_tools(request: &str, format: &ToolFormat) -> Result<Vec<Warning>, StructuralTagError> {
    let (json, root) = source(request, &mut Budget::unlimited())?;
    let members = members::Members::new(&json);
    request::request(&members, root, format, &format::Schema::default())?;
    Ok(members.into_warnings())
}

/// Reads a document, and makes the grammar of what it asks for.
fn made(
    json: &Source,
    options: &StructuralTagOptions,
    budget: &mut Budget<'_>,
    read: impl FnOnce(&members::Members<'_>) -> Result<format::Part, StructuralTagError>,
) -> Result<(Grammar, Vec<Warning>), StructuralTagError> {
    let members = members::Members::new(json);
    let part = read(&members)?;
    let (grammar, more) = rules::Rules::new(json, options, budget).grammar(&part)?;
    let mut warnings = members.into_warnings();
    warnings.extend(more);
    Ok((grammar, warnings))
}

fn source(text: &str, budget: &mut Budget<'_>) -> Result<(Source, JsonId), StructuralTagError> {
    let mut json = Source::default();
    let depth = JsonSchemaLimits::default().max_depth;
    let root = json.add(None, text, depth, budget).map_err(|error| StructuralTagError {
        span: None,
        pointer: String::new(),
        message: error.to_string(),
        interrupted: error.interrupted(),
    })?;
    Ok((json, root))
}

/// True when a JSON document is a structural tag: by its type, or in the older form, which some
/// clients write without.
pub fn is_structural_tag(document: &str) -> bool {
    let Ok((json, root)) = source(document, &mut Budget::unlimited()) else { return false };
    let members = members::Members::new(&json);
    let has = |name| members.get(root, name).is_some();
    match members.get(root, "type") {
        Some(_) => members.text_at(root, &["type"]) == Some("structural_tag"),
        None => has("structures") && has("triggers"),
    }
}

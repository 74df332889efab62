//! Documents that have a schema inside: tool definitions and response formats of model providers'
//! interfaces.

use super::{
    keywords::{Role, role},
    source::{Json, JsonId, Source},
};

/// A document that is no schema but has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    /// The kind of document.
    pub(super) what: &'static str,
    /// The JSON pointer to the schema in it.
    pub(super) schema: String,
}

/// The members that lead to the schema, the word that `type` is where the kind has one, and the
/// kind.
const KINDS: &[(&[&str], Option<&str>, &str)] = &[
    (
        &["json_schema", "schema"],
        Some("json_schema"),
        "a response format (OpenAI's `response_format`)",
    ),
    (&["schema"], Some("json_schema"), "a text format (OpenAI's `text.format`)"),
    (&["function", "parameters"], Some("function"), "a tool definition (OpenAI)"),
    (&["parameters"], Some("function"), "a tool definition (OpenAI)"),
    (&["parameters"], None, "a function definition (OpenAI)"),
    (&["input_schema"], None, "a tool definition (Anthropic)"),
    (&["inputSchema"], None, "a tool definition (MCP)"),
    (&["schema"], None, "the `json_schema` of a response format (OpenAI)"),
    (&["response_format", "json_schema", "schema"], None, "a request (OpenAI)"),
];

/// The wrapper that a document is, if it is one; of a list of them, the first.
///
/// It has nothing that would make it a schema: no keyword but annotations and a `type` that is
/// none.
pub(super) fn wrapper(source: &Source, document: JsonId) -> Option<Wrapper> {
    if let Json::Array(items) = source.json(document) {
        let Wrapper { schema, .. } = wrapper(source, *items.first()?)?;
        return Some(Wrapper { what: "a list of tool definitions", schema });
    }
    let object = source.object(document)?;
    let is_foreign = |(name, value): &(std::sync::Arc<str>, JsonId)| match role(name) {
        None | Some(Role::Annotation) => true,
        Some(_) => &**name == "type" && kind_of(source, *value).is_some(),
    };
    if !object.members().iter().all(is_foreign) {
        return None;
    }
    let kind = object.get("type").and_then(|at| kind_of(source, at));
    let is_named = object.get("name").is_some_and(|name| source.string(name).is_some());
    KINDS.iter().find_map(|&(steps, word, what)| {
        let told = word == kind && (word.is_some() || is_named || steps.len() > 1);
        let schema = steps.iter().try_fold(document, |at, step| source.object(at)?.get(step));
        let schema = schema.filter(|&schema| told && source.object(schema).is_some())?;
        Some(Wrapper { what, schema: source.pointer(schema) })
    })
}

/// The word of a `type` that is none of a schema.
fn kind_of(source: &Source, at: JsonId) -> Option<&str> {
    source.string(at).map(|word| &**word).filter(|word| ["json_schema", "function"].contains(word))
}

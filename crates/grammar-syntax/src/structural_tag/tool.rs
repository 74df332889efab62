//! Definitions of tools, as the interfaces of model providers write them.

use super::format::Language;
use super::members::{Members, Result, meant};
use super::tool_formats::ToolFormat;
use crate::json_schema::source::{Json, JsonId};

/// A tool that may be called.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) at: JsonId,
    pub(super) name: String,
    pub(super) input: Input,
}

/// Input that a call of a tool hands over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    /// No arguments.
    Nothing,
    /// An object that is valid for the schema there.
    Object(JsonId),
    /// Any object: the schema does not bind.
    AnyObject,
    /// Any text.
    Text,
    /// A text of the grammar in the member there.
    EmbeddedGrammar(Language, JsonId),
}

/// Members of a tool's definition that have the schema of its arguments: OpenAI's, Anthropic's,
/// MCP's, Gemini's.
pub const ARGUMENT_SCHEMAS: [&str; 5] =
    ["parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema"];

/// Members of a definition that have no say in what a call is.
const SILENT: &[&str] = &[
    "_meta",
    "allowed_callers",
    "annotations",
    "behavior",
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "examples",
    "execution",
    "icons",
    "id",
    "input_examples",
    "metadata",
    "outputSchema",
    "output_schema",
    "response",
    "responseJsonSchema",
    "returns",
    "strict",
    "title",
];

/// Tools of Gemini's that are a member of their own.
const HOSTED: &[&str] = &[
    "codeExecution",
    "code_execution",
    "computerUse",
    "computer_use",
    "fileSearch",
    "file_search",
    "googleMaps",
    "google_maps",
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "urlContext",
    "url_context",
];

/// Tools that may be called, and the words by which those left out are known.
#[derive(Debug)]
pub(super) struct Tools<'f> {
    pub(super) tools: Vec<Tool>,
    pub(super) hosted: Vec<String>,
    /// True where a tool that says `"strict": false` is not held to its schema.
    lax: bool,
    /// The format in which they are called.
    format: &'f ToolFormat,
}

impl<'f> Tools<'f> {
    /// No tools yet.
    pub(super) fn new(format: &'f ToolFormat, lax: bool) -> Self {
        Self { tools: Vec::new(), hosted: Vec::new(), lax, format }
    }

    /// Reads one definition more.
    pub(super) fn add(&mut self, members: &Members<'_>, at: JsonId) -> Result<()> {
        if members.json.object(at).is_none() {
            return Err(members.error(at, RULE));
        }
        for name in ["functionDeclarations", "function_declarations"] {
            if members.get(at, name).is_some() {
                members.only(at, "a tool", &[name], HOSTED)?;
                return members
                    .list(at, name)?
                    .into_iter()
                    .try_for_each(|inner| self.function(members, inner, inner));
            }
        }
        let kind = members.optional_text(at, "type")?;
        let has =
            |inner: JsonId| ARGUMENT_SCHEMAS.iter().any(|name| members.get(inner, name).is_some());
        let inner = members.get(at, "function").or_else(|| members.get(at, "toolSpec"));
        match (kind, inner) {
            (None | Some("function"), Some(inner)) => self.function(members, at, inner),
            (Some("custom"), _) if !has(at) => self.custom(members, at),
            (None | Some("function" | "custom"), None) => match self.own_member(members, at) {
                Some(hosted) => self.leave_out(members, at, hosted),
                None => self.function(members, at, at),
            },
            (Some(kind), _) => {
                if let Some(meant) = meant(kind, &["function", "custom"]) {
                    let rule =
                        format!("a tool of type {kind:?} is not known (did you mean {meant:?}?)");
                    return Err(members.error(members.needed(at, "type")?, rule));
                }
                if SCHEMA_TYPES.contains(&kind) {
                    return Err(members.error(at, RULE));
                }
                if self.format.has_own_tools && has(inner.unwrap_or(at)) {
                    let format = self.format.name;
                    let name = members.text_at(inner.unwrap_or(at), &["name"]).unwrap_or(kind);
                    let rule = format!(
                        "{name:?} is no function, and {format} calls tools of the type {kind:?} in a way that is not known here; \
                         define it as a function"
                    );
                    return Err(members.error(members.needed(at, "type")?, rule));
                }
                // One that says its arguments is called in the text, whoever runs it.
                match has(inner.unwrap_or(at)) {
                    true => self.function(members, at, inner.unwrap_or(at)),
                    false => self.leave_out(members, at, kind),
                }
            }
        }
    }

    /// The name of a hosted tool that is written as a member of its own.
    fn own_member(&self, members: &Members<'_>, at: JsonId) -> Option<&'static str> {
        let is_named = members.get(at, "name").is_some();
        HOSTED.iter().copied().find(|name| !is_named && members.get(at, name).is_some())
    }

    fn leave_out(&mut self, members: &Members<'_>, at: JsonId, kind: &str) -> Result<()> {
        let message = format!("left out: {kind:?} is run by its provider, and no text calls it");
        members.warn(at, message);
        self.hosted.push(kind.to_owned());
        self.hosted.extend(members.text_at(at, &["name"]).map(str::to_owned));
        Ok(())
    }

    /// A function, whose definition is `inner`.
    fn function(&mut self, members: &Members<'_>, at: JsonId, inner: JsonId) -> Result<()> {
        if inner != at {
            let silent = [SILENT, &["name"]].concat();
            members.only(at, "a tool", &["type", "function", "toolSpec"], &silent)?;
        }
        let known = [&["type", "name"][..], &ARGUMENT_SCHEMAS].concat();
        members.only(inner, "a function", &known, SILENT)?;
        let mut schemas = ARGUMENT_SCHEMAS.iter().filter_map(|name| members.get(inner, name));
        let schema = schemas.next();
        if let Some(other) = schemas.next() {
            let rule = "the arguments have two schemas; leave one out";
            return Err(members.error(other, rule));
        }
        // Bedrock's schema is within a member.
        let is_wrapped = |at: &JsonId| members.get(inner, "inputSchema") == Some(*at);
        let within = schema.filter(is_wrapped).and_then(|at| {
            let alone = members.json.object(at).is_some_and(|object| object.members().len() == 1);
            members.get(at, "json").filter(|_| alone)
        });
        let mut strict = members.optional_flag(inner, "strict")?;
        if inner != at {
            strict = strict.or(members.optional_flag(at, "strict")?);
        }
        let input = match within.or(schema) {
            None => Input::Nothing,
            Some(_) if self.lax && strict == Some(false) => Input::AnyObject,
            Some(at) => match members.json.json(at) {
                Json::Object(_) | Json::Bool(_) => Input::Object(at),
                _ => return Err(members.error(at, "the schema of the arguments is a JSON object")),
            },
        };
        self.push(members, at, inner, input)
    }

    /// A custom tool, whose input is a text.
    fn custom(&mut self, members: &Members<'_>, at: JsonId) -> Result<()> {
        let inner = members.get(at, "custom").unwrap_or(at);
        if inner != at {
            let silent = [SILENT, &["name"]].concat();
            members.only(at, "a tool", &["type", "custom"], &silent)?;
        }
        members.only(inner, "a custom tool", &["type", "name", "format"], SILENT)?;
        let input = match members.get(inner, "format") {
            None => Input::Text,
            Some(format) => self.input_format(members, format)?,
        };
        self.push(members, at, inner, input)
    }

    /// `{"type": "text"}`, or `{"type": "grammar", …}` with `syntax` and `definition`, perhaps
    /// within `grammar`.
    fn input_format(&self, members: &Members<'_>, format: JsonId) -> Result<Input> {
        let inner = members.get(format, "grammar").unwrap_or(format);
        let known = ["type", "grammar", "syntax", "definition"];
        members.only(format, "the format of an input", &known, &[])?;
        members.only(inner, "the format of an input", &known, &[])?;
        match members.text(format, "type")? {
            "text" => return Ok(Input::Text),
            "grammar" => {}
            kind => {
                let rule =
                    format!("the format of an input is \"text\" or \"grammar\", not {kind:?}");
                return Err(members.error(members.needed(format, "type")?, rule));
            }
        }
        let language = match members.text(inner, "syntax")? {
            "lark" => Language::Lark,
            "regex" => Language::Regex,
            "gbnf" | "ebnf" => Language::Gbnf,
            other => {
                let rule = format!("the syntax of a grammar is lark, regex or gbnf, not {other:?}");
                return Err(members.error(members.needed(inner, "syntax")?, rule));
            }
        };
        members.text(inner, "definition")?;
        Ok(Input::EmbeddedGrammar(language, members.needed(inner, "definition")?))
    }

    fn push(
        &mut self,
        members: &Members<'_>,
        at: JsonId,
        inner: JsonId,
        input: Input,
    ) -> Result<()> {
        let Some(name) = members.text_at(inner, &["name"]) else {
            let (at, rule) = match members.get(inner, "name") {
                Some(name) => (name, "the name of a tool is a text"),
                None => (at, RULE),
            };
            return Err(members.error(at, rule));
        };
        self.check_name(name).map_err(|rule| members.error(at, rule))?;
        if self.tools.iter().any(|known| known.name == name) {
            return Err(members.error(at, format!("the tool {name:?} is there twice")));
        }
        self.tools.push(Tool { at, name: name.to_owned(), input });
        Ok(())
    }

    /// A name is read back from calls as it is. Brackets are of the marks around calls, and of
    /// special tokens, whose text would be taken for them.
    fn check_name(&self, name: &str) -> std::result::Result<(), String> {
        let is_no_part = |c: char| c.is_control() || "\"\\<>[]".contains(c);
        if name.is_empty() {
            return Err("the name of a tool is empty".to_owned());
        }
        if name.trim() != name || name.contains(is_no_part) {
            return Err(format!(
                "{name:?} is no name of a tool: it has no blanks at its ends, and no quotes, backslashes, brackets (< > [ ]) or control characters"
            ));
        }
        let format = self.format.name;
        if self.format.has_bare_names() && !name.chars().all(ToolFormat::is_in_bare_name) {
            return Err(format!(
                "{name:?} cannot be called in the format {format}, which writes names without quotes: they have letters, digits and _ - . : / alone"
            ));
        }
        Ok(())
    }

    /// The names of all that may be called.
    pub(super) fn names(&self) -> String {
        self.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Words that `type` is in a schema.
const SCHEMA_TYPES: [&str; 7] =
    ["object", "array", "string", "number", "integer", "boolean", "null"];

const RULE: &str = "a tool has a \"name\" and a schema of its arguments: {\"type\": \"function\", \"function\": {\"name\": …, \"parameters\": …}}, \
     {\"name\": …, \"input_schema\": …} or {\"name\": …, \"inputSchema\": …}";

//! Tool calls as structural tags: the tools of a request in the text format of a model.
//!
//! Tools are read as OpenAI's, Anthropic's and MCP's interfaces define them, alone, in a list, or in a request with `tools`,
//! `tool_choice`, `parallel_tool_calls` and `response_format`. A [`ToolFormat`] is data: the texts around a call.

use std::fmt::Write;

use super::StructuralTagError;
use crate::Budget;
use crate::json_schema::JsonSchemaLimits;
use crate::json_schema::source::{Json, JsonId, Source};

/// The texts around the calls of tools, as a family of models writes them. `NAME` stands for the tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ToolFormat {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The models that write so.
    pub models: &'static str,
    /// The text that begins a call, whatever the tool.
    pub trigger: &'static str,
    /// Around all calls of an answer, where they stand together: elsewhere there is no call.
    pub group: Option<(&'static str, &'static str)>,
    /// Text before the arguments of a call.
    pub begin: &'static str,
    /// Text after them.
    pub end: &'static str,
    /// Between two calls.
    pub separator: &'static str,
    /// Around the reasoning that may come first.
    pub reasoning: Option<(&'static str, &'static str)>,
    /// Text before an answer in words, where it is marked.
    pub answer: &'static str,
}

/// The formats that are known by name.
pub const TOOL_FORMATS: &[ToolFormat] = &[
    ToolFormat {
        name: "hermes",
        models: "Qwen3, Qwen2.5, Hermes",
        trigger: "<tool_call>",
        group: None,
        begin: "<tool_call>\n{\"name\": \"NAME\", \"arguments\": ",
        end: "}\n</tool_call>",
        separator: "\n",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
    },
    ToolFormat {
        name: "llama3",
        models: "Llama 3.1 to 3.3",
        trigger: "{\"name\": \"",
        group: None,
        begin: "{\"name\": \"NAME\", \"parameters\": ",
        end: "}",
        separator: "; ",
        reasoning: None,
        answer: "",
    },
    ToolFormat {
        name: "mistral",
        models: "Mistral with tokenizer v11 and later",
        trigger: "[TOOL_CALLS]",
        group: None,
        begin: "[TOOL_CALLS]NAME[ARGS]",
        end: "",
        separator: "",
        reasoning: Some(("[THINK]", "[/THINK]")),
        answer: "",
    },
    ToolFormat {
        name: "mistral-list",
        models: "Mistral with tokenizers before v11",
        trigger: "[TOOL_CALLS]",
        group: Some(("[TOOL_CALLS] [", "]")),
        begin: "{\"name\": \"NAME\", \"arguments\": ",
        end: "}",
        separator: ", ",
        reasoning: None,
        answer: "",
    },
    ToolFormat {
        name: "deepseek",
        models: "DeepSeek V3.1",
        trigger: "<｜tool▁calls▁begin｜>",
        group: Some(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")),
        begin: "<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>",
        end: "<｜tool▁call▁end｜>",
        separator: "",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
    },
    ToolFormat {
        name: "harmony",
        models: "gpt-oss",
        trigger: "<|channel|>commentary to=",
        group: None,
        begin: "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>",
        end: "",
        separator: "<|call|><|start|>assistant",
        reasoning: Some(("<|channel|>analysis<|message|>", "<|end|><|start|>assistant")),
        answer: "<|channel|>final<|message|>",
    },
];

impl ToolFormat {
    /// The format of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TOOL_FORMATS.iter().find(|format| format.name == name)
    }
}

/// Calls that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// Words or calls.
    Auto,
    /// Words alone.
    None,
    /// At least one call.
    Required,
    /// Calls of this tool.
    Named(String),
}

struct Tool<'s> {
    name: String,
    /// Schema of its arguments as it is written.
    schema: &'s str,
}

/// The structural tag of a request: its tools in a format, its response format where no tool is called.
///
/// # Errors
/// When the document is none of these, a tool has no name, two have the same one, or one is chosen that is not there.
pub fn structural_tag_of(request: &str, format: &ToolFormat) -> Result<String, StructuralTagError> {
    let mut json = Source::default();
    let depth = JsonSchemaLimits::default().max_depth;
    let root = json.add(None, request, depth, &mut Budget::unlimited());
    let root = root.map_err(|error| StructuralTagError {
        span: None,
        pointer: String::new(),
        message: error.to_string(),
        interrupted: None,
    })?;
    let reader = Request { json: &json };
    let tools = reader.tools(root)?;
    let choice = reader.choice(root)?;
    let parallel =
        reader.member(root, "parallel_tool_calls").is_none_or(|at| json.text(at) == "true")
            && reader
                .at(root, &["tool_choice", "disable_parallel_tool_use"])
                .is_none_or(|at| json.text(at) == "false");
    let called = match &choice {
        Choice::None => Vec::new(),
        Choice::Named(name) => {
            let named: Vec<&Tool<'_>> = tools.iter().filter(|tool| tool.name == *name).collect();
            if named.is_empty() {
                let names =
                    tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(reader.error(
                    root,
                    format!("the chosen tool {name:?} is not there; there are: {names}"),
                ));
            }
            named
        }
        Choice::Auto | Choice::Required => tools.iter().collect(),
    };
    let words = reader.words(root, format)?;
    let must = matches!(choice, Choice::Required | Choice::Named(_));
    if must && called.is_empty() {
        return Err(reader.error(root, "a call is required, and there are no tools"));
    }
    let answer = match (called.is_empty(), must) {
        (true, _) => words,
        (false, true) => calls(format, &called, parallel),
        (false, false) if words != any_text(format) || !format.answer.is_empty() => {
            either(&words, &calls(format, &called, parallel))
        }
        (false, false) => triggered(format, &called, parallel),
    };
    let whole = match format.reasoning {
        None => answer,
        Some((begin, end)) => {
            let thought = tag(begin, "{\"type\":\"any_text\"}", end);
            let repeat = if format.answer.is_empty() { "optional" } else { "star" };
            format!(
                "{{\"type\":\"sequence\",\"elements\":[{{\"type\":\"{repeat}\",\"content\":{thought}}},{answer}]}}"
            )
        }
    };
    Ok(format!("{{\"type\":\"structural_tag\",\"format\":{whole}}}"))
}

/// One call or several.
fn calls(format: &ToolFormat, tools: &[&Tool<'_>], parallel: bool) -> String {
    let separator = quoted(format.separator);
    let once = if parallel { "" } else { ",\"stop_after_first\":true" };
    let list = format!(
        "{{\"type\":\"tags_with_separator\",\"at_least_one\":true,\"separator\":{separator}{once},\"tags\":[{}]}}",
        tags(format, tools)
    );
    match format.group {
        None => list,
        Some((begin, end)) => tag(begin, &list, end),
    }
}

/// Words in which calls may stand.
fn triggered(format: &ToolFormat, tools: &[&Tool<'_>], parallel: bool) -> String {
    // Calls that stand together are one region.
    let (tags, once) = match format.group {
        None => (tags(format, tools), !parallel),
        Some(_) => (calls(format, tools, parallel), true),
    };
    let trigger = quoted(format.trigger);
    format!(
        "{{\"type\":\"triggered_tags\",\"triggers\":[{trigger}],\"stop_after_first\":{once},\"tags\":[{tags}]}}"
    )
}

fn tags(format: &ToolFormat, tools: &[&Tool<'_>]) -> String {
    let one = |tool: &&Tool<'_>| {
        let schema = format!("{{\"type\":\"json_schema\",\"json_schema\":{}}}", tool.schema);
        tag(&format.begin.replace("NAME", &tool.name), &schema, format.end)
    };
    tools.iter().map(one).collect::<Vec<_>>().join(",")
}

fn tag(begin: &str, content: &str, end: &str) -> String {
    format!(
        "{{\"type\":\"tag\",\"begin\":{},\"content\":{content},\"end\":{}}}",
        quoted(begin),
        quoted(end)
    )
}

fn either(one: &str, other: &str) -> String {
    format!("{{\"type\":\"or\",\"elements\":[{one},{other}]}}")
}

fn any_text(format: &ToolFormat) -> String {
    answered(format, "{\"type\":\"any_text\"}")
}

/// An answer with the mark before it.
fn answered(format: &ToolFormat, content: &str) -> String {
    match format.answer {
        "" => content.to_owned(),
        mark => {
            let mark = quoted(mark);
            format!(
                "{{\"type\":\"sequence\",\"elements\":[{{\"type\":\"const_string\",\"value\":{mark}}},{content}]}}"
            )
        }
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

struct Request<'s> {
    json: &'s Source,
}

impl<'s> Request<'s> {
    fn tools(&self, root: JsonId) -> Result<Vec<Tool<'s>>, StructuralTagError> {
        let listed = match (self.json.json(root), self.member(root, "tools")) {
            (Json::Array(tools), _) => tools.clone(),
            (_, Some(at)) => match self.json.json(at) {
                Json::Array(tools) => tools.clone(),
                _ => return Err(self.error(at, "\"tools\" must be a list")),
            },
            (Json::Object(_), None) if self.is_request(root) => Vec::new(),
            (Json::Object(_), None) => vec![root],
            _ => {
                return Err(self.error(
                    root,
                    "tools are a list, one definition, or the \"tools\" of a request",
                ));
            }
        };
        let mut tools: Vec<Tool<'s>> = Vec::with_capacity(listed.len());
        for at in listed {
            let tool = self.tool(at)?;
            if tools.iter().any(|known| known.name == tool.name) {
                return Err(self.error(at, format!("the tool {:?} is there twice", tool.name)));
            }
            tools.push(tool);
        }
        Ok(tools)
    }

    fn is_request(&self, root: JsonId) -> bool {
        self.member(root, "response_format").is_some()
            || self
                .text_at(root, &["type"])
                .is_some_and(|kind| ["json_schema", "json_object", "text"].contains(&kind))
    }

    fn tool(&self, at: JsonId) -> Result<Tool<'s>, StructuralTagError> {
        let inner = self.member(at, "function").unwrap_or(at);
        let Some(name) = self.text_at(inner, &["name"]) else {
            return Err(self.error(
                at,
                "a tool has a \"name\" and a schema of its arguments: {\"type\": \"function\", \"function\": {\"name\": …, \"parameters\": …}}, \
                 {\"name\": …, \"input_schema\": …} or {\"name\": …, \"inputSchema\": …}",
            ));
        };
        if name.is_empty() || name.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
            return Err(self.error(at, format!("{name:?} is no name of a tool: it has no quotes, backslashes or control characters")));
        }
        let schema = ["parameters", "input_schema", "inputSchema"]
            .iter()
            .find_map(|member| self.member(inner, member));
        let schema = schema.map_or("{\"type\":\"object\"}", |schema| self.json.text(schema));
        Ok(Tool { name: name.to_owned(), schema })
    }

    fn choice(&self, root: JsonId) -> Result<Choice, StructuralTagError> {
        let Some(at) = self.member(root, "tool_choice") else { return Ok(Choice::Auto) };
        let named = || {
            let name =
                self.text_at(at, &["function", "name"]).or_else(|| self.text_at(at, &["name"]));
            name.map(|name| Choice::Named(name.to_owned()))
        };
        let kind = self.json.string(at).map(|text| &**text).or_else(|| self.text_at(at, &["type"]));
        let choice = match kind {
            Some("auto") => Some(Choice::Auto),
            Some("none") => Some(Choice::None),
            Some("required" | "any") => Some(Choice::Required),
            Some("function" | "tool") => named(),
            _ => None,
        };
        choice.ok_or_else(|| {
            self.error(
                at,
                "a choice is \"auto\", \"none\", \"required\", or a tool by name: {\"type\": \"function\", \"function\": {\"name\": …}} or \
                 {\"type\": \"tool\", \"name\": …}",
            )
        })
    }

    /// The format of an answer without a call.
    fn words(&self, root: JsonId, format: &ToolFormat) -> Result<String, StructuralTagError> {
        let asked = match self.member(root, "response_format") {
            Some(at) => at,
            None if self.is_request(root) && self.member(root, "tools").is_none() => root,
            None => return Ok(any_text(format)),
        };
        let content = match self.text_at(asked, &["type"]) {
            Some("text") => return Ok(any_text(format)),
            Some("json_object") => "{\"type\":\"object\"}",
            Some("json_schema") => {
                let inside = self
                    .at(asked, &["json_schema", "schema"])
                    .or_else(|| self.member(asked, "schema"));
                let schema = inside.ok_or_else(|| {
                    self.error(
                        asked,
                        "a response format of a schema has it at \"json_schema\", \"schema\"",
                    )
                })?;
                self.json.text(schema)
            }
            _ => return Err(self.error(
                asked,
                "a response format has the \"type\" \"text\", \"json_object\" or \"json_schema\"",
            )),
        };
        Ok(answered(format, &format!("{{\"type\":\"json_schema\",\"json_schema\":{content}}}")))
    }

    fn member(&self, at: JsonId, name: &str) -> Option<JsonId> {
        self.json.object(at)?.get(name)
    }

    fn at(&self, from: JsonId, steps: &[&str]) -> Option<JsonId> {
        steps.iter().try_fold(from, |at, step| self.member(at, step))
    }

    fn text_at(&self, from: JsonId, steps: &[&str]) -> Option<&'s str> {
        self.json.string(self.at(from, steps)?).map(|text| &**text)
    }

    fn error(&self, at: JsonId, message: impl Into<String>) -> StructuralTagError {
        StructuralTagError {
            span: Some(self.json.span(at)),
            pointer: self.json.pointer(at),
            message: message.into(),
            interrupted: None,
        }
    }
}

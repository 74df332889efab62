//! Requests with tools: what they let a model write, in the text format of its family.
//!
//! Tools are read as OpenAI's, Anthropic's, Gemini's and MCP's interfaces define them, alone, in a
//! list, or in a request with `tools`, `tool_choice`, `parallel_tool_calls` and the format of an
//! answer. With `"lax_tools": true` a tool that says `"strict": false` takes any object.

use super::answer::{self, answer, is_format};
use super::calls::{Calls, whole};
use super::format::{Part, Schema};
use super::members::{Members, Result};
use super::tool::Tools;
use super::tool_formats::ToolFormat;
use crate::json_schema::source::{Json, JsonId};

/// Members of a request that have no say in what texts are allowed.
const SILENT: &[&str] = &[
    "add_generation_prompt",
    "add_special_tokens",
    "anthropic_version",
    "audio",
    "background",
    "best_of",
    "betas",
    "cache_control",
    "cache_salt",
    "chat_template",
    "chat_template_kwargs",
    "container",
    "contents",
    "context_management",
    "continue_final_message",
    "conversation",
    "documents",
    "echo",
    "frequency_penalty",
    "id",
    "ignore_eos",
    "include",
    "include_reasoning",
    "inference_geo",
    "input",
    "instructions",
    "jsonrpc",
    "keep_alive",
    "length_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "max_tool_calls",
    "mcp_servers",
    "messages",
    "metadata",
    "min_p",
    "min_tokens",
    "modalities",
    "model",
    "n",
    "nextCursor",
    "options",
    "prediction",
    "presence_penalty",
    "previous_response_id",
    "priority",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_logprobs",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "request_id",
    "safety_identifier",
    "seed",
    "separate_reasoning",
    "service_tier",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "speed",
    "stop",
    "stop_sequences",
    "stop_token_ids",
    "store",
    "stream",
    "stream_options",
    "suffix",
    "system",
    "systemInstruction",
    "temperature",
    "think",
    "thinking",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncate_prompt_tokens",
    "truncation",
    "use_beam_search",
    "user",
    "verbosity",
    "web_search_options",
];

/// Members of a request about tools.
const READ: &[&str] = &[
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "lax_tools",
    "functions",
    "function_call",
    "toolConfig",
    "tool_config",
    "result",
];

/// Members of `toolConfig`: Gemini's, then Bedrock's.
const IN_TOOL_CONFIG: &[&str] =
    &["functionCallingConfig", "function_calling_config", "tools", "toolChoice"];

/// Calls that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    mode: Mode,
    /// The tools that may be called; `None` for all.
    only: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Words or calls.
    Auto,
    /// Words alone.
    None,
    /// At least one call.
    Required,
}

/// Part that a request lets a model write: its tools in a format, its response format where no tool
/// is called. Arguments are laid out as `layout` says.
pub(super) fn request(
    members: &Members<'_>,
    root: JsonId,
    format: &ToolFormat,
    layout: &Schema,
) -> Result<Part> {
    let reader = Request { members, root };
    let tools = reader.tools(format)?;
    let choice = reader.choice()?;
    let parallel = reader.parallel(&choice)?;
    // A tool alone asks for no format; its own `format` is that of its input.
    let answer = if reader.is_tool() { None } else { answer(members, root)? };
    let called = match choice.mode {
        Mode::None => Vec::new(),
        Mode::Auto | Mode::Required => reader.called(&tools, choice.only.as_deref())?,
    };
    let must = choice.mode == Mode::Required;
    if must && called.is_empty() {
        let at = members.get(root, "tool_choice").unwrap_or(root);
        return Err(members.error(at, "a call is required, and there are no tools"));
    }
    let parallel = parallel && !format.has_one_call;
    let calls = Calls { format, root, tools: called, parallel, layout };
    Ok(whole(members, &calls, answer, must))
}

struct Request<'m, 's> {
    members: &'m Members<'s>,
    root: JsonId,
}

impl Request<'_, '_> {
    fn tools<'f>(&self, format: &'f ToolFormat) -> Result<Tools<'f>> {
        let (members, root) = (self.members, self.root);
        let listed = match members.json.json(root) {
            Json::Array(tools) => tools.clone(),
            Json::Object(_) if self.is_tool() => vec![root],
            Json::Object(_) if is_format(members, root) => Vec::new(),
            Json::Object(_) => {
                members.only(root, "a request", &[READ, answer::READ].concat(), SILENT)?;
                let mut tools = members.optional_list(root, "tools")?;
                tools.extend(members.optional_list(root, "functions")?);
                if let Some(inner) = self.tool_config() {
                    members.only(inner, "toolConfig", IN_TOOL_CONFIG, &["retrievalConfig"])?;
                    tools.extend(members.optional_list(inner, "tools")?);
                }
                // What an MCP server answers to `tools/list`.
                if let Some(inner) = members.get(root, "result") {
                    members.only(inner, "result", &["tools"], &["nextCursor", "_meta"])?;
                    tools.extend(members.optional_list(inner, "tools")?);
                }
                tools
            }
            _ => {
                let rule = "tools are a list, one definition, or the \"tools\" of a request";
                return Err(members.error(root, rule));
            }
        };
        let lax = members.flag(root, "lax_tools")?;
        let mut tools = Tools::new(format, lax);
        listed.into_iter().try_for_each(|at| tools.add(members, at))?;
        Ok(tools)
    }

    /// True when the document is one definition of a tool: an object that is no request and no
    /// format of answers.
    fn is_tool(&self) -> bool {
        const NAMED: [&str; 6] = [
            "name",
            "function",
            "custom",
            "toolSpec",
            "functionDeclarations",
            "function_declarations",
        ];
        const OF_REQUESTS: [&str; 10] = [
            "tools",
            "functions",
            "messages",
            "input",
            "model",
            "prompt",
            "toolConfig",
            "tool_config",
            "result",
            "contents",
        ];
        let (members, root) = (self.members, self.root);
        let has = |name: &&str| members.get(root, name).is_some();
        let is_object = members.json.object(root).is_some();
        if !is_object || is_format(members, root) || OF_REQUESTS.iter().any(has) {
            return false;
        }
        let asks = answer::READ
            .iter()
            .chain(&["tool_choice", "parallel_tool_calls", "lax_tools"])
            .any(has);
        NAMED.iter().any(has) || !asks
    }

    /// True when several calls may stand in an answer. A choice of one tool by name asks for one
    /// call of it, as OpenAI answers it and clients count on, unless the request says otherwise.
    fn parallel(&self, choice: &Choice) -> Result<bool> {
        let members = self.members;
        let parallel = members.optional_flag(self.root, "parallel_tool_calls")?;
        let is_named = choice.mode == Mode::Required
            && choice.only.as_ref().is_some_and(|only| only.len() == 1);
        let choice = members.get(self.root, "tool_choice");
        let disabled = choice.map(|at| members.flag(at, "disable_parallel_tool_use"));
        Ok(parallel.unwrap_or(!is_named) && !disabled.transpose()?.unwrap_or(false))
    }

    fn choice(&self) -> Result<Choice> {
        let members = self.members;
        let mut given: Vec<JsonId> = ["tool_choice", "function_call"]
            .iter()
            .filter_map(|name| members.get(self.root, name))
            .collect();
        let config = self.tool_config();
        given.extend(config.and_then(|config| self.configured(config)));
        let at = match given[..] {
            [] => return Ok(Choice { mode: Mode::Auto, only: None }),
            [at] => at,
            [first, other, ..] => {
                let first = members.json.pointer(first);
                let rule = format!("{first:?} says which tools may be called; leave this out");
                return Err(members.error(other, rule));
            }
        };
        match config.filter(|&config| members.json.parent(at) == Some(config)) {
            Some(config) if members.get(config, "toolChoice") == Some(at) => {
                return self.bedrock_choice(at);
            }
            Some(_) => return self.gemini_choice(at),
            None => {}
        }
        let mode = |word: &str| match word {
            "auto" => Some(Mode::Auto),
            "none" => Some(Mode::None),
            "required" | "any" => Some(Mode::Required),
            _ => None,
        };
        if let Some(word) = members.json.string(at) {
            let mode = mode(word).ok_or_else(|| self.no_choice(at))?;
            return Ok(Choice { mode, only: None });
        }
        let known = ["type", "name", "function", "custom", "allowed_tools", "mode", "tools"];
        members.only(
            at,
            "a choice",
            &[&known[..], &["disable_parallel_tool_use"]].concat(),
            &[],
        )?;
        let one = |name: &str| Choice { mode: Mode::Required, only: Some(vec![name.to_owned()]) };
        match members.optional_text(at, "type")? {
            Some("allowed_tools") => {
                let inner = members.get(at, "allowed_tools").unwrap_or(at);
                members.only(inner, "allowed_tools", &known, &[])?;
                let word = members.optional_text(inner, "mode")?.unwrap_or("auto");
                let mode = mode(word).filter(|&mode| mode != Mode::None).ok_or_else(|| {
                    members.error(
                        inner,
                        format!(
                            "the mode of allowed tools is \"auto\" or \"required\", not {word:?}"
                        ),
                    )
                })?;
                let mut only = Vec::new();
                for tool in members.list(inner, "tools")? {
                    only.push(self.named(tool)?.to_owned());
                }
                Ok(Choice { mode, only: Some(only) })
            }
            None | Some("function" | "custom" | "tool") => Ok(one(self.named(at)?)),
            Some(word) => match mode(word) {
                Some(mode) => Ok(Choice { mode, only: None }),
                // A hosted tool by its type.
                None if known
                    .iter()
                    .all(|&name| name == "type" || members.get(at, name).is_none()) =>
                {
                    Ok(one(word))
                }
                None => Err(self.no_choice(at)),
            },
        }
    }

    /// Gemini's and Bedrock's member for what a request says of its tools.
    fn tool_config(&self) -> Option<JsonId> {
        let get = |name| self.members.get(self.root, name);
        get("toolConfig").or_else(|| get("tool_config"))
    }

    /// The choice in such a member.
    fn configured(&self, config: JsonId) -> Option<JsonId> {
        let get = |name| self.members.get(config, name);
        let gemini = get("functionCallingConfig").or_else(|| get("function_calling_config"));
        gemini.or_else(|| get("toolChoice"))
    }

    /// `{"mode": "ANY", "allowedFunctionNames": […]}`
    fn gemini_choice(&self, at: JsonId) -> Result<Choice> {
        let members = self.members;
        const NAMES: [&str; 2] = ["allowedFunctionNames", "allowed_function_names"];
        members.only(at, "functionCallingConfig", &[&["mode"], &NAMES[..]].concat(), &[])?;
        let mode = match members.optional_text(at, "mode")? {
            None | Some("AUTO" | "VALIDATED" | "MODE_UNSPECIFIED") => Mode::Auto,
            Some("ANY") => Mode::Required,
            Some("NONE") => Mode::None,
            Some(word) => {
                let rule = format!("the mode is AUTO, ANY, VALIDATED or NONE, not {word:?}");
                return Err(members.error(members.needed(at, "mode")?, rule));
            }
        };
        let name = NAMES.into_iter().find(|name| members.get(at, name).is_some());
        let only = name.map(|name| members.texts(at, name)).transpose()?;
        Ok(Choice { mode, only })
    }

    /// `{"auto": {}}`, `{"any": {}}` or `{"tool": {"name": …}}`
    fn bedrock_choice(&self, at: JsonId) -> Result<Choice> {
        let members = self.members;
        members.only(at, "toolChoice", &["auto", "any", "tool"], &[])?;
        let has = |name| members.get(at, name).is_some();
        let (mode, only) = match (has("auto"), has("any"), members.get(at, "tool")) {
            (true, false, None) => (Mode::Auto, None),
            (false, true, None) => (Mode::Required, None),
            (false, false, Some(tool)) => {
                (Mode::Required, Some(vec![members.text(tool, "name")?.to_owned()]))
            }
            _ => {
                let rule = "a choice is {\"auto\": {}}, {\"any\": {}} or {\"tool\": {\"name\": …}}";
                return Err(members.error(at, rule));
            }
        };
        Ok(Choice { mode, only })
    }

    /// The name in a choice of one tool, or its type where it is a hosted one.
    fn named(&self, at: JsonId) -> Result<&str> {
        let members = self.members;
        let paths: [&[&str]; 3] = [&["function", "name"], &["custom", "name"], &["name"]];
        let name = paths.iter().find_map(|path| members.text_at(at, path));
        let kind = members.text_at(at, &["type"]);
        let hosted = kind.filter(|kind| !["function", "custom", "tool"].contains(kind));
        name.or(hosted).ok_or_else(|| self.no_choice(at))
    }

    fn no_choice(&self, at: JsonId) -> super::error::StructuralTagError {
        self.members.error(
            at,
            "a choice is \"auto\", \"none\", \"required\", a tool by name: {\"type\": \"function\", \"function\": {\"name\": …}} or \
             {\"type\": \"tool\", \"name\": …}, or some: {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": …, \"tools\": […]}}",
        )
    }

    /// The tools that may be called, of those chosen.
    fn called(&self, tools: &Tools<'_>, only: Option<&[String]>) -> Result<Vec<super::tool::Tool>> {
        let Some(only) = only else { return Ok(tools.tools.clone()) };
        let at = self.members.get(self.root, "tool_choice").unwrap_or(self.root);
        for name in only {
            if tools.tools.iter().any(|tool| tool.name == *name) {
                continue;
            }
            if tools.hosted.contains(name) && only.len() > 1 {
                continue;
            }
            let rule = match tools.hosted.contains(name) {
                true => {
                    format!("the chosen tool {name:?} is run by its provider, and no text calls it")
                }
                false => {
                    format!("the chosen tool {name:?} is not there; there are: {}", tools.names())
                }
            };
            return Err(self.members.error(at, rule));
        }
        let is_chosen = |tool: &&super::tool::Tool| only.contains(&tool.name);
        Ok(tools.tools.iter().filter(is_chosen).cloned().collect())
    }
}

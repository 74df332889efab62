//! Constraints of a request: which of its members names one, and the grammar that it is.

use palmette_attributes::parse_unique;
use palmette_grammar::GrammarSource;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_text::sources::{self, JsonForm, regex};
use palmette_text::{ToolFormat, Whitespace};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::wire::{ChatMembers, JsonWhitespace, MemberOrder, StructuredOutputs, TextMembers};

/// A grammar, and the member of the body that it is from.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) source: GrammarSource,
    pub(super) pointer: String,
}

/// Tools of a chat as they may be called.
#[derive(Debug)]
pub(super) struct Tools {
    /// Their definitions, as they were given.
    pub(super) list: Vec<Value>,
    pub(super) format: ToolFormat,
}

/// How calls are read from an answer.
#[derive(Clone, Debug)]
pub(super) struct Calling {
    pub(super) format: ToolFormat,
    /// Names of the tools whose input is a text.
    pub(super) customs: Vec<String>,
}

impl Tools {
    pub(super) fn calling(&self) -> Calling {
        let customs = self.list.iter().filter(|tool| tool["type"] == "custom");
        let name = |tool: &Value| {
            let inner = if tool["custom"].is_object() { &tool["custom"] } else { tool };
            inner["name"].as_str().map(str::to_owned)
        };
        Calling { format: self.format, customs: customs.filter_map(name).collect() }
    }
}

/// The tools that a chat may call; `None` where there are none, or it may call none.
pub(super) fn tools_of(
    chat: &ChatMembers,
    format: Option<ToolFormat>,
    model: &str,
) -> Result<Option<Tools>, Problem> {
    let tools = chat.tools.as_deref().unwrap_or_default();
    if tools.is_empty() {
        return match &chat.tool_choice {
            Some(choice) if choice != "none" && choice != "auto" => Err(Problem::invalid(
                "/tool_choice",
                format!(
                    "tool_choice is {choice}, and the request has no tools; add some, or leave it out"
                ),
            )),
            _ => Ok(None),
        };
    }
    if chat.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
        return Ok(None);
    }
    let format = format.ok_or_else(|| {
        Problem::invalid(
            "/tools",
            format!(
                "model {model:?} has no known way of calling tools: its chat template shows none; start the server with one (--tool-format)"
            ),
        )
    })?;
    Ok(Some(Tools { list: tools.to_vec(), format }))
}

/// The grammar that the answer must fit; `None` where it is free. At most one member may ask for one; beside tools that is
/// `response_format`, for answers without a call.
pub(super) fn asked(
    both: &TextMembers,
    default: JsonForm,
    chat: Option<(&ChatMembers, &Tools)>,
) -> Result<Option<Asked>, Problem> {
    let form = form(both, default);
    let mut found = guided(both, form)?;
    if let Some((chat, tools)) = chat {
        if let Some(other) = found.first() {
            let detail = format!(
                "{} cannot stand beside tools, whose calls have a grammar of their own; use response_format for answers without a call, or tool_choice none",
                other.pointer.trim_start_matches('/')
            );
            return Err(Problem::invalid(other.pointer.clone(), detail));
        }
        return calls(both, form, chat, tools).map(Some);
    }
    if let Some(format) = &both.response_format {
        let source = sources::of_response_format(format, form).map_err(|error| {
            Problem::invalid(format!("/response_format{}", error.pointer()), error.to_string())
        })?;
        let pointer = "/response_format".to_owned();
        found.extend(source.map(|source| Asked { source, pointer }));
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => {
            let names: Vec<&str> =
                found.iter().map(|of| of.pointer.trim_start_matches('/')).collect();
            let detail = format!(
                "the answer can fit one grammar, and there are {}; leave one",
                names.join(", ")
            );
            Err(Problem::invalid(found[1].pointer.clone(), detail))
        }
    }
}

/// The grammar of calls, and of answers without one.
fn calls(
    both: &TextMembers,
    form: JsonForm,
    chat: &ChatMembers,
    tools: &Tools,
) -> Result<Asked, Problem> {
    let mut request = Map::new();
    request.insert("tools".to_owned(), Value::Array(tools.list.clone()));
    let parallel = chat.parallel_tool_calls.map(Value::Bool);
    for (name, value) in [
        ("tool_choice", chat.tool_choice.clone()),
        ("parallel_tool_calls", parallel),
        ("response_format", both.response_format.clone()),
    ] {
        request.extend(value.map(|value| (name.to_owned(), value)));
    }
    let source = sources::of_tools(&Value::Object(request), &tools.format, form);
    let source =
        source.map_err(|error| Problem::invalid(error.pointer.clone(), error.to_string()))?;
    Ok(Asked { source, pointer: "/tools".to_owned() })
}

/// The form of JSON that a request asks for.
fn form(both: &TextMembers, default: JsonForm) -> JsonForm {
    let given = both.json_form.unwrap_or_default();
    JsonForm {
        closed_objects: given.closed_objects.unwrap_or(default.closed_objects),
        in_order: given.order.map_or(default.in_order, |order| order == MemberOrder::Schema),
        whitespace: match given.whitespace {
            None => default.whitespace,
            Some(JsonWhitespace::Bounded) => Whitespace::Bounded,
            Some(JsonWhitespace::Flexible) => Whitespace::Flexible,
            Some(JsonWhitespace::Compact) => Whitespace::Compact,
            Some(JsonWhitespace::Spaced) => Whitespace::Spaced,
        },
    }
}

/// vLLM's members.
fn guided(both: &TextMembers, form: JsonForm) -> Result<Vec<Asked>, Problem> {
    let TextMembers { guided_json, guided_regex, guided_choice, guided_grammar, .. } = both;
    let mut found = Vec::new();
    let mut add = |pointer: &str, source| found.push(Asked { source, pointer: pointer.to_owned() });
    if let Some(schema) = guided_json {
        add("/guided_json", form.json_schema(document("/guided_json", schema)?));
    }
    if let Some(text) = guided_regex {
        add("/guided_regex", regex(text.clone()));
    }
    if let Some(choices) = guided_choice {
        add("/guided_choice", choice("/guided_choice", choices)?);
    }
    if let Some(text) = guided_grammar {
        add("/guided_grammar", written(text.clone()));
    }
    let Some(outputs) = &both.structured_outputs else { return Ok(found) };
    let StructuredOutputs { json, regex: expression, choice: choices, grammar, .. } = outputs;
    let form = JsonForm {
        closed_objects: form.closed_objects || outputs.disable_additional_properties == Some(true),
        whitespace: match outputs.disable_any_whitespace {
            Some(true) => Whitespace::Compact,
            _ => form.whitespace,
        },
        ..form
    };
    if outputs.whitespace_pattern.is_some() {
        return Err(Problem::invalid(
            "/structured_outputs/whitespace_pattern",
            "whitespace by a pattern is not computed here; leave it out, and ask for a form of JSON by json_form: \
             {\"whitespace\": \"bounded\"}, or flexible, compact, spaced",
        ));
    }
    let before = found.len();
    let mut add = |name: &str, source| {
        found.push(Asked { source, pointer: format!("/structured_outputs/{name}") });
    };
    if outputs.resources.is_some() && json.is_none() {
        return Err(Problem::invalid(
            "/structured_outputs/resources",
            "resources are schemas that the one in json refers to, and there is no json; leave them out",
        ));
    }
    if let Some(schema) = json {
        let given = outputs.resources.iter().flatten();
        let resources = given.map(|(uri, schema)| (uri.clone(), schema.get().to_owned())).collect();
        let schema = document("/structured_outputs/json", schema)?;
        add("json", form.json_schema_among(schema, resources));
    }
    if let Some(text) = expression {
        add("regex", regex(text.clone()));
    }
    if let Some(choices) = choices {
        add("choice", choice("/structured_outputs/choice", choices)?);
    }
    if let Some(text) = grammar {
        add("grammar", written(text.clone()));
    }
    if outputs.json_object == Some(true) {
        add("json_object", form.json_schema(r#"{"type":"object"}"#));
    }
    if let Some(tag) = &outputs.structural_tag {
        let tag = document("/structured_outputs/structural_tag", tag)?;
        add("structural_tag", form.structural_tag(tag));
    }
    if found.len() == before {
        return Err(Problem::invalid(
            "/structured_outputs",
            "it asks for nothing; give one of json, regex, choice, grammar, json_object, structural_tag",
        ));
    }
    Ok(found)
}

/// A schema or tag, or one in a JSON string, as clients send both. Of two members of one name one would be lost.
fn document(pointer: &str, value: &RawValue) -> Result<String, Problem> {
    let text = value.get();
    let refused = |error: serde_json::Error| Problem::invalid(pointer, error.to_string());
    let text = match text.starts_with('"') {
        true => serde_json::from_str(text).map_err(refused)?,
        false => text.to_owned(),
    };
    match parse_unique(&text) {
        Err(error) if error.is_data() => Err(refused(error)),
        // What is no JSON, or nests too deep, is told by whoever reads it.
        _ => Ok(text),
    }
}

/// One of several texts, as an expression.
fn choice(pointer: &str, choices: &[String]) -> Result<GrammarSource, Problem> {
    if choices.is_empty() {
        return Err(Problem::invalid(pointer, "there are no choices; give one text at least"));
    }
    let escaped = |text: &String| -> String {
        let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric();
        let one = |c: char| match is_plain(c) {
            true => c.to_string(),
            // A code that no dialect reads otherwise.
            false => format!("\\x{:02X}", u32::from(c)),
        };
        text.chars().map(one).collect()
    };
    Ok(regex(choices.iter().map(escaped).collect::<Vec<_>>().join("|")))
}

/// A grammar in Lark's language, or in EBNF if it defines a rule with `::=`.
fn written(text: String) -> GrammarSource {
    let defines = |line: &str| {
        let Some((name, _)) = line.split_once("::=") else { return false };
        let name = name.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_name)
    };
    match text.lines().any(defines) {
        true => GrammarSource::Gbnf { text, options: GbnfOptions::default() },
        false => GrammarSource::Lark { text, options: LarkOptions::default() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn both(members: Value) -> TextMembers {
        serde_json::from_value(members).unwrap()
    }

    fn text(members: Value) -> String {
        asked(&both(members), JsonForm::default(), None)
            .unwrap()
            .map_or(String::new(), |asked| asked.source.text().to_owned())
    }

    #[test]
    fn every_spelling_is_its_grammar() {
        for (members, want) in [
            (json!({}), ""),
            (json!({"response_format": {"type": "text"}}), ""),
            (json!({"response_format": {"type": "json_object"}}), r#"{"type":"object"}"#),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1]}}}}),
                r#"{"enum":[1]}"#,
            ),
            (json!({"guided_json": {"enum": [1]}}), r#"{"enum":[1]}"#),
            (json!({"guided_json": "{\"enum\": [1]}"}), r#"{"enum": [1]}"#),
            (json!({"guided_regex": "a+"}), "a+"),
            (json!({"guided_choice": ["a b", "c|d", "é"]}), r"a\x20b|c\x7Cd|é"),
            (json!({"structured_outputs": {"json_object": true}}), r#"{"type":"object"}"#),
            (json!({"structured_outputs": {"choice": ["a"]}}), "a"),
            (
                json!({"structured_outputs": {"structural_tag": {"structures": [], "triggers": [], "x": null}}}),
                r#"{"structures":[],"triggers":[],"x":null}"#,
            ),
        ] {
            assert_eq!(text(members.clone()), want, "{members}");
        }
        let of = |text: &str| {
            asked(&both(json!({"guided_grammar": text})), JsonForm::default(), None)
                .unwrap()
                .unwrap()
                .source
        };
        assert!(matches!(of("start: \"a\""), GrammarSource::Lark { .. }));
        assert!(matches!(of("root ::= \"a\""), GrammarSource::Gbnf { .. }));
        assert!(matches!(of("start: \"::=\""), GrammarSource::Lark { .. }));
    }

    #[test]
    fn choices_match_themselves_alone() {
        use palmette_grammar::frontends::regex::{RegexOptions, parse};
        let all: String = (1..128_u8).map(char::from).collect();
        let source = choice("", &[all, "ß\u{1F600}".to_owned()]).unwrap();
        parse(source.text(), &RegexOptions::default()).unwrap();
    }

    #[test]
    fn two_grammars_and_none_are_refused_by_name() {
        for (members, pointer) in [
            (json!({"guided_json": {}, "guided_regex": "a"}), "/guided_regex"),
            (
                json!({"guided_json": {}, "response_format": {"type": "json_object"}}),
                "/response_format",
            ),
            (
                json!({"structured_outputs": {"regex": "a", "choice": ["b"]}}),
                "/structured_outputs/choice",
            ),
            (json!({"structured_outputs": {}}), "/structured_outputs"),
            (json!({"guided_choice": []}), "/guided_choice"),
            (json!({"response_format": {"type": "jsno"}}), "/response_format/type"),
            (
                json!({"response_format": {"type": "json_object", "json_schema": {}}}),
                "/response_format/json_schema",
            ),
            (
                json!({"structured_outputs": {"regex": "a", "resources": {"u": true}}}),
                "/structured_outputs/resources",
            ),
        ] {
            let problem = asked(&both(members.clone()), JsonForm::default(), None).unwrap_err();
            assert_eq!(problem.errors[0].pointer, pointer, "{members}: {}", problem.detail);
        }
    }

    #[test]
    fn tools_have_the_grammar_of_calls() {
        let format = ToolFormat::named("hermes").copied();
        let form = JsonForm::default();
        let tool = json!({"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}});
        let chat = |members: Value| -> ChatMembers {
            let mut all = json!({"messages": [], "tools": [tool]});
            all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let auto = chat(json!({}));
        let tools = tools_of(&auto, format, "m").unwrap().unwrap();
        let found = asked(&both(json!({})), form, Some((&auto, &tools))).unwrap().unwrap();
        assert!(matches!(found.source, GrammarSource::Tools { .. }), "{:?}", found.source);
        let named = chat(json!({"tool_choice": {"type": "function", "function": {"name": "x"}}}));
        assert!(asked(&both(json!({})), form, Some((&named, &tools))).is_err());
        let guided = both(json!({"guided_regex": "a"}));
        let problem = asked(&guided, form, Some((&auto, &tools))).unwrap_err();
        assert_eq!(problem.errors[0].pointer, "/guided_regex");
        assert!(tools_of(&chat(json!({"tool_choice": "none"})), format, "m").unwrap().is_none());
        let unknown = tools_of(&auto, None, "m").unwrap_err();
        assert!(unknown.detail.contains("--tool-format"), "{}", unknown.detail);
        let without = chat(json!({"tools": [], "tool_choice": "required"}));
        assert_eq!(tools_of(&without, format, "m").unwrap_err().errors[0].pointer, "/tool_choice");
    }
}

//! Grammars that a request asks for in OpenAI's words: `response_format`, `tools`, `tool_choice`.

use std::collections::BTreeMap;

use palmette_grammar::GrammarSource;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, PropertyOrder, Whitespace};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::{Flags, RegexOptions};
use palmette_grammar::frontends::structural_tag::{
    StructuralTagError, StructuralTagOptions, ToolFormat, check_tools,
};
use serde_json::{Value, json};

/// Form of the JSON that answers and calls are written in, as who asks a model means it.
///
/// The standard's reading of a schema is another: members that are not declared are free, and all
/// come in any order. A model that may invent members mostly does not come to an end, and one that
/// may answer before it has reasoned does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonForm {
    /// Objects with `properties` have no other members, unless their schema says what others may
    /// be.
    pub closed_objects: bool,
    /// Members come in the order in which the schema declares them.
    pub in_order: bool,
    /// Whitespace between the tokens of the JSON text.
    pub whitespace: Whitespace,
}

impl Default for JsonForm {
    fn default() -> Self {
        Self { closed_objects: true, in_order: true, whitespace: Whitespace::Bounded }
    }
}

impl JsonForm {
    /// The options of a schema's grammar.
    pub fn options(self) -> JsonSchemaOptions {
        let free = JsonSchemaOptions::default();
        JsonSchemaOptions {
            closed_objects: self.closed_objects,
            order: if self.in_order { PropertyOrder::Schema } else { free.order },
            whitespace: self.whitespace,
            ..free
        }
    }

    /// The grammar of a JSON Schema.
    pub fn json_schema(self, text: impl Into<String>) -> GrammarSource {
        self.json_schema_among(text, BTreeMap::new())
    }

    /// The grammar of a JSON Schema that refers to these, by their URIs.
    pub fn json_schema_among(
        self,
        text: impl Into<String>,
        resources: BTreeMap<String, String>,
    ) -> GrammarSource {
        let options = JsonSchemaOptions { resources, ..self.options() };
        GrammarSource::JsonSchema { text: text.into(), options }
    }

    /// The grammar of a structural tag.
    pub fn structural_tag(self, text: impl Into<String>) -> GrammarSource {
        let options = StructuralTagOptions { json_schema: self.options() };
        GrammarSource::StructuralTag { text: text.into(), options }
    }
}

/// The grammar of a regular expression of a request, whose `\d` is 0 to 9: a reader of numbers
/// takes no Tamil digits.
pub fn regex(text: impl Into<String>) -> GrammarSource {
    let flags = Flags { ascii_digits: true, ..Flags::default() };
    GrammarSource::Regex {
        text: text.into(),
        options: RegexOptions { flags, ..RegexOptions::default() },
    }
}

/// A response format that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("response_format{at}: {rule}")]
pub struct ResponseFormatError {
    /// A JSON pointer to the part, the whole where it is empty.
    at: String,
    rule: String,
}

impl ResponseFormatError {
    /// The part of the format, as a JSON pointer; the whole where it is empty.
    pub fn pointer(&self) -> &str {
        &self.at
    }
}

/// Members of a schema's definition. `name`, `description` and `strict` change nothing: every
/// answer fits the schema.
const OF_SCHEMA: [&str; 5] = ["description", "name", "resources", "schema", "strict"];

/// Members of each type of a format besides `type`; a structural tag has its own reader.
const MEMBERS: [(&str, &[&str]); 6] = [
    ("gbnf", &["grammar"]),
    ("json_object", &["schema"]),
    ("json_schema", &["description", "json_schema", "name", "resources", "schema", "strict"]),
    ("lark", &["grammar"]),
    ("regex", &["pattern"]),
    ("text", &[]),
];

/// Refuses members that are not read: what they ask for would not be done. Those that are null ask
/// for nothing.
fn check_members(of: &Value, at: &str, known: &[&str]) -> Result<(), ResponseFormatError> {
    let mut members = of.as_object().into_iter().flatten();
    let is_known = |name: &str| known.contains(&name) || (at.is_empty() && name == "type");
    let unknown = members.find(|(name, value)| !value.is_null() && !is_known(name));
    match unknown {
        None => Ok(()),
        Some((name, _)) => {
            let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let rule = format!("there is no member {name:?} here; there are {there}");
            let name = name.replace('~', "~0").replace('/', "~1");
            Err(ResponseFormatError { at: format!("{at}/{name}"), rule })
        }
    }
}

/// The grammar of a `response_format`; `None` where it is `text`, or null.
///
/// Read are `{"type": "json_object"}`, which may have a `schema`, `{"type": "json_schema",
/// "json_schema": {"schema": …}}`, whose definition may have `resources`, the schemas that it
/// refers to by URI, a structural tag, and of grammars in other languages `{"type": "regex",
/// "pattern": …}` and `{"type": "lark" | "gbnf", "grammar": …}`.
///
/// # Errors
/// When it is none of these, or has a member that is not read; the schema or grammar itself is read
/// when it is compiled.
pub fn from_response_format(
    format: &Value,
    form: JsonForm,
) -> Result<Option<GrammarSource>, ResponseFormatError> {
    if format.is_null() {
        return Ok(None);
    }
    let refused = |at: &str, rule: String| ResponseFormatError { at: at.to_owned(), rule };
    let text = |key: &str| {
        let text = format[key].as_str().map(str::to_owned);
        text.ok_or_else(|| refused(&format!("/{key}"), format!("{key:?} is missing, or no text")))
    };
    let kind = format["type"].as_str().unwrap_or_default();
    if let Some((_, known)) = MEMBERS.iter().find(|(name, _)| *name == kind) {
        check_members(format, "", known)?;
    }
    let is_schema = |value: &Value| value.is_object() || value.is_boolean();
    Ok(Some(match kind {
        "text" => return Ok(None),
        "json_object" => match &format["schema"] {
            Value::Null => form.json_schema(r#"{"type":"object"}"#),
            schema if is_schema(schema) => form.json_schema(schema.to_string()),
            other => return Err(refused("/schema", format!("it is no JSON Schema: {other}"))),
        },
        "json_schema" => {
            let inner = &format["json_schema"];
            let (definition, at) =
                if inner.is_null() { (format, "") } else { (inner, "/json_schema") };
            if !at.is_empty() {
                check_members(definition, at, &OF_SCHEMA)?;
            }
            // The schema may stand beside the definition, too.
            let schema = [&definition["schema"], &format["schema"]];
            let schema = schema.into_iter().find(|schema| is_schema(schema)).ok_or_else(|| {
                refused("/json_schema/schema", "a JSON Schema is missing here".to_owned())
            })?;
            let resources = match &definition["resources"] {
                Value::Null => BTreeMap::new(),
                Value::Object(given) => {
                    given.iter().map(|(uri, schema)| (uri.clone(), schema.to_string())).collect()
                }
                _ => {
                    let rule = "it is an object of schemas by their URIs".to_owned();
                    return Err(refused(&format!("{at}/resources"), rule));
                }
            };
            form.json_schema_among(schema.to_string(), resources)
        }
        "structural_tag" => form.structural_tag(format.to_string()),
        "regex" => regex(text("pattern")?),
        "lark" => GrammarSource::Lark { text: text("grammar")?, options: LarkOptions::default() },
        "gbnf" => GrammarSource::Gbnf { text: text("grammar")?, options: GbnfOptions::default() },
        _ => {
            let rule = "the \"type\" is text, json_object, json_schema, structural_tag, regex, lark or gbnf";
            return Err(refused("/type", format!("{rule}, not {}", format["type"])));
        }
    }))
}

/// The grammar of answers to a request with `tools`, and perhaps `tool_choice`,
/// `parallel_tool_calls` and `response_format`; or of the tools alone.
///
/// # Errors
/// When the request is none, or chooses a tool that is not there.
pub fn from_tools(
    request: &Value,
    format: &ToolFormat,
    form: JsonForm,
) -> Result<GrammarSource, StructuralTagError> {
    let mut request = request.clone();
    if form.closed_objects {
        close_tools(&mut request);
    }
    let text = request.to_string();
    check_tools(&text, format)?;
    let options = StructuralTagOptions { json_schema: form.options() };
    Ok(GrammarSource::Tools { text, format: *format, options })
}

/// Declares that tools whose schema of arguments says nothing have none, as those without a schema:
/// a model would invent some.
fn close_tools(request: &mut Value) {
    let tools = match request {
        Value::Object(object) if object.contains_key("tools") => &mut request["tools"],
        other => other,
    };
    let tools = match tools {
        Value::Array(tools) => tools.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for tool in tools {
        let inner = if tool["function"].is_object() { &mut tool["function"] } else { tool };
        for name in ["parameters", "input_schema", "inputSchema"] {
            let Some(Value::Object(schema)) = inner.get_mut(name) else { continue };
            let says_nothing = |(keyword, value): (&String, &Value)| match keyword.as_str() {
                "type" => value == "object",
                keyword => ["$schema", "description", "title"].contains(&keyword),
            };
            if schema.iter().all(says_nothing) {
                schema.insert("type".to_owned(), json!("object"));
                schema.insert("properties".to_owned(), json!({}));
            }
        }
    }
}

/// Adds schemas that those of a grammar may refer to, by their URIs; its own go before them.
pub(crate) fn with_resources(
    mut source: GrammarSource,
    resources: &BTreeMap<String, String>,
) -> GrammarSource {
    let options = match &mut source {
        GrammarSource::JsonSchema { options, .. } => options,
        GrammarSource::StructuralTag { options, .. } | GrammarSource::Tools { options, .. } => {
            &mut options.json_schema
        }
        GrammarSource::Regex { .. } | GrammarSource::Lark { .. } | GrammarSource::Gbnf { .. } => {
            return source;
        }
    };
    for (uri, schema) in resources {
        options.resources.entry(uri.clone()).or_insert_with(|| schema.clone());
    }
    source
}

/// The `tool_choice` of a word: `auto`, `none`, `required`, or the name of a tool.
pub fn tool_choice(choice: &str) -> Value {
    match choice {
        "auto" | "none" | "required" | "any" => json!(choice),
        name => json!({"type": "function", "function": {"name": name}}),
    }
}

/// The grammar of a JSON Schema in the default [form](JsonForm).
pub fn json_schema(schema: Value) -> GrammarSource {
    JsonForm::default().json_schema(schema.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_formats_are_read_and_refused_by_name() {
        let read = |format: Value| from_response_format(&format, JsonForm::default());
        assert_eq!(read(json!({"type": "text"})), Ok(None));
        assert_eq!(read(Value::Null), Ok(None));
        let object = json_schema(json!({"type": "object"}));
        assert_eq!(read(json!({"type": "json_object"})), Ok(Some(object)));
        let schema = json!({"enum": ["a"]});
        for wrapped in [
            json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}),
            json!({"type": "json_schema", "schema": schema}),
        ] {
            assert_eq!(read(wrapped), Ok(Some(json_schema(schema.clone()))));
        }
        // As Together's, Fireworks' and llama.cpp's interfaces have it.
        let with_schema = json!({"type": "json_object", "schema": schema, "strict": null});
        assert_eq!(read(with_schema), Ok(Some(json_schema(schema.clone()))));
        let resources = json!({"urn:a": {"const": 1}, "urn:b": true});
        let definition = json!({"name": "x", "schema": schema, "resources": resources});
        for wrapped in [
            json!({"type": "json_schema", "json_schema": definition}),
            json!({"type": "json_schema", "schema": schema, "resources": resources}),
        ] {
            match read(wrapped).unwrap().unwrap() {
                GrammarSource::JsonSchema { options, .. } => {
                    assert_eq!(options.resources["urn:a"], r#"{"const":1}"#);
                    assert_eq!(options.resources.len(), 2);
                }
                other => panic!("{other:?}"),
            }
        }
        let regex = read(json!({"type": "regex", "pattern": "a+"})).unwrap().unwrap();
        assert_eq!(regex.text(), "a+");
        for (bad, words) in [
            (json!({"type": "jsno"}), "response_format/type: the \"type\" is text, json_object"),
            (json!({}), "not null"),
            (json!("text"), "not null"),
            (json!({"type": "json_schema"}), "/json_schema/schema: a JSON Schema is missing"),
            (json!({"type": "lark"}), "/grammar: \"grammar\" is missing"),
            (json!({"type": "text", "schema": {}}), "/schema: there is no member \"schema\" here"),
            (json!({"type": "json_object", "scheme": {}}), "/scheme: there is no member"),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {}, "a/b": 1}}),
                "/json_schema/a~1b: there is no member \"a/b\" here; there are desc",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {}, "resources": [1]}}),
                "/json_schema/resources: it is an object of schemas",
            ),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn tools_that_declare_no_arguments_have_none() {
        let hermes = ToolFormat::named("hermes").unwrap();
        let text = |tools: &Value, form| from_tools(tools, hermes, form).unwrap().text().to_owned();
        let none = json!({"type": "object", "properties": {}});
        for empty in [json!({}), json!({"type": "object", "title": "f", "description": "x"})] {
            let function =
                json!({"type": "function", "function": {"name": "f", "parameters": empty}});
            let of_mcp = json!({"name": "f", "inputSchema": empty});
            for tools in [json!({"tools": [function]}), json!([function]), function, of_mcp] {
                let closed: Value =
                    serde_json::from_str(&text(&tools, JsonForm::default())).unwrap();
                let tool = closed.pointer("/tools/0").or_else(|| closed.get(0)).unwrap_or(&closed);
                let inner = if tool["function"].is_object() { &tool["function"] } else { tool };
                let schema = inner.get("parameters").or_else(|| inner.get("inputSchema")).unwrap();
                assert_eq!(
                    (&schema["type"], &schema["properties"]),
                    (&none["type"], &none["properties"])
                );
                let open = JsonForm { closed_objects: false, ..JsonForm::default() };
                assert_eq!(text(&tools, open), tools.to_string());
            }
        }
        let free =
            json!({"name": "f", "input_schema": {"type": "object", "additionalProperties": true}});
        assert_eq!(text(&free, JsonForm::default()), free.to_string());
    }

    #[test]
    fn a_choice_is_a_word_or_a_tool() {
        let tool = json!({"name": "now", "input_schema": {"type": "object"}});
        let hermes = ToolFormat::named("hermes").unwrap();
        let read = |choice: &str| {
            let request = json!({"tools": [tool], "tool_choice": tool_choice(choice)});
            from_tools(&request, hermes, JsonForm::default())
        };
        for choice in ["auto", "required", "now"] {
            let source = read(choice).unwrap();
            assert!(
                matches!(source, GrammarSource::Tools { format, .. } if format.name == "hermes")
            );
        }
        let error = read("later").unwrap_err();
        assert!(error.to_string().contains("\"later\" is not there"), "{error}");
    }
}

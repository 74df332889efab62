//! Grammars that a request asks for in OpenAI's words: `response_format`, `tools`, `tool_choice`.

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
/// The standard's reading of a schema is another: members that are not declared are free, and all come in any order. A model that may
/// invent members mostly does not come to an end, and one that may answer before it has reasoned does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonForm {
    /// Objects with `properties` have no other members, unless their schema says what others may be.
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
        GrammarSource::JsonSchema { text: text.into(), options: self.options() }
    }

    /// The grammar of a structural tag.
    pub fn structural_tag(self, text: impl Into<String>) -> GrammarSource {
        let options = StructuralTagOptions { json_schema: self.options() };
        GrammarSource::StructuralTag { text: text.into(), options }
    }
}

/// The grammar of a regular expression of a request, whose `\d` is 0 to 9: a reader of numbers takes no Tamil digits.
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

/// The grammar of a `response_format`; `None` where it is `text`, or null.
///
/// Read are `{"type": "json_object"}`, `{"type": "json_schema", "json_schema": {"schema": …}}`, a structural tag, and of
/// grammars in other languages `{"type": "regex", "pattern": …}` and `{"type": "lark" | "gbnf", "grammar": …}`.
///
/// # Errors
/// When it is none of these; the schema or grammar itself is read when it is compiled.
pub fn of_response_format(
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
    Ok(Some(match kind {
        "text" => return Ok(None),
        "json_object" => form.json_schema(r#"{"type":"object"}"#),
        "json_schema" => {
            let schema = [&format["json_schema"]["schema"], &format["schema"]];
            let schema =
                schema.into_iter().find(|schema| schema.is_object() || schema.is_boolean());
            let schema = schema.ok_or_else(|| {
                refused("/json_schema/schema", "a JSON Schema is missing here".to_owned())
            })?;
            form.json_schema(schema.to_string())
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

/// The grammar of answers to a request with `tools`, and perhaps `tool_choice`, `parallel_tool_calls` and `response_format`; or of
/// the tools alone.
///
/// # Errors
/// When the request is none, or chooses a tool that is not there.
pub fn of_tools(
    request: &Value,
    format: &ToolFormat,
    form: JsonForm,
) -> Result<GrammarSource, StructuralTagError> {
    let text = request.to_string();
    check_tools(&text, format)?;
    let options = StructuralTagOptions { json_schema: form.options() };
    Ok(GrammarSource::Tools { text, format: *format, options })
}

/// Tools, alone or in a request, as a request with this `tool_choice`: `auto`, `none`, `required`, or the name of a tool.
pub fn with_tool_choice(tools: &Value, choice: &str) -> Value {
    let choice = match choice {
        "auto" | "none" | "required" | "any" => json!(choice),
        name => json!({"type": "function", "function": {"name": name}}),
    };
    let mut request = match tools {
        Value::Object(request) if request.contains_key("tools") => tools.clone(),
        Value::Array(_) => json!({"tools": tools}),
        one => json!({"tools": [one]}),
    };
    request["tool_choice"] = choice;
    request
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
        let read = |format: Value| of_response_format(&format, JsonForm::default());
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
        let regex = read(json!({"type": "regex", "pattern": "a+"})).unwrap().unwrap();
        assert_eq!(regex.text(), "a+");
        for (bad, words) in [
            (json!({"type": "jsno"}), "response_format/type: the \"type\" is text, json_object"),
            (json!({}), "not null"),
            (json!("text"), "not null"),
            (json!({"type": "json_schema"}), "/json_schema/schema: a JSON Schema is missing"),
            (json!({"type": "lark"}), "/grammar: \"grammar\" is missing"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_choice_is_put_beside_tools_however_they_are_given() {
        let tool = json!({"name": "now", "input_schema": {"type": "object"}});
        for given in [tool.clone(), json!([tool]), json!({"tools": [tool], "tool_choice": "none"})]
        {
            let request = with_tool_choice(&given, "required");
            assert_eq!(request, json!({"tools": [tool], "tool_choice": "required"}));
            let hermes = ToolFormat::named("hermes").unwrap();
            let source = of_tools(&request, hermes, JsonForm::default()).unwrap();
            assert!(
                matches!(source, GrammarSource::Tools { format, .. } if format.name == "hermes")
            );
        }
        let named = with_tool_choice(&tool, "later");
        let hermes = ToolFormat::named("hermes").unwrap();
        let error = of_tools(&named, hermes, JsonForm::default()).unwrap_err();
        assert!(error.to_string().contains("\"later\" is not there"), "{error}");
    }
}

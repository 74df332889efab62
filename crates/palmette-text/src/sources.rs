//! Grammars that a request asks for in OpenAI's words: `response_format`, `tools`, `tool_choice`.

use palmette_grammar::GrammarSource;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::JsonSchemaOptions;
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::frontends::structural_tag::{
    StructuralTagError, StructuralTagOptions, ToolFormat, check_tools,
};
use serde_json::{Value, json};

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
pub fn of_response_format(format: &Value) -> Result<Option<GrammarSource>, ResponseFormatError> {
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
        "json_object" => json_schema(json!({"type": "object"})),
        "json_schema" => {
            let schema = [&format["json_schema"]["schema"], &format["schema"]];
            let schema =
                schema.into_iter().find(|schema| schema.is_object() || schema.is_boolean());
            let schema = schema.ok_or_else(|| {
                refused("/json_schema/schema", "a JSON Schema is missing here".to_owned())
            })?;
            json_schema(schema.clone())
        }
        "structural_tag" => structural_tag(format.to_string()),
        "regex" => {
            GrammarSource::Regex { text: text("pattern")?, options: RegexOptions::default() }
        }
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
pub fn of_tools(request: &Value, format: &ToolFormat) -> Result<GrammarSource, StructuralTagError> {
    let text = request.to_string();
    check_tools(&text, format)?;
    Ok(GrammarSource::Tools { text, format: *format, options: StructuralTagOptions::default() })
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

/// The grammar of a JSON Schema.
pub fn json_schema(schema: Value) -> GrammarSource {
    GrammarSource::JsonSchema { text: schema.to_string(), options: JsonSchemaOptions::default() }
}

fn structural_tag(text: String) -> GrammarSource {
    GrammarSource::StructuralTag { text, options: StructuralTagOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_formats_are_read_and_refused_by_name() {
        let read = |format: Value| of_response_format(&format);
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
            let source = of_tools(&request, ToolFormat::named("hermes").unwrap()).unwrap();
            assert!(
                matches!(source, GrammarSource::Tools { format, .. } if format.name == "hermes")
            );
        }
        let named = with_tool_choice(&tool, "later");
        let error = of_tools(&named, ToolFormat::named("hermes").unwrap()).unwrap_err();
        assert!(error.to_string().contains("\"later\" is not there"), "{error}");
    }
}

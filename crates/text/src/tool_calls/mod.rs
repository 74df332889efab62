//! Calls of tools in a model's text: found as it streams, by the format of the model's family.
//!
//! A [`ToolFormat`] of `palmette-grammar` is data, the texts around a call; grammars for tools are
//! made from it, and calls are read by it. Which one a model writes shows in its chat template.

mod json_value;
mod marks;
mod reader;

use palmette_grammar::frontends::structural_tag::{TOOL_FORMATS, ToolFormat};

pub use reader::{Piece, ToolCallReader};

/// The format of a name.
///
/// # Errors
/// The message lists the names.
pub fn tool_format_named(name: &str) -> Result<&'static ToolFormat, String> {
    match ToolFormat::named(name) {
        None => {
            let names = tool_format_names();
            Err(format!("{name:?} is no format of tool calls; there are {names}"))
        }
        // Which of its arguments are texts shows in the schemas of the tools alone.
        Some(format) if format.style.is_some() => Err(format!(
            "{name:?} has grammars, but calls in it are not read from a model's text; there are {}",
            tool_format_names()
        )),
        Some(format) => Ok(format),
    }
}

/// Names of the formats that are read from a model's text.
pub(crate) fn tool_format_names() -> String {
    let read = TOOL_FORMATS.iter().filter(|format| format.style.is_none());
    read.map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// The format in which a model writes calls, by marks in its chat template; `None` where it shows
/// none that is known.
pub fn tool_format_of_template(template: &str) -> Option<&'static ToolFormat> {
    let has = |mark: &str| template.contains(mark);
    let name = match () {
        () if has("<|channel|>") => "harmony",
        () if has("<｜tool▁calls▁begin｜>") => "deepseek",
        () if has("[TOOL_CALLS]") && has("[ARGS]") => "mistral",
        () if has("[TOOL_CALLS]") => "mistral-list",
        // Others write parameters as elements between these marks.
        () if has("<tool_call>") && has("arguments") && !has("<function=") && !has("<arg_key>") => {
            "hermes"
        }
        () if has("<|python_tag|>") || has("\"parameters\": dictionary of argument") => "llama3",
        () => return None,
    };
    ToolFormat::named(name)
}

/// True where a name of a special token stands in any of the texts.
pub(crate) fn names_in(texts: &[String], name: &str) -> bool {
    texts.iter().any(|text| text.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_name_and_by_template() {
        assert_eq!(tool_format_named("hermes").unwrap().name, "hermes");
        let error = tool_format_named("hermse").unwrap_err();
        assert!(
            error.contains("hermes, llama3, mistral, mistral-list, deepseek, harmony"),
            "{error}"
        );
        let error = tool_format_named("qwen_xml").unwrap_err();
        assert!(error.contains("are not read from a model's text"), "{error}");
        let of = |template| tool_format_of_template(template).map(|format| format.name);
        assert_eq!(of("{{ '<tool_call>\\n{\"name\": \"' }} \"arguments\": "), Some("hermes"));
        assert_eq!(of("<tool_call>\n<function={{ name }}> arguments"), None);
        assert_eq!(of("{{ '[TOOL_CALLS]' + name + '[ARGS]' }}"), Some("mistral"));
        assert_eq!(of("{{ '[TOOL_CALLS] [' }}"), Some("mistral-list"));
        assert_eq!(of("<|start|>assistant<|channel|>final"), Some("harmony"));
        assert_eq!(of("<｜tool▁calls▁begin｜>"), Some("deepseek"));
        assert_eq!(of("{{- '<|python_tag|>' }}"), Some("llama3"));
        assert_eq!(of("{{ messages }}"), None);
    }
}

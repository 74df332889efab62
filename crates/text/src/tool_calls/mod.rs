//! Calls of tools in a model's text: found as it streams, by the format of the model's family.
//!
//! A [`ToolFormat`](crate::ToolFormat) of `palmette-grammar` is data, the texts around a call;
//! grammars for tools are made from it, and calls are read by it. Which one a model writes shows in
//! its chat template. There is a reader for each way in which arguments are written, and none for a
//! model.

mod json_escapes;
mod json_value;
mod kinds;
mod marks;
mod notated;
mod parameters;
mod progress;
mod reader;
mod written;

pub use kinds::ArgumentKinds;
pub use reader::{Piece, ToolCallReader};
pub use written::written_calls;

/// True where a name of a special token stands in any of the texts.
pub(crate) fn names_in(texts: &[String], name: &str) -> bool {
    texts.iter().any(|text| text.contains(name))
}

#[cfg(test)]
mod tests {
    use palmette_grammar::frontends::structural_tag::{TOOL_FORMATS, ToolFormat};

    #[test]
    fn formats_are_found_by_name_and_by_template() {
        assert_eq!(ToolFormat::of_name("hermes").unwrap().name, "hermes");
        assert_eq!(ToolFormat::of_name("glm-xml").unwrap().name, "glm_xml");
        assert_eq!(ToolFormat::of_name("Hermes").unwrap().name, "hermes");
        let error = ToolFormat::of_name("hermse").unwrap_err().to_string();
        let near =
            "\"hermse\" is no format of tool calls (did you mean \"hermes\"?); there are apertus, ";
        assert!(error.starts_with(near), "{error}");
        let error = ToolFormat::of_name("xyzzy").unwrap_err().to_string();
        assert!(error.starts_with("\"xyzzy\" is no format of tool calls; there are"), "{error}");
        for (template, expected) in SNIPPETS {
            let found = ToolFormat::of_template(template).map(|format| format.name);
            assert_eq!(found, *expected, "{template}");
        }
        for format in TOOL_FORMATS {
            let is_shown = SNIPPETS.iter().any(|(_, expected)| *expected == Some(format.name));
            assert!(is_shown, "{} has no snippet", format.name);
        }
    }

    /// Parts of templates, as the models' own have them, and the formats that they show.
    const SNIPPETS: &[(&str, Option<&str>)] = &[
        ("{{ messages }}", None),
        ("<|start|>assistant<|channel|>final<|message|>", Some("harmony")),
        ("<|message_model|>{{ name }}<|content_invoke_tool_json|>", Some("inkling")),
        ("<｜GCML｜tool_calls>{{ m['tool_calls'] }}", Some("gigachat_xml")),
        ("<|function_call|>{{ m['function_call'] }}", Some("gigachat")),
        ("{{ '[TOOL_CALLS]' + name + '[CALL_ID]' + id + '[ARGS]' }}", Some("mistral_ids")),
        (
            "[func_name1(params_name1=params_value1, params_name2=params_value2...)]",
            Some("pythonic"),
        ),
        ("<|message_start|>assistant<|tool_call_start|>", Some("openpangu")),
        ("[unused11]{{ m['tool_calls'] }}[unused12]", Some("openpangu_1")),
        ("{%- set ns = ']<]minimax[>[' %}{{ ns }}<tool_call>", Some("minimax_m3_xml")),
        ("<cofl:tool_call id=<cofl:value name=", Some("cohere_xml")),
        ("<cofl:tool_call id=<cofl:tool_param name=", Some("cohere_flat_xml")),
        ("<|open|>tools<|sep|>{% for call in m.tool_calls %}", Some("kimi_k3")),
        ("{{'<|tool_calls_section_begin|>'}}{{ message['tool_calls'] }}", Some("kimi_k2")),
        ("{{'<｜tool▁calls▁begin｜>' + type + '\\n```json\\n'}}", Some("deepseek_r1")),
        ("{{'<｜tool▁calls▁begin｜>' + message['tool_calls']}}", Some("deepseek")),
        ("{%- set dsml = '｜DSML｜' %}<{{dsml}}function_calls>", Some("deepseek_xml")),
        (
            "{%- set dsml = '｜DSML｜' %}<{{dsml}}tool_calls>{{ m['tool_calls'] }}",
            Some("deepseek_v4"),
        ),
        ("<｜DSML｜ calls>{{ m['tool_calls'] }}", Some("deepseek_v41")),
        ("<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=", Some("step3")),
        ("{{ '[TOOL_CALLS]' + name + '[ARGS]' }}", Some("mistral")),
        ("{{ '[TOOL_CALLS] [' }}", Some("mistral-list")),
        ("<longcat_tool_call>{{name}}<longcat_arg_key>", Some("longcat_xml")),
        ("<longcat_tool_call>{\"name\": , \"arguments\": ", Some("longcat")),
        ("<seed:tool_call>\n<function={{name}}>\n<parameter=", Some("seed_xml")),
        ("<minimax:tool_call>\n<invoke name=", Some("minimax_xml")),
        ("<dots_function_call>\n<invoke name=", Some("dots_xml")),
        ("<tool_calls><tool_call>{{name}}<tool_sep><arg_key>", Some("hunyuan_xml")),
        ("<tool_call>{{name}}<arg_key>k</arg_key> arguments", Some("glm_xml")),
        (
            "<tool_call>\n<function={{ n }}>\n<parameter=a>\nv\n</parameter> arguments",
            Some("qwen_xml"),
        ),
        (
            "'<tool_call>\\n<function=' n '<parameter=' a '>' v '\\n</parameter>' arguments",
            Some("qwen_xml"),
        ),
        ("<tool_call>\n<function={{ n }}>\n<parameter=a>v</parameter> arguments", Some("mimo_xml")),
        ("<function name=\"{{n}}\"><param name=\"{{p}}\">", Some("minicpm_xml")),
        ("<|tool_call>call:{{name}}<tool_call|>", Some("gemma4")),
        ("<start_function_call>call:{{name}}", Some("function_gemma")),
        ("{{ '<|python_start|>' }}", Some("llama4")),
        ("<|tool_list_start|>{{ tools }}<|tool_list_end|>", Some("lfm2")),
        ("<function_calls>{{ message['function_calls'] }}</function_calls>", Some("olmo3")),
        ("<|START_ACTION|>[<|START_RESPONSE|>", Some("cohere")),
        ("<|START_ACTION|>[<|START_TEXT|>", Some("cohere4")),
        ("[|assistant|]<tool_call>{\"name\": \"arguments\"", Some("exaone")),
        ("<|start_of_role|>assistant<|end_of_role|><|tool_call|>", Some("granite")),
        ("<|tool|>{{ tools }}<|/tool|>", Some("phi4")),
        ("<|tool|>{{ tools }}<|/tool|>functools[", Some("functools")),
        ("<TOOLCALL>[{{ call }}]</TOOLCALL>", Some("nemotron")),
        ("<tool_calls>{{ c }}</tool_calls><end_of_sentence>", Some("minimax_m1")),
        ("<tool_calls>[{{ c }}]</tool_calls>", Some("hunyuan")),
        ("<|tools_prefix|>[{{ c }}]<|tools_suffix|>", Some("apertus")),
        ("<|action_start|><|plugin|>", Some("internlm")),
        ("{{ '<tool_call>\\n{\"name\": \"' }} \"arguments\": ", Some("hermes")),
        ("{{- '<|python_tag|>' }}", Some("llama3")),
        ("with its \"parameters\": dictionary of argument name and its value", Some("llama3")),
    ];
}

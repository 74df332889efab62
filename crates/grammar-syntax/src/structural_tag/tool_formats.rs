//! Formats of tool calls: the texts around a call, as families of models write them.

use crate::json_schema::{PARAMETER_STYLES, ParameterStyle};

/// The texts around the calls of tools, as a family of models writes them. `NAME` stands for the
/// tool's name.
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
    /// Around the reasoning that may come first. Where its beginning is empty the prompt has begun
    /// it, and it comes first always.
    pub reasoning: Option<(&'static str, &'static str)>,
    /// Text before an answer in words, where it is marked.
    pub answer: &'static str,
    /// Marks around the arguments where they are parameters; `None` where they are a JSON object.
    pub style: Option<&'static ParameterStyle>,
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
        style: None,
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
        style: None,
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
        style: None,
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
        style: None,
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
        style: None,
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
        style: None,
    },
    ToolFormat {
        name: "qwen_xml",
        models: "Qwen3-Coder, Qwen3.5",
        trigger: "<tool_call>\n<function=",
        group: None,
        begin: "<tool_call>\n<function=NAME>",
        end: "\n</function>\n</tool_call>",
        separator: "\n",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
        style: Some(&PARAMETER_STYLES[0]),
    },
    ToolFormat {
        name: "minimax_xml",
        models: "MiniMax M2",
        trigger: "<minimax:tool_call>",
        group: Some(("<minimax:tool_call>\n", "</minimax:tool_call>")),
        begin: "<invoke name=\"NAME\">",
        end: "</invoke>\n",
        separator: "",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
        style: Some(&PARAMETER_STYLES[1]),
    },
    ToolFormat {
        name: "deepseek_xml",
        models: "DeepSeek V3.2",
        trigger: "<｜DSML｜function_calls>",
        group: Some(("<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>")),
        begin: "<｜DSML｜invoke name=\"NAME\">",
        end: "</｜DSML｜invoke>\n",
        separator: "",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
        style: Some(&PARAMETER_STYLES[2]),
    },
    ToolFormat {
        name: "glm_xml",
        models: "GLM-4.5 to 4.7",
        trigger: "<tool_call>",
        group: None,
        begin: "<tool_call>NAME",
        end: "</tool_call>",
        separator: "\n",
        reasoning: Some(("<think>", "</think>")),
        answer: "",
        style: Some(&PARAMETER_STYLES[3]),
    },
];

impl ToolFormat {
    /// The format of the answer to a prompt: one that ends in the mark of reasoning has begun it,
    /// as chat templates of some models do.
    #[must_use]
    pub fn after_prompt(self, prompt: &str) -> Self {
        let begun = |&(begin, _): &(&str, &str)| prompt.trim_end().ends_with(begin);
        match self.reasoning.filter(begun) {
            Some((_, end)) => Self { reasoning: Some(("", end)), ..self },
            None => self,
        }
    }

    /// The format of a name, in which `-` and `_` are alike.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        TOOL_FORMATS.iter().find(|format| format.name.replace('_', "-") == name)
    }
}

impl serde::Serialize for ToolFormat {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> serde::Deserialize<'de> for ToolFormat {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("{name:?} is no format of tool calls"));
        Self::named(&name).copied().ok_or_else(unknown)
    }
}

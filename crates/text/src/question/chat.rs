//! Members of a chat: messages, tools, and variables of the chat template.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::OwnMembers;

/// Members of a chat that are not a completion's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChatMembers {
    /// Messages so far, as OpenAI spells them; the model's chat template reads them.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>, example = json!([{"role": "user", "content": "Name a colour."}])))]
    pub messages: Vec<Value>,
    /// Tools that may be called: `{"type": "function", "function": {"name", "description",
    /// "parameters"}}`.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<Object>>))]
    pub tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, or `{"type": "function", "function": {"name": …}}`.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub tool_choice: Option<Value>,
    /// Several calls in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// Tools that say `"strict": false` take any object; without it they are held to their schemas
    /// as all others are.
    pub lax_tools: Option<bool>,
    /// Log-probabilities of the answer's tokens.
    pub logprobs: Option<bool>,
    /// Number of most likely tokens at each place of the answer, with `logprobs`.
    #[cfg_attr(feature = "schema", schema(maximum = 20))]
    pub top_logprobs: Option<usize>,
    /// Effort of reasoning, for chat templates that read it: `none`, `minimal`, `low`, `medium`,
    /// `high` or `xhigh`.
    pub reasoning_effort: Option<String>,
    /// Length of the answer, for chat templates that read it: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// Switch of the reasoning before an answer, for chat templates that read `enable_thinking`.
    pub thinking: Option<Thinking>,
    /// `max_tokens` by its newer name.
    pub max_completion_tokens: Option<usize>,
    /// The template begins the answer's message: `true` unless it is said; `false` with
    /// `continue_final_message`.
    pub add_generation_prompt: Option<bool>,
    /// Continues the last message in the answer.
    pub continue_final_message: Option<bool>,
    /// Variables for the chat template.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub chat_template_kwargs: Option<Map<String, Value>>,
}

impl OwnMembers for ChatMembers {
    const BODY: &'static str = "ChatBody";
    const ABOUT: &'static str = "A chat to be answered.";
}

/// Switch of the reasoning before an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// `enabled` or `disabled`.
    #[serde(rename = "type")]
    pub kind: ThinkingKind,
}

/// State of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkingKind {
    /// Reasoning first.
    Enabled,
    /// No reasoning.
    Disabled,
}

impl ChatMembers {
    /// A chat of these messages, with the defaults of all else.
    pub fn new(messages: Vec<Value>) -> Self {
        Self { messages, ..Self::default() }
    }
}

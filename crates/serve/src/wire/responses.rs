//! Bodies of `/v1/responses`, as OpenAI spells them.

use palmette_text::question::OwnMembers;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Members of a response that are not a chat's.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponseMembers {
    /// A text of the user's, or the items of the conversation so far: messages, calls and their
    /// outputs.
    #[schema(value_type = Value, example = "Name a colour.")]
    pub input: Value,
    /// Words of the system before it.
    pub instructions: Option<String>,
    /// Tools that may be called: `{"type": "function", "name", "description", "parameters"}`, or
    /// `custom` with a `format`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, a tool by name, or `allowed_tools`.
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Several calls in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// Any object for tools that say `"strict": false`, as in a chat.
    pub lax_tools: Option<bool>,
    /// The form of the answer's text.
    pub text: Option<TextForm>,
    /// Limit on the tokens of the answer.
    pub max_output_tokens: Option<usize>,
    /// Number of most likely tokens at each place of the answer.
    #[schema(maximum = 20)]
    pub top_logprobs: Option<usize>,
    /// `message.output_text.logprobs` for log-probabilities; the others that OpenAI knows are parts
    /// of items that no answer here has.
    pub include: Option<Vec<String>>,
    /// Extent of the model's reasoning.
    pub reasoning: Option<Reasoning>,
    /// Told back.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Not looked at: no tool is run here.
    pub max_tool_calls: Option<usize>,
    /// `false`: an answer is made while the client waits.
    pub background: Option<bool>,
    /// `null`: no responses are stored, send the whole conversation.
    pub previous_response_id: Option<String>,
    /// `null`, as `previous_response_id`.
    #[schema(value_type = Option<Value>)]
    pub conversation: Option<Value>,
    /// `null`: no prompts are stored.
    #[schema(value_type = Option<Value>)]
    pub prompt: Option<Value>,
    /// Variables for the chat template.
    #[schema(value_type = Option<Object>)]
    pub chat_template_kwargs: Option<Map<String, Value>>,
}

impl OwnMembers for ResponseMembers {
    const BODY: &'static str = "ResponseBody";
    const ABOUT: &'static str = "A conversation to go on with.";
}

/// The form of an answer's text.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextForm {
    /// `{"type": "text"}`, `{"type": "json_object"}`, or `{"type": "json_schema", "name",
    /// "schema"}`.
    #[schema(value_type = Option<Object>)]
    pub format: Option<Value>,
    /// For chat templates that read it.
    pub verbosity: Option<String>,
}

/// Extent of the model's reasoning.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reasoning {
    /// `none`, `minimal`, `low`, `medium`, `high` or `xhigh`, for chat templates that read it.
    pub effort: Option<String>,
    /// Not looked at: reasoning is told as it is, and its summary is `null`.
    pub summary: Option<String>,
    /// Older name of `summary`.
    pub generate_summary: Option<String>,
}

//! Bodies of `/v1/messages`, as Anthropic spells them.

use palmette_text::question::OwnMembers;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Members of a message that are not a chat's.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct MessageMembers {
    /// The conversation so far: messages of `user` and `assistant`, whose content is a text or a
    /// list of blocks (`text`, `tool_use`, `tool_result`, `thinking`).
    #[schema(value_type = Vec<Object>, example = json!([{"role": "user", "content": "Name a colour."}]))]
    pub messages: Vec<Value>,
    /// Words of the system before them: a text, or blocks of text.
    #[schema(value_type = Option<Value>)]
    pub system: Option<Value>,
    /// Tools that may be called: `{"name", "description", "input_schema"}`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// Any object for tools that say `"strict": false`, as in a chat.
    pub lax_tools: Option<bool>,
    /// Choice among them: `auto`, `any`, `none`, or one by its name.
    pub tool_choice: Option<MessageToolChoice>,
    /// Texts before which the answer ends.
    pub stop_sequences: Option<Vec<String>>,
    /// Reasoning before the answer, for chat templates that read `enable_thinking`.
    pub thinking: Option<MessageThinking>,
    /// The form of the answer, and the effort of its reasoning.
    pub output_config: Option<OutputConfig>,
    /// `output_config.format` by its older name.
    #[schema(value_type = Option<Object>)]
    pub output_format: Option<Value>,
    /// `null`: no tools are run here.
    #[schema(value_type = Option<Value>)]
    pub container: Option<Value>,
    /// `null` or no edits: the conversation is read as it is sent.
    #[schema(value_type = Option<Value>)]
    pub context_management: Option<Value>,
    /// `null` or none: no servers are asked here.
    #[schema(value_type = Option<Vec<Object>>)]
    pub mcp_servers: Option<Vec<Value>>,
    /// Not looked at: nothing of a prompt is charged for.
    #[schema(value_type = Option<Value>)]
    pub cache_control: Option<Value>,
    /// Not looked at.
    pub inference_geo: Option<String>,
}

impl OwnMembers for MessageMembers {
    const BODY: &'static str = "MessageBody";
    const ABOUT: &'static str =
        "A conversation whose next message is asked for, as Anthropic spells it.";
}

/// Choice of the tools that an answer calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageToolChoice {
    /// `auto`, `any`, `none` or `tool`.
    #[serde(rename = "type")]
    pub kind: ToolChoiceKind,
    /// The tool of `tool`.
    pub name: Option<String>,
    /// One call in an answer at most.
    pub disable_parallel_tool_use: Option<bool>,
}

/// Kind of a choice among tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoiceKind {
    /// Words or calls.
    Auto,
    /// A call of some tool.
    Any,
    /// Words alone.
    None,
    /// A call of the tool that is named.
    Tool,
}

/// Reasoning before an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageThinking {
    /// `enabled`, `disabled`, or `adaptive`: as the model's template has it.
    #[serde(rename = "type")]
    pub kind: MessageThinkingKind,
    /// Not a limit here, which the answer's `warnings` say.
    pub budget_tokens: Option<usize>,
    /// Not looked at: reasoning is told as it is.
    pub display: Option<String>,
}

/// State of the reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageThinkingKind {
    /// Reasoning first.
    Enabled,
    /// No reasoning.
    Disabled,
    /// The default of the model's template.
    Adaptive,
}

/// The form of an answer, and the effort of its reasoning.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// `{"type": "json_schema", "schema"}`.
    #[schema(value_type = Option<Object>)]
    pub format: Option<Value>,
    /// `low`, `medium`, `high`, `xhigh` or `max`, for chat templates that read it.
    pub effort: Option<String>,
}

/// Number of the tokens of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessageTokens {
    /// Tokens of the prompt.
    pub input_tokens: usize,
}

/// A problem as Anthropic's clients read it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MessageError {
    /// `error`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "error")]
    pub kind: &'static str,
    /// The problem.
    pub error: MessageErrorBody,
    /// Name of the request, which the log has too.
    pub request_id: String,
}

/// Kind and reason of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MessageErrorBody {
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `not_found_error`,
    /// `request_too_large`, `rate_limit_error`, `overloaded_error`, `timeout_error` or `api_error`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The reason, with the value, the rule and the way out.
    pub message: String,
    /// The member that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

//! Bodies of `/v1/chat/completions` and `/v1/completions`, as OpenAI and vLLM spell them.
//!
//! A member that would change the answer and is not computed here is no member of these types: it is refused by its name, as OpenAI
//! does. Those that change nothing in an answer ([`WITHOUT_MEANING`]) are taken and not looked at.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A chat to be answered.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatBody {
    /// Its own members.
    #[serde(flatten)]
    pub chat: ChatMembers,
    /// Members that completions have, too.
    #[serde(flatten)]
    pub both: TextMembers,
}

/// A text to go on with.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct CompletionBody {
    /// Its own members.
    #[serde(flatten)]
    pub completion: CompletionMembers,
    /// Members that chats have, too.
    #[serde(flatten)]
    pub both: TextMembers,
}

/// Members of a type, by its schema.
pub(crate) fn members<T: PartialSchema>() -> BTreeSet<String> {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.properties.into_keys().collect(),
        _ => BTreeSet::new(),
    }
}

/// Members of a chat that are not a completion's.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatMembers {
    /// Messages so far, as OpenAI spells them; the model's chat template reads them.
    #[schema(value_type = Vec<Object>, example = json!([{"role": "user", "content": "Name a colour."}]))]
    pub messages: Vec<Value>,
    /// Tools that may be called: `{"type": "function", "function": {"name", "description", "parameters"}}`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, or `{"type": "function", "function": {"name": …}}`.
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Several calls in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// Log-probabilities of the answer's tokens.
    pub logprobs: Option<bool>,
    /// Most likely tokens at each place of the answer, with `logprobs`.
    #[schema(maximum = 20)]
    pub top_logprobs: Option<usize>,
    /// How much the model is to reason, for chat templates that read it: `none`, `minimal`, `low`, `medium`, `high` or `xhigh`.
    pub reasoning_effort: Option<String>,
    /// How long the answer is to be, for chat templates that read it: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// Whether the model is to reason first, for chat templates that read `enable_thinking`.
    pub thinking: Option<Thinking>,
    /// As `max_tokens`, by its newer name.
    pub max_completion_tokens: Option<usize>,
    /// Whether the template begins the answer's message; `false` with `continue_final_message`.
    pub add_generation_prompt: Option<bool>,
    /// The answer goes on with the last message.
    pub continue_final_message: Option<bool>,
    /// Variables for the chat template.
    #[schema(value_type = Option<Object>)]
    pub chat_template_kwargs: Option<Map<String, Value>>,
}

/// Whether a model is to reason first.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// `enabled` or `disabled`.
    #[serde(rename = "type")]
    pub kind: ThinkingKind,
}

/// Whether a model is to reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingKind {
    /// It is.
    Enabled,
    /// It is not.
    Disabled,
}

/// Members of a completion that are not a chat's.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct CompletionMembers {
    /// Text to go on with, its tokens, or several of either.
    pub prompt: Prompts,
    /// Tokens that begin a text before the prompt's: `true` unless it is said.
    pub add_special_tokens: Option<bool>,
    /// Answer with the prompt before the text; with `logprobs` its tokens have theirs, too, and with `max_tokens: 0` it is all.
    pub echo: Option<bool>,
    /// Log-probabilities of the text's tokens, and so many of the most likely ones at each place.
    #[schema(maximum = 20)]
    pub logprobs: Option<usize>,
}

/// A question about a mask.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct MaskBody {
    /// Its own members.
    #[serde(flatten)]
    pub mask: MaskMembers,
    /// Members of texts: those that name a form, and the model.
    #[serde(flatten)]
    pub both: TextMembers,
}

/// Members of a question about a mask that are not a text's.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct MaskMembers {
    /// The answer so far.
    pub text: Option<String>,
    /// Tools as a chat has them: the mask is that of an answer which may call them.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// As a chat has it.
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// As a chat has it.
    pub parallel_tool_calls: Option<bool>,
    /// Tokens to show at most, the shortest first.
    #[schema(maximum = 1000, default = 40)]
    pub show: Option<usize>,
}

/// The tokens that may follow a text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MaskAnswer {
    /// Name of the model, whose tokens they are.
    pub model: String,
    /// Tokens that may follow, end tokens included.
    pub allowed: usize,
    /// Tokens of the model.
    pub num_tokens: usize,
    /// True where the text may end here.
    pub may_end: bool,
    /// Text that must follow, whatever the model says.
    pub forced: String,
    /// Some of the tokens that may follow, the shortest first.
    pub tokens: Vec<MaskToken>,
    /// Milliseconds that the mask took.
    pub milliseconds: f64,
    /// Parts of the request that have no effect, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A token that may follow.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MaskToken {
    /// Id of it.
    pub token: u32,
    /// Its text; of a special token its name.
    pub text: String,
}

/// One prompt or several, as text or as tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "prompt must be a text, a list of texts, a list of tokens, or a list of such lists"
)]
pub enum Prompts {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// The tokens of one.
    Tokens(Vec<u32>),
    /// Those of several.
    ManyTokens(Vec<Vec<u32>>),
}

/// Members that both have: sampling, limits, constraints.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct TextMembers {
    /// Name of a text model; may be left out where there is one.
    #[schema(example = "smol")]
    pub model: Option<String>,
    /// Logits are divided by it; 0 for the most likely token always.
    #[schema(minimum = 0, default = 1.0)]
    pub temperature: Option<f32>,
    /// The most likely tokens are kept until their probabilities sum to this.
    pub top_p: Option<f32>,
    /// The most likely tokens that are kept; 0 and -1 for all.
    pub top_k: Option<i64>,
    /// Tokens are kept that are at least this many times as likely as the most likely one.
    pub min_p: Option<f32>,
    /// The random numbers: the same seed, the same answer. Without one they are other ones each time.
    pub seed: Option<i64>,
    /// Answers wanted.
    #[schema(minimum = 1, default = 1)]
    pub n: Option<usize>,
    /// Most tokens of an answer; without it, as many as the model's context holds (a completion: 16).
    pub max_tokens: Option<usize>,
    /// Tokens before which the answer does not end.
    pub min_tokens: Option<usize>,
    /// Texts before which an answer ends, 16 of 1,024 bytes at most.
    pub stop: Option<OneOrMany>,
    /// Tokens by which an answer ends too.
    pub stop_token_ids: Option<Vec<u32>>,
    /// The model's end tokens do not end the answer.
    pub ignore_eos: Option<bool>,
    /// Taken from logits of tokens that the answer has already.
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f32>,
    /// The same once for each time that it has them.
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f32>,
    /// Logits of tokens that prompt or answer have are divided by it.
    pub repetition_penalty: Option<f32>,
    /// Added to logits, by token id.
    #[schema(value_type = Option<Object>)]
    pub logit_bias: Option<BTreeMap<String, f32>>,
    /// Answer in parts as they are made, as server-sent events.
    pub stream: Option<bool>,
    /// Options of a stream.
    pub stream_options: Option<StreamOptions>,
    /// The form of the answer: text, a JSON object, or what a JSON Schema allows. Beside the `schema` may stand `resources`, the schemas that
    /// it refers to by their URIs.
    #[schema(value_type = Option<Object>, example = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}))]
    pub response_format: Option<Value>,
    /// vLLM's constraints: one of `json`, `regex`, `choice`, `grammar`, `json_object`, `structural_tag`.
    pub structured_outputs: Option<StructuredOutputs>,
    /// A JSON Schema that the answer fits: vLLM's older spelling of `structured_outputs.json`.
    #[schema(value_type = Option<Value>)]
    pub guided_json: Option<Box<RawValue>>,
    /// A regular expression that the answer matches.
    pub guided_regex: Option<String>,
    /// Texts of which the answer is one.
    pub guided_choice: Option<Vec<String>>,
    /// A grammar of the answer: Lark, or GBNF where a rule has `::=`.
    pub guided_grammar: Option<String>,
    /// Form of the JSON in answers and calls.
    pub json_form: Option<JsonFormMembers>,
    /// Milliseconds from receipt in which the answer is of use; what is not there by then is not made.
    #[schema(minimum = 1)]
    pub deadline_ms: Option<u64>,
}

/// Form of the JSON in answers and calls; what is not said is as the server has it.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonFormMembers {
    /// Objects with `properties` have no other members, unless their schema says what others may be: `true` unless the server says otherwise.
    pub closed_objects: Option<bool>,
    /// Order of an object's members: `schema` unless the server says otherwise.
    pub order: Option<MemberOrder>,
    /// Whitespace between the tokens of the JSON text: `bounded` unless the server says otherwise.
    pub whitespace: Option<JsonWhitespace>,
}

/// Order of an object's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberOrder {
    /// That of the schema's `properties`.
    Schema,
    /// Any.
    Any,
}

/// Whitespace between the tokens of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JsonWhitespace {
    /// A blank, or a line break with an indent.
    Bounded,
    /// Any.
    Flexible,
    /// None.
    Compact,
    /// A blank after each comma and colon.
    Spaced,
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it must be a text or a list of texts")]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamOptions {
    /// Not looked at: parts are not padded here.
    #[schema(ignore)]
    pub include_obfuscation: bool,
    /// A last part with the number of tokens.
    pub include_usage: bool,
    /// The number of tokens so far in every part.
    pub continuous_usage_stats: bool,
}

/// vLLM's constraints, of which one is given.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StructuredOutputs {
    /// A JSON Schema that the answer fits.
    #[schema(value_type = Option<Value>)]
    pub json: Option<Box<RawValue>>,
    /// A regular expression that the answer matches.
    pub regex: Option<String>,
    /// Texts of which the answer is one.
    pub choice: Option<Vec<String>>,
    /// A grammar of the answer: Lark, or GBNF where a rule has `::=`.
    pub grammar: Option<String>,
    /// Any JSON object.
    pub json_object: Option<bool>,
    /// A structural tag.
    #[schema(value_type = Option<Value>)]
    pub structural_tag: Option<Box<RawValue>>,
    /// Schemas that the one in `json` refers to, by their URIs: nothing is downloaded.
    #[schema(value_type = Option<Object>)]
    pub resources: Option<BTreeMap<String, Box<RawValue>>>,
    /// No whitespace between the tokens of JSON.
    pub disable_any_whitespace: Option<bool>,
    /// Objects with `properties` have no other members, as they have none here anyway.
    pub disable_additional_properties: Option<bool>,
    /// Not looked at: there is one engine of grammars.
    pub disable_fallback: Option<bool>,
    /// `null`: whitespace by a pattern is not computed.
    pub whitespace_pattern: Option<String>,
}

/// A text to be cut into tokens, or a chat whose prompt is.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokenize {
    /// Name of a text model; may be left out where there is one.
    pub model: Option<String>,
    /// The text.
    pub prompt: Option<String>,
    /// Tokens that begin a text before it: `true` unless it is said.
    pub add_special_tokens: Option<bool>,
    /// Messages of a chat.
    #[schema(value_type = Option<Vec<Object>>)]
    pub messages: Option<Vec<Value>>,
    /// Tools of the chat.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// Whether the template begins the answer's message: `true` unless it is said.
    pub add_generation_prompt: Option<bool>,
    /// The answer goes on with the last message.
    pub continue_final_message: Option<bool>,
    /// Variables for the chat template.
    #[schema(value_type = Option<Object>)]
    pub chat_template_kwargs: Option<Map<String, Value>>,
    /// The tokens as texts, too.
    pub return_token_strs: Option<bool>,
}

/// A text in tokens.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Tokenized {
    /// Number of the tokens.
    pub count: usize,
    /// Tokens of a prompt and its answer together, at most.
    pub max_model_len: usize,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// The tokens as texts, where they were asked for.
    pub token_strs: Option<Vec<String>>,
}

/// Tokens whose text is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Detokenize {
    /// Name of a text model; may be left out where there is one.
    pub model: Option<String>,
    /// The tokens.
    pub tokens: Vec<u32>,
}

/// The text of tokens.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Detokenized {
    /// The text.
    pub prompt: String,
}

/// A call whose input is a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CustomCall {
    /// Name of the tool.
    pub name: String,
    /// The text.
    pub input: String,
}

/// Names of members that change nothing in an answer: accounts, storage, routing, caches and guesses that speed other servers up, and which
/// engine compiles a grammar. They are taken and not looked at.
pub(crate) const WITHOUT_MEANING: &[&str] = &[
    "cache_prompt",
    "guided_decoding_backend",
    "metadata",
    "prediction",
    "priority",
    "prompt_cache_key",
    "prompt_cache_retention",
    "request_id",
    "safety_identifier",
    "service_tier",
    "spaces_between_special_tokens",
    "store",
    "user",
];

/// Members that are not computed here, each with the one value that asks for nothing.
pub(crate) const NEUTRAL: &[(&str, &str)] = &[
    ("add_special_tokens", "false"),
    ("allowed_token_ids", "[]"),
    ("audio", "{}"),
    ("bad_words", "[]"),
    ("best_of", "1"),
    ("detokenize", "true"),
    ("documents", "[]"),
    ("echo", "false"),
    ("function_call", r#""none""#),
    ("functions", "[]"),
    ("include_reasoning", "true"),
    ("include_stop_str_in_output", "false"),
    ("length_penalty", "1.0"),
    ("logits_processors", "[]"),
    ("modalities", r#"["text"]"#),
    ("return_token_ids", "false"),
    ("return_tokens_as_token_ids", "false"),
    ("skip_special_tokens", "true"),
    ("suffix", r#""""#),
    ("thinking", r#"{"type":"disabled"}"#),
    ("truncation", r#""disabled""#),
    ("use_beam_search", "false"),
    ("verbosity", r#""medium""#),
];

/// Older names, and the members to use instead.
pub(crate) const INSTEAD: &[(&str, &str)] =
    &[("function_call", "tool_choice"), ("functions", "tools"), ("best_of", "n")];

/// Tokens that a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct TextUsage {
    /// Of the prompt, or of all prompts.
    pub prompt_tokens: usize,
    /// Of all answers.
    pub completion_tokens: usize,
    /// Both.
    pub total_tokens: usize,
}

/// The reason for which an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishName {
    /// It is whole: an end token, a stop text, or the constraint allows nothing more.
    Stop,
    /// The limit of tokens, or of the model's context.
    Length,
    /// It ended with calls.
    ToolCalls,
}

/// Answer to a chat.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    /// The request's id with `chatcmpl-` before it.
    pub id: String,
    /// `chat.completion`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// Name of the model.
    pub model: String,
    /// Answers, by index.
    pub choices: Vec<ChatChoice>,
    /// Tokens.
    pub usage: TextUsage,
    /// Parts of the request that have no effect, such as tools that their provider runs, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One of the answers to a chat.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChoice {
    /// From 0.
    pub index: usize,
    /// The answer.
    pub message: ChatMessage,
    /// Log-probabilities, where they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// The reason for which it ended.
    pub finish_reason: FinishName,
}

/// An answer as a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatMessage {
    /// `assistant`.
    pub role: &'static str,
    /// Its text; `null` where there are calls and no text.
    pub content: Option<String>,
    /// Always `null`: no model here marks refusals.
    pub refusal: Option<String>,
    /// Reasoning before the answer, of models that mark it and requests with tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls of tools, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolCall {
    /// Name of this call.
    pub id: String,
    /// `function` or `custom`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The function and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionCall>,
    /// The tool and its input, of a call of a custom one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomCall>,
}

/// A function and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FunctionCall {
    /// Name of the tool.
    pub name: String,
    /// The arguments as JSON.
    pub arguments: String,
}

/// Log-probabilities of an answer's tokens.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct ChatLogprobs {
    /// A token in its place.
    pub content: Vec<TokenLogprob>,
}

/// A token with its log-probability.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TokenLogprob {
    /// Its text.
    pub token: String,
    /// Its log-probability.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The most likely tokens in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub top_logprobs: Option<Vec<TokenLogprob>>,
}

/// A part of a streamed answer to a chat.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChunk {
    /// The same in all parts.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    /// Seconds since 1970, the same in all parts.
    pub created: u64,
    /// Name of the model.
    pub model: String,
    /// What came to one of the answers; empty in the part with the usage.
    pub choices: Vec<ChunkChoice>,
    /// Tokens, in the last part where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TextUsage>,
    /// Parts of the request that have no effect, in the first part, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What came to one of the answers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChunkChoice {
    /// The answer, from 0.
    pub index: usize,
    /// What came.
    pub delta: Delta,
    /// Log-probabilities of the tokens that came, where they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// The reason for which it ended, in its last part.
    pub finish_reason: Option<FinishName>,
}

/// What came to an answer.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Delta {
    /// `assistant`, in the first part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls that begin or go on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<DeltaCall>,
}

/// A call that begins or goes on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DeltaCall {
    /// The call, from 0.
    pub index: usize,
    /// Name of this call, where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`, where it begins.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The name where it begins, and more of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<DeltaFunction>,
    /// The tool and its whole input, of a call of a custom one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomCall>,
}

/// Part of a function's name and arguments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DeltaFunction {
    /// Name of the tool, where the call begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments.
    pub arguments: String,
}

/// Answer to a completion, or a part of a streamed one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Completion {
    /// The request's id with `cmpl-` before it.
    pub id: String,
    /// `text_completion`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// Name of the model.
    pub model: String,
    /// Answers, by prompt and then by number.
    pub choices: Vec<CompletionChoice>,
    /// Tokens; of a stream in its last part, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TextUsage>,
    /// Parts of the request that have no effect, in the first part of a stream, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One of the answers to a completion, or a part of one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompletionChoice {
    /// From 0.
    pub index: usize,
    /// The text, or more of it.
    pub text: String,
    /// Log-probabilities, where they were asked for.
    pub logprobs: Option<CompletionLogprobs>,
    /// The reason for which it ended; `null` in a part that is not the last.
    pub finish_reason: Option<FinishName>,
}

/// Log-probabilities of a completion's tokens, in lists of one length.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct CompletionLogprobs {
    /// Texts of the tokens.
    pub tokens: Vec<String>,
    /// Log-probability of each; `null` of an echoed prompt's first.
    pub token_logprobs: Vec<Option<f32>>,
    /// The most likely tokens in its place, by text.
    pub top_logprobs: Vec<Option<BTreeMap<String, f32>>>,
    /// Characters of the text before each token.
    pub text_offset: Vec<usize>,
}

/// Error of these two routes, as OpenAI spells it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OpenAiError {
    /// The error.
    pub error: OpenAiErrorBody,
}

/// The value, the rule and the way out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OpenAiErrorBody {
    /// Explanation of this occurrence.
    pub message: String,
    /// Kind of the error: `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error` or `server_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Member of the body that it is about.
    pub param: Option<String>,
    /// Last part of the problem's type, such as `overloaded`.
    pub code: &'static str,
}

//! Bodies of the routes of texts, as OpenAI and vLLM spell them. Questions are
//! [`palmette_text::question`]'s.

use std::collections::BTreeMap;

use palmette_bindings::{BoundSource, Member};
use palmette_text::question::{FinishReport, OwnMembers};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::problem::MemberShortage;

/// Members of a question about a mask that are not a text's.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct MaskMembers {
    /// The answer so far.
    pub text: Option<String>,
    /// The answer so far in the model's tokens, instead of `text`: semantic IDs are tokens and no
    /// text.
    pub tokens: Option<Vec<u32>>,
    /// Tools as a chat has them: the mask is that of an answer which may call them.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// Choice of tools, as in a chat.
    #[schema(value_type = Option<Value>)]
    pub tool_choice: Option<Value>,
    /// Permission of several calls, as in a chat.
    pub parallel_tool_calls: Option<bool>,
    /// Any object for tools that say `"strict": false`, as in a chat.
    pub lax_tools: Option<bool>,
    /// Tokens to show at most, the shortest first.
    #[schema(maximum = 1000, default = 40)]
    pub show: Option<usize>,
}

impl OwnMembers for MaskMembers {
    const BODY: &'static str = "MaskBody";
    const ABOUT: &'static str = "A question about a mask.";
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
    /// Catalogs and documents that the grammar names, as they were bound.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub catalogs: BTreeMap<String, BoundCatalog>,
    /// Members of these in the text so far, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<TextMember>>,
    /// Parts of the request that have no effect, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A token that may follow.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MaskToken {
    /// Id of it.
    pub token: u32,
    /// Text of the token; of a special token its name.
    pub text: String,
}

/// A catalog, values or documents as they were when the answer began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct BoundCatalog {
    /// Generation of a live catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Items that may be written, or quotes of the documents.
    pub eligible: u64,
}

impl BoundCatalog {
    /// Sources by name.
    pub(crate) fn by_name(sources: &[BoundSource]) -> BTreeMap<String, Self> {
        let entry = |of: &BoundSource| {
            (of.name.clone(), Self { generation: of.generation, eligible: of.eligible })
        };
        sources.iter().map(entry).collect()
    }
}

/// An item that a search found beside the one that was written.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct AlternativeItem {
    /// Id of the item.
    pub id: String,
    /// Sum of the log-probabilities of its tokens.
    pub score: f32,
}

/// A member of a catalog, of values or of documents that a text has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TextMember {
    /// Name of the set, as the grammar has it.
    pub set: String,
    /// `id` or an attribute; of documents the unit that is quoted.
    pub field: String,
    /// Id of the item, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The value, which may be spelled otherwise in the text.
    pub value: String,
    /// Begin and end of its spelling, in bytes of the text.
    pub span: [usize; 2],
    /// Number of the document that has the quote first, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<usize>,
    /// Begin and end of the quote, in bytes of that document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<[usize; 2]>,
    /// Sum of the log-probabilities of its tokens, of an item that was searched (`item_search`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// The next best items of that search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<AlternativeItem>>,
}

impl TextMember {
    /// A member of a text that stands after `offset` bytes of another.
    pub(crate) fn after(offset: usize, member: Member) -> Self {
        let Member { set, field, value, id, span, place, ranked, .. } = member;
        let score = ranked.first().map(|own| own.score);
        let others = ranked.into_iter().skip(1);
        let others = others.map(|of| AlternativeItem { id: of.id, score: of.score });
        let alternatives = score.map(|_| others.collect());
        let (document, place) = match place {
            Some(place) => (Some(place.document), Some([place.span.start, place.span.end])),
            None => (None, None),
        };
        Self {
            set,
            field,
            id,
            value,
            span: [offset + span.start, offset + span.end],
            document,
            place,
            score,
            alternatives,
        }
    }
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
    /// True if the template begins the answer's message, as it does unless told otherwise.
    pub add_generation_prompt: Option<bool>,
    /// Continues the last message in the answer.
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

/// Tokens that a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct TextUsage {
    /// Tokens of the prompt, or of all prompts.
    pub prompt_tokens: usize,
    /// Tokens of all answers.
    pub completion_tokens: usize,
    /// Both.
    pub total_tokens: usize,
}

/// The reason for which an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishName {
    /// Complete answer: an end token, a stop text, or the constraint allows nothing more.
    Stop,
    /// The limit of tokens, or of the model's context.
    Length,
    /// Answer that ended with calls.
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
    /// Parts of the request that have no effect, such as tools that their provider runs, where
    /// there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Catalogs and documents that the grammar names, as they were when the answer began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub catalogs: BTreeMap<String, BoundCatalog>,
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
    /// The way in which the rule for its length held, where the answer has a form and may not be
    /// cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReport>,
    /// Score of an answer that a beam search found: the sum of its tokens' log-probabilities, by
    /// their number to the power of `length_penalty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// Members of the catalogs that the grammar names, in their order, where it names some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<TextMember>>,
}

/// An answer as a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatMessage {
    /// `assistant`.
    pub role: &'static str,
    /// Text of the message; `null` where there are calls and no text.
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
    /// Text of the token.
    pub token: String,
    /// Log-probability of the token.
    pub logprob: f32,
    /// Bytes of the token.
    pub bytes: Vec<u8>,
    /// The most likely tokens in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub top_logprobs: Option<Vec<TokenLogprob>>,
}

/// A part of a streamed answer to a chat.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChunk {
    /// Identifier, equal in all parts.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    /// Seconds since 1970, the same in all parts.
    pub created: u64,
    /// Name of the model.
    pub model: String,
    /// New parts of one of the answers; none in the part with the usage.
    pub choices: Vec<ChunkChoice>,
    /// Tokens, in the last part where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TextUsage>,
    /// Parts of the request that have no effect, in the first part, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Catalogs and documents that the grammar names, in the last part of each answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub catalogs: BTreeMap<String, BoundCatalog>,
}

/// New part of one of the answers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChunkChoice {
    /// The answer, from 0.
    pub index: usize,
    /// Contents of the new part.
    pub delta: Delta,
    /// Log-probabilities of the tokens that came, where they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// The reason for which it ended, in its last part.
    pub finish_reason: Option<FinishName>,
    /// The way in which the rule for its length held, in the last part, where the answer has
    /// a form and may not be cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReport>,
    /// Score of an answer that a beam search found: the sum of its tokens' log-probabilities, by
    /// their number to the power of `length_penalty`; in the last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// Members of the catalogs that the grammar names, in the last part, where it names some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<TextMember>>,
}

/// Contents of a new part of an answer.
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

/// Call that begins or continues.
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
    /// Parts of the request that have no effect, in the first part of a stream, where there are
    /// some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Catalogs and documents that the grammar names, of a stream in the last part of each answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub catalogs: BTreeMap<String, BoundCatalog>,
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
    /// The way in which the rule for its length held, where the answer has a form and may not be
    /// cut off; of a stream in the last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReport>,
    /// Score of an answer that a beam search found: the sum of its tokens' log-probabilities, by
    /// their number to the power of `length_penalty`; of a stream in the last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// Members of the catalogs that the grammar names, of a stream in the last part, where it names
    /// some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<TextMember>>,
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
    /// Kind of the error: `invalid_request_error`, `authentication_error`, `permission_error`,
    /// `rate_limit_error` or `server_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Member of the body that it is about.
    pub param: Option<String>,
    /// Last part of the problem's type, such as `overloaded`.
    pub code: &'static str,
    /// Items that may be written, and how many the grammar needs, where no text is left.
    #[serde(flatten)]
    pub shortage: Option<MemberShortage>,
}

//! Members that chats and completions have.

use std::collections::BTreeMap;

use palmette_document::RawJson;
use serde::Deserialize;
use serde_json::Value;

use super::catalogs::CatalogMembers;
use super::finish::FinishMember;
use super::forms::{ItemSearchMembers, JsonFormMembers, StructuredOutputs};

/// Members that chats and completions have: sampling, limits, the form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TextMembers {
    /// Logits are divided by it; 0 for the most likely token always.
    #[cfg_attr(feature = "schema", schema(minimum = 0, default = 1.0))]
    pub temperature: Option<f32>,
    /// The most likely tokens are kept until their probabilities sum to this.
    pub top_p: Option<f32>,
    /// The most likely tokens that are kept; 0 and -1 for all.
    pub top_k: Option<i64>,
    /// Tokens are kept that are at least this many times as likely as the most likely one.
    pub min_p: Option<f32>,
    /// The random numbers: the same seed, the same answer. Without one they are other ones each
    /// time.
    pub seed: Option<i64>,
    /// Answers wanted.
    #[cfg_attr(feature = "schema", schema(minimum = 1, default = 1))]
    pub n: Option<usize>,
    /// Answers are the `n` best texts of a beam search, best first, and none is drawn.
    #[cfg_attr(feature = "schema", schema(default = false))]
    pub use_beam_search: Option<bool>,
    /// Beginnings of texts that a beam search keeps side by side: `n` unless it is said. Without
    /// such a search only 1.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 64))]
    pub best_of: Option<usize>,
    /// Power of a text's tokens by which a beam search divides the sum of their log-probabilities:
    /// 0 for the sum, 1 for the mean.
    #[cfg_attr(feature = "schema", schema(minimum = -10, maximum = 10, default = 1.0))]
    pub length_penalty: Option<f32>,
    /// Limit on the tokens of an answer. Without it, as many as the model's context holds (a
    /// completion: 16).
    pub max_tokens: Option<usize>,
    /// Tokens before which the answer does not end.
    pub min_tokens: Option<usize>,
    /// Rule for an answer that would take more tokens than it may: `promised` where it has a form,
    /// so that it is whole within them; `gentle` for one that also leans to its end before it
    /// has to end; `cut` for one that breaks off.
    pub finish: Option<FinishMember>,
    /// Texts before which an answer ends, 16 of 1,024 bytes at most.
    pub stop: Option<OneOrMany>,
    /// Tokens by which an answer ends too.
    pub stop_token_ids: Option<Vec<u32>>,
    /// The model's end tokens do not end the answer.
    pub ignore_eos: Option<bool>,
    /// Taken from logits of tokens that the answer has already.
    #[cfg_attr(feature = "schema", schema(minimum = -2, maximum = 2))]
    pub presence_penalty: Option<f32>,
    /// Taken from logits of tokens for each time that the answer has them.
    #[cfg_attr(feature = "schema", schema(minimum = -2, maximum = 2))]
    pub frequency_penalty: Option<f32>,
    /// Logits of tokens that prompt or answer have are divided by it.
    pub repetition_penalty: Option<f32>,
    /// Added to logits, by token id.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub logit_bias: Option<BTreeMap<String, f32>>,
    /// The form of the answer: text, a JSON object, or what a JSON Schema allows. Beside the
    /// `schema` may stand `resources`, the schemas that it refers to by their URIs.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, example = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}})))]
    pub response_format: Option<Value>,
    /// vLLM's constraints: one of `json`, `regex`, `choice`, `grammar`, `json_object`,
    /// `structural_tag`.
    pub structured_outputs: Option<StructuredOutputs>,
    /// A JSON Schema that the answer fits: vLLM's older spelling of `structured_outputs.json`.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub guided_json: Option<RawJson>,
    /// A regular expression that the answer matches.
    pub guided_regex: Option<String>,
    /// Texts of which the answer is one.
    pub guided_choice: Option<Vec<String>>,
    /// A grammar of the answer: Lark, or GBNF where a rule has `::=`.
    pub guided_grammar: Option<String>,
    /// Form of the JSON in answers and calls.
    pub json_form: Option<JsonFormMembers>,
    /// Sets for the catalogs and documents that the grammar names, by name.
    #[cfg_attr(feature = "schema", schema(example = json!({"shop": {"catalog": "shop", "filter": {"range": {"stock": {"gt": 0}}}}, "labels": {"values": ["red", "green"]}})))]
    pub catalogs: Option<BTreeMap<String, CatalogMembers>>,
    /// Beam search of the items that the answer must have, where its grammar names the `codes` of a
    /// catalog; without it their tokens are drawn one by one.
    pub item_search: Option<ItemSearchMembers>,
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "it must be a text or a list of texts")]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl TextMembers {
    /// True where a member asks for a form of the answer, tools apart.
    pub fn has_form(&self) -> bool {
        let Self { response_format, structured_outputs, .. } = self;
        let Self { guided_json, guided_regex, guided_choice, guided_grammar, .. } = self;
        response_format.is_some()
            || structured_outputs.is_some()
            || guided_json.is_some()
            || guided_regex.is_some()
            || guided_choice.is_some()
            || guided_grammar.is_some()
    }
}

impl OneOrMany {
    /// The texts.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

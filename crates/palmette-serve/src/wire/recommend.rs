//! Bodies of `/v1/recommend`.

use std::fmt;

use palmette_attributes::{id_text, whole_number};
use palmette_recommend::{Mode, NamedItem};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::filter::{Condition, Rules, TextOrNumber};

/// A question: items that follow a history.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecommendBody {
    /// Alias of a target, or `model:catalog`. May be left out where there is one target.
    #[schema(example = "shop")]
    pub target: Option<String>,
    /// Items, the oldest first.
    #[serde(default)]
    pub history: Vec<HistoryEntry>,
    /// Items to recommend.
    #[serde(default = "ten")]
    #[schema(minimum = 1, default = 10)]
    pub k: usize,
    /// Hypotheses kept at each level; the server's default without it.
    #[schema(minimum = 1)]
    pub beam_width: Option<usize>,
    /// A width for each level in its place.
    pub widths: Option<Vec<usize>>,
    /// Kind of search.
    #[serde(default)]
    pub mode: ModeName,
    /// Items that may be recommended: a filter.
    #[schema(value_type = Option<Condition>, example = json!({"must": [{"range": {"price": {"lt": 60}}}]}))]
    pub filter: Option<Box<RawValue>>,
    /// Rules of the business.
    #[schema(value_type = Option<Rules>, example = json!({"at_most": [{"attribute": "brand", "items": 2}]}))]
    pub rules: Option<Box<RawValue>>,
    /// Ids of items that may not be recommended; unknown ones exclude nothing.
    #[serde(default, deserialize_with = "ids")]
    #[schema(value_type = Vec<ItemId>)]
    pub exclude: Vec<String>,
    /// Items of the history are not recommended again.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub exclude_seen: bool,
    /// The generation to answer by: the newest, or one that is kept, by number or name.
    pub generation: Option<GenerationName>,
    /// A generation to wait for, until the deadline: one that an update was answered with.
    pub min_generation: Option<u64>,
    /// Treatment of items of the history that the catalog never had.
    #[serde(default)]
    pub unknown_items: UnknownItems,
    /// Attributes to answer with; `["*"]` for all.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Milliseconds from receipt in which the answer is of use.
    #[schema(minimum = 1)]
    pub deadline_ms: Option<u64>,
    /// Width that the search may be narrowed to where there is not the time for the whole.
    #[schema(minimum = 1)]
    pub min_beam_width: Option<usize>,
    /// Class of the request.
    pub priority: Option<Priority>,
    /// Answer with the beams of each level too.
    #[serde(default)]
    pub explain: bool,
    /// What the user asks for, where the model's prompts have a place for it.
    pub query: Option<String>,
    /// Fields of the user, where the model's prompts have places for them.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub user: Map<String, Value>,
    /// Tokens that the model may write before the item: its reasoning.
    #[schema(minimum = 1)]
    pub think_tokens: Option<usize>,
    /// Text that the model writes after the first items.
    pub explain_items: Option<ExplainItems>,
}

/// Text after the first items.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainItems {
    /// Items, the best first.
    #[schema(minimum = 1)]
    pub items: usize,
    /// Most tokens for each.
    #[schema(minimum = 1)]
    pub max_tokens: usize,
}

fn ten() -> usize {
    10
}

fn yes() -> bool {
    true
}

/// An item of a history: its id, `{"codes": [0, 5, 16, 2]}`, or these codes as a list.
#[derive(Clone, Debug, ToSchema)]
#[schema(value_type = HistoryForm, example = json!("P0001"))]
pub struct HistoryEntry(pub NamedItem);

/// An item of a history as clients write it.
#[derive(Clone, Debug, ToSchema)]
#[serde(untagged)]
pub enum HistoryForm {
    /// Its id, or codes spelled as text, `<a_3><b_1>`.
    Id(String),
    /// An id of digits.
    Number(i64),
    /// Its codes.
    Codes(Vec<u32>),
    /// Its codes as an object.
    Named {
        /// The codes.
        codes: Vec<u32>,
    },
}

impl<'de> Deserialize<'de> for HistoryEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Value::Object(object) = &mut value {
            match (object.len(), object.get_mut("codes")) {
                (1, Some(codes @ Value::Array(_))) => value = codes.take(),
                _ => {
                    return Err(D::Error::custom(
                        "an item as an object is {\"codes\": [code, …]} and nothing else",
                    ));
                }
            }
        }
        NamedItem::deserialize(value).map(Self).map_err(D::Error::custom)
    }
}

/// An item's id: a text, or a whole number, which stands for its digits.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(value_type = TextOrNumber, example = "P0001")]
pub struct ItemId(pub String);

fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<ItemId>::deserialize(deserializer)?.into_iter().map(|id| id.0).collect())
}

impl<'de> Deserialize<'de> for ItemId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let wrong = || {
            let found = Shown(&value).to_string();
            D::Error::invalid_type(Unexpected::Other(&found), &"an id: a text or a whole number")
        };
        id_text(&value).map(Self).ok_or_else(wrong)
    }
}

/// A value in a message, the end left out where it is long.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 60;
        let text = self.0.to_string();
        match text.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// Kind of search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeName {
    /// `probed` where the narrow search is a small part of the work, else `beam`: the same items and scores.
    #[default]
    Auto,
    /// Exact beam search by the model.
    Beam,
    /// Exact beam search after a narrow search that saves passes.
    Probed,
    /// Beam search by the model's draft head, under the catalog's masks.
    Draft,
}

impl From<Mode> for ModeName {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Beam => Self::Beam,
            Mode::Probed(_) => Self::Probed,
            Mode::Draft(_) => Self::Draft,
        }
    }
}

/// A generation: its number, or the name under which it is kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum GenerationName {
    /// By number.
    Number(u64),
    /// By name.
    Name(String),
}

impl<'de> Deserialize<'de> for GenerationName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = || value.as_u64().or_else(|| whole_number(&value)?.try_into().ok());
        let found = value
            .as_str()
            .map(|name| Self::Name(name.to_owned()))
            .or_else(|| number().map(Self::Number));
        found.ok_or_else(|| {
            let (found, wanted) = (Shown(&value).to_string(), "a generation's number or its name");
            D::Error::invalid_type(Unexpected::Other(&found), &wanted)
        })
    }
}

/// Treatment of unknown items of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownItems {
    /// Left out, and listed in the answer.
    #[default]
    Skip,
    /// An error that names the first.
    Error,
}

/// Class of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Somebody waits: it has a deadline.
    #[default]
    Interactive,
    /// Answered when no interactive request waits, without a deadline unless it names one.
    Bulk,
}

/// Recommended items.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecommendAnswer {
    /// The request's id.
    pub request_id: String,
    /// The pair that answered.
    pub target: TargetName,
    /// The generation of the catalog; null where it is frozen.
    pub generation: Option<u64>,
    /// Best first.
    pub items: Vec<AnsweredItem>,
    /// The reason for fewer than `k`; null where there are as many.
    pub shortfall: Option<Shortfall>,
    /// Reading of the history.
    pub history: HistoryNote,
    /// Hypotheses kept after the last level.
    pub beam_width: usize,
    /// True where the search was narrowed to be in time.
    pub narrowed: bool,
    /// True where the answer was kept from an equal request.
    pub cached: bool,
    /// Kind of search that was made.
    pub mode: ModeName,
    /// Time of each stage.
    pub timings_ms: Timings,
    /// Beams kept after each level but the last, best first, where `explain` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Vec<Beam>>>,
    /// What the model wrote before the item, where `think_tokens` lets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// What it wrote after each of the first items, where `explain_items` asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<String>,
}

/// A pair of model and catalog.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TargetName {
    /// The model.
    pub model: String,
    /// The catalog.
    pub catalog: String,
}

/// A recommended item.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnsweredItem {
    /// Id of it.
    pub id: String,
    /// Sum of the log-probabilities of its codes, and its boost.
    pub score: f32,
    /// Part of the score that rules added.
    #[serde(skip_serializing_if = "is_zero")]
    pub boost: f32,
    /// True for an item that rules include.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Semantic ID of it.
    pub codes: Vec<u32>,
    /// The attributes that were asked for.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

/// The reason for fewer items than asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Shortfall {
    /// The first rule that leaves fewer.
    pub reason: ShortfallReason,
    /// Items that might have been recommended: exact, after filter, validity, exclusions and seen items. Without caps there are
    /// `min(k, eligible)` items.
    pub eligible: u64,
}

/// A rule that leaves fewer items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShortfallReason {
    /// The catalog has no more.
    Catalog,
    /// No more match the filter.
    Filter,
    /// The others were seen or excluded.
    Seen,
    /// Rules hold the others back.
    Rules,
}

/// Reading of a history.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HistoryNote {
    /// Items given.
    pub given: usize,
    /// Items that the model read: the last of those that are known.
    pub used: usize,
    /// Items that the catalog never had, as they were given.
    pub unknown: Vec<String>,
}

/// A hypothesis of the beam.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Beam {
    /// Codes so far; its parent has all but the last.
    pub codes: Vec<u32>,
    /// Sum of their log-probabilities.
    pub score: f32,
}

/// Milliseconds of a request's stages.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct Timings {
    /// From receipt to the first stage.
    pub queue: f64,
    /// Reading the prompt.
    pub prefill: f64,
    /// Decode passes, together.
    pub decode: f64,
    /// Moving beams on and making their masks.
    pub mask: f64,
    /// Choosing the best extensions.
    pub topk: f64,
    /// From receipt to the last stage.
    pub total: f64,
}

impl Timings {
    /// Rounds to microseconds: no clock is better.
    pub(crate) fn round(&mut self) {
        let Self { queue, prefill, decode, mask, topk, total } = self;
        for ms in [queue, prefill, decode, mask, topk, total] {
            *ms = (*ms * 1e3).round() / 1e3;
        }
    }
}

//! Answers of `/v1/recommend`; the question is [`palmette_recommend::RecommendQuestion`].

use palmette_recommend::ModeName;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

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
    /// True where the answer was kept from an equal request, or its items from that of the page
    /// before.
    pub cached: bool,
    /// Kind of search that was made.
    pub mode: ModeName,
    /// True where the items are those of scoring every item that may be recommended.
    pub proven: bool,
    /// Bound on the scores of items that belong into the answer and are not in it; null where it is
    /// proven. Items of at least this score are in their places all the same.
    pub missed_at_most: Option<f32>,
    /// Cursor of the items that come next, where `paged` or `cursor` asks for it; null where none
    /// do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Option<String>>,
    /// Time of each stage.
    pub timings_ms: Timings,
    /// Beams kept after each level but the last, best first, where `trace` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Vec<Beam>>>,
    /// Reasoning of the model before the item, where `think_tokens` lets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// Texts of the model after each of the first items, where `explain_items` asks for them.
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
    /// Items that might have been recommended: exact, after filter, validity, exclusions and seen
    /// items. Without caps there are `min(k, eligible)` items.
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

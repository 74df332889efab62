//! Question document: all that a recommendation may be asked, on every surface.
//!
//! A [`RecommendQuestion`] is what a client, a user of the command or a program writes down; this
//! is the only list of its members. [Checked](RecommendQuestion::check) against a view of the
//! catalog it becomes a [`CheckedQuestion`], in which defaults are filled in, names are found and
//! policies decided, or it gives [all its faults](palmette_document::Faults), each with its place.
//! Workers answer checked questions, and the [`AnswerKey`] of a cache is the checked question,
//! serialised: nothing that an answer depends on can be left out of it.

mod check;
mod checked;
mod envelope;
mod history;
mod limits;
#[cfg(feature = "schema")]
pub mod schema;

use std::num::NonZeroUsize;
use std::str::FromStr;

use palmette_catalog_filter::id_text;
use palmette_document::{DocumentError, Fault, RawJson};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use checked::{AnswerKey, CheckedQuestion};
pub use envelope::{GenerationName, Priority, RecommendBody, RequestEnvelope};
pub use limits::QuestionLimits;

use crate::cursor::Cursor;
use crate::mode::{Mode, Verification};
use crate::named_item::NamedItem;

/// A question: items that follow a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RecommendQuestion {
    /// Items, the oldest first.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<schema::HistoryEntry>))]
    pub history: Vec<NamedItem>,
    /// Items to recommend.
    #[serde(default = "ten")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, default = 10))]
    pub k: usize,
    /// Hypotheses kept at each level; 128, or the server's default, without it.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub beam_width: Option<usize>,
    /// A width for each level in its place.
    pub widths: Option<Vec<usize>>,
    /// Kind of search.
    #[serde(default)]
    pub mode: ModeName,
    /// Width of the search that goes first, where `mode` is `auto` or `probed`; 0 for none.
    pub probe_width: Option<usize>,
    /// With `mode` `proven`: width of the second search; eight times the beam's, within the limit
    /// on widths, without it.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub prove_width: Option<usize>,
    /// With `mode` `draft`: how what the head says is held to the catalog.
    pub verify: Option<Verification>,
    /// Items that may be recommended: a filter.
    #[cfg_attr(feature = "schema", schema(value_type = Option<schema::Condition>, example = json!({"must": [{"range": {"price": {"lt": 60}}}]})))]
    pub filter: Option<RawJson>,
    /// Rules of the business.
    #[cfg_attr(feature = "schema", schema(value_type = Option<schema::Rules>, example = json!({"at_most": [{"attribute": "brand", "items": 2}]})))]
    pub rules: Option<RawJson>,
    /// Ids of items that may not be recommended; unknown ones exclude nothing.
    #[serde(default)]
    pub exclude: Vec<ItemId>,
    /// Items of the history are not recommended again.
    #[serde(default = "yes")]
    #[cfg_attr(feature = "schema", schema(default = true))]
    pub exclude_seen: bool,
    /// Treatment of items of the history that the catalog never had.
    #[serde(default)]
    pub unknown_items: UnknownItems,
    /// Attributes to answer with; `["*"]` for all.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Width that the search may be narrowed to where there is not the time for the whole.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub min_beam_width: Option<usize>,
    /// Answer with the beams of each level too.
    #[serde(default)]
    pub trace: bool,
    /// Words of the user, where the model's prompts have a place for them.
    pub query: Option<String>,
    /// Fields of the user, where the model's prompts have places for them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub user: Map<String, Value>,
    /// Tokens that the model may write before the item: its reasoning.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub think_tokens: Option<usize>,
    /// Temperature at which the reasoning is drawn; 0, the default, takes the most likely token at
    /// each place.
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub think_temperature: Option<f32>,
    /// Share of the probability that the reasoning is drawn from, the most likely tokens first; 1,
    /// the default, for all.
    #[cfg_attr(feature = "schema", schema(minimum = 0, maximum = 1))]
    pub think_top_p: Option<f32>,
    /// Seed of what is drawn.
    pub think_seed: Option<u64>,
    /// Text that the model writes after the first items.
    pub explain_items: Option<ExplainItems>,
    /// Answer with a cursor, for the items that come next; the search looks for them too.
    #[serde(default)]
    pub paged: bool,
    /// Cursor of an answer to this question: the items that come after those. Other members are as
    /// they were; `k`, `fields`, `trace`, `min_beam_width` and `remember` may differ.
    pub cursor: Option<String>,
    /// Keys and values of the prompt, and the answer, may be kept for later requests, and those of
    /// earlier ones used. The answer is the same either way.
    #[serde(default = "yes")]
    #[cfg_attr(feature = "schema", schema(default = true))]
    pub remember: bool,
}

/// Text after the first items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExplainItems {
    /// Items, the best first.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub items: usize,
    /// Limit on the tokens of each text.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub max_tokens: usize,
}

impl ExplainItems {
    /// Limit on the tokens of each text, where a surface lets it be left out.
    pub const DEFAULT_MAX_TOKENS: usize = 100;
}

fn ten() -> usize {
    RecommendQuestion::DEFAULT_K
}

fn yes() -> bool {
    true
}

/// Kind of search, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModeName {
    /// `probed` where the narrow search is a small part of the work, else `beam`: the same items
    /// and scores.
    #[default]
    Auto,
    /// Exact beam search by the model.
    Beam,
    /// Exact beam search after a narrow search that saves passes.
    Probed,
    /// `auto`, and where its answer is not proven, a wider search above the last item found, until
    /// it is proven, as wide as allowed, or out of time. The answer says whether it is proven.
    Proven,
    /// Beam search by the model's draft head, under the catalog's masks.
    Draft,
}

impl ModeName {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Beam => "beam",
            Self::Probed => "probed",
            Self::Proven => "proven",
            Self::Draft => "draft",
        }
    }
}

impl From<Mode> for ModeName {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Beam => Self::Beam,
            Mode::Probed(_) => Self::Probed,
            Mode::Proven(_) => Self::Proven,
            Mode::Draft(_) => Self::Draft,
        }
    }
}

/// Treatment of unknown items of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnknownItems {
    /// Left out, and listed in the answer.
    #[default]
    Skip,
    /// An error that names the first.
    Error,
}

impl FromStr for UnknownItems {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(Self::Skip),
            "error" => Ok(Self::Error),
            other => Err(format!("{other:?} is neither error nor skip")),
        }
    }
}

/// An item's id: a text, or a whole number, which stands for its digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(value_type = schema::TextOrNumber, example = "P0001"))]
pub struct ItemId(pub String);

impl<S: Into<String>> From<S> for ItemId {
    fn from(id: S) -> Self {
        Self(id.into())
    }
}

impl<'de> Deserialize<'de> for ItemId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let wrong = || {
            let found = shown(&value);
            D::Error::invalid_type(Unexpected::Other(&found), &"an id: a text or a whole number")
        };
        id_text(&value).map(Self).ok_or_else(wrong)
    }
}

/// A value in a message, the end left out where it is long.
pub(crate) fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl RecommendQuestion {
    /// Items that are recommended where none says how many.
    pub const DEFAULT_K: usize = 10;

    /// A question about a history, with the defaults of all else.
    pub fn new<I: Into<NamedItem>>(history: impl IntoIterator<Item = I>) -> Self {
        Self {
            history: history.into_iter().map(Into::into).collect(),
            k: Self::DEFAULT_K,
            beam_width: None,
            widths: None,
            mode: ModeName::default(),
            probe_width: None,
            prove_width: None,
            verify: None,
            filter: None,
            rules: None,
            exclude: Vec::new(),
            exclude_seen: true,
            unknown_items: UnknownItems::default(),
            fields: Vec::new(),
            min_beam_width: None,
            trace: false,
            query: None,
            user: Map::new(),
            think_tokens: None,
            think_temperature: None,
            think_top_p: None,
            think_seed: None,
            explain_items: None,
            paged: false,
            cursor: None,
            remember: true,
        }
    }

    /// Reads a question from JSON.
    ///
    /// # Errors
    /// When it is no JSON, a member is unknown or its value is not one that it takes.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        palmette_document::read(text.as_bytes())
    }

    /// Cursor of the question's first page, about a history; `None` where it has no pages. Its
    /// fingerprint is of all members but those that pages may differ in.
    fn first_cursor(&self, history: &[NamedItem]) -> Option<Cursor> {
        if !self.paged && self.cursor.is_none() {
            return None;
        }
        let asked = Self {
            min_beam_width: None,
            remember: true,
            k: 0,
            fields: Vec::new(),
            trace: false,
            paged: true,
            cursor: None,
            ..self.clone()
        };
        // Of types without maps whose keys are no text: it does not fail.
        let json = serde_json::to_vec(&(asked, history)).ok()?;
        let question = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&json));
        Some(Cursor { question, given: Vec::new(), widest: 0 })
    }

    /// Sets the mode and the members that go with it.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode.into();
        self.probe_width = match mode {
            Mode::Probed(width) => Some(width.get()),
            Mode::Auto | Mode::Beam | Mode::Proven(_) | Mode::Draft(_) => None,
        };
        self.prove_width = mode.second_width().map(NonZeroUsize::get);
        self.verify = mode.verification();
    }
}

/// A rule that some members break together.
fn fault(member: &str, detail: impl Into<String>) -> Fault {
    Fault::new(format!("/{member}"), detail)
}

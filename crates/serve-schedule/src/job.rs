//! Jobs: the sizes, classes and times of requests.

use serde::{Deserialize, Serialize};

/// Microseconds since any fixed moment, or a duration in microseconds.
///
/// Sums saturate: `Micros(u64::MAX)` is a time that never comes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Micros(pub u64);

impl Micros {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Milliseconds as microseconds; 0 where the number is negative or none.
    #[must_use]
    pub fn from_ms(ms: f64) -> Self {
        Self((ms * 1e3).round() as u64)
    }

    /// The number in milliseconds.
    #[must_use]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The time `other` later.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The time since `earlier`; 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// Size of a request's work: a search after a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Index of the cost model.
    pub model: u32,
    /// Kind of search; each has correction cells of its own.
    pub mode: u8,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// The first of them, as far as they are known from earlier prompts and not computed.
    #[serde(default)]
    pub known_tokens: u32,
    /// Decode passes after the prompt.
    pub passes: u32,
    /// Rows of all passes.
    pub rows: u32,
    /// Rows of the widest pass.
    pub widest: u32,
    /// Planned memory.
    pub bytes: u64,
}

impl Shape {
    /// Tokens of the prompt that are computed.
    #[must_use]
    pub fn computed_tokens(&self) -> u32 {
        self.prompt_tokens.saturating_sub(self.known_tokens)
    }
}

/// Class of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Somebody waits: promised an end by its deadline, or refused at once.
    #[default]
    Interactive,
    /// Runs when no interactive job waits; nothing is promised.
    Bulk,
}

/// Request as the scheduler sees it.
///
/// Ids are the caller's. A job whose id is that of one still queued or running is ignored: an id
/// has one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Name of the job in events and actions.
    pub id: u64,
    /// Class of service.
    pub class: Class,
    /// Time of arrival.
    pub arrived: Micros,
    /// Last moment at which an answer is of use; [`Micros::NEVER`] where there is none.
    pub deadline: Micros,
    /// The work wanted.
    pub shape: Shape,
    /// Lesser work, taken where the work wanted would be late.
    pub narrower: Option<Shape>,
}

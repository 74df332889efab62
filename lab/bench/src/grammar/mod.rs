//! Measuring grammars: how many compile, whether they take what they should, and how long masks
//! take.
//!
//! A [`GrammarCase`] is a grammar with texts as tokens; [`walk`] compiles it and follows each text,
//! a mask and a commit a step; [`GrammarReport`] sums many up. A [`Peer`] is another engine, a
//! program that does the same.

mod cases;
mod dumps;
mod floor;
mod peers;
mod report;
mod walk;

pub use cases::{CaseError, CaseText, GrammarCase, read_cases, read_schemas};
pub use dumps::dumps;
pub use floor::Floor;
pub use peers::Peer;
pub use report::{GrammarReport, Percentiles, Reason};
pub use walk::{CaseOutcome, Compile, TextOutcome, Walks, walk};

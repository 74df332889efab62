//! Evaluation of recommendations: histories, the leave-one-out split, ranking metrics, and floors.
//! A recommender has to beat the floors.
//!
//! [`Histories`] are read from a file and bound to a view of a catalog as [`UserHistories`]: items
//! are numbers of that one view throughout an evaluation, so that a live catalog may change beside
//! it. [`Split`] says which items of a history train and which is asked for; [`evaluate`] asks a
//! [`Recommender`](palmette_recommend::Recommender) for every user and counts; [`Popularity`] and
//! [`ItemItem`] answer the same questions without a model. [`ColdStart`] holds items out, and
//! [`cold_start_recall`] says how often they are found. [`Exposure`] says how recommendations
//! spread over the catalog. [`overlap()`] says how much of one recommender's answers another gives
//! too.
//!
//! # Decisions
//! - **`palmette-recommend` and `palmette-recommend-eval` are crates of their own** because the
//!   command line, training's validation and a server all need them, and evaluation must build
//!   without training.
#![forbid(unsafe_code)]

#[cfg(feature = "args")]
mod args;
mod cold_start;
mod cold_start_recall;
mod evaluate;
mod exposure;
mod floors;
mod free_running;
mod histories;
mod known_histories;
mod metrics;
mod overlap;
mod split;

#[cfg(feature = "args")]
pub use args::HistoryArgs;
pub use cold_start::{ColdStart, ColdStartError};
pub use cold_start_recall::{ColdStartRecall, RandomGuesses, cold_start_recall};
pub use evaluate::{
    Answered, EvalError, EvalOptions, Evaluation, ValidShare, evaluate, evaluate_floor,
};
pub use exposure::Exposure;
pub use floors::{Floor, ItemItem, Popularity};
pub use histories::{
    BadRecord, EachRecord, Histories, HistoryColumns, HistoryError, HistoryFormat, HistoryOptions,
    HistoryRecord, HistoryRows, Layout, MAX_LINE_BYTES, Progress, ReadNotes, RowFilter, Skipped,
    UserHistories, deal, parse_histories, read_histories, unread_fields,
};
pub use known_histories::KnownHistories;
pub use metrics::{MetricsAt, RankingMetrics};
pub use overlap::{Overlap, OverlapAt, overlap};
pub use palmette_recommend::UnknownItems;
pub use split::{HoldOut, Question, Split, evenly_spread};

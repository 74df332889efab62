//! How good are the recommendations? Histories, the leave-one-out split, ranking metrics, and the
//! floors that a recommender has to beat.
//!
//! [`Histories`] are read from a file and bound to a catalog as [`UserHistories`]; [`Split`] says
//! which items of a history train and which is asked for; [`evaluate`] asks a
//! [`Recommender`](palmette_recommend::Recommender) for every user and counts; [`Popularity`] and
//! [`ItemItem`] answer the same questions without a model.
#![forbid(unsafe_code)]

mod evaluate;
mod floors;
mod histories;
mod metrics;
mod split;

pub use evaluate::{EvalError, EvalOptions, Evaluation, ValidShare, evaluate, evaluate_floor};
pub use floors::{Floor, ItemItem, Popularity};
pub use histories::{Histories, HistoryError, UserHistories};
pub use metrics::{MetricsAt, RankingMetrics};
pub use split::{HoldOut, Question, Split, evenly_spread};

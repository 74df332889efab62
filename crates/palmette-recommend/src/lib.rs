//! From a history of items to recommended items: prompt, model, catalog and beam search.
//!
//! A [`PromptFormat`] says by which tokens a model spells semantic IDs. A [`Recommender`] joins it
//! with a model and a catalog, frozen and shared; a [`Worker`] holds the buffers of one request at
//! a time. The life of a request, [`Worker::recommend`]: the history's semantic IDs become the
//! prompt, the model reads it once, the search spells IDs that the catalog holds, and each becomes
//! the items that have it. A recommender with a draft head can also find them without decode passes: [`Mode`].
#![forbid(unsafe_code)]

mod batch;
mod draft;
mod error;
mod mode;
mod prompt_format;
mod recommender;
mod worker;

pub use batch::recommend_all;
pub use error::{FormatError, RecommendError, TooManyTokens};
pub use mode::{Mode, Verification};
pub use prompt_format::{LevelFormat, PromptFormat};
pub use recommender::{Normaliser, Recommender};
pub use worker::{
    MAX_BEAM_WIDTH, Recommendations, Recommended, Request, Stage, Worker, WorkerOptions,
};

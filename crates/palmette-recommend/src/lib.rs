//! From a history of items to recommended items: prompt, model, catalog and beam search.
//!
//! A [`PromptFormat`] says by which tokens a model spells semantic IDs. A [`Recommender`] joins it
//! with a model and a catalog, frozen or live, and is shared; a [`Worker`] holds the buffers of one request at
//! a time, and a [`WorkerPool`] lends workers to threads. The life of a [`Request`], [`Worker::recommend`]: it takes a
//! [view](SpelledView) of the catalog, the history's semantic IDs become the
//! prompt, the model reads it once, the search spells IDs that the view holds, and each becomes
//! the items that have it. A [`NamedItem`] is an item of a history as its user writes it, by id or semantic ID, which
//! [`SpelledView::find_item`] finds. A recommender with a draft head can also find them without decode passes: [`Mode`].
#![forbid(unsafe_code)]

mod backends;
mod batch;
mod buffers;
mod error;
mod mode;
mod named_item;
mod passes;
mod prompt_format;
mod recommender;
mod request;
mod rules;
mod view;
mod worker;

pub use batch::{WorkerPool, recommend_all};
pub use error::{FormatError, RecommendError, TooManyTokens};
pub use mode::{Mode, Verification};
pub use named_item::{NamedItem, UnknownItem};
pub use passes::TracedBeam;
pub use prompt_format::{LevelFormat, PromptFormat, Witness};
pub use recommender::{Normaliser, Recommender};
pub use request::{
    Candidates, History, HistoryItem, MAX_BEAM_WIDTH, Planned, Recommendations, Recommended,
    Request, Reranked,
};
pub use rules::{Amount, AtMost, Boost, Diversity, Moment, Rules, RulesError, TieBreak, Valid};
pub use view::SpelledView;
pub use worker::Worker;

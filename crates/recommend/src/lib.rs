//! From a history of items to recommended items: prompt, model, catalog and beam search.
//!
//! A [`PromptFormat`] says by which tokens a model spells semantic IDs, [`Prompts`] how it reads
//! histories: as codes alone, or by a [`PromptTemplate`] as the text that it was trained on. A
//! [`Recommender`] joins them with a model and a catalog, frozen or live, and is shared; a
//! [`Worker`] holds the buffers of one request at a time, and a [`WorkerPool`] lends workers to
//! threads. What is asked is a [`RecommendQuestion`], a document; checked against a view it becomes
//! a [`CheckedQuestion`], which lends a worker its [`Request`]. The life of one,
//! [`Worker::recommend`]: it takes a [view](SpelledView) of the catalog, the history's semantic IDs
//! become the prompt, the model reads it once, the search spells IDs that the view holds, and each
//! becomes the items that have it. A [`NamedItem`] is an item of a history as its user writes it,
//! by id or semantic ID, which [`SpelledView::find_item`] finds. [`offline`] answers whole files of
//! histories. A recommender with a draft head can also find them without decode passes: [`Mode`].
//!
//! # Invariants
//! - A history's answer among those of a file or table depends on nothing but the history, the
//!   model, the catalog's generation and the options: neither shards, batches and threads nor an
//!   interruption change a byte of it. What goes on with an interrupted run has the same contents
//!   of all of them, or refuses.
//! - Fewer valid items than `k` give fewer results, never an invalid one. The empty catalog is
//!   legal and denies everything.
//! - A limit is an error that names it, never a cut: `max_tokens` of a search, positions of a
//!   model, items of a catalog. The one thing that is shortened, a history longer than the model
//!   reads, is reported (`history_used`).
//! - Results do not depend on the number of threads: matrix products are never split along their
//!   inner dimension, rows and users are computed apart, training adds its shards in a fixed order.
//!   Nor on what was asked before: every request begins at its own beam width.
#![forbid(unsafe_code)]

mod backends;
mod batch;
mod bounds;
mod buffers;
mod code_spelling;
mod cursor;
mod error;
mod fields;
mod free_text;
mod history_item;
mod listing;
mod mode;
mod named_item;
pub mod offline;
mod pages;
mod passes;
mod presets;
mod prompt_format;
mod prompts;
mod question;
mod read_history;
mod recommended;
mod recommender;
mod request;
mod round_answer;
mod rules;
mod shape;
mod template;
mod terminated_constraint;
mod understanding;
mod view;
mod worker;

pub use batch::{WorkerPool, recommend_all};
pub use bounds::{MAX_BEAM_WIDTH, MAX_FREE_TOKENS};
pub use code_spelling::{CodeSpelling, FolderSpelling, code_tokens};
pub use error::{Cause, FormatError, RecommendError, TemplateFault, TooManyTokens};
pub use fields::PromptFields;
pub use free_text::{Explain, Think};
pub use history_item::HistoryItem;
pub use mode::{Mode, Verification};
pub use named_item::{NamedItem, UnknownItem};
pub use passes::TracedBeam;
pub use prompt_format::{LevelFormat, PromptFormat, Witness};
pub use prompts::{Prompts, SpellingSource};
#[cfg(feature = "schema")]
pub use question::schema;
pub use question::{
    AnswerKey, CheckedQuestion, ExplainItems, GenerationName, ItemId, ModeName, Priority,
    QuestionLimits, RecommendBody, RecommendQuestion, RequestEnvelope, UnknownItems,
};
pub use recommended::Recommended;
pub use recommender::{KnownPrompt, Normaliser, Recommender};
pub use request::{Candidates, History, Page, Planned, Recommendations, Request, Reranked};
pub use rules::{Amount, AtMost, Boost, Diversity, Moment, Rules, RulesError, TieBreak, Valid};
pub use template::{ExplainFile, Message, PromptTemplate, TemplateFile, Texts, ThinkFile};
pub use understanding::{Understanding, UnderstoodLevel, UnderstoodToken, WrittenPrompt};
pub use view::SpelledView;
pub use worker::Worker;

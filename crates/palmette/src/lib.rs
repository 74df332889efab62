//! Language models that write only what is valid: the facade over grammars, catalogs and searches.
//!
//! # Text that fits a grammar
//! A [`Vocabulary`] is loaded once a model, a [`CompiledGrammar`] once a schema (and kept), a
//! [`Matcher`] made once a sequence. [`Matcher::mask`] is the set of tokens that may follow:
//!
//! ```
//! let tokens = palmette::Vocabulary::encoding("o200k_base")?; // once per model
//! let grammar = tokens.json_schema(r#"{"enum": ["red", "green"]}"#)?; // once per schema, cached
//! let mut matcher = grammar.matcher(); // once per sequence; Clone is a fork
//! # let end = tokens.ends().first().copied();
//! # let mut answer = tokens.encode("\"green\"")?.into_iter().chain(end);
//! # let mut sample = |allowed: palmette::Mask| answer.next().filter(|t| allowed.contains(*t)).unwrap();
//! while let Some(allowed) = matcher.mask()? {
//!     matcher.commit(sample(allowed))?;
//! }
//! matcher.rollback(3)?;
//! # assert!(!matcher.is_ended());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Items that exist
//! A [`Catalog`] is a frozen file of items, a [`LiveCatalog`] a directory that changes while it is
//! read. A [`Recommender`] joins one with a model and answers from any thread:
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # std::fs::create_dir(dir.path().join("model"))?;
//! # let demo = palmette_demo::Demo::load()?;
//! # demo.shop().catalog().save(dir.path().join("shop.palm"))?;
//! # for (name, bytes) in palmette_demo::Demo::model_files() {
//! #     std::fs::write(dir.path().join("model").join(name), bytes)?;
//! # }
//! # std::env::set_current_dir(dir.path())?;
//! let shop = palmette::Catalog::open("shop.palm")?; // or LiveCatalog::open(dir)
//! let model = palmette::Recommender::open("model/", shop)?;
//! let best = model.recommend(["P0001", "P0060"]).k(10).filter(r#"{"must": {"match": {"brand": "Fernhollow"}}}"#)?.run()?;
//! # assert_eq!(best.items.len(), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rules of the business hold inside the search, as filters do: [`RecommendRequest::rules`] takes a
//! document of them, and there is a method for each.
//!
//! ```
//! # let demo = palmette_demo::Demo::load()?;
//! # let dir = tempfile::tempdir()?;
//! # for (name, bytes) in palmette_demo::Demo::model_files() {
//! #     std::fs::write(dir.path().join(name), bytes)?;
//! # }
//! # let shop = demo.shop().catalog();
//! # let model = palmette::Recommender::open(dir.path(), shop)?;
//! let request = model.recommend(["P0001", "P0060"]).k(5);
//! let best = request
//!     .at_most(1, "brand")
//!     .boost(r#"{"must": {"range": {"price": {"lt": 30}}}}"#, 0.5)?
//!     .must_include(["P0002"])
//!     .run()?;
//! # assert_eq!(best.items.len(), 5);
//! # assert!(best.items.iter().any(|item| item.pinned && item.id == "P0002"));
//! # let other = model.recommend(["P0001"]).rules(r#"{"at_mots": []}"#).unwrap_err();
//! # assert!(other.to_string().contains("at_most"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Your own model
//! [`best_sequences`] spells the best members of any [`Constraint`] with logits of your own
//! ([`LogitsSource`]); a program that searches again and again keeps a [`BeamSearch`].
//! [`Generator`] writes one sequence with a [`Sampler`]. `examples/` has a program for each.
//!
//! # Text from a model's folder
//! [`text`] is the crate `palmette-text`: [`text::TextModel`] reads weights, tokenizer and chat
//! template, and [`text::generate`] writes under a grammar. [`CompiledGrammar::write`] does it with
//! logits of your own.
//!
//! # Errors
//! Every answer is exact or an error. A limit that is exceeded in the middle of a search, a mask or
//! a batch is a `Result` of that call; there is no mask of zeros to mistake it for.
//!
//! # For engines
//! [`CompiledGrammar::constraint`] and [`Recommender::pool`] lead to the crates below, which this
//! one adds nothing to: batches of masks over threads, work ahead of time, files of compiled
//! grammars, step backends for accelerators. [`engine`] has them whole, so that every type in their
//! signatures can be named.
#![forbid(unsafe_code)]

mod grammar;
mod matcher;
mod recommender;
mod vocabulary;
mod write;

pub use grammar::CompiledGrammar;
pub use matcher::{Matcher, MatcherError};
pub use palmette_bindings::{BindingError, Bindings, BoundSource, Member, Shortage};
pub use palmette_catalog::{BuildError, Catalog, FileError, Filter, FilterError, Item};
pub use palmette_catalog_live::{
    Applied, CatalogSource, CatalogView, LiveCatalog, LiveError, LiveReader, Update,
};
pub use palmette_core::{AnyConstraint, Constraint, TokenId};
pub use palmette_decode::{
    BeamOptions, BeamSearch, DecodeError, Finish, Gains, GenerateOptions, Generator, HostBackend,
    LengthReport, LengthRule, LogitsSource, Objective, Sampler, SamplerOptions, ScoredSequence,
    best_sequences,
};
pub use palmette_document::{Fault, Faults};
pub use palmette_grammar::{
    CacheError as GrammarError, CacheLimits, GrammarCache, GrammarConstraint, GrammarSource,
    GrammarState, MaskId, MaskRef as Mask, PreparedVocabulary, Slot,
};
pub use palmette_lexicon::{DocumentPlace, Lexicon, LexiconBuilder};
pub use palmette_recommend::{
    Mode, ModeName, NamedItem, RecommendQuestion, Rules, RulesError, SpelledView, TracedBeam,
    UnknownItems, Verification, WorkerPool,
};
/// Text from a model's folder: chat templates, sampling, streaming, tool calls.
pub use palmette_text as text;
pub use palmette_vocabulary::{AngleTokens, Assumption, EndsFound, LoadOptions, LoadedVocabulary};
pub use recommender::{Answer, RecommendError, RecommendRequest, Recommendation, Recommender};
pub use vocabulary::{Vocabulary, VocabularyError};
pub use write::{WriteOptions, WrittenText};

/// The crates below, each whole.
pub mod engine {
    pub use palmette_bindings as bindings;
    pub use palmette_catalog as catalog;
    pub use palmette_catalog_live as live;
    pub use palmette_core as core;
    pub use palmette_decode as decode;
    pub use palmette_document as document;
    pub use palmette_grammar as grammar;
    pub use palmette_lexicon as lexicon;
    pub use palmette_model as model;
    pub use palmette_recommend as recommend;
    pub use palmette_vocabulary as vocabulary;
}

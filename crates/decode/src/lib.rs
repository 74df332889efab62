//! Exact constrained beam search over any [`Constraint`](palmette_core::Constraint).
//!
//! [`BeamSearch`] is the policy and holds all buffers of a search; a [`StepBackend`] is what it
//! asks for a step's logits and best extensions: [`HostBackend`] over a [`LogitsSource`], a model
//! or a table, or a device that keeps its logits. [`run`](BeamSearch::run) drives both to the end;
//! [`start`](BeamSearch::start), [`step`](BeamSearch::step) and [`expand`](BeamSearch::expand) are
//! the same steps one by one, for a caller that interleaves them. [`Generator`] writes one sequence
//! with a [`Sampler`]; [`EndingSearch`] finds the best that it could write.
//!
//! # What is computed
//! A hypothesis is a token sequence from the constraint's start; its score is the sum of its
//! tokens' log-probabilities, `logit − log Σ exp(logits)` over the **whole** vocabulary, as Hugging
//! Face `generate` scores with `prefix_allowed_tokens_fn`: disallowed tokens are dropped after
//! normalising, not before. [`TopK::select`] can take another whole: the tokens of one level, whose
//! probabilities then sum to 1. At each step the best `width` extensions of all live hypotheses
//! survive. Every survivor at an accepting position is a result; one that can go on also stays
//! live. The results are the best `width` of all of those. With a
//! [schedule](BeamSearch::with_widths) each step has a width of its own, and there are as many
//! results as the last one.
//!
//! The search is exact: equal to scoring every allowed extension and sorting, in order and to the
//! bit. Equal scores are ordered by the parent's place, then by token; results of different lengths
//! with equal scores come in the order in which they were found, shorter ones first. Fewer allowed
//! extensions than `width` give fewer hypotheses, never an invalid one, and with `width` at least
//! the number of sequences in the set the results are those of an exhaustive search.
//! A bound on what a narrower search missed is [`missed_at_most`](BeamSearch::missed_at_most):
//! results above it are the first of an exhaustive search.
//! [`run_after_probe`](BeamSearch::run_after_probe) finds the first few of a wide search's results
//! without most of its work.
//!
//! # Invariants
//! - The search is exact: it equals a naive beam search at every width, and an exhaustive search
//!   when it is as wide as the set, results, order and scores, to the bit. Nothing is pruned by a
//!   guess: a floor is the score of a result that is wanted at least as good, scores only fall, and
//!   a search with too few results above its floor runs again without.
//! - Scores are normalised over the whole vocabulary, before the mask, as Hugging Face `generate`
//!   does with `prefix_allowed_tokens_fn`; or, for a recommender made with `Normaliser::Level`,
//!   over the level's codes, and then no other logits are computed.
//! - Ties have a rule: parent's place, then token; items that share a semantic ID come in the order
//!   of the source file.
//! - A search keeps at most its width of hypotheses at a level, each level one of its own where
//!   there is a schedule, and at most as many as there are prefixes. The model computes rows, and
//!   keeps keys and values, for these and no more.
//! - A step of a search allocates nothing once its buffers are warm; a test with a counting
//!   allocator says so. A commit of a grammar allocates nothing where the working memory was
//!   before, but for the state's history, which grows by chunks, and names that are remembered.
//! - `palmette-decode` knows neither catalogs nor models, only the traits `Constraint` and
//!   `LogitsSource`.
//!
//! # Decisions
//! - **Masks first, states later.** A step fills one mask row per beam and commits only the
//!   hypotheses that survive, so a step's memory is planned (`width × words`) however many children
//!   a state has.
#![forbid(unsafe_code)]

mod beam_search;
mod best_sequences;
mod driver;
mod ended_sequences;
mod ending_search;
mod error;
mod exp;
mod gains;
mod generate;
mod host;
mod length;
mod length_penalty;
mod log_probabilities;
mod log_softmax;
mod logits_source;
mod sampler;
mod step;
mod top_k;

pub use beam_search::{BeamOptions, BeamSearch, Hypothesis};
pub use best_sequences::{ScoredSequence, best_sequences};
pub use driver::{Control, Stage, run_on};
pub use ending_search::{EndedSequence, EndingSearch};
pub use error::DecodeError;
pub use exp::exp;
pub use gains::{Gains, Objective};
pub use generate::{Finish, GenerateOptions, Generated, Generator, NewToken, OnToken};
pub use host::HostBackend;
pub use length::{LengthReport, LengthRule, greatest_least};
pub use length_penalty::LengthPenalty;
pub use log_probabilities::{LogProbabilities, likeliest};
pub use log_softmax::log_sum_exp;
pub use logits_source::{LogitsSource, append_one_by_one};
pub use sampler::{SampleError, Sampler, SamplerOptionError, SamplerOptions};
pub use step::{Extension, Pass, SearchPlan, Step, StepBackend};
pub use top_k::TopK;

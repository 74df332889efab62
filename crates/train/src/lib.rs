//! Next-item training, from scratch or from a checkpoint, of plain decoders that Palmette serves
//! (Qwen3, Qwen2, Llama, Mistral), and [semantic IDs](semantic_ids) for their items.
//!
//! The backward pass is written by hand, one file per layer under [`network`], each checked against
//! a plain f64 definition; the whole model is checked against one too. No machine-learning
//! framework is involved: what training shares with inference is `palmette_model::kernels`.
//!
//! The types to meet, in the order a run uses them: [`TrainOptions`] says how to train, a
//! [`Dataset`] gives the sequences, a [`Trainer`] takes steps and writes checkpoints, [`Params`]
//! are the weights, and [`export()`] writes them as a Hugging Face directory.
//!
//! **Results do not depend on the number of threads.** A batch is cut into a fixed number of shards
//! ([`TrainOptions::shards`]); a shard is computed by one thread, and the shards' gradients are
//! added in their order.
//!
//! # Decisions
//! - **Training without a framework.** The backward pass is written by hand and each layer is
//!   checked against a plain f64 definition. A general framework took many CPU-minutes to build and
//!   would have computed the same products with the same GEMM crate; here training builds in
//!   seconds, shares inference's kernels, and gives the same bits for any number of threads.
//! - **A draft head is trained on branches.** Every item of a history is a target, and each needs
//!   placeholders of its own after its prefix. They are packed behind the history's tokens as
//!   branches that see their prefix and themselves (`network/batch.rs`), which doubles the rows of
//!   a history; an example for each prefix would multiply them by half the history's items. Prompts
//!   of text pay that: text after the history makes no prompt the beginning of the next.
#![forbid(unsafe_code)]

mod checkpoint;
mod data;
mod error;
mod export;
mod head_trainer;
mod history_dataset;
pub mod network;
mod optimizer;
mod options;
mod params;
mod schedule;
pub mod semantic_ids;
mod tensor_file;
mod trainer;

pub use checkpoint::{has_checkpoint, remove_checkpoint};
pub use data::{Dataset, Example, VecDataset};
pub use error::TrainError;
pub use export::{ExportDtype, export, export_draft_head};
pub use head_trainer::HeadTrainer;
pub use history_dataset::{Augmentation, HistoryDataset};
pub use options::{Duration, TrainOptions};
pub use params::{Layout, NamedTensor, Params};
pub use tensor_file::replace_text;
pub use trainer::{StepReport, Trainer};

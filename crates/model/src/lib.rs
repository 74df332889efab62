//! Transformer inference on the CPU, for wide beam searches over short sequences.
//!
//! [`Model::load`] reads a Hugging Face directory of a decoder with RMS norms, rotary positions,
//! grouped-query attention and a gated feed-forward part (Qwen2, Qwen3, Llama, Mistral or Gemma 3),
//! or of an encoder–decoder of T5's form, whose differences are the table of [`Architecture`]. A
//! [`Session`] holds the caches and buffers of one request and is a
//! [`LogitsSource`](palmette_decode::LogitsSource): one pass over the prompt, whose keys and values
//! all beams share, then one pass a level over all beams at once. With a [draft head](draft) there
//! are no more passes after the one over the prompt.
//!
//! [`Sequences`] are several sequences that grow side by side: rows of any of them are one pass, in
//! which each weight is read once. [`SequenceStore`] is the seam, which a device stands behind too.
//!
//! Everything is computed in f32, but for models whose weights were [rounded](WeightFormat::Int8),
//! and whose [attention](WeightFormat::Int8Bf16) is.
//! A row's results depend neither on the other rows that are computed with it nor on the number of
//! threads.
//!
//! # Invariants
//! - In inference a row's bits depend on nothing but the row: each element of a product is one
//!   chain of fused multiply-additions along the inner dimension, whatever rows stand beside it and
//!   however wide the processor's vectors are. (Training's products are the `gemm` crate's, whose
//!   last bits depend on both.)
//! - Weights rounded to 8 bits are multiplied with rows rounded to 8 bits, each by its own scale,
//!   and their sums are exact integers: what holds of rows' bits holds there too, and plain code
//!   gives the same ones as VNNI and the tiles of AMX. Attention in bfloat16 has sums in f32 whose
//!   order is that of AMX, which plain code keeps too.
//! - A session takes exactly the bytes that were planned for it; on one thread its requests
//!   allocate nothing, but for what finds a prompt again where prompts are kept.
//! - What is kept of prompts ([`Model::with_prompt_memory`]) changes no bit and stays within its
//!   bytes: pages of keys and values are found by all tokens before and in them.
//! - Weights are read in full or refused: a missing, misshapen or unknown tensor, a value that is
//!   not finite, or a configuration that asks for something not computed here, is an error, since
//!   ignoring it would give wrong logits. (Four are known and not needed: the head of a tied model,
//!   if it repeats the embedding, rows beyond the vocabulary, stored rotary frequencies, and biases
//!   of distances in T5's cross-attention.)
//! - Models differ by data, not by code of their own: a tensor that is there or not, a factor, a
//!   window (`model/src/architecture.rs`). No layer asks which family a model is of.
//!
//! # Decisions
//! - **Slots instead of moved caches.** xGR (arXiv 2512.11529 §5.1) permutes the beams' keys and
//!   values in place after every step; here a row remembers which slots its ancestors wrote, which
//!   moves only indices.
//! - **Products of our own for inference.** The `gemm` crate arranges both sides anew for each
//!   product, and takes another path for one row than for several, so that a row's last bits
//!   depended on its neighbours. `kernels/panels.rs` arranges weights once, when they are loaded,
//!   and its safe code over `pulp`'s vectors gives the same bits for any number of rows.
#![deny(unsafe_code)]

mod allocation;
mod architecture;
mod attention;
mod beam_key_values;
mod blocks;
mod config;
pub mod draft;
mod encoder_decoder;
mod engine;
mod error;
mod head_shape;
mod hugging_face;
pub mod kernels;
mod key_values;
mod layers;
mod model;
mod model_tensors;
mod pages;
mod plan;
mod prompt_store;
mod random;
mod rotary;
mod sequence_slots;
mod sequence_store;
mod sequences;
mod session;
mod tensor_files;
mod weights;

pub use architecture::{Architecture, Family, SlidingWindow, WindowLayers};
pub use config::ModelConfig;
pub use encoder_decoder::{Encoder, RelativePositions};
pub use engine::{
    CatalogSearch, DeviceName, DeviceUse, Engine, Reading, ReadingShape, SearchLevel, SharedEngine,
    WarningListener,
};
pub use error::LoadError;
pub use kernels::Values;
pub use model::{Model, SlowFormat, WeightFormat};
pub use model_tensors::ModelTensors;
pub use pages::{PageChain, PageCounts, Pages, Reservation};
pub use plan::{PlannedBytes, SessionOptions};
pub use prompt_store::{PromptStoreError, PromptUse};
pub use rotary::{Rope, RopeScaling};
pub use sequence_slots::{PassLimits, SequenceSlots, StoredSequence};
pub use sequence_store::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};
pub use sequences::{Sequences, SequencesBytes};
pub use session::{Session, SessionError};

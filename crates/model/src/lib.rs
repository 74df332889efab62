//! Transformer inference on the CPU, for wide beam searches over short sequences.
//!
//! [`Model::load`] reads a Hugging Face directory of a decoder with RMS norms, rotary positions, grouped-query attention
//! and a gated feed-forward part (Qwen2, Qwen3, Llama, Mistral or Gemma 3), or of an encoder–decoder of T5's form, whose
//! differences are the table of [`Architecture`]. A [`Session`] holds the caches and buffers of one request and is a
//! [`LogitsSource`](palmette_decode::LogitsSource): one pass over the prompt, whose keys and values
//! all beams share, then one pass a level over all beams at once. With a [draft head](draft) there are no more passes
//! after the one over the prompt.
//!
//! [`Sequences`] are several sequences that grow side by side: rows of any of them are one pass, in which each weight is read once.
//!
//! Everything is computed in f32, but for models whose weights were [rounded](WeightFormat::Int8). A row's results depend neither on the other rows that are computed with it nor on the
//! number of threads.
#![deny(unsafe_code)]

mod allocation;
mod architecture;
mod attention;
mod beam_key_values;
mod blocks;
mod config;
pub mod draft;
mod encoder_decoder;
mod error;
mod head_shape;
mod hugging_face;
pub mod kernels;
mod key_values;
mod layers;
mod model;
mod plan;
mod random;
mod rotary;
mod sequences;
mod session;
mod tensor_files;
mod weights;

pub use architecture::{Architecture, Family, SlidingWindow, WindowLayers};
pub use config::ModelConfig;
pub use encoder_decoder::{Encoder, RelativePositions};
pub use error::LoadError;
pub use model::{Model, SlowFormat, WeightFormat};
pub use plan::{PlannedBytes, SessionOptions};
pub use rotary::{Rope, RopeScaling};
pub use sequences::{
    SequenceId, Sequences, SequencesBytes, SequencesError, SequencesOptions, Stretch,
};
pub use session::{Session, SessionError};

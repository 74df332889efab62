//! The decoder's forward and backward pass over a packed batch.
//!
//! One file per layer; [`Network`] composes them. Letters used in shapes: N tokens of a batch or of
//! its shard, all sequences one after another; T tokens of one sequence; D `hidden_size`; H query
//! heads; G key/value heads; C `head_dim`; F `intermediate_size`; V `vocab_size`. Everything is f32
//! and row-major. In a backward function `d_x` is the gradient of the loss with respect to `x`.
//!
//! Gradients of weights are added to what the buffer holds; gradients of activations say in each
//! function whether they replace or add.

mod attention;
mod batch;
mod branches;
mod cross_entropy;
pub(crate) mod draft_head;
mod dropout;
mod embedding;
pub(crate) mod linear;
mod model;
mod output_head;
mod rms_norm;
mod swiglu;
#[cfg(test)]
pub(crate) mod testing;
mod workspace;

pub use batch::{BatchView, Branches, NO_TARGET, PackedBatch};
pub use dropout::Dropout;
pub use model::{LossSums, Network, Objective};
pub use workspace::Workspace;

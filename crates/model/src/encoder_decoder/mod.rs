//! Encoder–decoders of T5's form: an encoder reads the prompt, and the decoder's layers attend to
//! what it made of it.
//!
//! TIGER (Rajput et al., NeurIPS 2023), LETTER and GRID recommend so: the prompt is a history of
//! semantic IDs, and the decoder writes the next one, beginning with a token of its own. With x the
//! residual stream and N an RMS norm, a layer is
//!
//! ```text
//! encoder   x += self-attention(N x)      every position sees every other
//!           x += feed-forward(N x)
//! decoder   x += self-attention(N x)      the start token and the tokens written so far
//!           x += cross-attention(N x, e)  keys and values of e, the encoder's last x, normed
//!           x += feed-forward(N x)
//! ```
//!
//! Layers, caches, products and searches are the decoders' own ([`layers`](crate::layers)). Here is
//! what those lack: the encoder's run, its weights, and [positions as biases of
//! scores](RelativePositions). Source: T5, arXiv 1910.10683.
//!
//! A [`Session`](crate::Session) encodes a prompt once. What of it the cross-attention of each
//! layer reads lies as the right sides of products, once for all beams and passes, as a decoder's
//! prompt does; the start token is the decoder's prompt.

mod encoder;
mod relative_bias;
mod weights;

use serde::{Deserialize, Serialize};

pub(crate) use encoder::EncoderRun;
pub use relative_bias::RelativePositions;
pub(crate) use relative_bias::{RelativeBias, bias_tables, num_bias_values};
pub(crate) use weights::{
    CrossWeights, EncoderWeights, SHARED, settle_shared_tensors, weights_from_tensors,
};

/// The encoder that reads prompts before a decoder; its layers have the decoder's widths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoder {
    /// Layers of the encoder; the decoder's are `num_hidden_layers`.
    pub num_layers: usize,
    /// The token that every sequence of the decoder begins with.
    pub start_token: u32,
}

//! Semantic IDs from item embeddings.
//!
//! An embedding is quantised level by level: each level's code names the entry of a codebook
//! nearest to what the levels before have left over (residual quantisation), so items that are
//! alike share their first codes.
//!
//! The order of things: [`Embeddings`] are read from a file; [`Tokenizer::fit`] learns the
//! codebooks, directly by residual k-means ([`ResidualKMeans`]) or together with an encoder
//! ([`RqVae`]; Rajput et al., "Recommender Systems with Generative Retrieval", 2023, section 3.1);
//! [`Tokenizer::encode`] gives every item its codes; [`separate`] decides about items that got the
//! same; [`Quality`] says how good they are. A fitted tokenizer is saved, so that new items get
//! codes that fit the old ones.
//!
//! Letters: N items, D the embeddings' width, L levels, K codes a level. **Results do not depend on
//! the number of threads**: work is cut into pieces of a fixed size, and sums are taken in a fixed
//! order.

mod collisions;
mod draws;
mod embeddings;
mod k_means;
mod nearest;
mod perceptron;
mod quality;
mod read_embeddings;
mod residual_k_means;
mod rq_vae;
mod tokenizer;

pub use collisions::{Collisions, Separated, separate};
pub use embeddings::Embeddings;
pub use quality::{LevelUse, Quality};
pub use read_embeddings::read_embeddings;
pub use residual_k_means::{KMeansOptions, ResidualKMeans};
pub use rq_vae::{RqVae, RqVaeOptions};
pub use tokenizer::{Encoded, FitProgress, Method, Tokenizer};

/// Largest number of codes that a level may have.
pub const MAX_CODES: usize = 65_536;
/// Largest number of levels that a semantic ID may have here.
pub const MAX_LEVELS: usize = 16;

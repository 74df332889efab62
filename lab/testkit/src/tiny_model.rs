//! A language model of made-up weights over printable characters: what it says means nothing, and
//! takes no time.

use palmette_model::{Architecture, Model, ModelConfig};

/// Pieces of its vocabulary: the printable characters by their codes, from the blank on, then
/// `more`, then the end token.
pub fn pieces(more: &[&str]) -> Vec<String> {
    let characters = (32..127_u8).map(|byte| char::from(byte).to_string());
    let more = more.iter().chain(&["</s>"]).map(|&piece| piece.to_owned());
    characters.chain(more).collect()
}

/// Model over `num_pieces` pieces, which reads at most `positions` tokens. The same each time.
///
/// # Panics
/// When there is no memory for it.
pub fn model(num_pieces: usize, positions: usize) -> Model {
    seeded(num_pieces, positions, 3)
}

/// Model of [`model`]'s shape, with weights of their own for each seed.
///
/// # Panics
/// When there is no memory for it.
pub fn seeded(num_pieces: usize, positions: usize, seed: u64) -> Model {
    let config = ModelConfig {
        vocab_size: num_pieces,
        hidden_size: 16,
        intermediate_size: 24,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: positions,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    Model::random(config, seed).expect("a sound configuration")
}

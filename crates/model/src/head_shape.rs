//! Shape of attention: query heads, key heads, their width, the factor of scores.

use crate::config::ModelConfig;

/// Number of query heads and of key heads, and their width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadShape {
    pub(crate) heads: usize,
    pub(crate) key_heads: usize,
    pub(crate) head_dim: usize,
    /// Factor of the products of queries and keys.
    pub(crate) scale: f32,
    /// True where products with prompts' keys and values are of sides rounded to bfloat16.
    pub(crate) is_bf16: bool,
}

impl HeadShape {
    pub(crate) fn of(config: &ModelConfig) -> Self {
        Self {
            heads: config.num_attention_heads,
            key_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            scale: config.architecture.attention_scale(config.head_dim),
            is_bf16: false,
        }
    }

    pub(crate) fn query_width(&self) -> usize {
        self.heads * self.head_dim
    }

    pub(crate) fn key_value_width(&self) -> usize {
        self.key_heads * self.head_dim
    }

    /// The key head that serves a query head.
    pub(crate) fn key_head(&self, head: usize) -> usize {
        head / (self.heads / self.key_heads)
    }
}

//! Special tokens of model families whose tiktoken files have none, told by the number of ranks.

use palmette_core::TokenId;

/// The tokens that a family adds to its ranks.
pub(crate) struct Family {
    /// As messages name it.
    pub(crate) name: &'static str,
    num_ranks: usize,
    /// With the special ones.
    pub(crate) num_tokens: u64,
    pub(crate) specials: &'static [(u32, &'static str)],
    ends: &'static [u32],
}

static FAMILIES: [Family; 2] = [
    Family {
        name: "Llama 3",
        num_ranks: 128_000,
        num_tokens: 128_256,
        specials: &[
            (128_000, "<|begin_of_text|>"),
            (128_001, "<|end_of_text|>"),
            (128_004, "<|finetune_right_pad_id|>"),
            (128_006, "<|start_header_id|>"),
            (128_007, "<|end_header_id|>"),
            (128_008, "<|eom_id|>"),
            (128_009, "<|eot_id|>"),
            (128_010, "<|python_tag|>"),
        ],
        ends: &[128_001, 128_008, 128_009],
    },
    Family {
        name: "Qwen",
        num_ranks: 151_643,
        num_tokens: 151_851,
        specials: &[(151_643, "<|endoftext|>"), (151_644, "<|im_start|>"), (151_645, "<|im_end|>")],
        ends: &[151_643, 151_645],
    },
];

/// The family with so many ranks.
pub(crate) fn with_ranks(num_ranks: usize) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.num_ranks == num_ranks)
}

impl Family {
    pub(crate) fn ends(&self) -> Vec<TokenId> {
        self.ends.iter().copied().map(TokenId).collect()
    }
}

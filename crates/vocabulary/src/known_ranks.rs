//! Special tokens and patterns of models whose tiktoken files lack them, known by how many ranks
//! there are.

/// A published vocabulary of byte-pair ranks.
pub(crate) struct KnownRanks {
    /// The models that have it.
    pub(crate) of: &'static str,
    /// The sign by which it is known.
    pub(crate) by: &'static str,
    /// Ranks, `0..num_ranks`; the special tokens begin behind them.
    num_ranks: usize,
    /// The first special tokens; an empty name is the next reserved one.
    names: &'static [&'static str],
    /// Reserved tokens are called by this, their number, and `|>`.
    reserved: &'static str,
    num_specials: u64,
    /// The pattern that splits text.
    pub(crate) pattern: &'static str,
}

static KNOWN: [KnownRanks; 2] = [
    KnownRanks {
        of: "Llama 3",
        by: "its 128,000 ranks",
        num_ranks: 128_000,
        names: &[
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "",
            "",
            "<|finetune_right_pad_id|>",
            "",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eom_id|>",
            "<|eot_id|>",
            "<|python_tag|>",
        ],
        reserved: "<|reserved_special_token_",
        num_specials: 256,
        pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    },
    KnownRanks {
        of: "Qwen",
        by: "its 151,643 ranks",
        num_ranks: 151_643,
        names: &["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        reserved: "<|extra_",
        num_specials: 208,
        pattern: r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    },
];

impl KnownRanks {
    /// The vocabulary with exactly these ranks, by their number: each has a token, and there are no
    /// more.
    pub(crate) fn of_texts(texts: &[Option<Vec<u8>>]) -> Option<&'static Self> {
        let known = KNOWN.iter().find(|known| known.num_ranks == texts.len());
        known.filter(|_| texts.iter().all(Option::is_some))
    }

    /// The special tokens: ids and names.
    pub(crate) fn specials(&self) -> impl Iterator<Item = (u64, String)> {
        let mut num_reserved = 0;
        (0..self.num_specials).map(move |place| {
            let named = self.names.get(place as usize).filter(|name| !name.is_empty());
            let name = named.map_or_else(
                || {
                    num_reserved += 1;
                    format!("{}{}|>", self.reserved, num_reserved - 1)
                },
                |name| (*name).to_owned(),
            );
            (self.num_ranks as u64 + place, name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_are_those_published() {
        let specials = |known: &KnownRanks| known.specials().collect::<Vec<_>>();
        let [llama, qwen] = [&KNOWN[0], &KNOWN[1]].map(specials);
        let is = |list: &[(u64, String)], id: u64, name: &str| {
            assert!(list.contains(&(id, name.to_owned())), "{id} {name}");
        };
        is(&llama, 128_002, "<|reserved_special_token_0|>");
        is(&llama, 128_005, "<|reserved_special_token_2|>");
        is(&llama, 128_009, "<|eot_id|>");
        is(&llama, 128_010, "<|python_tag|>");
        is(&llama, 128_011, "<|reserved_special_token_3|>");
        is(&llama, 128_255, "<|reserved_special_token_247|>");
        is(&qwen, 151_645, "<|im_end|>");
        is(&qwen, 151_646, "<|extra_0|>");
        is(&qwen, 151_850, "<|extra_204|>");
        assert_eq!((llama.len(), qwen.len()), (256, 208));
    }
}

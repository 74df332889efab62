//! Proptest strategies: sets of semantic IDs of every awkward shape.

use proptest::prelude::*;

use crate::SequenceSet;

/// Sets of up to 40 sequences over up to 40 tokens: often with shared prefixes and ragged lengths,
/// sometimes with one sequence a prefix of another, sometimes one sequence or none.
pub fn sequence_sets() -> impl Strategy<Value = SequenceSet> {
    (1_u32..=40, 1_usize..=4).prop_flat_map(|(num_tokens, max_len)| {
        // Few distinct tokens make shared prefixes likely.
        let alphabet = num_tokens.min(5).max(num_tokens / 8);
        let token = prop_oneof![4 => 0..alphabet, 1 => 0..num_tokens];
        let ragged = prop::collection::vec(token.clone(), 1..=max_len);
        let fixed = prop::collection::vec(token, max_len);
        prop_oneof![prop::collection::vec(fixed, 0..40), prop::collection::vec(ragged, 0..40)]
            .prop_map(move |sequences| SequenceSet::new(num_tokens as usize, sequences))
    })
}

//! The floating-point operations that a recommendation cannot do without.

use palmette_model::ModelConfig;
use palmette_model::draft::DraftOutline;

/// Passes of a model that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// T: tokens of the prompt.
    pub prompt_tokens: usize,
    /// Rows of each decode pass.
    pub rows: Vec<usize>,
    /// Logits computed for each row.
    pub logits: usize,
}

/// Operations of matrix products, a multiplication and an addition each counted. Norms, softmax and
/// activations are left out: they are a few for each value that a product makes with hundreds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Operations of the prompt. All layers count for every token, except the last: of it only keys
    /// and values, and the rest for the last token. A token attends to itself and those before.
    pub prefill: u64,
    /// Operations of all decode passes.
    pub decode: u64,
}

impl Operations {
    /// Counts.
    pub fn of(config: &ModelConfig, passes: &Passes) -> Self {
        let wide = |n: usize| n as u64;
        let d = wide(config.hidden_size);
        let (q, kv) = (wide(config.query_width()), wide(config.key_value_width()));
        let (f, layers) = (wide(config.intermediate_size), wide(config.num_hidden_layers));
        let keys_values = 4 * d * kv;
        let layer = keys_values + 4 * d * q + 6 * d * f;
        let head = 2 * d * wide(passes.logits);
        let attention = |keys: u64| 4 * q * keys;
        let t = wide(passes.prompt_tokens);
        let whole_layer = t * layer + attention(t * (t + 1) / 2);
        let last_layer = t * keys_values + (layer - keys_values) + attention(t);
        let pass = |(pass, &rows): (usize, &usize)| {
            wide(rows) * (layers * (layer + attention(t + wide(pass) + 1)) + head)
        };
        Self {
            prefill: (layers - 1) * whole_layer + last_layer + head,
            decode: passes.rows.iter().enumerate().map(pass).sum(),
        }
    }

    /// Counts those of a draft: one pass over the prompt and the head's placeholders, the last of
    /// whose rows go through the whole last layer, and `rows` rows of the head at each level after
    /// the first.
    pub fn of_draft(
        config: &ModelConfig,
        head: &DraftOutline,
        prompt_tokens: usize,
        rows: &[usize],
    ) -> Self {
        let wide = |n: usize| n as u64;
        let d = wide(config.hidden_size);
        let (q, kv) = (wide(config.query_width()), wide(config.key_value_width()));
        let (f, layers) = (wide(config.intermediate_size), wide(config.num_hidden_layers));
        let keys_values = 4 * d * kv;
        let layer = keys_values + 4 * d * q + 6 * d * f;
        let attention = |keys: u64| 4 * q * keys;
        let (prompt, placeholders) = (wide(prompt_tokens), wide(head.num_placeholders()));
        let t = prompt + placeholders;
        let whole_layer = t * layer + attention(t * (t + 1) / 2);
        let seen: u64 = (prompt..=t).sum();
        let last_layer =
            t * keys_values + (1 + placeholders) * (layer - keys_values) + attention(seen);
        let step =
            |(before, &rows): (usize, &usize)| wide(rows) * head.operations_of_row(before + 1);
        Self {
            prefill: (layers - 1) * whole_layer + last_layer + head.operations_of_row(0),
            decode: rows.iter().enumerate().map(step).sum(),
        }
    }

    /// Both together.
    pub fn total(&self) -> u64 {
        self.prefill + self.decode
    }
}

#[cfg(test)]
mod tests {
    use palmette_model::Architecture;

    use super::*;

    /// One layer, all widths 2, counted by hand.
    #[test]
    fn a_small_model_by_hand() {
        let config = ModelConfig {
            vocab_size: 8,
            hidden_size: 2,
            intermediate_size: 2,
            num_hidden_layers: 1,
            num_attention_heads: 1,
            num_key_value_heads: 1,
            head_dim: 2,
            max_position_embeddings: 8,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: true,
            architecture: Architecture::default(),
        };
        let passes = Passes { prompt_tokens: 3, rows: vec![5], logits: 4 };
        let got = Operations::of(&config, &passes);
        // A product of a row with a 2×2 matrix is 8 operations; 7 matrices a layer, 2 of them keys
        // and values. Scores and values of one key take 4 each. A row of 4 logits is 16.
        assert_eq!(got.prefill, 3 * 2 * 8 + 5 * 8 + 3 * 8 + 16);
        assert_eq!(got.decode, 5 * (7 * 8 + 4 * 8 + 16));
    }
}

//! From what size of model on does it pay to compute the next tokens of several sequences in one
//! pass?
//!
//! ```text
//! cargo bench -p palmette-model --bench sequences
//! ```
//!
//! Measured: one more token of each of R sequences of 64 tokens, on one thread,
//! - `together`: in one pass of R rows, each weight read once;
//! - `apart`: in R passes of one row.
//!
//! Models have made-up weights, since time does not depend on them: of 1, 10 and 135 million
//! parameters (the last in the shape of SmolLM2-135M), in f32. Compare the two at the same rows;
//! docs/benchmarks.md has the ratios.

use std::sync::Arc;

use divan::Bencher;
use palmette_core::TokenId;
use palmette_model::{
    Architecture, Model, ModelConfig, SequenceId, SequenceStore, Sequences, SequencesOptions,
    Stretch,
};

const TOKENS: usize = 64;
/// Tokens that a sequence grows by before it is begun anew.
const ROOM: usize = 192;

fn main() {
    divan::main();
}

/// Parameters in millions, and rows.
const CASES: [(usize, usize); 15] = [
    (1, 1),
    (1, 2),
    (1, 4),
    (1, 8),
    (1, 16),
    (10, 1),
    (10, 2),
    (10, 4),
    (10, 8),
    (10, 16),
    (135, 1),
    (135, 2),
    (135, 4),
    (135, 8),
    (135, 16),
];

fn model(millions: usize) -> Arc<Model> {
    // Width, feed-forward width, layers, heads, key heads, vocabulary.
    let (d, f, layers, heads, key_heads, vocab) = match millions {
        1 => (128, 384, 4, 2, 2, 1024),
        10 => (320, 960, 6, 5, 5, 4096),
        _ => (576, 1536, 30, 9, 3, 49152),
    };
    let config = ModelConfig {
        vocab_size: vocab,
        hidden_size: d,
        intermediate_size: f,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        num_key_value_heads: key_heads,
        head_dim: 64,
        max_position_embeddings: 2048,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    Arc::new(Model::random(config, 1).expect("a sound configuration"))
}

struct Growing {
    sequences: Sequences,
    ids: Vec<SequenceId>,
    grown: usize,
}

impl Growing {
    fn new((millions, rows): (usize, usize)) -> Self {
        let options = SequencesOptions {
            max_sequences: rows,
            max_tokens: rows * (TOKENS + ROOM),
            max_rows: TOKENS.max(rows),
            threads: 1,
        };
        let sequences = Sequences::new(&model(millions), options).expect("memory");
        let mut growing = Self { sequences, ids: Vec::new(), grown: 0 };
        growing.begin(rows);
        growing
    }

    fn begin(&mut self, rows: usize) {
        for id in self.ids.drain(..) {
            self.sequences.remove(id).expect("it is there");
        }
        let tokens = [TokenId(7); TOKENS];
        for _ in 0..rows {
            let sequence = self.sequences.add().expect("a place");
            self.sequences
                .pass(&[Stretch { sequence, tokens: &tokens, wants_logits: false }])
                .expect("room");
            self.ids.push(sequence);
        }
        self.grown = 0;
    }

    /// One more token of each, in passes of so many rows.
    fn grow(&mut self, rows_a_pass: usize) {
        let tokens = [TokenId(3)];
        let next = |&sequence| Stretch { sequence, tokens: &tokens, wants_logits: true };
        let stretches: Vec<Stretch<'_>> = self.ids.iter().map(next).collect();
        for stretches in stretches.chunks(rows_a_pass) {
            self.sequences.pass(stretches).expect("room");
        }
        self.grown += 1;
    }
}

fn run(bencher: Bencher<'_, '_>, case: (usize, usize), rows_a_pass: usize) {
    let mut growing = Growing::new(case);
    bencher.bench_local(|| {
        if growing.grown == ROOM {
            // Rare, and the same for both.
            growing.begin(case.1);
        }
        growing.grow(rows_a_pass);
    });
}

#[divan::bench(args = CASES, sample_count = 20, sample_size = 1)]
fn together(bencher: Bencher<'_, '_>, case: (usize, usize)) {
    run(bencher, case, case.1);
}

#[divan::bench(args = CASES, sample_count = 20, sample_size = 1)]
fn apart(bencher: Bencher<'_, '_>, case: (usize, usize)) {
    run(bencher, case, 1);
}

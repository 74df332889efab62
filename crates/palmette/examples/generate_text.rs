//! Text from a model of your own under a grammar: sampling, streaming, stop strings, forced tokens.
//!
//! `cargo run --release -p palmette --example generate_text`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;
use std::io::Write as _;
use std::ops::ControlFlow;

use palmette::{
    DecodeError, LogitsSource, Sampler, SamplerOptions, TokenId, Vocabulary, WriteOptions,
};

/// Stands for a language model: token pairs of a text, counted.
struct Bigrams {
    counts: Vec<std::collections::HashMap<TokenId, f32>>,
    last: TokenId,
    row: Vec<f32>,
    passes: usize,
}

impl Bigrams {
    fn learn(tokens: &[TokenId], num_tokens: usize) -> Self {
        let mut counts = vec![std::collections::HashMap::new(); num_tokens];
        for pair in tokens.windows(2) {
            *counts[pair[0].index()].entry(pair[1]).or_insert(0.0) += 2.0;
        }
        Self { counts, last: tokens[0], row: vec![0.0; num_tokens], passes: 0 }
    }
}

impl LogitsSource for Bigrams {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.row.len()
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        self.append(&[self.last])
    }

    fn next_logits(&mut self, _: &[u32], tokens: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.append(tokens)
    }

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.row)
    }

    /// One pass, however many tokens: those that the grammar forced come along with the chosen one.
    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.passes += 1;
        self.last = *tokens.last().expect("at least one token");
        self.row.fill(0.0);
        for (&next, &count) in &self.counts[self.last.index()] {
            self.row[next.index()] = count;
        }
        Ok(&self.row)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let tokens = Vocabulary::encoding("o200k_base")?;
    let corpus = r#"{"name": "a red tent", "tags": ["tent", "red"], "price": 12}
{"name": "a green mat", "tags": ["mat", "green"], "price": 30}"#;
    let mut model = Bigrams::learn(&tokens.encode(corpus)?, tokens.num_tokens());
    let schema = r#"{"type": "object", "additionalProperties": false, "required": ["name", "tags"],
        "properties": {
            "name": {"type": "string", "pattern": "^a (red|green) (tent|mat)$"},
            "tags": {"type": "array", "items": {"enum": ["tent", "red", "mat", "green"]}, "maxItems": 3}
        }}"#;
    let grammar = tokens.json_schema(schema)?;
    let options = SamplerOptions { temperature: 0.8, top_p: 0.95, seed: 7, ..Default::default() };
    let mut sampler = Sampler::new(options)?;
    let written = grammar.write(&mut model, &mut sampler, WriteOptions::new(200), |bytes| {
        print!("{}", String::from_utf8_lossy(bytes));
        let _ = std::io::stdout().flush();
        ControlFlow::Continue(())
    })?;
    println!(
        "\n{:?}, {} tokens, {} of them forced, {} passes",
        written.finish,
        written.tokens.len(),
        written.forced,
        written.passes
    );
    assert!(written.passes + written.forced <= written.tokens.len() + 1);

    // The same seed writes the same text; a stop string ends it before.
    let stop_strings = vec!["\"tags\"".to_owned()];
    let options = WriteOptions { stop_strings, ..WriteOptions::new(200) };
    let mut again = Sampler::new(*sampler.options())?;
    let stopped = grammar.write(&mut model, &mut again, options, |_| ControlFlow::Continue(()))?;
    println!(
        "{:?} before {:?}: {}",
        stopped.finish,
        stopped.stop_string,
        String::from_utf8_lossy(&stopped.bytes)
    );
    assert!(written.bytes.starts_with(&stopped.bytes));
    Ok(())
}

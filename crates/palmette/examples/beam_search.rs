//! Beam search with logits of your own, over a catalog and over a grammar alike.
//!
//! `cargo run --release -p palmette --example beam_search`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;
use std::sync::Arc;

use palmette::{Catalog, DecodeError, LogitsSource, TokenId, Vocabulary, best_sequences};

/// Stands for a model over 16 tokens: it likes tokens near the last one.
struct Neighbours {
    /// The last token of each beam.
    last: Vec<u32>,
    rows: Vec<f32>,
}

const NUM_TOKENS: usize = 16;

impl Neighbours {
    fn compute(&mut self) -> &[f32] {
        let row = |&last: &u32| (0..NUM_TOKENS as u32).map(move |t| -(t.abs_diff(last) as f32));
        self.rows = self.last.iter().flat_map(row).collect();
        &self.rows
    }
}

impl LogitsSource for Neighbours {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        NUM_TOKENS
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        self.last = vec![5];
        Ok(self.compute())
    }

    fn next_logits(&mut self, _: &[u32], tokens: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.last = tokens.iter().map(|token| token.0).collect();
        Ok(self.compute())
    }

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.rows)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let mut model = Neighbours { last: Vec::new(), rows: Vec::new() };

    // Items of two codes: level 0 is spelled by tokens 0 to 7, level 1 by 8 to 15.
    let shop = Catalog::from_items([("far", [0, 7]), ("near", [5, 0]), ("next", [6, 1])])?;
    let items = Arc::new(shop).constraint([0..8, 8..16], NUM_TOKENS)?;
    let found = best_sequences(&items, &mut model, 3, 8)?;
    println!("items {found:?}");
    let tokens = |tokens: &[u32]| tokens.iter().copied().map(TokenId).collect::<Vec<_>>();
    let sequences: Vec<_> = found.into_iter().map(|found| found.tokens).collect();
    assert_eq!(sequences, [[5, 8], [6, 9], [0, 15]].map(|found| tokens(&found)));

    // The same search over a grammar. A text is a result where it is whole, with the end token (15)
    // and without.
    let mut texts: Vec<Option<&str>> =
        "abcdefghijklmno".split("").filter(|t| !t.is_empty()).map(Some).collect();
    texts.push(None);
    let vocabulary = Vocabulary::from_tokens(texts, [TokenId(15)])?;
    let grammar = vocabulary.regex("f(gh?|e)?")?;
    let found = best_sequences(grammar.constraint(), &mut model, 3, 8)?;
    println!("texts {found:?}");
    let sequences: Vec<_> = found.into_iter().map(|found| found.tokens).collect();
    assert_eq!(sequences, [&[5][..], &[5, 4], &[5, 6]].map(tokens));
    Ok(())
}

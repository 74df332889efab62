//! Beam search with logits of your own, over a catalog and over a grammar alike.
//!
//! `cargo run --release -p palmette --example beam_search`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette::{
    AnyConstraint, BeamOptions, BeamSearch, Catalog, HostBackend, Item, LogitsSource, TokenId,
    Vocabulary,
};
use palmette_catalog::{CatalogConstraint, CodeTokens, LevelTokens};
use palmette_decode::DecodeError;

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
}

/// The best sequences of any constraint, best first.
fn best(constraint: &dyn AnyConstraint) -> Result<Vec<(Vec<u32>, f32)>, DecodeError> {
    let options = BeamOptions { width: NonZeroUsize::new(3).expect("positive"), max_tokens: 8 };
    let mut search = BeamSearch::<dyn AnyConstraint>::new(options);
    let model = Neighbours { last: Vec::new(), rows: Vec::new() };
    search.run(constraint, &mut HostBackend::new(model))?;
    let plain = |tokens: &[TokenId]| tokens.iter().map(|token| token.0).collect();
    Ok(search.results().map(|found| (plain(found.tokens), found.score)).collect())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Items of two codes: level 0 is spelled by tokens 0 to 7, level 1 by 8 to 15.
    let item = |id: &str, codes: [u32; 2]| Item {
        id: id.to_owned(),
        codes: codes.into(),
        attributes: Default::default(),
    };
    let shop = Catalog::build([item("far", [0, 7]), item("near", [5, 0]), item("next", [6, 1])])?;
    let level = |level: u32| LevelTokens { first_token: 8 * level, num_codes: 8 };
    let spelled = CodeTokens::new((0..2).map(level).collect(), NUM_TOKENS)?;
    let items: Arc<dyn AnyConstraint> =
        Arc::new(CatalogConstraint::new(Arc::clone(shop.inner()), spelled)?);
    let found = best(&*items)?;
    println!("items {found:?}");
    let sequences: Vec<_> = found.into_iter().map(|(tokens, _)| tokens).collect();
    assert_eq!(sequences, [[5, 8], [6, 9], [0, 15]]);

    // The same search over a grammar. A text is a result where it is whole, with the end token (15) and without.
    let mut texts: Vec<Option<&str>> =
        "abcdefghijklmno".split("").filter(|t| !t.is_empty()).map(Some).collect();
    texts.push(None);
    let tokens = Vocabulary::from_tokens(texts, [TokenId(15)])?;
    let grammar = tokens.regex("f(gh?|e)?")?;
    let found = best(grammar.constraint())?;
    println!("texts {found:?}");
    let sequences: Vec<_> = found.into_iter().map(|(tokens, _)| tokens).collect();
    assert_eq!(sequences, [vec![5], vec![5, 4], vec![5, 6]]);
    Ok(())
}

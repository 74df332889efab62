//! The way from the text of a JSON Schema to its first mask, for `lab/timings/first_mask_walk.py`,
//! which counts what it passes.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse};
use palmette_grammar::{Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer};

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).expect("the path of a schema");
    let schema = std::fs::read_to_string(path)?;
    let longer = ["{\"", "\": ", "\", \"", "\"}", "name", "tag", "true", "null", "10", ", ", "[]"];
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let texts = bytes.chain(longer.map(|text| Some(text.as_bytes().to_vec()))).chain([None]);
    let end = TokenId(256 + longer.len() as u32);
    let vocabulary = Arc::new(Vocabulary::new(texts, [end])?);
    let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
    schema_to_first_mask(&schema, Arc::new(PreparedVocabulary::new(vocabulary)), &mut row)?;
    anyhow::ensure!(mask::iter(&row).next().is_some(), "the first mask allows no token");
    Ok(())
}

/// The part that is counted.
#[inline(never)]
fn schema_to_first_mask(
    schema: &str,
    vocabulary: Arc<PreparedVocabulary>,
    row: &mut [u32],
) -> anyhow::Result<()> {
    let grammar = Arc::new(parse(schema, &JsonSchemaOptions::default())?);
    let recognizer = Recognizer::new(grammar, &Default::default(), &mut Budget::unlimited())?;
    let constraint = GrammarConstraint::new(Arc::new(recognizer), vocabulary);
    let (state, mut scratch) = (constraint.start(), GrammarScratch::default());
    Ok(constraint.fill_mask(&state, &mut scratch, row)?)
}

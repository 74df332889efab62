//! Models that share masks of grammars through a folder.

use std::time::Duration;

use palmette_core::Constraint;
use palmette_grammar::{GrammarScratch, GrammarSource};
use palmette_text::TextModelOptions;

use super::tiny::{model, model_of};

#[test]
fn models_over_the_same_vocabulary_share_masks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("masks");
    let options = TextModelOptions { grammar_folder: Some(path.clone()), ..Default::default() };
    let source = GrammarSource::in_language("regex", "(ab)+c{2,5}".to_owned(), "").unwrap();
    let [first, second, other] = [0, 0, 3].map(|extra| model_of(extra, &options).unwrap());
    let mut counted = Vec::new();
    for model in [&first, &second, &other] {
        let grammar = model.compile(&source).unwrap();
        let folder = model.grammars().folder().unwrap();
        assert!(folder.wait(Duration::from_secs(120)));
        let found = folder.statistics();
        counted.push((found.opened, found.saved, found.refused));
        let row = |constraint: &palmette_grammar::GrammarConstraint| {
            let mut row = vec![0; palmette_core::mask::num_words(constraint.num_tokens())];
            let start = constraint.start();
            constraint.fill_mask(&start, &mut GrammarScratch::default(), &mut row).unwrap();
            row
        };
        let alone = self::model().compile(&source).unwrap();
        assert_eq!(row(&grammar.constraint), row(&alone.constraint));
    }
    // Logits that no token has do not make another vocabulary.
    assert_eq!(counted, [(0, 1, 0), (1, 0, 0), (1, 0, 0)]);
    assert!(model().grammars().folder().is_none());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file/masks");
    std::fs::write(folder.path().join("file"), "").unwrap();
    let options = TextModelOptions { grammar_folder: Some(path.clone()), ..Default::default() };
    let error = model_of(0, &options).map(drop).unwrap_err().to_string();
    assert!(
        error.contains(path.to_str().unwrap()) && error.contains("cannot be shared"),
        "{error}"
    );
}

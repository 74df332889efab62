//! Masks of real languages with a real vocabulary against a walk over all its tokens.

use std::sync::Arc;

use palmette_core::{Constraint, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
    frontends::lark::{LarkOptions, parse},
};
use palmette_testkit::data;

/// So many places of each text are looked at.
const NUM_PLACES: usize = 48;

fn check(vocabulary: &Arc<PreparedVocabulary>, source: &str, options: &LarkOptions, text: &str) {
    let grammar = parse(source, options).expect("a grammar");
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let recognizer = Arc::new(recognizer.expect("a recognizer"));
    let constraint = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(vocabulary));
    let walked = GrammarConstraint::by_walking(recognizer, Arc::clone(vocabulary));
    let mut scratch = GrammarScratch::default();
    let mut state = constraint.start();
    let num_words = mask::num_words(constraint.num_tokens());
    let (mut row, mut expected) = (vec![0; num_words], vec![0; num_words]);
    let every = (text.len() / NUM_PLACES).max(1);
    for (at, byte) in text.bytes().enumerate() {
        // Not the same place of each line.
        if at % every == at / every % every {
            constraint.fill_mask(&state, &mut scratch, &mut row).expect("within limits");
            walked.fill_mask(&state, &mut scratch, &mut expected).expect("within limits");
            let differing: Vec<_> = row.iter().zip(&expected).map(|(a, b)| a ^ b).collect();
            let differing: Vec<_> = mask::iter(&differing)
                .take(10)
                .map(|token| {
                    let text = String::from_utf8_lossy(vocabulary.vocabulary().text(token));
                    (text.into_owned(), mask::contains(&row, token))
                })
                .collect();
            assert_eq!(
                differing,
                [],
                "tokens, and whether they are allowed, after {:?}",
                &text[..at]
            );
            assert!(mask::count(&row) > 0, "after {:?}", &text[..at]);
        }
        constraint.commit_bytes(&mut state, &[byte], &mut scratch).expect("the text is right");
    }
}

#[test]
fn masks_along_real_texts_are_those_of_a_walk() {
    let test = "masks_along_real_texts_are_those_of_a_walk";
    let vocabulary = palmette_vocabulary::load("o200k_base").expect("it is built in").vocabulary;
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    let languages = [
        ("lark/c.lark", "start", include_str!("../../../grammar-syntax/tests/texts/area.c")),
        ("lark/go.lark", "start", include_str!("../../../grammar-syntax/tests/texts/queue.go")),
        (
            "lark/java.lark",
            "start",
            include_str!("../../../grammar-syntax/tests/texts/Account.java"),
        ),
        ("lark/sql.lark", "start", include_str!("../../../grammar-syntax/tests/texts/report.sql")),
    ];
    for (file, start, text) in languages {
        let Some(source) = data::text(test, file) else { return };
        check(&vocabulary, &source, &LarkOptions::from_rule(start), text);
    }
    let Some(source) = data::text(test, "python.lark") else { return };
    let options = LarkOptions::from_rule("file_input");
    check(
        &vocabulary,
        &source,
        &options,
        include_str!("../../../grammar-syntax/tests/texts/values.py"),
    );
}

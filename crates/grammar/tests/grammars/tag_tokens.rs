//! Structural tags whose fixed texts are tokens of the vocabulary.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::structural_tag::{StructuralTagOptions, parse};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};

/// Names of special tokens within a text are those tokens, or the characters.
#[test]
fn names_in_fixed_texts_are_tokens_where_the_vocabulary_has_them() {
    let texts = [Some("<"), Some("call"), Some(">"), Some("{}"), Some("/"), None, None, None];
    let names =
        [(5, "<call>"), (6, "</call>")].map(|(token, name)| (TokenId(token), name.to_owned()));
    let vocabulary = Vocabulary::new(texts, [TokenId(7)]).unwrap().with_names(names).unwrap();
    let tag = parse(
        r#"{"type": "triggered_tags", "triggers": ["<call>"], "at_least_one": true,
        "tags": [{"begin": "<call>", "content": {"type": "json_schema", "json_schema": {"type": "object"}}, "end": "</call>"}]}"#,
        &StructuralTagOptions::default(),
    )
    .unwrap();
    let made = tag.with_tokens_of(&vocabulary).unwrap();
    let recognizer =
        Recognizer::new(Arc::new(made), &RecognizerLimits::default(), &mut Budget::unlimited())
            .unwrap();
    let constraint = GrammarConstraint::new(
        Arc::new(recognizer),
        Arc::new(PreparedVocabulary::new(Arc::new(vocabulary))),
    );
    let allowed = |tokens: &[u32]| {
        let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
        for &token in tokens {
            constraint.commit(&mut state, TokenId(token), &mut scratch).unwrap();
        }
        let mut row = vec![0; 1];
        constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
        mask::iter(&row).map(|token| token.0).collect::<Vec<_>>()
    };
    assert_eq!(allowed(&[]), [0, 5]);
    assert_eq!(allowed(&[5]), [3]);
    assert_eq!(allowed(&[0, 1, 2]), [3]);
    assert_eq!(allowed(&[5, 3]), [0, 6]);
    assert_eq!(allowed(&[5, 3, 6]), [0, 1, 2, 3, 4, 5, 7]);
}

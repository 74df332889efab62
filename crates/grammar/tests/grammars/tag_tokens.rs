//! Structural tags whose fixed texts are tokens of the vocabulary.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::structural_tag::{StructuralTagOptions, parse};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};

/// The tokens that a tag allows after some, over a vocabulary of texts, of special tokens by name,
/// and of an end, in this order.
struct Allowing(GrammarConstraint);

impl Allowing {
    fn new(tag: &str, texts: &[&str], names: &[&str]) -> Self {
        let specials = names.iter().map(|_| None).chain([None]);
        let tokens: Vec<Option<&str>> = texts.iter().copied().map(Some).chain(specials).collect();
        let end = TokenId(tokens.len() as u32 - 1);
        let numbered = names.iter().zip(texts.len() as u32..);
        let names = numbered.map(|(name, token)| (TokenId(token), (*name).to_owned()));
        let vocabulary = Vocabulary::new(tokens, [end]).unwrap().with_names(names).unwrap();
        let tag = parse(tag, &StructuralTagOptions::default()).unwrap();
        let made = Arc::new(tag.with_tokens_of(&vocabulary).unwrap());
        let limits = RecognizerLimits::default();
        let recognizer = Recognizer::new(made, &limits, &mut Budget::unlimited()).unwrap();
        let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        Self(GrammarConstraint::new(Arc::new(recognizer), vocabulary))
    }

    fn after(&self, tokens: &[u32]) -> Vec<u32> {
        let (mut state, mut scratch) = (self.0.start(), GrammarScratch::default());
        for &token in tokens {
            self.0.commit(&mut state, TokenId(token), &mut scratch).unwrap();
        }
        let mut row = vec![0; 1];
        self.0.fill_mask(&state, &mut scratch, &mut row).unwrap();
        mask::iter(&row).map(|token| token.0).collect::<Vec<_>>()
    }
}

/// Names of special tokens within a text are those tokens, or the characters.
#[test]
fn names_in_fixed_texts_are_tokens_where_the_vocabulary_has_them() {
    let tag = r#"{"type": "triggered_tags", "triggers": ["<call>"], "at_least_one": true,
        "tags": [{"begin": "<call>", "content": {"type": "json_schema", "json_schema": {"type": "object"}}, "end": "</call>"}]}"#;
    let allowed = Allowing::new(tag, &["<", "call", ">", "{}", "/"], &["<call>", "</call>"]);
    assert_eq!(allowed.after(&[]), [0, 5]);
    assert_eq!(allowed.after(&[5]), [3]);
    assert_eq!(allowed.after(&[0, 1, 2]), [3]);
    assert_eq!(allowed.after(&[5, 3]), [0, 6]);
    assert_eq!(allowed.after(&[5, 3, 6]), [0, 1, 2, 3, 4, 5, 7]);
}

/// Tags among tokens: one begins where its token stands, and any tokens in it go to its end.
#[test]
fn tokens_trigger_tags() {
    let tag = |more: &str| {
        format!(
            r#"{{"type": "token_triggered_tags", "trigger_tokens": ["<call>"], "exclude_tokens": ["<x>"], {more}
            "tags": [{{"begin": {{"type": "token", "token": "<call>"}}, "content": {{"type": "any_tokens"}},
                "end": {{"type": "token", "token": "</call>"}}}}]}}"#
        )
    };
    let (texts, names) = (["a", "b"], ["<call>", "</call>", "<x>"]);
    let allowed = Allowing::new(&tag(""), &texts, &names);
    assert_eq!(allowed.after(&[]), [0, 1, 2, 3, 5]);
    // Any tokens but the vocabulary's end.
    assert_eq!(allowed.after(&[0, 2]), [0, 1, 2, 3, 4]);
    assert_eq!(allowed.after(&[0, 2, 1, 3]), [0, 1, 2, 3, 5]);
    let one =
        Allowing::new(&tag(r#""at_least_one": true, "stop_after_first": true,"#), &texts, &names);
    assert_eq!(one.after(&[]), [2]);
    assert_eq!(one.after(&[2, 3]), [5]);
    let dispatch = r#"{"type": "token_dispatch", "loop": false, "rules": [["<call>", {"type": "const_string", "value": "ab"}]]}"#;
    let dispatch = Allowing::new(dispatch, &texts, &names);
    assert_eq!(dispatch.after(&[]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(dispatch.after(&[1, 2]), [0]);
    assert_eq!(dispatch.after(&[1, 2, 0, 1]), [5]);
    let text_begins = r#"{"type": "token_triggered_tags", "trigger_tokens": ["<call>"],
        "tags": [{"begin": "<call>", "content": {"type": "any_tokens"}, "end": "x"}]}"#;
    let error = parse(text_begins, &StructuralTagOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no token of \"trigger_tokens\" begins this tag"), "{error}");
}

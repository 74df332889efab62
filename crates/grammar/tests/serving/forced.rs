//! Forced tokens against the masks.

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{GrammarConstraint, GrammarScratch, PreparedVocabulary};
use std::sync::Arc;

use super::{constraints, filled, lark, recognizer, states, vocabulary};

#[test]
fn forced_tokens_are_those_that_stand_alone_in_their_masks() {
    let vocabulary = vocabulary();
    let mut longest = 0;
    for constraint in constraints(&vocabulary) {
        for seed in 0..8 {
            for state in states(&constraint, seed, 12) {
                let mut scratch = GrammarScratch::default();
                let forced = constraint.forced_tokens(&state, 5, &mut scratch).unwrap();
                let (mut at, mut expected) = (state.clone(), Vec::new());
                while expected.len() < 5 && mask::count(&filled(&constraint, &at)) == 1 {
                    let only = mask::iter(&filled(&constraint, &at)).next().unwrap();
                    constraint.commit(&mut at, only, &mut scratch).unwrap();
                    expected.push(only);
                }
                assert_eq!(forced, expected);
                longest = longest.max(forced.len());
            }
        }
    }
    assert!(longest > 0, "no walk came by a forced token");
}

#[test]
fn a_run_of_forced_tokens_ends_with_the_end() {
    let tokens = [Some("ab"), Some("c"), Some("x"), None];
    let vocabulary = Vocabulary::new(tokens, [TokenId(3)]).unwrap();
    let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let constraint = GrammarConstraint::new(recognizer(lark("start: \"abcab\"")), vocabulary);
    let forced = |limit| {
        constraint
            .forced_tokens(&constraint.start(), limit, &mut GrammarScratch::default())
            .unwrap()
    };
    assert_eq!(forced(9), [0, 1, 0, 3].map(TokenId));
    assert_eq!(forced(2), [0, 1].map(TokenId));
    assert_eq!(forced(0), []);
}

//! Masks under budgets: exact, or an error.

use std::sync::atomic::{AtomicBool, Ordering};

use palmette_core::{Constraint, mask};
use palmette_grammar::{GrammarScratch, MaskBudget};

use super::{constraints, filled, states, vocabulary, walking};

#[test]
fn whatever_the_budget_a_mask_is_exact_or_an_error() {
    let vocabulary = vocabulary();
    let words = mask::num_words(vocabulary.vocabulary().num_tokens());
    let (mut exact, mut errors) = (0, 0);
    for units in [0, 1, 40, 400, 4000] {
        for work in [
            MaskBudget { explore: units, walk: 0, ..MaskBudget::unlimited() },
            MaskBudget { explore: 0, walk: units, ..MaskBudget::unlimited() },
            MaskBudget { explore: units, walk: units, ..MaskBudget::unlimited() },
        ] {
            for constraint in constraints(&vocabulary) {
                let slow = walking(&constraint, &vocabulary);
                let mut scratch = GrammarScratch::default();
                for state in states(&slow, units, 10) {
                    let mut row = vec![!0; words];
                    match constraint.fill_mask_within(&state, &mut scratch, &mut row, &work) {
                        Ok(()) => {
                            assert_eq!(row, filled(&slow, &state));
                            exact += 1;
                        }
                        Err(error) => {
                            assert!(error.to_string().contains("steps is used up"), "{error}");
                            assert_eq!(row, vec![0; words]);
                            errors += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(exact > 100 && errors > 100, "{exact} exact, {errors} errors");
}

#[test]
fn work_that_is_called_off_is_an_error_until_it_is_not() {
    let vocabulary = vocabulary();
    for constraint in constraints(&vocabulary) {
        let slow = walking(&constraint, &vocabulary);
        let cancelled = AtomicBool::new(true);
        let work = MaskBudget { cancelled: Some(&cancelled), ..MaskBudget::unlimited() };
        let mut row = vec![!0; mask::num_words(constraint.num_tokens())];
        let mut scratch = GrammarScratch::default();
        let start = constraint.start();
        for made in [&constraint, &slow] {
            let error = made.fill_mask_within(&start, &mut scratch, &mut row, &work).unwrap_err();
            assert!(error.is_cancelled(), "{error}");
            assert_eq!(mask::count(&row), 0);
        }
        cancelled.store(false, Ordering::Relaxed);
        constraint.fill_mask_within(&start, &mut scratch, &mut row, &work).unwrap();
        assert_eq!(row, filled(&slow, &start));
    }
}

#[test]
fn a_limit_is_an_error_of_whatever_was_asked() {
    use std::sync::Arc;

    use palmette_core::{AnyConstraint, AnyScratch, TokenId, Vocabulary};
    use palmette_grammar::{
        Budget, GrammarConstraint, PreparedVocabulary, Recognizer, RecognizerLimits,
    };

    let mut limits = RecognizerLimits::default();
    limits.lexer.max_states = 12;
    let grammar = super::lark("start: /(a|b)*a(a|b){30}(?<!c)/ | \"c\"");
    let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap();
    let tokens = [Some("c"), Some("a"), Some("abaabbabaabababbab"), None];
    let vocabulary = Vocabulary::new(tokens, [TokenId(3)]).unwrap();
    let slices = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let made = Arc::new(made);
    let constraint = GrammarConstraint::by_walking(Arc::clone(&made), Arc::clone(&slices));
    let (start, mut scratch) = (constraint.start(), GrammarScratch::default());
    let mut row = [0];
    // Masks of the automaton need no states of the lexer but those of the text.
    GrammarConstraint::new(made, slices).fill_mask(&start, &mut scratch, &mut row).unwrap();
    assert_eq!(row, [0b111]);
    let mut ended = start.clone();
    constraint.commit(&mut ended, TokenId(0), &mut scratch).unwrap();

    let check = |why: String, what: &str| {
        assert!(why.contains("max_states = 12"), "{what}: {why}");
    };
    let mut row = [u32::MAX];
    check(constraint.fill_mask(&start, &mut scratch, &mut row).unwrap_err().to_string(), "mask");
    assert_eq!(row, [0], "a mask that failed denies all");
    let visited = constraint.successors(&start, &mut scratch, |_, _| {});
    check(visited.unwrap_err().to_string(), "successors");
    let mut rows = [u32::MAX; 2];
    let filled = constraint.fill_masks(&[ended.clone(), start.clone()], &mut scratch, &mut rows);
    check(filled.unwrap_err().to_string(), "masks, whose first row is well");
    assert_eq!(rows, [0; 2], "masks of which one failed deny all");
    let mut moved = start.clone();
    let refused = constraint.commit(&mut moved, TokenId(2), &mut scratch).unwrap_err();
    check(refused.to_string(), "commit");
    assert_eq!(moved, start, "a failed commit leaves the state");

    let any: &dyn AnyConstraint = &constraint;
    let (start, mut erased) = (any.start(), AnyScratch::default());
    check(any.fill_mask(&start, &mut erased, &mut row).unwrap_err().to_string(), "erased mask");
    let refused = any.commit(&mut start.clone(), TokenId(2), &mut erased).unwrap_err();
    check(refused.to_string(), "erased commit");

    constraint.commit(&mut ended, TokenId(3), &mut scratch).unwrap();
    constraint.fill_mask(&ended, &mut scratch, &mut row).unwrap();
}

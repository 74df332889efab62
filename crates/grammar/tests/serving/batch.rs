//! Batches against rows one by one.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    BatchFiller, BatchRow, GrammarConstraint, MaskBudget, PreparedVocabulary, RowErrorKind,
};

use super::{constraints, filled, recognizer, schema, states, vocabulary, walking};

fn filler(threads: usize) -> BatchFiller {
    BatchFiller::new(NonZeroUsize::new(threads).unwrap()).unwrap()
}

#[test]
fn a_batch_is_its_rows_whatever_the_number_of_threads() {
    let vocabulary = vocabulary();
    let words = 3 + mask::num_words(vocabulary.vocabulary().num_tokens());
    for threads in [1, 2, 5] {
        // New constraints each time, walked by the definition: the threads find everything out
        // together.
        let constraints = constraints(&vocabulary);
        let slow: Vec<_> = constraints.iter().map(|made| walking(made, &vocabulary)).collect();
        let walked: Vec<_> =
            slow.iter().enumerate().map(|(seed, made)| states(made, seed as u64, 12)).collect();
        let (mut rows, mut expected) = (Vec::new(), Vec::new());
        for step in 0..12 {
            for (place, constraint) in constraints.iter().enumerate() {
                if let Some(state) = walked[place].get(step) {
                    rows.push(BatchRow::new(constraint, state));
                    expected.extend(filled(&slow[place], state));
                    expected.extend([0; 3]);
                } else {
                    rows.push(BatchRow::Untouched);
                    expected.extend(vec![7; words]);
                }
            }
        }
        let mut filler = filler(threads);
        assert_eq!(filler.num_threads(), threads);
        for _ in 0..2 {
            let mut masks = vec![7; rows.len() * words];
            let failed = filler.fill(&rows, words, &mut masks, &MaskBudget::unlimited());
            assert!(failed.is_empty(), "{failed:?}");
            assert!(masks == expected, "with {threads} threads");
        }
    }
}

/// Rows of different widths, in any order.
#[test]
fn rows_may_lie_anywhere() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let words = mask::num_words(vocabulary.vocabulary().num_tokens());
    let states: Vec<_> = constraints.iter().map(Constraint::start).collect();
    let mut masks: Vec<_> = (0..states.len()).map(|row| vec![7; words + row % 3]).collect();
    let each = constraints.iter().zip(&states).zip(masks.iter_mut().rev());
    let each: Vec<_> =
        each.map(|((it, state), row)| (BatchRow::new(it, state), &mut row[..])).collect();
    let failed = filler(2).fill_each(each, &MaskBudget::unlimited());
    assert!(failed.is_empty(), "{failed:?}");
    for ((constraint, state), mask) in constraints.iter().zip(&states).zip(masks.iter().rev()) {
        let (mask, past) = mask.split_at(words);
        assert_eq!(mask, filled(constraint, state));
        assert!(past.iter().all(|&word| word == 0));
    }
}

#[test]
fn a_row_that_fails_is_reported_and_the_others_are_filled() {
    let vocabulary = vocabulary();
    let small = Vocabulary::new([Some("{"), Some("}"), None], [TokenId(2)]).unwrap();
    let small = Arc::new(PreparedVocabulary::new(Arc::new(small)));
    let grammar = || recognizer(schema(r#"{"type": "object", "maxProperties": 0}"#));
    let narrow = GrammarConstraint::new(grammar(), small);
    let wide = GrammarConstraint::new(grammar(), vocabulary);
    let (a, b) = (narrow.start(), wide.start());
    let rows = [&narrow, &wide, &narrow, &wide].map(|constraint| {
        BatchRow::new(constraint, if constraint.num_tokens() == 3 { &a } else { &b })
    });
    let mut masks = [7; 4];
    let failed = filler(2).fill(&rows, 1, &mut masks, &MaskBudget::unlimited());
    assert_eq!(masks, [0b01, 0, 0b01, 0]);
    let places: Vec<usize> = failed.iter().map(|error| error.row).collect();
    assert_eq!(places, [1, 3]);
    assert!(matches!(
        failed[0].kind,
        RowErrorKind::Narrow { num_tokens: 282, needed: 9, given: 1 }
    ));
    let message = failed[1].to_string();
    assert!(message.contains("row 3") && message.contains("9 words"), "{message}");
}

#[test]
fn a_limit_on_the_work_is_an_error_of_its_row() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let words = mask::num_words(vocabulary.vocabulary().num_tokens());
    let (warm, cold) = (&constraints[0], &constraints[1]);
    let (known, new) = (warm.start(), cold.start());
    let expected = filled(warm, &known);
    let work = MaskBudget { explore: 3, walk: 3, ..MaskBudget::unlimited() };
    let rows = [BatchRow::new(cold, &new), BatchRow::new(warm, &known)];
    let mut masks = vec![!0; 2 * words];
    let failed = filler(2).fill(&rows, words, &mut masks, &work);
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("row 0") && failed[0].to_string().contains("3 steps"));
    assert_eq!(masks[..words], vec![0; words]);
    assert_eq!(masks[words..], expected);
}

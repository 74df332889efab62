//! Masks where there is little memory for what is known of them: exact, whatever the limit.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::mask;
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, MaskBudget, PrecomputeLimits, PrecomputeStop,
    engine::masks::MaskAutomaton,
};

use palmette_grammar::RecognizerScratch;

use super::{constraints, filled, lark, recognizer, states, vocabulary, walking};

/// Texts of which many stacks are left at each place, and masks that are unions.
const AMBIGUOUS: &str = "start: e\ne: e \"+\" e | e \"-\" e | NAME | f | g | \"(\" e \")\"\n\
    f: NAME \"(\" e \")\"\ng: NAME \"(\" NAME (\",\" NAME)* \")\"\nNAME: /[a-z]+/";

#[test]
fn masks_are_exact_however_little_memory_there_is() {
    let vocabulary = vocabulary();
    let ambiguous = GrammarConstraint::new(recognizer(lark(AMBIGUOUS)), Arc::clone(&vocabulary));
    for constraint in constraints(&vocabulary).into_iter().chain([ambiguous]) {
        let slow = walking(&constraint, &vocabulary);
        for max_bytes in [0, 1, 200, 400, 1000, 5000] {
            let tight = constraint.clone().with_mask_bytes(max_bytes);
            let mut scratch = GrammarScratch::default();
            for seed in 0..5 {
                for state in states(&slow, seed, 12) {
                    let expected = filled(&slow, &state);
                    assert_eq!(filled(&tight, &state), expected);
                    assert_eq!(tight.mask(&state, &mut scratch).unwrap().words(), expected);
                }
            }
        }
    }
}

/// What is known is dropped again and again, by questions, while it is found out ahead.
#[test]
fn masks_are_exact_beside_a_completion_however_little_memory_there_is() {
    let vocabulary = vocabulary();
    for constraint in constraints(&vocabulary) {
        let slow = walking(&constraint, &vocabulary);
        for max_bytes in [2_000, 20_000, 60_000, 200_000] {
            let tight = constraint.clone().with_mask_bytes(max_bytes);
            for seed in 0..8 {
                let running = tight.precompute_in_background(PrecomputeLimits::default()).unwrap();
                for state in states(&slow, seed, 12) {
                    assert_eq!(filled(&tight, &state), filled(&slow, &state));
                }
                running.stop();
                running.join().unwrap();
            }
        }
    }
}

#[test]
fn a_mask_that_needs_more_than_there_is_is_refused_by_the_automaton_alone() {
    let vocabulary = vocabulary();
    // After an item that both take there are two stacks.
    let recognizer = recognizer(super::schema(
        r#"{"anyOf": [{"items": {"type": "integer"}}, {"items": {"enum": [1, "a"]}}]}"#,
    ));
    let tight = MaskAutomaton::with_max_bytes(Arc::clone(&vocabulary), 0);
    let mut row = vec![!0; mask::num_words(vocabulary.vocabulary().num_tokens())];
    let mut scratch = RecognizerScratch::default();
    let mut refused = 0;
    let mut position = recognizer.start().cloned();
    for byte in b"[1, " {
        let at = position.expect("a beginning of a text");
        if let Err(error) = tight.fill_mask(&recognizer, &at, &mut row) {
            assert!(error.to_string().contains("more than 0 bytes"), "{error}");
            assert_eq!(mask::count(&row), 0);
            refused += 1;
        }
        position = recognizer.advance(&at, *byte, &mut scratch).unwrap();
    }
    assert!(refused > 0, "some mask needs more than one node");
}

#[test]
fn a_completion_stops_before_it_pushes_out_what_it_found() {
    let vocabulary = vocabulary();
    let limits = PrecomputeLimits { bytes: usize::MAX, ..PrecomputeLimits::default() };
    let never = AtomicBool::new(false);
    for constraint in constraints(&vocabulary) {
        let whole = constraint.precompute(&limits, &never).unwrap();
        assert_eq!(whole.stopped, None);
        if whole.visited < 20 {
            continue;
        }
        let tight = constraint.clone().with_mask_bytes(12_000);
        let stopped = tight.precompute(&limits, &never).unwrap();
        assert_eq!(stopped.stopped, Some(PrecomputeStop::Bytes), "{stopped:?} of {whole:?}");
        assert!(stopped.visited > 0 && stopped.open > 0, "{stopped:?}");
        let none = MaskBudget { explore: 0, walk: 0, ..MaskBudget::unlimited() };
        let (start, mut scratch) = (states(&constraint, 0, 0).remove(0), GrammarScratch::default());
        let mut row = filled(&constraint, &start);
        tight.fill_mask_within(&start, &mut scratch, &mut row, &none).expect("known first");
        assert_eq!(row, filled(&constraint, &start));
    }
}

#[test]
fn a_completion_that_memory_ends_leaves_room_for_a_mask_more() {
    let vocabulary = vocabulary();
    let limits = PrecomputeLimits { bytes: usize::MAX, ..PrecomputeLimits::default() };
    let never = AtomicBool::new(false);
    let none = MaskBudget { explore: 0, walk: 0, ..MaskBudget::unlimited() };
    let mut num_asked = 0;
    for constraint in constraints(&vocabulary) {
        constraint.precompute(&limits, &never).unwrap();
        let Some(whole) = constraint.automaton().filter(|whole| whole.bytes > 40_000) else {
            continue;
        };
        let tight = constraint.clone().with_mask_bytes(whole.bytes);
        let stopped = tight.precompute(&limits, &never).unwrap();
        assert_eq!(stopped.stopped, Some(PrecomputeStop::Bytes), "{stopped:?}");
        let start = states(&constraint, 0, 0).remove(0);
        let mut scratch = GrammarScratch::default();
        let mut row = filled(&constraint, &start);
        let mut is_known =
            |state: &_| tight.fill_mask_within(state, &mut scratch, &mut row, &none).is_ok();
        assert!(is_known(&start));
        let mut asked = (1..9).flat_map(|seed| states(&constraint, seed, 12));
        if let Some(unknown) = asked.find(|state| !is_known(state)) {
            assert_eq!(filled(&tight, &unknown), filled(&constraint, &unknown));
            assert!(is_known(&start), "what was found ahead was dropped");
            num_asked += 1;
        }
    }
    assert!(num_asked > 0, "some grammar has masks that were not found");
}

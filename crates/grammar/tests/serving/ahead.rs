//! Completions change no answer, and leave less to be found out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use palmette_core::mask;
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, MaskBudget, PrecomputeLimits, PrecomputeStop,
};

use super::{constraints, filled, lark, recognizer, states, vocabulary, walking};

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn masks_are_known_after_a_completion_and_are_the_same() {
    let vocabulary = vocabulary();
    let words = mask::num_words(vocabulary.vocabulary().num_tokens());
    for (place, constraint) in constraints(&vocabulary).into_iter().enumerate() {
        let slow = walking(&constraint, &vocabulary);
        let limits = PrecomputeLimits { stack_depth: 6, ..PrecomputeLimits::default() };
        let done = constraint.precompute(&limits, &NEVER).unwrap();
        assert_eq!((done.open, done.stopped), (0, None));
        assert_eq!(done.visited > 3, constraint.automaton().is_some(), "{done:?}");
        let (mut known, mut all) = (0, 0);
        for seed in 0..10 {
            for state in states(&slow, seed, 15) {
                // Nothing can be found out without any work.
                let work = MaskBudget { explore: 0, walk: 0, ..MaskBudget::unlimited() };
                let (mut row, mut scratch) = (vec![!0; words], GrammarScratch::default());
                let warm = constraint.fill_mask_within(&state, &mut scratch, &mut row, &work);
                all += 1;
                if warm.is_ok() {
                    known += 1;
                    assert_eq!(row, filled(&slow, &state));
                }
                assert_eq!(filled(&constraint, &state), filled(&slow, &state));
            }
        }
        assert!(known * 10 >= all * 9, "grammar {place}: {known} of {all} masks were known");
    }
}

/// Keywords that could be names, comments, and brackets as deep as one likes.
const CONTEXTUAL: &str = r#"
start: stmt+
stmt: "if" e "{" stmt* "}" ("else" stmt)? | NAME "=" e ";"
e: e "+" t | t
t: NAME | /[0-9]+/ | "(" e ")" | "[" (e ("," e)*)? "]"
NAME: /[a-z_]+/
COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
%ignore COMMENT
%ignore /[ \n]+/
"#;

#[test]
fn no_mask_is_unknown_after_a_completion_of_contextual_lexemes() {
    let vocabulary = vocabulary();
    let constraint = GrammarConstraint::new(recognizer(lark(CONTEXTUAL)), Arc::clone(&vocabulary));
    assert!(constraint.recognizer().contexts().is_some(), "names and keywords compete");
    let slow = walking(&constraint, &vocabulary);
    let done = constraint.precompute(&PrecomputeLimits::default(), &NEVER).unwrap();
    assert!(done.is_complete && (done.open, done.stopped) == (0, None), "{done:?}");
    let found = constraint.automaton().expect("an automaton");
    for seed in 0..40 {
        for state in states(&slow, seed, 40) {
            assert_eq!(filled(&constraint, &state), filled(&slow, &state));
        }
    }
    assert_eq!(constraint.automaton().expect("as before").nodes, found.nodes);
    // Texts of others are examples, which may miss one.
    let free = GrammarConstraint::new(recognizer(lark("start: \"x\"+")), vocabulary);
    let done = free.precompute(&PrecomputeLimits::default(), &NEVER).unwrap();
    assert!(done.stopped.is_none() && !done.is_complete, "{done:?}");
}

#[test]
fn a_completion_stops_where_it_is_told() {
    let vocabulary = vocabulary();
    let make = || constraints(&vocabulary).swap_remove(1);
    let whole = make().precompute(&PrecomputeLimits::default(), &NEVER).unwrap();
    assert_eq!(make().precompute(&PrecomputeLimits::default(), &NEVER).unwrap(), whole);

    let steps = PrecomputeLimits { steps: 500, ..PrecomputeLimits::default() };
    let stopped = make().precompute(&steps, &NEVER).unwrap();
    assert_eq!(stopped.stopped, Some(PrecomputeStop::Steps));
    assert!(stopped.open > 0 && stopped.visited < whole.visited, "{stopped:?}");
    assert_eq!(make().precompute(&steps, &NEVER).unwrap(), stopped);

    let bytes = PrecomputeLimits { bytes: 0, ..PrecomputeLimits::default() };
    let stopped = make().precompute(&bytes, &NEVER).unwrap();
    assert_eq!((stopped.stopped, stopped.visited), (Some(PrecomputeStop::Bytes), 0));

    let cancelled = AtomicBool::new(true);
    let stopped = make().precompute(&PrecomputeLimits::default(), &cancelled).unwrap();
    assert_eq!(stopped.stopped, Some(PrecomputeStop::Cancelled));
}

/// Brackets of three kinds are as many stacks as one likes, of which masks depend on the last
/// alone: what is found out takes little, what is to be visited all there is.
#[test]
fn a_completion_stops_where_what_is_to_be_visited_takes_too_much() {
    let vocabulary = vocabulary();
    let brackets = lark("start: \"x\" | \"(\" start \")\" | \"[\" start \"]\" | \"{\" start \"}\"");
    let constraint = GrammarConstraint::new(recognizer(brackets), vocabulary);
    let bytes = constraint.bytes() + (1 << 20);
    let limits = PrecomputeLimits { bytes, stack_depth: 64, ..PrecomputeLimits::default() };
    let stopped = constraint.precompute(&limits, &NEVER).unwrap();
    assert_eq!(stopped.stopped, Some(PrecomputeStop::Bytes), "{stopped:?}");
    assert!(constraint.bytes() < bytes, "{} of {bytes}", constraint.bytes());
    let of_one = 100;
    assert!(stopped.open * of_one < bytes && bytes < stopped.open * 10 * of_one, "{stopped:?}");
}

#[test]
fn a_completion_in_the_background_goes_on_beside_questions_and_can_be_stopped() {
    let vocabulary = vocabulary();
    for constraint in constraints(&vocabulary) {
        let slow = walking(&constraint, &vocabulary);
        let background = constraint.precompute_in_background(PrecomputeLimits::default()).unwrap();
        for seed in 0..3 {
            for state in states(&constraint, seed, 10) {
                assert_eq!(filled(&constraint, &state), filled(&slow, &state));
            }
        }
        assert!(background.wait(Duration::from_secs(600)));
        let (visited, open) = background.progress();
        let done = background.join().unwrap();
        assert_eq!((done.visited, done.open, done.stopped), (visited, open, None));
    }
    // Words of up to a thousand letters, each with a state of its own.
    let endless = super::lark("start: A\nA: /([a-z]{1,7}(x|yy)?){1,1000}/");
    let endless = palmette_grammar::GrammarConstraint::new(super::recognizer(endless), vocabulary);
    let background = endless.precompute_in_background(PrecomputeLimits::default()).unwrap();
    background.stop();
    background.join().unwrap();
}

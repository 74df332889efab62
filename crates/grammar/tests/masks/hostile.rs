//! Grammars made to be slow, deep or large: each ends in a result or in an error that says why,
//! within its limits.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, CompileError, Grammar, GrammarConstraint, Interrupted, PreparedVocabulary, Recognizer,
    RecognizerLimits, RecognizerScratch,
    frontends::{gbnf, json_schema, lark, regex},
};

/// How deep "too deep" is here.
const DEEP: usize = 100_000;

fn regex(source: &str) -> Result<Grammar, String> {
    regex::parse(source, &regex::RegexOptions::default()).map_err(|error| error.to_string())
}

fn gbnf(source: &str) -> Result<Grammar, String> {
    gbnf::parse(source, &gbnf::GbnfOptions::default()).map_err(|error| error.to_string())
}

fn lark(source: &str) -> Result<Grammar, String> {
    lark::parse(source, &lark::LarkOptions::default()).map_err(|error| error.to_string())
}

fn schema(source: &str) -> Result<Grammar, String> {
    json_schema::parse(source, &json_schema::JsonSchemaOptions::default())
        .map_err(|error| error.to_string())
}

#[track_caller]
fn recognizer(grammar: Result<Grammar, String>) -> Arc<Recognizer> {
    let grammar = Arc::new(grammar.unwrap());
    let made = Recognizer::new(grammar, &RecognizerLimits::default(), &mut Budget::unlimited());
    Arc::new(made.unwrap())
}

fn reads(recognizer: &Recognizer, text: &str) -> bool {
    let scratch = &mut RecognizerScratch::default();
    let Some(start) = recognizer.start() else { return false };
    match recognizer.advance_all(start, text.as_bytes(), scratch).unwrap() {
        Some(end) => recognizer.is_accepting(&end, scratch).unwrap(),
        None => false,
    }
}

/// Says no, in words, without the whole of a long source in them.
#[track_caller]
fn check_refused(grammar: Result<Grammar, String>, words: &str) {
    let error = grammar.expect_err("a grammar to be refused");
    assert!(error.contains(words), "lacks {words:?}: {error:.400}");
    assert!(error.len() < 1000, "{} bytes of message: {error:.400}", error.len());
}

/// Reads a text of `n` characters with less than `max_states` states of the lexer in all.
#[track_caller]
fn check_states(pattern: &str, accepted: &str, refused: &str, max_states: usize) {
    let recognizer = recognizer(regex(pattern));
    assert!(reads(&recognizer, accepted), "{pattern}");
    assert!(!reads(&recognizer, refused), "{pattern}");
    let states = recognizer.lexer().statistics().states;
    assert!(states <= max_states, "{pattern}: {states} states");
}

#[test]
fn what_makes_backtracking_exponential_costs_a_few_states() {
    let text = "a".repeat(10_000);
    let (with_b, with_c) = (format!("{text}b"), format!("{text}c"));
    for pattern in ["(a|a)*b", "(a*)*b", "(a|aa)+b", "((a+)+)+b", "(a?){100}a*b"] {
        check_states(pattern, &with_b, &with_c, 210);
    }
}

#[test]
fn counts_within_counts_cost_no_product_of_states_before_they_are_read() {
    let text = "x".repeat(2500);
    check_states("(x{1,50}){1,50}", &text, &format!("{text}x"), 2600);
}

#[test]
fn a_look_back_of_thirty_characters_has_the_states_that_were_read() {
    // As an automaton built ahead of time this has 2^30 states.
    let text = format!("{}a{}", "ab".repeat(500), "b".repeat(30));
    check_states("(a|b)*a(a|b){30}", &text, "abc", 2000);
}

#[test]
fn too_many_states_are_an_error_that_says_so() {
    let grammar = Arc::new(regex("(a|b)*a(a|b){30}").unwrap());
    let mut limits = RecognizerLimits::default();
    limits.lexer.max_states = 50;
    let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited()).unwrap();
    let text = "abaababbabaabbababbaabababbbabababaababbababbabaabaab".repeat(5);
    let read = recognizer.advance_all(
        recognizer.start().unwrap(),
        text.as_bytes(),
        &mut RecognizerScratch::default(),
    );
    let error = read.expect_err("more than 50 states").to_string();
    assert!(error.contains("max_states = 50"), "{error}");
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let nested = |open: &str, core: &str, close: &str| {
        format!("{}{core}{}", open.repeat(DEEP), close.repeat(DEEP))
    };
    check_refused(regex(&nested("(", "a", ")")), "nest");
    check_refused(regex(&nested("(?:", "a", ")*")), "nest");
    check_refused(gbnf(&format!("root ::= {}", nested("(", "\"a\"", ")"))), "nest");
    check_refused(lark(&format!("start: {}", nested("(", "\"a\"", ")"))), "nest");
    check_refused(lark(&format!("start: A\nA: {}", nested("[", "\"a\"", "]"))), "nest");
    check_refused(schema(&nested(r#"{"not":"#, "{}", "}")), "max_depth");
    check_refused(schema(&nested(r#"{"items":"#, "true", "}")), "max_depth");
    check_refused(schema(&nested("[", "", "]")), "max_depth");
}

#[test]
fn long_chains_of_rules_are_no_deep_nesting() {
    let mut source = String::from("root ::= r0\n");
    for rule in 0..10_000 {
        writeln!(source, "r{rule} ::= \"a\" r{} | \"b\"", (rule + 1) % 10_000).unwrap();
    }
    assert!(reads(&recognizer(gbnf(&source)), &format!("{}b", "a".repeat(12_345))));
}

#[test]
fn an_enum_of_ten_thousand_strings() {
    let names: Vec<String> = (0..10_000).map(|n| format!("\"value {}\"", n * 7919)).collect();
    let recognizer = recognizer(schema(&format!("{{\"enum\": [{}]}}", names.join(","))));
    assert!(reads(&recognizer, &names[9_999]));
    assert!(!reads(&recognizer, "\"value 1\""));
    let states = recognizer.lexer().statistics().states;
    assert!(states < 100, "{states} states for the two texts that were read");
}

#[test]
fn a_schema_of_ten_megabytes() {
    let mut source = String::from(r#"{"type": "object", "properties": {"#);
    let filler = "x".repeat(1000);
    for property in 0..10_000 {
        let comma = if property == 0 { "" } else { "," };
        write!(source, r#"{comma}"p{property}": {{"type": "integer", "description": "{filler}"}}"#)
            .unwrap();
    }
    source += r#"}, "additionalProperties": false}"#;
    assert!(source.len() > 10_000_000);
    let recognizer = recognizer(schema(&source));
    assert!(reads(&recognizer, r#"{"p9999": 1, "p0": 2}"#));
    assert!(!reads(&recognizer, r#"{"p10000": 1}"#));
}

#[test]
fn five_hundred_optional_properties_in_any_order() {
    let names: Vec<String> = (0..500).map(|n| format!(r#""p{n}": {{"type": "null"}}"#)).collect();
    let recognizer = recognizer(schema(&format!(
        r#"{{"type": "object", "properties": {{{}}}, "additionalProperties": false}}"#,
        names.join(",")
    )));
    let rules = recognizer.grammar().rules().len();
    assert!(rules < 50_000, "{rules} rules");
    assert!(reads(&recognizer, r#"{"p499": null, "p0": null, "p250": null}"#));
    assert!(!reads(&recognizer, r#"{"p499": null, "p500": null}"#));
}

#[test]
fn a_string_of_a_hundred_thousand_characters() {
    let recognizer = recognizer(schema(r#"{"type": "string", "maxLength": 100000}"#));
    assert!(reads(&recognizer, &format!("\"{}\"", "x".repeat(3000))));
    let pieces = ["\"", "x", "xxxx", "xxxxxxxxxxxxxxxx"].map(Some);
    let vocabulary = Arc::new(Vocabulary::new(pieces, []).unwrap());
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    let constraint = GrammarConstraint::new(recognizer, vocabulary);
    let mut state = constraint.start();
    let (mut scratch, mut row) = (Default::default(), [0]);
    constraint.commit(&mut state, TokenId(0), &mut scratch).unwrap();
    for _ in 0..500 {
        constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
        assert_eq!(mask::count(&row), 4);
        constraint.commit(&mut state, TokenId(3), &mut scratch).unwrap();
    }
    // Counts far from their end are alike: the masks of 500 places are those of two or three.
    let nodes = constraint.automaton().unwrap().nodes;
    assert!(nodes < 20, "{nodes} nodes");
}

#[test]
fn references_in_circles() {
    check_refused(schema(r##"{"$ref": "#"}"##), "");
    let circle = r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##;
    check_refused(schema(circle), "");
    let list = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    assert!(reads(&recognizer(schema(list)), "[[], [[[]]]]"));
}

#[test]
fn rules_in_circles() {
    // A rule that is itself has the texts of its other alternatives, in infinitely many ways each.
    let itself = recognizer(gbnf("root ::= root | other | \"a\"\nother ::= root | \"b\""));
    assert!(reads(&itself, "a") && reads(&itself, "b") && !reads(&itself, "ab"));
    let doubled = recognizer(gbnf("root ::= root root | \"a\" |"));
    assert!(reads(&doubled, &"a".repeat(40)) && !reads(&doubled, "b"));
    let hidden =
        recognizer(gbnf("root ::= empty root \"b\" | \"a\"\nempty ::= \"\" | empty empty"));
    assert!(reads(&hidden, "abb") && !reads(&hidden, "ba"));
    // And one that is only itself has none.
    let none = gbnf("root ::= root");
    assert!(none.is_err() || recognizer(none).start().is_none());
}

#[test]
fn exponentially_many_parses_are_no_exponential_work() {
    // 2^200 parses and more; the work grows with the cube of the length.
    let recognizer = recognizer(lark("start: e\ne: e \"+\" e | e \"*\" e | \"a\"\n%ignore \" \""));
    let text = format!("a{}", "+a*a".repeat(75));
    assert!(reads(&recognizer, &text));
    assert!(!reads(&recognizer, &format!("{text}+")));
}

/// Makes tables long enough to be stopped in them.
fn large() -> Arc<Grammar> {
    let mut source = String::from("root ::= r0\n");
    for rule in 0..2_000 {
        writeln!(
            source,
            "r{rule} ::= \"{rule}\" r{} r{} | \"x\"",
            (rule + 1) % 2000,
            (rule * 7) % 2000
        )
        .unwrap();
    }
    Arc::new(gbnf(&source).unwrap())
}

#[test]
fn a_budget_stops_at_the_same_place_each_time() {
    let (grammar, limits) = (large(), RecognizerLimits::default());
    let with = |units| Recognizer::new(Arc::clone(&grammar), &limits, &mut Budget::new(units));
    let (mut low, mut high) = (0, u64::from(u32::MAX));
    assert!(with(high).is_ok());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match with(middle) {
            Ok(_) => high = middle,
            Err(CompileError::Parser(_) | CompileError::Interrupted(_)) => low = middle,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(high > 1000, "{high} steps");
    let error = with(low).expect_err("a step too few").to_string();
    assert!(error.contains(&format!("the work budget of {low} steps")), "{error}");
}

#[test]
fn another_thread_can_call_a_compilation_off() {
    let (grammar, limits) = (large(), RecognizerLimits::default());
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compiling = scope.spawn(|| {
            // Again and again, so that the flag is set in the middle of one.
            loop {
                let mut budget = Budget::cancellable(u64::MAX, &cancelled);
                if let Err(error) = Recognizer::new(Arc::clone(&grammar), &limits, &mut budget) {
                    return error.to_string();
                }
            }
        });
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(compiling.join().unwrap(), Interrupted::Cancelled.to_string());
    });
}

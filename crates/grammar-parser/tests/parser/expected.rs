//! Viable terminals, and their names for messages.

use std::sync::Arc;

use palmette_grammar_parser::{
    Budget, Grammar, Recognizer, RecognizerLimits, RecognizerScratch, TerminalSet,
    glr::ParserScratch, recognizer::Branch,
};
use palmette_grammar_syntax::{json_schema, lark};

#[track_caller]
fn check(prefix: &str, in_progress: &[&str], next: &[&str]) {
    let source =
        "start: (NAME \"=\" NUMBER \";\")+\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore \" \"";
    let grammar = lark::parse(source, &lark::LarkOptions::default()).unwrap();
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap();
    let mut scratch = RecognizerScratch::default();
    let start = recognizer.start().unwrap();
    let position = recognizer.advance_all(start, prefix.as_bytes(), &mut scratch).unwrap();
    let expected = recognizer.expected(&position.unwrap(), &mut scratch).unwrap();
    let ignored = recognizer.ignored();
    let names = |set: &TerminalSet| -> Vec<String> {
        let seen = set.iter().filter(|&terminal| !ignored.contains(terminal));
        seen.map(|id| recognizer.grammar().terminals()[id.index()].name.clone()).collect()
    };
    assert_eq!(names(&expected.in_progress), in_progress, "in progress after {prefix:?}");
    assert_eq!(names(&expected.next), next, "next after {prefix:?}");
}

#[test]
fn before_the_first_byte_all_is_next() {
    check("", &[], &["NAME"]);
}

#[test]
fn a_lexeme_may_go_on_or_end() {
    check("ab", &["NAME"], &["EQUAL"]);
    check("ab=1", &["NUMBER"], &["SEMICOLON"]);
}

#[test]
fn a_lexeme_that_cannot_go_on_is_in_progress_still() {
    check("ab=1;", &["SEMICOLON"], &["NAME"]);
}

#[test]
fn names_are_characters_where_these_are_few() {
    let schema = r#"{"type": "object", "properties": {"at": {"enum": ["10:00", "1\"", "2"]}, "n": {"type": "integer"},
        "s": {"type": "string"}}, "required": ["at", "n", "s"]}"#;
    let options = json_schema::JsonSchemaOptions::default();
    let grammar = Arc::new(json_schema::parse(schema, &options).unwrap());
    let check = |prefix: &str, expected: &[&str]| check_names(&grammar, prefix, expected);
    check("", &["`{`"]);
    check(r#"{"at": ""#, &["`1`", "`2`"]);
    check(r#"{"at": "1"#, &["`0`", r"`\`"]);
    check(r#"{"at": "2", "n": "#, &["`-`", "`0` to `9`"]);
    check(r#"{"at": "2", "n": 1, "s": "é"#, &["`!` to `~`", "a character beyond ASCII"]);
}

#[test]
fn names_are_those_of_terminals_where_characters_are_many() {
    let source = "start: (A | B | CC | DD | PLUS | STAR | HASH | AT) DOT\nA: \"a\"\nB: \"c\"\nCC: \"e\"\n\
        DD: \"g\"\nPLUS: \"+\"\nSTAR: \"*\"\nHASH: \"#\"\nAT: \"@\"\nDOT: \".\"";
    let grammar = Arc::new(lark::parse(source, &lark::LarkOptions::default()).unwrap());
    check_names(&grammar, "", &["A", "B", "AT", "CC", "DD", "HASH", "2 more"]);
    check_names(&grammar, "a", &["`.`"]);
}

#[track_caller]
fn check_names(grammar: &Arc<Grammar>, prefix: &str, expected: &[&str]) {
    let (grammar, limits) = (Arc::clone(grammar), RecognizerLimits::default());
    let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited()).unwrap();
    let mut scratch = RecognizerScratch::default();
    let start = recognizer.start().unwrap();
    let position = recognizer.advance_all(start, prefix.as_bytes(), &mut scratch).unwrap();
    let names = recognizer.expected_names(&position.unwrap(), &mut scratch).unwrap();
    assert_eq!(names, expected, "after {prefix:?}");
}

/// Names of one object are nothing to another, nor to the values.
#[test]
fn lexemes_become_what_the_parser_takes_or_nothing() {
    let schema = r#"{"type": "object", "additionalProperties": false, "properties": {
        "abc": {"type": "object", "additionalProperties": false, "properties": {"abd": {"type": "string"}}},
        "abe": {"enum": ["abd", "x"]}}}"#;
    let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default());
    let (grammar, limits) = (Arc::new(grammar.unwrap()), RecognizerLimits::default());
    let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited()).unwrap();
    let mut scratch = RecognizerScratch::default();
    let mut parser = ParserScratch::default();
    let mut position = recognizer.start().unwrap().clone();
    for &byte in br#"{"abc": {"abd" : "abd"}, "abe": "abd"}"# {
        for Branch { lexer, stacks, .. } in position.branches() {
            let mut taken = recognizer.ignored().clone();
            recognizer.parser().allowed(stacks, &mut taken, &mut parser).unwrap();
            assert!(
                recognizer
                    .lexer()
                    .viable_terminals(*lexer)
                    .iter()
                    .all(|terminal| taken.contains(terminal))
            );
        }
        position = recognizer.advance(&position, byte, &mut scratch).unwrap().unwrap();
    }
    assert!(recognizer.is_accepting(&position, &mut scratch).unwrap());
}

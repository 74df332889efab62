//! Grammars of real languages read real texts, and refuse them with a mark taken away or put in.

use std::sync::Arc;

use palmette_grammar_parser::{Budget, Recognizer, RecognizerLimits, RecognizerScratch};
use palmette_grammar_syntax::lark::{LarkOptions, parse};
use palmette_testkit::data;

/// `None`: the data is absent.
fn reader(test: &str, file: &str, start: &str) -> Option<Recognizer> {
    let source = data::text(test, file)?;
    let grammar = parse(&source, &LarkOptions::from_rule(start));
    let grammar = grammar.unwrap_or_else(|error| panic!("{file}: {error}"));
    let limits = RecognizerLimits::default();
    Some(
        Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited())
            .expect("a recognizer"),
    )
}

/// How many bytes can be read, and whether the text may end there.
fn read(reader: &Recognizer, text: &str) -> (usize, bool) {
    let mut scratch = RecognizerScratch::default();
    let mut position = reader.start().expect("the language is not empty").clone();
    for (at, byte) in text.bytes().enumerate() {
        match reader.advance(&position, byte, &mut scratch).expect("within limits") {
            Some(next) => position = next,
            None => return (at, false),
        }
    }
    (text.len(), reader.is_accepting(&position, &mut scratch).expect("within limits"))
}

#[track_caller]
fn accepts(reader: &Recognizer, text: &str) {
    let (read, accepted) = read(reader, text);
    let (before, after) = text.split_at(read);
    assert!(accepted, "{before} ⟂ {after}");
}

#[track_caller]
fn refuses(reader: &Recognizer, text: &str) {
    assert!(!read(reader, text).1, "{text}");
}

/// The text is accepted, and refused after each of the changes (each must apply).
#[track_caller]
fn check(reader: &Recognizer, text: &str, changes: &[(&str, &str)]) {
    accepts(reader, text);
    for (from, to) in changes {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from:?} is not in the text");
        refuses(reader, &changed);
    }
}

#[test]
fn sums() {
    let Some(reader) = reader("sums", "lark/calc.lark", "start") else { return };
    check(
        &reader,
        include_str!("../texts/sums.calc"),
        &[("(", ""), ("*", "* *"), ("4.5", "4.5.6"), ("1e3", "1e")],
    );
}

#[test]
fn json() {
    let Some(reader) = reader("json", "lark/json.lark", "start") else { return };
    let changes = [
        ("]", ""),
        ("{", ""),
        (",", ",,"),
        ("true", "True"),
        (":", ""),
        ("\"\"", "'"),
        ("7041", "7041 2"),
    ];
    check(&reader, include_str!("../texts/order.json"), &changes);
    for text in ["3", "\"text\"", "", "[1,]", "{1: 2}"] {
        refuses(&reader, text);
    }
}

#[test]
fn c() {
    let Some(reader) = reader("c", "lark/c.lark", "start") else { return };
    let changes = [
        ("{", ""),
        ("2, 3", "2 3"),
        ("return large;", "return large"),
        ("<=", "<>"),
        ("else", "or"),
    ];
    check(&reader, include_str!("../texts/area.c"), &changes);
    // The grammar's own: comments are statements, and the line after one is empty.
    refuses(&reader, include_str!("../texts/sieve.c"));
    refuses(&reader, "int f() { // comment\nreturn 1; }");
    accepts(&reader, "int f() { // comment\n\nreturn 1; /* another\n one */ }");
}

#[test]
fn go() {
    let Some(reader) = reader("go", "lark/go.lark", "start") else { return };
    let changes = [("{", ""), ("package", "pack"), (")", ""), ("func New(", "func New((")];
    check(&reader, include_str!("../texts/queue.go"), &changes);
    // The grammar's own: no literal of a named type, only of one that is written out.
    refuses(&reader, "package a\nvar x = Point{1, 2}\n");
    accepts(&reader, "package a\nvar x = struct{ x, y int }{1, 2}\n");
}

#[test]
fn java() {
    let Some(reader) = reader("java", "lark/java.lark", "start") else { return };
    let changes =
        [("{", ""), (";", ""), ("import", "imports"), ("(int i", "int i"), ("catch (", "catch ")];
    check(&reader, include_str!("../texts/Account.java"), &changes);
    // Two closing brackets are no shift where the parser takes none.
    accepts(&reader, "class A { List<List<B> > c; }");
    accepts(&reader, "class A { List<List<B>> c; }");
}

#[test]
fn sql() {
    let Some(reader) = reader("sql", "lark/sql.lark", "start") else { return };
    check(
        &reader,
        include_str!("../texts/report.sql"),
        &[("FROM", ""), ("AND", "AND AND"), ("('north'", "'north'")],
    );
    check(&reader, include_str!("../texts/union.sql"), &[("(select", "select"), ("from", "")]);
    // JOIN_EXPR matches " join" with the blank before it, and does not compete where the parser
    // takes no join of its own.
    accepts(&reader, "select a from b cross join c");
}

#[test]
fn python() {
    let Some(reader) = reader("python", "python.lark", "file_input") else { return };
    let changes =
        [("]", ""), ("import", "imports"), ("lambda", ""), ("==", "= ="), ("\"a\":", "\"a\"")];
    check(&reader, include_str!("../texts/values.py"), &changes);
}

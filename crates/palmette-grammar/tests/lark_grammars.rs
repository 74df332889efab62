//! Grammars of real languages read real texts, and refuse them with a mark taken away or put in.

use std::collections::BTreeMap;

use palmette_grammar::{
    Grammar,
    frontends::lark::{LarkIndentation, LarkOptions, parse},
    glr::{Parser, ParserLimits, ParserScratch, Stacks},
    lexer::{Lexer, LexerLimits, LexerState},
};
use palmette_testkit::data;

/// How a text is read.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    /// It is a prefix of a text of the language, or may be.
    Incomplete,
    /// At this byte nothing could go on.
    Refused(usize),
}

/// Reads texts by the definition: every cut into lexemes that the lexer allows, every parse.
struct Reader {
    lexer: Lexer,
    parser: Parser,
}

impl Reader {
    fn new(grammar: &Grammar) -> Self {
        Self {
            lexer: Lexer::new(grammar, &LexerLimits::default()).expect("a lexer"),
            parser: Parser::new(grammar, &ParserLimits::default()).expect("a parser"),
        }
    }

    fn read(&self, text: &str, grammar: &Grammar) -> Verdict {
        let mut scratch = ParserScratch::new();
        let mut branches = BTreeMap::from([(self.lexer.start(), self.parser.start())]);
        for (at, byte) in text.bytes().enumerate() {
            let mut next: BTreeMap<LexerState, Stacks> = BTreeMap::new();
            let mut add = |state: LexerState, stacks: Stacks| {
                let advanced = self.lexer.advance(state, byte).expect("within limits");
                let Some(state) = advanced else { return };
                let merged = match next.remove(&state) {
                    Some(known) => self.parser.merge(&known, &stacks),
                    None => stacks,
                };
                next.insert(state, merged);
            };
            for (&state, stacks) in &branches {
                add(state, stacks.clone());
                self.ends(state, stacks, grammar, &mut scratch, &mut add);
            }
            // A branch lives if what it reads may still become something that may follow.
            next.retain(|&state, stacks| {
                self.lexer.possible(state).iter().any(|terminal| {
                    grammar.ignored().contains(&terminal)
                        || self
                            .parser
                            .accepts(stacks, terminal, &mut ParserScratch::new())
                            .expect("within limits")
                })
            });
            if next.is_empty() {
                return Verdict::Refused(at);
            }
            branches = next;
        }
        let mut accepted = false;
        for (&state, stacks) in &branches {
            let mut at_end = |state: LexerState, stacks: Stacks| {
                accepted |= self.lexer.may_end(state)
                    && self
                        .parser
                        .accepts_end(&stacks, &mut ParserScratch::new())
                        .expect("within limits");
            };
            at_end(state, stacks.clone());
            self.ends(state, stacks, grammar, &mut scratch, &mut at_end);
        }
        if accepted { Verdict::Accepted } else { Verdict::Incomplete }
    }

    /// Every way in which the lexeme in progress may end here.
    fn ends(
        &self,
        state: LexerState,
        stacks: &Stacks,
        grammar: &Grammar,
        scratch: &mut ParserScratch,
        found: &mut dyn FnMut(LexerState, Stacks),
    ) {
        for end in self.lexer.ends(state).expect("within limits") {
            for terminal in end.terminals.iter() {
                if grammar.ignored().contains(&terminal) {
                    found(end.next, stacks.clone());
                }
                let shifted = self.parser.shift(stacks, terminal, scratch).expect("within limits");
                if let Some(shifted) = shifted {
                    found(end.next, shifted);
                }
            }
        }
    }
}

/// `None`: the data is absent.
fn reader(test: &str, file: &str, start: &str) -> Option<(Reader, Grammar)> {
    let source = data::text(test, file)?;
    // Blocks are another layer's: here their marks are terminals without a text.
    let options =
        LarkOptions { indentation: LarkIndentation::Detect, ..LarkOptions::from_rule(start) };
    let grammar = parse(&source, &options).unwrap_or_else(|error| panic!("{file}: {error}"));
    Some((Reader::new(&grammar), grammar))
}

#[track_caller]
fn accepts(reader: &Reader, grammar: &Grammar, text: &str) {
    let verdict = reader.read(text, grammar);
    if let Verdict::Refused(at) = verdict {
        let from = text.floor_char_boundary(at.saturating_sub(60));
        panic!(
            "refused at byte {at}: {:?} ⟂ {:?}",
            &text[from..at],
            text[at..].chars().take(20).collect::<String>()
        );
    }
    assert_eq!(verdict, Verdict::Accepted, "{text}");
}

#[track_caller]
fn refuses(reader: &Reader, grammar: &Grammar, text: &str) {
    assert_ne!(reader.read(text, grammar), Verdict::Accepted, "{text}");
}

/// The text is accepted, and refused after each of the changes (each must apply).
#[track_caller]
fn check(reader: &Reader, grammar: &Grammar, text: &str, changes: &[(&str, &str)]) {
    accepts(reader, grammar, text);
    for (from, to) in changes {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from:?} is not in the text");
        refuses(reader, grammar, &changed);
    }
}

#[test]
fn sums() {
    let Some((reader, grammar)) = reader("sums", "lark/calc.lark", "start") else { return };
    check(
        &reader,
        &grammar,
        include_str!("texts/sums.calc"),
        &[("(", ""), ("*", "* *"), ("4.5", "4.5.6"), ("1e3", "1e")],
    );
}

#[test]
fn json() {
    let Some((reader, grammar)) = reader("json", "lark/json.lark", "start") else { return };
    let changes = [
        ("]", ""),
        ("{", ""),
        (",", ",,"),
        ("true", "True"),
        (":", ""),
        ("\"\"", "'"),
        ("7041", "7041 2"),
    ];
    check(&reader, &grammar, include_str!("texts/order.json"), &changes);
    for text in ["3", "\"text\"", "", "[1,]", "{1: 2}"] {
        refuses(&reader, &grammar, text);
    }
}

#[test]
fn c() {
    let Some((reader, grammar)) = reader("c", "lark/c.lark", "start") else { return };
    let changes = [
        ("{", ""),
        ("2, 3", "2 3"),
        ("return large;", "return large"),
        ("<=", "<>"),
        ("else", "or"),
    ];
    check(&reader, &grammar, include_str!("texts/area.c").trim_end(), &changes);
    // The grammar's own: a comment ends with the literal "\n", which therefore is what every single line break is when no
    // blank follows it, and only comments go before it.
    refuses(&reader, &grammar, include_str!("texts/area.c"));
    refuses(&reader, &grammar, include_str!("texts/sieve.c"));
    accepts(&reader, &grammar, "int f() { // comment\n\nreturn 1; /* another\n one */ }");
}

#[test]
fn go() {
    let Some((reader, grammar)) = reader("go", "lark/go.lark", "start") else { return };
    let changes = [("{", ""), ("package", "pack"), (")", ""), ("func New(", "func New((")];
    check(&reader, &grammar, include_str!("texts/queue.go"), &changes);
    // The grammar's own: no literal of a named type, only of one that is written out.
    refuses(&reader, &grammar, "package a\nvar x = Point{1, 2}\n");
    accepts(&reader, &grammar, "package a\nvar x = struct{ x, y int }{1, 2}\n");
}

#[test]
fn java() {
    let Some((reader, grammar)) = reader("java", "lark/java.lark", "start") else { return };
    let changes =
        [("{", ""), (";", ""), ("import", "imports"), ("(int i", "int i"), ("catch (", "catch ")];
    check(&reader, &grammar, include_str!("texts/Account.java"), &changes);
    // Two closing brackets are the longer `>>` unless something is between them.
    accepts(&reader, &grammar, "class A { List<List<B> > c; }");
    refuses(&reader, &grammar, "class A { List<List<B>> c; }");
}

#[test]
fn sql() {
    let Some((reader, grammar)) = reader("sql", "lark/sql.lark", "start") else { return };
    check(
        &reader,
        &grammar,
        include_str!("texts/report.sql"),
        &[("FROM", ""), ("AND", "AND AND"), ("('north'", "'north'")],
    );
    check(
        &reader,
        &grammar,
        include_str!("texts/union.sql"),
        &[("(select", "select"), ("from", "")],
    );
    // The grammar's own: JOIN_EXPR matches " join" with the blank before it, so that "join" is never a word of its own.
    refuses(&reader, &grammar, "select a from b cross join c");
}

#[test]
fn python() {
    let Some((reader, grammar)) = reader("python", "python.lark", "file_input") else { return };
    let changes =
        [("]", ""), ("import", "imports"), ("lambda", ""), ("==", "= ="), ("\"a\":", "\"a\"")];
    check(&reader, &grammar, include_str!("texts/values.py"), &changes);
}

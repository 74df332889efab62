//! A budget and a flag stop a compilation wherever it spends its time: in each front end, in the
//! lexer, in the tables.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use palmette_grammar::{
    Budget, CharClass, Grammar, GrammarBuilder, Interrupted, LexerLimits, Lexing, ParserLimits,
    Recognizer, RecognizerLimits, Regex, Symbol, Terminal, TerminalKind,
    engine::{glr::Parser, lexer::Lexer},
    frontends::{
        gbnf::{self, GbnfOptions},
        json_schema::{self, JsonSchemaOptions},
        lark::{self, LarkOptions},
        regex::{self, RegexOptions},
    },
};

/// Runs a phase with all it takes, with a unit less, and called off: before, and in the middle.
#[track_caller]
fn check(phase: impl Fn(&mut Budget<'_>) -> Option<Interrupted> + Sync) {
    let mut all = Budget::unlimited();
    assert_eq!(phase(&mut all), None);
    let cost = u64::MAX - all.left();
    assert!(cost > 10_000, "{cost} units are too few to be stopped among");
    assert_eq!(phase(&mut Budget::new(cost)), None);
    for limit in [cost - 1, cost / 2] {
        let stopped = phase(&mut Budget::new(limit));
        assert_eq!(stopped, Some(Interrupted::OutOfBudget { limit }));
    }
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            // Again and again, so that the flag is set in the middle of one.
            loop {
                let stopped = phase(&mut Budget::cancellable(u64::MAX, &cancelled));
                if stopped.is_some() {
                    return stopped;
                }
            }
        });
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(working.join().unwrap(), Some(Interrupted::Cancelled));
    });
}

/// Why it stopped; any other error is a mistake of the test.
fn stopped<T, E: std::fmt::Display>(
    made: Result<T, E>,
    why: impl Fn(&E) -> Option<Interrupted>,
) -> Option<Interrupted> {
    match made {
        Ok(_) => None,
        Err(error) => Some(why(&error).unwrap_or_else(|| panic!("{error}"))),
    }
}

fn check_schema(schema: &str) {
    let options = JsonSchemaOptions::default();
    check(|budget| {
        let made = json_schema::parse_with_budget(schema, &options, budget);
        stopped(made, |error| error.interrupted())
    });
}

#[test]
fn a_schema_that_is_long() {
    let mut schema = String::from(r#"{"enum":["first""#);
    (0..20_000).for_each(|at| write!(schema, ",\"{at}\"").unwrap());
    check_schema(&(schema + "]}"));
}

#[test]
fn schemas_that_multiply() {
    let one = |name: char| {
        let option = |at| format!(r#"{{"properties":{{"{name}":{{"const":{at}}}}}}}"#);
        format!(r#"{{"anyOf":[{}]}}"#, (0..9).map(option).collect::<Vec<_>>().join(","))
    };
    let all: Vec<_> = "abc".chars().map(one).collect();
    check_schema(&format!(r#"{{"type":"object","allOf":[{}]}}"#, all.join(",")));
}

#[test]
fn a_pattern_with_many_anchors() {
    let pattern = r"(?:\\b[ab]\\b-?){1,60}$";
    check_schema(&format!(r#"{{"type":"string","pattern":"{pattern}"}}"#));
    let source = r"(?:\b[ab]\b-?){1,60}";
    check(|budget| {
        let made = regex::parse_with_budget(source, &RegexOptions::default(), budget);
        stopped(made, |error| error.interrupted)
    });
}

#[test]
fn a_lark_grammar() {
    let mut source = String::from("start: r0\n");
    for at in 0..300 {
        let next = (at + 1) % 300;
        writeln!(source, "r{at}: (\"a\" | T{at}? \"c\") (\"d\" | r{next})* [\"e\"]").unwrap();
        writeln!(source, "T{at}: /[a-z]+{at}/ \"x\"~2..5").unwrap();
    }
    check(|budget| {
        let made = lark::parse_with_budget(&source, &LarkOptions::default(), budget);
        stopped(made, |error| error.interrupted())
    });
}

#[test]
fn a_gbnf_grammar() {
    let mut source = String::from("root ::= r0\n");
    for at in 0..500 {
        let next = (at + 1) % 500;
        writeln!(source, "r{at} ::= \"a\" | ([b-z] \"{at}\"){{2,5}} r{next} (\"(\" r0 \")\")*")
            .unwrap();
    }
    check(|budget| {
        let made = gbnf::parse_with_budget(&source, &GbnfOptions::default(), budget);
        stopped(made, |error| error.interrupted)
    });
}

/// A grammar of one terminal.
fn only(regex: Regex) -> Grammar {
    let mut grammar = GrammarBuilder::new();
    let kind = TerminalKind::Pattern;
    let terminal = Terminal { name: "ONLY".into(), regex, priority: 0, kind, span: None };
    let terminal = grammar.terminal(terminal);
    let start = grammar.nonterminal("start", None);
    grammar.rule(start, [Symbol::Terminal(terminal)]);
    grammar.build(start, Lexing::Any)
}

/// Whether anything is left of it takes a search through two to the power of `length` expressions:
/// nothing is.
fn contradiction(length: u32) -> Regex {
    let letter = |range| Regex::Class(CharClass::new([range]));
    let with_a = |any: Regex| {
        let before = any.clone().repeat(0, None);
        Regex::concat([before, Regex::literal("a"), any.repeat(length, Some(length))])
    };
    let (two, three) = (with_a(letter(('a', 'b'))), with_a(letter(('a', 'c'))));
    Regex::and([two, Regex::complement(three)])
}

#[test]
fn terminals_that_contradict_themselves() {
    let grammar = only(contradiction(8));
    check(|budget| {
        let made = Lexer::with_budget(&grammar, &LexerLimits::default(), budget);
        stopped(made, |error| error.interrupted())
    });
}

#[test]
fn all_phases_share_one_budget() {
    // What the lexer takes is not there for the tables.
    let grammar = Arc::new(only(contradiction(8)));
    let mut of_lexer = Budget::unlimited();
    Lexer::with_budget(&grammar, &LexerLimits::default(), &mut of_lexer).unwrap();
    let limits = RecognizerLimits::default();
    let mut of_all = Budget::unlimited();
    Recognizer::new(Arc::clone(&grammar), &limits, &mut of_all).unwrap();
    assert!(of_all.left() < of_lexer.left());
    let limit = u64::MAX - of_lexer.left();
    let stopped = Recognizer::new(Arc::clone(&grammar), &limits, &mut Budget::new(limit));
    assert!(stopped.unwrap_err().to_string().contains("budget"));
}

#[test]
fn tables_that_are_large() {
    let mut source = String::from("root ::= r0\n");
    for rule in 0..3_000 {
        let (next, other) = ((rule + 1) % 3_000, (rule * 7) % 3_000);
        writeln!(source, "r{rule} ::= \"{rule}\" r{next} r{other} | \"x\"").unwrap();
    }
    let grammar = gbnf::parse(&source, &GbnfOptions::default()).unwrap();
    check(|budget| {
        let made = Parser::with_budget(&grammar, &ParserLimits::default(), budget);
        stopped(made, |error| match error {
            palmette_grammar::TableError::Interrupted(why) => Some(*why),
            _ => None,
        })
    });
}

#[test]
fn a_step_of_the_lexer_is_bounded_after_it_was_made() {
    // After the first byte the contradiction begins; the way beside it is there at once.
    let either = Regex::alternate([contradiction(8), Regex::literal("d")]);
    let grammar = only(Regex::concat([Regex::literal("0"), either]));
    let limits = LexerLimits { max_step_work: 2_000, ..LexerLimits::default() };
    let lexer = Lexer::new(&grammar, &limits).unwrap();
    let first = lexer.advance(lexer.start(), b'0').unwrap().unwrap();
    let error = lexer.advance(first, b'a').unwrap_err();
    assert!(error.is_limit_exceeded());
    assert!(error.interrupted().is_none());
    assert!(error.to_string().contains("max_step_work = 2000"), "{error}");
    // Other steps go on.
    assert!(lexer.advance(first, b'd').unwrap().is_some());
}

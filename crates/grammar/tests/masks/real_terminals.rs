//! Terminals of real grammars: what they match, and that they stay small.

use std::collections::BTreeSet;

use palmette_grammar::{
    CharClass, Grammar, GrammarBuilder, LexerError, LexerLimits, Lexing, Regex, Symbol, Terminal,
    TerminalId, TerminalKind,
    engine::{
        lexer::{Lexer, LexerState},
        regex::{
            expressions::Horizon,
            parse::{Dialect, Flags, parse},
        },
    },
};
use palmette_testkit::lexing::lexeme_ends;

fn chars(chars: &str) -> Regex {
    Regex::Class(CharClass::new(chars.chars().map(|c| (c, c))))
}

fn not_chars(chars: &str) -> Regex {
    Regex::Class(CharClass::new(chars.chars().map(|c| (c, c))).complement())
}

fn reluctant(inner: Regex) -> Regex {
    Regex::Repeat { inner: inner.into(), min: 0, max: None, reluctant: true }
}

/// A regular expression as Python writes it.
fn python_regex(text: &str, flags: &str) -> Regex {
    let flags = Flags::from_letters(flags).unwrap();
    parse(text, Dialect::Python, flags).unwrap()
}

/// Python's strings on one line, as Lark's grammar of Python has them.
fn string() -> Regex {
    let text = r#"([ubf]?r?|r[ubf])("(?!"").*?(?<!\\)(\\\\)*?"|'(?!'').*?(?<!\\)(\\\\)*?')"#;
    python_regex(text, "i")
}

fn long_string() -> Regex {
    let text = r#"([ubf]?r?|r[ubf])(""".*?(?<!\\)(\\\\)*?"""|'''.*?(?<!\\)(\\\\)*?''')"#;
    python_regex(text, "is")
}

fn decimal() -> Regex {
    python_regex("[1-9](_?[0-9])*|0(_?0)*(?![1-9])", "")
}

fn name() -> Regex {
    python_regex("[a-zA-Z_][a-zA-Z_0-9]*", "")
}

fn terminal(name: &str, regex: Regex, kind: TerminalKind) -> Terminal {
    Terminal { name: name.into(), regex, priority: 0, kind, span: None }
}

fn pattern(name: &str, regex: Regex) -> Terminal {
    terminal(name, regex, TerminalKind::Pattern)
}

fn literal(text: &str) -> Terminal {
    terminal(text, Regex::literal(text), TerminalKind::Literal)
}

fn grammar(terminals: Vec<Terminal>, lexing: Lexing) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("start", None);
    for terminal in terminals {
        let id = builder.terminal(terminal);
        builder.rule(start, [Symbol::Terminal(id)]);
    }
    builder.build(start, lexing)
}

fn lexer(terminals: Vec<Terminal>, lexing: Lexing) -> Result<Lexer, LexerError> {
    Lexer::new(&grammar(terminals, lexing), &LexerLimits::default())
}

/// Every cutting of `text`, each as its lexemes in one line with `|` between and what it is.
fn cut(lexer: &Lexer, names: &[&str], text: &str) -> Vec<String> {
    let mut branches = vec![(lexer.start(), String::new(), 0)];
    for (at, byte) in text.bytes().enumerate() {
        let mut next = Vec::new();
        for (state, cutting, begin) in branches {
            for end in lexer.ends(state).unwrap() {
                if let Some(to) = lexer.advance(end.next, byte).unwrap() {
                    for terminal in end.terminals.iter() {
                        let lexeme = &text[begin..at];
                        let name = names[terminal.index()];
                        next.push((to, format!("{cutting}{name}:{lexeme}|"), at));
                    }
                }
            }
            if let Some(to) = lexer.advance(state, byte).unwrap() {
                next.push((to, cutting, begin));
            }
        }
        branches = next;
    }
    let mut whole = Vec::new();
    for (state, cutting, begin) in branches {
        for end in lexer.ends(state).unwrap() {
            for terminal in end.terminals.iter().filter(|_| lexer.may_end(end.next)) {
                let (name, lexeme) = (names[terminal.index()], &text[begin..]);
                whole.push(format!("{cutting}{name}:{lexeme}"));
            }
        }
    }
    whole
}

const PYTHON: [&str; 8] = ["STRING", "LONG", "DEC", "NAME", "WS", "if", "=", "+"];

fn python() -> Lexer {
    let terminals = vec![
        pattern("STRING", string()),
        pattern("LONG_STRING", long_string()),
        pattern("DEC_NUMBER", decimal()),
        pattern("NAME", name()),
        pattern("WS", chars(" \n").repeat(1, None)),
        literal("if"),
        literal("="),
        literal("+"),
    ];
    lexer(terminals, Lexing::Longest).unwrap()
}

#[test]
fn python_texts_are_cut_as_python_cuts_them() {
    let lexer = python();
    let expected = [
        (r#"x="""#, Some(r#"NAME:x|=:=|STRING:"""#)),
        (r#"""+'a'"#, Some(r#"STRING:""|+:+|STRING:'a'"#)),
        (r#""""a"b"""+1"#, Some(r#"LONG:"""a"b"""|+:+|DEC:1"#)),
        (r#""""""""#, Some(r#"LONG:"""""""#)),
        (r#"""""""""#, None),
        (r#""""""""""#, Some(r#"LONG:""""""|STRING:"""#)),
        (r#""a\"b""#, Some(r#"STRING:"a\"b""#)),
        (r#""a\\"if"#, Some(r#"STRING:"a\\"|if:if"#)),
        (r#""a\"#, None),
        (r#"Rb'x'iffy"#, Some("STRING:Rb'x'|NAME:iffy")),
        (r#"fr"x"br"y""#, Some(r#"STRING:fr"x"|STRING:br"y""#)),
        ("1_0 000 0_0", Some("DEC:1_0|WS: |DEC:000|WS: |DEC:0_0")),
        ("01", None),
        ("00 10", Some("DEC:00|WS: |DEC:10")),
        ("if x\n+ifx", Some("if:if|WS: |NAME:x|WS:\n|+:+|NAME:ifx")),
        ("\"a\nb\"", None),
        ("'''a\nb'''", Some("LONG:'''a\nb'''")),
    ];
    for (text, cutting) in expected {
        let found = cut(&lexer, &PYTHON, text);
        assert_eq!(found, Vec::from_iter(cutting.map(String::from)), "{text}");
    }
    let statistics = lexer.statistics();
    assert!(statistics.states < 300, "{statistics:?}");
}

#[test]
fn strings_end_where_a_backtracking_matcher_ends_them() {
    for regex in [string(), long_string(), decimal()] {
        let any = pattern("ANY", Regex::Class(CharClass::any()));
        let lexer = lexer(vec![pattern("T", regex.clone()), any], Lexing::Any).unwrap();
        for text in texts_over("\"\\a0", 6) {
            let expected: BTreeSet<usize> = lexeme_ends(&regex, &text, 0);
            assert_eq!(first_ends(&lexer, &text), expected, "{text:?} of {regex:?}");
        }
    }
}

/// Where terminal 0 can end as the first lexeme of the whole text.
fn first_ends(lexer: &Lexer, text: &[char]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut state = lexer.start();
    for (at, &c) in text.iter().enumerate() {
        match lexer.advance(state, c as u8).unwrap() {
            Some(to) => state = to,
            None => break,
        }
        for end in lexer.ends(state).unwrap() {
            let first = end.terminals.contains(TerminalId(0));
            if first && the_rest_goes(lexer, end.next, &text[at + 1..]) {
                found.insert(at + 1);
            }
        }
    }
    found
}

/// Whether the conditions at a lexeme's end hold, where any character may be the next lexeme.
fn the_rest_goes(lexer: &Lexer, state: LexerState, rest: &[char]) -> bool {
    let Some((&c, rest)) = rest.split_first() else { return lexer.may_end(state) };
    let Some(to) = lexer.advance(state, c as u8).unwrap() else { return false };
    let ends = lexer.ends(to).unwrap().iter();
    ends.filter(|end| end.terminals.contains(TerminalId(1)))
        .any(|end| the_rest_goes(lexer, end.next, rest))
}

fn texts_over(alphabet: &str, max_len: usize) -> Vec<Vec<char>> {
    let mut texts = vec![vec![]];
    let mut from = 0;
    for _ in 0..max_len {
        let longer: Vec<Vec<char>> = texts[from..]
            .iter()
            .flat_map(|text| alphabet.chars().map(|c| [&text[..], &[c]].concat()))
            .collect();
        from = texts.len();
        texts.extend(longer);
    }
    texts
}

#[test]
fn sql_strings_end_at_the_first_quote() {
    let escaped = Regex::concat([Regex::literal("\\"), not_chars("\n")]);
    let inner = reluctant(Regex::alternate([not_chars("\"\\"), escaped]));
    let quote = || Regex::literal("\"");
    let string = pattern("ESCAPED_STRING", Regex::concat([quote(), inner, quote()]));
    let lexer = lexer(vec![string, pattern("NAME", name())], Lexing::Longest).unwrap();
    assert_eq!(cut(&lexer, &["S", "NAME"], r#""a\"b"c"d""#), [r#"S:"a\"b"|NAME:c|S:"d""#]);
    assert!(cut(&lexer, &["S", "NAME"], r#""a\""#).is_empty());
}

#[test]
fn comments_end_at_the_first_end() {
    let any = || not_chars("");
    let comment = Regex::concat([Regex::literal("/*"), reluctant(any()), Regex::literal("*/")]);
    let terminals = vec![pattern("C", comment), literal("/"), literal("*")];
    let lexer = lexer(terminals, Lexing::Longest).unwrap();
    assert_eq!(cut(&lexer, &["C", "/", "*"], "/*a*/*/"), ["C:/*a*/|*:*|/:/"]);
    assert!(cut(&lexer, &["C", "/", "*"], "//*a").is_empty(), "`a` is no lexeme");
    assert_eq!(cut(&lexer, &["C", "/", "*"], "//**/"), ["/:/|C:/**/"]);
}

#[test]
fn long_repeats_are_counted_not_copied() {
    let string = Regex::concat([
        Regex::literal("\""),
        not_chars("\"").repeat(3, Some(100_000)),
        Regex::literal("\""),
    ]);
    let lexer = lexer(vec![pattern("S", string)], Lexing::Any).unwrap();
    let read = |len: usize| {
        let text = format!("\"{}", "ä".repeat(len));
        let mut state = lexer.start();
        for byte in text.bytes() {
            state = lexer.advance(state, byte).unwrap()?;
        }
        lexer.advance(state, b'"').unwrap()
    };
    assert!(read(2).is_none() && read(3).is_some());
    assert!(lexer.statistics().expressions < 100, "{:?}", lexer.statistics());
    assert!(read(100_000).is_some() && read(100_001).is_none());
}

#[test]
fn counts_that_are_far_from_used_up_do_not_matter() {
    let quote = || Regex::literal("\"");
    let text = not_chars("\"").repeat(100, Some(1000));
    for lexing in [Lexing::Any, Lexing::Longest] {
        let string = Regex::concat([quote(), text.clone(), quote()]);
        let lexer = lexer(vec![pattern("S", string), literal("\n")], lexing).unwrap();
        let mut state = lexer.advance(lexer.start(), b'"').unwrap().unwrap();
        let mut alike = BTreeSet::new();
        for _ in 0..=1000 {
            alike.insert(lexer.bounded_equivalent(state, Horizon::of_bytes(10)).unwrap());
            state = lexer.advance(state, b'x').unwrap().unwrap_or(state);
        }
        // Of the least count, more than ten are left, then 10, 9, ..., 1; of the greatest more than
        // ten, then 10, ..., 0.
        assert_eq!(alike.len(), 11 + 12, "{lexing:?}");
    }
}

#[test]
fn ten_thousand_literals_are_one_tree() {
    let words = |ending: &str| (0..10_000).map(|n| format!("{:x}{ending}", n * 7919)).collect();
    let words: Vec<String> = words("-end");
    let regex = Regex::alternate(words.iter().map(|word| Regex::literal(word)));
    let lexer = lexer(vec![pattern("ENUM", regex)], Lexing::Any).unwrap();
    let built = lexer.statistics();
    assert_eq!(built.states, 1);
    for word in words.iter().step_by(97) {
        let mut state = Some(lexer.start());
        for byte in word.bytes() {
            state = state.and_then(|state| lexer.advance(state, byte).unwrap());
        }
        assert!(!lexer.matched(state.unwrap()).unwrap().is_empty(), "{word}");
    }
    // Reading makes no expression: they are the tree's own.
    assert_eq!(lexer.statistics().expressions, built.expressions);
}

#[test]
fn many_keywords_beside_names() {
    let mut terminals: Vec<Terminal> =
        (0..1000).map(|n| literal(&format!("k{}", n * 31))).collect();
    terminals.push(pattern("NAME", name()));
    let lexer = lexer(terminals, Lexing::Longest).unwrap();
    let names: Vec<&str> = std::iter::repeat_n("K", 1000).chain(["NAME"]).collect();
    assert_eq!(cut(&lexer, &names, "k31"), ["K:k31"]);
    assert_eq!(cut(&lexer, &names, "k32"), ["NAME:k32"]);
}

#[test]
fn what_is_always_lost_is_kept() {
    let join = Terminal { priority: 5, ..pattern("JOIN_EXPR", name()) };
    let lexer = lexer(vec![join, literal("JOIN"), literal("=")], Lexing::Longest).unwrap();
    assert_eq!(lexer.shadowed().iter().collect::<Vec<_>>(), [TerminalId(1)]);
    assert_eq!(cut(&lexer, &["E", "J", "="], "JOIN=x"), ["E:JOIN|=:=|E:x", "J:JOIN|=:=|E:x"]);
}

#[test]
fn refusals_name_the_terminal_and_the_way_out() {
    let check = |regex: Regex, limits: LexerLimits, expected: &str| {
        let made = Lexer::new(&grammar(vec![pattern("BAD", regex)], Lexing::Longest), &limits);
        let error = made.unwrap_err().to_string();
        assert!(error.contains("BAD") && error.contains(expected), "{error}");
    };
    let limits = LexerLimits::default();
    check(Regex::literal("a").optional(), limits, "empty text");
    let both = Regex::and([reluctant(chars("a")), Regex::literal("a")]);
    check(Regex::concat([Regex::literal("a"), both]), limits, "reluctant");
    let optional = || (0..1500).map(|_| chars("ab").optional());
    let long = Regex::concat([Regex::literal("x")].into_iter().chain(optional()));
    check(long, limits, "max_nesting");
    let few = LexerLimits { max_expressions: 20, ..limits };
    check(Regex::literal("a text of more than twenty bytes"), few, "max_expressions");
}

#[test]
fn the_limits_are_within_a_thread_s_stack() {
    let limits = LexerLimits::default();
    let depth = limits.max_nesting as usize - 10;
    let optional = std::iter::repeat_n(chars("ab").optional(), depth);
    let chain = Regex::concat([Regex::literal("x")].into_iter().chain(optional));
    let mut nested = Regex::literal("y");
    for _ in 0..depth / 2 {
        nested = Regex::concat([Regex::literal("y"), nested.optional()]);
    }
    let lazy = Regex::concat([chain.clone(), reluctant(chars("c")), Regex::literal("d")]);
    let terminals = [chain, nested, lazy].map(|regex| pattern("DEEP", regex));
    let lexer = lexer(terminals.into(), Lexing::Longest).unwrap();
    for text in ["xab", "yyy", "xacd"] {
        assert!(!cut(&lexer, &["C", "N", "L"], text).is_empty(), "{text}");
    }
}

#[test]
fn a_state_budget_that_is_used_up_is_an_error_not_an_answer() {
    let limits = LexerLimits { max_states: 50, ..LexerLimits::default() };
    let long = pattern("LONG", chars("a").repeat(1, Some(1000)));
    let lexer = Lexer::new(&grammar(vec![long], Lexing::Any), &limits).unwrap();
    let mut state = lexer.start();
    let error = loop {
        match lexer.advance(state, b'a') {
            Ok(to) => state = to.unwrap(),
            Err(error) => break error,
        }
    };
    assert!(error.is_limit_exceeded() && error.to_string().contains("max_states = 50"), "{error}");
}

#[test]
fn threads_find_the_same_automaton() {
    let texts = [r#"x="""#, r#""a\"b"+if"#, "1_0 000", "'''a'b'''", "iffy if", "rb'x'"];
    let one = python();
    let expected: Vec<_> = texts.iter().map(|text| cut(&one, &PYTHON, text)).collect();
    let shared = python();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (shared, expected) = (&shared, &expected);
            scope.spawn(move || {
                for at in (0..texts.len()).map(|at| (at + turn) % texts.len()) {
                    assert_eq!(cut(shared, &PYTHON, texts[at]), expected[at]);
                }
            });
        }
    });
    assert_eq!(shared.statistics().states, one.statistics().states);
}

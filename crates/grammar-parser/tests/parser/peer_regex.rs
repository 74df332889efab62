//! Lexemes against the crate `regex`, where both can express a terminal.

use std::collections::BTreeSet;

use palmette_grammar_parser::lexer::{Lexer, LexerState};
use palmette_grammar_parser::{
    Grammar, GrammarBuilder, LexerLimits, Lexing, Regex, Symbol, Terminal, TerminalId, TerminalKind,
};
use palmette_grammar_regex::parse::{Dialect, Flags, parse};

/// With a reluctant quantifier somewhere: one end, the one that a backtracking matcher finds.
const RELUCTANT: [&str; 12] = [
    "a.*?b",
    "a(b|ba)??a*",
    "(a|ab)(c|bcb?)*?b+",
    "(a*?b|a)+",
    "a{1,3}?b?",
    "(ab??)*c",
    "a(?:b*?|c)*a",
    "(a|b)*?(ca|c)",
    "a+?(b|bb|bbb){2,3}?.?",
    "é??a.+?é",
    "(.|..)*?é.",
    "a??(b??|c)+?a",
];

/// Without: every end.
const GREEDY: [&str; 8] = [
    "a(b|ba)*",
    "(a|b|ab){2,3}",
    "[^a]+a?",
    "(?:é|[a-b]){1,4}c",
    "a(bc?|b?c){0,2}",
    "((a?b){1,2}c?){2}",
    ".{2,3}",
    "(aa|aaa)+",
];

#[test]
fn reluctant_terminals_end_where_the_peer_s_matches_end() {
    for pattern in RELUCTANT {
        let peer = regex::Regex::new(&format!("^(?:{pattern})")).unwrap();
        let lexer = lexer(pattern);
        for text in texts() {
            let found = peer.find(&text).map(|found| found.end()).filter(|&end| end > 0);
            assert_eq!(first_ends(&lexer, &text), Vec::from_iter(found), "{text:?} of {pattern}");
        }
    }
}

#[test]
fn greedy_terminals_end_wherever_the_peer_matches_so_far() {
    for pattern in GREEDY {
        let peer = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let lexer = lexer(pattern);
        for text in texts() {
            let ends = (1..=text.len()).filter(|&end| text.is_char_boundary(end));
            let found: Vec<_> = ends.filter(|&end| peer.is_match(&text[..end])).collect();
            assert_eq!(first_ends(&lexer, &text), found, "{text:?} of {pattern}");
        }
    }
}

/// Terminal 0 is the pattern, terminal 1 any character, cut in any way.
fn lexer(pattern: &str) -> Lexer {
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("start", None);
    let regex = |text| parse(text, Dialect::Python, Flags::default()).unwrap();
    for regex in [regex(pattern), Regex::Class(palmette_grammar_parser::CharClass::any())] {
        let (name, kind) = (pattern.to_owned(), TerminalKind::Pattern);
        let id = builder.terminal(Terminal { name, regex, priority: 0, kind, span: None });
        builder.rule(start, [Symbol::Terminal(id)]);
    }
    let grammar: Grammar = builder.build(start, Lexing::Any);
    Lexer::new(&grammar, &LexerLimits::default()).unwrap()
}

/// Every text of up to six characters of an alphabet of four, one of them of two bytes.
fn texts() -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..6 {
        let longer: Vec<_> = texts[from..]
            .iter()
            .flat_map(|text| ["a", "b", "c", "é"].map(|c| format!("{text}{c}")))
            .collect();
        from = texts.len();
        texts.extend(longer);
    }
    texts
}

/// Ends of terminal 0 as the first lexeme of the whole text.
fn first_ends(lexer: &Lexer, text: &str) -> Vec<usize> {
    let mut found = BTreeSet::new();
    let mut state = lexer.start();
    for (at, byte) in text.bytes().enumerate() {
        match lexer.advance(state, byte).unwrap() {
            Some(to) => state = to,
            None => break,
        }
        for end in lexer.ends(state).unwrap() {
            let rest = &text.as_bytes()[at + 1..];
            if end.terminals.contains(TerminalId(0)) && conditions_hold(lexer, end.next, rest) {
                found.insert(at + 1);
            }
        }
    }
    found.into_iter().collect()
}

/// Whether what a lexeme's end asks holds for `rest`, which is cut into characters.
fn conditions_hold(lexer: &Lexer, mut state: LexerState, rest: &[u8]) -> bool {
    for (at, &byte) in rest.iter().enumerate() {
        let Some(to) = lexer.advance(state, byte).unwrap() else { return false };
        state = to;
        let ends_character = rest.get(at + 1).is_none_or(|next| next & 0xC0 != 0x80);
        if ends_character {
            let ends = lexer.ends(state).unwrap();
            let any = ends.iter().find(|end| end.terminals.contains(TerminalId(1)));
            let Some(end) = any else { return false };
            state = end.next;
        }
    }
    lexer.may_end(state)
}

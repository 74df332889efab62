//! A grammar over a vocabulary keeps the laws of constraints.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, CharClass, GrammarBuilder, GrammarConstraint, GrammarScratch, Lexing, PrecomputeLimits,
    PreparedVocabulary, Recognizer, RecognizerLimits, Regex, Symbol, Terminal, TerminalKind,
};
use palmette_testkit::laws;

/// `list: "[" [item ("," item)*] "]"`, `item: NAME | list`, blanks ignored.
fn lists(lexing: Lexing) -> palmette_grammar::Grammar {
    let mut grammar = GrammarBuilder::new();
    let mut terminal = |name: &str, regex, kind| {
        grammar.terminal(Terminal { name: name.into(), regex, priority: 0, kind, span: None })
    };
    let literal = TerminalKind::Literal;
    let open = terminal("[", Regex::literal("["), literal);
    let close = terminal("]", Regex::literal("]"), literal);
    let comma = terminal(",", Regex::literal(","), literal);
    let letters = Regex::Class(CharClass::new([('a', 'z')])).repeat(1, None);
    let name = terminal("NAME", letters, TerminalKind::Pattern);
    let blank = terminal("WS", Regex::literal(" "), literal);
    let list = grammar.nonterminal("list", None);
    let items = grammar.nonterminal("items", None);
    let item = grammar.nonterminal("item", None);
    let (t, n) = (Symbol::Terminal, Symbol::Nonterminal);
    grammar.rule(list, [t(open), t(close)]);
    grammar.rule(list, [t(open), n(items), t(close)]);
    grammar.rule(items, [n(item)]);
    grammar.rule(items, [n(items), t(comma), n(item)]);
    grammar.rule(item, [t(name)]);
    grammar.rule(item, [n(list)]);
    grammar.ignore(blank);
    grammar.build(list, lexing)
}

fn constraint(lexing: Lexing) -> GrammarConstraint {
    over_pieces(lists(lexing))
}

fn over_pieces(grammar: palmette_grammar::Grammar) -> GrammarConstraint {
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let texts = ["[", "]", ",", "a", "bc", " ", "],", "[[", "a,", ", b", "x]", "!", "] "];
    let tokens = texts.into_iter().map(Some).chain([None, None]);
    let vocabulary = Arc::new(Vocabulary::new(tokens, [TokenId(13)]).unwrap());
    let slices = Arc::new(PreparedVocabulary::new(vocabulary));
    GrammarConstraint::new(Arc::new(recognizer.unwrap()), slices)
}

#[test]
fn laws_hold() {
    for lexing in [Lexing::Longest, Lexing::Any] {
        laws::check(&constraint(lexing), 7, 40, 12);
    }
}

/// One terminal is never more than begun: what comes before it matches nothing.
#[test]
fn nothing_follows_in_the_language_of_the_empty_text() {
    let mut grammar = GrammarBuilder::new();
    let letters = Regex::Class(CharClass::new([('a', 'z')])).repeat(1, None);
    let kind = TerminalKind::Pattern;
    let name = Terminal { name: "NAME".into(), regex: letters, priority: 0, kind, span: None };
    let name = Symbol::Terminal(grammar.terminal(name));
    let start = grammar.nonterminal("start", None);
    let nothing = Symbol::Nonterminal(grammar.nonterminal("nothing", None));
    grammar.rule(start, []);
    grammar.rule(start, [nothing, name]);
    for lexing in [Lexing::Any, Lexing::Longest] {
        let constraint = over_pieces(grammar.clone().build(start, lexing));
        laws::check(&constraint, 3, 1, 3);
        let mut next = constraint.start();
        let accepts = constraint.is_accepting(&next, &mut GrammarScratch::default());
        assert!(accepts.unwrap());
        constraint.commit(&mut next, TokenId(3), &mut GrammarScratch::default()).unwrap_err();
    }
}

/// What a text began with decides what it may end with, and there are 2^n ways through the stacks
/// to what is below n letters.
#[test]
fn ambiguous_texts_with_many_ways_through_their_stacks_are_walked() {
    let mut grammar = GrammarBuilder::new();
    let [first, second, letter, end_of_first, end_of_second] =
        ["[", ",", "a", "]", "!"].map(|text| {
            let (regex, kind) = (Regex::literal(text), TerminalKind::Literal);
            let terminal = Terminal { name: text.into(), regex, priority: 0, kind, span: None };
            Symbol::Terminal(grammar.terminal(terminal))
        });
    let [start, list, one, other] =
        ["start", "list", "one", "other"].map(|name| grammar.nonterminal(name, None));
    let n = Symbol::Nonterminal;
    grammar.rule(start, [first, n(list), end_of_first]);
    grammar.rule(start, [second, n(list), end_of_second]);
    grammar.rule(list, []);
    grammar.rule(list, [n(one), n(list)]);
    grammar.rule(list, [n(other), n(list)]);
    grammar.rule(one, [letter]);
    grammar.rule(other, [letter]);
    let constraint = over_pieces(grammar.build(start, Lexing::Any));
    let mut scratch = GrammarScratch::default();
    for (first, last) in [(0, 1), (2, 11)] {
        let mut state = constraint.start();
        constraint.commit(&mut state, TokenId(first), &mut scratch).unwrap();
        for _ in 0..40 {
            let mut row = vec![0; 1];
            constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
            let allowed: Vec<_> = mask::iter(&row).map(|token| token.0).collect();
            let mut expected = [3, last];
            expected.sort_unstable();
            assert_eq!(allowed, expected);
            constraint.commit(&mut state, TokenId(3), &mut scratch).unwrap();
        }
    }
    let limits = PrecomputeLimits::default();
    let completed = constraint.precompute(&limits, &AtomicBool::new(false)).unwrap();
    assert!(completed.visited > 0);
}

#[test]
fn bytes_are_committed_like_tokens_and_taken_back() {
    let constraint = constraint(Lexing::Longest);
    let mut scratch = GrammarScratch::default();
    let mut state = constraint.start();
    constraint.commit_bytes(&mut state, b"[a, [b", &mut scratch).unwrap();
    let mut row = vec![0; 1];
    constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
    let allowed: Vec<_> = mask::iter(&row).map(|token| token.0).collect();
    assert_eq!(allowed, [1, 2, 3, 4, 5, 6, 8, 9, 10, 12]);
    constraint.commit(&mut state, TokenId(1), &mut scratch).unwrap();
    assert!(!constraint.is_accepting(&state, &mut scratch).unwrap());
    constraint.commit(&mut state, TokenId(1), &mut scratch).unwrap();
    assert!(constraint.is_accepting(&state, &mut scratch).unwrap());
    constraint.rollback(&mut state, 3).unwrap();
    assert_eq!(state, constraint.start());

    let error = constraint.commit_bytes(&mut state, b"[a!", &mut scratch).unwrap_err();
    assert!(error.to_string().contains("0x21 at offset 2"), "{error}");
    assert_eq!(state, constraint.start());
}

#[test]
fn forced_bytes_go_on_while_there_is_one_way() {
    let constraint = constraint(Lexing::Longest);
    let mut scratch = GrammarScratch::default();
    // A list may begin with blanks, so nothing is forced.
    assert_eq!(constraint.forced_bytes(&constraint.start(), 10, &mut scratch).unwrap(), b"");
}

#[test]
fn a_long_history_is_dropped_without_recursion() {
    let constraint = constraint(Lexing::Longest);
    let mut state = constraint.start();
    constraint.commit(&mut state, TokenId(0), &mut GrammarScratch::default()).unwrap();
    for _ in 0..300_000 {
        constraint.commit(&mut state, TokenId(5), &mut GrammarScratch::default()).unwrap();
    }
    constraint.rollback(&mut state, 300_000).unwrap();
    assert_eq!(state.num_commits(), 1);
}

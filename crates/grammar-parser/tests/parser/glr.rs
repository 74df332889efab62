//! The parser says of every sequence of terminals what the definition says.

use palmette_grammar_parser::{
    Grammar, ParserLimits, TerminalId, TerminalSet,
    glr::{Parser, ParserScratch, Stacks},
};
use palmette_testkit::grammar::generate::{abstract_grammar, grammar_of};
use palmette_testkit::grammar::{Earley, EarleyGrammar};
use proptest::prelude::*;

/// Compares all answers at one place.
#[track_caller]
fn check_place(parser: &Parser, stacks: &Stacks, chart: &Earley<'_>, scratch: &mut ParserScratch) {
    let num_terminals = parser.tables().num_terminals();
    let expected = chart.allowed();
    let mut allowed = TerminalSet::new(num_terminals);
    parser.allowed(stacks, &mut allowed, scratch).unwrap();
    assert!(
        allowed.iter().eq(expected.iter().copied()),
        "{allowed:?}, not {expected:?}\n{stacks:?}"
    );
    for terminal in (0..num_terminals as u32).map(TerminalId) {
        let accepted = parser.accepts(stacks, terminal, scratch).unwrap();
        assert_eq!(accepted, expected.contains(&terminal), "accepts {terminal:?}\n{stacks:?}");
    }
    let end = parser.accepts_end(stacks, scratch).unwrap();
    assert_eq!(end, chart.is_sentence(), "accepts the end\n{stacks:?}");
}

/// Compares all answers along one sequence; tells how many of its terminals may be read.
#[track_caller]
fn check_sequence(grammar: &Grammar, sequence: impl IntoIterator<Item = TerminalId>) -> usize {
    let earley = EarleyGrammar::new(grammar);
    let parser = Parser::new(grammar, &ParserLimits::default()).unwrap();
    let (mut chart, mut scratch) = (earley.begin(), ParserScratch::new());
    let mut stacks = parser.start();
    let mut read = 0;
    for terminal in sequence {
        check_place(&parser, &stacks, &chart, &mut scratch);
        let next = parser.shift(&stacks, terminal, &mut scratch).unwrap();
        assert_eq!(next.is_some(), chart.read(terminal), "shifts {terminal:?}\n{stacks:?}");
        let Some(next) = next else { return read };
        assert_eq!(Some(&next), parser.shift(&stacks, terminal, &mut scratch).unwrap().as_ref());
        stacks = next;
        read += 1;
    }
    check_place(&parser, &stacks, &chart, &mut scratch);
    read
}

/// Compares all answers on all sequences of up to `length` terminals.
#[track_caller]
fn check_all(grammar: &Grammar, length: usize) {
    let earley = EarleyGrammar::new(grammar);
    let parser = Parser::new(grammar, &ParserLimits::default()).unwrap();
    let mut scratch = ParserScratch::new();
    let mut places = vec![(parser.start(), earley.begin())];
    for _ in 0..=length {
        for (stacks, chart) in std::mem::take(&mut places) {
            check_place(&parser, &stacks, &chart, &mut scratch);
            for terminal in (0..grammar.terminals().len() as u32).map(TerminalId) {
                let next = parser.shift(&stacks, terminal, &mut scratch).unwrap();
                let mut chart = chart.clone();
                assert_eq!(next.is_some(), chart.read(terminal), "{terminal:?}\n{stacks:?}");
                places.extend(next.map(|next| (next, chart)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn equals_earley_on_random_grammars(
        grammar in abstract_grammar(),
        choices in prop::collection::vec(any::<u32>(), 0..14),
        wrong in any::<u8>(),
    ) {
        // Follows what is allowed, so that sequences get long, and then tries something else.
        let earley = EarleyGrammar::new(&grammar);
        let mut chart = earley.begin();
        let mut sequence = Vec::new();
        for choice in choices {
            let allowed: Vec<_> = chart.allowed().into_iter().collect();
            if allowed.is_empty() {
                break;
            }
            let terminal = allowed[choice as usize % allowed.len()];
            chart.read(terminal);
            sequence.push(terminal);
        }
        sequence.push(TerminalId(u32::from(wrong) % grammar.terminals().len() as u32));
        check_sequence(&grammar, sequence);
    }

    #[test]
    fn equals_earley_on_all_short_sequences(grammar in abstract_grammar()) {
        check_all(&grammar, 3);
    }
}

#[test]
fn dangling_else() {
    check_all(&grammar_of("S -> if S | if S else S | x"), 7);
}

#[test]
fn hidden_left_recursion() {
    // Nozohoor-Farshi's grammar: a stack with any number of empty Bs would begin every sentence.
    check_all(&grammar_of("S -> a ; S -> B S b ; S -> b ; B ->"), 6);
    check_all(&grammar_of("S -> A S b | x ; A -> B B | a ; B -> | c S"), 6);
    check_all(&grammar_of("S -> N M S | N x ; N -> M M | ; M -> | m N"), 6);
}

#[test]
fn cycles() {
    check_all(&grammar_of("S -> S | a"), 4);
    check_all(&grammar_of("S -> A | a ; A -> B ; B -> S | S S"), 5);
    check_all(&grammar_of("S -> S S | a |"), 6);
    // The end is in the lookahead of `B -> C` after `C C` for the sake of `C C S` with the `S` a `C
    // C`.
    check_all(&grammar_of("S -> B ; B -> C | y x ; C -> S | C C S | x | x z"), 5);
    check_all(&grammar_of("S -> B ; B -> y x z | C ; C -> z x | C C S | x z | y x x | S | x"), 5);
}

#[test]
fn empty_rules_everywhere() {
    check_all(&grammar_of("S -> A B C D ; A -> a | ; B -> b | A ; C -> A B | ; D -> d D | C"), 5);
    check_all(&grammar_of("S -> A S A | a ; A -> |"), 4);
    // Right-nulled rules and rules that are nullable in the middle.
    check_all(&grammar_of("S -> a S A | ; A ->"), 5);
    check_all(&grammar_of("S -> a A A b | a A A c ; A -> | a"), 6);
}

#[test]
fn not_lalr() {
    check_all(&grammar_of("S -> a A d | b B d | a B e | b A e ; A -> c ; B -> c"), 5);
}

#[test]
fn no_sentence() {
    let grammar = grammar_of("S -> a S");
    check_all(&grammar, 3);
    let parser = Parser::new(&grammar, &ParserLimits::default()).unwrap();
    assert!(!parser.accepts_end(&parser.start(), &mut ParserScratch::new()).unwrap());
}

#[test]
fn only_the_empty_sentence() {
    check_all(&grammar_of("S -> A A ; A -> | B a ; B -> b B"), 2);
}

/// The position after a sequence that may be read.
#[track_caller]
fn read(parser: &Parser, sequence: impl IntoIterator<Item = u32>) -> Stacks {
    let mut scratch = ParserScratch::new();
    sequence.into_iter().fold(parser.start(), |stacks, terminal| {
        let next = parser.shift(&stacks, TerminalId(terminal), &mut scratch).unwrap();
        next.expect("the sequence may be read")
    })
}

fn parser_of(rules: &str) -> Parser {
    Parser::new(&grammar_of(rules), &ParserLimits::default()).unwrap()
}

#[test]
fn a_million_brackets() {
    let parser = parser_of("S -> ( S ) | x");
    let depth = 1_000_000;
    let mut stacks = read(&parser, std::iter::repeat_n(0, depth).chain([2]));
    assert!(stacks.num_nodes() > depth);
    let mut scratch = ParserScratch::new();
    for _ in 0..depth {
        assert!(!parser.accepts_end(&stacks, &mut scratch).unwrap());
        stacks = parser.shift(&stacks, TerminalId(1), &mut scratch).unwrap().unwrap();
    }
    assert!(parser.accepts_end(&stacks, &mut scratch).unwrap());
    // Two deep stacks that share nothing are compared, merged and dropped.
    let [a, b] = [(); 2].map(|()| read(&parser, std::iter::repeat_n(0, depth)));
    assert_eq!(a, b);
    assert_eq!(parser.merge(&a, &b), a);
}

#[test]
fn a_million_symbols_reduced_at_once() {
    // Right recursion: nothing is reduced before the end, and then everything.
    let parser = parser_of("S -> x S | x");
    let stacks = read(&parser, std::iter::repeat_n(0, 1_000_000));
    assert!(parser.accepts_end(&stacks, &mut ParserScratch::new()).unwrap());
}

#[test]
fn exponentially_many_parses_in_polynomial_space() {
    let parser = parser_of("S -> S S S | S S | x");
    let (mut stacks, mut scratch) = (parser.start(), ParserScratch::new());
    let mut sizes = Vec::new();
    for length in 1..=120_usize {
        stacks = parser.shift(&stacks, TerminalId(0), &mut scratch).unwrap().unwrap();
        assert!(parser.accepts_end(&stacks, &mut scratch).unwrap());
        sizes.push(stacks.num_nodes());
        assert!(stacks.num_nodes() <= 4 * length + 4, "{} nodes at {length}", stacks.num_nodes());
    }
    assert!(sizes.is_sorted());
}

#[test]
fn too_many_links_are_an_error() {
    let grammar = grammar_of("S -> S S S | S S | x");
    let limits = ParserLimits { max_links: 100, ..ParserLimits::default() };
    let parser = Parser::new(&grammar, &limits).unwrap();
    let (mut stacks, mut scratch) = (parser.start(), ParserScratch::new());
    let error = loop {
        match parser.shift(&stacks, TerminalId(0), &mut scratch) {
            Ok(next) => stacks = next.unwrap(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.limit(), 100);
    assert!(error.to_string().contains("max_links"));
}

/// How many terminals of a cyclic, ambiguous grammar are read before a limit on the links to look
/// at is exceeded.
fn read_within(rules: &str, max_links: usize) -> usize {
    let limits = ParserLimits { max_links, ..ParserLimits::default() };
    let parser = Parser::new(&grammar_of(rules), &limits).unwrap();
    let (mut stacks, mut scratch, mut read) = (parser.start(), ParserScratch::new(), 0);
    while let Ok(next) = parser.shift(&stacks, TerminalId(0), &mut scratch) {
        stacks = next.expect("there is no end to it");
        read += 1;
    }
    read
}

#[test]
fn the_limit_is_one_on_work_which_grows_with_the_square() {
    // With four times the work for each terminal, about twice as many are read: n³ for n of them.
    for rules in ["S -> S S | a |", "S -> S S | a", "S -> A | a ; A -> B ; B -> S | S S"] {
        let [few, many] = [20_000, 80_000].map(|limit| read_within(rules, limit));
        assert!((10..=400).contains(&few), "{few} for {rules}");
        assert!((17 * few..=23 * few).contains(&(10 * many)), "{few}, then {many} for {rules}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_merged_position_allows_what_either_does(
        grammar in abstract_grammar(),
        choices in prop::collection::vec((any::<u32>(), any::<bool>()), 0..12),
        later in prop::collection::vec(any::<u32>(), 0..6),
    ) {
        let parser = Parser::new(&grammar, &ParserLimits::default()).unwrap();
        let mut scratch = ParserScratch::new();
        let allowed = |stacks: &Stacks, scratch: &mut ParserScratch| {
            let mut allowed = TerminalSet::new(grammar.terminals().len());
            parser.allowed(stacks, &mut allowed, scratch).unwrap();
            allowed
        };
        let step = |stacks: &Stacks, choice: u32, scratch: &mut ParserScratch| {
            let next: Vec<_> = allowed(stacks, scratch).iter().collect();
            let terminal = *next.get(choice as usize % next.len().max(1))?;
            parser.shift(stacks, terminal, scratch).unwrap()
        };
        // Two positions that begin alike, and one merged from them.
        let (mut a, mut b) = (parser.start(), parser.start());
        for (choice, both) in choices {
            let next = step(&a, choice, &mut scratch);
            if both {
                b = step(&b, choice, &mut scratch).unwrap_or(b);
            }
            a = next.unwrap_or(a);
        }
        let mut merged = parser.merge(&a, &b);
        prop_assert_eq!(&merged, &parser.merge(&b, &a));
        prop_assert_eq!(&parser.merge(&merged, &a), &merged);
        let (mut a, mut b) = (Some(a), Some(b));
        for choice in later {
            let of = |stacks: &Option<Stacks>, scratch: &mut ParserScratch| match stacks {
                Some(stacks) => allowed(stacks, scratch),
                None => TerminalSet::new(grammar.terminals().len()),
            };
            let mut either = of(&a, &mut scratch);
            either.union_with(&of(&b, &mut scratch));
            prop_assert_eq!(&allowed(&merged, &mut scratch), &either);
            let end = [&a, &b].into_iter().flatten().any(|stacks| parser.accepts_end(stacks, &mut scratch).unwrap());
            prop_assert_eq!(parser.accepts_end(&merged, &mut scratch).unwrap(), end);
            let next: Vec<_> = either.iter().collect();
            let Some(&terminal) = next.get(choice as usize % next.len().max(1)) else { break };
            merged = parser.shift(&merged, terminal, &mut scratch).unwrap().unwrap();
            a = a.and_then(|a| parser.shift(&a, terminal, &mut scratch).unwrap());
            b = b.and_then(|b| parser.shift(&b, terminal, &mut scratch).unwrap());
        }
    }
}

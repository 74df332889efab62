//! The parser says of every sequence of terminals what the definition says.

use palmette_grammar::{
    Grammar, Parser, ParserLimits, ParserScratch, Stacks, TerminalId, TerminalSet,
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

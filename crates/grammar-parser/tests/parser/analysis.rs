//! Findings of the analysis.

use palmette_grammar_parser::{
    Analysis, Budget, Grammar, NonterminalId, Severity, TableLimits, analyse, rules::reduce,
};
use palmette_testkit::grammar::EarleyGrammar;
use palmette_testkit::grammar::generate::{abstract_grammar, grammar_of};
use proptest::prelude::*;

fn analysis_of(grammar: &Grammar) -> Analysis {
    analyse(grammar, &TableLimits::default(), &mut Budget::unlimited())
}

#[track_caller]
fn check_names(grammar: &Grammar, found: &[NonterminalId], expected: &[&str]) {
    let names = found.iter().map(|id| grammar.nonterminals()[id.index()].name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn nonterminals_are_told_apart() {
    let grammar = grammar_of(
        "S -> L | H | C | c E ; L -> L a | b ; H -> N H c | d ; N -> n | ; C -> D N ; D -> C | e ; \
         E -> e E ; U -> u",
    );
    let analysis = analysis_of(&grammar);
    check_names(&grammar, &analysis.unreachable, &["U"]);
    check_names(&grammar, &analysis.unproductive, &["E"]);
    check_names(&grammar, &analysis.nullable, &["N"]);
    check_names(&grammar, &analysis.left_recursive, &["L", "H", "C", "D"]);
    check_names(&grammar, &analysis.hidden_left_recursive, &["H"]);
    check_names(&grammar, &analysis.cyclic, &["C", "D"]);
    assert!(analysis.undefined.is_empty());
    let messages: Vec<_> = analysis.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(messages[0], "warning: `U` is not used by any text of the start");
    assert_eq!(messages[1], "warning: `E` derives no text: none of its rules comes to an end");
}

#[test]
fn the_empty_language_is_reported() {
    let grammar = grammar_of("S -> a S");
    let analysis = analysis_of(&grammar);
    assert!(analysis.is_empty_language(&grammar));
    let [only] = &analysis.diagnostics[..] else { panic!("{:?}", analysis.diagnostics) };
    assert_eq!(only.severity, Severity::Warning);
    assert!(only.message.contains("everything is denied"), "{only}");
}

#[test]
fn conflicts_have_an_example() {
    let grammar = grammar_of("S -> if S | if S else S | x");
    let analysis = analysis_of(&grammar);
    let [conflict] = &analysis.conflicts[..] else { panic!("{:?}", analysis.conflicts) };
    assert!(conflict.shifts);
    assert_eq!(conflict.rules, [0]);
    let message = &analysis.diagnostics[0].message;
    assert_eq!(
        message,
        "after \"if\" \"x\", before \"else\", one terminal does not decide whether to end \
         `S → \"if\" S` or read on"
    );
    assert!(analysis_of(&grammar_of("S -> if S fi | x")).conflicts.is_empty());
}

#[test]
fn tables_over_the_limit_are_reported() {
    let grammar = grammar_of("S -> a b c d");
    let limits = TableLimits { max_states: 3, ..TableLimits::default() };
    let analysis = analyse(&grammar, &limits, &mut Budget::unlimited());
    assert_eq!(analysis.diagnostics[0].severity, Severity::Error);
    assert!(analysis.diagnostics[0].message.contains("max_states"));
    let analysis = analyse(&grammar, &TableLimits::default(), &mut Budget::new(2));
    assert!(analysis.diagnostics[0].message.contains("budget of 2"));
}

proptest! {
    #[test]
    fn a_reduced_grammar_has_the_same_sentences_and_nothing_to_report(
        grammar in abstract_grammar(),
        choices in prop::collection::vec(any::<u32>(), 0..8),
    ) {
        let reduced = reduce(&grammar);
        let analysis = analysis_of(&reduced);
        let is_empty = analysis.is_empty_language(&reduced);
        prop_assert!(analysis.unreachable.is_empty());
        prop_assert_eq!(analysis.unproductive.is_empty(), !is_empty);
        prop_assert_eq!(is_empty, reduced.rules().is_empty());
        let (before, after) = (EarleyGrammar::new(&grammar), EarleyGrammar::new(&reduced));
        let (mut before, mut after) = (before.begin(), after.begin());
        for choice in choices {
            prop_assert_eq!(before.is_sentence(), after.is_sentence());
            let allowed: Vec<_> = before.allowed().into_iter().collect();
            prop_assert_eq!(&allowed, &after.allowed().into_iter().collect::<Vec<_>>());
            let Some(&next) = allowed.get(choice as usize % allowed.len().max(1)) else { break };
            before.read(next);
            after.read(next);
        }
    }
}

//! Drawings of mask automata in Graphviz's language.

use std::collections::BTreeMap;
use std::fmt::Write;

use palmette_grammar::{AutomatonGraph, GraphNode, Recognizer};

/// Characters of a label, at most; of terminals that may be in progress, as many as fit.
const MOST_LABEL: usize = 40;

/// The automaton of a grammar: a box for each question, the lexeme in progress, an ellipse for what
/// some states of a stack decide, with the number of tokens, and an edge for each state that is
/// read, named by the symbol that leads to it.
pub(super) fn dot(recognizer: &Recognizer, graph: &AutomatonGraph) -> String {
    let symbols = symbols(recognizer);
    let named = |state: u32| match symbols.get(&state) {
        Some(symbol) => format!("{state} {symbol}"),
        None => format!("{state} the start"),
    };
    let mut drawn = "digraph masks {\n  rankdir=LR; node [fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\", fontsize=10];\n".to_owned();
    let mut questions = BTreeMap::new();
    for first in &graph.firsts {
        questions.entry(first.lexer.0).or_insert_with(|| {
            let viable = recognizer.lexer().viable_terminals(first.lexer);
            let terminals = recognizer.grammar().terminals();
            let names = viable.iter().map(|id| terminals[id.index()].name.as_str());
            names.collect::<Vec<_>>().join(" ")
        });
    }
    for (lexer, names) in &questions {
        let what =
            if *lexer == recognizer.lexer().start().0 { "between lexemes" } else { "within" };
        line(
            &mut drawn,
            format_args!("q{lexer} [shape=box, label={}]", label(&format!("{what}: {names}"))),
        );
    }
    for (number, GraphNode { tokens, missing, nexts, .. }) in graph.nodes.iter().enumerate() {
        let said = tokens.map_or("not asked".to_owned(), |tokens| format!("{tokens} tokens"));
        let reads = match missing {
            0 => String::new(),
            more => format!(", reads {more} more"),
        };
        line(&mut drawn, format_args!("n{number} [label={}]", label(&format!("{said}{reads}"))));
        for &(state, next) in nexts {
            line(
                &mut drawn,
                format_args!("n{number} -> n{next} [label={}]", label(&named(state.0))),
            );
        }
    }
    for first in &graph.firsts {
        line(
            &mut drawn,
            format_args!(
                "q{} -> n{} [label={}]",
                first.lexer.0,
                first.node,
                label(&named(first.top.0))
            ),
        );
    }
    drawn.push_str("}\n");
    drawn
}

fn line(drawn: &mut String, statement: std::fmt::Arguments<'_>) {
    // Into memory: it does not fail.
    let _ = writeln!(drawn, "  {statement};");
}

/// A text in quotes, as long as a drawing can show.
fn label(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_LABEL).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The symbol that leads to each state of the parser.
fn symbols(recognizer: &Recognizer) -> BTreeMap<u32, String> {
    let (tables, grammar) = (recognizer.parser().tables(), recognizer.grammar());
    let mut symbols = BTreeMap::new();
    for state in tables.states() {
        for &(terminal, to) in tables.shifts(state) {
            if let Some(terminal) = grammar.terminals().get(terminal.index()) {
                symbols.insert(to.0, terminal.name.clone());
            }
        }
        for &(head, to) in tables.gotos(state) {
            if let Some(head) = grammar.nonterminals().get(head.index()) {
                symbols.insert(to.0, head.name.clone());
            }
        }
    }
    symbols
}

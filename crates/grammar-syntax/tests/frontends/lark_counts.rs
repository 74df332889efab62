//! Real grammars become as many terminals, nonterminals and rules as lark 1.2.2 makes of them.

use std::fmt::Write as _;

use palmette_grammar_parser::{Grammar, TerminalKind};
use palmette_grammar_syntax::lark::{LarkOptions, parse};
use palmette_testkit::data;

/// File, start rule, and how many terminals, nonterminals and rules lark has after `Lark(text,
/// start=…)`: its `terminals`, the origins of its `rules`, its `rules`.
///
/// Declared terminals (`_INDENT`, `_DEDENT`) are not among lark's 98 for Python; they are here and
/// in published counts.
const COUNTS: [(&str, &str, [usize; 3]); 7] = [
    ("python.lark", "file_input", [98 + 2, 176, 536]),
    ("lark/c.lark", "start", [32, 26, 74]),
    ("lark/calc.lark", "start", [8, 4, 9]),
    ("lark/go.lark", "start", [84, 154, 552]),
    ("lark/java.lark", "start", [101, 161, 405]),
    ("lark/json.lark", "start", [13, 8, 22]),
    // `[expression_math ","]*` repeats what may be empty: lark makes `n → x , | ε | n x , | n`, of
    // which we leave out the empty rule and `n → n`, and let the repetition be absent.
    ("lark/sql.lark", "start", [79, 69, 378 - 2]),
];

#[test]
fn counts_are_those_of_lark() {
    let mut table = String::new();
    let mut all_equal = true;
    for (file, start, expected) in COUNTS {
        let Some(source) = data::text("counts_are_those_of_lark", file) else { return };
        let grammar = match parse(&source, &LarkOptions::from_rule(start)) {
            Ok(grammar) => grammar,
            Err(error) => panic!("{file}: {error}"),
        };
        let found = counts(&grammar);
        all_equal &= found == expected;
        writeln!(table, "{file:16} {found:?} lark {expected:?}").expect("a string takes all");
    }
    assert!(all_equal, "terminals, nonterminals, rules:\n{table}");
}

#[test]
fn python_has_blocks_by_indentation() {
    let Some(source) = data::text("python_has_blocks_by_indentation", "python.lark") else {
        return;
    };
    let grammar = parse(&source, &LarkOptions::from_rule("file_input")).expect("a grammar");
    let blocks = grammar.indentation().expect("blocks");
    let name =
        |id: &palmette_grammar_parser::TerminalId| grammar.terminals()[id.index()].name.clone();
    let names = [blocks.newline, blocks.indent, blocks.dedent].map(|id| name(&id));
    assert_eq!(names, ["_NEWLINE", "_INDENT", "_DEDENT"]);
    assert_eq!(blocks.open.iter().map(name).collect::<Vec<_>>(), ["LPAR", "LSQB", "LBRACE"]);
    assert_eq!(blocks.close.iter().map(name).collect::<Vec<_>>(), ["RPAR", "RSQB", "RBRACE"]);
    let declared =
        grammar.terminals().iter().filter(|terminal| terminal.kind == TerminalKind::Declared);
    assert_eq!(declared.count(), 2);
}

fn counts(grammar: &Grammar) -> [usize; 3] {
    [grammar.terminals().len(), grammar.nonterminals().len(), grammar.rules().len()]
}

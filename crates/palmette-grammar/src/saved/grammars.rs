//! A grammar as bytes.

use palmette_parser::Span;

use super::numbers::{In, Malformed, Out};
use super::regexes::{self, RegexesOut};
use crate::{
    DistinctNames, Grammar, GrammarBuilder, Indentation, Lexing, NonterminalId, Symbol, Terminal,
    TerminalId, TerminalKind,
};

/// Writes a grammar: expressions, terminals, nonterminals, rules, then the rest.
///
/// # Errors
/// When its expressions nest too deep or are too many.
pub(super) fn write(grammar: &Grammar) -> Result<Vec<u8>, Malformed> {
    let (mut regexes, mut numbers) = (RegexesOut::default(), Vec::new());
    for terminal in grammar.terminals() {
        numbers.push(regexes.add(&terminal.regex)?);
    }
    regexes::check_nodes(numbers.iter().map(|&number| regexes.num_nodes(number)))?;
    let mut out = Out::default();
    regexes.finish(&mut out);
    out.len(grammar.terminals().len());
    for (terminal, regex) in grammar.terminals().iter().zip(numbers) {
        out.u32(regex);
        out.u32(terminal.priority.cast_unsigned());
        out.u32(match terminal.kind {
            TerminalKind::Literal => 0,
            TerminalKind::Pattern => 1,
            TerminalKind::Declared => 2,
            TerminalKind::Free => 3,
        });
        out.text(&terminal.name);
        span(&mut out, terminal.span);
    }
    out.len(grammar.nonterminals().len());
    for nonterminal in grammar.nonterminals() {
        out.text(&nonterminal.name);
        span(&mut out, nonterminal.span);
    }
    out.len(grammar.rules().len());
    for rule in grammar.rules() {
        out.u32(rule.head.0);
        out.len(rule.body.len());
        for symbol in &rule.body {
            match *symbol {
                Symbol::Terminal(id) => out.all(&[0, id.0]),
                Symbol::Nonterminal(id) => out.all(&[1, id.0]),
            }
        }
    }
    out.u32(grammar.start().0);
    terminals(&mut out, grammar.ignored());
    out.u32(match grammar.lexing() {
        Lexing::Any => 0,
        Lexing::Longest => 1,
        Lexing::Contextual => 2,
    });
    out.u32(grammar.indentation().is_some().into());
    if let Some(blocks) = grammar.indentation() {
        terminals(&mut out, &[blocks.newline, blocks.indent, blocks.dedent]);
        terminals(&mut out, &blocks.open);
        terminals(&mut out, &blocks.close);
        out.u32(blocks.tab_width);
    }
    out.u32(grammar.distinct_names().is_some().into());
    if let Some(DistinctNames { open, between, close, one, many }) = grammar.distinct_names() {
        [open, between, close, many].into_iter().for_each(|part| terminals(&mut out, part));
        out.len(one.len());
        for (terminal, name) in one {
            out.u32(terminal.0);
            out.text(name);
        }
    }
    Ok(out.bytes)
}

/// Reads what [`write`] wrote, or anything else.
pub(super) fn read(bytes: &[u8]) -> Result<Grammar, Malformed> {
    let from = &mut In::new(bytes);
    let regexes = regexes::read(from)?;
    let mut grammar = GrammarBuilder::new();
    let num_terminals = from.count("terminals")?;
    let mut nodes = Vec::new();
    for _ in 0..num_terminals {
        let (regex, num_nodes) = &regexes[from.below(regexes.len(), "expression")? as usize];
        let regex = regex.clone();
        nodes.push(*num_nodes);
        let priority = from.u32()?.cast_signed();
        use TerminalKind::{Declared, Free, Literal, Pattern};
        let kinds = [Literal, Pattern, Declared, Free];
        let kind = kinds[from.below(kinds.len(), "kind of terminals")? as usize];
        let name = from.text()?.to_owned();
        let span = read_span(from)?;
        grammar.terminal(Terminal { name, regex, priority, kind, span });
    }
    regexes::check_nodes(nodes.into_iter())?;
    let num_nonterminals = from.count("nonterminals")?;
    for _ in 0..num_nonterminals {
        let name = from.text()?;
        let span = read_span(from)?;
        grammar.nonterminal(name, span);
    }
    for _ in 0..from.count("rules")? {
        let head = NonterminalId(from.below(num_nonterminals, "nonterminal")?);
        let len = from.count("symbols")?;
        let mut body = Vec::with_capacity(len);
        for _ in 0..len {
            body.push(match from.below(2, "kind of symbols")? {
                0 => Symbol::Terminal(TerminalId(from.below(num_terminals, "terminal")?)),
                _ => {
                    Symbol::Nonterminal(NonterminalId(from.below(num_nonterminals, "nonterminal")?))
                }
            });
        }
        grammar.rule(head, body);
    }
    let start = NonterminalId(from.below(num_nonterminals, "nonterminal")?);
    for terminal in read_terminals(from, num_terminals)? {
        grammar.ignore(terminal);
    }
    let lexing = [Lexing::Any, Lexing::Longest, Lexing::Contextual];
    let lexing = lexing[from.below(3, "kind of lexing")? as usize];
    if from.below(2, "kind of blocks")? == 1 {
        let marks = read_terminals(from, num_terminals)?;
        let &[newline, indent, dedent] = &*marks else {
            return Malformed::because(format!("it has blocks of {} terminals", marks.len()));
        };
        let open = read_terminals(from, num_terminals)?;
        let close = read_terminals(from, num_terminals)?;
        let tab_width = from.u32()?;
        grammar.indentation(Indentation { newline, indent, dedent, open, close, tab_width });
    }
    if from.below(2, "kind of names")? == 1 {
        let mut part = || read_terminals(from, num_terminals);
        let (open, between, close, many) = (part()?, part()?, part()?, part()?);
        let mut one = Vec::new();
        for _ in 0..from.count("names")? {
            let terminal = TerminalId(from.below(num_terminals, "terminal")?);
            one.push((terminal, from.text()?.to_owned()));
        }
        grammar.distinct_names(DistinctNames { open, between, close, one, many });
    }
    from.end()?;
    Ok(grammar.build(start, lexing))
}

fn terminals(out: &mut Out, terminals: &[TerminalId]) {
    out.len(terminals.len());
    terminals.iter().for_each(|terminal| out.u32(terminal.0));
}

fn read_terminals(from: &mut In<'_>, num_terminals: usize) -> Result<Vec<TerminalId>, Malformed> {
    let count = from.count("terminals")?;
    (0..count).map(|_| Ok(TerminalId(from.below(num_terminals, "terminal")?))).collect()
}

fn span(out: &mut Out, span: Option<Span>) {
    // Lines are counted from 1. Sources are below 4 GiB; where one is not, the place is left out.
    let small = |at: usize| u32::try_from(at).ok();
    match span.and_then(|span| Some((span, small(span.start)?, small(span.end)?))) {
        None => out.u32(0),
        Some((span, start, end)) => {
            out.all(&[span.line.max(1), span.column, start, end]);
        }
    }
}

fn read_span(from: &mut In<'_>) -> Result<Option<Span>, Malformed> {
    let line = from.u32()?;
    if line == 0 {
        return Ok(None);
    }
    let (column, start, end) = (from.u32()?, from.u32()? as usize, from.u32()? as usize);
    Ok(Some(Span { start, end, line, column }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use palmette_frontends::{json_schema, lark};

    /// All of it, in words.
    fn shown(grammar: &Grammar) -> String {
        format!("{grammar:?}")
    }

    #[track_caller]
    fn check(grammar: &Grammar) -> Vec<u8> {
        let bytes = write(grammar).unwrap();
        let back = read(&bytes).unwrap();
        assert_eq!(shown(&back), shown(grammar));
        assert_eq!(write(&back).unwrap().len(), bytes.len());
        bytes
    }

    fn samples() -> Vec<Grammar> {
        let lark = |source| lark::parse(source, &lark::LarkOptions::default()).unwrap();
        let schema = |source| json_schema::parse(source, &Default::default()).unwrap();
        vec![
            lark("start: A (\"b\" start)?\nA.3: /(?!ab)[a-z]+?(?<=z)/i | /x{2,5}/\n%ignore /[ ]+/"),
            lark(
                "start: (A _NEWLINE [_INDENT start _DEDENT])+\nA: /[a-z]+/ | \"(\"\n\
                  _NEWLINE: /\\n *|\\n\\t*/\n%declare _INDENT _DEDENT",
            ),
            schema(
                r#"{"properties": {"a": {"type": "string", "pattern": "^x{3,9}$"}, "b": {"not": {"enum": ["c"]}}}}"#,
            ),
            schema(r#"{"items": {"type": "number", "minimum": -3.5}, "maxItems": 3}"#),
            schema(r#"{"properties": {"a": {"type": "null"}}, "minProperties": 2}"#),
        ]
    }

    #[test]
    fn a_grammar_is_read_as_it_was_written() {
        samples().iter().for_each(|grammar| drop(check(grammar)));
    }

    #[test]
    fn a_cut_grammar_is_an_error() {
        for grammar in samples() {
            let bytes = check(&grammar);
            for len in 0..bytes.len() {
                assert!(read(&bytes[..len]).is_err(), "{len} of {}", bytes.len());
            }
            assert!(read(&[&bytes[..], &[0; 4]].concat()).is_err());
        }
    }

    #[test]
    fn expressions_that_nest_deep_or_write_out_large_are_errors() {
        let mut out = Out::default();
        // Each is the negation of the one before.
        out.len(10_001);
        out.u32(0);
        for inner in 0..10_000 {
            out.all(&[7, inner]);
        }
        let error = regexes::read(&mut In::new(&out.bytes)).unwrap_err();
        assert!(error.0.contains("nest deeper than"), "{error}");
        // Each is the one before, twice.
        let mut out = Out::default();
        out.len(101);
        out.u32(1);
        for inner in 0..100 {
            out.all(&[4, 2, inner, inner]);
        }
        let error = regexes::read(&mut In::new(&out.bytes)).unwrap_err();
        assert!(error.0.contains("written out"), "{error}");
    }

    #[test]
    fn shared_parts_are_written_once() {
        let mut regex = crate::Regex::literal("ab");
        for _ in 0..15 {
            regex = crate::Regex::Concat([regex.clone(), regex].into());
        }
        let mut regexes = RegexesOut::default();
        assert_eq!(regexes.add(&regex).unwrap(), 15);
        let mut out = Out::default();
        regexes.finish(&mut out);
        let read = regexes::read(&mut In::new(&out.bytes)).unwrap();
        assert_eq!(read.last().map(|(read, nodes)| (read, *nodes)), Some((&regex, (1 << 16) - 1)));
    }

    proptest! {
        #[test]
        fn changed_numbers_are_an_error_or_another_grammar(
            sample in 0..5_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..12_u32, any::<u32>()]), 1..4),
        ) {
            let mut bytes = write(&samples()[sample]).unwrap();
            for (at, number) in changes {
                let at = at.index(bytes.len() / 4) * 4;
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            if let Ok(grammar) = read(&bytes) {
                prop_assert!(write(&grammar).is_ok());
            }
        }
    }
}

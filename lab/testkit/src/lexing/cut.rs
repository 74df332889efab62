//! Texts cut into lexemes.

use std::collections::{BTreeMap, BTreeSet};

use palmette_grammar_parser::{Lexing, Terminal, TerminalId, TerminalKind};

use super::lexeme_ends;

/// Lexemes one after another: where each ends and what it is.
pub type Cutting = Vec<(usize, TerminalId)>;

/// All ways to cut the whole `text` into lexemes of `terminals`. Those of `shadowed` do not lose
/// against others.
pub fn cuttings(
    terminals: &[Terminal],
    lexing: Lexing,
    shadowed: &BTreeSet<TerminalId>,
    text: &[char],
) -> BTreeSet<Cutting> {
    let mut cut = BTreeMap::from([(0, BTreeSet::from([Cutting::new()]))]);
    let mut whole = BTreeSet::new();
    while let Some((begin, before)) = cut.pop_first() {
        if begin == text.len() {
            whole = before;
            continue;
        }
        for lexeme in first_lexemes(terminals, lexing, shadowed, text, begin) {
            let longer = before.iter().map(|cutting| [&cutting[..], &[lexeme]].concat());
            cut.entry(lexeme.0).or_default().extend(longer);
        }
    }
    whole
}

/// The lexemes that may begin at `begin`: where they end and what they are.
pub fn first_lexemes(
    terminals: &[Terminal],
    lexing: Lexing,
    shadowed: &BTreeSet<TerminalId>,
    text: &[char],
    begin: usize,
) -> BTreeSet<(usize, TerminalId)> {
    let mut found = BTreeSet::new();
    for (index, terminal) in terminals.iter().enumerate() {
        let ends = lexeme_ends(&terminal.regex, text, begin);
        let ends = ends.into_iter().filter(|&end| end > begin);
        found.extend(ends.map(|end| (end, TerminalId(index as u32))));
    }
    if lexing == Lexing::Longest {
        let rank = |id: TerminalId| {
            let terminal = &terminals[id.index()];
            (terminal.priority, terminal.kind == TerminalKind::Literal)
        };
        let longest = found.last().map(|&(end, _)| end);
        found.retain(|&(end, _)| Some(end) == longest);
        let highest = found.iter().map(|&(_, id)| rank(id)).max();
        found.retain(|&(_, id)| Some(rank(id)) == highest || shadowed.contains(&id));
    }
    found
}

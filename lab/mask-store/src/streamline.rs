//! Streamlining: fewer rows, the same masks.

use palmette_core::TokenId;
use palmette_grammar_parser::blocks::Letter;
use palmette_grammar_parser::{Grammar, TerminalId};

use super::{interchange::Interchange, rules::Rules, spelling::Spellings, successors::Successors};

/// Choice of the steps that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// 1: rows that differ in interchangeable terminals only become one.
    pub interchange: bool,
    /// 2: rows with a terminal that the graph of successors does not have after the one before it
    /// go.
    pub successors: bool,
}

impl Steps {
    /// Rows as the tokens spell them.
    pub const NONE: Self = Self { interchange: false, successors: false };
    /// Both.
    pub const ALL: Self = Self { interchange: true, successors: true };

    /// The first `count` steps.
    pub fn first(count: usize) -> Self {
        Self { interchange: count >= 1, successors: count >= 2 }
    }
}

/// Takes the steps. Threads may share it.
///
/// Sound: for every position of the parser in which a sentence can be, the union of the token sets
/// of the rows that it accepts is the same before and after.
///
/// - A dropped row is accepted by no position.
/// - A row takes the first of a set for an interchangeable terminal, whose row is accepted by the
///   same positions.
#[derive(Debug)]
pub struct Streamliner {
    steps: Steps,
    interchange: Interchange,
    successors: Successors,
    newline: Option<TerminalId>,
}

impl Streamliner {
    /// Streamlining of a grammar. Cost: see [`Successors::new`] and [`Interchange::new`].
    pub fn new(grammar: &Grammar, steps: Steps) -> Self {
        let rules = Rules::new(grammar);
        let interchange = if steps.interchange {
            Interchange::of_rules(grammar, &rules)
        } else {
            Interchange::none(grammar.terminals().len())
        };
        let blocks = grammar.indentation();
        let marks = blocks.map_or_else(Vec::new, |blocks| vec![blocks.indent, blocks.dedent]);
        Self {
            steps,
            interchange,
            successors: Successors::of_rules(&rules, &marks),
            newline: blocks.map(|blocks| blocks.newline),
        }
    }

    /// The rows that are left; their number is what the steps are for.
    pub fn streamline(&self, rows: Spellings) -> Spellings {
        let mut streamlined = Spellings::new();
        let mut merged = Vec::new();
        for (mut letters, tokens) in rows {
            if !self.streamline_row(&mut letters) {
                continue;
            }
            let row: &mut Vec<TokenId> = streamlined.entry(letters.clone()).or_default();
            if row.is_empty() {
                *row = tokens;
            } else {
                row.extend(tokens);
                merged.push(letters);
            }
        }
        for letters in merged {
            let row = streamlined.get_mut(&letters).expect("it was just merged into");
            row.sort_unstable();
            row.dedup();
        }
        streamlined
    }

    /// Streamlines one row's sequence; `false` when the row goes.
    fn streamline_row(&self, letters: &mut [Letter]) -> bool {
        self.represent(letters);
        !self.steps.successors || self.can_be_neighbours(letters.iter().map(|one| one.terminal))
    }

    /// Step 1.
    fn represent(&self, letters: &mut [Letter]) {
        for letter in letters {
            letter.terminal = self.interchange.representative(letter.terminal);
        }
    }

    /// Step 2. A line's end may be one inside brackets, which the rules do not see.
    fn can_be_neighbours(&self, terminals: impl Iterator<Item = TerminalId>) -> bool {
        // What the rules have seen last, `None` when it may be anything; and whether that may have
        // been a line's end.
        let (mut before, mut line_ended) = (None, false);
        for terminal in terminals {
            let follows = |before| self.successors.may_follow(before, terminal);
            let fits =
                before.is_none_or(follows) || line_ended && self.newline.is_some_and(follows);
            if self.newline == Some(terminal) {
                line_ended |= fits && before.is_some();
            } else if fits {
                (before, line_ended) = (Some(terminal), false);
            } else {
                return false;
            }
        }
        true
    }
}

//! Streamlining: fewer rows, the same masks.

use palmette_core::TokenId;
use palmette_grammar_parser::blocks::Letter;
use palmette_grammar_parser::{Grammar, TerminalId};

use super::joint::JointRows;
use super::long_steps::LongSteps;
use super::steps::{Step, Steps};
use super::{interchange::Interchange, rules::Rules, spelling::Spellings, successors::Successors};

/// Taker of the steps. Threads may share it.
///
/// Sound: for every position of the parser in which a sentence can be, the union of the token sets
/// of the rows that it accepts is the same before and after.
///
/// - A dropped row is accepted by no position.
/// - A row takes the first of a set for an interchangeable terminal, whose row is accepted by the
///   same positions.
/// - A row without its end is accepted by the positions that the whole row is accepted by.
/// - Rows that become one are accepted by the same positions.
#[derive(Debug)]
pub struct Streamliner {
    steps: Steps,
    interchange: Interchange,
    successors: Successors,
    long: Option<LongSteps>,
    joint: Option<JointRows>,
    newline: Option<TerminalId>,
}

impl Streamliner {
    /// Streamlining of a grammar. Cost: see [`Successors::new`] and [`Interchange::new`]; the
    /// longer steps cost where rows come.
    pub fn new(grammar: &Grammar, steps: Steps) -> Self {
        let rules = Rules::new(grammar);
        let interchange = if steps.has(Step::Interchange) {
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
            long: LongSteps::new(grammar, steps),
            joint: steps.has(Step::Joint).then(|| JointRows::new(grammar)),
            newline: blocks.map(|blocks| blocks.newline),
        }
    }

    /// The rows that are left of a state's; their number is what the steps are for.
    pub fn streamline(&self, rows: Spellings) -> Spellings {
        self.streamline_after(None, rows)
    }

    /// The rows that are left of a state's where the terminal before its lexeme is known: more of
    /// them are decided by the grammar then.
    pub fn streamline_after(&self, before: Option<TerminalId>, rows: Spellings) -> Spellings {
        let rows = rows.into_iter().filter_map(|(mut letters, tokens)| {
            self.streamline_row(before, &mut letters).then_some((letters, tokens))
        });
        let rows = merged(rows);
        match &self.joint {
            Some(joint) => merged(joint.represent(rows)),
            None => rows,
        }
    }

    /// Streamlines one row's sequence; `false` when the row goes.
    fn streamline_row(&self, before: Option<TerminalId>, letters: &mut Vec<Letter>) -> bool {
        self.represent(letters);
        let terminals = letters.iter().map(|one| one.terminal);
        if self.steps.has(Step::Successors) && !self.can_be_neighbours(terminals.clone()) {
            return false;
        }
        let Some(long) = &self.long else { return true };
        let terminals: Vec<TerminalId> = terminals.collect();
        let Some(kept) = long.kept(before, &terminals) else { return false };
        letters.truncate(kept);
        true
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

/// Rows of which those of one sequence are one, with the tokens of all in ascending order.
fn merged(rows: impl Iterator<Item = (Vec<Letter>, Vec<TokenId>)>) -> Spellings {
    let (mut all, mut grown) = (Spellings::new(), Vec::new());
    for (letters, tokens) in rows {
        let row: &mut Vec<TokenId> = all.entry(letters.clone()).or_default();
        if row.is_empty() {
            *row = tokens;
        } else {
            row.extend(tokens);
            grown.push(letters);
        }
    }
    for letters in grown {
        let row = all.get_mut(&letters).expect("it was just merged into");
        row.sort_unstable();
        row.dedup();
    }
    all
}

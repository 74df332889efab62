//! LR stacks one by one: the parser's tables followed by definition, without a shared graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_grammar_parser::glr::Parser;
use palmette_grammar_parser::lr::{StateId, Tables};
use palmette_grammar_parser::{Budget, Grammar, Recognizer, RecognizerLimits, TerminalId};

/// A stack, bottom first.
pub(super) type Stack = Vec<StateId>;

/// Limit on stacks that are followed side by side: ambiguous grammars have exponentially many.
pub(super) const MAX_STACKS: usize = 10_000;

/// A grammar's tables.
#[derive(Debug)]
pub(super) struct LrStacks {
    parser: Parser,
}

impl LrStacks {
    /// The tables of the rules that a recognizer of the grammar uses, without regard to what can be
    /// spelled.
    ///
    /// # Panics
    /// When a limit is exceeded.
    pub(super) fn new(grammar: &Grammar) -> Self {
        let (grammar, limits) = (Arc::new(grammar.clone()), RecognizerLimits::default());
        let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited());
        let recognizer = recognizer.expect("a small grammar");
        let parser = Parser::new(recognizer.grammar(), &limits.parser);
        Self { parser: parser.expect("a small grammar") }
    }

    fn tables(&self) -> &Tables {
        self.parser.tables()
    }

    /// The stacks before the first terminal.
    pub(super) fn start(&self) -> BTreeSet<Stack> {
        self.settled(BTreeSet::from([vec![StateId::START]]))
    }

    /// The terminals for which the topmost state has an action.
    pub(super) fn actions(&self, stack: &Stack) -> BTreeSet<TerminalId> {
        let (tables, top) = (self.tables(), stack[stack.len() - 1]);
        let shifted = tables.shifts(top).iter().map(|&(terminal, _)| terminal);
        let reduced = tables.reductions(top).flat_map(|(_, after)| after);
        shifted.chain(reduced.flat_map(|after| after.iter())).collect()
    }

    /// The stacks after a terminal; `None` of too many.
    pub(super) fn shift(&self, stack: &Stack, terminal: TerminalId) -> Option<BTreeSet<Stack>> {
        let mut after = BTreeSet::new();
        for stack in self.reduced(stack, terminal)? {
            let target = self.tables().shift(stack[stack.len() - 1], terminal);
            after.extend(target.map(|target| [&stack[..], &[target]].concat()));
        }
        Some(self.settled(after))
    }

    /// True where the text may end; `None` where too many stacks are to be looked at.
    pub(super) fn accepts_end(&self, stack: &Stack) -> Option<bool> {
        let stacks = self.reduced(stack, self.tables().end())?;
        Some(stacks.iter().any(|stack| self.tables().is_accepting(stack[stack.len() - 1])))
    }

    /// A stack and all that reductions before a terminal make of it; `None` after [`MAX_STACKS`].
    fn reduced(&self, stack: &Stack, terminal: TerminalId) -> Option<BTreeSet<Stack>> {
        let mut found = BTreeSet::new();
        let mut work = vec![stack.clone()];
        while let Some(stack) = work.pop() {
            if stack.len() >= 200 {
                continue;
            }
            for (rule, after) in self.tables().reductions(stack[stack.len() - 1]) {
                if after.is_none_or(|after| after.contains(terminal)) {
                    work.extend(self.reduce(&stack, rule).filter(|next| !found.contains(next)));
                }
            }
            found.insert(stack);
            if found.len() > MAX_STACKS {
                return None;
            }
        }
        Some(found)
    }

    /// The stacks after the reductions that are done whatever follows.
    fn settled(&self, stacks: BTreeSet<Stack>) -> BTreeSet<Stack> {
        let mut settled = BTreeSet::new();
        for mut stack in stacks {
            let mut seen = BTreeSet::new();
            let live = loop {
                let Some(rule) = self.tables().sole_reduction(stack[stack.len() - 1]) else {
                    break true;
                };
                match self.reduce(&stack, rule).filter(|next| seen.insert(next.clone())) {
                    Some(next) => stack = next,
                    None => break false,
                }
            };
            settled.extend(live.then_some(stack));
        }
        settled
    }

    fn reduce(&self, stack: &Stack, rule: palmette_grammar_parser::lr::RuleId) -> Option<Stack> {
        let rules = self.tables().rules();
        let below = &stack[..stack.len() - rules.length(rule)];
        let target = self.tables().goto(below[below.len() - 1], rules.head(rule))?;
        Some([below, &[target]].concat())
    }
}

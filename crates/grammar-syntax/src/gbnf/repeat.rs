//! Counted repetitions of symbols as rules, shared between repetitions of the same symbol.

use std::collections::BTreeMap;

use crate::{GrammarBuilder, NonterminalId, Symbol};

/// Limit on the times that a symbol is written out in a body.
const WRITTEN_OUT: u32 = 16;
/// Limit on the optional times that are a chain, which an LR parser reads without trying both.
const CHAINED: u32 = 64;

/// The rules made so far, by what is repeated.
#[derive(Default)]
pub(super) struct Repeats {
    endless: BTreeMap<(Symbol, bool), NonterminalId>,
    /// Powers by symbol and exponent of two.
    powers: BTreeMap<(Symbol, u32), Symbol>,
    /// Repetitions from none to a number of times.
    up_to: BTreeMap<(Symbol, u32), Symbol>,
}

impl Repeats {
    /// `what`, `min` to `max` times; `name` makes up names.
    ///
    /// The number of rules grows with the logarithm of the counts.
    pub(super) fn symbols(
        &mut self,
        made: &mut GrammarBuilder,
        what: Symbol,
        min: u32,
        max: Option<u32>,
        name: &mut dyn FnMut() -> String,
    ) -> Vec<Symbol> {
        match max {
            Some(max) => {
                let mut symbols = self.exactly(made, what, min, name);
                symbols.extend(self.up_to(made, what, max - min, name));
                symbols
            }
            None => {
                // Left recursion: the parser's stack does not grow.
                let mut symbols = self.exactly(made, what, min.saturating_sub(1), name);
                let head = *self.endless.entry((what, min > 0)).or_insert_with(|| {
                    let head = made.nonterminal(name(), None);
                    let first = if min > 0 { vec![what] } else { vec![] };
                    made.rule(head, first);
                    made.rule(head, [Symbol::Nonterminal(head), what]);
                    head
                });
                symbols.push(Symbol::Nonterminal(head));
                symbols
            }
        }
    }

    fn exactly(
        &mut self,
        made: &mut GrammarBuilder,
        what: Symbol,
        times: u32,
        name: &mut dyn FnMut() -> String,
    ) -> Vec<Symbol> {
        if times <= WRITTEN_OUT {
            return vec![what; times as usize];
        }
        let exponents = (0..u32::BITS).rev().filter(|exponent| times >> exponent & 1 == 1);
        exponents.map(|exponent| self.power(made, what, exponent, name)).collect()
    }

    /// `what`, two to the `exponent` times.
    fn power(
        &mut self,
        made: &mut GrammarBuilder,
        what: Symbol,
        exponent: u32,
        name: &mut dyn FnMut() -> String,
    ) -> Symbol {
        let mut power = what;
        for exponent in 1..=exponent {
            power = *self.powers.entry((what, exponent)).or_insert_with(|| {
                let head = made.nonterminal(name(), None);
                made.rule(head, [power, power]);
                Symbol::Nonterminal(head)
            });
        }
        power
    }

    /// `what`, none to `times` times.
    fn up_to(
        &mut self,
        made: &mut GrammarBuilder,
        what: Symbol,
        times: u32,
        name: &mut dyn FnMut() -> String,
    ) -> Option<Symbol> {
        if times == 0 {
            return None;
        }
        if let Some(&known) = self.up_to.get(&(what, times)) {
            return Some(known);
        }
        let head = made.nonterminal(name(), None);
        self.up_to.insert((what, times), Symbol::Nonterminal(head));
        if times <= CHAINED {
            made.rule(head, []);
            let more = self.up_to(made, what, times - 1, name);
            made.rule(head, [what].into_iter().chain(more).collect::<Vec<_>>());
        } else {
            // Below the greatest power of two, or that and what is left: each number in one way.
            let exponent = times.ilog2();
            let fewer = self.up_to(made, what, (1 << exponent) - 1, name);
            made.rule(head, fewer.into_iter().collect::<Vec<_>>());
            let power = self.power(made, what, exponent, name);
            let more = self.up_to(made, what, times - (1 << exponent), name);
            made.rule(head, [power].into_iter().chain(more).collect::<Vec<_>>());
        }
        Some(Symbol::Nonterminal(head))
    }
}

//! Least texts within scopes that have seen names: of what follows a dot, by scope.
//!
//! A name comes once in a scope, so terminals of the names that it has seen have no text there. The
//! texts of nonterminals that may have a name in their own scope are found anew for each set of
//! seen names, those of one object's members at a time; in scopes that begin within them nothing
//! was seen. Names that are still to come are not told apart from each other: where five are left,
//! the text has the shortest five times, and is a lower bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::symbols::{Candidate, Least, SymbolTexts, depths, opens};
use crate::lr::{ItemId, RuleId, RuleTable};
use crate::names::{NameLayer, Scope};
use crate::{NonterminalId, Symbol};

/// A scope with those around it, by number; [`LevelId::NONE`] is outside of all scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelId(u32);

impl LevelId {
    pub(super) const NONE: Self = Self(0);
}

/// Levels by number, with the least texts in their scopes.
#[derive(Debug, Default)]
pub(super) struct Levels {
    numbers: HashMap<(LevelId, Scope), LevelId>,
    /// Levels by their numbers, from 1 on.
    all: Vec<Level>,
    texts: HashMap<Scope, LeastTexts>,
}

/// The least texts of nonterminals.
type LeastTexts = HashMap<NonterminalId, Least>;

#[derive(Debug)]
struct Level {
    around: LevelId,
    seen: Scope,
}

/// A grammar as levels see it.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) names: &'a NameLayer,
    pub(super) rules: &'a RuleTable,
    pub(super) symbols: &'a SymbolTexts,
}

impl Levels {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len() + self.texts.len()
    }

    /// The level of open scopes, outermost first.
    pub(super) fn find(&mut self, scopes: &[Scope]) -> LevelId {
        let mut level = LevelId::NONE;
        for scope in scopes {
            let next = LevelId(self.all.len() as u32 + 1);
            let known = *self.numbers.entry((level, Arc::clone(scope))).or_insert(next);
            if known == next {
                self.all.push(Level { around: level, seen: Arc::clone(scope) });
            }
            level = known;
        }
        level
    }

    fn level(&self, id: LevelId) -> Option<&Level> {
        self.all.get((id.0 as usize).checked_sub(1)?)
    }

    /// The least text of what follows an item's dot at a level, and the level after it.
    pub(super) fn rest(
        &mut self,
        plan: Plan<'_>,
        item: ItemId,
        level: LevelId,
    ) -> Option<(Arc<[u8]>, LevelId)> {
        let Plan { names, rules, symbols } = plan;
        if level == LevelId::NONE {
            return Some((Arc::clone(symbols.rest(rules, item)?), level));
        }
        let rest = rules.body(rules.rule_of(item)).skip(rules.dot(item));
        // Scopes that the rest has begun, less those that it has ended, the least so far.
        let (mut text, mut now, mut least) = (Vec::new(), level, 0);
        let mut leave = |now: &mut LevelId, levels: &Self, depth: isize| {
            while least > depth {
                least -= 1;
                *now = levels.level(*now).map_or(LevelId::NONE, |level| level.around);
            }
            least == depth
        };
        let mut after = 0;
        for (symbol, depth) in depths(names, symbols.opened(), rest) {
            let is_own = leave(&mut now, self, depth);
            let seen = self.level(now).filter(|_| is_own).map(|level| Arc::clone(&level.seen));
            match seen {
                Some(seen) => text.extend_from_slice(&self.text(plan, symbol, &seen)?),
                None => text.extend_from_slice(symbols.of(symbol)?),
            }
            after = depth + opens(names, symbols.opened(), symbol);
        }
        leave(&mut now, self, after);
        Some((text.into(), now))
    }

    /// The least text of a symbol in a scope that has seen these names.
    fn text(&mut self, plan: Plan<'_>, symbol: Symbol, seen: &Scope) -> Option<Arc<[u8]>> {
        let depends = match symbol {
            Symbol::Terminal(id) => match plan.names.name(id) {
                Some(name) if seen.binary_search(name).is_ok() => return None,
                _ => return plan.symbols.of(symbol).cloned(),
            },
            Symbol::Nonterminal(id) => plan.symbols.depends_on_names(id).then_some(id),
        };
        let Some(id) = depends else { return plan.symbols.of(symbol).cloned() };
        if !self.texts.get(seen).is_some_and(|known| known.contains_key(&id)) {
            let found = self.least(plan, id, seen);
            self.texts.entry(Arc::clone(seen)).or_default().extend(found);
        }
        self.texts[seen][&id].clone()
    }

    /// The least texts of a nonterminal and all that stand in its scope, as
    /// [`SymbolTexts`] finds those of all.
    fn least(&mut self, plan: Plan<'_>, of: NonterminalId, seen: &Scope) -> LeastTexts {
        let Plan { names, rules, symbols } = plan;
        let mut settled = LeastTexts::from([(of, None)]);
        let (mut users, mut open) = (HashMap::<_, Vec<RuleId>>::new(), HashMap::new());
        let (mut work, mut all) = (vec![of], Vec::new());
        while let Some(head) = work.pop() {
            for rule in rules.rules_of(head) {
                let mut needs = 0_u32;
                for (symbol, depth) in depths(names, symbols.opened(), rules.body(rule)) {
                    if let Symbol::Nonterminal(id) = symbol
                        && depth == 0
                        && symbols.depends_on_names(id)
                    {
                        needs += 1;
                        users.entry(id).or_default().push(rule);
                        if settled.insert(id, None).is_none() {
                            work.push(id);
                        }
                    }
                }
                open.insert(rule, needs);
                all.push(rule);
            }
        }
        let text = |rule: RuleId, settled: &LeastTexts| {
            let mut text = Vec::new();
            for (symbol, depth) in depths(names, symbols.opened(), rules.body(rule)) {
                let part = match symbol {
                    Symbol::Nonterminal(id) if depth == 0 && symbols.depends_on_names(id) => {
                        settled[&id].as_ref()?
                    }
                    Symbol::Terminal(id)
                        if depth == 0 && names.name(id).is_some_and(|name| seen.contains(name)) =>
                    {
                        return None;
                    }
                    symbol => symbols.of(symbol)?,
                };
                text.extend_from_slice(part);
            }
            Some(Arc::<[u8]>::from(text))
        };
        let mut heap = BinaryHeap::new();
        let candidate =
            |rule: RuleId, text| Reverse(Candidate { text, head: rules.head(rule).index() });
        for &rule in all.iter().filter(|rule| open[*rule] == 0) {
            heap.extend(text(rule, &settled).map(|text| candidate(rule, text)));
        }
        while let Some(Reverse(Candidate { text: least, head })) = heap.pop() {
            let head = NonterminalId(head as u32);
            let known = settled.get_mut(&head).expect("of the scope");
            if known.is_some() {
                continue;
            }
            *known = Some(least);
            for rule in users.get(&head).into_iter().flatten() {
                let left = open.get_mut(rule).expect("of the scope");
                *left -= 1;
                if *left == 0 && settled[&rules.head(*rule)].is_none() {
                    heap.extend(text(*rule, &settled).map(|text| candidate(*rule, text)));
                }
            }
        }
        settled
    }
}

//! Contents of scopes: the slots and records that stand in each, and what is refused there.

use std::collections::HashSet;

use palmette_core::{ScopeId, SlotId};
use smallvec::SmallVec;

use super::{Part, ScopeError, ScopeLayer};
use crate::{Budget, Grammar, NonterminalId, Symbol};

/// The slots and records of a scope's set that stand in it, each once, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeContents {
    /// Slots of members that stand in no scope within.
    pub slots: Vec<SlotId>,
    /// Records within a distinct scope.
    pub records: Vec<ScopeId>,
}

/// The open scopes of each set.
type Context = SmallVec<[OpenOfSet; 1]>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct OpenOfSet {
    distinct: Option<ScopeId>,
    record: Option<ScopeId>,
}

/// Nonterminals in contexts, at most.
const MAX_CONTEXTS: usize = 1 << 20;

/// Follows all rules from the start, in every context.
struct Walk<'a> {
    grammar: &'a Grammar,
    layer: &'a ScopeLayer,
    contents: Vec<ScopeContents>,
    seen: HashSet<(NonterminalId, Context)>,
    open: Vec<(NonterminalId, Context)>,
}

/// The contents of each scope.
///
/// # Errors
/// When a scope ends in another rule than it begins, or stands in another of its set.
pub(super) fn contents(
    grammar: &Grammar,
    layer: &ScopeLayer,
    budget: &mut Budget<'_>,
) -> Result<Vec<ScopeContents>, ScopeError> {
    let mut rules_of: Vec<Vec<usize>> = vec![Vec::new(); grammar.nonterminals().len()];
    for (at, rule) in grammar.rules().iter().enumerate() {
        check_ends(grammar, layer, &rule.body)?;
        rules_of[rule.head.index()].push(at);
    }
    let contents = vec![ScopeContents::default(); grammar.scopes().len()];
    let start = (grammar.start(), SmallVec::from_elem(OpenOfSet::default(), layer.sets.len()));
    let seen = HashSet::from([start.clone()]);
    let mut walk = Walk { grammar, layer, contents, seen, open: vec![start] };
    while let Some((head, context)) = walk.open.pop() {
        if walk.seen.len() > MAX_CONTEXTS {
            return Err(ScopeError::Entangled { limit: MAX_CONTEXTS });
        }
        for &rule in &rules_of[head.index()] {
            let body = &grammar.rules()[rule].body;
            budget.spend(1 + body.len() as u64)?;
            walk.follow(body, context.clone())?;
        }
    }
    for contents in &mut walk.contents {
        contents.slots.sort_unstable();
        contents.slots.dedup();
        contents.records.sort_unstable();
        contents.records.dedup();
    }
    Ok(walk.contents)
}

/// Refuses a rule in which a scope does not end that begins, or the other way round.
fn check_ends(grammar: &Grammar, layer: &ScopeLayer, body: &[Symbol]) -> Result<(), ScopeError> {
    let mut open = Vec::new();
    let error =
        |scope: ScopeId| ScopeError::Split { scope: grammar.scopes()[scope.index()].label() };
    for symbol in body {
        let Symbol::Terminal(id) = *symbol else { continue };
        match layer.part(id) {
            Part::Open(scope) => open.push(scope),
            Part::Close(scope) if open.pop() != Some(scope) => return Err(error(scope)),
            Part::Close(_) | Part::Other | Part::Member(..) => {}
        }
    }
    open.pop().map_or(Ok(()), |scope| Err(error(scope)))
}

impl Walk<'_> {
    fn follow(&mut self, body: &[Symbol], mut context: Context) -> Result<(), ScopeError> {
        for &symbol in body {
            let id = match symbol {
                Symbol::Terminal(id) => id,
                Symbol::Nonterminal(head) => {
                    if self.seen.insert((head, context.clone())) {
                        self.open.push((head, context.clone()));
                    }
                    continue;
                }
            };
            match self.layer.part(id) {
                Part::Other => {}
                Part::Member(slot, set) => {
                    let OpenOfSet { distinct, record } = context[set];
                    if let Some(scope) = record.or(distinct) {
                        self.contents[scope.index()].slots.push(slot);
                    }
                }
                Part::Open(scope) => {
                    let plan = &self.layer.scopes[scope.index()];
                    let of_set = &mut context[plan.set];
                    let outer = match plan.is_distinct {
                        true => of_set.record.or(of_set.distinct),
                        false => of_set.record,
                    };
                    if let Some(outer) = outer {
                        let label = |scope: ScopeId| self.grammar.scopes()[scope.index()].label();
                        let (scope, outer) = (label(scope), label(outer));
                        return Err(ScopeError::Nested { scope, outer });
                    }
                    if plan.is_distinct {
                        of_set.distinct = Some(scope);
                    } else {
                        of_set.record = Some(scope);
                        if let Some(distinct) = of_set.distinct {
                            self.contents[distinct.index()].records.push(scope);
                        }
                    }
                }
                Part::Close(scope) => {
                    let plan = &self.layer.scopes[scope.index()];
                    match plan.is_distinct {
                        true => context[plan.set].distinct = None,
                        false => context[plan.set].record = None,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Refuses scopes that have nothing in them, or things of which it is not known how many are left.
pub(super) fn check(grammar: &Grammar, layer: &ScopeLayer) -> Result<(), ScopeError> {
    let label = |scope: usize| grammar.scopes()[scope].label();
    let slot_label = |slot: SlotId| grammar.slots()[slot.index()].label();
    for (at, plan) in layer.scopes.iter().enumerate() {
        let ScopeContents { slots, records } = &plan.contents;
        if !layer.is_reached(grammar, at) {
            continue;
        }
        if slots.is_empty() && records.is_empty() {
            return Err(ScopeError::Empty {
                scope: label(at),
                set: grammar.scopes()[at].name.clone(),
            });
        }
        if !plan.is_distinct {
            continue;
        }
        let first = records.first().map(|record| &layer.scopes[record.index()].contents.slots);
        let are_alike = records
            .iter()
            .all(|record| Some(&layer.scopes[record.index()].contents.slots) == first);
        if slots.len() > 1 || !slots.is_empty() && !records.is_empty() || !are_alike {
            return Err(ScopeError::Mixed { scope: label(at) });
        }
        if let Some(slot) = slots
            .iter()
            .find(|slot| plan.at_most.is_some() && grammar.slots()[slot.index()].field.is_some())
        {
            return Err(ScopeError::GroupsOfValues { scope: label(at), slot: slot_label(*slot) });
        }
        for &record in records {
            if layer.may_lack_id(grammar, record) {
                let (record, scope) = (label(record.index()), label(at));
                return Err(ScopeError::RecordWithoutId { record, scope });
            }
        }
    }
    Ok(())
}

impl ScopeLayer {
    /// True where some rule begins the scope.
    fn is_reached(&self, grammar: &Grammar, scope: usize) -> bool {
        let open = Symbol::Terminal(grammar.scopes()[scope].open);
        grammar.rules().iter().any(|rule| rule.body.contains(&open))
    }

    /// True where a record has a text without the id of its item.
    fn may_lack_id(&self, grammar: &Grammar, record: ScopeId) -> bool {
        let is_id = |symbol: &Symbol| match *symbol {
            Symbol::Terminal(id) => match self.part(id) {
                Part::Member(slot, set) => {
                    let field = &grammar.slots()[slot.index()].field;
                    set == self.scopes[record.index()].set && field.is_none()
                }
                _ => false,
            },
            Symbol::Nonterminal(_) => false,
        };
        // Nonterminals with a text without one.
        let mut lack = vec![false; grammar.nonterminals().len()];
        let lacks = |body: &[Symbol], lack: &[bool]| {
            body.iter().all(|symbol| match symbol {
                Symbol::Nonterminal(head) => lack[head.index()],
                terminal => !is_id(terminal),
            })
        };
        loop {
            let mut grew = false;
            for rule in grammar.rules() {
                if !lack[rule.head.index()] && lacks(&rule.body, &lack) {
                    lack[rule.head.index()] = true;
                    grew = true;
                }
            }
            if !grew {
                break;
            }
        }
        let open = Symbol::Terminal(grammar.scopes()[record.index()].open);
        grammar.rules().iter().any(|rule| {
            let begins = rule.body.iter().enumerate().filter(|(_, symbol)| **symbol == open);
            begins.into_iter().any(|(at, _)| {
                let inner = &rule.body[at + 1..];
                lacks(&inner[..self.inner_length(inner)], &lack)
            })
        })
    }
}

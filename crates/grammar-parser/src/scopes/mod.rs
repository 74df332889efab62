//! Scopes of members, between parser and sets: the memory of what was written in an open scope, and
//! whether what is left is enough for what is still to come.
//!
//! A scope begins and ends with terminals of its own. Within one, a set is what was bound less what
//! was written, or what the record's members leave; the [`ScopeMemory`] of a branch has that. A
//! branch dies where every text that goes on from its stacks needs more members than an open scope
//! has left (`needs`): so that a list with five distinct items does not begin its third where two
//! are left.
//!
//! Scopes of one set do not nest, except records in a distinct scope; so there is at most one of
//! each kind open for a set, and costs are numbers by set.

mod contents;
mod cost;
mod error;
mod needs;

use std::sync::Arc;

use palmette_core::{Binding, MemberId, MemberSet, OpenScope, ScopeId, ScopeMemory, SlotId};
use smallvec::SmallVec;

pub use contents::ScopeContents;
pub(crate) use cost::Front;
pub use error::ScopeError;
use needs::Needs;

use crate::glr::{Parser, Stacks};
use crate::lr::RuleTable;
use crate::{
    Budget, Grammar, GroupLimit, LimitError, MemberSpelling, ScopeKind, Symbol, TerminalId,
};

/// The layer of one grammar.
#[derive(Debug, Default)]
pub struct ScopeLayer {
    /// Parts by terminal; empty where the grammar has no scopes.
    parts: Box<[Part]>,
    /// Names of the sets that have scopes.
    sets: Vec<String>,
    scopes: Vec<ScopePlan>,
    spellings: Vec<MemberSpelling>,
    needs: Option<Needs>,
}

/// A terminal's part in scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Other,
    Open(ScopeId),
    Close(ScopeId),
    /// A member of a set with scopes.
    Member(SlotId, usize),
}

/// A scope as the layer uses it.
#[derive(Debug)]
struct ScopePlan {
    /// Place in [`ScopeLayer::sets`].
    set: usize,
    is_distinct: bool,
    at_most: Option<GroupLimit>,
    contents: ScopeContents,
}

/// Shortage of a scope that no text can fill, by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeShortage {
    /// The scope as messages name it.
    pub scope: String,
    /// The name of its set.
    pub set: String,
    /// Members or items that it may have.
    pub eligible: u64,
    /// Members or items that each of its texts needs.
    pub needed: u64,
}

/// A scope that no text can fill.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShortScope {
    /// The scope.
    pub scope: ScopeId,
    /// Members or items that it may have.
    pub eligible: u64,
    /// Members or items that each of its texts needs.
    pub needed: u64,
}

/// Members or items that open distinct scopes have left, by set.
#[derive(Clone, Debug)]
pub(crate) struct Remainder(SmallVec<[(usize, u64); 2]>);

impl Remainder {
    /// True where it is enough for one of some costs.
    pub(crate) fn suffices(&self, costs: &Front) -> bool {
        costs.iter().any(|cost| self.0.iter().all(|&(set, left)| u64::from(cost[set]) <= left))
    }
}

/// Sets with scopes in one grammar, at most: they are bits.
const MAX_SETS: usize = 16;

/// Question of what stacks need: the sets that are counted, and those of open records.
pub(crate) type Question = (u64, u64);

impl ScopeLayer {
    /// Layer of a grammar with these rules. Parts of a grammar that was checked are not checked
    /// again.
    pub(crate) fn new(
        grammar: &Grammar,
        rules: &RuleTable,
        is_part: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Self, ScopeError> {
        if grammar.scopes().is_empty() {
            return Ok(Self::default());
        }
        let mut sets: Vec<String> =
            grammar.scopes().iter().map(|scope| scope.name.clone()).collect();
        sets.sort_unstable();
        sets.dedup();
        if sets.len() > MAX_SETS {
            return Err(ScopeError::Entangled { limit: MAX_SETS });
        }
        let set_of = |name: &str| sets.binary_search_by(|set| (**set).cmp(name)).ok();
        let mut parts = vec![Part::Other; grammar.terminals().len()];
        for (at, part) in parts.iter_mut().enumerate() {
            if let Some(slot) = grammar.slot_of(TerminalId(at as u32))
                && let Some(set) = set_of(&grammar.slots()[slot.index()].name)
            {
                *part = Part::Member(slot, set);
            }
        }
        let mut scopes = Vec::new();
        for (scope, id) in grammar.scopes().iter().zip((0..).map(ScopeId)) {
            parts[scope.open.index()] = Part::Open(id);
            parts[scope.close.index()] = Part::Close(id);
            let at_most = match &scope.kind {
                ScopeKind::Distinct { at_most } => at_most.clone(),
                ScopeKind::Record => None,
            };
            let set = set_of(&scope.name).expect("each scope's set");
            let (is_distinct, contents) = (scope.kind.is_distinct(), ScopeContents::default());
            scopes.push(ScopePlan { set, is_distinct, at_most, contents });
        }
        let spellings = grammar.slots().iter().map(|slot| slot.spelling).collect();
        let mut layer = Self { parts: parts.into(), sets, scopes, spellings, needs: None };
        let all = contents::contents(grammar, &layer, budget)?;
        layer.scopes.iter_mut().zip(all).for_each(|(plan, contents)| plan.contents = contents);
        if !is_part {
            contents::check(grammar, &layer)?;
        }
        layer.needs = Some(Needs::new(&layer, rules, budget)?);
        Ok(layer)
    }

    /// True where the grammar has scopes.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The contents of each scope, by id.
    pub fn contents(&self) -> impl ExactSizeIterator<Item = &ScopeContents> {
        self.scopes.iter().map(|plan| &plan.contents)
    }

    #[inline]
    fn part(&self, terminal: TerminalId) -> Part {
        self.parts.get(terminal.index()).copied().unwrap_or(Part::Other)
    }

    /// The length of a scope's inside, which `body` begins with.
    fn inner_length(&self, body: &[Symbol]) -> usize {
        let mut depth = 0;
        let closes = |symbol: &Symbol| {
            let Symbol::Terminal(id) = *symbol else { return false };
            match self.part(id) {
                Part::Open(_) => depth += 1,
                Part::Close(_) => depth -= 1,
                Part::Other | Part::Member(..) => {}
            }
            depth < 0
        };
        body.iter().position(closes).unwrap_or(body.len())
    }

    /// The places of a set's open scopes, outermost first.
    fn places(&self, memory: &ScopeMemory, set: usize) -> SmallVec<[usize; 2]> {
        let open = memory.open().iter().enumerate();
        let of_set = open.filter(|(_, open)| self.scopes[open.scope.index()].set == set);
        of_set.map(|(place, _)| place).collect()
    }

    /// A set's open scopes, outermost first.
    fn within(&self, memory: &ScopeMemory, set: usize) -> SmallVec<[OpenScope; 2]> {
        let places = self.places(memory, set);
        places.into_iter().map(|place| memory.open()[place].clone()).collect()
    }

    /// The set of a slot within open scopes, where it depends on them.
    pub(crate) fn set(
        &self,
        binding: &Binding,
        slot: SlotId,
        terminal: TerminalId,
        memory: &ScopeMemory,
    ) -> Option<Arc<dyn MemberSet>> {
        let Part::Member(_, set) = self.part(terminal) else { return None };
        let within = self.within(memory, set);
        if within.is_empty() {
            return None;
        }
        Some(binding.set_within(slot, self.spellings[slot.index()], &within))
    }

    /// The memory after a lexeme of `terminal`, which is `member` where it is one of a set.
    pub(crate) fn after(
        &self,
        binding: Option<&Binding>,
        memory: &ScopeMemory,
        terminal: TerminalId,
        member: Option<MemberId>,
    ) -> Option<ScopeMemory> {
        match self.part(terminal) {
            Part::Other => Some(memory.clone()),
            Part::Open(scope) => Some(memory.opened(scope)),
            Part::Close(scope) => {
                let plan = &self.scopes[scope.index()];
                let closed = memory.closed();
                if plan.is_distinct {
                    return Some(closed);
                }
                let Some(&outer) = self.places(&closed, plan.set).last() else {
                    return Some(closed);
                };
                let key = binding?.items()?.record_key(&self.within(memory, plan.set));
                closed.with_written(outer, key)
            }
            Part::Member(slot, set) => {
                let Some(&place) = self.places(memory, set).last() else {
                    return Some(memory.clone());
                };
                let scope = memory.open()[place].scope;
                if !self.scopes[scope.index()].is_distinct {
                    return Some(memory.with_field(place, (slot, member?)));
                }
                let key = match binding?.items() {
                    Some(items) => items.key(scope, slot, member?),
                    None => member?.0,
                };
                memory.with_written(place, key)
            }
        }
    }

    /// Number of members or items that a scope has from its beginning.
    pub(crate) fn capacity(&self, binding: &Binding, scope: ScopeId) -> u64 {
        let contents = &self.scopes[scope.index()].contents;
        match (binding.items(), &*contents.slots) {
            (Some(items), _) => items.capacity(scope),
            (None, &[slot]) => binding.set(slot).len(),
            (None, _) => 0,
        }
    }

    /// The question of what stacks need in open scopes; `None` where nothing is counted.
    pub(crate) fn question(&self, memory: &ScopeMemory) -> Option<Question> {
        let (mut counted, mut records) = (0, 0);
        for scope in memory.open() {
            let plan = &self.scopes[scope.scope.index()];
            *if plan.is_distinct { &mut counted } else { &mut records } |= 1 << plan.set;
        }
        (counted != 0).then_some((counted, records))
    }

    /// The least costs of what follows stacks.
    pub(crate) fn fewest(
        &self,
        parser: &Parser,
        stacks: &Stacks,
        question: Question,
    ) -> Result<Front, LimitError> {
        match &self.needs {
            Some(needs) => needs.fewest(parser.tables(), stacks, question),
            None => Ok(Front::zero(0)),
        }
    }

    /// Members that open distinct scopes have left.
    pub(crate) fn left(&self, binding: &Binding, memory: &ScopeMemory) -> Remainder {
        let distinct = memory.open().iter().filter_map(|open| {
            let plan = &self.scopes[open.scope.index()];
            let left = self.capacity(binding, open.scope);
            let left = left.saturating_sub(open.written.len() as u64);
            plan.is_distinct.then_some((plan.set, left))
        });
        Remainder(distinct.collect())
    }

    /// The question of what is needed after a lexeme of `terminal`, and what open distinct scopes
    /// have left there, where they have enough for the lexeme; `None` where no scope is open then.
    pub(crate) fn left_after(
        &self,
        binding: &Binding,
        memory: &ScopeMemory,
        terminal: TerminalId,
    ) -> Option<(Question, Option<Remainder>)> {
        let (memory, taken) = match self.part(terminal) {
            Part::Open(scope) => (memory.opened(scope), None),
            // A record's item counts when it ends.
            Part::Close(scope) => {
                let plan = &self.scopes[scope.index()];
                (memory.closed(), (!plan.is_distinct).then_some(plan.set))
            }
            Part::Member(_, set) => {
                let last = self.within(memory, set).pop();
                let is_distinct = |open: &OpenScope| self.scopes[open.scope.index()].is_distinct;
                (memory.clone(), last.filter(is_distinct).map(|_| set))
            }
            Part::Other => (memory.clone(), None),
        };
        let question = self.question(&memory)?;
        let mut left = self.left(binding, &memory);
        for (_, left) in left.0.iter_mut().filter(|(set, _)| Some(*set) == taken) {
            match left.checked_sub(1) {
                Some(rest) => *left = rest,
                None => return Some((question, None)),
            }
        }
        Some((question, Some(left)))
    }

    /// True where no distinct scope, open or not, can have too few members left within the next
    /// `bytes` of a text, whatever they are, by a bound that is easy to tell.
    pub(crate) fn is_roomy<'a>(
        &self,
        binding: &Binding,
        mut branches: impl Iterator<Item = (&'a Stacks, &'a ScopeMemory)>,
        bytes: usize,
    ) -> bool {
        let Some(needs) = &self.needs else { return true };
        branches.all(|(stacks, memory)| {
            // What these bytes write is no longer left after them.
            let enough = needs.enough(stacks.height(), bytes).saturating_add(bytes as u64);
            let is_enough = |scope: ScopeId, written: usize| {
                let is_distinct = self.scopes[scope.index()].is_distinct;
                !is_distinct || self.capacity(binding, scope) >= enough + written as u64
            };
            let mut open = memory.open().iter();
            let mut all = (0..self.scopes.len() as u32).map(ScopeId);
            open.all(|open| is_enough(open.scope, open.written.len()))
                && all.all(|scope| is_enough(scope, 0))
        })
    }

    /// True for a slot whose set may depend on open scopes.
    pub fn is_scoped(&self, grammar: &Grammar, slot: SlotId) -> bool {
        self.is_active() && self.sets.contains(&grammar.slots()[slot.index()].name)
    }

    /// The scopes that have too few members under a binding for what their texts need, with that,
    /// in a grammar with fewer rules.
    pub(crate) fn short_scopes(
        &self,
        rules: &RuleTable,
        binding: &Binding,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<ShortScope>, ScopeError> {
        let needed = self.least_of_scopes(rules, budget)?;
        let all = (0..).map(ScopeId).zip(needed);
        let short = all.filter_map(|(scope, needed)| {
            let (eligible, needed) = (self.capacity(binding, scope), needed?);
            (eligible < needed).then_some(ShortScope { scope, eligible, needed })
        });
        Ok(short.collect())
    }
}

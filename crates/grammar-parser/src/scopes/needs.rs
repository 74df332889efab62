//! Needs: the least number of members that the rest of a text takes, by what is on the stack.
//!
//! A list of at least five distinct members cannot begin where three are left. Each nonterminal has
//! the least costs of its texts, a fixpoint once a grammar. What follows a stack is what follows
//! the dots of the items that its topmost state stands for, and then what follows the stack without
//! their bodies:
//!
//! ```text
//! fewest(… s) = least over items A → α · β of s:  cost(β) + fewest(… without α, then goto A)
//! ```
//!
//! An LR(0) automaton's state has all items that may be at work on a stack, so this is exact. What
//! ends a scope ends the counting of its set.

use hashbrown::HashMap;

use super::cost::{Front, MAX_FRONT};
use super::{Part, ScopeError, ScopeLayer};
use crate::glr::{StackNode, Stacks};
use crate::lr::{ItemId, RuleId, RuleTable, StateId, Tables};
use crate::{Budget, LimitError, Symbol};

/// The least costs of a grammar's parts.
#[derive(Debug)]
pub(super) struct Needs {
    num_sets: usize,
    /// Parts after the dot, by item.
    rests: Vec<Box<[RestPart]>>,
    /// No stack needs more members of a set than this for each of its entries.
    per_entry: u64,
    /// No terminal adds more entries to a stack.
    per_terminal: u64,
}

/// Part of what follows a dot.
#[derive(Debug)]
enum RestPart {
    Cost(Front),
    /// Ends a distinct scope of a set that is open before the dot.
    CloseDistinct(usize),
    /// Ends a record, likewise.
    CloseRecord(usize),
}

impl RestPart {
    /// A number that one of its costs is nowhere above.
    fn most(&self) -> u64 {
        match self {
            Self::Cost(front) => {
                let numbers = front.iter().flat_map(|cost| cost.iter().copied());
                numbers.max().unwrap_or(0).into()
            }
            Self::CloseDistinct(_) => 0,
            Self::CloseRecord(_) => 1,
        }
    }
}

/// Sets, each a bit.
pub(super) type SetBits = u64;

/// A place that counting has come to: a state above an entry of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place<'a> {
    state: StateId,
    below: Option<StackNode<'a>>,
    counted: SetBits,
    /// Sets of open records.
    records: SetBits,
}

/// Places of one question, at most.
const MAX_PLACES: usize = 1 << 16;

impl Needs {
    pub(super) fn new(
        layer: &ScopeLayer,
        rules: &RuleTable,
        budget: &mut Budget<'_>,
    ) -> Result<Self, ScopeError> {
        let least = least(layer, rules, budget)?;
        let costs = Costs { layer, least: &least };
        let (num_sets, rests) = (layer.sets.len(), Vec::new());
        let mut needs = Self { num_sets, rests, per_entry: 0, per_terminal: 1 };
        for rule in rules.ids() {
            let body: Vec<Symbol> = rules.body(rule).collect();
            budget.spend((1 + body.len() * body.len()) as u64)?;
            let mut most = 0;
            for dot in 0..=body.len() {
                let rest = costs.rest(&body[dot..])?;
                most = most.max(rest.iter().map(RestPart::most).sum());
                needs.rests.push(rest);
            }
            // At an entry, a rule is gone through once at most on the cheapest way.
            needs.per_entry += most;
            let is_nullable =
                |symbol: &&Symbol| matches!(symbol, Symbol::Nonterminal(id) if rules.nullable(*id));
            // What is reduced of nothing lies on the stack, too.
            needs.per_terminal += body.iter().take_while(is_nullable).count() as u64;
        }
        Ok(needs)
    }

    /// A number of members of each set that is enough for any text that goes on from stacks of this
    /// height after as many more bytes.
    pub(super) fn enough(&self, height: usize, bytes: usize) -> u64 {
        let entries = (bytes as u64).saturating_mul(self.per_terminal);
        entries.saturating_add(height as u64).saturating_mul(self.per_entry)
    }

    /// The least costs of what follows stacks, for sets with an open distinct scope; in `records`
    /// are those with an open record.
    pub(super) fn fewest(
        &self,
        tables: &Tables,
        stacks: &Stacks,
        (counted, records): (SetBits, SetBits),
    ) -> Result<Front, LimitError> {
        let mut places = Places::default();
        let mut roots = Vec::new();
        for top in stacks.tops() {
            let below = top.below();
            let ends = (below.len() == 0).then_some(None);
            for below in below.map(Some).chain(ends) {
                roots.push(places.find(Place { state: top.state(), below, counted, records }));
            }
        }
        // Where a place leads, in the order in which they are found.
        let mut ways: Vec<Vec<(Front, Option<usize>)>> = Vec::new();
        while let Some(&place) = places.all.get(ways.len()) {
            if ways.len() >= MAX_PLACES {
                return Err(LimitError::new(MAX_PLACES));
            }
            let mut of_place = Vec::new();
            for &item in tables.kernel(place.state) {
                self.follow(tables, place, item, &mut places, &mut of_place)?;
            }
            ways.push(of_place);
        }
        let mut fewest = vec![Front::default(); ways.len()];
        loop {
            let mut grew = false;
            // What was found last mostly leads nowhere else.
            for place in (0..ways.len()).rev() {
                for (cost, next) in &ways[place] {
                    let sum = match next {
                        None => cost.clone(),
                        Some(next) => cost.plus(&fewest[*next]),
                    };
                    grew |= fewest[place].unite(&sum);
                    if fewest[place].len() > MAX_FRONT {
                        return Err(LimitError::new(MAX_FRONT));
                    }
                }
            }
            if !grew {
                break;
            }
        }
        let mut all = Front::default();
        roots.iter().for_each(|&root| _ = all.unite(&fewest[root]));
        Ok(all)
    }

    /// Adds where an item of a place leads: what follows its dot, and the places after its rule.
    fn follow<'a>(
        &self,
        tables: &Tables,
        place: Place<'a>,
        item: ItemId,
        places: &mut Places<'a>,
        ways: &mut Vec<(Front, Option<usize>)>,
    ) -> Result<(), LimitError> {
        let Place { mut counted, mut records, .. } = place;
        let mut cost = Front::zero(self.num_sets);
        for part in &self.rests[item.index()] {
            match part {
                RestPart::Cost(more) => {
                    // Within a record members are of the item that its end counts.
                    let is_free = counted & !records;
                    cost = cost.plus(&more.with(|set| (is_free >> set & 1 == 0).then_some(0)));
                }
                RestPart::CloseRecord(set) => {
                    records &= !(1 << set);
                    if counted >> set & 1 == 1 {
                        cost = cost.plus(&Front::one(self.num_sets, *set));
                    }
                }
                RestPart::CloseDistinct(set) => counted &= !(1 << set),
            }
            if cost.len() > MAX_FRONT {
                return Err(LimitError::new(MAX_FRONT));
            }
        }
        let rules = tables.rules();
        let rule = rules.rule_of(item);
        if counted == 0 || rule == RuleId::START {
            ways.push((cost, None));
            return Ok(());
        }
        // The place's own state is the last symbol before the dot; a rule's dot is at the front in
        // the start's state alone.
        let mut entries: Vec<StackNode<'a>> = place.below.into_iter().collect();
        for _ in 1..rules.dot(item) {
            let mut below: Vec<_> = entries.iter().flat_map(|entry| entry.below()).collect();
            below.dedup();
            entries = below;
        }
        for entry in entries {
            if let Some(state) = tables.goto(entry.state(), rules.head(rule)) {
                let next = Place { state, below: Some(entry), counted, records };
                ways.push((cost.clone(), Some(places.find(next))));
            }
        }
        Ok(())
    }
}

/// Places by number.
#[derive(Default)]
struct Places<'a> {
    all: Vec<Place<'a>>,
    numbers: HashMap<Place<'a>, usize>,
}

impl<'a> Places<'a> {
    fn find(&mut self, place: Place<'a>) -> usize {
        *self.numbers.entry(place).or_insert_with(|| {
            self.all.push(place);
            self.all.len() - 1
        })
    }
}

/// The least costs of bodies, by those of nonterminals.
struct Costs<'a> {
    layer: &'a ScopeLayer,
    least: &'a [Front],
}

impl Costs<'_> {
    /// The costs of a body whose scopes begin and end in it.
    fn body(&self, body: &[Symbol]) -> Result<Front, ScopeError> {
        let num_sets = self.layer.sets.len();
        let mut sum = Front::zero(num_sets);
        let mut at = 0;
        while let Some(&symbol) = body.get(at) {
            at += 1;
            let cost = match symbol {
                Symbol::Nonterminal(id) => self.least[id.index()].clone(),
                Symbol::Terminal(id) => match self.layer.part(id) {
                    Part::Member(_, set) => Front::one(num_sets, set),
                    Part::Open(scope) => {
                        let length = self.layer.inner_length(&body[at..]);
                        let inner = self.body(&body[at..at + length])?;
                        at += length + 1;
                        let plan = &self.layer.scopes[scope.index()];
                        let own = u32::from(!plan.is_distinct);
                        inner.with(|set| (set == plan.set).then_some(own))
                    }
                    Part::Other | Part::Close(_) => continue,
                },
            };
            sum = sum.plus(&cost);
            if sum.len() > MAX_FRONT {
                return Err(ScopeError::Entangled { limit: MAX_FRONT });
            }
        }
        Ok(sum)
    }

    /// The parts of what follows a dot, cut where scopes end that are open before it.
    fn rest(&self, rest: &[Symbol]) -> Result<Box<[RestPart]>, ScopeError> {
        let (mut parts, mut first) = (Vec::new(), 0);
        let mut depth = 0;
        for (at, symbol) in rest.iter().enumerate() {
            let Symbol::Terminal(id) = symbol else { continue };
            match self.layer.part(*id) {
                Part::Open(_) => depth += 1,
                Part::Close(_) if depth > 0 => depth -= 1,
                Part::Close(scope) => {
                    parts.push(RestPart::Cost(self.body(&rest[first..at])?));
                    let plan = &self.layer.scopes[scope.index()];
                    parts.push(match plan.is_distinct {
                        true => RestPart::CloseDistinct(plan.set),
                        false => RestPart::CloseRecord(plan.set),
                    });
                    first = at + 1;
                }
                Part::Other | Part::Member(..) => {}
            }
        }
        parts.push(RestPart::Cost(self.body(&rest[first..])?));
        Ok(parts.into())
    }
}

/// The least costs of each nonterminal's texts.
fn least(
    layer: &ScopeLayer,
    rules: &RuleTable,
    budget: &mut Budget<'_>,
) -> Result<Vec<Front>, ScopeError> {
    let mut least = vec![Front::default(); rules.num_nonterminals()];
    loop {
        let mut grew = false;
        for rule in rules.ids() {
            let body: Vec<Symbol> = rules.body(rule).collect();
            budget.spend(1 + body.len() as u64)?;
            let cost = Costs { layer, least: &least }.body(&body)?;
            let known = &mut least[rules.head(rule).index()];
            grew |= known.unite(&cost);
            if known.len() > MAX_FRONT {
                return Err(ScopeError::Entangled { limit: MAX_FRONT });
            }
        }
        if !grew {
            return Ok(least);
        }
    }
}

impl ScopeLayer {
    /// The least number of members of its set that a text of each scope needs, by scope; `None` of
    /// a scope that no text has.
    pub(super) fn least_of_scopes(
        &self,
        rules: &RuleTable,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<Option<u64>>, ScopeError> {
        let least = least(self, rules, budget)?;
        let costs = Costs { layer: self, least: &least };
        let mut needed: Vec<Option<u64>> = vec![None; self.scopes.len()];
        for rule in rules.ids() {
            let body: Vec<Symbol> = rules.body(rule).collect();
            for (at, symbol) in body.iter().enumerate() {
                let Symbol::Terminal(id) = symbol else { continue };
                let Part::Open(scope) = self.part(*id) else { continue };
                let inner = &body[at + 1..][..self.inner_length(&body[at + 1..])];
                let plan = &self.scopes[scope.index()];
                for cost in costs.body(inner)?.iter() {
                    let own = if plan.is_distinct { u64::from(cost[plan.set]) } else { 1 };
                    let known = &mut needed[scope.index()];
                    *known = Some(known.map_or(own, |known| known.min(own)));
                }
            }
        }
        Ok(needed)
    }
}

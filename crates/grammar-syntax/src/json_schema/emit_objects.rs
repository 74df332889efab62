//! The rules of an object: its members in any order, or in the schema's.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::{
    compile::Result,
    emit::{Emitter, InScope},
    object_plan::{Member, Plan},
    objects::ObjectSet,
    options::PropertyOrder,
};
use crate::{NonterminalId, Symbol};

/// Optional members are counted, so that there is no comma after the last of a closed object, in as
/// many states at most; beyond, their names may come again unless members must be distinct.
const MAX_COUNTED: usize = 64;

/// Members that an object has so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// Bits of the tracked names that were there.
    seen: u64,
    /// Next declared name that may come, in the schema's order.
    next: usize,
    /// Numbers of required names that were there, and of optional ones as far as these are limited.
    required: usize,
    optional: usize,
    exists: u32,
    /// Number of names that were there without being the member that must exist.
    misses: usize,
    /// Counted as far as it matters.
    count: u64,
}

/// Transition of the state by one group of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Effect {
    turn: Turn,
    exists: u32,
    /// The name is one of those of which one must exist: see [`Counter::candidates`].
    candidate: bool,
}

/// Condition on the turn of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Turn {
    Anywhere,
    /// Once; a bit of [`State::seen`].
    Once(u32),
    /// Turn at this [`State::next`].
    Nth(usize),
    /// Once, its name being remembered: one of those that are required.
    Required,
    /// Once, its name being remembered.
    Optional,
}

/// Means by which the names of an object are kept apart.
struct Tracking {
    /// Turns of members, by place.
    turns: Vec<Turn>,
    /// The parts of its terminals in a scope of distinct names, where there is one.
    scope: Scope,
}

/// The parts of an object's terminals in a scope of distinct names.
#[derive(Clone, Debug, Default)]
struct Scope {
    open: Option<InScope>,
    comma: Option<InScope>,
    close: Option<InScope>,
    /// Names that are not known one by one.
    many: Option<InScope>,
}

impl Scope {
    /// A scope that remembers its names; free ones, too, where `many`.
    fn new(many: bool) -> Self {
        Self {
            open: Some(InScope::Open),
            comma: Some(InScope::Comma),
            close: Some(InScope::Close),
            many: many.then_some(InScope::ManyNames),
        }
    }
}

impl Emitter<'_, '_> {
    pub(super) fn object(&mut self, head: NonterminalId, object: &ObjectSet) -> Result<()> {
        if self.scoped_object(head, object)? {
            return Ok(());
        }
        let Some(plan) = self.plan(object)? else { return Ok(()) };
        let order = match self.frame {
            Some(_) => self.parameter_order(&plan, self.compiler.options.order)?,
            None => self.compiler.options.order,
        };
        match order {
            PropertyOrder::Any { max_tracked } => {
                let tracking = self.tracking(&plan, max_tracked.min(20) as usize)?;
                self.object_in_any_order(head, &plan, &tracking)
            }
            PropertyOrder::Schema => self.object_in_order(head, &plan),
        }
    }

    /// Tracking of names: few are tracked by the rules, in a state for each set of them. Otherwise
    /// names are remembered, and the rules count, if more than that are required, names have to be
    /// told apart, or all members must be distinct.
    fn tracking(&self, plan: &Plan, max_tracked: usize) -> Result<Tracking> {
        let all_tracked = plan.places.len() <= max_tracked;
        let tells_apart = plan.tells_names_apart();
        let distinct = self.compiler.options.distinct_members;
        let few_required = plan.num_required() <= max_tracked;
        if !tells_apart && (all_tracked || few_required && !distinct) {
            return Ok(Tracking { turns: once(plan, all_tracked), scope: Scope::default() });
        }
        if tells_apart && all_tracked && !plan.is_open() {
            return Ok(Tracking { turns: once(plan, true), scope: Scope::default() });
        }
        let by_name = plan.exists_by_name();
        // One statement on few names is counted out; of several, one name may be the last for two.
        let tracked = if by_name.count_ones() > 1 { plan.candidates(by_name) } else { Vec::new() };
        let num_tracked = tracked.iter().filter(|&&tracked| tracked).count();
        let max = self.compiler.options.limits.max_states;
        self.within_states(1usize.checked_shl(num_tracked as u32).unwrap_or(usize::MAX), max)?;
        let num_optional = plan.places.iter().filter(|place| !place.required).count();
        let states = (plan.num_required() + 1) * (num_optional + 1);
        let counts_optional = distinct || tells_apart || plan.is_open() || states <= MAX_COUNTED;
        let mut bits = 0..;
        let turns = plan.places.iter().enumerate().map(|(at, place)| match place.required {
            _ if tracked.get(at) == Some(&true) => Turn::Once(bits.next().expect("one for each")),
            true => Turn::Required,
            false if counts_optional => Turn::Optional,
            false => Turn::Anywhere,
        });
        Ok(Tracking { turns: turns.collect(), scope: Scope::new(tells_apart) })
    }

    fn object_in_any_order(
        &mut self,
        head: NonterminalId,
        plan: &Plan,
        tracking: &Tracking,
    ) -> Result<()> {
        let Tracking { turns, scope } = tracking;
        let counter = Counter::new(plan, turns);
        // Members that act alike share a nonterminal, and so do the names of those whose values are
        // alike too: what comes after the name is then the same for all of them.
        let mut groups: BTreeMap<Effect, NonterminalId> = BTreeMap::new();
        let mut named: HashMap<(NonterminalId, Symbol), NonterminalId> = HashMap::new();
        for member in &plan.members {
            let Some(value) = self.member_value(member.value)? else { continue };
            let turn = member.place.map_or(Turn::Anywhere, |at| turns[at]);
            if scope.open.is_some() {
                self.counted.push((member.value, value));
            }
            let candidate = member.place.is_some_and(|at| counter.candidates[at]);
            let effect = Effect { turn, exists: member.exists, candidate };
            let group = *groups.entry(effect).or_insert_with(|| self.part("member"));
            if self.members_ended_by_name(group, &member.names, value)? {
                continue;
            }
            let names = match named.get(&(group, value)) {
                Some(&names) => names,
                None => {
                    let names = self.part("names");
                    named.insert((group, value), names);
                    self.rule(group, vec![Symbol::Nonterminal(names), value])?;
                    names
                }
            };
            let remembered = match turn {
                Turn::Required | Turn::Optional => member.name().map(InScope::OneName),
                Turn::Anywhere if member.place.is_none() => scope.many.clone(),
                Turn::Anywhere | Turn::Once(_) | Turn::Nth(_) => None,
            };
            let name = self.name(&member.names, remembered)?;
            self.rule(names, vec![name])?;
        }
        let groups: Vec<(Effect, NonterminalId)> = groups.into_iter().collect();
        let mut states = vec![State::default()];
        let mut ids: HashMap<State, NonterminalId> = HashMap::new();
        let open = self.brace("{", scope.open.clone())?;
        let close = self.brace("}", scope.close.clone())?;
        let comma = self.comma_of(scope.comma.clone())?;
        let mut done = 0;
        while done < states.len() {
            let state = states[done];
            done += 1;
            // The start is no nonterminal: nothing is before the first member.
            let before = ids.get(&state).filter(|_| done > 1).copied();
            if counter.accepts(&state, plan) {
                let inside = before.map(Symbol::Nonterminal).unwrap_or(open);
                self.rule(head, vec![inside, close])?;
            }
            for &(effect, group) in &groups {
                let Some(next) = counter.step(state, effect) else { continue };
                let to = match ids.get(&next) {
                    Some(&to) => to,
                    None => {
                        let to = self.part("members");
                        ids.insert(next, to);
                        states.push(next);
                        let max = self.compiler.options.limits.max_states;
                        self.within_states(states.len(), max)?;
                        to
                    }
                };
                let body = match before {
                    None => vec![open, Symbol::Nonterminal(group)],
                    Some(before) => {
                        vec![Symbol::Nonterminal(before), comma, Symbol::Nonterminal(group)]
                    }
                };
                self.rule(to, body)?;
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        head: NonterminalId,
        member: &Member,
        scope: Option<InScope>,
    ) -> Result<()> {
        let Some(value) = self.member_value(member.value)? else { return Ok(()) };
        if scope.is_some() {
            self.counted.push((member.value, value));
        }
        if self.members_ended_by_name(head, &member.names, value)? {
            return Ok(());
        }
        let name = self.name(&member.names, scope)?;
        self.rule(head, vec![name, value])
    }

    fn object_in_order(&mut self, head: NonterminalId, plan: &Plan) -> Result<()> {
        // Names that are declared come in order, and so once.
        let num_declared = plan.places.iter().filter(|place| place.declared).count();
        let others = plan.is_open() || num_declared < plan.places.len();
        let scope = match plan.tells_names_apart() && others {
            true => Scope::new(true),
            false => Scope::default(),
        };
        let open = self.brace("{", scope.open.clone())?;
        let close = self.brace("}", scope.close.clone())?;
        let comma = self.comma_of(scope.comma.clone())?;
        let turn = |at: usize| if at < num_declared { Turn::Nth(at) } else { Turn::Optional };
        let turns: Vec<Turn> = (0..plan.places.len()).map(turn).collect();
        let counter = Counter::new(plan, &turns);
        // By place; those not declared last.
        let mut groups: Vec<BTreeMap<Effect, NonterminalId>> =
            vec![BTreeMap::new(); num_declared + 1];
        for member in &plan.members {
            let turn = member.place.map_or(Turn::Anywhere, |at| turns[at]);
            let (place, remembered) = match turn {
                Turn::Nth(at) => (at, None),
                Turn::Anywhere => (num_declared, scope.many.clone()),
                _ => (num_declared, member.name().map(InScope::OneName)),
            };
            let candidate = member.place.is_some_and(|at| counter.candidates[at]);
            let effect = Effect { turn, exists: member.exists, candidate };
            let group = *groups[place].entry(effect).or_insert_with(|| self.part("member"));
            self.member(group, member, remembered)?;
        }
        // A nonterminal for what may follow: (state, whether nothing came before).
        let start = (State::default(), true);
        let mut ids: HashMap<_, _> = HashMap::from([(start, self.part("members"))]);
        let mut states = vec![start];
        self.rule(head, vec![open, Symbol::Nonterminal(ids[&start]), close])?;
        let mut done = 0;
        while done < states.len() {
            let (state, first) = states[done];
            let from = ids[&(state, first)];
            done += 1;
            let ended = state.next == num_declared;
            if ended && state.exists == plan.exists && state.count >= counter.min {
                self.rule(from, Vec::new())?;
            }
            let mut moves: Vec<(Option<NonterminalId>, (State, bool))> = Vec::new();
            if !ended && !plan.places[state.next].required {
                moves.push((None, (State { next: state.next + 1, ..state }, first)));
            }
            for (&effect, &group) in &groups[state.next] {
                if let Some(next) = counter.step(state, effect) {
                    moves.push((Some(group), (next, false)));
                }
            }
            for (group, next) in moves {
                let to = match ids.get(&next) {
                    Some(&to) => to,
                    None => {
                        let to = self.part("members");
                        ids.insert(next, to);
                        states.push(next);
                        let max = self.compiler.options.limits.max_states;
                        self.within_states(states.len(), max)?;
                        to
                    }
                };
                let mut body = Vec::new();
                if let Some(group) = group {
                    if !first {
                        body.push(comma);
                    }
                    body.push(Symbol::Nonterminal(group));
                }
                body.push(Symbol::Nonterminal(to));
                self.rule(from, body)?;
            }
        }
        Ok(())
    }

    pub(super) fn within_states(&self, states: usize, max: usize) -> Result<()> {
        if states <= max {
            return Ok(());
        }
        let at = self.compiler.place();
        let why = ": the members or items of one value have to be counted in more".to_owned();
        Err(self.compiler.over(at, "max_states", max, why))
    }
}

/// Turns where the rules track names: all of them, or those that are required; others may come
/// again.
fn once(plan: &Plan, all: bool) -> Vec<Turn> {
    let mut bits = 0..;
    let turns = plan.places.iter().map(|place| match all || place.required {
        true => Turn::Once(bits.next().expect("one for each")),
        false => Turn::Anywhere,
    });
    turns.collect()
}

/// Counts of members as far as they matter, and the condition under which an object has all that it
/// must.
struct Counter {
    min: u64,
    max: Option<u64>,
    must_see: u64,
    num_required: usize,
    /// Limit on optional members, if there may be no others and their names are remembered.
    max_optional: Option<usize>,
    /// Candidates by place: true of the names of which one must exist, the only statement on names
    /// known one by one.
    candidates: Vec<bool>,
    /// The bit of that statement.
    by_name: u32,
}

impl Counter {
    fn new(plan: &Plan, turns: &[Turn]) -> Self {
        let required = plan.num_required() as u64;
        let must = plan.places.iter().zip(turns).filter(|(place, _)| place.required);
        let must_see = must.clone().fold(0, |bits, (_, turn)| match turn {
            Turn::Once(bit) => bits | 1 << bit,
            _ => bits,
        });
        let count = |turn| turns.iter().filter(|&&other| other == turn).count();
        let by_name = match plan.exists_by_name() {
            one if one.is_power_of_two() => one,
            _ => 0,
        };
        Self {
            min: if plan.min <= required { 0 } else { plan.min },
            max: plan.max,
            must_see,
            num_required: count(Turn::Required),
            max_optional: (!plan.is_open()).then(|| count(Turn::Optional)),
            candidates: plan.candidates(by_name),
            by_name,
        }
    }

    fn accepts(&self, state: &State, plan: &Plan) -> bool {
        state.seen & self.must_see == self.must_see
            && state.required == self.num_required
            && state.exists == plan.exists
            && state.count >= self.min
    }

    fn step(&self, state: State, effect: Effect) -> Option<State> {
        let mut next = state;
        match effect.turn {
            Turn::Anywhere => {}
            Turn::Once(bit) if state.seen & 1 << bit != 0 => return None,
            Turn::Once(bit) => next.seen |= 1 << bit,
            Turn::Nth(turn) if state.next != turn => return None,
            Turn::Nth(turn) => next.next = turn + 1,
            Turn::Required if state.required == self.num_required => return None,
            Turn::Required => next.required += 1,
            Turn::Optional if self.max_optional == Some(state.optional) => return None,
            Turn::Optional if self.max_optional.is_some() => next.optional += 1,
            Turn::Optional => {}
        }
        next.exists |= effect.exists;
        if next.exists & self.by_name != 0 {
            next.misses = 0;
        } else if effect.candidate {
            next.misses += 1;
            let left = self.candidates.iter().filter(|&&candidate| candidate).count() - next.misses;
            if left == 0 {
                return None;
            }
        }
        match self.max {
            Some(max) if state.count >= max => return None,
            Some(_) => next.count += 1,
            None => next.count = (next.count + 1).min(self.min),
        }
        Some(next)
    }
}

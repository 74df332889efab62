//! The rules of an object: its members in any order, or in the schema's.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::{
    compile::Result,
    emit::Emitter,
    goals::GoalId,
    objects::ObjectSet,
    options::PropertyOrder,
    strings::{StringSet, Texts},
};
use crate::{NonterminalId, Regex, Symbol};

/// A member that an object may have.
struct Member {
    names: StringSet,
    value: GoalId,
    /// Its place among the declared names, where it is one of them.
    declared: Option<usize>,
    /// Which of the members that must exist it is, as a set of bits.
    exists: u32,
}

/// All that is known of an object's members.
struct Plan {
    members: Vec<Member>,
    /// For each declared name that may be there: whether it is required.
    required: Vec<bool>,
    /// All bits of the members that must exist.
    exists: u32,
    min: u64,
    max: Option<u64>,
}

/// Which members an object has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Bits of the tracked names that were there.
    seen: u64,
    /// In any order: how many of the names that come in order were there. In the schema's order: the next declared
    /// name that may come.
    next: usize,
    exists: u32,
    /// Counted as far as it matters.
    count: u64,
}

impl State {
    const START: Self = Self { seen: 0, next: 0, exists: 0, count: 0 };
}

/// How one group of members changes the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Effect {
    turn: Turn,
    exists: u32,
}

/// When a member may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Turn {
    Anywhere,
    /// Once; a bit of [`State::seen`].
    Once(u32),
    /// When [`State::next`] is this.
    Nth(usize),
}

impl Emitter<'_, '_> {
    pub(super) fn object(&mut self, head: NonterminalId, object: &ObjectSet) -> Result<()> {
        let Some(plan) = self.plan(object)? else { return Ok(()) };
        match self.compiler.options.order {
            PropertyOrder::Any { max_tracked } => {
                self.object_in_any_order(head, &plan, max_tracked)
            }
            PropertyOrder::Schema => self.object_in_order(head, &plan),
        }
    }

    /// The members; `None` when a required one is impossible.
    fn plan(&mut self, object: &ObjectSet) -> Result<Option<Plan>> {
        let declared = object.declared();
        let values = object.values(&declared, &mut self.compiler.goals);
        let mut allowed_names = Vec::new();
        for &goal in &object.names {
            allowed_names.push(self.compiler.goal_cases(goal)?);
        }
        let is_required: HashSet<&Arc<str>> = object.required.iter().collect();
        let mut plan = Plan {
            members: Vec::new(),
            required: Vec::new(),
            exists: ((1u64 << object.exists.len().min(32)) - 1) as u32,
            min: object.min,
            max: object.max,
        };
        let max = self.compiler.options.limits.max_states;
        let places = |exists: usize| if exists > 16 { usize::MAX } else { 1 << exists };
        self.within_states(places(object.exists.len()), max)?;
        for (name, value) in declared.iter().zip(values) {
            let named = allowed_names
                .iter()
                .all(|cases| cases.strings.iter().any(|strings| strings.contains(name)));
            let required = is_required.contains(name);
            if value == GoalId::NEVER || !named {
                if required {
                    return Ok(None);
                }
                continue;
            }
            let names = StringSet::one(name.clone());
            let place = plan.required.len();
            self.add_member(&mut plan, object, names, value, Some(place));
            plan.required.push(required);
        }
        for (names, value) in self.other_members(object, &declared)? {
            let mut sets = vec![names];
            for cases in &allowed_names {
                sets = sets
                    .iter()
                    .flat_map(|set| {
                        cases.strings.iter().filter_map(|names| set.intersection(names))
                    })
                    .collect();
            }
            for names in sets {
                self.add_member(&mut plan, object, names, value, None);
            }
        }
        Ok(Some(plan))
    }

    /// Adds the member, and again for each way in which it can be one that must exist.
    fn add_member(
        &mut self,
        plan: &mut Plan,
        object: &ObjectSet,
        names: StringSet,
        value: GoalId,
        declared: Option<usize>,
    ) {
        let mut ways = vec![(names, value, 0u32)];
        for (bit, exists) in object.exists.iter().enumerate() {
            for at in 0..ways.len() {
                let (names, value, bits) = ways[at].clone();
                let Some(names) = names.intersection(&exists.names) else { continue };
                let value = self.compiler.goals.all_of([value, exists.goal]);
                if value != GoalId::NEVER {
                    ways.push((names, value, bits | 1 << bit));
                }
            }
        }
        let members = ways.into_iter().map(|(names, value, exists)| Member {
            names,
            value,
            declared,
            exists,
        });
        plan.members.extend(members);
    }

    /// The members that are not declared: their names by the patterns that they match, and what their values must be.
    fn other_members(
        &mut self,
        object: &ObjectSet,
        declared: &[Arc<str>],
    ) -> Result<Vec<(StringSet, GoalId)>> {
        let mut patterns: Vec<&Texts> = Vec::new();
        for scope in &object.scopes {
            for (pattern, _) in &scope.patterns {
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                }
            }
        }
        let names = Regex::alternate(declared.iter().map(|name| Regex::literal(name)));
        let undeclared = match names {
            Regex::Never => StringSet::any(),
            names => StringSet::texts(Regex::complement(names)),
        };
        let mut classes: Vec<(StringSet, Vec<&Texts>)> = vec![(undeclared, Vec::new())];
        for pattern in patterns {
            let inside = StringSet::All { min: 0, max: None, all: vec![pattern.clone()] };
            let outside = inside.complement();
            let mut split = Vec::new();
            for (names, matched) in classes {
                if let Some(names) = names.intersection(&inside) {
                    let matched = matched.iter().copied().chain([pattern]).collect();
                    split.push((names, matched));
                }
                for outside in &outside {
                    if let Some(names) = names.intersection(outside) {
                        split.push((names, matched.clone()));
                    }
                }
            }
            classes = split;
            self.within_states(classes.len(), 1 << 10)?;
        }
        let mut members = Vec::new();
        for (names, matched) in classes {
            let mut parts = Vec::new();
            for scope in &object.scopes {
                let before = parts.len();
                let own = scope.patterns.iter().filter(|(pattern, _)| matched.contains(&pattern));
                parts.extend(own.map(|(_, goal)| *goal));
                if parts.len() == before {
                    parts.push(scope.others);
                }
            }
            let value = self.compiler.goals.all_of(parts);
            if value != GoalId::NEVER {
                members.push((names, value));
            }
        }
        Ok(members)
    }

    fn object_in_any_order(
        &mut self,
        head: NonterminalId,
        plan: &Plan,
        max_tracked: u32,
    ) -> Result<()> {
        let turns = turns(&plan.required, max_tracked.min(20) as usize);
        let must = turns.iter().zip(&plan.required).filter(|(_, required)| **required);
        let must_see = must.clone().fold(0u64, |bits, (turn, _)| match turn {
            Turn::Once(bit) => bits | 1 << bit,
            _ => bits,
        });
        let in_order = must.filter(|(turn, _)| matches!(turn, Turn::Nth(_))).count();
        // Members that act alike share a nonterminal, and so do the names of those whose values are alike too: what comes
        // after the name is then the same for all of them.
        let mut groups: BTreeMap<Effect, NonterminalId> = BTreeMap::new();
        let mut named: HashMap<(NonterminalId, Symbol), NonterminalId> = HashMap::new();
        for member in &plan.members {
            let Some(value) = self.goal(member.value)? else { continue };
            let turn = member.declared.map_or(Turn::Anywhere, |at| turns[at]);
            let effect = Effect { turn, exists: member.exists };
            let group = *groups.entry(effect).or_insert_with(|| self.part("member"));
            let names = match named.get(&(group, value)) {
                Some(&names) => names,
                None => {
                    let names = self.part("names");
                    named.insert((group, value), names);
                    self.rule(group, vec![Symbol::Nonterminal(names), value])?;
                    names
                }
            };
            let name = self.name(&member.names)?;
            self.rule(names, vec![name])?;
        }
        let counter = Counter::new(plan);
        let groups: Vec<(Effect, NonterminalId)> = groups.into_iter().collect();
        let mut states = vec![State::START];
        let mut ids: HashMap<State, NonterminalId> = HashMap::new();
        let (open, close, comma) = (self.punctuation("{")?, self.punctuation("}")?, self.comma()?);
        let mut done = 0;
        while done < states.len() {
            let state = states[done];
            done += 1;
            let accepts = state.seen & must_see == must_see
                && state.next == in_order
                && state.exists == plan.exists
                && state.count >= counter.min;
            // The start is no nonterminal: nothing is before the first member.
            let before = ids.get(&state).filter(|_| done > 1).copied();
            if accepts {
                let inside = before.map(Symbol::Nonterminal).unwrap_or(open);
                self.rule(head, vec![inside, close])?;
            }
            for &(effect, group) in &groups {
                let Some(next) = step(state, effect, &counter) else { continue };
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

    fn member(&mut self, head: NonterminalId, member: &Member) -> Result<()> {
        let name = self.name(&member.names)?;
        match self.goal(member.value)? {
            Some(value) => self.rule(head, vec![name, value]),
            None => Ok(()),
        }
    }

    fn object_in_order(&mut self, head: NonterminalId, plan: &Plan) -> Result<()> {
        let (open, close, comma) = (self.punctuation("{")?, self.punctuation("}")?, self.comma()?);
        let counter = Counter::new(plan);
        let num_declared = plan.required.len();
        // By place; those not declared last.
        let mut groups: Vec<BTreeMap<u32, NonterminalId>> = vec![BTreeMap::new(); num_declared + 1];
        for member in &plan.members {
            let place = member.declared.unwrap_or(num_declared);
            let group = *groups[place].entry(member.exists).or_insert_with(|| self.part("member"));
            self.member(group, member)?;
        }
        // A nonterminal for what may follow: (state, whether nothing came before).
        let start = (State::START, true);
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
            if !ended && !plan.required[state.next] {
                moves.push((None, (State { next: state.next + 1, ..state }, first)));
            }
            for (&exists, &group) in &groups[state.next] {
                let turn = if ended { Turn::Anywhere } else { Turn::Nth(state.next) };
                if let Some(next) = step(state, Effect { turn, exists }, &counter) {
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

/// The turn of each declared name: as [`PropertyOrder::Any`] says.
fn turns(required: &[bool], max_tracked: usize) -> Vec<Turn> {
    let num_required = required.iter().filter(|&&required| required).count();
    let track_all = required.len() <= max_tracked;
    let (mut once, mut nth) = (0..required.len() as u32, 0..required.len());
    required
        .iter()
        .map(|&required| match required {
            _ if track_all => Turn::Once(once.next().expect("one for each")),
            true if num_required <= max_tracked => Turn::Once(once.next().expect("one for each")),
            true => Turn::Nth(nth.next().expect("one for each")),
            false => Turn::Anywhere,
        })
        .collect()
}

/// How far members are counted.
struct Counter {
    min: u64,
    max: Option<u64>,
}

impl Counter {
    fn new(plan: &Plan) -> Self {
        let required = plan.required.iter().filter(|&&required| required).count() as u64;
        Self { min: if plan.min <= required { 0 } else { plan.min }, max: plan.max }
    }
}

fn step(state: State, effect: Effect, counter: &Counter) -> Option<State> {
    let mut next = state;
    match effect.turn {
        Turn::Anywhere => {}
        Turn::Once(bit) if state.seen & 1 << bit != 0 => return None,
        Turn::Once(bit) => next.seen |= 1 << bit,
        Turn::Nth(turn) if state.next != turn => return None,
        Turn::Nth(turn) => next.next = turn + 1,
    }
    next.exists |= effect.exists;
    match counter.max {
        Some(max) if state.count >= max => return None,
        Some(_) => next.count += 1,
        None => next.count = (next.count + 1).min(counter.min),
    }
    Some(next)
}

//! The members that an object may have, and which names have to be told apart for them to be
//! counted.

use std::{collections::HashSet, sync::Arc};

use super::{
    cases::Cases,
    compile::Result,
    emit::Emitter,
    exclusion::Exclusions,
    goals::GoalId,
    members::NAMES,
    objects::ObjectSet,
    strings::{StringSet, Texts},
};
use crate::Regex;

/// Classes of names, by the patterns that they match, in an object.
const MAX_CLASSES: usize = 1 << 10;

/// A member that an object may have.
pub(super) struct Member {
    pub(super) names: StringSet,
    pub(super) value: GoalId,
    /// Place in [`Plan::places`], where it has a name of its own.
    pub(super) place: Option<usize>,
    /// The statements on members that must exist which it meets, as a set of bits.
    pub(super) exists: u32,
}

/// A name that an object may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) required: bool,
    /// The schema declares or requires it; others are listed by a pattern that has few texts.
    pub(super) declared: bool,
}

/// The members of an object, and what is asked of them together.
pub(super) struct Plan {
    pub(super) members: Vec<Member>,
    /// The names that are known one by one, those declared first.
    pub(super) places: Vec<Place>,
    /// All bits of the members that must exist.
    pub(super) exists: u32,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl Member {
    /// Name, where it has one of its own.
    pub(super) fn name(&self) -> Option<Arc<str>> {
        match &self.names {
            StringSet::OneOf(names) if self.place.is_some() => names.first().cloned(),
            _ => None,
        }
    }
}

impl Plan {
    pub(super) fn num_required(&self) -> usize {
        self.places.iter().filter(|place| place.required).count()
    }

    /// Tells if members may have names that are not known one by one.
    pub(super) fn is_open(&self) -> bool {
        self.members.iter().any(|member| member.place.is_none())
    }

    /// Tells if a name that comes twice would count for two: if two members or more are asked for
    /// beside the required ones, or one that its namesake may undo.
    pub(super) fn tells_names_apart(&self) -> bool {
        self.exists != 0 || self.min >= self.num_required() as u64 + 2
    }

    /// The members that must exist and that only names known one by one can be, as a set of bits.
    pub(super) fn exists_by_name(&self) -> u32 {
        let free = self.members.iter().filter(|member| member.place.is_none());
        free.fold(self.exists, |bits, member| bits & !member.exists)
    }

    /// Candidates by place: true where the member may be one of those in `exists`.
    pub(super) fn candidates(&self, exists: u32) -> Vec<bool> {
        let mut candidates = vec![false; self.places.len()];
        for member in &self.members {
            if let Some(place) = member.place {
                candidates[place] |= member.exists & exists != 0;
            }
        }
        candidates
    }
}

impl Emitter<'_, '_> {
    /// The members of an object; `None` when a required one is impossible.
    pub(super) fn plan(&mut self, object: &ObjectSet) -> Result<Option<Plan>> {
        let mut declared = object.declared();
        let num_declared = declared.len();
        let tells_apart = !object.exists.is_empty() || object.min >= 2;
        if tells_apart {
            add_listed_of_exists(object, &mut declared);
        }
        let values = object.values(&declared, &mut self.compiler.goals);
        let mut allowed_names = Vec::new();
        for &goal in &object.names {
            let names = self.compiler.goal_cases(goal)?;
            self.compiler.no_members(&names, NAMES)?;
            allowed_names.push(names);
        }
        let is_required: HashSet<&Arc<str>> = object.required.iter().collect();
        let mut plan = Plan {
            members: Vec::new(),
            places: Vec::new(),
            exists: ((1u64 << object.exists.len().min(32)) - 1) as u32,
            min: object.min,
            max: object.max,
        };
        let max = self.compiler.options.limits.max_states;
        let places = |exists: usize| if exists > 16 { usize::MAX } else { 1 << exists };
        self.within_states(places(object.exists.len()), max)?;
        for (at, (name, value)) in declared.iter().zip(values).enumerate() {
            let named = allowed_names
                .iter()
                .all(|cases| cases.strings.iter().any(|strings| strings.contains(name)));
            let required = is_required.contains(name);
            if value == GoalId::NEVER || self.impossible.contains(&value) || !named {
                if required {
                    return Ok(None);
                }
                continue;
            }
            let names = StringSet::one(name.clone());
            let place = Place { required, declared: at < num_declared };
            self.add_named(&mut plan, object, names, value, place);
        }
        for (names, value) in self.other_members(object, &declared)? {
            if self.impossible.contains(&value) {
                continue;
            }
            for names in allowed(names, &allowed_names) {
                match names.clone().listed() {
                    StringSet::OneOf(listed) if tells_apart => {
                        for name in listed {
                            let place = Place { required: false, declared: false };
                            self.add_named(&mut plan, object, StringSet::one(name), value, place);
                        }
                    }
                    _ => self.add_member(&mut plan, object, names, value, None),
                }
            }
        }
        Ok(Some(plan))
    }

    /// Adds the member of a name that is known.
    fn add_named(
        &mut self,
        plan: &mut Plan,
        object: &ObjectSet,
        name: StringSet,
        value: GoalId,
        place: Place,
    ) {
        plan.places.push(place);
        self.add_member(plan, object, name, value, Some(plan.places.len() - 1));
    }

    /// Adds the member, and again for each way in which it can be one that must exist.
    fn add_member(
        &mut self,
        plan: &mut Plan,
        object: &ObjectSet,
        names: StringSet,
        value: GoalId,
        place: Option<usize>,
    ) {
        let mut ways = vec![(names, value, 0u32)];
        for (bit, exists) in object.exists.iter().enumerate() {
            for at in 0..ways.len() {
                let (names, value, bits) = ways[at].clone();
                let Some(names) = names.intersection(&exists.names) else { continue };
                let value = self.compiler.goals.all_of([value, exists.goal]);
                if value != GoalId::NEVER && !self.impossible.contains(&value) {
                    ways.push((names, value, bits | 1 << bit));
                }
            }
        }
        let members =
            ways.into_iter().map(|(names, value, exists)| Member { names, value, place, exists });
        plan.members.extend(members);
    }

    /// The members that are not declared: their names by the patterns that they match, and what
    /// their values must be.
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
        let declared = Regex::alternate(declared.iter().map(|name| Regex::literal(name)));
        let undeclared = match declared {
            Regex::Never => None,
            names => Some(Texts::new(Regex::complement(names))),
        };
        let patterns: Vec<NamePattern> = patterns.into_iter().map(NamePattern::new).collect();
        let mut classes = vec![NameClass::default()];
        for pattern in &patterns {
            let mut split = Vec::new();
            for class in classes {
                self.compiler.tick(class.matched.len() + class.left_out.len())?;
                let exclusions = &mut self.compiler.exclusions;
                class.split(pattern, undeclared.as_ref(), exclusions, &mut split);
            }
            if split.len() > MAX_CLASSES {
                let exclusions = &mut self.compiler.exclusions;
                split.retain(|class| exclusions.may_be_at_once(&class.names(undeclared.as_ref())));
            }
            classes = split;
            if classes.len() > MAX_CLASSES {
                let why = ": the patterns of names overlap in more ways; write patterns that exclude one another, or fewer".to_owned();
                return Err(self.compiler.over(
                    self.compiler.place(),
                    "max_states",
                    MAX_CLASSES,
                    why,
                ));
            }
        }
        let mut members = Vec::new();
        for class in classes {
            let mut parts = Vec::new();
            let matches =
                |pattern: &Texts| class.matched.iter().any(|matched| matched.inside == pattern);
            for scope in &object.scopes {
                let before = parts.len();
                let own = scope.patterns.iter().filter(|(pattern, _)| matches(pattern));
                parts.extend(own.map(|(_, goal)| *goal));
                if parts.len() == before {
                    parts.push(scope.others);
                }
            }
            let value = self.compiler.goals.all_of(parts);
            if value != GoalId::NEVER {
                members.push((class.names(undeclared.as_ref()), value));
            }
        }
        Ok(members)
    }
}

/// A pattern of names, and what it leaves out.
struct NamePattern<'t> {
    inside: &'t Texts,
    outside: Texts,
}

/// Names by the patterns that they match and those that they do not. What a matched pattern
/// excludes anyway is not said.
#[derive(Clone, Default)]
struct NameClass<'p, 't> {
    matched: Vec<&'p NamePattern<'t>>,
    left_out: Vec<&'p NamePattern<'t>>,
}

impl<'t> NamePattern<'t> {
    fn new(inside: &'t Texts) -> Self {
        let outside = match inside.regex() {
            Regex::Not(inner) => Regex::clone(inner),
            other => Regex::complement(other.clone()),
        };
        Self { inside, outside: Texts::new(outside) }
    }
}

impl<'p, 't> NameClass<'p, 't> {
    /// Adds its names that match a pattern, and those that do not, to `split`: either unless there
    /// is plainly none.
    ///
    /// PERF: hundreds of patterns that exclude one another are as many classes, each of which says
    /// little.
    fn split(
        self,
        pattern: &'p NamePattern<'t>,
        undeclared: Option<&Texts>,
        exclusions: &mut Exclusions,
        split: &mut Vec<Self>,
    ) {
        if self.matched.iter().any(|known| exclusions.are_apart(known.inside, pattern.inside)) {
            split.push(self);
            return;
        }
        let is_possible = |texts: &Texts, exclusions: &mut Exclusions| {
            undeclared.is_none_or(|undeclared| !exclusions.are_apart(undeclared, texts))
                && !self.matched.iter().any(|known| exclusions.are_apart(known.inside, texts))
                && !self.left_out.iter().any(|known| exclusions.are_apart(&known.outside, texts))
        };
        if is_possible(pattern.inside, exclusions) {
            let mut inside = self.clone();
            inside.matched.push(pattern);
            inside.left_out.retain(|known| !exclusions.are_apart(known.inside, pattern.inside));
            split.push(inside);
        }
        if is_possible(&pattern.outside, exclusions) {
            let mut outside = self;
            outside.left_out.push(pattern);
            split.push(outside);
        }
    }

    fn names(&self, undeclared: Option<&Texts>) -> StringSet {
        let matched = self.matched.iter().map(|pattern| pattern.inside);
        let left_out = self.left_out.iter().map(|pattern| &pattern.outside);
        let all = undeclared.into_iter().chain(matched).chain(left_out).cloned().collect();
        StringSet::All { min: 0, max: None, all }
    }
}

/// Adds the names of members that must exist where a pattern has few.
fn add_listed_of_exists(object: &ObjectSet, names: &mut Vec<Arc<str>>) {
    for exists in &object.exists {
        if let StringSet::OneOf(listed) = exists.names.clone().listed() {
            let new: Vec<Arc<str>> =
                listed.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(new);
        }
    }
}

/// The names that each of these cases of strings allows, as a union.
fn allowed(names: StringSet, allowed_names: &[std::rc::Rc<Cases>]) -> Vec<StringSet> {
    allowed_names.iter().fold(vec![names], |sets, cases| {
        let both = |set: &StringSet| -> Vec<StringSet> {
            cases.strings.iter().filter_map(|names| set.intersection(names)).collect()
        };
        sets.iter().flat_map(both).collect()
    })
}

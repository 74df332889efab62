//! Sets of objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
    sync::Arc,
};

use hashbrown::HashMap;

use super::{
    goals::{GoalId, Goals},
    matching::matches,
    schema_scope::SchemaScope,
    strings::{StringSet, Texts},
};

/// A set of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectSet {
    /// Constraints of each schema on the members; all of them must hold.
    pub(super) scopes: Vec<Rc<Scope>>,
    /// Goals of single members besides, where they are; never what the scopes say anyway.
    pub(super) members: BTreeMap<Arc<str>, GoalId>,
    /// Goal of the names, as values.
    pub(super) names: Vec<GoalId>,
    /// Required names in their order, each once.
    pub(super) required: Vec<Arc<str>>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) exists: Vec<Exists>,
    /// Scopes of members; more than one is refused where it is written.
    pub(super) records: Vec<SchemaScope>,
}

/// Constraints of one schema on the members of an object.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Declared properties in their order.
    pub(super) properties: Vec<(Arc<str>, GoalId)>,
    pub(super) patterns: Vec<(Texts, GoalId)>,
    /// Goal of members that are neither declared nor match a pattern.
    pub(super) others: GoalId,
    /// Meaning for the closure of objects, where that is asked for.
    pub(super) closing: Closing,
}

/// The part of a schema in what closes an object
/// ([`closed_objects`](super::JsonSchemaOptions::closed_objects)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Closing {
    /// Presence of `properties`.
    pub(super) declares: bool,
    /// Presence of a keyword about members that are not declared.
    pub(super) says: bool,
    /// Names that it requires, which are no inventions, declared or not.
    pub(super) required: Vec<Arc<str>>,
}

/// The demand that some member has a name of `names` and a value that meets `goal`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Exists {
    pub(super) names: StringSet,
    pub(super) goal: GoalId,
}

/// A digest of what a set says: equal statements are equal bits.
///
/// PERF: of two thousand alternatives each is compared with each, and nearly all pairs are told
/// apart so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline(u128);

impl Outline {
    /// True when all that `other` says may be said here.
    pub(super) fn has_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// A bit of an [`Outline`].
fn place_of(said: impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    said.hash(&mut hasher);
    hasher.finish() as u32 % u128::BITS
}

impl ObjectSet {
    pub(super) fn any() -> Self {
        Self {
            scopes: Vec::new(),
            members: BTreeMap::new(),
            names: Vec::new(),
            required: Vec::new(),
            min: 0,
            max: None,
            exists: Vec::new(),
            records: Vec::new(),
        }
    }

    /// The objects in which the member `name`, where it is, meets `goal`.
    pub(super) fn member(name: &Arc<str>, goal: GoalId) -> Self {
        Self { members: BTreeMap::from([(name.clone(), goal)]), ..Self::any() }
    }

    /// The objects without the member `name`.
    pub(super) fn without(name: &Arc<str>) -> Self {
        Self::member(name, GoalId::NEVER)
    }

    pub(super) fn requiring(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut set = Self::any();
        for name in names {
            if !set.required.contains(&name) {
                set.required.push(name);
            }
        }
        set
    }

    pub(super) fn existing(names: StringSet, goal: GoalId) -> Self {
        Self { exists: vec![Exists { names, goal }], ..Self::any() }
    }

    /// The objects in both; `None` when there is plainly none.
    pub(super) fn intersection(&self, other: &Self, goals: &mut Goals) -> Option<Self> {
        fn union<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
            let mut all = one.to_vec();
            all.extend(other.iter().filter(|part| !one.contains(part)).cloned());
            all
        }
        let mut members = self.members.clone();
        for (name, &goal) in &other.members {
            let known = members.entry(name.clone()).or_insert(goal);
            *known = goals.all_of([*known, goal]);
        }
        let set = Self {
            scopes: union(&self.scopes, &other.scopes),
            members,
            names: union(&self.names, &other.names),
            required: union(&self.required, &other.required),
            min: self.min.max(other.min),
            max: [self.max, other.max].into_iter().flatten().min(),
            exists: union(&self.exists, &other.exists),
            records: union(&self.records, &other.records),
        };
        set.normalised(goals)
    }

    /// This set without what is said twice; `None` when it is plainly empty.
    fn normalised(mut self, goals: &mut Goals) -> Option<Self> {
        if !self.settle_exists(goals) {
            return None;
        }
        let too_many = self.max.is_some_and(|max| {
            let required = self.required.len() as u64;
            self.min > max || required > max || (max == 0 && !self.exists.is_empty())
        });
        let impossible = self.members.iter().find(|(name, goal)| {
            self.required.contains(name)
                && (**goal == GoalId::NEVER || self.value(name, goals) == GoalId::NEVER)
        });
        if let Some((name, _)) = impossible {
            goals.note_impossible(name);
        }
        if too_many || impossible.is_some() {
            return None;
        }
        let members = std::mem::take(&mut self.members);
        let news = members.into_iter().filter(|(name, goal)| {
            let said = self.value(name, goals);
            !goals.implies(said, *goal)
        });
        self.members = news.collect();
        Some(self)
    }

    /// Says by names what members must exist, where a scope lists all names there may be: a single
    /// one is required. `false` where there is none.
    fn settle_exists(&mut self, goals: &mut Goals) -> bool {
        let Some(closed) = self.scopes.iter().find(|scope| scope.is_closed()).cloned() else {
            return true;
        };
        for Exists { names, goal } in std::mem::take(&mut self.exists) {
            let mut possible = BTreeSet::new();
            for (name, _) in &closed.properties {
                let value = self.value(name, goals);
                if goals.all_of([value, goal]) != GoalId::NEVER && names.contains(name) {
                    possible.insert(Arc::clone(name));
                }
            }
            match possible.len() {
                0 => return false,
                1 => {
                    let name = possible.pop_first().expect("one");
                    let member = self.members.entry(Arc::clone(&name)).or_insert(GoalId::ANY);
                    *member = goals.all_of([*member, goal]);
                    if !self.required.contains(&name) {
                        self.required.push(name);
                    }
                }
                _ => {
                    let exists = Exists { names: StringSet::OneOf(possible), goal };
                    if !self.exists.contains(&exists) {
                        self.exists.push(exists);
                    }
                }
            }
        }
        true
    }

    /// True when it is plain that every object of this set is in `other`.
    pub(super) fn is_within(&self, other: &Self, goals: &mut Goals) -> bool {
        fn all_in<T: PartialEq>(parts: &[T], others: &[T]) -> bool {
            parts.iter().all(|part| others.contains(part))
        }
        let has_scope = |scope: &Rc<Scope>| {
            self.scopes.iter().any(|own| Rc::ptr_eq(own, scope))
                || self.scopes.iter().any(|own| own == scope)
        };
        other.min <= self.min
            && other.max.is_none_or(|max| self.max.is_some_and(|own| own <= max))
            && all_in(&other.required, &self.required)
            && all_in(&other.names, &self.names)
            && all_in(&other.exists, &self.exists)
            && self.records == other.records
            && other.members.iter().all(|(name, &goal)| {
                let own = self.value(name, goals);
                goals.implies(own, goal)
            })
            && other.scopes.iter().all(has_scope)
            // Closed, the narrower set may have names that the other one has not.
            && (!other.is_to_be_closed() || self.known_names() == other.known_names())
    }

    /// True where its schemas declare members and say nothing of others.
    pub(super) fn is_to_be_closed(&self) -> bool {
        let closing = || self.scopes.iter().map(|scope| &scope.closing);
        closing().any(|closing| closing.declares) && !closing().any(|closing| closing.says)
    }

    /// The names that its schemas know, and the patterns; `None` where it is not to be closed.
    fn known_names(&self) -> Option<(BTreeSet<&Arc<str>>, Vec<&Texts>)> {
        let names = self.scopes.iter().flat_map(|scope| {
            let declared = scope.properties.iter().map(|(name, _)| name);
            declared.chain(&scope.closing.required)
        });
        let patterns = self.scopes.iter().flat_map(|scope| &scope.patterns);
        let known = || (names.collect(), patterns.map(|(pattern, _)| pattern).collect());
        self.is_to_be_closed().then(known)
    }

    /// The set without members that its schemas do not know, where it is to be closed; `None` when
    /// there is plainly none.
    pub(super) fn closed(&self, goals: &mut Goals) -> Option<Self> {
        let mut set = self.clone();
        // What only tells of closing is done with.
        set.scopes.retain(|scope| !scope.is_silent());
        let Some((names, patterns)) = self.known_names() else { return Some(set) };
        if patterns.is_empty() && set.min > names.len() as u64 {
            return None;
        }
        let properties = names.into_iter().map(|name| (Arc::clone(name), GoalId::ANY)).collect();
        let patterns = patterns.into_iter().map(|names| (names.clone(), GoalId::ANY)).collect();
        let closing = Closing::default();
        // The last one: the order of the members is that of the schemas.
        set.scopes.push(Rc::new(Scope { properties, patterns, others: GoalId::NEVER, closing }));
        set.normalised(goals)
    }

    /// A digest of what it says.
    pub(super) fn outline(&self) -> Outline {
        let required = self.required.iter().map(place_of);
        let exists = self.exists.iter().map(place_of);
        let names = self.names.iter().map(|goal| place_of((goal, "name")));
        let records = self.records.iter().map(place_of);
        Outline(
            required
                .chain(exists)
                .chain(names)
                .chain(records)
                .fold(0, |bits, place| bits | 1 << place),
        )
    }

    /// Goal of the value of the member `name`; of the schemas on names nothing is asked.
    pub(super) fn value(&self, name: &str, goals: &mut Goals) -> GoalId {
        let parts: Vec<GoalId> = self.scopes.iter().flat_map(|scope| scope.value(name)).collect();
        goals.all_of(parts.into_iter().chain(self.members.get(name).copied()))
    }

    /// All names of which something is said: those declared in their order, then those required,
    /// then the others.
    pub(super) fn declared(&self) -> Vec<Arc<str>> {
        let mut seen = std::collections::HashSet::new();
        let properties = self.scopes.iter().flat_map(|scope| scope.properties.iter());
        let names =
            properties.map(|(name, _)| name).chain(&self.required).chain(self.members.keys());
        names.filter(|name| seen.insert(Arc::clone(name))).cloned().collect()
    }

    /// The value goals of all `names` at once.
    pub(super) fn values(&self, names: &[Arc<str>], goals: &mut Goals) -> Vec<GoalId> {
        let tables: Vec<HashMap<&str, GoalId>> = self
            .scopes
            .iter()
            .map(|scope| scope.properties.iter().map(|(name, goal)| (&**name, *goal)).collect())
            .collect();
        names
            .iter()
            .map(|name| {
                let mut parts = Vec::from_iter(self.members.get(name).copied());
                for (scope, table) in self.scopes.iter().zip(&tables) {
                    parts.extend(scope.value_with(name, table.get(&**name).copied()));
                }
                goals.all_of(parts)
            })
            .collect()
    }
}

impl Scope {
    /// True when it asks nothing of any member.
    fn is_silent(&self) -> bool {
        self.properties.is_empty() && self.patterns.is_empty() && self.others == GoalId::ANY
    }

    /// True when there may be no member that is not declared.
    fn is_closed(&self) -> bool {
        self.others == GoalId::NEVER && self.patterns.is_empty()
    }

    fn value(&self, name: &str) -> Vec<GoalId> {
        let declared = self.properties.iter().find(|(declared, _)| **declared == *name);
        self.value_with(name, declared.map(|(_, goal)| *goal))
    }

    fn value_with(&self, name: &str, declared: Option<GoalId>) -> Vec<GoalId> {
        let matching = self.patterns.iter().filter(|(pattern, _)| matches(pattern.regex(), name));
        let mut parts: Vec<GoalId> =
            declared.into_iter().chain(matching.map(|(_, goal)| *goal)).collect();
        if parts.is_empty() {
            parts.push(self.others);
        }
        parts
    }

    /// The names that are neither declared nor match a pattern.
    pub(super) fn other_names(&self) -> StringSet {
        use crate::Regex;
        let not = |regex: Regex| Texts::new(Regex::complement(regex));
        let declared =
            Regex::alternate(self.properties.iter().map(|(name, _)| Regex::literal(name)));
        let mut all = Vec::new();
        if declared != Regex::Never {
            all.push(not(declared));
        }
        all.extend(self.patterns.iter().map(|(pattern, _)| not(pattern.regex().clone())));
        StringSet::All { min: 0, max: None, all }
    }
}

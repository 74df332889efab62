//! Goals: interned sets of claims on a value.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{dynamic_scope::ScopeId, source::JsonId};

/// A statement on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claim {
    pub(super) about: About,
    /// True when it must not hold.
    pub(super) denied: bool,
}

/// Content of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum About {
    /// The value is valid for this schema, which is reached so.
    Schema(JsonId, ScopeId),
    /// The value is this one.
    Value(JsonId),
    /// The value meets one of several goals, by their place in [`Goals`]; asked at a place of the
    /// schema.
    Either(u32, JsonId),
}

/// A place in [`Goals`]: the values for which all of some claims hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GoalId(pub(super) u32);

impl GoalId {
    /// Every value.
    pub(super) const ANY: Self = Self(0);
    /// No value.
    pub(super) const NEVER: Self = Self(1);
}

/// All goals. There are finitely many schemas and so finitely many goals: recursion ends because a
/// goal that comes again is the same goal.
#[derive(Debug)]
pub(super) struct Goals {
    /// Sorted claims; `None` for [`GoalId::NEVER`].
    goals: Vec<Option<Rc<[Claim]>>>,
    ids: HashMap<Rc<[Claim]>, GoalId>,
    /// Required members of which no value was allowed, up to two.
    impossible: Vec<Arc<str>>,
    /// Goals of which one must be met, each list once.
    choices: Vec<Rc<[GoalId]>>,
}

impl Goals {
    pub(super) fn new() -> Self {
        let any: Rc<[Claim]> = Rc::new([]);
        let (goals, ids) = (vec![Some(any.clone()), None], HashMap::from([(any, GoalId::ANY)]));
        Self { goals, ids, impossible: Vec::new(), choices: Vec::new() }
    }

    /// Notes that objects were found not to be possible, since this member is required and no value
    /// of it is allowed.
    pub(super) fn note_impossible(&mut self, name: &Arc<str>) {
        if self.impossible.len() < 2 && !self.impossible.contains(name) {
            self.impossible.push(Arc::clone(name));
        }
    }

    /// The member that was noted, where it is one alone.
    pub(super) fn impossible(&self) -> Option<&str> {
        match &self.impossible[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The goal with all of these claims.
    pub(super) fn add(&mut self, mut claims: Vec<Claim>) -> GoalId {
        claims.sort_unstable();
        claims.dedup();
        if claims.windows(2).any(|two| two[0].about == two[1].about) {
            return GoalId::NEVER;
        }
        let claims: Rc<[Claim]> = claims.into();
        if let Some(&id) = self.ids.get(&claims) {
            return id;
        }
        let id = GoalId(self.goals.len() as u32);
        self.goals.push(Some(claims.clone()));
        self.ids.insert(claims, id);
        id
    }

    /// The goal of meeting one of some goals, as a place of the schema asks.
    pub(super) fn either(&mut self, options: &[GoalId], at: JsonId) -> GoalId {
        if options.contains(&GoalId::ANY) {
            return GoalId::ANY;
        }
        let mut options: Vec<_> =
            options.iter().copied().filter(|&option| option != GoalId::NEVER).collect();
        options.sort_unstable();
        options.dedup();
        match options[..] {
            [] => GoalId::NEVER,
            [only] => only,
            _ => {
                let known = self.choices.iter().position(|known| **known == *options);
                let place = known.unwrap_or_else(|| {
                    self.choices.push(options.into());
                    self.choices.len() - 1
                });
                let about = About::Either(place as u32, at);
                self.add(vec![Claim { about, denied: false }])
            }
        }
    }

    /// The goals of which one must be met.
    pub(super) fn choice(&self, place: u32) -> Rc<[GoalId]> {
        Rc::clone(&self.choices[place as usize])
    }

    /// The goal that asks for all that `parts` ask for.
    pub(super) fn all_of(&mut self, parts: impl IntoIterator<Item = GoalId>) -> GoalId {
        let mut claims: Vec<Claim> = Vec::new();
        let mut only = GoalId::ANY;
        let mut several = false;
        for part in parts {
            match self.claims(part) {
                None => return GoalId::NEVER,
                Some(more) => claims.extend_from_slice(more),
            }
            if part != GoalId::ANY && part != only {
                several |= only != GoalId::ANY;
                only = part;
            }
        }
        if several { self.add(claims) } else { only }
    }

    /// Claims of the goal; `None` when no value meets them.
    pub(super) fn claims(&self, id: GoalId) -> Option<&Rc<[Claim]>> {
        self.goals[id.0 as usize].as_ref()
    }

    /// True when it is plain that every value that meets `one` meets `other`.
    pub(super) fn implies(&self, one: GoalId, other: GoalId) -> bool {
        match (self.claims(one), self.claims(other)) {
            (None, _) => true,
            (_, None) => false,
            (Some(have), Some(asked)) => {
                asked.iter().all(|claim| have.binary_search(claim).is_ok())
            }
        }
    }
}

//! Sets of arrays.

use super::{
    goals::{GoalId, Goals},
    schema_scope::SchemaScope,
    source::JsonId,
};

/// A set of arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArraySet {
    /// Goals of the first items, one by one.
    pub(super) prefix: Vec<GoalId>,
    /// Schema of all later ones.
    pub(super) rest: GoalId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) counts: Vec<Count>,
    /// `Some(true)`: no item comes twice; `Some(false)`: some item does.
    pub(super) unique: Option<bool>,
    /// Place where that is asked for.
    pub(super) unique_at: Option<JsonId>,
    /// Scopes of members; more than one is refused where it is written.
    pub(super) scopes: Vec<SchemaScope>,
}

/// A bound on how many items are of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Count {
    /// Items before this place do not count.
    pub(super) from: u64,
    pub(super) goal: GoalId,
    /// Goal of all other items.
    pub(super) opposite: GoalId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ArraySet {
    pub(super) fn any() -> Self {
        Self {
            prefix: Vec::new(),
            rest: GoalId::ANY,
            min: 0,
            max: None,
            counts: Vec::new(),
            unique: None,
            unique_at: None,
            scopes: Vec::new(),
        }
    }

    /// Goal of the item at `index`.
    pub(super) fn item(&self, index: u64) -> GoalId {
        usize::try_from(index).ok().and_then(|at| self.prefix.get(at)).copied().unwrap_or(self.rest)
    }

    /// The arrays in both; `None` when there is plainly none.
    pub(super) fn intersection(&self, other: &Self, goals: &mut Goals) -> Option<Self> {
        let length = self.prefix.len().max(other.prefix.len()) as u64;
        let prefix = (0..length).map(|at| goals.all_of([self.item(at), other.item(at)])).collect();
        let rest = goals.all_of([self.rest, other.rest]);
        let min = self.min.max(other.min);
        let max = [self.max, other.max].into_iter().flatten().min();
        let mut counts = self.counts.clone();
        for count in &other.counts {
            if !counts.contains(count) {
                counts.push(count.clone());
            }
        }
        let unique = match (self.unique, other.unique) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.or(other),
        };
        let unique_at = self.unique_at.or(other.unique_at);
        let mut scopes = self.scopes.clone();
        scopes.extend(other.scopes.iter().filter(|scope| !self.scopes.contains(scope)).cloned());
        Self { prefix, rest, min, max, counts, unique, unique_at, scopes }.normalised()
    }

    /// This set with tighter bounds; `None` when it is plainly empty.
    pub(super) fn normalised(mut self) -> Option<Self> {
        // The first place at which nothing can stand ends the array.
        let impossible = self.prefix.iter().position(|&item| item == GoalId::NEVER);
        let end = impossible.or((self.rest == GoalId::NEVER).then_some(self.prefix.len()));
        if let Some(end) = end {
            self.max = Some(self.max.map_or(end as u64, |max| max.min(end as u64)));
        }
        if let Some(max) = self.max {
            if self.min > max {
                return None;
            }
            self.prefix.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        }
        while self.prefix.last() == Some(&self.rest) {
            self.prefix.pop();
        }
        if self.max.is_some_and(|max| max <= 1) {
            if self.unique == Some(false) {
                return None;
            }
            (self.unique, self.unique_at) = (None, None);
        }
        Some(self)
    }
}

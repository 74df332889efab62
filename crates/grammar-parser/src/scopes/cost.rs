//! Costs: how many members of each set a text needs, as the least of all ways to write it.

use smallvec::{SmallVec, smallvec};

/// Numbers of members by set.
pub(crate) type Cost = SmallVec<[u32; 2]>;

/// The least costs of some texts: none that another is nowhere above. Without any there is no text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front(Vec<Cost>);

/// Costs of which none is least, of one part of a grammar, at most.
pub(super) const MAX_FRONT: usize = 64;

impl Front {
    /// The cost of the empty text, where there are so many sets.
    pub(super) fn zero(num_sets: usize) -> Self {
        Self(vec![smallvec![0; num_sets]])
    }

    /// The cost of one member.
    pub(super) fn one(num_sets: usize, set: usize) -> Self {
        let mut cost: Cost = smallvec![0; num_sets];
        cost[set] = 1;
        Self(vec![cost])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cost> {
        self.0.iter()
    }

    /// Adds a cost; `true` where it is none that was known.
    pub(super) fn insert(&mut self, cost: Cost) -> bool {
        let is_below = |one: &Cost, other: &Cost| one.iter().zip(other).all(|(a, b)| a <= b);
        if self.0.iter().any(|known| is_below(known, &cost)) {
            return false;
        }
        self.0.retain(|known| !is_below(&cost, known));
        self.0.push(cost);
        true
    }

    /// Adds all costs of another; `true` where one of them was not known.
    pub(super) fn unite(&mut self, other: &Self) -> bool {
        let mut grew = false;
        for cost in &other.0 {
            grew |= self.insert(cost.clone());
        }
        grew
    }

    /// The costs of texts in a row.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sums = Self::default();
        for one in &self.0 {
            for more in &other.0 {
                let sum = one.iter().zip(more).map(|(a, b)| a.saturating_add(*b));
                sums.insert(sum.collect());
            }
        }
        sums
    }

    /// With other numbers for some sets.
    pub(super) fn with(&self, number: impl Fn(usize) -> Option<u32>) -> Self {
        let mut changed = Self::default();
        for cost in &self.0 {
            let own = cost.iter().enumerate();
            changed.insert(own.map(|(set, &own)| number(set).unwrap_or(own)).collect());
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(costs: &[[u32; 2]]) -> Front {
        let mut front = Front::default();
        costs.iter().for_each(|cost| _ = front.insert(SmallVec::from_slice(cost)));
        front
    }

    #[test]
    fn only_the_least_are_kept() {
        let two = front(&[[2, 0], [3, 1], [0, 2], [2, 0]]);
        assert_eq!(two.len(), 2);
        let sums = two.plus(&two);
        assert_eq!(sums.iter().map(|cost| cost[0] + cost[1]).collect::<Vec<_>>(), [4, 4, 4]);
        assert_eq!(two.with(|set| (set == 0).then_some(0)), front(&[[0, 0]]));
        assert_eq!(two.plus(&Front::default()), Front::default());
    }
}

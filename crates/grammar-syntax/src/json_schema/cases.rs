//! Sets of values as unions, type by type.

use std::rc::Rc;

use super::arrays::ArraySet;
#[cfg(doc)]
use super::compile::Compiler;
use super::members::MemberCase;
use super::objects::{ObjectSet, Outline};
use super::{goals::Goals, numbers::NumberSet, strings::StringSet};

/// A union of sets of values, each of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cases {
    pub(super) null: bool,
    pub(super) truth: bool,
    pub(super) falsity: bool,
    pub(super) numbers: Vec<NumberSet>,
    pub(super) strings: Vec<StringSet>,
    pub(super) arrays: Vec<Rc<ArraySet>>,
    pub(super) objects: Vec<Rc<ObjectSet>>,
    /// Strings that are known by their slots alone.
    pub(super) members: Vec<MemberCase>,
}

impl Cases {
    /// No value.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Every value.
    pub(super) fn all() -> Self {
        Self {
            null: true,
            truth: true,
            falsity: true,
            numbers: vec![NumberSet::any()],
            strings: vec![StringSet::any()],
            arrays: vec![Rc::new(ArraySet::any())],
            objects: vec![Rc::new(ObjectSet::any())],
            members: Vec::new(),
        }
    }

    pub(super) fn numbers(numbers: Vec<NumberSet>) -> Self {
        Self { numbers, ..Self::none() }
    }

    pub(super) fn strings(strings: Vec<StringSet>) -> Self {
        Self { strings, ..Self::none() }
    }

    pub(super) fn array(array: ArraySet) -> Self {
        Self { arrays: vec![Rc::new(array)], ..Self::none() }
    }

    pub(super) fn object(object: ObjectSet) -> Self {
        Self { objects: vec![Rc::new(object)], ..Self::none() }
    }

    /// Number of sets that this is the union of.
    pub(super) fn len(&self) -> usize {
        [self.null, self.truth, self.falsity].iter().filter(|&&flag| flag).count()
            + self.numbers.len()
            + self.strings.len()
            + self.arrays.len()
            + self.objects.len()
            + self.members.len()
    }

    /// The values in either.
    pub(super) fn or(mut self, other: &Self) -> Self {
        self.null |= other.null;
        self.truth |= other.truth;
        self.falsity |= other.falsity;
        join(&mut self.numbers, &other.numbers, &NumberSet::any());
        join(&mut self.strings, &other.strings, &StringSet::any());
        join(&mut self.arrays, &other.arrays, &Rc::new(ArraySet::any()));
        join(&mut self.objects, &other.objects, &Rc::new(ObjectSet::any()));
        self.members.extend(&other.members);
        self.members.sort_unstable();
        self.members.dedup();
        if self.strings.contains(&StringSet::any()) {
            self.members.clear();
        }
        self
    }

    /// The values in both, but for strings that are known by their slots alone: see
    /// [`Compiler::meet_members`].
    ///
    /// Cost: the product of the numbers of sets of each type.
    pub(super) fn and(&self, other: &Self, goals: &mut Goals) -> Self {
        let any = Rc::new(ArraySet::any());
        let arrays =
            meet(&self.arrays, &other.arrays, &any, |a, b| a.intersection(b, goals).map(Rc::new));
        let any = Rc::new(ObjectSet::any());
        let objects =
            meet(&self.objects, &other.objects, &any, |a, b| a.intersection(b, goals).map(Rc::new));
        let meet_strings = |a: &StringSet, b: &StringSet| a.intersection(b);
        let meet_numbers = |a: &NumberSet, b: &NumberSet| a.intersection(b);
        Self {
            null: self.null && other.null,
            truth: self.truth && other.truth,
            falsity: self.falsity && other.falsity,
            numbers: meet(&self.numbers, &other.numbers, &NumberSet::any(), meet_numbers),
            strings: meet(&self.strings, &other.strings, &StringSet::any(), meet_strings),
            arrays,
            objects,
            members: Vec::new(),
        }
    }
}

/// `objects` less those that are plainly within another. Of the first `num_known` it is known that
/// none is within another of these, so that a union that grows by one is not compared with itself
/// each time.
pub(super) fn without_parts(
    objects: Vec<Rc<ObjectSet>>,
    num_known: usize,
    goals: &mut Goals,
) -> Vec<Rc<ObjectSet>> {
    let mut kept: Vec<(Outline, Rc<ObjectSet>)> = Vec::with_capacity(objects.len());
    for (object, place) in objects.into_iter().zip(0..) {
        let outline = object.outline();
        if place >= num_known {
            let is_in = |(other_outline, other): &(Outline, Rc<ObjectSet>), goals: &mut Goals| {
                outline.has_all(*other_outline) && object.is_within(other, goals)
            };
            if kept.iter().any(|other| is_in(other, goals)) {
                continue;
            }
            kept.retain(|(other_outline, other)| {
                !(other_outline.has_all(outline) && other.is_within(&object, goals))
            });
        }
        kept.push((outline, object));
    }
    kept.into_iter().map(|(_, object)| object).collect()
}

fn join<T: Clone + PartialEq>(into: &mut Vec<T>, more: &[T], any: &T) {
    for set in more {
        if into.contains(any) {
            return;
        }
        if set == any {
            into.clear();
        }
        if !into.contains(set) {
            into.push(set.clone());
        }
    }
}

fn meet<T: Clone + PartialEq>(
    one: &[T],
    other: &[T],
    any: &T,
    mut both: impl FnMut(&T, &T) -> Option<T>,
) -> Vec<T> {
    if one == std::slice::from_ref(any) {
        return other.to_vec();
    }
    if other == std::slice::from_ref(any) {
        return one.to_vec();
    }
    let mut met: Vec<T> = Vec::new();
    for a in one {
        for b in other {
            if let Some(set) = if a == b { Some(a.clone()) } else { both(a, b) }
                && !met.contains(&set)
            {
                met.push(set);
            }
        }
    }
    met
}

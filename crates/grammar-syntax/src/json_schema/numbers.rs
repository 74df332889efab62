//! Sets of numbers.

use std::collections::BTreeSet;

use super::{decimal::Decimal, number_intervals::Interval};

/// A set of numbers, by their values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum NumberSet {
    /// A finite set of numbers.
    OneOf(BTreeSet<Decimal>),
    /// Numbers for which all conditions hold; without any, every number.
    All(BTreeSet<Condition>),
}

/// A property of a number, or its opposite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Condition {
    pub(super) property: Property,
    pub(super) holds: bool,
}

/// Condition on a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Property {
    Integer,
    AtLeast(Decimal),
    Above(Decimal),
    /// Divisibility by a number above zero.
    MultipleOf(Decimal),
}

impl Property {
    pub(super) fn holds(&self, number: &Decimal) -> bool {
        match self {
            Self::Integer => number.is_integer(),
            Self::AtLeast(bound) => number >= bound,
            Self::Above(bound) => number > bound,
            Self::MultipleOf(divisor) => number.is_multiple_of(divisor),
        }
    }
}

impl NumberSet {
    pub(super) fn any() -> Self {
        Self::All(BTreeSet::new())
    }

    pub(super) fn one(number: Decimal) -> Self {
        Self::OneOf(BTreeSet::from([number]))
    }

    pub(super) fn with(property: Property, holds: bool) -> Self {
        Self::All(BTreeSet::from([Condition { property, holds }]))
    }

    /// True when a condition is that they are integers.
    pub(super) fn is_of_integers(&self) -> bool {
        let integer = Condition { property: Property::Integer, holds: true };
        matches!(self, Self::All(conditions) if conditions.contains(&integer))
    }

    /// True when every number of the set is known to be an integer.
    pub(super) fn has_integers_alone(&self) -> bool {
        match self {
            Self::OneOf(numbers) => numbers.iter().all(Decimal::is_integer),
            Self::All(_) => self.is_of_integers(),
        }
    }

    /// The numbers not in this set, as a union.
    pub(super) fn complement(&self) -> Vec<Self> {
        match self {
            Self::OneOf(numbers) => {
                // Below the first, between neighbours, above the last.
                let mut parts = Vec::new();
                let mut after: Option<&Decimal> = None;
                for number in numbers.iter().map(Some).chain([None]) {
                    let from = after.map(|after| (Property::Above(after.clone()), true));
                    let to = number.map(|number| (Property::AtLeast(number.clone()), false));
                    let conditions = from.into_iter().chain(to);
                    parts.push(Self::All(
                        conditions.map(|(property, holds)| Condition { property, holds }).collect(),
                    ));
                    after = number;
                }
                parts
            }
            Self::All(conditions) => conditions
                .iter()
                .map(|condition| Self::with(condition.property.clone(), !condition.holds))
                .collect(),
        }
    }

    /// The numbers in both; `None` when there is none.
    ///
    /// Cost: linear. Of a union of conditions only opposed ones and empty intervals are found to be
    /// empty.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::OneOf(numbers), set) | (set, Self::OneOf(numbers)) => {
                let kept: BTreeSet<_> =
                    numbers.iter().filter(|number| set.contains(number)).cloned().collect();
                (!kept.is_empty()).then_some(Self::OneOf(kept))
            }
            (Self::All(conditions), Self::All(others)) => {
                let all: BTreeSet<_> = conditions.union(others).cloned().collect();
                let opposed = all.iter().any(|condition| {
                    condition.holds
                        && all.contains(&Condition { holds: false, ..condition.clone() })
                });
                (!opposed && !Interval::of(&all).is_empty()).then_some(Self::All(all))
            }
        }
    }

    pub(super) fn contains(&self, number: &Decimal) -> bool {
        match self {
            Self::OneOf(numbers) => numbers.contains(number),
            Self::All(conditions) => conditions
                .iter()
                .all(|condition| condition.property.holds(number) == condition.holds),
        }
    }
}

/// Sets of conditions that are met by the same numbers, with fewer conditions; as literals when
/// there are at most `max_literals`. `None` when it is found that there are none.
pub(super) fn simplified(conditions: &BTreeSet<Condition>, max_literals: u64) -> Option<NumberSet> {
    let Some(divisors) = Divisors::new(conditions) else {
        return Some(NumberSet::All(conditions.clone()));
    };
    let divisors = divisors.reduced()?;
    let mut bounds: BTreeSet<Condition> = conditions
        .iter()
        .filter(|condition| matches!(condition.property, Property::AtLeast(_) | Property::Above(_)))
        .cloned()
        .collect();
    if let Some(literals) = divisors.enumerated(&bounds, max_literals) {
        return (!literals.is_empty()).then_some(NumberSet::OneOf(literals));
    }
    bounds.extend(divisors.conditions());
    Some(NumberSet::All(bounds))
}

/// Conditions on divisibility, all in units of `10^-places`.
struct Divisors {
    places: usize,
    /// The number is a multiple of this.
    of: Option<u64>,
    /// Numbers of which it is no multiple.
    none_of: BTreeSet<u64>,
}

impl Divisors {
    /// `None` when the numbers are too large to compute with.
    fn new(conditions: &BTreeSet<Condition>) -> Option<Self> {
        let one = Decimal::parse("1")?;
        let divisors: Vec<(&Decimal, bool)> = conditions
            .iter()
            .filter_map(|condition| match &condition.property {
                Property::Integer => Some((&one, condition.holds)),
                Property::MultipleOf(divisor) => Some((divisor, condition.holds)),
                _ => None,
            })
            .collect();
        let places =
            divisors.iter().map(|(divisor, _)| divisor.fraction_digits()).max().unwrap_or(0);
        let mut all = Self { places, of: None, none_of: BTreeSet::new() };
        for (divisor, holds) in divisors {
            let divisor = divisor.scaled(places)?;
            if !holds {
                all.none_of.insert(divisor);
                continue;
            }
            all.of = Some(match all.of {
                Some(known) => (known / common_divisor(known, divisor)).checked_mul(divisor)?,
                None => divisor,
            });
        }
        Some(all)
    }

    /// Without what follows from the rest; `None` when the conditions contradict each other.
    fn reduced(mut self) -> Option<Self> {
        if self.none_of.iter().any(|divisor| self.of.is_some_and(|of| of % divisor == 0)) {
            return None;
        }
        let all = self.none_of.clone();
        self.none_of
            .retain(|divisor| !all.iter().any(|other| other != divisor && divisor % other == 0));
        Some(self)
    }

    /// All numbers, when bounds leave at most `max`.
    fn enumerated(&self, bounds: &BTreeSet<Condition>, max: u64) -> Option<BTreeSet<Decimal>> {
        let of = i128::from(self.of?);
        let (mut low, mut high) = (None, None);
        for Condition { property, holds } in bounds {
            let (Property::AtLeast(bound) | Property::Above(bound)) = property else { continue };
            // Everything from the unit on that is not above the bound (or not below it) is tried,
            // and the conditions decide.
            let towards_zero = bound.floor_size(self.places)?;
            let units = match (holds, bound.negative) {
                (true, false) => towards_zero,
                (true, true) => -towards_zero - 1,
                (false, false) => towards_zero + 1,
                (false, true) => -towards_zero,
            };
            if *holds {
                low = low.max(Some(units));
            } else {
                high = Some(high.map_or(units, |known: i128| known.min(units)));
            }
        }
        let (first, last) = (low?.div_euclid(of), high?.div_euclid(of) + 1);
        if last - first > i128::from(max) + 2 {
            return None;
        }
        let mut numbers = BTreeSet::new();
        for times in first..=last {
            let number = Decimal::of_units(times * of, self.places);
            let divisible = |divisor: &u64| (times * of) % i128::from(*divisor) == 0;
            let bounded =
                bounds.iter().all(|condition| condition.property.holds(&number) == condition.holds);
            if bounded && !self.none_of.iter().any(divisible) {
                numbers.insert(number);
            }
        }
        Some(numbers)
    }

    fn conditions(&self) -> Vec<Condition> {
        let divisor = |units: u64, holds: bool| {
            let divisor = Decimal::of_units(units.into(), self.places);
            let whole = Decimal::parse("1").as_ref() == Some(&divisor);
            let property = if whole { Property::Integer } else { Property::MultipleOf(divisor) };
            Condition { property, holds }
        };
        let of = self.of.map(|of| divisor(of, true));
        of.into_iter().chain(self.none_of.iter().map(|&units| divisor(units, false))).collect()
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

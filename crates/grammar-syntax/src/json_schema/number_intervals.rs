//! Intervals of decimal numbers as regular expressions, in which a count stands for a run of
//! digits.
//!
//! A bound is compared digit by digit: what is greater has more digits before the point, or a
//! greater digit after the same ones. The size of the expression grows with the digits of the bound
//! that are not zeros around the others, not with its exponent.

use std::collections::BTreeSet;

use super::{
    decimal::Decimal,
    numbers::{Condition, Property},
};
use crate::{CharClass, Regex};

/// Spellings of numbers, apart from their sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Notation {
    /// True when there may be an exponent, after one digit before the point that is not zero.
    pub(super) exponents: bool,
    pub(super) fraction: Fraction,
    /// Digits before the point at most, where they are limited: no fewer than a bound has.
    pub(super) most_digits: Option<u32>,
}

/// Expression of what may come after the digits before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fraction {
    Nothing,
    /// A point and zeros, or nothing.
    Zeros,
    /// A point and digits, or nothing.
    Digits,
}

/// Numbers between two bounds, of which each may be missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    low: Option<Bound>,
    high: Option<Bound>,
}

#[derive(Clone, Debug)]
struct Bound {
    at: Decimal,
    /// True when the bound is in the interval.
    within: bool,
}

impl Interval {
    /// The numbers that meet those of the conditions that compare.
    pub(super) fn of(conditions: &BTreeSet<Condition>) -> Self {
        let mut all = Self::default();
        for Condition { property, holds } in conditions {
            let (at, above) = match property {
                Property::AtLeast(at) => (at, false),
                Property::Above(at) => (at, true),
                Property::Integer | Property::MultipleOf(_) => continue,
            };
            let bound = Bound { at: at.clone(), within: above != *holds };
            let stricter = |other: &Bound, tighter| {
                bound.at.cmp(&other.at) == tighter || (bound.at == other.at && !bound.within)
            };
            let (side, tighter) = match holds {
                true => (&mut all.low, std::cmp::Ordering::Greater),
                false => (&mut all.high, std::cmp::Ordering::Less),
            };
            if side.as_ref().is_none_or(|other| stricter(other, tighter)) {
                *side = Some(bound);
            }
        }
        all
    }

    /// True when it has no bounds.
    pub(super) fn is_all(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    /// True when it is plain that no number is in it.
    pub(super) fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) => {
                low.at > high.at || (low.at == high.at && !(low.within && high.within))
            }
            _ => false,
        }
    }

    /// The texts of its numbers.
    pub(super) fn regex(&self, notation: Notation) -> Regex {
        if self.is_all() {
            return Regex::concat([Regex::literal("-").optional(), notation.any()]);
        }
        let negative = self.mirrored().sizes(notation);
        Regex::alternate([Regex::concat([Regex::literal("-"), negative]), self.sizes(notation)])
    }

    /// The negatives of its numbers.
    fn mirrored(&self) -> Self {
        let turned = |bound: &Bound| Bound { at: bound.at.negated(), within: bound.within };
        Self { low: self.high.as_ref().map(turned), high: self.low.as_ref().map(turned) }
    }

    /// The numbers of the interval that are not below zero.
    fn sizes(&self, notation: Notation) -> Regex {
        let outside = |high: &Bound| high.at.negative || (high.at.is_zero() && !high.within);
        if self.is_empty() || self.high.as_ref().is_some_and(outside) {
            return Regex::Never;
        }
        let says = |low: &&Bound| !(low.at.negative || low.at.is_zero() && low.within);
        let low = self.low.as_ref().filter(says).map(|low| notation.at_least(low));
        let high = self.high.as_ref().map(|high| notation.at_most(high));
        match (low, high) {
            (None, None) => notation.any(),
            (Some(one), None) | (None, Some(one)) => one,
            (Some(low), Some(high)) => Regex::and([low, high]),
        }
    }
}

impl Notation {
    /// Zero without its sign.
    pub(super) fn zero(self) -> Regex {
        Regex::concat([run(1), self.fraction.zeros()])
    }

    /// A digit that is not zero, and so many digits or more.
    fn first_then_more(self, min: u32) -> Regex {
        let max = self.most_digits.map(|most| most.saturating_sub(1).max(min));
        first_then(digits(min, max))
    }

    /// Any number that is not below zero.
    fn any(self) -> Regex {
        let whole = Regex::alternate([run(1), self.first_then_more(0)]);
        let plain = Regex::concat([whole, self.fraction.any()]);
        Regex::alternate([plain, self.scientific(any_mantissa(), any_exponent())])
    }

    fn scientific(self, mantissa: Regex, exponent: Regex) -> Regex {
        if !self.exponents {
            return Regex::Never;
        }
        Regex::concat([mantissa, class(&[('e', 'e'), ('E', 'E')]), exponent])
    }

    /// Sizes up to a bound that is not below zero.
    fn at_most(self, bound: &Bound) -> Regex {
        let Some((first, after)) = bound.at.digits.split_first() else { return self.zero() };
        let parts = Parts::of(&bound.at);
        let mut options = vec![match parts.length {
            0 => Regex::concat([run(1), self.fraction.below(parts.fraction(), bound.within)]),
            _ => Regex::concat([run(1), self.fraction.any()]),
        }];
        if parts.length >= 2 {
            let shorter = first_then(digits(0, Some(parts.length - 2)));
            options.push(Regex::concat([shorter, self.fraction.any()]));
        }
        options.extend(lesser(parts.whole, parts.length, '1').map(|(before, digit, left)| {
            Regex::concat([before, digit, digits(left, Some(left)), self.fraction.any()])
        }));
        if parts.length > 0 {
            let rest = self.fraction.below(parts.fraction(), bound.within);
            options.push(Regex::concat([text(parts.whole), run(parts.zeros_before), rest]));
        }
        let exponent = bound.at.exponent - 1;
        let mantissa = Regex::alternate([
            Regex::concat([class(&digits_below('1', *first)), Fraction::Digits.any()]),
            Regex::concat([text(&[*first]), Fraction::Digits.below((0, after), bound.within)]),
        ]);
        options.push(self.scientific(any_mantissa(), exponent_below(exponent)));
        options.push(self.scientific(mantissa, this_exponent(exponent)));
        Regex::alternate(options)
    }

    /// Sizes from a bound on that is not below zero.
    fn at_least(self, bound: &Bound) -> Regex {
        let Some((first, after)) = bound.at.digits.split_first() else { return self.not_zero() };
        let parts = Parts::of(&bound.at);
        let longer = self.first_then_more(parts.length);
        let mut options = vec![Regex::concat([longer, self.fraction.any()])];
        options.extend(greater(parts.whole, parts.length).map(|(before, digit, left)| {
            Regex::concat([before, digit, digits(left, Some(left)), self.fraction.any()])
        }));
        let whole = if parts.length == 0 { run(1) } else { text(parts.whole) };
        if parts.zeros_before == 0 || !bound.within {
            let rest = self.fraction.above(parts.fraction(), bound.within);
            options.push(Regex::concat([whole.clone(), run(parts.zeros_before), rest]));
        }
        if parts.zeros_before > 0 {
            let any = digits(parts.zeros_before, Some(parts.zeros_before));
            let not_less = match bound.within {
                true => any,
                false => Regex::and([any, Regex::complement(run(parts.zeros_before))]),
            };
            options.push(Regex::concat([whole, not_less, self.fraction.any()]));
        }
        let exponent = bound.at.exponent - 1;
        let mantissa = Regex::alternate([
            Regex::concat([class(&digits_above(*first)), Fraction::Digits.any()]),
            Regex::concat([text(&[*first]), Fraction::Digits.above((0, after), bound.within)]),
        ]);
        options.push(self.scientific(any_mantissa(), exponent_above(exponent)));
        options.push(self.scientific(mantissa, this_exponent(exponent)));
        Regex::alternate(options)
    }

    fn not_zero(self) -> Regex {
        Regex::alternate([
            Regex::concat([self.first_then_more(0), self.fraction.any()]),
            Regex::concat([run(1), self.fraction.above((0, &[]), false)]),
            self.scientific(any_mantissa(), any_exponent()),
        ])
    }
}

/// A size without its exponent: digits before the point, zeros around it, digits after.
struct Parts<'a> {
    /// Number of digits before the point; none where that is a zero alone.
    length: u32,
    /// Digits without the zeros at their end.
    whole: &'a [u8],
    zeros_before: u32,
    zeros_after: u32,
    after: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(size: &'a Decimal) -> Self {
        let length = count(size.exponent);
        let (whole, after) = size.digits.split_at(size.digits.len().min(length as usize));
        let zeros_before = length - whole.len() as u32;
        Self { length, whole, zeros_before, zeros_after: count(-size.exponent), after }
    }

    fn fraction(&self) -> (u32, &'a [u8]) {
        (self.zeros_after, self.after)
    }
}

impl Fraction {
    /// Anything that may come.
    fn any(self) -> Regex {
        match self {
            Self::Digits => Regex::concat([Regex::literal("."), digits(1, None)]).optional(),
            Self::Zeros | Self::Nothing => self.zeros(),
        }
    }

    /// Expression of what may come after a number that is whole.
    pub(super) fn integral(self) -> Self {
        if self == Self::Digits { Self::Zeros } else { self }
    }

    /// Keywords that change no value.
    pub(super) fn zeros(self) -> Regex {
        match self {
            Self::Nothing => Regex::Empty,
            _ => Regex::concat([Regex::literal("."), zeros(1, None)]).optional(),
        }
    }

    /// Fractions below `0.00…digits` with so many zeros, or (if `within`) the same.
    pub(super) fn below(self, (count, digits_of): (u32, &[u8]), within: bool) -> Regex {
        if digits_of.is_empty() {
            return if within { self.zeros() } else { Regex::Never };
        }
        if self != Self::Digits {
            return self.zeros();
        }
        let lesser = lesser(digits_of, digits_of.len() as u32, '0')
            .map(|(before, digit, _)| Regex::concat([before, digit, digits(0, None)]));
        let shorter = (1..digits_of.len()).map(|end| text(&digits_of[..end]));
        let same = within.then(|| Regex::concat([text(digits_of), zeros(0, None)]));
        let after = Regex::alternate(lesser.chain(shorter).chain(same));
        let fewer = if count > 0 { zeros(1, Some(count)) } else { Regex::Never };
        let after = Regex::alternate([fewer, Regex::concat([run(count), after])]);
        Regex::concat([Regex::literal("."), after]).optional()
    }

    /// Fractions above `0.00…digits` with so many zeros, or (if `within`) the same.
    fn above(self, (count, digits_of): (u32, &[u8]), within: bool) -> Regex {
        if self != Self::Digits {
            let same = within && digits_of.is_empty();
            return if same { self.zeros() } else { Regex::Never };
        }
        if within && digits_of.is_empty() {
            return self.any();
        }
        let sooner = match count {
            0 => Regex::Never,
            _ => Regex::concat([zeros(0, Some(count - 1)), first_then(digits(0, None))]),
        };
        let greater = greater(digits_of, digits_of.len() as u32)
            .map(|(before, digit, _)| Regex::concat([before, digit, digits(0, None)]));
        let longer = Regex::concat([zeros(0, None), first_then(digits(0, None))]);
        let same = if within { digits(0, None) } else { longer };
        let same = Regex::concat([text(digits_of), same]);
        let after = Regex::concat([run(count), Regex::alternate(greater.chain([same]))]);
        Regex::concat([Regex::literal("."), Regex::alternate([sooner, after])])
    }
}

/// Exponents from `least` on.
pub(super) fn exponent_at_least(least: i64) -> Regex {
    exponent_above(least - 1)
}

fn any_mantissa() -> Regex {
    Regex::concat([first_then(Regex::Empty), Fraction::Digits.any()])
}

fn any_exponent() -> Regex {
    Regex::concat([class(&[('+', '+'), ('-', '-')]).optional(), digits(1, None)])
}

/// Every spelling of an exponent.
pub(super) fn this_exponent(exponent: i64) -> Regex {
    let sign = match exponent {
        0 => class(&[('+', '+'), ('-', '-')]).optional(),
        1.. => Regex::literal("+").optional(),
        _ => Regex::literal("-"),
    };
    Regex::concat([sign, zeros(0, None), Regex::literal(&exponent.unsigned_abs().to_string())])
}

fn exponent_below(bound: i64) -> Regex {
    let size = digits_of(bound.unsigned_abs());
    let signed = |sign: Regex, size| Regex::concat([sign, size]);
    match bound {
        ..=0 => signed(Regex::literal("-"), whole_above(&size)),
        _ => Regex::alternate([
            signed(Regex::literal("-"), digits(1, None)),
            signed(Regex::literal("+").optional(), whole_below(&size)),
        ]),
    }
}

fn exponent_above(bound: i64) -> Regex {
    let size = digits_of(bound.unsigned_abs());
    let signed = |sign: Regex, size| Regex::concat([sign, size]);
    match bound {
        0.. => signed(Regex::literal("+").optional(), whole_above(&size)),
        _ => Regex::alternate([
            signed(Regex::literal("+").optional(), digits(1, None)),
            signed(Regex::literal("-"), whole_below(&size)),
        ]),
    }
}

/// Whole numbers below another, which is above zero; zeros may precede them.
fn whole_below(bound: &[u8]) -> Regex {
    let length = bound.len() as u32;
    let shorter = if length > 1 { digits(1, Some(length - 1)) } else { Regex::Never };
    let same_length = lesser(bound, length, '0')
        .map(|(before, digit, left)| Regex::concat([before, digit, digits(left, Some(left))]));
    Regex::concat([zeros(0, None), Regex::alternate([shorter].into_iter().chain(same_length))])
}

/// Whole numbers above another; zeros may precede them.
fn whole_above(bound: &[u8]) -> Regex {
    let length = bound.len() as u32;
    let longer = first_then(digits(length, None));
    let same_length = greater(bound, length)
        .map(|(before, digit, left)| Regex::concat([before, digit, digits(left, Some(left))]));
    Regex::concat([zeros(0, None), Regex::alternate([longer].into_iter().chain(same_length))])
}

/// Numbers with the digits of `bound` and then a lesser one, `first` at the least where it comes
/// first; with how many of `length` digits are left.
fn lesser(bound: &[u8], length: u32, first: char) -> impl Iterator<Item = (Regex, Regex, u32)> {
    bound.iter().enumerate().filter_map(move |(at, &digit)| {
        let classes = digits_below(if at == 0 { first } else { '0' }, digit);
        let left = length - at as u32 - 1;
        (!classes.is_empty()).then(|| (text(&bound[..at]), class(&classes), left))
    })
}

/// Numbers with the digits of `bound` and then a greater one.
fn greater(bound: &[u8], length: u32) -> impl Iterator<Item = (Regex, Regex, u32)> {
    bound.iter().enumerate().filter_map(move |(at, &digit)| {
        let classes = digits_above(digit);
        let left = length - at as u32 - 1;
        (!classes.is_empty()).then(|| (text(&bound[..at]), class(&classes), left))
    })
}

fn digits_below(first: char, digit: u8) -> Vec<(char, char)> {
    let last = (b'0' + digit).wrapping_sub(1) as char;
    if last < first { Vec::new() } else { vec![(first, last)] }
}

fn digits_above(digit: u8) -> Vec<(char, char)> {
    if digit == 9 { Vec::new() } else { vec![((b'1' + digit) as char, '9')] }
}

fn digits_of(number: u64) -> Vec<u8> {
    number.to_string().bytes().map(|digit| digit - b'0').collect()
}

/// A digit that is not zero, then `rest`.
pub(super) fn first_then(rest: Regex) -> Regex {
    Regex::concat([class(&[('1', '9')]), rest])
}

pub(super) fn digits(min: u32, max: Option<u32>) -> Regex {
    class(&[('0', '9')]).repeat(min, max)
}

pub(super) fn zeros(min: u32, max: Option<u32>) -> Regex {
    Regex::literal("0").repeat(min, max)
}

/// A run of so many zeros.
pub(super) fn run(count: u32) -> Regex {
    zeros(count, Some(count))
}

/// The literal text of digits.
pub(super) fn text(digits: &[u8]) -> Regex {
    let text: String = digits.iter().map(|digit| (b'0' + digit) as char).collect();
    Regex::literal(&text)
}

fn class(ranges: &[(char, char)]) -> Regex {
    match ranges {
        [] => Regex::Never,
        _ => Regex::Class(CharClass::new(ranges.iter().copied())),
    }
}

fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

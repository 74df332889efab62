//! Spellings of numbers as regular expressions. A set without conditions has every spelling of
//! JSON.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    decimal::Decimal,
    number_intervals::{
        Fraction, Interval, Notation, digits, exponent_at_least, first_then, run, text,
        this_exponent, zeros,
    },
    number_lengths::Room,
    numbers::{Condition, Property},
};
use crate::{CharClass, Multiple, Regex};

/// Numbers that need more zeros before or after their digits are spelled with an exponent only.
pub(super) const MAX_ZEROS: i64 = 400;

/// The spellings of one number; with an exponent only if `exponents`.
pub(super) fn literal(number: &Decimal, fractions: bool, exponents: bool) -> Regex {
    let sign = match (number.is_zero(), number.negative) {
        (true, _) => Regex::literal("-").optional(),
        (false, true) => Regex::literal("-"),
        (false, false) => Regex::Empty,
    };
    let scientific = if exponents { scientific(number) } else { Regex::Never };
    Regex::concat([sign, Regex::alternate([plain(number, fractions), scientific])])
}

/// The spellings of a number's size without an exponent.
fn plain(number: &Decimal, fractions: bool) -> Regex {
    let (length, significant) = (number.exponent, number.digits.len() as i64);
    if length - significant > MAX_ZEROS || length < -MAX_ZEROS {
        return Regex::Never;
    }
    let (whole, fraction) = number.digits.split_at(length.clamp(0, significant) as usize);
    let before = match length {
        ..=0 => run(1),
        _ => Regex::concat([text(whole), run((length - whole.len() as i64) as u32)]),
    };
    let after = match (fraction, fractions) {
        ([], true) => Fraction::Zeros.zeros(),
        ([], false) => Regex::Empty,
        _ => {
            let zeros_before = run((-length).max(0) as u32);
            Regex::concat([Regex::literal("."), zeros_before, text(fraction), zeros(0, None)])
        }
    };
    Regex::concat([before, after])
}

/// The spellings of a number's size with an exponent after one digit before the point that is not
/// zero.
fn scientific(number: &Decimal) -> Regex {
    let Some((&first, rest)) = number.digits.split_first() else { return Regex::Never };
    let fraction = match rest {
        [] => Fraction::Zeros.zeros(),
        _ => Regex::concat([Regex::literal("."), text(rest), zeros(0, None)]),
    };
    let exponent = this_exponent(number.exponent - 1);
    Regex::concat([text(&[first]), fraction, exponent_mark(), exponent])
}

/// The integers from `low` to `high`, both included, in digits: no point, no exponent, no `-0`.
pub(crate) fn integers_between(low: i64, high: i64) -> Regex {
    let bound = |at: i64| Decimal::of_units(at.into(), 0);
    let conditions = BTreeSet::from([
        Condition { property: Property::AtLeast(bound(low)), holds: true },
        Condition { property: Property::Above(bound(high)), holds: false },
    ]);
    let notation = Notation { exponents: false, fraction: Fraction::Nothing, most_digits: None };
    Regex::and([Interval::of(&conditions).regex(notation), Regex::complement(Regex::literal("-0"))])
}

/// The numbers under conditions, for which an automaton or an interval can tell the value of a
/// text.
///
/// Without an exponent, or with one after a single digit before the point that is not zero
/// (`1.25e-7`); where it matters by what a number can be divided, without (but where that has more
/// than [`MAX_ZEROS`] zeros).
///
/// Whole numbers between bounds, and multiples of one, have as many digits as there is `room` for.
pub(super) fn numbers(
    conditions: &BTreeSet<Condition>,
    fractions: bool,
    room: Option<Room>,
) -> Regex {
    let divisors: Vec<(&Decimal, bool)> = conditions
        .iter()
        .filter_map(|Condition { property, holds }| match property {
            Property::MultipleOf(divisor) => Some((divisor, *holds)),
            _ => None,
        })
        .collect();
    let integer = |holds| conditions.contains(&Condition { property: Property::Integer, holds });
    let whole = integer(true) || divisors.iter().any(|(of, holds)| *holds && of.is_integer());
    let huge = divisors.iter().any(|(of, holds)| *holds && is_huge(of));
    let divided = !divisors.is_empty() || integer(true) || integer(false);
    // Whole numbers meet their conditions by their digits alone: a point and zeros are put after
    // them all.
    let zeros_after = whole && !huge && fractions;
    let fraction = match whole {
        false => Fraction::Digits,
        true if fractions && !zeros_after => Fraction::Zeros,
        true => Fraction::Nothing,
    };
    // Of several no automaton tells which digits can still become a multiple of all.
    let is_counted = divisors.iter().filter(|(_, holds)| *holds).count() == 1;
    let is_between = is_between_bounds(conditions);
    let room = room.filter(|_| is_counted || is_between);
    let most_digits = room.filter(|_| is_between).map(|room| room.whole);
    let notation = Notation { exponents: !divided || huge, fraction, most_digits };
    let interval = Interval::of(conditions);
    let mut parts = Vec::new();
    for &(divisor, holds) in &divisors {
        parts.push(match holds {
            true if is_huge(divisor) => huge_multiples(divisor, notation),
            true => multiples(divisor, notation, room),
            false => Regex::complement(multiples(divisor, notation, None)),
        });
    }
    if integer(false) {
        parts.push(Regex::complement(any_integer(true)));
    }
    let says_all = interval.is_all()
        && divisors.iter().any(|(of, holds)| *holds && (of.is_integer() || !integer(true)));
    if !says_all {
        parts.insert(0, interval.regex(notation));
    }
    let zeros_after = match (zeros_after, room) {
        (false, _) => Regex::Empty,
        (true, None) => Fraction::Zeros.zeros(),
        (true, Some(Room { fraction, .. })) => {
            Regex::concat([Regex::literal("."), zeros(1, Some(fraction))]).optional()
        }
    };
    Regex::concat([Regex::and(parts), zeros_after])
}

/// True where all integers between two bounds are asked for, or on one side of one.
pub(super) fn is_between_bounds(conditions: &BTreeSet<Condition>) -> bool {
    let says = |condition: &Condition| match condition.property {
        Property::Integer => condition.holds,
        Property::AtLeast(_) | Property::Above(_) => true,
        Property::MultipleOf(_) => false,
    };
    let integer = Condition { property: Property::Integer, holds: true };
    conditions.contains(&integer) && conditions.iter().all(says)
}

fn is_huge(divisor: &Decimal) -> bool {
    divisor.exponent - divisor.digits.len() as i64 > MAX_ZEROS
}

/// The multiples of a number above zero of which [`Decimal::factors`] knows the factors.
fn multiples(divisor: &Decimal, notation: Notation, room: Option<Room>) -> Regex {
    let Some((factor, tens)) = divisor.factors() else { return Regex::Never };
    let sizes = if tens < 0 {
        let places = u32::try_from(-tens).ok();
        let small = Multiple::of(factor, places).after(b'.').map_or(Regex::Never, Regex::Multiple);
        let small = Regex::concat([Regex::literal("0."), small]);
        Regex::alternate([run(1), small, after_first_digit(Multiple::of(factor, places), None)])
    } else {
        // As many zeros as fit are part of the automaton, which tells ends apart sooner than
        // counting them does.
        let (mut factor, mut left) = (factor, tens as u32);
        while let (1.., Some(more)) = (left, factor.checked_mul(10)) {
            (factor, left) = (more, left - 1);
        }
        let most = room.map(|room| room.whole.saturating_sub(left).max(1));
        let whole = after_first_digit(Multiple::of(factor, None), most);
        let zeros = notation.fraction.integral().zeros();
        Regex::alternate([notation.zero(), Regex::concat([whole, run(left), zeros])])
    };
    Regex::concat([Regex::literal("-").optional(), sizes])
}

/// The texts of multiples that do not begin with a zero, with so many digits at most.
fn after_first_digit(of: Multiple, most: Option<u32>) -> Regex {
    let first = |digit: u8| {
        let rest = Regex::Multiple(of.after(digit)?);
        let rest = match most {
            Some(most) => Regex::and([rest, digits(0, Some(most - 1))]),
            None => rest,
        };
        Some(Regex::concat([Regex::literal(&(digit as char).to_string()), rest]))
    };
    Regex::alternate((b'1'..=b'9').filter_map(first))
}

/// The multiples of a number with many zeros: zero, and with an exponent up to [`MAX_TIMES`] times
/// its digits, where as many zeros are left.
fn huge_multiples(divisor: &Decimal, notation: Notation) -> Regex {
    let Some((factor, tens)) = divisor.factors() else { return Regex::Never };
    // By how many digits are after the point.
    let mut mantissas = BTreeMap::<usize, Vec<Regex>>::new();
    for times in 1..=MAX_TIMES {
        let digits = (u128::from(factor) * times).to_string();
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let mantissa = Regex::literal(&format!("{first}{point}{rest}"));
        mantissas.entry(rest.len()).or_default().push(mantissa);
    }
    let with = |(places, mantissas): (usize, Vec<Regex>)| {
        let exponent = exponent_at_least(tens + places as i64);
        Regex::concat([Regex::alternate(mantissas), exponent_mark(), exponent])
    };
    let sizes = mantissas.into_iter().map(with).chain([notation.zero()]);
    Regex::concat([Regex::literal("-").optional(), Regex::alternate(sizes)])
}

/// Limit on the multiples that are spelled of a number with more zeros than [`MAX_ZEROS`], each
/// times any power of ten.
const MAX_TIMES: u128 = 999;

fn exponent_mark() -> Regex {
    Regex::Class(CharClass::new([('e', 'e'), ('E', 'E')]))
}

/// Integers with an exponent that is plainly not less than the number of digits, as floating-point
/// numbers from 10^16 on are printed; only where nothing but an integer is asked for.
pub(super) fn large_integers(set: &BTreeSet<Condition>) -> Option<Regex> {
    let integer = Condition { property: Property::Integer, holds: true };
    if set.len() != 1 || !set.contains(&integer) {
        return None;
    }
    let fraction = Regex::concat([Regex::literal("."), digits(1, Some(16))]);
    Some(Regex::concat([
        Regex::literal("-").optional(),
        first_then(fraction.optional()),
        exponent_mark(),
        exponent_at_least(16),
    ]))
}

/// Whole numbers without an exponent.
pub(super) fn any_integer(fractions: bool) -> Regex {
    let fraction = if fractions { Fraction::Zeros } else { Fraction::Nothing };
    Interval::default().regex(Notation { exponents: false, fraction, most_digits: None })
}

/// Every spelling of every number.
pub(super) fn any_number() -> Regex {
    let digit = || Regex::Class(CharClass::new([('0', '9')]));
    let symbols = |symbols: &str| {
        Regex::Class(CharClass::new(symbols.chars().map(|symbol| (symbol, symbol))))
    };
    let positive = [Regex::Class(CharClass::new([('1', '9')])), digit().repeat(0, None)];
    let whole = Regex::alternate([Regex::literal("0"), Regex::concat(positive)]);
    let fraction = Regex::concat([Regex::literal("."), digit().repeat(1, None)]);
    let exponent =
        Regex::concat([symbols("eE"), symbols("+-").optional(), digit().repeat(1, None)]);
    let parts = [symbols("-").optional(), whole, fraction.optional(), exponent.optional()];
    Regex::concat(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            matching::matches,
            numbers::{NumberSet, simplified},
        },
        *,
    };

    /// Spellings of numbers, and some texts that are none.
    fn spelling() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?",
            "-?[1-9](\\.[0-9]{1,2})?[eE][+-]?0?[0-4]",
            "-?(1|12|120|9|99|1000)(\\.(0|95|9|07|5|50))?",
            "-?[0-9]{0,2}\\.?[0-9]?e?",
        ]
    }

    proptest! {
        #[test]
        fn literals_are_spelled_in_every_way(value in spelling(), texts in prop::collection::vec(spelling(), 40)) {
            let Some(number) = matches(&any_number(), &value).then(|| Decimal::parse(&value)).flatten() else {
                return Ok(());
            };
            let regex = literal(&number, true, true);
            for text in texts.iter().chain([&value]) {
                let other = matches(&any_number(), text).then(|| Decimal::parse(text)).flatten();
                let spelled = other.as_ref() == Some(&number) && is_normal(text);
                prop_assert_eq!(matches(&regex, text), spelled, "{} {}", value, text);
            }
        }

        #[test]
        fn numbers_are_spelled_by_their_values(
            conditions in prop::collection::btree_set(condition(), 1..4),
            texts in prop::collection::vec(spelling(), 40),
        ) {
            let regex = numbers(&conditions, true, None);
            let simple = simplified(&conditions, 50);
            let simple_regex = simple.as_ref().map(|simple| match simple {
                NumberSet::OneOf(numbers) => {
                    Regex::alternate(numbers.iter().map(|number| literal(number, true, false)))
                }
                NumberSet::All(conditions) => super::numbers(conditions, true, None),
            });
            for text in texts {
                let number = matches(&any_number(), &text).then(|| Decimal::parse(&text)).flatten();
                let holds = number.as_ref().is_some_and(|number| {
                    conditions.iter().all(|condition| condition.property.holds(number) == condition.holds)
                });
                if let Some(number) = &number {
                    let simple = simple.as_ref().is_some_and(|simple| simple.contains(number));
                    prop_assert_eq!(simple, holds, "{} simplified", text);
                }
                let divided = conditions.iter().any(|condition| {
                    matches!(condition.property, Property::Integer | Property::MultipleOf(_))
                });
                let spelled = holds && is_normal(&text) && (!divided || !text.contains(['e', 'E']));
                prop_assert_eq!(matches(&regex, &text), spelled, "{}", text);
                let simple = simple_regex.as_ref().is_some_and(|regex| matches(regex, &text));
                prop_assert_eq!(simple, spelled, "{} simplified", text);
            }
        }
    }

    /// True when a digit that is not zero is alone before the point where there is an exponent.
    fn is_normal(text: &str) -> bool {
        let mantissa = text.trim_start_matches('-').split(['e', 'E']).next().unwrap_or("");
        let single = !matches!(mantissa.as_bytes(), [_, b'0'..=b'9', ..]);
        !text.contains(['e', 'E']) || single && !mantissa.starts_with('0')
    }

    fn condition() -> impl Strategy<Value = Condition> {
        let bound = prop::sample::select(vec![
            "0", "1", "-1", "12", "-120", "0.5", "9.95", "-0.07", "1e3", "1e-3", "100", "1000.01",
            "-20", "99.9",
        ]);
        let divisor = prop::sample::select(vec![
            "1", "2", "3", "0.5", "0.05", "12", "2.5", "0.125", "7", "100", "0.001",
        ]);
        let bound = bound.prop_map(|text| Decimal::parse(text).expect("a number"));
        let divisor = divisor.prop_map(|text| Decimal::parse(text).expect("a number"));
        let property = prop_oneof![
            bound.clone().prop_map(Property::AtLeast),
            bound.prop_map(Property::Above),
            divisor.prop_map(Property::MultipleOf),
            Just(Property::Integer),
        ];
        (property, any::<bool>()).prop_map(|(property, holds)| Condition { property, holds })
    }

    #[test]
    fn numbers_far_from_one_are_compared_and_divided() {
        let with = |property, holds| BTreeSet::from([Condition { property, holds }]);
        let decimal = |text| Decimal::parse(text).expect("a number");
        let far = numbers(&with(Property::AtLeast(decimal("1.5e2000000000")), true), true, None);
        let near = numbers(&with(Property::Above(decimal("1e-2000000000")), false), true, None);
        let divided =
            numbers(&with(Property::MultipleOf(decimal("3e2000000000")), true), true, None);
        let parts =
            numbers(&with(Property::MultipleOf(decimal("1e-2000000000")), true), true, None);
        for (text, expected) in [
            ("1.5e2000000000", [true, false, false, true]),
            ("1.2e2000000001", [true, false, true, true]),
            ("1.49e2000000000", [false, false, false, true]),
            ("3e+2000000000", [true, false, true, true]),
            ("1e-2000000000", [false, true, false, true]),
            ("9e-2000000001", [false, true, false, true]),
            ("1.1e-2000000000", [false, false, false, true]),
            ("-3e2000000001", [false, true, true, true]),
            ("0.00", [false, true, true, true]),
            ("12.5", [false, false, false, true]),
        ] {
            let numbers = [&far, &near, &divided, &parts];
            for (at, (regex, expected)) in numbers.into_iter().zip(expected).enumerate() {
                // What is divided has no exponent unless it must.
                let expected = expected && !(at == 3 && text.contains('e'));
                assert_eq!(matches(regex, text), expected, "{text} {at}");
            }
        }
    }
}

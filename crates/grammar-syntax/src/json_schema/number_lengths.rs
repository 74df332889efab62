//! Lengths of numbers: what a text of JSON may have of digits and of an exponent, so that a model
//! cannot go on writing them.

use super::decimal::Decimal;
use super::number_intervals::{Fraction, digits, first_then, zeros};
use super::number_text::MAX_ZEROS;
use super::numbers::{NumberSet, Property};
use super::options::Digits;
use crate::{CharClass, Regex};

/// Exponents of the largest and of the smallest double that are told apart from infinity and zero.
const MAX_EXPONENT: i64 = 300;

/// Zeros after the point of an integer; with an exponent there may be as many digits.
const MAX_ZEROS_AFTER: u32 = 20;

/// Remainders that are told apart beside a count of digits. Of more, an automaton counts the digits
/// of whole numbers itself.
const MAX_REMAINDERS: u64 = 1_000;

/// Remainders that are told apart where digits after the point count: a search may go through all
/// of them.
const MAX_REMAINDERS_OF_FRACTIONS: u64 = 20_000;

/// Room for the digits of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Digits before the point.
    pub(super) whole: u32,
    /// Digits after it.
    pub(super) fraction: u32,
    /// True when exponents beyond those of doubles are asked for.
    is_far: bool,
}

/// The room for the numbers of JSON that readers take for what they are, and for those that `sets`
/// ask for beyond.
///
/// Up to [`Digits::MAX_DIGITS`] digits before the point and as many after it; a number with an
/// exponent is one of a double, neither infinity nor zero. A schema whose bounds or divisors have
/// more digits has room for them and half as many again.
pub(super) fn room<'n>(sets: impl IntoIterator<Item = &'n NumberSet> + Clone) -> Room {
    let (mut whole, mut fraction, mut is_far) = (0, 0, false);
    let is_integral = |set: &NumberSet| match set {
        NumberSet::OneOf(numbers) => numbers.iter().all(Decimal::is_integer),
        NumberSet::All(_) => set.is_of_integers(),
    };
    let zeros_alone = sets.clone().into_iter().all(is_integral);
    let mut longest = |numbers: &mut dyn Iterator<Item = &Decimal>, add: bool| {
        let (mut before, mut after) = (0_i64, 0_i64);
        for number in numbers {
            let (length, places) = digits_around_point(number);
            is_far |= !number.is_zero() && number.exponent.abs() > MAX_EXPONENT;
            match add {
                true => (before, after) = (before + length, after + places),
                false => (before, after) = (before.max(length), after.max(places)),
            }
        }
        (whole, fraction) = (whole.max(before), fraction.max(after));
    };
    for set in sets {
        match set {
            NumberSet::OneOf(numbers) => longest(&mut numbers.iter(), false),
            // A number that is divided by several has the digits of all of them.
            NumberSet::All(conditions) => {
                let numbers = conditions.iter().filter_map(|condition| match &condition.property {
                    Property::Integer => None,
                    Property::AtLeast(number)
                    | Property::Above(number)
                    | Property::MultipleOf(number) => Some(number),
                });
                longest(&mut { numbers }, true);
            }
        }
    }
    let room = |length: i64| {
        let more = u32::try_from(length).unwrap_or(u32::MAX);
        more.saturating_add(Digits::MAX_DIGITS / 2).max(Digits::MAX_DIGITS)
    };
    // After the point of an integer without an exponent are zeros alone, each a state more.
    let fraction = match zeros_alone && fraction <= i64::from(MAX_ZEROS_AFTER) {
        true => MAX_ZEROS_AFTER,
        false => room(fraction),
    };
    Room { whole: room(whole), fraction, is_far }
}

/// The digits of a number before its point and after it, in whichever notation it may have.
fn digits_around_point(number: &Decimal) -> (i64, i64) {
    let (length, significant) = (number.exponent, number.digits.len() as i64);
    // Far from one it is written with an exponent alone, after one digit before the point.
    if length - significant > MAX_ZEROS || length < -MAX_ZEROS {
        return (0, significant);
    }
    (length.max(0), (significant - length).max(significant))
}

/// True when the remainders by all divisors together are few: each is a state for each number of
/// digits.
///
/// Of what is no multiple all but the last digits can still become one: those remainders need not
/// be told apart.
pub(super) fn has_few_remainders(set: &NumberSet) -> bool {
    let NumberSet::All(conditions) = set else { return true };
    let divisors = conditions.iter().filter_map(|condition| match &condition.property {
        Property::MultipleOf(divisor) if condition.holds => Some(divisor),
        _ => None,
    });
    let max = |divisor: &Decimal| match divisor.is_integer() {
        true => MAX_REMAINDERS,
        false => MAX_REMAINDERS_OF_FRACTIONS,
    };
    let remainders = |divisor: &Decimal| divisor.factors().map_or(u64::MAX, |of| of.0);
    let is_few = |divisor: &Decimal| remainders(divisor) <= max(divisor);
    let mut divisors = divisors.peekable();
    let Some(first) = divisors.next() else { return true };
    match divisors.peek() {
        None => is_few(first),
        // Those that have a common multiple of few digits are one already.
        Some(_) => false,
    }
}

impl Room {
    /// The numbers that there is room for.
    pub(super) fn numbers(self) -> Regex {
        numbers(self.whole, self.fraction, self.is_far)
    }
}

/// Numbers with so many digits at most before and after the point, and any exponent if `is_far`.
fn numbers(whole: u32, fraction: u32, is_far: bool) -> Regex {
    let zero = || Regex::literal("0");
    let point = || Regex::concat([Regex::literal("."), digits(1, Some(fraction))]).optional();
    let whole = Regex::alternate([zero(), first_then(digits(0, Some(whole - 1)))]);
    let few = match is_far {
        true => Regex::concat([sign("+-"), digits(1, Some(20))]),
        false => Regex::concat([sign("+-"), zeros(0, Some(2)), digits(1, Some(2))]),
    };
    let exponent = Regex::concat([mark(), few]).optional();
    let plain = Regex::concat([whole, point(), exponent]);
    // One digit before the point: what its exponent comes to is plain.
    let scientific = Regex::concat([first_then(Regex::Empty), point(), mark(), three_digits()]);
    Regex::concat([
        Regex::literal("-").optional(),
        Regex::alternate([plain, scientific, largest(fraction), smallest(fraction)]),
    ])
}

/// Exponents of three digits with which any digit makes a double.
fn three_digits() -> Regex {
    let class = |low, high| Regex::Class(CharClass::new([(low, high)]));
    let any = || class('0', '9');
    let hundreds = Regex::concat([class('1', '2'), any(), any()]);
    let three = |most: char, last: char| {
        Regex::alternate([
            Regex::concat([Regex::literal("3"), class('0', most), any()]),
            Regex::concat([
                Regex::literal(&format!("3{}", (most as u8 + 1) as char)),
                class('0', last),
            ]),
        ])
    };
    // 300 to 307; 300 to 323.
    let up = Regex::concat([Regex::literal("30"), class('0', '7')]);
    let up = Regex::concat([sign("+"), Regex::alternate([hundreds.clone(), up])]);
    let down = Regex::concat([Regex::literal("-"), Regex::alternate([hundreds, three('1', '3')])]);
    Regex::alternate([up, down])
}

/// Numbers with the exponent 308, up to the largest double.
fn largest(fraction: u32) -> Regex {
    let below =
        Fraction::Digits.below((0, &[7, 9, 7, 6, 9, 3, 1, 3, 4, 8, 6, 2, 3, 1, 5, 7]), true);
    let point = Regex::concat([Regex::literal("."), digits(1, Some(fraction))]).optional();
    let mantissa = [Regex::literal("1"), Regex::and([below, point])];
    Regex::concat([Regex::concat(mantissa), mark(), sign("+"), Regex::literal("308")])
}

/// Numbers with the exponent -324 that are not read as zero.
fn smallest(fraction: u32) -> Regex {
    let point = Regex::concat([Regex::literal("."), digits(1, Some(fraction))]).optional();
    let mantissa = Regex::alternate([
        Regex::concat([Regex::Class(CharClass::new([('5', '9')])), point]),
        Regex::concat([Regex::literal("4.9"), Regex::literal("4").optional()]),
    ]);
    Regex::concat([mantissa, mark(), Regex::literal("-324")])
}

fn mark() -> Regex {
    Regex::Class(CharClass::new([('e', 'e'), ('E', 'E')]))
}

/// One of these, or none.
fn sign(signs: &str) -> Regex {
    Regex::Class(CharClass::new(signs.chars().map(|sign| (sign, sign)))).optional()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(sets: &[NumberSet]) -> Regex {
        room(sets).numbers()
    }

    use crate::json_schema::matching::matches;
    use crate::json_schema::number_text::any_number;
    use crate::json_schema::numbers::Condition;

    /// True when a reader takes a number for what it is: a double that is not infinity, and zero
    /// only where it says so.
    fn is_taken(text: &str) -> bool {
        let number: f64 = text.parse().expect("a number");
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        number.is_finite() && (number != 0.0 || !mantissa.contains(|c| ('1'..='9').contains(&c)))
    }

    proptest! {
        #[test]
        fn numbers_are_those_that_readers_take(
            text in "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?0{0,2}(30[0-9]|3[12][0-9]|[0-9]{1,3}))?",
        ) {
            let regex = lengths(&[NumberSet::any()]);
            prop_assert!(matches(&any_number(), &text));
            if matches(&regex, &text) {
                prop_assert!(is_taken(&text), "{}", text);
            }
            // What programs print is among them: one digit before the point of an exponent of three
            // digits.
            if is_taken(&text) {
                let printed = format!("{:e}", text.parse::<f64>().expect("a number"));
                prop_assert!(matches(&regex, &printed), "{} is not allowed, as {} is printed", printed, text);
            }
        }

        #[test]
        fn doubles_are_allowed_as_they_are_printed(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let regex = lengths(&[NumberSet::any()]);
            let printed = format!("{number:e}");
            prop_assert!(matches(&regex, &printed), "{}", printed);
        }
    }

    /// Integers between bounds count their own digits. Oracle: those of any length that there is
    /// room for.
    #[test]
    fn integers_between_bounds_are_those_with_room() {
        let decimal = |text: &str| Decimal::parse(text).expect("a number");
        let integer = || Condition { property: Property::Integer, holds: true };
        let at_least =
            |text, holds| Condition { property: Property::AtLeast(decimal(text)), holds };
        let above = |text, holds| Condition { property: Property::Above(decimal(text)), holds };
        let digits = |count: usize| "7".repeat(count);
        let mut texts: Vec<String> =
            ["0", "-0", "7", "-7", "12", "120", "-120", "119", "-119", "1e20", "00", "1.", "0.0"]
                .map(str::to_owned)
                .into();
        for count in [39, 40, 41, 60, 61, 80, 81, 82] {
            texts.extend([digits(count), format!("-{}", digits(count))]);
            texts.push(format!("1{}", "0".repeat(count - 1)));
        }
        for zeros in [1, 19, 20, 21, 40, 41] {
            texts.extend(["5", "-120", "0"].map(|whole| format!("{whole}.{}", "0".repeat(zeros))));
        }
        let long = digits(60);
        for bounds in [
            vec![],
            vec![at_least("0", true)],
            vec![above("0", true)],
            vec![above("0", false)],
            vec![at_least("120", true)],
            vec![above("120", false)],
            vec![at_least("-120", true), above("7", false)],
            vec![at_least(&long, true)],
            vec![above(&format!("-{long}"), false)],
        ] {
            let conditions = bounds.into_iter().chain([integer()]).collect();
            let set = NumberSet::All(conditions);
            let NumberSet::All(conditions) = &set else { unreachable!() };
            let room = room([&set]);
            for fractions in [false, true] {
                let own =
                    crate::json_schema::number_text::numbers(conditions, fractions, Some(room));
                let any = crate::json_schema::number_text::numbers(conditions, fractions, None);
                let both = Regex::and([any, room.numbers()]);
                for text in &texts {
                    assert_eq!(matches(&own, text), matches(&both, text), "{text} of {set:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_end() {
        let regex = lengths(&[NumberSet::any()]);
        for text in [
            "0",
            "-0.0",
            "42",
            "9223372036854775807",
            "340282366920938463463374607431768211455",
            "1e5",
            "1E+05",
            "1e-007",
            "1.7976931348623157e308",
            "5e-324",
            "4.94e-324",
            "2.5e-323",
            "0.1234567890123456789012345678901234567890",
        ] {
            assert!(matches(&regex, text), "{text}");
        }
        let long = "2".repeat(41);
        for text in [
            &long,
            "1e5000",
            "1e-5000",
            "10e308",
            "1.8e308",
            "1e309",
            "1e-400",
            "4e-324",
            "0.00001e-323",
            "1e0000000000001",
            &format!("0.{long}"),
            &format!("1e{long}"),
            "01",
            "1.",
            ".5",
            "1e",
        ] {
            assert!(!matches(&regex, text), "{text}");
        }
    }

    /// Numbers that a schema asks for are allowed whatever their length.
    #[test]
    fn bounds_and_divisors_have_room() {
        let with = |property, holds| NumberSet::All([Condition { property, holds }].into());
        let decimal = |text: &str| Decimal::parse(text).expect("a number");
        let long = format!("1{}", "0".repeat(60));
        let lengths = |set| lengths(&[set]);
        let above = lengths(with(Property::AtLeast(decimal(&long)), true));
        assert!(matches(&above, &long) && matches(&above, &format!("{long}000")));
        assert!(!matches(&above, &"1".repeat(100)));
        let small = lengths(with(Property::MultipleOf(decimal("1e-50")), true));
        assert!(matches(&small, &format!("0.{}1", "0".repeat(49))));
        let far = lengths(with(Property::Above(decimal("1e400")), true));
        assert!(matches(&far, "1e401") && !matches(&far, &format!("1e{}", "1".repeat(30))));
        let listed = lengths(NumberSet::one(decimal("1e2000000000")));
        assert!(matches(&listed, "1e2000000000"));
        let digits = "7".repeat(500);
        assert!(matches(&lengths(NumberSet::one(decimal(&digits))), &digits));
        let mantissa = format!("7.{}1e-1000000", "0".repeat(60));
        assert!(matches(&lengths(NumberSet::one(decimal(&mantissa))), &mantissa));
    }
}

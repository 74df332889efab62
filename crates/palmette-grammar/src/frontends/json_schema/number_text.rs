//! Spellings of numbers as regular expressions. A set without conditions has every spelling of JSON.

use std::collections::BTreeSet;

use super::{
    decimal::Decimal,
    numbers::{Condition, Property},
};
use crate::{CharClass, Regex};

/// The spellings of one number; with an exponent only if `exponents`.
pub(super) fn literal(number: &Decimal, fractions: bool, exponents: bool) -> Regex {
    let text =
        |digits: &[u8]| -> String { digits.iter().map(|digit| (b'0' + digit) as char).collect() };
    let zero = || Regex::literal("0");
    let sign = match (number.is_zero(), number.negative) {
        (true, _) => Regex::literal("-").optional(),
        (false, true) => Regex::literal("-"),
        (false, false) => Regex::Empty,
    };
    let plain = {
        let whole = Regex::literal(&text(&number.whole()));
        let fraction = number.fraction();
        if !fraction.is_empty() {
            let digits = Regex::literal(&format!(".{}", text(&fraction)));
            Regex::concat([whole, digits, zero().repeat(0, None)])
        } else if fractions {
            let zeros = Regex::concat([Regex::literal("."), zero().repeat(1, None)]);
            Regex::concat([whole, zeros.optional()])
        } else {
            whole
        }
    };
    let scientific = match number.digits.split_first() {
        Some((&first, rest)) if exponents => {
            let fraction = if rest.is_empty() {
                Regex::concat([Regex::literal("."), zero().repeat(1, None)]).optional()
            } else {
                let digits = Regex::literal(&format!(".{}", text(rest)));
                Regex::concat([digits, zero().repeat(0, None)])
            };
            let exponent = number.exponent - 1;
            let class = |symbols: &str| {
                Regex::Class(CharClass::new(symbols.chars().map(|symbol| (symbol, symbol))))
            };
            let sign = match exponent {
                0 => class("+-").optional(),
                1.. => class("+").optional(),
                _ => class("-"),
            };
            let digits = Regex::literal(&exponent.unsigned_abs().to_string());
            let first = Regex::literal(&text(&[first]));
            let exponent = [class("eE"), sign, zero().repeat(0, None), digits];
            Regex::concat([first, fraction].into_iter().chain(exponent))
        }
        _ => Regex::Never,
    };
    Regex::concat([sign, Regex::alternate([plain, scientific])])
}

/// Integers with an exponent that is plainly not less than the number of digits, as floating-point numbers from 10^16 on
/// are printed; only where nothing but an integer is asked for.
pub(super) fn large_integers(set: &BTreeSet<Condition>) -> Option<Regex> {
    let integer = Condition { property: Property::Integer, holds: true };
    if set.len() != 1 || !set.contains(&integer) {
        return None;
    }
    let class = |low: char, high: char| Regex::Class(CharClass::new([(low, high)]));
    let digit = || class('0', '9');
    let fraction = Regex::concat([Regex::literal("."), digit().repeat(1, Some(16))]);
    let exponent = Regex::alternate([
        Regex::concat([Regex::literal("1"), class('6', '9')]),
        Regex::concat([class('2', '9'), digit()]),
        Regex::concat([class('1', '9'), digit(), digit().repeat(1, None)]),
    ]);
    Some(Regex::concat([
        Regex::literal("-").optional(),
        class('1', '9'),
        fraction.optional(),
        Regex::Class(CharClass::new([('e', 'e'), ('E', 'E')])),
        Regex::literal("+").optional(),
        Regex::literal("0").repeat(0, None),
        exponent,
    ]))
}

/// What the automaton of whole numbers without another condition spells.
pub(super) fn any_integer(fractions: bool) -> Regex {
    let class = |low: char, high: char| Regex::Class(CharClass::new([(low, high)]));
    let positive = Regex::concat([class('1', '9'), class('0', '9').repeat(0, None)]);
    let whole = Regex::alternate([Regex::literal("0"), positive]);
    let zeros = Regex::concat([Regex::literal("."), Regex::literal("0").repeat(1, None)]);
    let fraction = if fractions { zeros.optional() } else { Regex::Empty };
    Regex::concat([Regex::literal("-").optional(), whole, fraction])
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
pub(super) mod tests {
    use proptest::prelude::*;

    use super::{super::matching::matches, *};

    /// Spellings of numbers, and some texts that are none.
    pub(in super::super) fn spelling() -> impl Strategy<Value = String> {
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
                let mantissa = text.trim_start_matches('-').split(['e', 'E']).next().unwrap_or("");
                let normal = !text.contains(['e', 'E'])
                    || mantissa.starts_with(|c| ('1'..='9').contains(&c)) && !matches!(mantissa.as_bytes(), [_, b'0'..=b'9', ..]);
                prop_assert_eq!(matches(&regex, text), other.as_ref() == Some(&number) && normal, "{} {}", value, text);
            }
        }
    }
}

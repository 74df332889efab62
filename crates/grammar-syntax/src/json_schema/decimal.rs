//! Exact decimal numbers.

use std::cmp::Ordering;

/// A decimal number: `0.digits × 10^exponent`, with a sign.
///
/// Normal form: no leading and no trailing zero in `digits`; zero has no digits, exponent 0 and no
/// sign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    pub(super) digits: Vec<u8>,
    pub(super) exponent: i64,
}

impl Decimal {
    /// The value of a JSON number; `None` when its exponent is beyond all use.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let leading = all.iter().take_while(|&&digit| digit == 0).count();
        let kept = all.iter().rposition(|&digit| digit != 0).map_or(leading, |last| last + 1);
        let digits = all[leading.min(kept)..kept].to_vec();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = i64::from(exponent) + whole.len() as i64 - leading as i64;
        Some(Self { negative, digits, exponent })
    }

    /// The number of so many units of `10^-places`.
    pub(super) fn of_units(units: i128, places: usize) -> Self {
        let size = units.unsigned_abs().to_string();
        let digits: Vec<u8> =
            size.trim_end_matches('0').bytes().map(|digit| digit - b'0').collect();
        let exponent = if digits.is_empty() { 0 } else { size.len() as i64 - places as i64 };
        Self { negative: units < 0, digits, exponent }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) fn is_integer(&self) -> bool {
        self.fraction_digits() == 0
    }

    /// Number of digits after the point.
    pub(super) fn fraction_digits(&self) -> usize {
        (self.digits.len() as i64 - self.exponent).max(0) as usize
    }

    /// Negation: the number on the other side of zero.
    pub(super) fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The size as a whole number of units of `10^-places`, towards zero; `None` when it is too
    /// large.
    pub(super) fn floor_size(&self, places: usize) -> Option<i128> {
        let length = self.exponent.checked_add(i64::try_from(places).ok()?)?;
        if self.is_zero() || length <= 0 {
            return Some(0);
        }
        if length > 36 {
            return None;
        }
        let digit = |at| i128::from(self.digits.get(at).copied().unwrap_or(0));
        Some((0..length as usize).fold(0, |value, at| value * 10 + digit(at)))
    }

    /// The number as an integer, after the point is moved `places` to the right; `None` when it is
    /// none or too large.
    pub(super) fn scaled(&self, places: usize) -> Option<u64> {
        let exponent = self.exponent + places as i64;
        if self.is_zero() {
            return Some(0);
        }
        if exponent < self.digits.len() as i64 || exponent > 20 || self.negative {
            return None;
        }
        (0..exponent as usize).try_fold(0u64, |value, at| {
            let digit = self.digits.get(at).copied().unwrap_or(0);
            value.checked_mul(10)?.checked_add(u64::from(digit))
        })
    }

    /// Digits as a number and the power of ten that they are multiplied with; `None` when they are
    /// too many.
    pub(super) fn factors(&self) -> Option<(u64, i64)> {
        let mut digits = self.digits.iter();
        let number = digits
            .try_fold(0u64, |number, &digit| number.checked_mul(10)?.checked_add(u64::from(digit)));
        Some((number?, self.exponent - self.digits.len() as i64))
    }

    /// True when this is a multiple of `divisor`, which is above zero and of few digits (see
    /// [`factors`](Self::factors)).
    pub(super) fn is_multiple_of(&self, divisor: &Self) -> bool {
        let Some((factor, tens)) = divisor.factors() else { return self == divisor };
        let above = self.exponent - self.digits.len() as i64 - tens;
        if self.is_zero() || above < 0 {
            // The last digit is not zero.
            return self.is_zero();
        }
        let modulus = u128::from(factor);
        let digits = self.digits.iter();
        let remainder = digits.fold(0, |rest, &digit| (rest * 10 + u128::from(digit)) % modulus);
        (remainder * power_of_ten(above as u64, modulus)).is_multiple_of(modulus)
    }
}

/// `10^exponent` modulo a number below 2^64, by squaring.
fn power_of_ten(mut exponent: u64, modulus: u128) -> u128 {
    let (mut power, mut square) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * square % modulus;
        }
        (square, exponent) = (square * square % modulus, exponent >> 1);
    }
    power
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.exponent.cmp(&other.exponent).then(self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => size(),
            _ => size().reverse(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn equal_values_are_equal() {
        for same in
            [&["0", "-0", "0.00", "0e5"][..], &["120", "1.2e2", "0.12E+3", "120.0", "1200e-1"]]
        {
            for text in same {
                assert_eq!(decimal(text), decimal(same[0]), "{text}");
            }
        }
    }

    #[test]
    fn order_and_multiples_agree_with_integers() {
        for a in -30i64..30 {
            for b in -30i64..30 {
                let texts = (format!("{a}e-1"), format!("{b}e-1"));
                let (x, y) = (decimal(&texts.0), decimal(&texts.1));
                assert_eq!(x.cmp(&y), a.cmp(&b), "{texts:?}");
                if b > 0 {
                    assert_eq!(x.is_multiple_of(&y), a % b == 0, "{texts:?}");
                }
            }
        }
    }

    #[test]
    fn units_are_numbers() {
        for (units, places, text) in
            [(0, 5, "0"), (-120, 1, "-12"), (7, 3, "0.007"), (10, 0, "1e1")]
        {
            assert_eq!(Decimal::of_units(units, places), decimal(text));
        }
    }

    #[test]
    fn great_numbers_are_divided_without_their_zeros() {
        for (number, divisor, divides) in [
            ("1e2000000000", "7", false),
            ("7e2000000000", "7", true),
            ("2e30", "1e30", true),
            ("3e29", "1e30", false),
            ("1e2000000000", "8e1999999000", true),
            ("1e-2000000000", "1e-2000000000", true),
            ("0", "1e2000000000", true),
            ("36893488147419103230", "18446744073709551615", true),
        ] {
            assert_eq!(
                decimal(number).is_multiple_of(&decimal(divisor)),
                divides,
                "{number} {divisor}"
            );
        }
    }

    #[test]
    fn parts() {
        assert_eq!(decimal("-12.050").floor_size(1), Some(120));
        assert_eq!(decimal("0.007").floor_size(2), Some(0));
        assert_eq!(decimal("0.007").floor_size(3), Some(7));
        assert_eq!(decimal("1e2000000000").floor_size(0), None);
        assert_eq!(decimal("12e2000000000").factors(), Some((12, 2_000_000_000)));
        assert_eq!(decimal("1e3").scaled(2), Some(100_000));
        assert_eq!(decimal("1.5").scaled(0), None);
    }
}

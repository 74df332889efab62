//! Exact decimal numbers.

use std::cmp::Ordering;

/// A decimal number: `0.digits × 10^exponent`, with a sign.
///
/// Normal form: no leading and no trailing zero in `digits`; zero has no digits, exponent 0 and no sign.
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

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) fn is_integer(&self) -> bool {
        self.fraction_digits() == 0
    }

    /// How many digits stand after the point.
    pub(super) fn fraction_digits(&self) -> usize {
        (self.digits.len() as i64 - self.exponent).max(0) as usize
    }

    /// How many digits it has when it is written without an exponent.
    pub(super) fn written_digits(&self) -> usize {
        let whole = self.exponent.max(1) as usize;
        whole.saturating_add(self.fraction_digits())
    }

    /// The digits before the point, at least one.
    pub(super) fn whole(&self) -> Vec<u8> {
        if self.exponent <= 0 {
            return vec![0];
        }
        (0..self.exponent as usize).map(|at| self.digits.get(at).copied().unwrap_or(0)).collect()
    }

    /// The digits after the point, without trailing zeros.
    pub(super) fn fraction(&self) -> Vec<u8> {
        let zeros = (-self.exponent).max(0) as usize;
        let from = self.exponent.max(0) as usize;
        let digits = self.digits.iter().skip(from).copied();
        if self.is_zero() {
            Vec::new()
        } else {
            std::iter::repeat_n(0, zeros).chain(digits).collect()
        }
    }

    /// The number as an integer, after the point is moved `places` to the right; `None` when it is none or too large.
    pub(super) fn scaled(&self, places: usize) -> Option<u64> {
        let exponent = self.exponent + places as i64;
        if self.is_zero() {
            return Some(0);
        }
        if exponent < self.digits.len() as i64 || exponent > 19 || self.negative {
            return None;
        }
        (0..exponent as usize).try_fold(0u64, |value, at| {
            let digit = self.digits.get(at).copied().unwrap_or(0);
            value.checked_mul(10)?.checked_add(u64::from(digit))
        })
    }

    /// Whether this is a multiple of `divisor` (above zero).
    pub(super) fn is_multiple_of(&self, divisor: &Self) -> bool {
        // Division by hand: this is `a / 10^m`, the divisor `b / 10^n`, in lowest terms of ten; a multiple needs no more
        // digits after the point than the divisor has.
        let places = divisor.fraction_digits();
        if self.fraction_digits() > places {
            return false;
        }
        let Some(modulus) = divisor.scaled(places) else {
            // A divisor above 10^19: only by comparison of digits.
            return self.is_zero()
                || (self.digits == divisor.digits && self.exponent >= divisor.exponent);
        };
        let length = (self.exponent + places as i64).max(0) as usize;
        let remainder = (0..length).fold(0u128, |remainder, at| {
            let digit = self.digits.get(at).copied().unwrap_or(0);
            (remainder * 10 + u128::from(digit)) % u128::from(modulus)
        });
        remainder == 0
    }
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
    fn written_digits_are_those_of_both_sides_of_the_point() {
        for (text, digits) in [("0", 1), ("-12.050", 4), ("0.007", 4), ("1e9", 10), ("15e-3", 4)] {
            let number = decimal(text);
            assert_eq!(number.written_digits(), digits, "{text}");
            assert_eq!(number.whole().len() + number.fraction().len(), digits, "{text}");
        }
        assert_eq!(decimal("1e2000000000").written_digits(), 2_000_000_001);
    }

    #[test]
    fn parts() {
        let number = decimal("-12.050");
        assert_eq!((number.whole(), number.fraction()), (vec![1, 2], vec![0, 5]));
        let number = decimal("0.007");
        assert_eq!((number.whole(), number.fraction()), (vec![0], vec![0, 0, 7]));
        assert_eq!(decimal("1e3").scaled(2), Some(100_000));
        assert_eq!(decimal("1.5").scaled(0), None);
    }
}

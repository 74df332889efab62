//! Divisibility automata: the decimal numbers that are multiples of another, a digit a step.

/// The rest of a decimal number that is a multiple of `modulus / 10^places`, after some of its
/// digits.
///
/// A state of a deterministic automaton that is never written out: it has up to `modulus` states,
/// and a reader makes those that it comes by. Its texts are digits, then (where `places` says so) a
/// point and at least one digit. Leading zeros are in; whoever wants none says so beside it.
///
/// Every state can still reach the end. Equal languages mostly are equal states: a remainder is
/// reduced to what later digits can tell of it (Alexeev, "Minimal DFA for testing divisibility",
/// 2004).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Multiple {
    modulus: u64,
    /// Remainder of the digits so far by the divisor.
    remainder: u64,
    place: Place,
    /// Digits to come, at least and at most, of whole numbers of which that is known.
    left: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    /// Before the point, after which so many digits count and all later ones are zeros; `None`
    /// where none may come.
    Whole(Option<u32>),
    /// Right after the point: so many digits that count may follow.
    Point(u32),
    Fraction(u32),
}

/// A power of ten above every modulus.
const MAX_DIGITS: u32 = 20;

impl Multiple {
    /// The multiples of `modulus / 10^places` from their first digit on; without `places`, whole
    /// numbers without a point.
    ///
    /// # Panics
    /// When `modulus` is zero.
    pub fn of(modulus: u64, places: Option<u32>) -> Self {
        assert!(modulus > 0, "nothing is a multiple of zero but zero");
        Self { modulus, remainder: 0, place: Place::Whole(places), left: None }
    }

    /// The subset of its whole numbers that have so many digits to come; `None` where there are
    /// none, or it has points, whose digits are not told apart.
    pub(crate) fn of_length(self, min: u32, max: Option<u32>) -> Option<Self> {
        let Place::Whole(None) = self.place else { return None };
        let (least, most) = self.left.unwrap_or((0, u32::MAX));
        let left = Some((min.max(least), max.unwrap_or(u32::MAX).min(most)));
        Some(Self { left, ..self })
    }

    /// True when any text is left.
    pub(crate) fn is_possible(self) -> bool {
        self.fewest().is_some()
    }

    /// Three numbers, for files: modulus, remainder, and the place.
    pub fn parts(self) -> (u64, u64, u64) {
        let place = match self.place {
            Place::Whole(None) => 0,
            Place::Whole(Some(places)) => 1 << 32 | u64::from(places),
            Place::Point(left) => 2 << 32 | u64::from(left),
            Place::Fraction(left) => 3 << 32 | u64::from(left),
        };
        (self.modulus, self.remainder, place)
    }

    /// Automaton of these [`parts`](Self::parts), if there is one.
    pub fn from_parts((modulus, remainder, place): (u64, u64, u64)) -> Option<Self> {
        let count = place as u32;
        let place = match place >> 32 {
            0 if count == 0 => Place::Whole(None),
            1 => Place::Whole(Some(count)),
            2 => Place::Point(count),
            3 => Place::Fraction(count),
            _ => return None,
        };
        let made = Self { modulus, remainder, place, left: None };
        (remainder < modulus && made.fewest().is_some()).then_some(made)
    }

    /// Derivative by `symbol`; `None` where no multiple goes on so.
    pub fn after(self, symbol: u8) -> Option<Self> {
        let next = match (self.place, symbol) {
            (Place::Whole(_), b'0'..=b'9') => match self.left {
                Some((_, 0)) => return None,
                left => {
                    let left = left.map(|(min, max)| (min.saturating_sub(1), max - 1));
                    Self { left, ..self.appended(symbol, self.place) }
                }
            },
            (Place::Whole(Some(places)), b'.') => Self { place: Place::Point(places), ..self },
            (Place::Point(0) | Place::Fraction(0), b'0') => {
                Self { place: Place::Fraction(0), ..self }
            }
            (Place::Point(0) | Place::Fraction(0), _) => return None,
            (Place::Point(left) | Place::Fraction(left), b'0'..=b'9') => {
                self.appended(symbol, Place::Fraction(left - 1))
            }
            _ => return None,
        };
        next.fewest().map(|_| next.reduced())
    }

    /// True when it may end here.
    pub fn may_end(self) -> bool {
        self.fewest() == Some(0)
    }

    /// Lower bound on the characters of its texts.
    pub fn shortest(self) -> u32 {
        self.fewest().unwrap_or(0)
    }

    fn appended(self, digit: u8, place: Place) -> Self {
        let value = u128::from(self.remainder) * 10 + u128::from(digit - b'0');
        Self { remainder: (value % u128::from(self.modulus)) as u64, place, ..self }
    }

    /// A bound from below on the characters to the nearest end; `None` where there is no end.
    fn fewest(self) -> Option<u32> {
        let digits = |left: u32| {
            let modulus = |after: u32| without_tens(self.modulus, left - after);
            (0..=left.min(MAX_DIGITS))
                .find(|&after| missing(self.remainder, after, modulus(after)).is_some())
        };
        match self.place {
            Place::Whole(None) if self.left.is_some() => self.fewest_left(),
            Place::Whole(places) => {
                let places = places.unwrap_or(0);
                let modulus = without_tens(self.modulus, places);
                let digits = (0..=MAX_DIGITS)
                    .find(|&after| missing(self.remainder, after, modulus).is_some());
                // With a point and a digit after it there may be an end that is nearer.
                digits.map(|digits| if places > 0 { digits.min(2) } else { digits })
            }
            Place::Point(left) => digits(left).map(|digits| digits.max(1)),
            Place::Fraction(left) => digits(left),
        }
    }

    /// The fewest digits to an end, where only so many may come. Of more than [`MAX_DIGITS`] any
    /// remainder has an end.
    fn fewest_left(self) -> Option<u32> {
        let (min, max) = self.left.unwrap_or((0, u32::MAX));
        let ends = |&after: &u32| missing(self.remainder, after, self.modulus).is_some();
        let few = (min..=max.min(MAX_DIGITS)).find(ends);
        let many = min.max(MAX_DIGITS + 1);
        few.or((many <= max).then_some(many))
    }

    /// This language with a remainder that stands for others: their texts of each length are the
    /// same, however many digits are left.
    fn reduced(self) -> Self {
        let modulus = match self.place {
            Place::Whole(None | Some(0)) => return self.reduced_whole(),
            Place::Whole(Some(left)) | Place::Point(left) | Place::Fraction(left) => {
                without_tens(self.modulus, left)
            }
        };
        Self { remainder: self.remainder % modulus, ..self }
    }

    /// After enough digits only the remainder by a divisor matters; until then it is compared by
    /// what ends the number.
    fn reduced_whole(self) -> Self {
        let ends = |remainder, after| missing(remainder, after, self.modulus);
        for after in (1..=MAX_DIGITS).rev() {
            let remainder = self.remainder % without_tens(self.modulus, after);
            let same = |fewer| ends(remainder, fewer) == ends(self.remainder, fewer);
            if remainder != self.remainder && (0..after).all(same) {
                return Self { remainder, ..self };
            }
        }
        self
    }
}

/// The least number of `digits` digits that after `remainder` makes a multiple of `modulus`.
fn missing(remainder: u64, digits: u32, modulus: u64) -> Option<u64> {
    let (modulus, power) = (u128::from(modulus), 10u128.pow(digits));
    // Below 10^20 both factors are, so that their product fits.
    let shifted = u128::from(remainder) % modulus * (power % modulus) % modulus;
    let missing = (modulus - shifted) % modulus;
    (missing < power).then_some(missing as u64)
}

/// `modulus` over what it has in common with `10^count`.
fn without_tens(modulus: u64, count: u32) -> u64 {
    let without = |mut number: u64, factor: u64| {
        let mut left = count;
        while left > 0 && number.is_multiple_of(factor) {
            (number, left) = (number / factor, left - 1);
        }
        number
    };
    without(without(modulus, 2), 5)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn reads(of: Multiple, text: &str) -> bool {
        text.bytes().try_fold(of, Multiple::after).is_some_and(Multiple::may_end)
    }

    #[test]
    fn whole_numbers_are_read_as_they_divide() {
        for modulus in [1, 2, 3, 4, 7, 10, 12, 25, 36, 97, 100, 125, 360, 1000] {
            for number in 0..3000u64 {
                let text = number.to_string();
                let divides = number.is_multiple_of(modulus);
                assert_eq!(reads(Multiple::of(modulus, None), &text), divides, "{text}/{modulus}");
                let point = Multiple::of(modulus, Some(0));
                assert_eq!(reads(point, &format!("{text}.00")), divides, "{text}/{modulus}");
                assert!(!reads(point, &format!("{text}.01")) && !reads(point, &format!("{text}.")));
            }
        }
    }

    #[test]
    fn digits_after_the_point_count() {
        for modulus in [1, 5, 25, 50, 75, 125, 999] {
            for number in 0..5000u64 {
                let text = format!("{}.{:02}0", number / 100, number % 100);
                let of = Multiple::of(modulus, Some(2));
                let divides = number.is_multiple_of(modulus);
                assert_eq!(reads(of, &text), divides, "{text} {modulus}");
                assert_eq!(reads(of, text.trim_end_matches('0')), divides && number % 100 != 0);
            }
        }
        let tiny = Multiple::of(1, Some(1_000_000_000));
        assert!(reads(tiny, "0.000000000000000000000001") && reads(tiny, "12"));
    }

    #[test]
    fn so_many_digits_are_left() {
        for modulus in [1, 3, 7, 12, 97, 360] {
            for (min, max) in [(0, 0), (1, 1), (2, 2), (0, 2), (1, 3), (2, 1)] {
                let of = Multiple::of(modulus, None).of_length(min, Some(max)).unwrap();
                let has = |text: &String| (min..=max).contains(&(text.len() as u32));
                let divides = |text: &String| text.parse().unwrap_or(0u64).is_multiple_of(modulus);
                let texts = |digits: usize| {
                    (0..10u64.pow(digits as u32)).map(move |n| format!("{n:0digits$}"))
                };
                let all: Vec<String> = (1..=3).flat_map(texts).collect();
                for text in &all {
                    assert_eq!(
                        reads(of, text),
                        has(text) && divides(text),
                        "{text} {modulus} {min}..{max}"
                    );
                }
                let any = all.iter().any(|text| has(text) && divides(text)) || min == 0;
                assert_eq!(of.is_possible(), any, "{modulus} {min}..{max}");
            }
        }
        let far = Multiple::of(u64::MAX, None).of_length(19, Some(19)).unwrap();
        assert!(
            far.is_possible() && far.after(b'9').is_some_and(|rest| !rest.is_possible())
                || far.after(b'9').is_none()
        );
    }

    #[test]
    fn states_are_few_where_digits_are_counted() {
        let start = Multiple::of(4096, None).of_length(0, Some(30)).unwrap();
        let (mut known, mut open) = (HashSet::from([start]), vec![start]);
        while let Some(state) = open.pop() {
            for next in (b'0'..=b'9').filter_map(|digit| state.after(digit)) {
                if known.insert(next) {
                    open.push(next);
                }
            }
        }
        // Without the count there are some hundreds.
        assert!(known.len() < 30 * 700, "{}", known.len());
    }

    #[test]
    fn states_are_few_where_tens_are_factors() {
        for (modulus, most) in [(10_000, 60), (3_600, 100), (997, 997)] {
            let start = Multiple::of(modulus, None);
            let (mut known, mut open) = (HashSet::from([start]), vec![start]);
            while let Some(state) = open.pop() {
                for next in (b'0'..=b'9').filter_map(|digit| state.after(digit)) {
                    if known.insert(next) {
                        open.push(next);
                    }
                }
                assert!(known.len() <= most, "{modulus}");
            }
        }
    }

    #[test]
    fn great_numbers_do_not_overflow() {
        let of = Multiple::of(u64::MAX, Some(3));
        assert!(reads(of, "18446744073709551.615") && !reads(of, "18446744073709551.614"));
        assert!(reads(Multiple::of(u64::MAX, None), &format!("{}0", u64::MAX)));
    }
}

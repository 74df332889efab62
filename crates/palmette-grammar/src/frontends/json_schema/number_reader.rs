//! Reads a number character by character and tells whether it meets conditions.

use std::{cmp::Ordering, collections::BTreeSet};

use super::{
    decimal::Decimal,
    numbers::{Condition, Property},
};

/// Where in a JSON number a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Start,
    Minus,
    /// After a leading zero.
    Zero,
    /// After one digit that is not zero.
    First,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// Reads a number and tells whether it is in one set.
pub(super) struct SetReader {
    conditions: Vec<(Reader, bool)>,
    /// Whether exponents are read.
    exponents: bool,
    fractions: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetState {
    /// Whether an exponent may still come: of the one digit before the point only.
    single: bool,
    conditions: Vec<ReaderState>,
}

enum Reader {
    /// Compares; holds when the order is among these.
    Compare {
        bound: Comparison,
        orders: Vec<Ordering>,
    },
    /// Only zeros after the point.
    Integer,
    Multiple {
        modulus: u64,
        places: u32,
    },
    /// Nothing is a multiple (of a number too large).
    OnlyZero,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ReaderState {
    Compare(CompareState),
    /// Whether a digit other than zero is after the point.
    Integer {
        fraction: bool,
    },
    Multiple {
        remainder: u64,
        place: u32,
        broken: bool,
    },
    Zero {
        broken: bool,
    },
}

impl SetReader {
    pub(super) fn new(set: &BTreeSet<Condition>, fractions: bool) -> Result<Self, ()> {
        let conditions: Vec<(Reader, bool)> = set
            .iter()
            .map(|condition| Ok((Reader::new(&condition.property)?, condition.holds)))
            .collect::<Result<_, ()>>()?;
        let whole =
            conditions.iter().any(|(reader, holds)| matches!(reader, Reader::Integer) && *holds);
        let divided =
            conditions.iter().any(|(reader, _)| !matches!(reader, Reader::Compare { .. }));
        Ok(Self { exponents: !divided, fractions: fractions || !whole, conditions })
    }

    pub(super) fn start(&self) -> SetState {
        let conditions = self.conditions.iter().map(|(reader, _)| reader.start()).collect();
        SetState { single: true, conditions }
    }

    /// Writes into `next` what is known after a character; `false` where no number goes on so.
    pub(super) fn step(
        &self,
        state: &SetState,
        phase: Phase,
        symbol: char,
        next: &mut SetState,
    ) -> bool {
        next.single = match symbol {
            'e' | 'E' if !self.exponents || !state.single => return false,
            '.' if !self.fractions => return false,
            '0' if matches!(phase, Phase::Start | Phase::Minus) => false,
            '0'..='9' if matches!(phase, Phase::First) => false,
            _ => state.single,
        };
        next.conditions.clone_from(&state.conditions);
        for ((reader, _), state) in self.conditions.iter().zip(&mut next.conditions) {
            reader.step(state, phase, symbol);
        }
        true
    }

    pub(super) fn accepts(&self, state: &SetState, negative: bool) -> bool {
        let mut pairs = self.conditions.iter().zip(&state.conditions);
        pairs.all(|((reader, holds), state)| reader.holds(state, negative) == *holds)
    }
}

impl Reader {
    fn new(property: &Property) -> Result<Self, ()> {
        Ok(match property {
            Property::Integer => Self::Integer,
            Property::AtLeast(bound) => {
                Self::compare(bound, &[Ordering::Equal, Ordering::Greater])?
            }
            Property::Above(bound) => Self::compare(bound, &[Ordering::Greater])?,
            Property::MultipleOf(divisor) => {
                let places = divisor.fraction_digits();
                match (divisor.scaled(places), divisor.exponent > 400) {
                    (Some(modulus), _) if modulus <= 1 << 32 => {
                        Self::Multiple { modulus, places: places as u32 }
                    }
                    (_, true) => Self::OnlyZero,
                    _ => return Err(()),
                }
            }
        })
    }

    fn compare(bound: &Decimal, orders: &[Ordering]) -> Result<Self, ()> {
        if bound.exponent.abs() > 2_000 {
            return Err(());
        }
        Ok(Self::Compare { bound: Comparison::new(bound), orders: orders.to_vec() })
    }

    fn start(&self) -> ReaderState {
        match self {
            Self::Compare { .. } => ReaderState::Compare(CompareState::START),
            Self::Integer => ReaderState::Integer { fraction: false },
            Self::Multiple { .. } => {
                ReaderState::Multiple { remainder: 0, place: 0, broken: false }
            }
            Self::OnlyZero => ReaderState::Zero { broken: false },
        }
    }

    fn step(&self, state: &mut ReaderState, phase: Phase, symbol: char) {
        let after_point = matches!(phase, Phase::Point | Phase::Fraction);
        let digit = symbol.to_digit(10);
        match (self, state) {
            (Self::Compare { bound, .. }, ReaderState::Compare(state)) => {
                bound.step(state, phase, symbol);
            }
            (Self::Integer, ReaderState::Integer { fraction }) => {
                *fraction |= after_point && digit.is_some_and(|digit| digit > 0);
            }
            (
                Self::Multiple { modulus, places },
                ReaderState::Multiple { remainder, place, broken },
            ) => {
                let Some(digit) = digit else { return };
                if after_point && *place == *places {
                    *broken |= digit > 0;
                } else {
                    *remainder = (*remainder * 10 + u64::from(digit)) % modulus;
                    *place += u32::from(after_point);
                }
                if *broken {
                    (*remainder, *place) = (0, 0);
                }
            }
            (Self::OnlyZero, ReaderState::Zero { broken }) => {
                *broken |= digit.is_some_and(|digit| digit > 0);
            }
            _ => unreachable!("a state of another reader"),
        }
    }

    fn holds(&self, state: &ReaderState, negative: bool) -> bool {
        match (self, state) {
            (Self::Compare { bound, orders }, ReaderState::Compare(state)) => {
                orders.contains(&bound.order(state, negative))
            }
            (Self::Integer, ReaderState::Integer { fraction }) => !fraction,
            (
                Self::Multiple { modulus, places },
                ReaderState::Multiple { remainder, place, broken },
            ) => {
                let missing = places - place;
                let scaled = (0..missing).fold(*remainder, |value, _| value * 10 % modulus);
                !broken && scaled == 0
            }
            (Self::OnlyZero, ReaderState::Zero { broken }) => !broken,
            _ => unreachable!("a state of another reader"),
        }
    }
}

/// Compares a number with a bound, digit by digit.
struct Comparison {
    negative: bool,
    zero: bool,
    /// The bound's digits before and after the point, and all of them without the zeros around.
    whole: Vec<u8>,
    fraction: Vec<u8>,
    digits: Vec<u8>,
    /// The exponent of the bound when it is written with one digit before the point.
    exponent: i64,
    exponent_digits: Vec<u8>,
}

/// What is known of the size of a number when compared with the size of the bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CompareState {
    /// Before and after the point. `count` digits before the point, at most one more than the bound has; `plain` compares them
    /// with the bound's as far as both go, `place` counts on after the point. `significant` compares the digits from
    /// the first that is not zero, at `position`, with the bound's.
    Digits { count: usize, plain: Ordering, place: usize, significant: Ordering, position: usize },
    /// In the exponent: `count` digits after its leading zeros.
    Exponent { significant: Ordering, negative: bool, count: usize, order: Ordering },
}

impl CompareState {
    const START: Self = Self::Digits {
        count: 0,
        plain: Ordering::Equal,
        place: 0,
        significant: Ordering::Equal,
        position: 0,
    };
}

impl Comparison {
    fn new(bound: &Decimal) -> Self {
        let exponent = bound.exponent - 1;
        let exponent_digits = exponent.unsigned_abs().to_string();
        Self {
            negative: bound.negative,
            zero: bound.is_zero(),
            whole: bound.whole(),
            fraction: bound.fraction(),
            digits: bound.digits.clone(),
            exponent,
            exponent_digits: match exponent {
                0 => Vec::new(),
                _ => exponent_digits.bytes().map(|byte| byte - b'0').collect(),
            },
        }
    }

    fn step(&self, state: &mut CompareState, phase: Phase, symbol: char) {
        let digit = symbol.to_digit(10).map(|digit| digit as u8);
        match (&mut *state, symbol) {
            (CompareState::Digits { significant, position, .. }, 'e' | 'E') => {
                let rest = *position < self.digits.len();
                let significant = match *significant {
                    Ordering::Equal if rest => Ordering::Less,
                    known => known,
                };
                *state = CompareState::Exponent {
                    significant,
                    negative: false,
                    count: 0,
                    order: Ordering::Equal,
                };
            }
            (CompareState::Exponent { negative, .. }, '-') => *negative = true,
            (CompareState::Exponent { count, order, .. }, _) => {
                let Some(digit) = digit else { return };
                if *count > 0 || digit > 0 {
                    compare_whole(&self.exponent_digits, count, order, digit);
                }
            }
            (CompareState::Digits { count, plain, place, significant, position }, _) => {
                let Some(digit) = digit else { return };
                if matches!(phase, Phase::Point | Phase::Fraction) {
                    if *place == 0 {
                        *plain = whole_order(&self.whole, *count, *plain);
                    }
                    if *plain == Ordering::Equal {
                        *plain = digit.cmp(self.fraction.get(*place).unwrap_or(&0));
                    }
                    *place = (*place + 1).min(self.fraction.len() + 1);
                } else {
                    compare_whole(&self.whole, count, plain, digit);
                }
                if *position > 0 || digit > 0 {
                    if *significant == Ordering::Equal {
                        *significant = digit.cmp(self.digits.get(*position).unwrap_or(&0));
                    }
                    *position = (*position + 1).min(self.digits.len() + 1);
                }
                // What is decided needs no count.
                if *plain != Ordering::Equal && *place > 0 {
                    (*count, *place) = (0, 1);
                }
                if *significant != Ordering::Equal {
                    *position = self.digits.len() + 1;
                }
            }
        }
    }

    /// How the number compares with the bound, if it ends here.
    fn order(&self, state: &CompareState, negative: bool) -> Ordering {
        let size = match state {
            CompareState::Digits { count, plain, place, .. } => {
                let plain =
                    if *place == 0 { whole_order(&self.whole, *count, *plain) } else { *plain };
                match plain {
                    Ordering::Equal if *place < self.fraction.len() => Ordering::Less,
                    known => known,
                }
            }
            CompareState::Exponent { .. } if self.zero => Ordering::Greater,
            CompareState::Exponent { significant, negative, count, order } => {
                let size = whole_order(&self.exponent_digits, *count, *order);
                let exponent = match (*negative && *count > 0, self.exponent < 0) {
                    (false, false) => size,
                    (true, true) => size.reverse(),
                    (false, true) => Ordering::Greater,
                    (true, false) => Ordering::Less,
                };
                exponent.then(*significant)
            }
        };
        let size = if self.zero && size == Ordering::Less { Ordering::Equal } else { size };
        match (negative, self.negative) {
            (false, false) => size,
            (true, true) => size.reverse(),
            (false, true) => Ordering::Greater,
            // Minus zero is zero.
            (true, false) if self.zero => size.reverse(),
            (true, false) => Ordering::Less,
        }
    }
}

/// Reads one more digit of a whole number that is compared with `bound`.
fn compare_whole(bound: &[u8], count: &mut usize, order: &mut Ordering, digit: u8) {
    if *order == Ordering::Equal
        && let Some(other) = bound.get(*count)
    {
        *order = digit.cmp(other);
    }
    *count = (*count + 1).min(bound.len() + 1);
}

fn whole_order(bound: &[u8], count: usize, order: Ordering) -> Ordering {
    count.cmp(&bound.len()).then(order)
}

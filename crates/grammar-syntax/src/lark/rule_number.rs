//! Numbers of parametric rules: functions of a number, conditions on its bits.

use std::ops::Range;

/// A range of bits of a number: from `low` on, below `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) low: u32,
    pub(super) high: u32,
}

/// The number of a rule that is used, given that of the rule that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `_`
    Own,
    Constant(u64),
    SetBit(u32),
    ClearBit(u32),
    And(u64),
    Or(u64),
    /// Increment, not past the greatest that the bits hold.
    Increment(Bits),
    /// Decrement, not below zero.
    Decrement(Bits),
}

/// A condition on the number of a rule.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    True,
    /// Comparison of some bits as a number, or of how many of them are ones.
    Compare {
        count: bool,
        bits: Bits,
        how: Comparison,
        with: u64,
    },
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A use of a parametric rule's number, where it stands.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) value: Value,
    pub(super) range: Range<usize>,
}

impl Bits {
    /// `_`
    pub(super) const ALL: Self = Self { low: 0, high: 64 };

    /// The greatest number that they hold.
    pub(super) fn greatest(self) -> u64 {
        u64::MAX.checked_shr(64 - (self.high - self.low)).unwrap_or(0)
    }

    fn of(self, number: u64) -> u64 {
        number >> self.low & self.greatest()
    }
}

impl Value {
    /// True when it depends on the number of the rule that it stands in.
    pub(super) fn is_relative(self) -> bool {
        !matches!(self, Self::Constant(_))
    }

    pub(super) fn of(self, own: u64) -> u64 {
        match self {
            Self::Own => own,
            Self::Constant(number) => number,
            Self::SetBit(bit) => own | 1 << bit,
            Self::ClearBit(bit) => own & !(1 << bit),
            Self::And(number) => own & number,
            Self::Or(number) => own | number,
            Self::Increment(bits) if bits.of(own) == bits.greatest() => own,
            Self::Increment(bits) => own + (1 << bits.low),
            Self::Decrement(bits) if bits.of(own) == 0 => own,
            Self::Decrement(bits) => own - (1 << bits.low),
        }
    }
}

impl Condition {
    pub(super) fn holds(&self, number: u64) -> bool {
        match self {
            Self::True => true,
            Self::Compare { count, bits, how, with } => {
                let bits = bits.of(number);
                let found = if *count { u64::from(bits.count_ones()) } else { bits };
                match how {
                    Comparison::Equal => found == *with,
                    Comparison::NotEqual => found != *with,
                    Comparison::Less => found < *with,
                    Comparison::AtMost => found <= *with,
                    Comparison::Greater => found > *with,
                    Comparison::AtLeast => found >= *with,
                }
            }
            Self::And(all) => all.iter().all(|condition| condition.holds(number)),
            Self::Or(any) => any.iter().any(|condition| condition.holds(number)),
            Self::Not(inner) => !inner.holds(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_change_by_their_bits() {
        let (low, all) = (Bits { low: 0, high: 2 }, Bits::ALL);
        for (value, own, expected) in [
            (Value::SetBit(3), 1, 9),
            (Value::ClearBit(0), 9, 8),
            (Value::Increment(low), 2, 3),
            (Value::Increment(low), 3, 3),
            (Value::Increment(Bits { low: 2, high: 4 }), 3, 7),
            (Value::Increment(all), u64::MAX, u64::MAX),
            (Value::Decrement(low), 4, 4),
            (Value::Decrement(all), 4, 3),
            (Value::And(6), 3, 2),
            (Value::Or(6), 1, 7),
            (Value::Own, 5, 5),
        ] {
            assert_eq!(value.of(own), expected, "{value:?} of {own}");
        }
    }

    #[test]
    fn conditions_look_at_bits() {
        let compare = |count, low, high, how, with| Condition::Compare {
            count,
            bits: Bits { low, high },
            how,
            with,
        };
        let three = compare(false, 0, 2, Comparison::Equal, 3);
        assert!(three.holds(7) && !three.holds(5));
        let two_ones = compare(true, 0, 64, Comparison::AtLeast, 2);
        assert!(two_ones.holds(0x8000_0000_0000_0001) && !two_ones.holds(4));
        let both = Condition::And(vec![three.clone(), Condition::Not(Box::new(two_ones.clone()))]);
        assert!(!both.holds(3) && Condition::Or(vec![both, three]).holds(3));
    }
}

//! Rules with a number: `name::_`, as llguidance writes them.
//!
//! A parametric rule stands for a rule for each 64-bit number, as a template stands for one for each of its arguments: `name::0x3` is the
//! rule of 3, `name::incr(_)` within it that of 4, and an alternative with `%if` is there where its condition holds. Only the rules
//! that are reached from the start are made; their number has the limit of templates.

use std::ops::Range;

use super::parse::{MAX_NESTING, Parser};
use super::syntax::{Expr, NUMBER, Name};
use super::tokens::{Kind, Word};

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

impl Parser<'_, '_> {
    /// True when `::` is next.
    pub(super) fn is_number_next(&self) -> bool {
        [0, 1].iter().all(|&ahead| self.word(ahead).kind == Kind::Mark(':'))
    }

    /// True when `%if` is next.
    pub(super) fn is_if(&self) -> bool {
        self.text(&self.peek().range) == "%if"
    }

    /// `::_`, of a definition.
    pub(super) fn own_number(&mut self) -> Option<Name> {
        self.colons();
        let word = self.peek().clone();
        if !self.take(Kind::Mark('_')) {
            return self.unexpected("a rule for each number is defined as `name::_: …`");
        }
        Some(Name { text: NUMBER.to_owned(), range: word.range })
    }

    /// `::…`, of a use.
    pub(super) fn parametric(&mut self, name: &Word) -> Option<Expr> {
        let name = self.named(name);
        self.colons();
        let start = self.peek().range.start;
        let value = self.value()?;
        let range = start..self.peek().range.start;
        Some(Expr::Parametric { name, number: Use { value, range } })
    }

    /// An alternative, and `%if …` where that follows.
    pub(super) fn conditioned(&mut self, inner: Expr) -> Option<Expr> {
        if !self.is_if() {
            return Some(inner);
        }
        let start = self.next().range.start;
        let condition = self.condition()?;
        let range = start..self.peek().range.start;
        Some(Expr::If { inner: Box::new(inner), condition, range })
    }

    fn colons(&mut self) {
        self.next();
        self.next();
    }

    fn value(&mut self) -> Option<Value> {
        if self.take(Kind::Mark('_')) {
            return Some(Value::Own);
        }
        if self.peek().kind == Kind::Number {
            return self.number().map(Value::Constant);
        }
        let name = self.function()?;
        let value = match &*name {
            "set_bit" => Value::SetBit(self.bit()?),
            "clear_bit" => Value::ClearBit(self.bit()?),
            "bit_and" => Value::And(self.number()?),
            "bit_or" => Value::Or(self.number()?),
            "incr" => Value::Increment(self.bits()?),
            "decr" => Value::Decrement(self.bits()?),
            _ => {
                return self.unexpected(
                    "the number of a rule is a number, `_`, or one of set_bit(k), clear_bit(k), bit_and(n), bit_or(n), incr([x:y]) \
                     and decr([x:y])",
                );
            }
        };
        self.expect(')', "after what a number is made of")?;
        Some(value)
    }

    fn condition(&mut self) -> Option<Condition> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return self.unexpected("conditions are nested too deep: make them simpler");
        }
        let name = self.function()?;
        let equals = |bits: Bits, with| Condition::Compare {
            count: false,
            bits,
            how: Comparison::Equal,
            with,
        };
        let one = |bit| Bits { low: bit, high: bit + 1 };
        let condition = match &*name {
            "true" => {
                self.depth -= 1;
                if self.take(Kind::Mark('(')) {
                    self.expect(')', "after `true(`")?;
                }
                return Some(Condition::True);
            }
            "bit_clear" => equals(one(self.bit()?), 0),
            "bit_set" => equals(one(self.bit()?), 1),
            "is_zeros" => equals(self.bits()?, 0),
            "is_ones" => {
                let bits = self.bits()?;
                equals(bits, bits.greatest())
            }
            "and" | "or" => {
                let first = self.condition()?;
                self.expect(',', "between two conditions")?;
                let both = vec![first, self.condition()?];
                if name == "and" { Condition::And(both) } else { Condition::Or(both) }
            }
            "not" => Condition::Not(Box::new(self.condition()?)),
            _ => {
                let counted = name.strip_prefix("bit_count_");
                let Some(how) = comparison(counted.unwrap_or(&name)) else {
                    return self.unexpected(
                        "there is no such condition; there are bit_clear(k), bit_set(k), is_ones([x:y]), is_zeros([x:y]), eq, ne, lt, le, \
                         gt, ge([x:y], n), bit_count_eq([x:y], n) and its like, and(…), or(…), not(…) and true",
                    );
                };
                let bits = self.bits()?;
                self.expect(',', "between the bits and what they are compared with")?;
                Condition::Compare { count: counted.is_some(), bits, how, with: self.number()? }
            }
        };
        self.expect(')', "to close the condition")?;
        self.depth -= 1;
        Some(condition)
    }

    /// The name of a function and its parenthesis, which `true` has not.
    fn function(&mut self) -> Option<String> {
        if self.peek().kind != Kind::RuleName {
            return self.unexpected("a number or a function of one is expected");
        }
        let word = self.next();
        let name = self.text(&word.range).to_owned();
        if name != "true" {
            self.expect('(', "after the name of a function")?;
        }
        Some(name)
    }

    /// `_` or `[x:y]`.
    fn bits(&mut self) -> Option<Bits> {
        if self.take(Kind::Mark('_')) {
            return Some(Bits::ALL);
        }
        let open = self.peek().clone();
        self.expect('[', "before bits, which are written `[x:y]` or `_`")?;
        let low = self.number()?;
        self.expect(':', "between the first bit and that after the last")?;
        let high = self.number()?;
        self.expect(']', "after bits")?;
        if low >= high || high > 64 {
            let message =
                format!("bits {low} to {high} are none; they are from 0 up to, and without, 64");
            self.problems.add(&open.range, message);
            return None;
        }
        Some(Bits { low: low as u32, high: high as u32 })
    }

    fn bit(&mut self) -> Option<u32> {
        let word = self.peek().clone();
        let bit = self.number()?;
        if bit >= 64 {
            self.problems.add(&word.range, format!("there is no bit {bit}; the last is 63"));
            return None;
        }
        Some(bit as u32)
    }

    fn number(&mut self) -> Option<u64> {
        let word = self.peek().clone();
        let read = number(self.text(&word.range)).filter(|_| word.kind == Kind::Number);
        match read {
            Some(read) => {
                self.next();
                Some(read)
            }
            None => self.unexpected("a number below 2^64 is expected, decimal or as `0x1F`"),
        }
    }
}

/// A comparison by the end of its name: `eq`, `bit_count_eq` and so on.
pub(super) fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" => Comparison::Equal,
        "ne" => Comparison::NotEqual,
        "lt" => Comparison::Less,
        "le" => Comparison::AtMost,
        "gt" => Comparison::Greater,
        "ge" => Comparison::AtLeast,
        _ => return None,
    })
}

/// A number, decimal or after `0x` hexadecimal.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
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

//! Notation of parametric rules: `name::_`, as llguidance writes them.
//!
//! A parametric rule stands for a rule for each 64-bit number, as a template stands for one for
//! each of its arguments: `name::0x3` is the rule of 3, `name::incr(_)` within it that of 4, and an
//! alternative with `%if` is there where its condition holds. Only the rules that are reached from
//! the start are made; their number has the limit of templates.

use super::parse::{MAX_NESTING, Parser};
use super::rule_number::{Bits, Comparison, Condition, Use, Value};
use super::syntax::{Expr, NUMBER, Name};
use super::tokens::{Kind, Word};

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

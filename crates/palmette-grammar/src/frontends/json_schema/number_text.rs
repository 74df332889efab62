//! How numbers are spelled: an automaton over the characters of a JSON number.
//!
//! A set without conditions has every spelling of JSON. The others have those of which a finite automaton can tell the
//! value: without exponent (`12.50`, leading and trailing zeros as JSON allows them), and with an exponent
//! after one digit before the point that is not zero (`1.25e-7`); with a condition on divisibility only the former.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use super::{
    decimal::Decimal,
    numbers::{Condition, Property},
};
use crate::{CharClass, Regex};

/// A deterministic automaton; state 0 is the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumberAutomaton {
    /// `edges[state][symbol]`; every state can reach an accepting one.
    pub(super) edges: Vec<BTreeMap<char, u32>>,
    pub(super) accepting: Vec<bool>,
}

/// The spellings of the numbers that meet all conditions of `set`, where whole numbers may have a fraction of zeros (`1.0`) if
/// `fractions`; `Err` when more than `max_states` states would be needed.
pub(super) fn automaton(
    set: &BTreeSet<Condition>,
    fractions: bool,
    max_states: usize,
) -> Result<NumberAutomaton, ()> {
    let reader = SetReader::new(set, fractions)?;
    let start = State { phase: Phase::Start, negative: false, set: reader.start() };
    let mut ids = HashMap::from([(start.clone(), 0u32)]);
    let mut states = vec![start];
    let mut edges = Vec::new();
    let mut accepting = Vec::new();
    while edges.len() < states.len() {
        let state = states[edges.len()].clone();
        accepting.push(state.accepts(&reader));
        let mut row = BTreeMap::new();
        for symbol in SYMBOLS {
            let Some(next) = state.step(symbol, &reader) else { continue };
            let id = *ids.entry(next).or_insert_with_key(|next| {
                states.push(next.clone());
                states.len() as u32 - 1
            });
            row.insert(symbol, id);
        }
        if states.len() > max_states {
            return Err(());
        }
        edges.push(row);
    }
    Ok(minimised(edges, accepting))
}

const SYMBOLS: [char; 15] =
    ['-', '+', '.', 'e', 'E', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

/// Where in a JSON number a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    phase: Phase,
    negative: bool,
    set: SetState,
}

impl State {
    fn step(&self, symbol: char, reader: &SetReader) -> Option<Self> {
        use Phase::*;
        let phase = match (self.phase, symbol) {
            (Start, '-') => Minus,
            (Start | Minus, '0') => Zero,
            (Start | Minus, '1'..='9') => First,
            (First | Whole, '0'..='9') => Whole,
            (Zero | First | Whole, '.') => Point,
            (Point | Fraction, '0'..='9') => Fraction,
            (Zero | First | Whole | Fraction, 'e' | 'E') => Exponent,
            (Exponent, '+' | '-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, '0'..='9') => ExponentDigits,
            _ => return None,
        };
        let set = reader.step(&self.set, self.phase, symbol)?;
        Some(Self { phase, negative: self.negative || phase == Minus, set })
    }

    fn accepts(&self, reader: &SetReader) -> bool {
        use Phase::*;
        matches!(self.phase, Zero | First | Whole | Fraction | ExponentDigits)
            && reader.accepts(&self.set, self.negative)
    }
}

/// Reads a number and tells whether it is in one set.
struct SetReader {
    conditions: Vec<(Reader, bool)>,
    /// Whether exponents are read.
    exponents: bool,
    fractions: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SetState {
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
    fn new(set: &BTreeSet<Condition>, fractions: bool) -> Result<Self, ()> {
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

    fn start(&self) -> SetState {
        let conditions = self.conditions.iter().map(|(reader, _)| reader.start()).collect();
        SetState { single: true, conditions }
    }

    fn step(&self, state: &SetState, phase: Phase, symbol: char) -> Option<SetState> {
        let mut next = state.clone();
        match symbol {
            'e' | 'E' if !self.exponents || !state.single => return None,
            '.' if !self.fractions => return None,
            '0' if matches!(phase, Phase::Start | Phase::Minus) => next.single = false,
            '0'..='9' if matches!(phase, Phase::First) => next.single = false,
            _ => {}
        }
        for ((reader, _), state) in self.conditions.iter().zip(&mut next.conditions) {
            reader.step(state, phase, symbol);
        }
        Some(next)
    }

    fn accepts(&self, state: &SetState, negative: bool) -> bool {
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

/// The least automaton of the same language, without states that lead nowhere; states in the order in which they are
/// found from the start.
fn minimised(edges: Vec<BTreeMap<char, u32>>, accepting: Vec<bool>) -> NumberAutomaton {
    let useful = useful_states(&edges, &accepting);
    let kept = |row: &BTreeMap<char, u32>| -> Vec<(char, u32)> {
        let edges = row.iter().map(|(&symbol, &to)| (symbol, to));
        edges.filter(|&(_, to)| useful[to as usize]).collect()
    };
    let mut class: Vec<u32> = accepting.iter().map(|&accepts| u32::from(accepts)).collect();
    let mut num_classes = 0;
    loop {
        let mut ids = HashMap::new();
        let next: Vec<u32> = (0..edges.len())
            .map(|state| {
                let row: Vec<(char, u32)> = kept(&edges[state])
                    .iter()
                    .map(|&(symbol, to)| (symbol, class[to as usize]))
                    .collect();
                let fresh = ids.len() as u32;
                *ids.entry((class[state], row)).or_insert(fresh)
            })
            .collect();
        class = next;
        if ids.len() == num_classes {
            break;
        }
        num_classes = ids.len();
    }
    let mut number: HashMap<u32, u32> = HashMap::from([(class[0], 0)]);
    let mut found = vec![0];
    let mut result = NumberAutomaton { edges: Vec::new(), accepting: Vec::new() };
    while result.edges.len() < found.len() {
        let state: usize = found[result.edges.len()];
        let mut row = BTreeMap::new();
        for (symbol, to) in kept(&edges[state]) {
            let id = *number.entry(class[to as usize]).or_insert_with(|| {
                found.push(to as usize);
                found.len() as u32 - 1
            });
            row.insert(symbol, id);
        }
        result.edges.push(row);
        result.accepting.push(accepting[state]);
    }
    result
}

fn useful_states(edges: &[BTreeMap<char, u32>], accepting: &[bool]) -> Vec<bool> {
    let mut sources = vec![Vec::new(); edges.len()];
    for (from, row) in edges.iter().enumerate() {
        for &to in row.values() {
            sources[to as usize].push(from);
        }
    }
    let mut useful = accepting.to_vec();
    let mut open: Vec<usize> = (0..edges.len()).filter(|&state| accepting[state]).collect();
    while let Some(state) = open.pop() {
        for &from in &sources[state] {
            if !std::mem::replace(&mut useful[from], true) {
                open.push(from);
            }
        }
    }
    useful
}

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

impl NumberAutomaton {
    /// The language as a regular expression, by eliminating states; `None` when it grows beyond `max_size` parts.
    pub(super) fn regex(&self, max_size: usize) -> Option<Regex> {
        // Node `n` is the one end; `n + 1` the start, so that no edge leads into it.
        let n = self.edges.len();
        if n > max_size {
            return None;
        }
        let mut edges: BTreeMap<(usize, usize), (Regex, usize)> = BTreeMap::new();
        for (from, row) in self.edges.iter().enumerate() {
            let mut classes: BTreeMap<usize, Vec<(char, char)>> = BTreeMap::new();
            for (&symbol, &to) in row {
                classes.entry(to as usize).or_default().push((symbol, symbol));
            }
            for (to, ranges) in classes {
                edges.insert((from, to), (Regex::Class(CharClass::new(ranges)), 1));
            }
            if self.accepting[from] {
                edges.insert((from, n), (Regex::Empty, 0));
            }
        }
        edges.insert((n + 1, 0), (Regex::Empty, 0));
        let mut left: Vec<usize> = (0..n).collect();
        while !left.is_empty() {
            let cost = |state: usize| {
                let into = edges.keys().filter(|edge| edge.1 == state && edge.0 != state).count();
                let from = edges.keys().filter(|edge| edge.0 == state && edge.1 != state).count();
                into * from
            };
            let at = (0..left.len()).min_by_key(|&at| (cost(left[at]), left[at]))?;
            let state = left.remove(at);
            let again = edges.remove(&(state, state));
            let again = again.map(|(regex, size)| (regex.repeat(0, None), size + 1));
            let into: Vec<_> = edges.keys().filter(|edge| edge.1 == state).copied().collect();
            let from: Vec<_> = edges.keys().filter(|edge| edge.0 == state).copied().collect();
            for &enter in &into {
                for &leave in &from {
                    let parts = [Some(&edges[&enter]), again.as_ref(), Some(&edges[&leave])];
                    let size: usize = parts.iter().flatten().map(|part| part.1).sum();
                    let path =
                        Regex::concat(parts.into_iter().flatten().map(|part| part.0.clone()));
                    let edge = edges.entry((enter.0, leave.1)).or_insert((Regex::Never, 0));
                    edge.0 = either(std::mem::replace(&mut edge.0, Regex::Never), path);
                    edge.1 += size;
                    if edge.1 > max_size {
                        return None;
                    }
                }
            }
            edges.retain(|edge, _| edge.0 != state && edge.1 != state);
        }
        Some(edges.remove(&(n + 1, n)).map_or(Regex::Never, |(regex, _)| regex))
    }

    #[cfg(test)]
    /// Whether `text` spells a number of the set.
    pub(super) fn accepts(&self, text: &str) -> bool {
        let end = text
            .chars()
            .try_fold(0u32, |state, symbol| self.edges[state as usize].get(&symbol).copied());
        end.is_some_and(|state| self.accepting[state as usize])
    }
}

fn either(one: Regex, other: Regex) -> Regex {
    match (one, other) {
        (Regex::Empty, Regex::Empty) => Regex::Empty,
        (Regex::Empty, other) | (other, Regex::Empty) => other.optional(),
        (Regex::Class(one), Regex::Class(other)) => Regex::Class(one.union(&other)),
        (one, other) => Regex::alternate([one, other]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{decimal::Decimal, matching::matches, numbers::simplified},
        *,
    };

    fn condition() -> impl Strategy<Value = Condition> {
        let bound = prop::sample::select(vec![
            "0", "1", "-1", "12", "-120", "0.5", "9.95", "-0.07", "1e3", "1e-3", "100",
        ]);
        let divisor = prop::sample::select(vec!["1", "2", "3", "0.5", "0.05", "12", "2.5"]);
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
        fn spellings_are_accepted_by_their_values(
            conditions in prop::collection::btree_set(condition(), 1..4),
            texts in prop::collection::vec(spelling(), 40),
        ) {
            let automaton = automaton(&conditions, true, 100_000).expect("small");
            let regex = automaton.regex(5_000);
            let simple = simplified(&conditions, 50);
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
                let spelled = !text.contains(['e', 'E']) || !divided;
                prop_assert_eq!(automaton.accepts(&text), holds && spelled, "{}", text);
                if let Some(regex) = &regex {
                    prop_assert_eq!(matches(regex, &text), holds && spelled, "{} by regex", text);
                }
            }
        }

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

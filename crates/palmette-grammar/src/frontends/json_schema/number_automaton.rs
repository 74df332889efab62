//! Automata over the characters of JSON numbers: the numbers under conditions.
//!
//! Of the spellings of JSON they have those of which a finite automaton can tell the value: without exponent (`12.50`, leading
//! and trailing zeros as JSON allows them), and with an exponent after one digit before the point that is not zero
//! (`1.25e-7`); with a condition on divisibility only the former.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, hash_map::Entry};

use super::{
    number_reader::{Phase, SetReader, SetState},
    numbers::Condition,
};
use crate::{Budget, CharClass, Interrupted, Regex};

/// A deterministic automaton; state 0 is the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumberAutomaton {
    /// `edges[state][symbol]`; every state can reach an accepting one.
    pub(super) edges: Vec<BTreeMap<char, u32>>,
    pub(super) accepting: Vec<bool>,
}

/// The spellings of the numbers that meet all conditions of `set`, where whole numbers may have a fraction of zeros (`1.0`) if
/// `fractions`; `Err` when more than `max_states` states would be needed, or with why the budget stopped it.
pub(super) fn automaton(
    set: &BTreeSet<Condition>,
    fractions: bool,
    max_states: usize,
    budget: &mut Budget<'_>,
) -> Result<NumberAutomaton, Option<Interrupted>> {
    let reader = SetReader::new(set, fractions).map_err(|()| None)?;
    let start = State { phase: Phase::Start, negative: false, set: reader.start() };
    let mut ids: HashMap<_, _> = HashMap::from([(start.clone(), 0u32)]);
    let mut states = vec![start];
    let mut edges = Vec::new();
    let mut accepting = Vec::new();
    // Few steps lead to a state that is new, so only these are copied.
    let mut next = states[0].clone();
    while edges.len() < states.len() {
        let state = states[edges.len()].clone();
        accepting.push(state.accepts(&reader));
        let mut row = BTreeMap::new();
        for symbol in SYMBOLS {
            if !state.step(symbol, &reader, &mut next) {
                continue;
            }
            let id = *ids.entry_ref(&next).or_insert_with(|| {
                states.push(next.clone());
                states.len() as u32 - 1
            });
            row.insert(symbol, id);
        }
        if states.len() > max_states {
            return Err(None);
        }
        budget.spend(UNITS_PER_STATE)?;
        edges.push(row);
    }
    Ok(minimised(edges, accepting))
}

/// What a state costs: its steps by all symbols, and making the automaton least.
const UNITS_PER_STATE: u64 = 512;

const SYMBOLS: [char; 15] =
    ['-', '+', '.', 'e', 'E', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    phase: Phase,
    negative: bool,
    set: SetState,
}

impl State {
    /// Writes the state after a character into `next`; `false` where no number goes on so.
    fn step(&self, symbol: char, reader: &SetReader, next: &mut Self) -> bool {
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
            _ => return false,
        };
        (next.phase, next.negative) = (phase, self.negative || phase == Minus);
        reader.step(&self.set, self.phase, symbol, &mut next.set)
    }

    fn accepts(&self, reader: &SetReader) -> bool {
        use Phase::*;
        matches!(self.phase, Zero | First | Whole | Fraction | ExponentDigits)
            && reader.accepts(&self.set, self.negative)
    }
}

/// The least automaton of the same language, without states that lead nowhere; states in the order in which they are
/// found from the start.
fn minimised(edges: Vec<BTreeMap<char, u32>>, accepting: Vec<bool>) -> NumberAutomaton {
    let useful = useful_states(&edges, &accepting);
    let kept = |row: &BTreeMap<char, u32>| -> Vec<(char, u32)> {
        let edges = row.iter().map(|(&symbol, &to)| (symbol, to));
        edges.filter(|&(_, to)| useful[to as usize]).collect()
    };
    let rows: Vec<Vec<(char, u32)>> = edges.iter().map(kept).collect();
    let mut class: Vec<u32> = accepting.iter().map(|&accepts| u32::from(accepts)).collect();
    let mut num_classes = 0;
    // A state's class, and those that each symbol leads to.
    let mut look: Vec<(char, u32)> = Vec::new();
    loop {
        let mut ids: HashMap<Vec<(char, u32)>, u32> = HashMap::new();
        let mut next = Vec::with_capacity(class.len());
        for (row, &own) in rows.iter().zip(&class) {
            look.clear();
            look.push(('\0', own));
            look.extend(row.iter().map(|&(symbol, to)| (symbol, class[to as usize])));
            let fresh = ids.len() as u32;
            next.push(*ids.entry_ref(&look[..]).or_insert(fresh));
        }
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
        for &(symbol, to) in &rows[state] {
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

impl NumberAutomaton {
    /// The language as a regular expression, by eliminating states; `None` when it grows beyond `max_size` parts.
    pub(super) fn regex(&self, max_size: usize) -> Option<Regex> {
        // Node `n` is the one end; `n + 1` the start, so that no edge leads into it.
        let n = self.edges.len();
        if n > max_size {
            return None;
        }
        let mut ways = Ways::new(n + 2);
        for (from, row) in self.edges.iter().enumerate() {
            let mut classes: BTreeMap<usize, Vec<(char, char)>> = BTreeMap::new();
            for (&symbol, &to) in row {
                classes.entry(to as usize).or_default().push((symbol, symbol));
            }
            for (to, ranges) in classes {
                ways.add(from, to, Regex::Class(CharClass::new(ranges)), 1);
            }
            if self.accepting[from] {
                ways.add(from, n, Regex::Empty, 0);
            }
        }
        ways.add(n + 1, 0, Regex::Empty, 0);
        let mut left: Vec<usize> = (0..n).collect();
        while !left.is_empty() {
            let at = (0..left.len()).min_by_key(|&at| (ways.cost(left[at]), left[at]))?;
            let state = left.remove(at);
            let Removed { into, again, from } = ways.remove(state);
            for (enter, first) in &into {
                for (leave, last) in &from {
                    let parts = [Some(first), again.as_ref(), Some(last)];
                    let size: usize = parts.iter().flatten().map(|part| part.1).sum();
                    let path =
                        Regex::concat(parts.into_iter().flatten().map(|part| part.0.clone()));
                    if ways.add(*enter, *leave, path, size) > max_size {
                        return None;
                    }
                }
            }
        }
        Some(ways.texts.remove(&(n + 1, n)).map_or(Regex::Never, |(regex, _)| regex))
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

/// Texts that lead from one state to another, with their sizes.
struct Ways {
    texts: HashMap<(usize, usize), Text>,
    /// By state: those from which texts lead to it, and those to which they lead from it; itself not among them.
    sources: Vec<BTreeSet<usize>>,
    targets: Vec<BTreeSet<usize>>,
}

type Text = (Regex, usize);

/// What led through a state.
struct Removed {
    into: Vec<(usize, Text)>,
    /// From the state to itself, any number of times.
    again: Option<Text>,
    from: Vec<(usize, Text)>,
}

impl Ways {
    fn new(num_states: usize) -> Self {
        let none = vec![BTreeSet::new(); num_states];
        Self { texts: HashMap::new(), sources: none.clone(), targets: none }
    }

    /// Adds texts; gives the size of all that lead from the one to the other.
    fn add(&mut self, from: usize, to: usize, regex: Regex, size: usize) -> usize {
        if from != to {
            self.sources[to].insert(from);
            self.targets[from].insert(to);
        }
        match self.texts.entry((from, to)) {
            Entry::Vacant(new) => new.insert((regex, size)).1,
            Entry::Occupied(known) => {
                let known = known.into_mut();
                known.0 = either(std::mem::replace(&mut known.0, Regex::Never), regex);
                known.1 += size;
                known.1
            }
        }
    }

    /// How many ways lead through a state.
    fn cost(&self, state: usize) -> usize {
        self.sources[state].len() * self.targets[state].len()
    }

    fn remove(&mut self, state: usize) -> Removed {
        let again = self.texts.remove(&(state, state));
        let again = again.map(|(regex, size)| (regex.repeat(0, None), size + 1));
        let sources = std::mem::take(&mut self.sources[state]);
        let targets = std::mem::take(&mut self.targets[state]);
        for &from in &sources {
            self.targets[from].remove(&state);
        }
        for &to in &targets {
            self.sources[to].remove(&state);
        }
        let mut take = |from, to| self.texts.remove(&(from, to)).expect("a way of the state");
        let into = sources.iter().map(|&from| (from, take(from, state))).collect();
        let from = targets.iter().map(|&to| (to, take(state, to))).collect();
        Removed { into, again, from }
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
        super::{
            decimal::Decimal,
            matching::matches,
            number_text::{any_integer, any_number, tests::spelling},
            numbers::{Property, simplified},
        },
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

    proptest! {
        #[test]
        fn spellings_are_accepted_by_their_values(
            conditions in prop::collection::btree_set(condition(), 1..4),
            texts in prop::collection::vec(spelling(), 40),
        ) {
            let mut budget = Budget::unlimited();
            let automaton = automaton(&conditions, true, 100_000, &mut budget).expect("small");
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
        fn any_integer_is_what_its_automaton_spells(text in spelling(), fractions in any::<bool>()) {
            let integer = BTreeSet::from([Condition { property: Property::Integer, holds: true }]);
            let automaton = automaton(&integer, fractions, 100, &mut Budget::unlimited());
            let automaton = automaton.expect("small");
            prop_assert_eq!(matches(&any_integer(fractions), &text), automaton.accepts(&text));
        }
    }
}

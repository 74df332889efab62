//! The rules of an array: items in order, counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::HashMap;

use super::{
    arrays::{ArraySet, Count},
    cases::Cases,
    compile::Result,
    decimal::Decimal,
    emit::{Emitter, InScope},
    goals::GoalId,
    number_text,
    numbers::{self, NumberSet},
    strings::StringSet,
};
use crate::{NonterminalId, Regex, Symbol};

/// Limit on the items up to which each place has its own rule; beyond, repetitions are made of
/// halves.
const MAX_UNROLLED: u64 = 64;

/// Number of values that can be told apart by whether they came already: bits of a number.
const MAX_VALUES: u64 = 60;

/// Limit on remembered items that are counted.
const MAX_COUNTED: u64 = 1_000;

/// Limit on listed items with a terminal each; of more, the texts are remembered.
const MAX_ITEM_TERMINALS: usize = 1_000;

/// A value of a finite set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Scalar {
    Null,
    Bool(bool),
    String(Arc<str>),
    Number(Decimal),
}

/// State of the items so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Number of them, as far as it matters.
    length: u64,
    /// Number of each kind, as far as it matters.
    counts: Vec<u64>,
}

impl Emitter<'_, '_> {
    pub(super) fn array(&mut self, head: NonterminalId, array: &ArraySet) -> Result<()> {
        if self.scoped_array(head, array)? {
            return Ok(());
        }
        if let Some(unique) = array.unique
            && !self.is_unique_anyway(array, unique)
        {
            return self.unique_array(head, array, unique);
        }
        if !array.counts.is_empty() {
            return self.counted_array(head, array);
        }
        self.plain_array(head, array)
    }

    fn plain_array(&mut self, head: NonterminalId, array: &ArraySet) -> Result<()> {
        let (open, close, comma) = (self.punctuation("[")?, self.punctuation("]")?, self.comma()?);
        if array.min == 0 {
            self.rule(head, vec![open, close])?;
        }
        // Each place up to where all items are alike.
        let (min, alike) = (array.min.max(1), array.prefix.len() as u64 + 1);
        let far = min.max(array.max.unwrap_or(0));
        let unrolled = if far <= MAX_UNROLLED.max(alike) { far.max(alike) } else { alike };
        let unrolled = array.max.map_or(unrolled, |max| unrolled.min(max));
        let mut last = None;
        for at in 0..unrolled {
            let Some(item) = self.item_value(array.item(at))? else { return Ok(()) };
            let items = self.part("items");
            let body = match last {
                None => vec![open, item],
                Some(before) => vec![Symbol::Nonterminal(before), comma, item],
            };
            self.rule(items, body)?;
            if at + 1 >= array.min {
                self.rule(head, vec![Symbol::Nonterminal(items), close])?;
            }
            last = Some(items);
        }
        let Some(last) = last else { return Ok(()) };
        let more = match array.max {
            Some(max) if max == unrolled => return Ok(()),
            Some(max) => Some(max - unrolled),
            None => None,
        };
        let Some(item) = self.item_value(array.rest)? else { return Ok(()) };
        let next = self.part("item");
        self.rule(next, vec![comma, item])?;
        let least = array.min.saturating_sub(unrolled);
        match more {
            None if least == 0 => {
                self.rule(last, vec![Symbol::Nonterminal(last), Symbol::Nonterminal(next)])
            }
            None => {
                let enough = self.part("items");
                let mut body = vec![Symbol::Nonterminal(last)];
                body.extend(self.exactly(next, least, &mut BTreeMap::new())?);
                self.rule(enough, body)?;
                self.rule(enough, vec![Symbol::Nonterminal(enough), Symbol::Nonterminal(next)])?;
                self.rule(head, vec![Symbol::Nonterminal(enough), close])
            }
            Some(more) => {
                let mut powers = BTreeMap::new();
                let mut body = vec![Symbol::Nonterminal(last)];
                body.extend(self.exactly(next, least, &mut powers)?);
                body.extend(self.at_most(next, more - least, &mut powers)?);
                body.push(close);
                self.rule(head, body)
            }
        }
    }

    /// `times` of `one`: a sum of powers of two.
    fn exactly(
        &mut self,
        one: NonterminalId,
        times: u64,
        powers: &mut BTreeMap<u64, NonterminalId>,
    ) -> Result<Vec<Symbol>> {
        let bits = (0..64).rev().filter(|bit| times >> bit & 1 == 1);
        bits.map(|bit| Ok(Symbol::Nonterminal(self.power(one, 1 << bit, powers)?))).collect()
    }

    /// `times` (a power of two) of `one`.
    fn power(
        &mut self,
        one: NonterminalId,
        times: u64,
        powers: &mut BTreeMap<u64, NonterminalId>,
    ) -> Result<NonterminalId> {
        if times == 1 {
            return Ok(one);
        }
        if let Some(&found) = powers.get(&times) {
            return Ok(found);
        }
        let half = Symbol::Nonterminal(self.power(one, times / 2, powers)?);
        let twice = self.part("items");
        self.rule(twice, vec![half, half])?;
        powers.insert(times, twice);
        Ok(twice)
    }

    /// At most `times` repetitions of `one`: either fewer than the greatest power of two within, or
    /// that many and then some.
    fn at_most(
        &mut self,
        one: NonterminalId,
        times: u64,
        powers: &mut BTreeMap<u64, NonterminalId>,
    ) -> Result<Vec<Symbol>> {
        // `fewer[k]`: fewer than 2^k.
        let mut fewer: Vec<Vec<Symbol>> = vec![Vec::new()];
        let Some(top) = times.checked_ilog2() else { return Ok(Vec::new()) };
        for bit in 0..top {
            let less = fewer[bit as usize].clone();
            let part = self.part("items");
            let power = Symbol::Nonterminal(self.power(one, 1 << bit, powers)?);
            self.rule(part, less.clone())?;
            self.rule(part, [vec![power], less].concat())?;
            fewer.push(vec![Symbol::Nonterminal(part)]);
        }
        // From the lowest bit of `times` up: at most the number that its lower bits make.
        let mut most: Vec<Symbol> = Vec::new();
        for bit in (0..=top).filter(|bit| times >> bit & 1 == 1) {
            let part = self.part("items");
            let power = Symbol::Nonterminal(self.power(one, 1 << bit, powers)?);
            self.rule(part, fewer[bit as usize].clone())?;
            self.rule(part, [vec![power], most].concat())?;
            most = vec![Symbol::Nonterminal(part)];
        }
        Ok(most)
    }

    /// An array of whose items some kinds are counted.
    fn counted_array(&mut self, head: NonterminalId, array: &ArraySet) -> Result<()> {
        let (open, close, comma) = (self.punctuation("[")?, self.punctuation("]")?, self.comma()?);
        let max_states = self.compiler.options.limits.max_states;
        let far = array.counts.iter().map(|count| count.from).max().unwrap_or(0);
        let far = far.max(array.prefix.len() as u64).max(array.min).max(array.max.unwrap_or(0));
        let start = State { length: 0, counts: vec![0; array.counts.len()] };
        let mut states = vec![start];
        let mut ids: HashMap<State, NonterminalId> = HashMap::new();
        let mut done = 0;
        while done < states.len() {
            let state = states[done].clone();
            let before = ids.get(&state).filter(|_| done > 0).copied();
            done += 1;
            let enough = state.length >= array.min
                && array.counts.iter().zip(&state.counts).all(|(count, &had)| had >= count.min);
            if enough {
                self.rule(head, vec![before.map_or(open, Symbol::Nonterminal), close])?;
            }
            if array.max.is_some_and(|max| state.length >= max) {
                continue;
            }
            for (item, counts) in self.kinds(array, &state) {
                let Some(item) = self.item_value(item)? else { continue };
                let next = State { length: (state.length + 1).min(far), counts };
                let to = match ids.get(&next) {
                    Some(&to) => to,
                    None => {
                        let to = self.part("items");
                        ids.insert(next.clone(), to);
                        states.push(next);
                        self.within_states(states.len(), max_states)?;
                        to
                    }
                };
                let body = match before {
                    None => vec![open, item],
                    Some(before) => vec![Symbol::Nonterminal(before), comma, item],
                };
                self.rule(to, body)?;
            }
        }
        Ok(())
    }

    /// The next item in each way in which it can count: its goal and the counts after it.
    fn kinds(&mut self, array: &ArraySet, state: &State) -> Vec<(GoalId, Vec<u64>)> {
        let item = array.item(state.length);
        let mut kinds = vec![(item, Vec::new())];
        for (count, &had) in array.counts.iter().zip(&state.counts) {
            let Count { from, goal, opposite, min, max } = count;
            let mut next = Vec::new();
            for (item, counts) in kinds {
                let mut push = |item: GoalId, now: u64| {
                    if item != GoalId::NEVER {
                        next.push((item, counts.iter().copied().chain([now]).collect()));
                    }
                };
                // Without an upper bound, an item that is not counted may be anything; and when
                // there are enough, none needs to be.
                if state.length < *from || (max.is_none() && had >= *min) {
                    push(item, had);
                    continue;
                }
                let goals = &mut self.compiler.goals;
                if max.is_none_or(|max| had < max) {
                    push(goals.all_of([item, *goal]), had + 1);
                }
                push(if max.is_some() { goals.all_of([item, *opposite]) } else { item }, had);
            }
            kinds = next;
        }
        kinds
    }

    /// True when no two items of an array can be equal, whatever they are.
    fn is_unique_anyway(&mut self, array: &ArraySet, unique: bool) -> bool {
        let Some(max) = array.max.filter(|&max| unique && max <= 16) else { return false };
        (0..max).all(|at| {
            (0..at).all(|before| {
                let both = [array.item(before), array.item(at)];
                let both = self.compiler.goals.all_of(both);
                self.compiler.is_empty(both)
            })
        })
    }

    /// An array of strings none of which comes twice: a scope of distinct names, of which the rules
    /// count as many as there are. `false` where it is none.
    ///
    /// Cost: in proportion to the items that are counted and the listed ones.
    fn unique_strings(&mut self, head: NonterminalId, array: &ArraySet) -> Result<bool> {
        let cases = self.compiler.goal_cases(array.item(0))?;
        let strings = Cases { strings: cases.strings.clone(), ..Cases::none() };
        let is_plain =
            array.prefix.is_empty() && array.counts.is_empty() && array.unique == Some(true);
        if !is_plain || *cases != strings || cases.strings.is_empty() {
            return Ok(false);
        }
        let mut listed = BTreeSet::new();
        let mut others = Vec::new();
        for set in &cases.strings {
            match set {
                StringSet::OneOf(texts) => listed.extend(texts.iter().cloned()),
                StringSet::All { .. } => others.push(set.regex()),
            }
        }
        let at_most = others.is_empty().then_some(listed.len() as u64);
        let max = match (array.max, at_most) {
            (Some(max), Some(at_most)) => Some(max.min(at_most)),
            (max, at_most) => max.or(at_most),
        };
        let counted = max.unwrap_or(array.min.max(1));
        if counted > MAX_COUNTED || array.min > MAX_COUNTED {
            return Ok(false);
        }
        let item = self.part("item");
        let literals = listed.iter().map(|text| Regex::literal(text));
        let remembered = match listed.len() <= MAX_ITEM_TERMINALS {
            false => Regex::alternate(others.into_iter().chain(literals)),
            true => {
                for text in &listed {
                    let scope = InScope::OneName(Arc::clone(text));
                    let symbol = self.item(&Regex::literal(text), scope)?;
                    self.rule(item, vec![symbol])?;
                }
                // A listed text is remembered by its own terminal alone.
                let unlisted = Regex::complement(Regex::alternate(literals));
                match others.is_empty() {
                    true => Regex::Never,
                    false => Regex::and([Regex::alternate(others), unlisted]),
                }
            }
        };
        if remembered != Regex::Never {
            let symbol = self.item(&remembered, InScope::ManyNames)?;
            self.rule(item, vec![symbol])?;
        }
        self.counted_scope(head, Symbol::Nonterminal(item), array.min, max)?;
        Ok(true)
    }

    /// `[`, from `min` to `max` items, `]`, in a scope of distinct names.
    fn counted_scope(
        &mut self,
        head: NonterminalId,
        item: Symbol,
        min: u64,
        max: Option<u64>,
    ) -> Result<()> {
        let open = self.brace("[", Some(InScope::Open))?;
        let close = self.brace("]", Some(InScope::Close))?;
        let comma = self.comma_of(Some(InScope::Comma))?;
        if min == 0 {
            self.rule(head, vec![open, close])?;
        }
        let mut before = None;
        for length in 1..=max.unwrap_or(min.max(1)) {
            let items = self.part("items");
            let body = match before {
                None => vec![open, item],
                Some(before) => vec![Symbol::Nonterminal(before), comma, item],
            };
            self.rule(items, body)?;
            if length >= min {
                self.rule(head, vec![Symbol::Nonterminal(items), close])?;
            }
            before = Some(items);
        }
        if let (None, Some(last)) = (max, before) {
            self.rule(last, vec![Symbol::Nonterminal(last), comma, item])?;
        }
        Ok(())
    }

    /// An array of finitely many possible items, none (or with `unique` false: some) of which comes
    /// twice.
    fn unique_array(&mut self, head: NonterminalId, array: &ArraySet, unique: bool) -> Result<()> {
        let places = array.prefix.len() as u64 + 1;
        let mut values: Vec<Scalar> = Vec::new();
        let mut numbers: HashMap<Scalar, usize> = HashMap::new();
        let mut allowed: Vec<Vec<usize>> = Vec::new();
        for at in 0..places {
            let Some(scalars) = self.scalars(array.item(at))? else {
                if self.unique_strings(head, array)?
                    || unique && self.unique_members(head, array)?
                {
                    return Ok(());
                }
                return self.not_unique(head, array, "the items have infinitely many values");
            };
            self.compiler.tick(1 + scalars.len())?;
            let number = |scalar: Scalar| {
                *numbers.entry(scalar).or_insert_with_key(|scalar| {
                    values.push(scalar.clone());
                    values.len() - 1
                })
            };
            allowed.push(scalars.into_iter().map(number).collect());
        }
        if !array.counts.is_empty() {
            return self.not_unique(head, array, "beside contains");
        }
        let max_states = self.compiler.options.limits.max_states;
        let subsets = subsets(values.len() as u64, array.max);
        if values.len() as u64 > MAX_VALUES || subsets > max_states as u64 {
            if self.unique_strings(head, array)? {
                return Ok(());
            }
            let reason = format!(
                "{} values have more subsets than the limit `max_states` = {max_states} has states",
                values.len()
            );
            return self.not_unique(head, array, &reason);
        }
        let symbols: Vec<Symbol> =
            values.iter().map(|value| self.scalar(value)).collect::<Result<_>>()?;
        let (open, close, comma) = (self.punctuation("[")?, self.punctuation("]")?, self.comma()?);
        let far = places.max(array.min).max(array.max.unwrap_or(0));
        // (values seen, whether one came twice, length as far as it matters)
        let mut states = vec![(0u64, false, 0u64)];
        let mut ids: HashMap<(u64, bool, u64), NonterminalId> = HashMap::new();
        let mut done = 0;
        while done < states.len() {
            let state @ (seen, twice, length) = states[done];
            let before = ids.get(&state).filter(|_| done > 0).copied();
            done += 1;
            if length >= array.min && twice != unique {
                self.rule(head, vec![before.map_or(open, Symbol::Nonterminal), close])?;
            }
            if array.max.is_some_and(|max| length >= max) {
                continue;
            }
            for &value in &allowed[length.min(places - 1) as usize] {
                let again = seen >> value & 1 == 1;
                if again && unique {
                    continue;
                }
                let next = (seen | 1 << value, twice || again, (length + 1).min(far));
                let to = match ids.get(&next) {
                    Some(&to) => to,
                    None => {
                        let to = self.part("items");
                        ids.insert(next, to);
                        states.push(next);
                        self.within_states(states.len(), max_states)?;
                        to
                    }
                };
                let item = symbols[value];
                let body = match before {
                    None => vec![open, item],
                    Some(before) => vec![Symbol::Nonterminal(before), comma, item],
                };
                self.rule(to, body)?;
            }
        }
        Ok(())
    }

    /// `uniqueItems` that cannot be: a warning, or an error when the caller wants it.
    fn not_unique(&mut self, head: NonterminalId, array: &ArraySet, why: &str) -> Result<()> {
        let at = array.unique_at.unwrap_or(self.compiler.root());
        let message = format!("items that come twice are not told apart: {why}");
        let way_out = "leave it out, let the items be strings or list the possible ones";
        self.compiler.relaxed(at, &message, way_out)?;
        let relaxed = ArraySet { unique: None, ..array.clone() };
        self.array(head, &relaxed)
    }

    /// All values of a goal, when they are finitely many and no arrays or objects.
    fn scalars(&mut self, goal: GoalId) -> Result<Option<Vec<Scalar>>> {
        let cases = self.compiler.goal_cases(goal)?;
        if !cases.arrays.is_empty() || !cases.objects.is_empty() || !cases.members.is_empty() {
            return Ok(None);
        }
        let mut scalars = Vec::new();
        scalars.extend(cases.null.then_some(Scalar::Null));
        scalars.extend(cases.falsity.then_some(Scalar::Bool(false)));
        scalars.extend(cases.truth.then_some(Scalar::Bool(true)));
        for set in &cases.strings {
            match set {
                StringSet::OneOf(texts) => {
                    scalars.extend(texts.iter().cloned().map(Scalar::String))
                }
                StringSet::All { max: Some(0), .. } if set.contains("") => {
                    scalars.push(Scalar::String("".into()));
                }
                StringSet::All { .. } => return Ok(None),
            }
        }
        for set in &cases.numbers {
            match set {
                NumberSet::OneOf(numbers) => {
                    scalars.extend(numbers.iter().cloned().map(Scalar::Number));
                }
                NumberSet::All(conditions) => match numbers::simplified(conditions, MAX_VALUES) {
                    None => {}
                    Some(NumberSet::OneOf(numbers)) => {
                        scalars.extend(numbers.into_iter().map(Scalar::Number));
                    }
                    Some(NumberSet::All(_)) => return Ok(None),
                },
            }
        }
        scalars.sort();
        scalars.dedup();
        Ok(Some(scalars))
    }

    fn scalar(&mut self, scalar: &Scalar) -> Result<Symbol> {
        match scalar {
            Scalar::Null => self.punctuation(self.spelling.notation().words[0]),
            Scalar::Bool(true) => self.punctuation(self.spelling.notation().words[1]),
            Scalar::Bool(false) => self.punctuation(self.spelling.notation().words[2]),
            Scalar::String(text) => {
                let head = self.part("string");
                self.strings(head, &[StringSet::OneOf([Arc::clone(text)].into())])?;
                Ok(Symbol::Nonterminal(head))
            }
            Scalar::Number(number) => {
                let fractions = self.compiler.options.integer_fractions;
                self.token("number", number_text::literal(number, fractions, true))
            }
        }
    }
}

/// Number of subsets of at most `max` elements that a set of `size` has; more than there are
/// numbers: the greatest number.
fn subsets(size: u64, max: Option<u64>) -> u64 {
    let mut total = 0u64;
    let mut choose = 1u128;
    for chosen in 0..=size.min(max.unwrap_or(size)) {
        total = total.saturating_add(u64::try_from(choose).unwrap_or(u64::MAX));
        choose = (choose * u128::from(size - chosen)) / u128::from(chosen + 1);
        choose = choose.min(u128::from(u64::MAX));
    }
    total
}

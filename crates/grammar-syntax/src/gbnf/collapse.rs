//! Regular rules, collapsed into expressions.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use super::syntax::{Definition, Expression, Kind};
use crate::{Budget, Interrupted, Regex};

/// Rules whose expression would be larger than this, counted as a tree, stay rules.
const MAX_SIZE: usize = 20_000;
/// Rules whose expression would be deeper stay rules.
const MAX_DEPTH: usize = 200;

/// A regular expression and its measures as a tree.
#[derive(Clone, Debug)]
pub(super) struct Collapsed {
    pub(super) regex: Regex,
    measure: Measure,
}

impl Collapsed {
    /// Number of nodes as a tree.
    pub(super) fn size(&self) -> usize {
        self.measure.size
    }
}

/// Size of expressions together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measure {
    size: usize,
    depth: usize,
}

impl Measure {
    pub(super) fn with(self, part: &Collapsed) -> Self {
        let Self { size, depth } = part.measure;
        Self { size: self.size + size, depth: self.depth.max(depth) }
    }

    /// True when an expression of these parts is small enough.
    pub(super) fn is_small(self) -> bool {
        self.size < MAX_SIZE && self.depth < MAX_DEPTH
    }
}

/// The regular rules of a grammar.
pub(super) struct Regular<'a> {
    index: BTreeMap<&'a str, usize>,
    /// Expressions by rule; `None` for rules that are not regular.
    rules: Vec<Option<Collapsed>>,
    budget: RefCell<Budget<'a>>,
    /// Once set, nothing is regular any more: what is made then is thrown away.
    stopped: Cell<Option<Interrupted>>,
}

/// Cost of a node of an expression.
const UNITS_PER_NODE: usize = 8;

impl<'a> Regular<'a> {
    /// Collapses the rules all of whose references are in `index`.
    ///
    /// A rule is regular when all the rules it mentions are, or when it mentions itself besides and
    /// only as the last or only as the first thing (`ws ::= [ \n] ws | ""`).
    pub(super) fn find(
        rules: &'a [Definition],
        index: BTreeMap<&'a str, usize>,
        budget: Budget<'a>,
    ) -> Self {
        let (budget, stopped) = (RefCell::new(budget), Cell::new(None));
        let mut found = Self { index, rules: vec![None; rules.len()], budget, stopped };
        let mut missing = vec![0; rules.len()];
        let mut mentioned_in = vec![Vec::new(); rules.len()];
        for (at, rule) in rules.iter().enumerate() {
            let mut mentions = BTreeSet::new();
            rule.body.references(&mut |name, _| _ = mentions.insert(found.index[name]));
            mentions.remove(&at);
            missing[at] = mentions.len();
            mentions.into_iter().for_each(|other| mentioned_in[other].push(at));
        }
        let mut ready: Vec<_> = (0..rules.len()).filter(|&at| missing[at] == 0).collect();
        while let Some(at) = ready.pop() {
            found.rules[at] = found.rule(&rules[at]);
            if found.rules[at].is_none() {
                continue;
            }
            for &other in &mentioned_in[at] {
                missing[other] -= 1;
                if missing[other] == 0 {
                    ready.push(other);
                }
            }
        }
        found
    }

    /// Reason that nothing is regular any more.
    pub(super) fn stopped(&self) -> Option<Interrupted> {
        self.stopped.get()
    }

    /// Leaves what is left of the budget.
    pub(super) fn join(&self, budget: &mut Budget<'_>) {
        budget.join(&self.budget.borrow());
    }

    /// Takes nodes off the budget; `None` once it is used up.
    pub(super) fn spend(&self, nodes: usize) -> Option<()> {
        let stopped = self.budget.borrow_mut().spend((nodes * UNITS_PER_NODE) as u64).err();
        self.stopped.set(self.stopped.get().or(stopped));
        self.stopped.get().is_none().then_some(())
    }

    fn rule(&self, rule: &Definition) -> Option<Collapsed> {
        self.expression(&rule.body).or_else(|| {
            [true, false].into_iter().find_map(|last| {
                // x = before x | end is before* end.
                let (before, end) = self.linear(&rule.body, &rule.name, last)?;
                let again = sized(before.regex.clone().repeat(0, None), [&before])?;
                in_order(again, end, last)
            })
        })
    }

    /// `expression` as a regular expression, if it is regular and not too large.
    pub(super) fn expression(&self, expression: &Expression) -> Option<Collapsed> {
        self.spend(1)?;
        let all = |parts: &[Expression]| {
            parts.iter().map(|part| self.expression(part)).collect::<Option<Vec<_>>>()
        };
        match &expression.kind {
            Kind::Literal(text) => Some(leaf(Regex::literal(text))),
            Kind::Class(class) if class.is_empty() => Some(leaf(Regex::Never)),
            Kind::Class(class) => Some(leaf(Regex::Class(class.clone()))),
            Kind::Pattern(regex) => Some(leaf(regex.clone())),
            // A token has no text, and is a terminal of its own.
            Kind::Tokens(_) | Kind::Members(_) | Kind::FreeText(_) | Kind::Embedded(_) => None,
            Kind::Reference(name) => self.rules[self.index[&**name]].clone(),
            Kind::Sequence(parts) => sequence(&all(parts)?),
            Kind::Choice(options) => choice(&all(options)?),
            Kind::Repeat(inner, min, max) => {
                let inner = self.expression(inner)?;
                sized(inner.regex.clone().repeat(*min, *max), [&inner])
            }
        }
    }

    /// Neighbours before (`last`) or after the rule `own` in `expression`, and what `expression` is
    /// without it.
    fn linear(
        &self,
        expression: &Expression,
        own: &str,
        last: bool,
    ) -> Option<(Collapsed, Collapsed)> {
        if let Some(regular) = self.expression(expression) {
            return Some((leaf(Regex::Never), regular));
        }
        match &expression.kind {
            Kind::Reference(name) if name == own => Some((leaf(Regex::Empty), leaf(Regex::Never))),
            Kind::Sequence(parts) => {
                let (tail, others) = match last {
                    true => parts.split_last()?,
                    false => parts.split_first()?,
                };
                let others = others.iter().map(|part| self.expression(part));
                let others = sequence(&others.collect::<Option<Vec<_>>>()?)?;
                let (before, end) = self.linear(tail, own, last)?;
                Some((in_order(others.clone(), before, last)?, in_order(others, end, last)?))
            }
            Kind::Choice(options) => {
                let options = options.iter().map(|option| self.linear(option, own, last));
                let (befores, ends): (Vec<_>, Vec<_>) =
                    options.collect::<Option<Vec<_>>>()?.into_iter().unzip();
                Some((choice(&befores)?, choice(&ends)?))
            }
            Kind::Repeat(inner, 0, Some(1)) => {
                let (before, end) = self.linear(inner, own, last)?;
                Some((before, choice(&[end, leaf(Regex::Empty)])?))
            }
            _ => None,
        }
    }
}

/// The concatenation of parts, if that is not too large.
pub(super) fn sequence(parts: &[Collapsed]) -> Option<Collapsed> {
    sized(Regex::concat(parts.iter().map(|part| part.regex.clone())), parts)
}

/// The union of options, if that is not too large.
pub(super) fn choice(options: &[Collapsed]) -> Option<Collapsed> {
    sized(Regex::alternate(options.iter().map(|option| option.regex.clone())), options)
}

fn in_order(outer: Collapsed, inner: Collapsed, last: bool) -> Option<Collapsed> {
    sequence(&if last { [outer, inner] } else { [inner, outer] })
}

fn leaf(regex: Regex) -> Collapsed {
    Collapsed { regex, measure: Measure { size: 1, depth: 1 } }
}

fn sized<'a>(regex: Regex, parts: impl IntoIterator<Item = &'a Collapsed>) -> Option<Collapsed> {
    let parts = parts.into_iter().fold(Measure::default(), Measure::with);
    let measure = Measure { size: parts.size + 1, depth: parts.depth + 1 };
    parts.is_small().then_some(Collapsed { regex, measure })
}

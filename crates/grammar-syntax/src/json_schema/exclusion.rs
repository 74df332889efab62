//! Patterns that exclude one another: expressions with no text in common.
//!
//! Names and strings are told apart by the patterns that they match. Of eleven patterns there are
//! two thousand sets; where no text matches two of them, there are twelve. That a set is empty is
//! found by a search through derivatives, before the counts of characters make it long.

use hashbrown::HashMap;
use palmette_grammar_regex::expressions::{ExprId, ExpressionLimits, Expressions};

use super::strings::{StringSet, Texts, begin_otherwise};
use crate::Budget;

/// Work of one question; one that takes more is answered as if there were a text.
const MAX_WORK: u64 = 2_000_000;

const LIMITS: ExpressionLimits =
    ExpressionLimits { max_expressions: 400_000, max_nesting: 1_000, max_visited: 2_000 };

/// Work of all questions of one schema; what is asked after that is answered as if there were a
/// text.
const MAX_WORK_OF_ALL: u64 = 200_000_000;

/// Memory of what excludes what.
#[derive(Debug)]
pub(super) struct Exclusions {
    work_left: u64,
    expressions: Option<Expressions>,
    compiled: HashMap<Texts, Option<ExprId>>,
    /// Answers about pairs, the lesser first.
    known: HashMap<(ExprId, ExprId), bool>,
}

impl Exclusions {
    /// A memory without answers.
    pub(super) fn new() -> Self {
        let (compiled, known) = Default::default();
        Self { work_left: MAX_WORK_OF_ALL, expressions: None, compiled, known }
    }

    /// False when the patterns of a set, two at a time, show that it is empty.
    pub(super) fn may_be(&mut self, set: &StringSet) -> bool {
        let StringSet::All { all, .. } = set else { return true };
        let compiled: Vec<ExprId> = match all.len() {
            0 | 1 => return true,
            _ => all.iter().filter_map(|texts| self.compile(texts)).collect(),
        };
        for (at, &one) in compiled.iter().enumerate() {
            for &other in &compiled[at + 1..] {
                if self.exclude(one, other) {
                    return false;
                }
            }
        }
        true
    }

    /// False when all patterns of a set together show that it is empty.
    pub(super) fn may_be_at_once(&mut self, set: &StringSet) -> bool {
        let StringSet::All { all, .. } = set else { return true };
        let compiled: Vec<ExprId> = all.iter().filter_map(|texts| self.compile(texts)).collect();
        !self.is_empty(&compiled)
    }

    /// True when it is certain that no text matches both.
    pub(super) fn are_apart(&mut self, one: &Texts, other: &Texts) -> bool {
        if begin_otherwise(one.regex(), other.regex()) {
            return true;
        }
        match (self.compile(one), self.compile(other)) {
            (Some(one), Some(other)) => self.exclude(one, other),
            _ => false,
        }
    }

    fn exclude(&mut self, one: ExprId, other: ExprId) -> bool {
        let pair = (one.min(other), one.max(other));
        if let Some(&known) = self.known.get(&pair) {
            return known;
        }
        let found = self.is_empty(&[one, other]);
        self.known.insert(pair, found);
        found
    }

    /// True when it is certain that no text matches all of some expressions.
    fn is_empty(&mut self, all: &[ExprId]) -> bool {
        let Some(expressions) = &mut self.expressions else { return false };
        let work = MAX_WORK.min(self.work_left);
        let budget = &mut Budget::new(work);
        let both = expressions.making(budget).and(all.iter().copied());
        let found = both.and_then(|both| expressions.making(budget).matches_something(both));
        self.work_left -= work - budget.left();
        found == Ok(false)
    }

    fn compile(&mut self, texts: &Texts) -> Option<ExprId> {
        if let Some(known) = self.compiled.get(texts) {
            return *known;
        }
        if self.expressions.is_none() {
            self.expressions = Expressions::new(LIMITS).ok();
        }
        let work = MAX_WORK.min(self.work_left);
        let budget = &mut Budget::new(work);
        let made = self.expressions.as_mut()?.making(budget).compile(texts.regex()).ok();
        self.work_left -= work - budget.left();
        self.compiled.insert(texts.clone(), made);
        made
    }
}

//! Interning of expressions, with the properties that each has from the start.

use std::{
    hash::BuildHasher,
    ops::{Deref, DerefMut},
};

use super::{
    Arm, Exceeded, ExprId, ExprResult, Expressions, Facts, Interned, Item, Node, PartitionId,
    Repeat, UNBOUNDED,
};
use crate::Budget;

/// Cost of finding an expression that is there, beside its parts.
const LOOK_UP: u64 = 8;
/// Cost of a new one beside that: its entry, its partition, what the empty lexeme asks of it.
const NEW: u64 = 64;

/// Expressions, and a budget to make more of them.
#[derive(Debug)]
pub struct Maker<'e, 'b> {
    expressions: &'e mut Expressions,
    budget: &'e mut Budget<'b>,
}

impl Deref for Maker<'_, '_> {
    type Target = Expressions;

    fn deref(&self) -> &Expressions {
        self.expressions
    }
}

impl DerefMut for Maker<'_, '_> {
    fn deref_mut(&mut self) -> &mut Expressions {
        self.expressions
    }
}

impl<'e, 'b> Maker<'e, 'b> {
    pub(super) fn new(expressions: &'e mut Expressions, budget: &'e mut Budget<'b>) -> Self {
        Self { expressions, budget }
    }
}

impl Maker<'_, '_> {
    /// Notes work.
    pub fn spend(&mut self, units: u64) -> Result<(), Exceeded> {
        Ok(self.budget.spend(units)?)
    }

    pub(super) fn make_constants(&mut self) -> Result<(), Exceeded> {
        self.intern(Node::Never)?;
        self.intern(Node::Empty)?;
        self.intern(Node::Switch([Arm { low: 0, high: 255, then: ExprId::EMPTY }].into()))?;
        let all = Repeat { inner: ExprId::ANY_BYTE, min: 0, max: None, reluctant: false };
        self.intern(Node::Repeat(all))?;
        let any = self.class(&crate::CharClass::any())?;
        self.utf8 = self.repeat(any, 0, None)?;
        Ok(())
    }

    /// The expression of this shape. Its parts are simplified already.
    pub(super) fn intern(&mut self, node: Node) -> ExprResult {
        self.spend(LOOK_UP + node.num_parts())?;
        let hash = self.hasher.hash_one(&node);
        let nodes = &self.nodes;
        let same = |known: &Interned| known.hash == hash && nodes[known.id.index()] == node;
        if let Some(known) = self.ids.find(hash, same) {
            return Ok(known.id);
        }
        self.spend(NEW + node.num_parts())?;
        let facts = self.facts_of(&node)?;
        if facts.reach > self.limits.max_nesting {
            return Err(Exceeded::Nesting(self.limits.max_nesting));
        }
        if self.nodes.len() >= self.limits.max_expressions {
            return Err(Exceeded::Expressions(self.limits.max_expressions));
        }
        let id = ExprId(self.nodes.len() as u32);
        self.list_bytes += node.list_bytes();
        self.nodes.push(node);
        self.facts.push(facts);
        self.ids.insert_unique(hash, Interned { id, hash }, |known| known.hash);
        Ok(id)
    }

    fn facts_of(&mut self, node: &Node) -> Result<Facts, Exceeded> {
        // A part whose derivative is not needed before another part has ended is not descended to.
        let mut facts = Facts {
            null: self.null_of(node)?,
            partition: PartitionId::TRIVIAL,
            behind: false,
            ahead: false,
            plain: true,
            at_end: false,
            reach: 0,
            shortest: self.shortest_of(node, false),
            distance: self.shortest_of(node, true),
            longest: self.longest_of(node),
            greatest_bound: self.greatest_bound_of(node),
            has_lexemes: None,
            can_hold: None,
        };
        facts.at_end = match node {
            Node::Never | Node::Switch(_) | Node::Grows(_) | Node::Longer(_) => false,
            Node::Empty => true,
            Node::Multiple(of) => of.may_end(),
            Node::Concat(a, b) => self.facts(*a).at_end && self.facts(*b).at_end,
            Node::Or(parts) | Node::Ordered(parts) => {
                parts.iter().any(|&part| self.facts(part).at_end)
            }
            Node::And(parts) => parts.iter().all(|&part| self.facts(part).at_end),
            Node::Not(inner) => !self.facts(*inner).at_end,
            Node::Unordered(inner) | Node::Whole(inner) => self.facts(*inner).at_end,
            Node::Repeat(repeat) => repeat.min == 0 || self.facts(repeat.inner).at_end,
            Node::Behind { history, negated } => self.facts(*history).at_end != *negated,
            Node::Given { condition, inner } => {
                self.facts(*condition).at_end && self.facts(*inner).at_end
            }
            Node::First(items) => items.iter().any(
                |item| matches!(item, Item::Match(condition) if self.facts(*condition).at_end),
            ),
        };
        match node {
            Node::Never | Node::Empty => {}
            Node::Switch(arms) => facts.partition = self.partitions.of_arms(arms),
            Node::Multiple(_) => facts.partition = self.partitions.of_digits(),
            Node::Concat(a, b) => {
                self.add_part(&mut facts, *a);
                let null = self.facts(*a).null;
                let begins = null != ExprId::NEVER;
                if begins {
                    self.add_condition(&mut facts, null);
                }
                if begins || self.facts(*b).behind {
                    self.add_part(&mut facts, *b);
                } else {
                    facts.ahead |= self.facts(*b).ahead;
                    facts.plain &= self.facts(*b).plain;
                }
            }
            Node::Or(parts) | Node::Ordered(parts) => {
                parts.iter().for_each(|&part| self.add_part(&mut facts, part));
            }
            Node::And(parts) => {
                parts.iter().for_each(|&part| self.add_part(&mut facts, part));
                facts.plain = false;
            }
            Node::Not(inner) => {
                self.add_part(&mut facts, *inner);
                facts.plain = false;
            }
            Node::Repeat(repeat) => {
                self.add_part(&mut facts, repeat.inner);
                self.add_condition(&mut facts, self.facts(repeat.inner).null);
            }
            Node::Unordered(inner) => self.add_part(&mut facts, *inner),
            Node::Behind { history, .. } => {
                self.add_part(&mut facts, *history);
                (facts.behind, facts.plain) = (true, false);
            }
            Node::Given { condition, inner } => {
                self.add_part(&mut facts, *inner);
                self.add_condition(&mut facts, *condition);
                (facts.ahead, facts.plain) = (true, false);
            }
            Node::First(items) => {
                for item in items {
                    match *item {
                        Item::Match(condition) => facts.plain &= condition == ExprId::ALL,
                        Item::Go(part) => self.add_part(&mut facts, part),
                    }
                }
                facts.ahead = true;
            }
            Node::Whole(inner) => {
                self.add_part(&mut facts, *inner);
                (facts.ahead, facts.behind, facts.plain) = (false, false, false);
            }
            Node::Grows(inner) | Node::Longer(inner) => {
                self.add_part(&mut facts, *inner);
                (facts.ahead, facts.plain) = (true, false);
            }
        }
        Ok(facts)
    }

    /// Bytes of the shortest lexeme, or at least so many; where `in_turn`, parts of intersections
    /// are taken one after another.
    fn shortest_of(&self, node: &Node, in_turn: bool) -> u32 {
        let shortest = |of: &ExprId| match in_turn {
            true => self.facts(*of).distance,
            false => self.facts(*of).shortest,
        };
        let least = |parts: &[ExprId]| parts.iter().map(shortest).min().unwrap_or(0);
        match node {
            Node::Never => u32::MAX,
            Node::Multiple(of) => of.shortest(),
            Node::Empty | Node::Not(_) | Node::Behind { .. } => 0,
            Node::Grows(_) | Node::Longer(_) => 0,
            Node::Switch(arms) => {
                let rest = arms.iter().map(|arm| shortest(&arm.then)).min();
                rest.unwrap_or(0).saturating_add(1)
            }
            Node::Concat(a, b) => shortest(a).saturating_add(shortest(b)),
            Node::Or(parts) | Node::Ordered(parts) => least(parts),
            Node::And(parts) if in_turn => parts.iter().map(shortest).fold(0, u32::saturating_add),
            Node::And(parts) => parts.iter().map(shortest).max().unwrap_or(0),
            Node::Repeat(repeat) => shortest(&repeat.inner).saturating_mul(repeat.min),
            Node::Unordered(inner) | Node::Whole(inner) | Node::Given { inner, .. } => {
                shortest(inner)
            }
            Node::First(items) => {
                let of = |item: &Item| match item {
                    Item::Match(_) => 0,
                    Item::Go(way) => shortest(way).max(1),
                };
                items.iter().map(of).min().unwrap_or(0)
            }
        }
    }

    /// The counterpart of [`shortest_of`](Self::shortest_of) from above.
    fn longest_of(&self, node: &Node) -> u32 {
        let longest = |of: &ExprId| self.facts(*of).longest;
        match node {
            Node::Never | Node::Empty | Node::Behind { .. } => 0,
            Node::Switch(arms) => {
                let rest = arms.iter().map(|arm| longest(&arm.then)).max();
                rest.unwrap_or(0).saturating_add(1)
            }
            Node::Concat(a, b) => longest(a).saturating_add(longest(b)),
            Node::Or(parts) | Node::Ordered(parts) => parts.iter().map(longest).max().unwrap_or(0),
            Node::And(parts) => parts.iter().map(longest).min().unwrap_or(UNBOUNDED),
            Node::Repeat(Repeat { inner, max, .. }) => {
                longest(inner).saturating_mul(max.unwrap_or(UNBOUNDED))
            }
            Node::Unordered(inner) | Node::Whole(inner) | Node::Given { inner, .. } => {
                longest(inner)
            }
            Node::Not(_)
            | Node::Multiple(_)
            | Node::First(_)
            | Node::Grows(_)
            | Node::Longer(_) => UNBOUNDED,
        }
    }

    fn greatest_bound_of(&self, node: &Node) -> u32 {
        let mut greatest = match node {
            Node::Repeat(repeat) => repeat.max.unwrap_or(repeat.min).max(repeat.min),
            _ => 0,
        };
        node.parts(|part| greatest = greatest.max(self.facts(part).greatest_bound));
        greatest
    }

    /// The part's lexemes are part of the whole's.
    fn add_part(&mut self, facts: &mut Facts, part: ExprId) {
        let of = self.facts[part.index()];
        facts.behind |= of.behind;
        facts.ahead |= of.ahead;
        facts.plain &= of.plain;
        self.descend(facts, of);
    }

    /// A derivative also derives this condition.
    fn add_condition(&mut self, facts: &mut Facts, condition: ExprId) {
        let of = self.facts[condition.index()];
        facts.behind |= of.behind;
        self.descend(facts, of);
    }

    fn descend(&mut self, facts: &mut Facts, into: Facts) {
        facts.partition = self.partitions.join(facts.partition, into.partition);
        facts.reach = facts.reach.max(into.reach + 1);
    }

    fn null_of(&mut self, node: &Node) -> ExprResult {
        match node {
            Node::Never | Node::Switch(_) | Node::Grows(_) => Ok(ExprId::NEVER),
            Node::Empty => Ok(ExprId::ALL),
            Node::Multiple(of) => Ok(if of.may_end() { ExprId::ALL } else { ExprId::NEVER }),
            Node::Concat(a, b) => self.and([self.null(*a), self.null(*b)]),
            Node::Or(parts) | Node::Ordered(parts) => {
                let nulls: Vec<_> = parts.iter().map(|&part| self.null(part)).collect();
                self.or(nulls)
            }
            Node::And(parts) => {
                let nulls: Vec<_> = parts.iter().map(|&part| self.null(part)).collect();
                self.and(nulls)
            }
            Node::Not(inner) => self.not(self.null(*inner)),
            Node::Unordered(inner) => Ok(self.null(*inner)),
            Node::Whole(inner) => {
                Ok(if self.facts(*inner).at_end { ExprId::ALL } else { ExprId::NEVER })
            }
            Node::Repeat(repeat) if repeat.min == 0 => Ok(ExprId::ALL),
            Node::Repeat(repeat) => Ok(self.null(repeat.inner)),
            Node::Behind { history, negated: false } => Ok(self.null(*history)),
            Node::Behind { history, negated: true } => self.not(self.null(*history)),
            Node::Given { condition, inner } => self.and([*condition, self.null(*inner)]),
            Node::First(items) => self.first_null(items),
            Node::Longer(inner) => self.grows(*inner),
        }
    }
}

//! Rules and items as numbers.

use super::unhide::unhide;
use crate::rules::{RuleList, is};
use crate::{Grammar, NonterminalId, Symbol};

/// A rule's place in a [`RuleTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// A rule with a place in its body, the *dot*: `A → α · β`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemId(pub u32);

/// The rules of a reduced grammar without hidden left recursion, and `start' → start`, which is
/// [`RuleId::START`].
///
/// Rules of one head lie together. The items of one rule are consecutive, dot at the front first.
#[derive(Clone, Debug)]
pub struct RuleTable {
    rules: Vec<TableRule>,
    /// Symbols after the dot, by item.
    after: Vec<Option<Symbol>>,
    /// Rules by item.
    rule_of: Vec<RuleId>,
    /// Nullability by item: true where all that is after the dot is nullable.
    rest_nullable: Vec<bool>,
    /// The rules of nonterminal `a` are `first_rule[a]..first_rule[a + 1]`.
    first_rule: Vec<u32>,
    nullable: Vec<bool>,
    num_terminals: usize,
    /// The length of the longest body.
    longest: usize,
}

#[derive(Clone, Copy, Debug)]
struct TableRule {
    head: NonterminalId,
    first_item: ItemId,
    length: u32,
    origin: u32,
}

impl RuleId {
    /// `start' → start`.
    pub const START: Self = Self(0);

    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ItemId {
    /// The id as an index.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Item of this rule with the dot one symbol on.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Item of this rule with the dot one symbol back.
    pub(crate) fn previous(self) -> Self {
        Self(self.0 - 1)
    }
}

impl RuleTable {
    /// Memory behind the table.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.rules)
            + size_of_val(&*self.after)
            + size_of_val(&*self.rule_of)
            + size_of_val(&*self.rest_nullable)
            + size_of_val(&*self.first_rule)
            + size_of_val(&*self.nullable)
    }

    /// The rules of a grammar that sentences use, rewritten where they hide left recursion.
    pub fn new(grammar: &Grammar) -> Self {
        let mut list = RuleList::new(grammar);
        list.reduce();
        let before = list.num_nonterminals;
        unhide(&mut list);
        if list.num_nonterminals > before {
            list.reduce();
        }
        Self::from_list(list)
    }

    fn from_list(mut list: RuleList<'_>) -> Self {
        // The new start comes after all other nonterminals, its rule before all other rules.
        let new_start = NonterminalId(list.num_nonterminals as u32);
        let nullable = list.nullable();
        list.rules.sort_by_key(|rule| rule.head);
        let num_items = list.rules.iter().map(|rule| rule.body.len() + 1).sum::<usize>() + 2;
        let mut table = Self {
            rules: Vec::with_capacity(list.rules.len() + 1),
            after: Vec::with_capacity(num_items),
            rule_of: Vec::with_capacity(num_items),
            rest_nullable: Vec::with_capacity(num_items),
            first_rule: Vec::with_capacity(list.num_nonterminals + 1),
            nullable,
            num_terminals: list.num_terminals,
            longest: list.rules.iter().map(|rule| rule.body.len()).max().unwrap_or(0).max(1),
        };
        table.push(new_start, &[Symbol::Nonterminal(list.start)], u32::MAX);
        for rule in &list.rules {
            while table.first_rule.len() <= rule.head.index() {
                table.first_rule.push(table.rules.len() as u32);
            }
            table.push(rule.head, &rule.body, rule.origin);
        }
        table.first_rule.resize(list.num_nonterminals + 1, table.rules.len() as u32);
        table
    }

    fn push(&mut self, head: NonterminalId, body: &[Symbol], origin: u32) {
        let rule = RuleId(self.rules.len() as u32);
        let first_item = ItemId(self.after.len() as u32);
        self.rules.push(TableRule { head, first_item, length: body.len() as u32, origin });
        self.after.extend(body.iter().map(|&symbol| Some(symbol)));
        self.after.push(None);
        self.rule_of.resize(self.after.len(), rule);
        self.rest_nullable.resize(self.after.len(), true);
        for (at, &symbol) in body.iter().enumerate().rev() {
            let place = first_item.index() + at;
            self.rest_nullable[place] = self.rest_nullable[place + 1] && is(symbol, &self.nullable);
        }
    }

    /// Number of terminals of the grammar.
    pub fn num_terminals(&self) -> usize {
        self.num_terminals
    }

    /// Number of nonterminals, those added and the new start included.
    pub fn num_nonterminals(&self) -> usize {
        self.first_rule.len()
    }

    /// Number of rules, that of the new start included.
    pub(crate) fn num_rules(&self) -> usize {
        self.rules.len()
    }

    /// All rules, from [`RuleId::START`] on.
    pub fn ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        (0..self.num_rules() as u32).map(RuleId)
    }

    /// Definition of a rule.
    #[inline]
    pub fn head(&self, rule: RuleId) -> NonterminalId {
        self.rules[rule.index()].head
    }

    /// Number of symbols of a rule's body.
    #[inline]
    pub fn length(&self, rule: RuleId) -> usize {
        self.rules[rule.index()].length as usize
    }

    /// Number of symbols of the longest body.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The body of a rule.
    pub fn body(&self, rule: RuleId) -> impl Iterator<Item = Symbol> + '_ {
        let rule = &self.rules[rule.index()];
        let first = rule.first_item.index();
        self.after[first..first + rule.length as usize].iter().flatten().copied()
    }

    /// The rule's place in [`Grammar::rules`], or that of the rule it was made from; `None` for
    /// that of the new start.
    pub fn origin(&self, rule: RuleId) -> Option<usize> {
        (rule != RuleId::START).then(|| self.rules[rule.index()].origin as usize)
    }

    /// The rules of a nonterminal; the new start's is not found so.
    pub(crate) fn rules_of(&self, head: NonterminalId) -> impl Iterator<Item = RuleId> + use<> {
        let first = self.first_rule[head.index()];
        let end = self.first_rule.get(head.index() + 1).copied().unwrap_or(first);
        (first..end).map(RuleId)
    }

    /// The item with the dot at the front.
    pub(crate) fn first_item(&self, rule: RuleId) -> ItemId {
        self.rules[rule.index()].first_item
    }

    /// Number of items.
    pub fn num_items(&self) -> usize {
        self.after.len()
    }

    /// The symbol after the dot.
    pub(crate) fn after(&self, item: ItemId) -> Option<Symbol> {
        self.after[item.index()]
    }

    /// The rule of an item.
    pub(crate) fn rule_of(&self, item: ItemId) -> RuleId {
        self.rule_of[item.index()]
    }

    /// Number of symbols before the dot.
    pub(crate) fn dot(&self, item: ItemId) -> usize {
        item.index() - self.first_item(self.rule_of(item)).index()
    }

    /// True when all that is after the dot derives the empty text.
    pub(crate) fn rest_nullable(&self, item: ItemId) -> bool {
        self.rest_nullable[item.index()]
    }

    /// True when a nonterminal derives the empty text.
    pub fn nullable(&self, nonterminal: NonterminalId) -> bool {
        self.nullable[nonterminal.index()]
    }
}

//! Elimination of hidden left recursion from the rules.
//!
//! `A → N A b` with a nullable `N` is left recursive, but not to be seen so: an LR parser would
//! push an empty `N` any number of times without reading, and its stack would need a cycle. Written
//! as two rules, `A → N⁺ A b` and `A → A b`, where `N⁺` has the texts of `N` but the empty one,
//! that cannot happen, and links between stack nodes that were made at one place in the text form
//! no cycle.

use hashbrown::HashMap;
use std::borrow::Cow;

use crate::rules::{ByHead, LeftCorners, ListedRule, RuleList, is};
use crate::{NonterminalId, Symbol};

/// Rewrites the rules that hide left recursion; most grammars have none and stay as they are.
///
/// A rule `B → X1 … Xm` hides left recursion when `X1 … Xj-1` is nullable, `j > 1`, and `Xj` may
/// begin with `B`. With the greatest such `j`, it becomes `B → Xi⁺ Xi+1 … Xm` for each `i < j`, and
/// `B → Xj … Xm`. Every left corner in the new rules is one in the old ones, so no new recursion
/// arises.
pub(super) fn unhide(list: &mut RuleList<'_>) {
    let nullable = list.nullable();
    if !nullable.contains(&true) {
        return;
    }
    let corners = LeftCorners::new(list, &nullable);
    let last_hidden = |rule: &ListedRule<'_>| {
        let before_end = rule.body.iter().position(|&symbol| !is(symbol, &nullable));
        let last_corner = before_end.unwrap_or(rule.body.len().saturating_sub(1));
        (1..=last_corner).rev().find(|&at| match rule.body.get(at) {
            Some(&Symbol::Nonterminal(corner)) => corners.together(rule.head, corner),
            _ => false,
        })
    };
    let hidden: Vec<_> = list.rules.iter().map(last_hidden).collect();
    if hidden.iter().all(Option::is_none) {
        return;
    }
    let mut rules = Vec::new();
    let mut not_empty = NotEmpty::new(list, &nullable);
    for (rule, hidden) in list.rules.iter().zip(hidden) {
        let Some(hidden) = hidden else {
            rules.push(rule.clone());
            continue;
        };
        for at in 0..hidden {
            rules.push(not_empty.from(rule, rule.head, at));
        }
        let body = Cow::Owned(rule.body[hidden..].to_vec());
        rules.push(ListedRule { head: rule.head, body, origin: rule.origin });
    }
    rules.extend(not_empty.rules());
    let num_nonterminals = not_empty.num_nonterminals;
    *list = RuleList { rules, num_nonterminals, ..*list };
}

/// Makes nonterminals `N⁺` as they are asked for.
struct NotEmpty<'a, 'g> {
    list: &'a RuleList<'g>,
    by_head: ByHead,
    nullable: &'a [bool],
    /// `N⁺`, for each `N` asked for.
    made: HashMap<NonterminalId, NonterminalId>,
    /// The `N` asked for, in that order.
    asked: Vec<NonterminalId>,
    num_nonterminals: usize,
}

impl<'a, 'g> NotEmpty<'a, 'g> {
    fn new(list: &'a RuleList<'g>, nullable: &'a [bool]) -> Self {
        Self {
            list,
            by_head: list.by_head(),
            nullable,
            made: HashMap::new(),
            asked: Vec::new(),
            num_nonterminals: list.num_nonterminals,
        }
    }

    /// `head → Xi⁺ Xi+1 … Xm`.
    fn from(&mut self, rule: &ListedRule<'g>, head: NonterminalId, i: usize) -> ListedRule<'g> {
        let mut body = rule.body[i..].to_vec();
        body[0] = self.symbol(body[0]);
        ListedRule { head, body: Cow::Owned(body), origin: rule.origin }
    }

    /// `X⁺`; the symbol itself where it has no empty text.
    fn symbol(&mut self, symbol: Symbol) -> Symbol {
        let Symbol::Nonterminal(id) = symbol else { return symbol };
        if !self.nullable[id.index()] {
            return symbol;
        }
        let made = *self.made.entry(id).or_insert_with(|| {
            self.asked.push(id);
            self.num_nonterminals += 1;
            NonterminalId(self.num_nonterminals as u32 - 1)
        });
        Symbol::Nonterminal(made)
    }

    /// The rules of all `N⁺` that were asked for: each rule of `N`, by the first of its symbols
    /// that is not empty.
    fn rules(&mut self) -> Vec<ListedRule<'g>> {
        let (list, mut rules, mut next) = (self.list, Vec::new(), 0);
        while let Some(&id) = self.asked.get(next) {
            next += 1;
            let head = self.made[&id];
            let of_id: Vec<_> = self.by_head.of(id).collect();
            for rule in of_id.into_iter().map(|at| &list.rules[at as usize]) {
                for at in 0..rule.body.len() {
                    rules.push(self.from(rule, head, at));
                    if !is(rule.body[at], self.nullable) {
                        break;
                    }
                }
            }
        }
        rules
    }
}

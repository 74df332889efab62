//! Least texts after stacks: shortest paths over the entries of the graph of stacks.
//!
//! A place is a state above an entry. What follows it is what follows the dot of one of the state's
//! items, and then what follows the place that the item's rule leads to, once its body is popped:
//!
//! ```text
//! finish(… s) = least over items A → α · β of s:  text(β), then finish(… without α, then goto A)
//! ```
//!
//! An LR(0) automaton's state has all items that may be at work on a stack, so this is exact.
//! Places lead down or stay at their entry; what is known of the entries below is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::levels::{LevelId, Levels, Plan};
use super::text::Text;
use crate::LimitError;
use crate::glr::{KeptStackNode, StackNode, Stacks};
use crate::lr::{ItemId, RuleId, StateId, Tables};
use crate::names::Scope;

/// Memory of what follows places.
#[derive(Debug, Default)]
pub(super) struct StackTexts {
    known: HashMap<Key, KnownText>,
    levels: Levels,
}

/// A state above an entry, by its address, and the scopes around; 0 is no entry.
type Key = (usize, StateId, LevelId);

#[derive(Debug)]
struct KnownText {
    /// Keeps the address taken.
    _entry: Option<KeptStackNode>,
    text: Option<Text>,
}

/// Places of one question, at most.
const MAX_PLACES: usize = 1 << 20;

/// Places that are remembered, at most; then the memory begins anew.
const MAX_KNOWN: usize = 1 << 18;

/// Levels that are remembered, at most.
const MAX_LEVELS: usize = 1 << 10;

#[derive(Clone, Copy)]
struct Place<'a> {
    state: StateId,
    below: Option<StackNode<'a>>,
    level: LevelId,
}

impl Place<'_> {
    fn key(&self) -> Key {
        (self.below.map_or(0, StackNode::address), self.state, self.level)
    }
}

impl StackTexts {
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.levels.clear();
    }

    /// The least text that completes one of these stacks within open scopes of names; `None` where
    /// no text does.
    pub(super) fn finish(
        &mut self,
        (tables, plan): (&Tables, Plan<'_>),
        stacks: &Stacks,
        scopes: &[Scope],
    ) -> Result<Option<Text>, LimitError> {
        if self.known.len() > MAX_KNOWN || self.levels.len() > MAX_LEVELS {
            self.clear();
        }
        let level = self.levels.find(scopes);
        let mut roots = Vec::new();
        for top in stacks.tops() {
            let below = top.below();
            let ends = (below.len() == 0).then_some(None);
            for below in below.map(Some).chain(ends) {
                roots.push(Place { state: top.state(), below, level });
            }
        }
        self.settle((tables, plan), &roots)?;
        let texts = roots.iter().filter_map(|root| self.known[&root.key()].text.clone());
        Ok(texts.min())
    }

    /// Finds what follows these places and all that they lead to: the texts of places that lead to
    /// ends, or to known places, first, then of those that lead to them, always the least one.
    fn settle(
        &mut self,
        (tables, plan): (&Tables, Plan<'_>),
        roots: &[Place<'_>],
    ) -> Result<(), LimitError> {
        let mut graph = Graph::default();
        for &root in roots.iter().filter(|root| !self.known.contains_key(&root.key())) {
            graph.find(root);
        }
        let (mut heap, mut at) = (BinaryHeap::new(), 0);
        while let Some(&place) = graph.places.get(at) {
            if at > MAX_PLACES {
                return Err(LimitError::new(MAX_PLACES));
            }
            for &item in tables.kernel(place.state) {
                let Some((rest, level)) = self.levels.rest(plan, item, place.level) else {
                    continue;
                };
                if tables.rules().rule_of(item) == RuleId::START {
                    heap.push(Reverse((Text::default().after(&rest), at)));
                    continue;
                }
                for next in after_rule(tables, Place { level, ..place }, item) {
                    match self.known.get(&next.key()) {
                        Some(KnownText { text, .. }) => {
                            let text = text.as_ref().map(|text| text.after(&rest));
                            heap.extend(text.map(|text| Reverse((text, at))));
                        }
                        None => {
                            let next = graph.find(next);
                            graph.users[next].push((at, Arc::clone(&rest)));
                        }
                    }
                }
            }
            at += 1;
        }
        let mut settled: Vec<Option<Text>> = vec![None; graph.places.len()];
        while let Some(Reverse((least, place))) = heap.pop() {
            if settled[place].is_some() {
                continue;
            }
            for (user, rest) in &graph.users[place] {
                if settled[*user].is_none() {
                    heap.push(Reverse((least.after(rest), *user)));
                }
            }
            settled[place] = Some(least);
        }
        for (place, text) in graph.places.iter().zip(settled) {
            let _entry = place.below.map(StackNode::keep);
            self.known.insert(place.key(), KnownText { _entry, text });
        }
        Ok(())
    }
}

/// Places by number, with those that lead to them.
#[derive(Default)]
struct Graph<'a> {
    places: Vec<Place<'a>>,
    numbers: HashMap<Key, usize>,
    users: Vec<Vec<(usize, Arc<[u8]>)>>,
}

impl<'a> Graph<'a> {
    fn find(&mut self, place: Place<'a>) -> usize {
        *self.numbers.entry(place.key()).or_insert_with(|| {
            self.places.push(place);
            self.users.push(Vec::new());
            self.places.len() - 1
        })
    }
}

/// The places after the rule of an item, once its body is popped.
fn after_rule<'a, 't>(
    tables: &'t Tables,
    place: Place<'a>,
    item: ItemId,
) -> impl Iterator<Item = Place<'a>> + use<'a, 't> {
    let rules = tables.rules();
    // The place's own state is the last symbol before the dot; a rule's dot is at the front in the
    // start's state alone.
    let mut entries: SmallVec<[StackNode<'a>; 2]> = place.below.into_iter().collect();
    for _ in 1..rules.dot(item) {
        let mut below: SmallVec<_> = entries.iter().flat_map(|entry| entry.below()).collect();
        below.dedup();
        entries = below;
    }
    let head = rules.head(rules.rule_of(item));
    let after = move |entry: StackNode<'a>| {
        let state = tables.goto(entry.state(), head)?;
        Some(Place { state, below: Some(entry), ..place })
    };
    entries.into_iter().filter_map(after)
}

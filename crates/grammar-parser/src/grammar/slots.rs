//! Slots: sets of texts that a grammar names, and that a binding gives for each request.

use std::fmt;
use std::sync::Arc;

use palmette_core::{MemberSet, MemberSpelling, SlotId, SubstringRule};

use super::{Grammar, GrammarBuilder, Symbol, Terminal, TerminalId, TerminalKind};
use crate::{Regex, Span};

/// A set of texts that is not known when the grammar is made, such as the ids of a catalog, or one
/// that the grammar brings, such as a hundred thousand listed titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The name by which a request binds it.
    pub name: String,
    /// Kind of what the request binds to the name.
    pub kind: SlotKind,
    /// The part of a member that is written: an attribute of an item; its id where this is `None`.
    pub field: Option<String>,
    /// Spelling of members.
    pub spelling: MemberSpelling,
    /// A condition on members beside the request's own, in the language of filters.
    pub filter: Option<String>,
    /// The place where it is first named.
    pub span: Option<Span>,
    /// The set that the grammar brings; `None` where a request binds one.
    pub own: Option<OwnSet>,
}

/// A set of texts that a grammar brings.
#[derive(Clone)]
pub struct OwnSet {
    set: Arc<dyn MemberSet>,
    fingerprint: u128,
    bytes: usize,
}

impl OwnSet {
    /// A set, with a fingerprint of its texts, by which sets are compared, and the memory that it
    /// takes.
    pub fn new(set: Arc<dyn MemberSet>, fingerprint: u128, bytes: usize) -> Self {
        Self { set, fingerprint, bytes }
    }

    /// About how much memory the set takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The set.
    pub fn set(&self) -> &Arc<dyn MemberSet> {
        &self.set
    }
}

impl PartialEq for OwnSet {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.set.len() == other.set.len()
    }
}

impl Eq for OwnSet {}

impl fmt::Debug for OwnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnSet({} texts, {:032x})", self.set.len(), self.fingerprint)
    }
}

/// Kind of what a request binds to the name of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// A catalog or another list of texts.
    #[default]
    Catalog,
    /// Documents, of which substrings by this rule are members.
    Documents(SubstringRule),
    /// A catalog whose items are written as semantic IDs, in the model's own tokens by number.
    Codes,
}

impl Slot {
    /// Name and field, as they are written in grammars: `shop.title`.
    pub fn label(&self) -> String {
        match &self.field {
            None => self.name.clone(),
            Some(field) => format!("{}.{field}", self.name),
        }
    }

    /// True if both have the same set, wherever they are named.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { name, kind, field, spelling, filter, span: _, own } = self;
        (name, kind, field) == (&other.name, &other.kind, &other.field)
            && (spelling, filter, own) == (&other.spelling, &other.filter, &other.own)
    }
}

impl Grammar {
    /// The slots, by id: those that a request binds, then those with sets of the grammar's own.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slots that a request binds, by id.
    pub fn open_slots(&self) -> &[Slot] {
        &self.slots[..self.slots.partition_point(|slot| slot.own.is_none())]
    }

    /// The sets that the grammar brings, of the slots after the open ones.
    pub fn own_sets(&self) -> impl Iterator<Item = Arc<dyn MemberSet>> + '_ {
        self.slots.iter().filter_map(|slot| slot.own.as_ref()).map(|own| Arc::clone(own.set()))
    }

    /// True where the grammar may ask for tokens by name or number: by a terminal, or by a slot of
    /// semantic IDs, whose tokens only a binding knows.
    pub fn asks_for_tokens(&self) -> bool {
        let is_of_codes = |slot: &Slot| slot.kind == SlotKind::Codes;
        self.token_terminals().next().is_some() || self.slots.iter().any(is_of_codes)
    }

    /// The slot that a terminal stands for, where it stands for one.
    pub fn slot_of(&self, terminal: TerminalId) -> Option<SlotId> {
        match self.terminals()[terminal.index()].kind {
            TerminalKind::Member(slot) => Some(slot),
            _ => None,
        }
    }

    /// The grammar without the rules that need a member of these slots: where their sets are empty,
    /// its language is the same.
    #[must_use]
    pub fn without_slots(&self, slots: &[SlotId]) -> Self {
        let needs = |symbol: &Symbol| match *symbol {
            Symbol::Terminal(terminal) => {
                self.slot_of(terminal).is_some_and(|slot| slots.contains(&slot))
            }
            Symbol::Nonterminal(_) => false,
        };
        let mut kept = self.clone();
        kept.rules.retain(|rule| !rule.body.iter().any(needs));
        kept
    }
}

impl GrammarBuilder {
    /// Adds a slot, unless there is [the same](Slot::is_same). In the grammar that is built, those
    /// with sets of their own have the last ids.
    pub fn slot(&mut self, slot: Slot) -> SlotId {
        let known = self.slots.iter().position(|known| known.is_same(&slot));
        let place = known.unwrap_or_else(|| {
            self.slots.push(slot);
            self.slots.len() - 1
        });
        SlotId(place as u32)
    }

    /// Adds the slots of a grammar; gives the ids that they have here, by the ids that they had
    /// there.
    pub fn slots_of(&mut self, slots: &[Slot]) -> Vec<SlotId> {
        slots.iter().map(|slot| self.slot(slot.clone())).collect()
    }

    /// Puts the slots that a request binds before the others.
    pub(super) fn order_slots(&mut self) {
        let num_open = self.slots.iter().filter(|slot| slot.own.is_none()).count() as u32;
        let (mut open, mut own) = (0..num_open, num_open..);
        let place = |slot: &Slot| if slot.own.is_none() { open.next() } else { own.next() };
        let places: Vec<Option<u32>> = self.slots.iter().map(place).collect();
        for terminal in &mut self.terminals {
            if let TerminalKind::Member(slot) = &mut terminal.kind {
                *slot = SlotId(places[slot.index()].expect("a place for each slot"));
            }
        }
        self.slots.sort_by_key(|slot| slot.own.is_some());
    }

    /// Adds a terminal for the members of a slot.
    pub fn member_terminal(&mut self, slot: SlotId, span: Option<Span>) -> TerminalId {
        let name = format!("<{}>", self.slots[slot.index()].label());
        let kind = TerminalKind::Member(slot);
        self.terminal(Terminal { name, regex: Regex::Never, priority: 0, kind, span })
    }
}

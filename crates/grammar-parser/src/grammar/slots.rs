//! Slots: sets of texts that a grammar names, and that a binding gives for each request.

use palmette_core::{MemberSpelling, SlotId, SubstringRule};

use super::{Grammar, GrammarBuilder, Symbol, Terminal, TerminalId, TerminalKind};
use crate::{Regex, Span};

/// A set of texts that is not known when the grammar is made, such as the ids of a catalog.
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
}

/// Kind of what a request binds to the name of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// A catalog or another list of texts.
    #[default]
    Catalog,
    /// Documents, of which substrings by this rule are members.
    Documents(SubstringRule),
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
        let Self { name, kind, field, spelling, filter, span: _ } = self;
        (name, kind, field) == (&other.name, &other.kind, &other.field)
            && (spelling, filter) == (&other.spelling, &other.filter)
    }
}

impl Grammar {
    /// The slots, by id.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
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
    /// Adds a slot, unless there is [the same](Slot::is_same).
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

    /// Adds a terminal for the members of a slot.
    pub fn member_terminal(&mut self, slot: SlotId, span: Option<Span>) -> TerminalId {
        let name = format!("<{}>", self.slots[slot.index()].label());
        let kind = TerminalKind::Member(slot);
        self.terminal(Terminal { name, regex: Regex::Never, priority: 0, kind, span })
    }
}

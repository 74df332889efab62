//! A recognizer under a binding: the sets of a grammar's slots, and the position before the first
//! byte.

use std::sync::Arc;

use palmette_core::{Binding, ScopeId, SlotId};

use super::Recognizer;
use super::error::CompileError;
use super::position::Position;
use super::scratch::RecognizerScratch;
use crate::Budget;
use crate::lr::RuleTable;
use crate::scopes::{ScopeShortage, ShortScope};

/// A grammar whose slots have their sets.
#[derive(Clone, Debug)]
pub struct BoundRecognizer {
    /// The grammar made ready, without what no text under the sets can have.
    pub recognizer: Arc<Recognizer>,
    /// The sets.
    pub sets: Arc<Binding>,
    /// The position before the first byte, which carries the sets.
    pub start: Position,
}

/// The part of a grammar that no text under a binding can have: slots whose sets are empty, and
/// scopes with too few members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lack {
    /// Slots without members.
    pub slots: Vec<SlotId>,
    /// Scopes that no text fills.
    pub scopes: Vec<ShortScope>,
}

impl Lack {
    /// True where nothing is lacking.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.scopes.is_empty()
    }
}

impl Recognizer {
    /// The part of the grammar that no text under a binding of its open slots can have.
    ///
    /// # Errors
    /// When scopes depend on each other in too many ways.
    pub fn lack(&self, sets: &Binding) -> Result<Lack, CompileError> {
        let mut lack = Lack { slots: sets.empty_slots().collect(), scopes: Vec::new() };
        if !self.scopes.is_active() {
            return Ok(lack);
        }
        let sets = sets.with(self.grammar.own_sets());
        let mut left = self.source.without_slots(&lack.slots);
        loop {
            // What is left out may have been the cheapest way to fill another scope.
            let (rules, budget) = (RuleTable::new(&left), &mut Budget::unlimited());
            let short = self.scopes.short_scopes(&rules, &sets, budget)?;
            if short.is_empty() {
                return Ok(lack);
            }
            let scopes: Vec<ScopeId> = short.iter().map(|short| short.scope).collect();
            left = left.without_scopes(&scopes);
            lack.scopes.extend(short);
        }
    }

    /// The scopes that a grammar lacks, by names.
    pub fn shortages(&self, lack: &Lack) -> Vec<ScopeShortage> {
        let shortage = |short: &ShortScope| {
            let scope = &self.source.scopes()[short.scope.index()];
            let (eligible, needed) = (short.eligible, short.needed);
            ScopeShortage { scope: scope.label(), set: scope.name.clone(), eligible, needed }
        };
        lack.scopes.iter().map(shortage).collect()
    }

    /// The grammar made ready without a part that no text can have, within the limits of the whole.
    ///
    /// # Errors
    /// When a limit is exceeded, or what is left cannot be honoured.
    pub fn without(&self, lack: &Lack) -> Result<Self, CompileError> {
        let mut grammar = self.source.without_slots(&lack.slots);
        if !lack.scopes.is_empty() {
            let scopes: Vec<ScopeId> = lack.scopes.iter().map(|short| short.scope).collect();
            grammar = grammar.without_scopes(&scopes);
        }
        // A part of the grammar takes no more steps than the whole was allowed.
        Self::make(Arc::new(grammar), &self.limits, true, &mut Budget::unlimited())
    }

    /// Binds the sets that the grammar brings, where it has no open slots.
    pub(super) fn bind_own_sets(&mut self) -> Result<(), CompileError> {
        if self.grammar.open_slots().is_empty() && !self.grammar.slots().is_empty() {
            let sets: Vec<_> = self.grammar.own_sets().collect();
            let sets = Arc::new(Binding::new(sets));
            self.start = self.start_bound(&sets, &mut RecognizerScratch::default())?;
        }
        Ok(())
    }
}

impl BoundRecognizer {
    /// A grammar that brings the sets of all its slots; `None` where it has other slots or none, or
    /// no text.
    pub fn from_own_sets(recognizer: &Arc<Recognizer>) -> Option<Self> {
        let start = recognizer.start()?.clone();
        let sets = Arc::clone(start.binding()?);
        Some(Self { recognizer: Arc::clone(recognizer), sets, start })
    }

    /// Binds sets to the open slots of a grammar; `None` when no text is left. The grammar is made
    /// ready again only where a set is empty or a scope has too few members.
    ///
    /// # Errors
    /// When the grammar without what needs a member of an empty set cannot be made ready.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn new(
        recognizer: &Arc<Recognizer>,
        sets: Arc<Binding>,
    ) -> Result<Option<Self>, CompileError> {
        let lack = recognizer.lack(&sets)?;
        let recognizer = match lack.is_empty() {
            true => Arc::clone(recognizer),
            false => Arc::new(recognizer.without(&lack)?),
        };
        Self::from_parts(recognizer, sets)
    }

    /// Binds sets to the open slots of a grammar that [lacks](Recognizer::lack) nothing under them; `None` when it has no text.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn from_parts(
        recognizer: Arc<Recognizer>,
        sets: Arc<Binding>,
    ) -> Result<Option<Self>, CompileError> {
        let own: Vec<_> = recognizer.grammar().own_sets().collect();
        let sets = if own.is_empty() { sets } else { Arc::new(sets.with(own)) };
        let start = recognizer.start_bound(&sets, &mut RecognizerScratch::default())?;
        Ok(start.map(|start| Self { recognizer, sets, start }))
    }
}

//! Stack-automaton nodes that yield the components of masks.

use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;

use super::Unread;
use super::deferred_reduction::{DeferredId, Step};
use super::stack_simulation::{Component, Fixed, Memos, StackSimulation};
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId, StackAutomaton};
use crate::{IndexSet, table_bytes};

/// Components of a mask, ascending, each once. Equal numbers are equal components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ComponentsId(u32);

/// Answer of some states about a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SaidOfMask {
    /// The tokens that they are sure of.
    pub(crate) made_of: ComponentsId,
    pub(super) deferred: DeferredId,
}

/// The nodes of a grammar's lexer states.
#[derive(Debug, Default)]
pub(super) struct MaskNodes {
    pub(super) nodes: StackAutomaton<SaidOfMask>,
    components: IndexSet<Box<[Component]>>,
    bytes: usize,
}

impl MaskNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + table_bytes::<Box<[Component]>>(self.components.len()) + self.bytes
    }

    pub(super) fn get(&self, id: AutomatonNodeId) -> &AutomatonNode<SaidOfMask> {
        self.nodes.get(id)
    }

    pub(super) fn components(&self, id: ComponentsId) -> &[Component] {
        &self.components[id.0 as usize]
    }

    fn intern(&mut self, components: &mut Vec<Component>) -> ComponentsId {
        components.sort_unstable();
        components.dedup();
        let number = self.components.get_index_of(components.as_slice()).unwrap_or_else(|| {
            self.bytes += size_of_val(components.as_slice());
            self.components.insert_full(components.as_slice().into()).0
        });
        ComponentsId(number as u32)
    }
}

impl Memos<'_, '_> {
    /// The node of a lexeme in progress on stacks with this topmost state.
    pub(super) fn first_mask(
        &mut self,
        fixed: Fixed<'_>,
        lexer: LexerState,
        top: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        match self.suffix_sets.mask_nodes.nodes.first(lexer.0, top) {
            Some(known) => Ok(known),
            None => self.find_first_mask(fixed, lexer, top),
        }
    }

    #[cold]
    fn find_first_mask(
        &mut self,
        fixed: Fixed<'_>,
        lexer: LexerState,
        top: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let in_progress = self.lexemes.in_progress(fixed.recognizer.lexer(), lexer, self.budget)?;
        let level = StackSimulation::on(fixed, self.reborrow(), top);
        let (mut components, deferred) = level.read_mask(&in_progress)?;
        let (deferred, missing) = self.suffix_sets.deferred.intern(deferred);
        let masks = &mut self.suffix_sets.mask_nodes;
        let made_of = masks.intern(&mut components);
        let node = masks.nodes.intern(SaidOfMask { made_of, deferred }, missing);
        masks.nodes.know_first(lexer.0, top, node);
        Ok(node)
    }

    /// The node after the state that decides how one goes on.
    pub(super) fn next_mask(
        &mut self,
        fixed: Fixed<'_>,
        node: AutomatonNodeId,
        state: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        match self.suffix_sets.mask_nodes.nodes.next(node, state) {
            Some(known) => Ok(known),
            None => self.find_next_mask(fixed, node, state),
        }
    }

    #[cold]
    fn find_next_mask(
        &mut self,
        fixed: Fixed<'_>,
        node: AutomatonNodeId,
        state: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let SaidOfMask { made_of, deferred } = self.suffix_sets.mask_nodes.get(node).said;
        let Step { suffix_sets: more, deferred } = self.step(fixed, deferred, state)?;
        let missing = self.suffix_sets.deferred.missing(deferred);
        let masks = &mut self.suffix_sets.mask_nodes;
        let mut components = masks.components(made_of).to_vec();
        components.extend(more.iter().copied().map(Component::SuffixSet));
        let made_of = masks.intern(&mut components);
        let next = masks.nodes.intern(SaidOfMask { made_of, deferred }, missing);
        masks.nodes.know_next(node, state, next);
        Ok(next)
    }
}

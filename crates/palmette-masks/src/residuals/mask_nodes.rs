//! Stack-automaton nodes that yield the components of masks.

use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;

use super::Unread;
use super::deferred_reduction::{DeferredId, Step};
use super::stack_simulation::{Component, Fixed, Memos, StackSimulation};
use crate::interned::Interned;
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId, StackAutomaton};

/// Components of a mask, ascending, each once. Equal numbers are equal components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ComponentsId(u32);

impl ComponentsId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

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
    components: Interned<Box<[Component]>>,
    bytes: usize,
}

impl MaskNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.components.memory_bytes() + self.bytes
    }

    pub(super) fn get(&self, id: AutomatonNodeId) -> &AutomatonNode<SaidOfMask> {
        self.nodes.get(id)
    }

    pub(super) fn components(&self, id: ComponentsId) -> &[Component] {
        self.components.get(id.0)
    }

    /// A node from a file, of this number there; gives what stands for its components.
    pub(super) fn restored(
        &mut self,
        number: u32,
        deferred: DeferredId,
        missing: u32,
    ) -> (AutomatonNodeId, ComponentsId) {
        let made_of = self.intern(&mut vec![Component::Restored(number)]);
        (self.nodes.intern(SaidOfMask { made_of, deferred }, missing), made_of)
    }

    /// True when a node is from a file, so that nothing can be told of what is below it but what was in the file.
    fn is_restored(&self, node: AutomatonNodeId) -> bool {
        let components = self.components(self.get(node).said.made_of);
        matches!(components, [Component::Restored(_)])
    }

    fn intern(&mut self, components: &mut Vec<Component>) -> ComponentsId {
        components.sort_unstable();
        components.dedup();
        let (number, is_new) = match self.components.find(components.as_slice()) {
            Some(known) => (known, false),
            None => self.components.intern(components.as_slice().into()),
        };
        self.bytes += if is_new { size_of_val(components.as_slice()) } else { 0 };
        ComponentsId(number)
    }
}

impl Memos<'_, '_> {
    /// The node of a lexeme in progress on stacks with this topmost state. One from a file is replaced, and found again with it what is
    /// below.
    pub(super) fn first_mask(
        &mut self,
        fixed: Fixed<'_>,
        lexer: LexerState,
        top: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let masks = &self.suffix_sets.mask_nodes;
        match masks.nodes.first(lexer.0 as usize, top) {
            Some(known) if !masks.is_restored(known) => Ok(known),
            _ => self.find_first_mask(fixed, lexer, top),
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
        masks.nodes.know_first(lexer.0 as usize, top, node);
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

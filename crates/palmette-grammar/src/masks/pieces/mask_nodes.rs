//! What masks are made of, read along a stack.

use super::Unread;
use super::level::{Component, Fixed, Growing, Level};
use super::read_nodes::{ReadNode, ReadNodeId, ReadNodes};
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::masks::interned::Interned;

/// What a mask is made of: ascending components, each once. Equal numbers are equal components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::masks) struct ComponentsId(u32);

impl ComponentsId {
    pub(in crate::masks) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The nodes of a grammar's lexer states.
#[derive(Debug, Default)]
pub(super) struct MaskNodes {
    nodes: ReadNodes<ComponentsId>,
    components: Interned<Box<[Component]>>,
    bytes: usize,
}

impl MaskNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.components.memory_bytes() + self.bytes
    }

    pub(super) fn get(&self, id: ReadNodeId) -> &ReadNode<ComponentsId> {
        self.nodes.get(id)
    }

    /// The node of a lexeme in progress on stacks with this topmost state, if it is known.
    pub(super) fn first(&self, lexer: LexerState, top: StateId) -> Option<ReadNodeId> {
        self.nodes.first(lexer.0 as usize, top)
    }

    /// The node after the state that decides how one goes on, if it is known.
    pub(super) fn next(&self, node: ReadNodeId, state: StateId) -> Option<ReadNodeId> {
        self.nodes.next(node, state)
    }

    pub(super) fn components(&self, id: ComponentsId) -> &[Component] {
        self.components.get(id.0)
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

impl Growing<'_, '_> {
    /// The node of a lexeme in progress on stacks with this topmost state.
    pub(super) fn first_mask(
        &mut self,
        fixed: Fixed<'_>,
        lexer: LexerState,
        top: StateId,
    ) -> Result<ReadNodeId, Unread> {
        match self.tails.mask_nodes.first(lexer, top) {
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
    ) -> Result<ReadNodeId, Unread> {
        let in_progress = self.lexemes.in_progress(fixed.recognizer.lexer(), lexer)?;
        let level = Level::on(fixed, self.reborrow(), top);
        let (mut components, pending) = level.read_mask(&in_progress)?;
        let (pending, missing) = self.tails.pending.intern(pending);
        let masks = &mut self.tails.mask_nodes;
        let components = masks.intern(&mut components);
        let node = masks.nodes.intern(components, pending, missing);
        masks.nodes.know_first(lexer.0 as usize, top, node);
        Ok(node)
    }

    /// The node after the state that decides how one goes on.
    pub(super) fn next_mask(
        &mut self,
        fixed: Fixed<'_>,
        node: ReadNodeId,
        state: StateId,
    ) -> Result<ReadNodeId, Unread> {
        match self.tails.mask_nodes.next(node, state) {
            Some(known) => Ok(known),
            None => self.find_next_mask(fixed, node, state),
        }
    }

    #[cold]
    fn find_next_mask(
        &mut self,
        fixed: Fixed<'_>,
        node: ReadNodeId,
        state: StateId,
    ) -> Result<ReadNodeId, Unread> {
        let &ReadNode { said, pending, .. } = self.tails.mask_nodes.get(node);
        let (more, rest) = self.step(fixed, pending, state)?;
        let missing = self.tails.pending.missing(rest);
        let masks = &mut self.tails.mask_nodes;
        let mut components = masks.components(said).to_vec();
        components.extend(more.iter().copied().map(Component::Tail));
        let components = masks.intern(&mut components);
        let next = masks.nodes.intern(components, rest, missing);
        masks.nodes.know_next(node, state, next);
        Ok(next)
    }
}

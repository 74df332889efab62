//! States of the layer between lexer and parser, by number: blocks by indentation within tokens.
//!
//! Residuals know nothing of blocks. A place in a token has a state of the layer beside it, so that
//! the simulation drops line's ends within brackets, and shifts the marks of blocks before the next
//! lexeme begins.

use palmette_grammar_parser::blocks::{Blocks, Layer, Letter, Line, Marks};

use super::line_end_bounds::LineEndBounds;
use super::relative_layers::RelativeLayers;
use crate::tables::{IndexSet, table_bytes};

/// State of the layer: open blocks and brackets, marks to be shifted, and the line that a lexeme in
/// progress leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LayerState {
    pub(super) blocks: Blocks,
    pub(super) marks: Marks,
    pub(super) line: Line,
}

impl LayerState {
    /// State of a lexeme in progress.
    pub(crate) fn of_lexeme(blocks: Blocks, line: Line) -> Self {
        Self { blocks, marks: Marks::None, line }
    }
}

/// A number into [`LayerStates`]; equal numbers are equal states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LayerId(u32);

impl LayerId {
    /// No block and no bracket is open, and nothing is known of a line: the only state of a grammar
    /// without blocks.
    pub(crate) const NONE: Self = Self(0);
}

/// States of the layer of a grammar, as far as they were asked for.
#[derive(Debug)]
pub(crate) struct LayerStates {
    states: IndexSet<LayerState>,
    pub(super) relative: RelativeLayers,
}

impl Default for LayerStates {
    fn default() -> Self {
        let states = IndexSet::from_iter([LayerState::default()]);
        Self { states, relative: RelativeLayers::default() }
    }
}

impl LayerStates {
    /// About how much memory they take; the depths of open blocks are guessed to be some few.
    pub(super) fn memory_bytes(&self) -> usize {
        let states = table_bytes::<LayerState>(self.states.len()) + self.states.len() * 32;
        states + self.relative.memory_bytes()
    }

    pub(crate) fn get(&self, id: LayerId) -> &LayerState {
        &self.states[id.0 as usize]
    }

    /// The state after a lexeme; `None` where a line begins at a depth that no open block has.
    pub(super) fn after(&mut self, layer: &Layer, id: LayerId, letter: Letter) -> Option<LayerId> {
        if layer.indentation.is_none() {
            return Some(LayerId::NONE);
        }
        let blocks = &self.get(id).blocks;
        let (blocks, marks) = match layer.is_dropped(blocks, letter.terminal) {
            true => (blocks.clone(), Marks::None),
            false => layer.after(blocks, letter)?,
        };
        Some(self.intern(LayerState { blocks, marks, line: Line::OTHER }))
    }

    /// The state after a line's end that leads to a line, as the token's bytes tell; `None` where
    /// that has no block to be in.
    pub(super) fn after_line(&mut self, layer: &Layer, id: LayerId, line: Line) -> Option<LayerId> {
        let terminal = layer.indentation.as_ref()?.newline;
        let line = self.get(id).line.then(line);
        self.after(layer, id, Letter { terminal, line })
    }

    /// The state once the first of its marks is shifted.
    pub(super) fn after_mark(&mut self, id: LayerId) -> LayerId {
        let state = self.get(id).clone();
        self.intern(LayerState { marks: state.marks.rest(), ..state })
    }

    /// The state as far as it matters to what is left of a token, where lines may end so.
    pub(super) fn before(&mut self, id: LayerId, ends: Option<LineEndBounds>) -> LayerId {
        let LayerState { ref blocks, marks, line } = *self.get(id);
        let blocks = match (ends, self.relative.bounds()) {
            (None, _) => Blocks::default(),
            (Some(_), None) => return id,
            (Some(ends), Some(_)) => blocks.within(ends.num_closed, ends.may_end),
        };
        self.intern(LayerState { blocks, marks, line })
    }

    /// The number of a state.
    pub(crate) fn intern(&mut self, state: LayerState) -> LayerId {
        LayerId(self.states.insert_full(state).0 as u32)
    }
}

//! Layer states with which lexemes in progress are looked at, where there are blocks.
//!
//! Blocks are as many as one likes. What is found for few of them, and inside a bracket or not, has
//! most of what any need: places within tokens forget blocks that no line can close there.

use palmette_grammar_parser::blocks::{Blocks, Line};
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::Recognizer;

use crate::residuals::LayerState;

/// Open blocks of a line that ends, at most.
const MAX_BLOCKS: u32 = 2;

/// Open brackets, at most.
const MAX_BRACKETS: u32 = 2;

/// Layer states of a lexeme in progress.
pub(super) fn likely_layers(recognizer: &Recognizer, lexer: LexerState) -> Vec<LayerState> {
    let Some(marks) = &recognizer.layer().indentation else {
        return vec![LayerState::default()];
    };
    let of_brackets = |brackets| Blocks::new(&[], brackets);
    let within_lines = (0..=MAX_BRACKETS).map(of_brackets);
    let mut found: Vec<_> =
        within_lines.map(|blocks| LayerState::of_lexeme(blocks, Line::OTHER)).collect();
    if recognizer.lexer().viable_terminals(lexer).contains(marks.newline) {
        for num_blocks in 0..=MAX_BLOCKS {
            let depths: Vec<u32> = (1..=num_blocks).collect();
            for depth in 0..=num_blocks + 1 {
                let blocks = Blocks::new(&depths, 0);
                found.push(LayerState::of_lexeme(blocks, Line::begun(depth)));
            }
        }
    }
    found
}

//! Relative layer states: one for all whose depths no token tells apart.
//!
//! Blocks of two blanks and of four have the same masks where a line's end takes all blanks that
//! follow it, as in Python, since tokens do not begin lines at those depths.

use hashbrown::{HashMap, HashSet};
use palmette_grammar_parser::blocks::{Blanks, RelativeDepths};
use palmette_grammar_parser::lexer::{Lexer, LexerState};
use palmette_grammar_parser::recognizer::Recognizer;
use palmette_grammar_parser::{LexerError, Lexing};

use super::layer_states::{LayerId, LayerState, LayerStates};
use crate::TerminalId;
use crate::tables::table_bytes;
use crate::vocabulary::{LineBlanks, LineEndTail};

/// Layer states of texts, as far as they were met, with those that stand for them.
#[derive(Debug, Default)]
pub(crate) struct RelativeLayers {
    /// Bounds of what tokens do, once they were asked for; `None` where depths are not relative.
    bounds: Option<Option<TokenBounds>>,
    known: HashMap<LayerState, LayerId>,
}

/// Bounds of what tokens do to blocks, where lines' ends take all blanks that follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBounds {
    depths: RelativeDepths,
    pub(super) tail: LineEndTail,
}

impl RelativeLayers {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<(LayerState, LayerId)>(self.known.len()) + self.known.len() * 32
    }

    /// Bounds of what tokens do, if they were asked for.
    pub(super) fn bounds(&self) -> Option<TokenBounds> {
        self.bounds.flatten()
    }
}

impl LayerStates {
    /// The number of what stands for the state of a text, if that was met.
    pub(crate) fn find_relative(&self, of_text: &LayerState) -> Option<LayerId> {
        self.relative.known.get(of_text).copied()
    }

    /// The number of what stands for the state of a text.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded.
    pub(crate) fn intern_relative(
        &mut self,
        of_text: LayerState,
        recognizer: &Recognizer,
        blanks: &[LineBlanks; 3],
    ) -> Result<LayerId, LexerError> {
        if let Some(&known) = self.relative.known.get(&of_text) {
            return Ok(known);
        }
        let bounds = match self.relative.bounds {
            Some(known) => known,
            None => *self.relative.bounds.insert(find_bounds(recognizer, blanks)?),
        };
        let relative = match bounds {
            None => of_text.clone(),
            Some(bounds) => {
                let (blocks, line) = bounds.depths.of(&of_text.blocks, of_text.line);
                LayerState { blocks, line, ..of_text }
            }
        };
        let id = self.intern(relative);
        self.relative.known.insert(of_text, id);
        Ok(id)
    }
}

/// Bounds of what tokens do to blocks; `None` where a line's end may end before a blank.
fn find_bounds(
    recognizer: &Recognizer,
    blanks: &[LineBlanks; 3],
) -> Result<Option<TokenBounds>, LexerError> {
    let Some(marks) = &recognizer.layer().indentation else { return Ok(None) };
    if recognizer.grammar().lexing() != Lexing::Longest {
        return Ok(None);
    }
    let Some(tail) = line_end_tail(recognizer.lexer(), marks.newline)? else {
        return Ok(None);
    };
    let blanks = &blanks[tail as usize];
    let most = |runs: &[_]| runs.iter().map(|run: &Blanks| run.width(marks)).max().unwrap_or(0);
    let depths = RelativeDepths {
        within: most(&blanks.after_break),
        added: most(&blanks.at_front),
        brackets: blanks.longest,
    };
    Ok(Some(TokenBounds { depths, tail }))
}

/// More states of a line's end are not followed.
const MAX_STATES: usize = 4096;

/// Finds with what a terminal's lexemes, among all others, go on after a line break; `None` where
/// they cannot end after any blank there and go on with another: where they can, the longest being
/// taken, they end after the last one.
fn line_end_tail(lexer: &Lexer, newline: TerminalId) -> Result<Option<LineEndTail>, LexerError> {
    let after = |state, byte| {
        let next = lexer.advance(state, byte)?;
        let is_newline = |&next: &_| lexer.viable_terminals(next).contains(newline);
        Ok::<_, LexerError>(next.filter(is_newline))
    };
    // True beside a state: it is among the blanks after a line break.
    let mut seen: HashSet<(LexerState, bool)> = HashSet::new();
    let mut work = vec![(lexer.start(), false)];
    let mut tail = LineEndTail::Returns;
    while let Some((state, counts)) = work.pop() {
        let by_blanks = [after(state, b' ')?, after(state, b'\t')?];
        let by_break = after(state, b'\n')?;
        if counts {
            let mut ends = lexer.ends(state)?.iter();
            let may_end = ends.any(|end| end.terminals.iter().any(|one| one == newline));
            if !may_end || by_blanks.contains(&None) {
                return Ok(None);
            }
            let returned = after(state, b'\r')?;
            let by_return = returned.map(|returned| after(returned, b'\n')).transpose()?;
            tail = tail.min(match (by_break, by_return.flatten()) {
                (None, _) => LineEndTail::Blanks,
                (Some(_), None) => LineEndTail::Breaks,
                (Some(_), Some(_)) => LineEndTail::Returns,
            });
        }
        let by_blanks = by_blanks.into_iter().flatten().map(|next| (next, counts));
        let by_break = by_break.map(|next| (next, true));
        // Bytes that the state does not tell from those are followed in vain, which is harmless.
        let mut found: Vec<_> = by_blanks.chain(by_break).collect();
        for (byte, _) in lexer.steps(state)? {
            found.extend(after(state, byte)?.map(|next| (next, false)));
        }
        work.extend(found.into_iter().filter(|&next| seen.insert(next)));
        if seen.len() > MAX_STATES {
            return Ok(None);
        }
    }
    Ok(Some(tail))
}

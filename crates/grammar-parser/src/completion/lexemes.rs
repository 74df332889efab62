//! Shortest ends of lexemes, breadth first over states of the lexer.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_core::{Cursor, MemberSet};

use super::text::RANKED;
use crate::TerminalId;
use crate::lexer::{Lexer, LexerError, LexerState};

/// The least bytes that end a lexeme as one terminal.
#[derive(Clone, Debug)]
pub(super) struct LexemeRest {
    pub(super) bytes: Arc<[u8]>,
    /// True where such a lexeme asks nothing of what follows it.
    pub(super) is_free: bool,
}

/// States of one search, at most.
const MAX_STATES: usize = 1 << 16;

/// The least bytes that end the lexeme in progress as `terminal`: in the order of shortlex, the
/// first path that a breadth-first search comes to, which takes bytes by rank. `None` where there
/// is none, or none within the limit.
///
/// # Errors
/// When a limit of the lexer is exceeded.
pub(super) fn rest_of_lexeme(
    lexer: &Lexer,
    from: LexerState,
    terminal: TerminalId,
) -> Result<Option<LexemeRest>, LexerError> {
    let end = |state: LexerState| -> Result<Option<bool>, LexerError> {
        let mut ends = lexer.ends(state)?.iter().filter(|end| end.terminals.contains(terminal));
        let Some(first) = ends.next() else { return Ok(None) };
        let start = lexer.start();
        Ok(Some(first.next == start || ends.any(|end| end.next == start)))
    };
    // States in the order in which they are found, with the state and the byte before.
    let mut found = vec![(from, 0, 0)];
    let mut known = HashSet::from([from]);
    let mut at = 0;
    while let Some(&(state, ..)) = found.get(at) {
        // Of a fresh state no byte was read, and no lexeme is empty.
        if (at > 0 || !lexer.is_fresh(from))
            && let Some(is_free) = end(state)?
        {
            let (mut bytes, mut place) = (Vec::new(), at);
            while place > 0 {
                let (_, before, byte) = found[place];
                bytes.push(byte);
                place = before;
            }
            bytes.reverse();
            return Ok(Some(LexemeRest { bytes: bytes.into(), is_free }));
        }
        let mut seen = vec![false; lexer.num_classes(state)];
        for byte in RANKED {
            if std::mem::replace(&mut seen[lexer.class(state, byte)], true) {
                continue;
            }
            let Some(next) = lexer.advance(state, byte)? else { continue };
            if lexer.viable_terminals(next).contains(terminal)
                && found.len() < MAX_STATES
                && known.insert(next)
            {
                found.push((next, at, byte));
            }
        }
        at += 1;
    }
    Ok(None)
}

/// Bytes that end a member in progress: by rank, up to the first place where one has been read
/// whole. Sets do not tell their shortest member; this one is found again at each place on the way.
pub(super) fn rest_of_member(set: &dyn MemberSet, from: &Cursor) -> Option<Arc<[u8]>> {
    let (mut bytes, mut at) = (Vec::new(), from.clone());
    while set.member(&at).is_none() {
        let go_on = |byte: &u8| Some((*byte, set.advance(&at, *byte)?));
        let (byte, next) = RANKED.iter().find_map(go_on)?;
        bytes.push(byte);
        at = next;
    }
    Some(bytes.into())
}

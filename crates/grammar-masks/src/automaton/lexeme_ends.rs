//! Ends of lexemes within tokens: nodes of the vocabulary's trie, by the state of the lexer.
//!
//! Where a scope of members has little left, what follows a lexeme within a token is read and not
//! looked up; these nodes are where reading begins.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use palmette_core::VocabularyTrie;
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::{Recognizer, RecognizerError};

use crate::Budget;

/// Memo of the nodes at which a lexeme may have ended, by the state in which a token begins.
#[derive(Debug, Default)]
pub(super) struct LexemeEnds {
    known: RwLock<HashMap<LexerState, Arc<[u32]>>>,
}

/// At most so many states are remembered; then the memory begins anew.
const MAX_KNOWN: usize = 1 << 12;

impl LexemeEnds {
    /// The first nodes along each token at which the lexeme in progress may have ended with more of
    /// tokens to come, ascending: none is below another.
    ///
    /// Cost: once for a state, a step of the lexer for each node within the lexeme.
    pub(super) fn find(
        &self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<[u32]>, RecognizerError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&state) {
            return Ok(Arc::clone(known));
        }
        drop(known);
        let ends: Arc<[u32]> = ends_of(recognizer, trie, state, budget)?.into();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(state, Arc::clone(&ends));
        Ok(ends)
    }
}

fn ends_of(
    recognizer: &Recognizer,
    trie: &VocabularyTrie,
    state: LexerState,
    budget: &mut Budget<'_>,
) -> Result<Vec<u32>, RecognizerError> {
    let lexer = recognizer.lexer();
    let (mut ends, mut open) = (Vec::new(), vec![(0, state)]);
    while let Some((node, state)) = open.pop() {
        if trie.end(node) == node + 1 {
            continue;
        }
        if lexer.ends(state)?.iter().next().is_some() {
            ends.push(node as u32);
            continue;
        }
        for child in trie.children(node) {
            budget.spend(1)?;
            if let Some(next) = lexer.advance(state, child.byte)? {
                open.push((child.index, next));
            }
        }
    }
    ends.sort_unstable();
    Ok(ends)
}

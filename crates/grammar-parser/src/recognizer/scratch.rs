//! A thread's memory of recognizer steps.

use std::hash::BuildHasher;
use std::sync::Arc;

use palmette_core::Binding;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::{Branch, ContextualStates, Position, Recognizer, RecognizerError};
use crate::glr::{ParserScratch, Stacks};
use crate::lexer::LexerState;
use crate::names::Names;
use crate::{LimitError, TerminalId, TerminalSet};

/// A memory takes about this many bytes at most; then it begins anew.
const MAX_BYTES: usize = 1 << 20;

/// About what an entry of a memory takes, with the stack nodes that it alone keeps alive.
const SHIFT_BYTES: usize = 256;
const POSITION_BYTES: usize = 192;

/// Memory that a thread lends to a recognizer; what is in it between two calls does not matter.
///
/// It remembers where steps led to, so that the same steps are look-ups from then on, and equal
/// positions are one: at most about a megabyte, for the recognizer that it was lent to last.
#[derive(Debug, Default)]
pub struct RecognizerScratch {
    pub(super) parser: ParserScratch,
    /// The branches before a byte.
    pub(super) now: Vec<Branch>,
    /// Branches after it.
    pub(super) next: Vec<Branch>,
    /// The binding of the position at hand.
    pub(super) binding: Option<Arc<Binding>>,
    /// Offset of the byte that is read, while members are traced.
    pub(super) offset: Option<usize>,
    pub(super) memory: Memory,
}

/// Memo of one recognizer.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The mark of the recognizer.
    of: Option<Arc<()>>,
    /// Shifts by a hash of the stacks.
    shifts: HashMap<(u64, TerminalId), Shift>,
    /// Allowed terminals by a hash of the stacks.
    allowed: HashMap<u64, (Stacks, Arc<TerminalSet>)>,
    /// Restricted lexer states by a hash of the stacks.
    restricted: HashMap<(u64, LexerState), (Stacks, LexerState)>,
    contextual: ContextualStates,
    /// Likewise, if names were seen.
    among_unseen: HashMap<(u64, LexerState, Names), (Stacks, LexerState)>,
    positions: HashTable<Position>,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

#[derive(Debug)]
struct Shift {
    before: Stacks,
    after: Option<Stacks>,
}

impl RecognizerScratch {
    /// Turns to positions under a binding.
    pub(super) fn bind(&mut self, binding: Option<&Arc<Binding>>) {
        // PERF: most grammars have no slots, and most calls are of the same text.
        match (&self.binding, binding) {
            (None, None) => {}
            (Some(known), Some(binding)) if Arc::ptr_eq(known, binding) => {}
            _ => self.binding = binding.cloned(),
        }
    }

    /// The part of it that is the parser's.
    pub fn parser(&mut self) -> &mut ParserScratch {
        &mut self.parser
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// The stacks after a terminal, as [`Parser::shift`](crate::Parser::shift) gives them.
    pub(super) fn shift(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
        terminal: TerminalId,
    ) -> Result<Option<Stacks>, LimitError> {
        self.memory.turn_to(recognizer);
        let key = (stacks.fingerprint(), terminal);
        if let Some(known) = self.memory.shifts.get(&key)
            && known.before == *stacks
        {
            return Ok(known.after.clone());
        }
        let after = recognizer.parser().shift(stacks, terminal, &mut self.parser)?;
        self.memory.bytes += SHIFT_BYTES;
        let shift = Shift { before: stacks.clone(), after: after.clone() };
        self.memory.shifts.insert(key, shift);
        Ok(after)
    }

    /// The terminals that may come next, as [`Parser::allowed`](crate::Parser::allowed) gives them.
    pub(super) fn allowed(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
    ) -> Result<Arc<TerminalSet>, LimitError> {
        self.memory.turn_to(recognizer);
        let key = stacks.fingerprint();
        if let Some((before, known)) = self.memory.allowed.get(&key)
            && before == stacks
        {
            return Ok(Arc::clone(known));
        }
        let mut allowed = TerminalSet::new(recognizer.grammar().terminals().len());
        recognizer.parser().allowed(stacks, &mut allowed, &mut self.parser)?;
        let allowed = Arc::new(allowed);
        self.memory.bytes += SHIFT_BYTES + allowed.num_terminals() / 8;
        self.memory.allowed.insert(key, (stacks.clone(), Arc::clone(&allowed)));
        Ok(allowed)
    }

    /// The state `next`, in which no byte of a lexeme was read, for what the parser takes after
    /// some stacks, less the names that were seen.
    pub(super) fn restricted_to(
        &mut self,
        recognizer: &Recognizer,
        next: LexerState,
        (stacks, names): (&Stacks, &Names),
    ) -> Result<LexerState, RecognizerError> {
        self.memory.turn_to(recognizer);
        if !names.is_empty() {
            return self.among_unseen(recognizer, next, (stacks, names));
        }
        let key = (stacks.fingerprint(), next);
        if let Some((before, known)) = self.memory.restricted.get(&key)
            && before == stacks
        {
            return Ok(*known);
        }
        let mut terminals = recognizer.ignored().clone();
        recognizer.parser().allowed(stacks, &mut terminals, &mut self.parser)?;
        let found = recognizer.lexer().restricted_to(next, &terminals)?;
        self.memory.bytes += SHIFT_BYTES;
        self.memory.restricted.insert(key, (stacks.clone(), found));
        Ok(found)
    }

    /// The lexer states in which lexemes begin, by context. They are few, each of the lexer's own
    /// size, and so not counted.
    pub(super) fn contextual(&mut self, recognizer: &Recognizer) -> &mut ContextualStates {
        self.memory.turn_to(recognizer);
        &mut self.memory.contextual
    }

    fn among_unseen(
        &mut self,
        recognizer: &Recognizer,
        next: LexerState,
        (stacks, names): (&Stacks, &Names),
    ) -> Result<LexerState, RecognizerError> {
        let key = (stacks.fingerprint(), next, names.clone());
        if let Some((before, known)) = self.memory.among_unseen.get(&key)
            && before == stacks
        {
            return Ok(*known);
        }
        let mut terminals = recognizer.ignored().clone();
        recognizer.parser().allowed(stacks, &mut terminals, &mut self.parser)?;
        recognizer.names().leave_out(names, &mut terminals);
        let found = recognizer.lexer().restricted_to(next, &terminals)?;
        self.memory.bytes += SHIFT_BYTES;
        self.memory.among_unseen.insert(key, (stacks.clone(), found));
        Ok(found)
    }

    /// The position of the branches in `now`, which are none afterwards.
    pub(super) fn position(&mut self, recognizer: &Recognizer) -> Position {
        self.memory.turn_to(recognizer);
        let Memory { positions, hasher, bytes, .. } = &mut self.memory;
        let hash = |branches: &[Branch]| hasher.hash_one(branches);
        let (of_now, binding) = (hash(&self.now), self.binding.as_ref());
        if let Some(known) = positions.find(of_now, |known| known.is(&self.now, binding)) {
            self.now.clear();
            return known.clone();
        }
        *bytes += POSITION_BYTES * self.now.len();
        let position = Position::new(&mut self.now, self.binding.clone());
        positions.insert_unique(of_now, position.clone(), |known| hash(known.branches()));
        position
    }
}

impl Memory {
    /// Forgets all that is of another recognizer, or too much.
    fn turn_to(&mut self, recognizer: &Recognizer) {
        let same = self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &recognizer.mark));
        if !same || self.bytes > MAX_BYTES {
            let of = Some(Arc::clone(&recognizer.mark));
            *self = Self { of, ..Self::default() };
        }
    }
}

//! A thread's memory of recognizer steps.

use std::hash::BuildHasher;
use std::sync::Arc;

use palmette_core::{Binding, ScopeMemory};

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::{Branch, ContextualStates, ParserState, Position, Recognizer, RecognizerError};
use crate::glr::{ParserScratch, Stacks};
use crate::lexer::LexerState;
use crate::names::Names;
use crate::scopes::{Front, Question};
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
    /// Likewise, in open scopes of a binding.
    in_scopes: HashMap<(u64, LexerState, Names, ScopeMemory), (Stacks, LexerState)>,
    /// Allowed terminals in open scopes of a binding.
    allowed_in_scopes: HashMap<(u64, ScopeMemory), (Stacks, Arc<TerminalSet>)>,
    /// The members that stacks need, by a hash of the stacks and the open scopes' sets.
    needs: HashMap<(u64, Question), (Stacks, Arc<Front>)>,
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
            _ => {
                self.binding = binding.cloned();
                self.memory.in_scopes.clear();
                self.memory.allowed_in_scopes.clear();
            }
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

    /// The terminals that may come next, as [`Parser::allowed`](crate::Parser::allowed) gives them,
    /// less those for which open scopes have not enough left.
    pub(super) fn allowed(
        &mut self,
        recognizer: &Recognizer,
        (stacks, scopes): (&Stacks, &ScopeMemory),
    ) -> Result<Arc<TerminalSet>, LimitError> {
        let all = self.allowed_by_parser(recognizer, stacks)?;
        if scopes.is_empty() {
            return Ok(all);
        }
        let key = (stacks.fingerprint(), scopes.clone());
        if let Some((before, known)) = self.memory.allowed_in_scopes.get(&key)
            && before == stacks
        {
            return Ok(Arc::clone(known));
        }
        let mut allowed = TerminalSet::new(all.num_terminals());
        for terminal in all.iter() {
            if self.has_left_after(recognizer, (stacks, scopes), terminal)? {
                allowed.insert(terminal);
            }
        }
        let allowed = Arc::new(allowed);
        self.memory.bytes += SHIFT_BYTES + allowed.num_terminals() / 8;
        self.memory.allowed_in_scopes.insert(key, (stacks.clone(), Arc::clone(&allowed)));
        Ok(allowed)
    }

    /// True where open scopes have enough left for a text with `terminal` next.
    fn has_left_after(
        &mut self,
        recognizer: &Recognizer,
        (stacks, scopes): (&Stacks, &ScopeMemory),
        terminal: TerminalId,
    ) -> Result<bool, LimitError> {
        let Some(after) = self.shift(recognizer, stacks, terminal)? else { return Ok(false) };
        let Some(binding) = self.binding.clone() else { return Ok(true) };
        let Some((question, left)) = recognizer.scopes().left_after(&binding, scopes, terminal)
        else {
            return Ok(true);
        };
        match left {
            None => Ok(false),
            Some(left) => Ok(left.suffices(&*self.needs(recognizer, &after, question)?)),
        }
    }

    /// True where open scopes have enough left for a text that follows some stacks.
    pub(super) fn has_left(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
        scopes: &ScopeMemory,
    ) -> Result<bool, LimitError> {
        let layer = recognizer.scopes();
        let (Some(question), Some(binding)) = (layer.question(scopes), self.binding.clone()) else {
            return Ok(true);
        };
        let left = layer.left(&binding, scopes);
        Ok(left.suffices(&*self.needs(recognizer, stacks, question)?))
    }

    /// The members that stacks need in open scopes.
    fn needs(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
        question: Question,
    ) -> Result<Arc<Front>, LimitError> {
        self.memory.turn_to(recognizer);
        let key = (stacks.fingerprint(), question);
        if let Some((before, known)) = self.memory.needs.get(&key)
            && before == stacks
        {
            return Ok(Arc::clone(known));
        }
        let fewest = recognizer.scopes().fewest(recognizer.parser(), stacks, question)?;
        let fewest = Arc::new(fewest);
        self.memory.bytes += SHIFT_BYTES;
        self.memory.needs.insert(key, (stacks.clone(), Arc::clone(&fewest)));
        Ok(fewest)
    }

    fn allowed_by_parser(
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
    /// some stacks, less the names that were seen and what open scopes have not enough left for.
    pub(super) fn restricted_to(
        &mut self,
        recognizer: &Recognizer,
        next: LexerState,
        at: &ParserState,
    ) -> Result<LexerState, RecognizerError> {
        self.memory.turn_to(recognizer);
        let ParserState { stacks, names, scopes, .. } = at;
        if !scopes.is_empty() {
            return self.within_scopes(recognizer, next, at);
        }
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

    fn within_scopes(
        &mut self,
        recognizer: &Recognizer,
        next: LexerState,
        ParserState { stacks, names, scopes, .. }: &ParserState,
    ) -> Result<LexerState, RecognizerError> {
        let key = (stacks.fingerprint(), next, names.clone(), scopes.clone());
        if let Some((before, known)) = self.memory.in_scopes.get(&key)
            && before == stacks
        {
            return Ok(*known);
        }
        let mut terminals = recognizer.ignored().clone();
        terminals.union_with(&*self.allowed(recognizer, (stacks, scopes))?);
        recognizer.names().leave_out(names, &mut terminals);
        let found = recognizer.lexer().restricted_to(next, &terminals)?;
        self.memory.bytes += SHIFT_BYTES;
        self.memory.in_scopes.insert(key, (stacks.clone(), found));
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

//! Shortest completions: the least bytes after which a text is whole, at each position.
//!
//! *Least* is by length and then by the bytes' ranks (`text`). Where any cutting of a text counts,
//! the least completion is found without reading: the rest of the lexeme in progress, then what
//! follows the stacks after it, a sum of least texts that are known for the grammar's symbols
//! (`symbols`) and are kept for the entries of stacks (`stacks`). Where lexemes compete, or layers
//! between lexer and parser have a say, that sum is a lower bound. It is read on trial. Where the
//! text is refused, names and members are taken one after another by the bound of each place
//! (`descent`); where lexemes compete or blocks are open, a search over positions finds the least
//! way, guided by the bound (`search`).
//!
//! A member of a set ends by the first bytes that end one, since sets do not tell their shortest.
//!
//! Law: what is left of a position's completion after some of its bytes is the completion of the
//! position after them. So a way to the end that was counted on once stays there.

mod descent;
mod levels;
mod lexemes;
mod search;
mod stacks;
mod symbols;
mod text;

use std::sync::{Arc, Mutex, OnceLock};

use hashbrown::HashMap;
use palmette_core::Binding;

use crate::lexer::LexerState;
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError, RecognizerScratch};
use crate::{Budget, Lexing, TerminalId};
use levels::Plan;
use lexemes::{LexemeRest, rest_of_lexeme, rest_of_member};
use stacks::StackTexts;
use symbols::SymbolTexts;
use text::Text;

/// Shortest completions of one grammar's positions, under one binding of its slots.
///
/// Threads share it; what it knows grows as it is asked.
#[derive(Debug)]
pub struct Completions {
    recognizer: Arc<Recognizer>,
    binding: Option<Arc<Binding>>,
    symbols: OnceLock<SymbolTexts>,
    /// Rests of lexemes in progress.
    lexemes: Mutex<HashMap<(LexerState, TerminalId), Option<LexemeRest>>>,
    /// Mark that tells these from others.
    mark: Arc<()>,
}

/// Rests of lexemes that are remembered, at most; then the memory begins anew.
const MAX_RESTS: usize = 1 << 16;

/// The most units of a budget that one step takes: a position whose next bytes are all tried.
pub const MAX_STEP_UNITS: u64 = 1 << 10;

/// Memory that a thread lends to [`Completions`]; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct CompletionScratch {
    /// Mark of the completions that it was lent to last.
    of: Option<Arc<()>>,
    stacks: StackTexts,
    ways: descent::Ways,
}

/// A lower bound of a position's completion.
#[derive(Clone, Debug)]
struct Bound {
    text: Text,
    /// True where it is the completion itself.
    is_exact: bool,
}

impl Completions {
    /// Completions of a grammar's positions; `binding` are the sets of its slots, its own included.
    pub fn new(recognizer: Arc<Recognizer>, binding: Option<Arc<Binding>>) -> Self {
        let (symbols, lexemes, mark) = Default::default();
        Self { recognizer, binding, symbols, lexemes, mark }
    }

    /// The least bytes after which the text is whole; none where it is. `None` where no way was
    /// found within the limit of the search or `budget`: of grammars whose lexemes compete or that
    /// have blocks, names or scopes.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, the least texts of its symbols are too long, or the
    /// work is called off.
    pub fn shortest(
        &self,
        position: &Position,
        scratch: &mut CompletionScratch,
        reading: &mut RecognizerScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<u8>>, RecognizerError> {
        let Some(bound) = self.bound(position, scratch, reading)? else { return Ok(None) };
        let text: Vec<u8> = bound.text.bytes().collect();
        if bound.is_exact || self.completes(position, &text, reading)? {
            return Ok(Some(text));
        }
        let grammar = self.recognizer.grammar();
        if grammar.lexing() == Lexing::Any && grammar.indentation().is_none() {
            let way = descent::completion(self, position, (scratch, reading), budget)?;
            if let Some(way) = way {
                return Ok(Some(way));
            }
        }
        search::shortest(self, position, (scratch, reading), budget)
    }

    /// True when a text is whole after these bytes.
    fn completes(
        &self,
        position: &Position,
        bytes: &[u8],
        reading: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        match self.recognizer.advance_all(position, bytes, reading)? {
            Some(end) => self.recognizer.is_accepting(&end, reading),
            None => Ok(false),
        }
    }

    /// The least bytes after which a text is whole, if nothing competed and no layer had a say.
    fn bound(
        &self,
        position: &Position,
        scratch: &mut CompletionScratch,
        reading: &mut RecognizerScratch,
    ) -> Result<Option<Bound>, RecognizerError> {
        if self.recognizer.is_accepting(position, reading)? {
            return Ok(Some(Bound { text: Text::default(), is_exact: true }));
        }
        let symbols = self.symbols()?;
        if !scratch.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &self.mark)) {
            scratch.of = Some(Arc::clone(&self.mark));
            scratch.stacks.clear();
            scratch.ways.clear();
        }
        let recognizer = &*self.recognizer;
        let is_plain = symbols.is_free
            && recognizer.grammar().lexing() == Lexing::Any
            && recognizer.layer().indentation.is_none()
            && !recognizer.names().is_active()
            && !recognizer.scopes().is_active();
        let tables = recognizer.parser().tables();
        let plan = Plan { names: recognizer.names(), rules: tables.rules(), symbols };
        let mut least: Option<Bound> = None;
        for branch in position.branches() {
            self.for_each_end(branch, &mut |terminal, rest| {
                let after = match recognizer.ignored().contains(terminal) {
                    true => Some(branch.stacks.clone()),
                    false => recognizer.shifted(&branch.stacks, terminal, reading)?,
                };
                let Some(after) = after else { return Ok(()) };
                // With its own name those that are left would cost more: the dearest would come
                // first, and the cheapest never.
                let Some(scopes) = recognizer.names().scopes_after(&branch.names, terminal) else {
                    return Ok(());
                };
                let finish = scratch.stacks.finish((tables, plan), &after, &scopes)?;
                let Some(finish) = finish else { return Ok(()) };
                let text = finish.after(&rest.bytes);
                if least.as_ref().is_none_or(|least| text < least.text) {
                    least = Some(Bound { text, is_exact: is_plain && rest.is_free });
                }
                Ok(())
            })?;
        }
        Ok(least)
    }

    /// Visits the terminals that a branch's lexeme in progress may become, with its least rest.
    fn for_each_end(
        &self,
        branch: &Branch,
        visit: &mut dyn FnMut(TerminalId, &LexemeRest) -> Result<(), RecognizerError>,
    ) -> Result<(), RecognizerError> {
        if let Some(place) = &branch.member {
            let Some(binding) = &self.binding else { return Ok(()) };
            return match rest_of_member(place.set(binding), &place.cursor) {
                Some(bytes) => visit(place.terminal, &LexemeRest { bytes, is_free: true }),
                None => Ok(()),
            };
        }
        let lexer = self.recognizer.lexer();
        for terminal in lexer.viable_terminals(branch.lexer).iter() {
            // A lexeme whose tokens are used up may end here, and goes on as this no more.
            let left = self.recognizer.token_limits().left(terminal, branch.tokens);
            if self.recognizer.token_limits().is_over(terminal, branch.tokens) {
                continue;
            }
            if let Some(rest) = self.rest_of_lexeme(branch.lexer, terminal)?
                && (left != Some(0) || rest.bytes.is_empty())
            {
                visit(terminal, &rest)?;
            }
        }
        Ok(())
    }

    /// The least bytes after which a lexeme in progress is whole as `terminal`; none where it is.
    /// `None` where there are none, or none within a limit.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded.
    pub fn lexeme_rest(
        &self,
        state: LexerState,
        terminal: TerminalId,
    ) -> Result<Option<Arc<[u8]>>, RecognizerError> {
        Ok(self.rest_of_lexeme(state, terminal)?.map(|rest| rest.bytes))
    }

    fn rest_of_lexeme(
        &self,
        state: LexerState,
        terminal: TerminalId,
    ) -> Result<Option<LexemeRest>, RecognizerError> {
        let known = || self.lexemes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(rest) = known().get(&(state, terminal)) {
            return Ok(rest.clone());
        }
        let rest = rest_of_lexeme(self.recognizer.lexer(), state, terminal)?;
        let mut known = known();
        if known.len() >= MAX_RESTS {
            known.clear();
        }
        known.insert((state, terminal), rest.clone());
        Ok(rest)
    }

    fn symbols(&self) -> Result<&SymbolTexts, RecognizerError> {
        if let Some(known) = self.symbols.get() {
            return Ok(known);
        }
        let made = SymbolTexts::new(&self.recognizer, self.binding.as_deref())?;
        Ok(self.symbols.get_or_init(|| made))
    }
}

//! Lexemes of one grammar, as numbers into the residual store.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_grammar_parser::lexer::{Lexer, LexerState};
use palmette_grammar_parser::recognizer::{ContextId, Recognizer};
use palmette_grammar_regex::expressions::{Exceeded, ExprId, Expressions, Front, NextBytes};

use super::Residuals;
use super::mask_failure::MaskFailure;
use super::residual_id::ResidualId;
use crate::{Budget, TerminalId};

/// A text at least this long at a lexeme's front is compared with the vocabulary as it is: it is a
/// name, of which there are many, and few tokens begin it.
const LONG: usize = 3;

/// True when what begins so is best taken as one residual, rather than the text as it is.
pub(super) fn is_one_residual(front: &Front) -> bool {
    front.text.len() < LONG && (front.blanks.is_some() || front.text.is_empty())
}

/// Front of an expression; nothing where it looks behind, since what is left would not see the text
/// that was cut off.
fn front(
    expressions: &mut Expressions,
    expr: ExprId,
    budget: &mut Budget<'_>,
) -> Result<Front, Exceeded> {
    match expressions.looks_behind(expr) {
        true => Ok(Front { blanks: None, text: Box::default(), rest: expr }),
        false => expressions.making(budget).front(expr),
    }
}

/// Residual of a grammar's terminal, cut at its front. A number into [`Lexemes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LexemeId(u32);

impl LexemeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Residual of a terminal, as its front and what comes then.
#[derive(Debug)]
pub(super) struct Lexeme {
    /// Any number of certain bytes, or blanks, which may be counted.
    pub(super) blanks: Option<ResidualId>,
    /// Text after the first part.
    pub(super) text: Box<[u8]>,
    /// Residual of what remains.
    pub(super) rest: ResidualId,
    /// Residual of the whole; `None` where the text is long, so that it is best taken as it is.
    pub(super) whole: Option<ResidualId>,
    /// True when it looks at what is before it in its own text: nothing may be put before it then.
    pub(super) looks_behind: bool,
    expr: ExprSource,
}

/// The expression of a lexeme.
#[derive(Clone, Copy, Debug)]
enum ExprSource {
    /// Among those of the grammar's lexer, where it is taken over only if it is asked for.
    Lexer(ExprId),
    /// Among those of residuals.
    Residuals(ExprId),
}

/// Residuals of the terminals that are in progress in a state of a grammar's lexer.
#[derive(Debug)]
pub(super) struct LexemesInProgress {
    pub(super) state: LexerState,
    /// True when no byte of the lexeme was read.
    pub(super) fresh: bool,
    /// Condition that earlier lexemes put on the text from here, where no byte was read; in the
    /// expressions of residuals.
    pub(super) condition: ExprId,
    /// Residuals by terminal, ascending; empty when no byte was read.
    pub(super) live: Box<[(TerminalId, ExprId)]>,
}

/// Terminals and states of a grammar's lexer as residuals, as far as they were asked for.
#[derive(Debug)]
pub(crate) struct Lexemes {
    residuals: Arc<Residuals>,
    /// Expressions of the grammar as those of the residuals.
    imported: HashMap<ExprId, ExprId>,
    /// Lexemes by expression of the grammar; `None` when it matches nothing.
    by_expr: HashMap<ExprId, Option<LexemeId>>,
    lexemes: Arc<boxcar::Vec<Lexeme>>,
    /// Lexemes by terminal: that before the first byte, where terminals do not compete.
    whole: HashMap<TerminalId, Option<LexemeId>>,
    /// Lexemes that begin in a context, by context; none where terminals compete wherever the
    /// parser is.
    in_context: HashMap<Option<ContextId>, Box<[(TerminalId, LexemeId)]>>,
    /// Lexemes by lexeme and what is asked of it and of what follows.
    under: HashMap<(LexemeId, ExprId), Option<LexemeId>>,
    /// Concatenations by two lexemes.
    joined: HashMap<(LexemeId, LexemeId), Option<LexemeId>>,
    /// Terminals of which two texts in a row are always one, and those of which they are not.
    closed: HashMap<TerminalId, bool>,
    /// Lexemes in progress by state, if it was asked for; an error where some terminal is no
    /// residual.
    by_state: HashMap<LexerState, Result<Arc<LexemesInProgress>, MaskFailure>>,
}

impl Lexemes {
    /// None asked for yet.
    pub(crate) fn new(residuals: Arc<Residuals>) -> Self {
        Self {
            residuals,
            imported: HashMap::new(),
            by_expr: HashMap::new(),
            lexemes: Arc::default(),
            whole: HashMap::new(),
            in_context: HashMap::new(),
            under: HashMap::new(),
            joined: HashMap::new(),
            closed: HashMap::new(),
            by_state: HashMap::new(),
        }
    }

    /// Residuals that they are numbers into.
    pub(crate) fn residuals(&self) -> &Arc<Residuals> {
        &self.residuals
    }

    /// About how much memory they take, without the residuals.
    pub(crate) fn bytes(&self) -> usize {
        let in_contexts: usize = self.in_context.values().map(|begun| begun.len()).sum();
        let in_maps = self.imported.len() + self.by_expr.len() + self.under.len();
        let maps = in_maps + self.joined.len() + in_contexts + self.by_state.len();
        maps * 32 + self.lexemes.count() * 64 + self.whole.len() * 8
    }

    /// All lexemes, those that are made later too.
    pub(super) fn all(&self) -> &Arc<boxcar::Vec<Lexeme>> {
        &self.lexemes
    }

    /// Residuals of the terminals in progress in a state.
    pub(super) fn in_progress(
        &mut self,
        lexer: &Lexer,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<LexemesInProgress>, MaskFailure> {
        if let Some(known) = self.by_state.get(&state) {
            return known.clone();
        }
        let found = self.find_in_progress(lexer, state, budget).map(Arc::new);
        if !matches!(found, Err(MaskFailure::Interrupted(_))) {
            self.by_state.insert(state, found.clone());
        }
        found
    }

    fn find_in_progress(
        &mut self,
        lexer: &Lexer,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<LexemesInProgress, MaskFailure> {
        if lexer.is_fresh(state) {
            let condition = lexer
                .remainders(state, |left| self.import(left.expressions, left.pending, budget))?;
            return Ok(LexemesInProgress { state, fresh: true, condition, live: Box::default() });
        }
        let live = lexer.guarded(state)?.into();
        Ok(LexemesInProgress { state, fresh: false, condition: ExprId::ALL, live })
    }

    /// A terminal before its first byte, for a lexeme that begins in a context, if there are
    /// contexts, where earlier ones ask something of the text; `None` when it matches nothing
    /// there.
    pub(super) fn begun(
        &mut self,
        recognizer: &Recognizer,
        terminal: TerminalId,
        (context, condition): (Option<ContextId>, ExprId),
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        let found = if context.is_some() || recognizer.grammar().lexing().competes() {
            let begun = self.begun_in(recognizer, context, budget)?;
            let at = begun.binary_search_by_key(&terminal, |&(known, _)| known);
            at.ok().map(|at| begun[at].1)
        } else {
            self.whole(recognizer.lexer(), terminal, budget)?
        };
        match found {
            Some(lexeme) if condition != ExprId::ALL => {
                self.under(recognizer.lexer(), lexeme, condition, budget)
            }
            found => Ok(found),
        }
    }

    /// The lexemes that begin in a context, or where there are none, by terminal.
    fn begun_in(
        &mut self,
        recognizer: &Recognizer,
        context: Option<ContextId>,
        budget: &mut Budget<'_>,
    ) -> Result<&[(TerminalId, LexemeId)], MaskFailure> {
        if !self.in_context.contains_key(&context) {
            let lexer = recognizer.lexer();
            let state = match recognizer.contexts().zip(context) {
                Some((contexts, context)) => {
                    contexts.begin(lexer, lexer.start(), context, |_| {})?
                }
                None => lexer.start(),
            };
            let mut begun = Vec::new();
            for (terminal, expr) in lexer.guarded(state)? {
                let lexeme = self.left(lexer, state, expr, budget)?;
                begun.extend(lexeme.map(|lexeme| (terminal, lexeme)));
            }
            self.in_context.insert(context, begun.into());
        }
        Ok(&self.in_context[&context])
    }

    /// A lexeme that meets a condition together with what follows it.
    ///
    /// PERF: most conditions are about the next byte. A lexeme that begins with none that they
    /// forbid is the same lexeme.
    fn under(
        &mut self,
        lexer: &Lexer,
        lexeme: LexemeId,
        condition: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        if let Some(&known) = self.under.get(&(lexeme, condition)) {
            return Ok(known);
        }
        let here = self.expr(lexer, lexeme, budget)?;
        let next =
            self.residuals.growing().expressions.making(budget).next_bytes(condition, here)?;
        let found = match next {
            NextBytes::Always => Some(lexeme),
            NextBytes::Never => None,
            NextBytes::By(left) => self.make_here(left, budget)?,
        };
        self.under.insert((lexeme, condition), found);
        Ok(found)
    }

    /// A lexeme that begins where another has ended, as one with it; `None` when it matches
    /// nothing.
    pub(super) fn joined(
        &mut self,
        lexer: &Lexer,
        (first, second): (LexemeId, LexemeId),
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        if let Some(&known) = self.joined.get(&(first, second)) {
            return Ok(known);
        }
        let (before, after) = (self.expr(lexer, first, budget)?, self.expr(lexer, second, budget)?);
        let both = self.residuals.growing().expressions.making(budget).concat(before, after)?;
        let found = self.make_here(both, budget)?;
        self.joined.insert((first, second), found);
        Ok(found)
    }

    /// True when two texts of a terminal in a row are known to be always one of it.
    pub(super) fn is_closed(&mut self, lexer: &Lexer, terminal: TerminalId) -> bool {
        // Where a limit is exceeded that may be so, and is not made use of.
        let find = || lexer.is_closed(terminal).unwrap_or(false);
        *self.closed.entry(terminal).or_insert_with(find)
    }

    /// Residual of a whole lexeme; `None` where it matches nothing.
    pub(super) fn whole_residual(
        &mut self,
        lexer: &Lexer,
        lexeme: LexemeId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ResidualId>, MaskFailure> {
        if let Some(whole) = self.lexemes[lexeme.index()].whole {
            return Ok(Some(whole));
        }
        let expr = self.expr(lexer, lexeme, budget)?;
        Ok(self.residuals.intern(&mut self.residuals.growing(), expr, budget)?)
    }

    /// A lexeme's expression, among those of residuals.
    fn expr(
        &mut self,
        lexer: &Lexer,
        lexeme: LexemeId,
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, MaskFailure> {
        match self.lexemes[lexeme.index()].expr {
            ExprSource::Residuals(expr) => Ok(expr),
            ExprSource::Lexer(expr) => {
                lexer.remainders(lexer.start(), |left| self.import(left.expressions, expr, budget))
            }
        }
    }

    /// The lexeme of an expression of residuals.
    fn make_here(
        &mut self,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        let front = front(&mut self.residuals.growing().expressions, expr, budget)?;
        let whole = is_one_residual(&front).then_some(expr);
        self.add(front, whole, ExprSource::Residuals(expr), budget)
    }

    fn import(
        &mut self,
        expressions: &Expressions,
        of: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, MaskFailure> {
        let mut growing = self.residuals.growing();
        let mut making = growing.expressions.making(budget);
        Ok(making.import(expressions, of, &mut self.imported)?)
    }

    /// Residual of one of the terminals in a state; `None` when it matches nothing.
    pub(super) fn left(
        &mut self,
        lexer: &Lexer,
        state: LexerState,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        match self.by_expr.get(&expr) {
            Some(&known) => Ok(known),
            None => lexer.remainders(state, |left| self.make(left.expressions, expr, budget)),
        }
    }

    /// A terminal before its first byte; `None` when it matches nothing.
    pub(super) fn whole(
        &mut self,
        lexer: &Lexer,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        if let Some(&known) = self.whole.get(&terminal) {
            return Ok(known);
        }
        let found = lexer.remainders(lexer.start(), |left| {
            match left.live.binary_search_by_key(&terminal, |&(terminal, _)| terminal) {
                Ok(at) => self.make(left.expressions, left.live[at].1, budget),
                Err(_) => Ok(None),
            }
        })?;
        self.whole.insert(terminal, found);
        Ok(found)
    }

    fn make(
        &mut self,
        expressions: &mut Expressions,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        if let Some(&known) = self.by_expr.get(&expr) {
            return Ok(known);
        }
        let front = front(expressions, expr, budget)?;
        let whole = is_one_residual(&front).then_some(expr);
        let Front { blanks, text, rest } = front;
        let mut import = |expr| self.import(expressions, expr, budget);
        let rest = import(rest)?;
        let blanks = blanks.map(&mut import).transpose()?;
        let whole = whole.map(import).transpose()?;
        let made =
            self.add(Front { blanks, text, rest }, whole, ExprSource::Lexer(expr), budget)?;
        self.by_expr.insert(expr, made);
        Ok(made)
    }

    /// Adds the lexeme of an expression, whose front and, if it is one residual, whole are given
    /// among those of residuals; `None` when it matches nothing.
    fn add(
        &mut self,
        Front { blanks, text, rest }: Front,
        whole: Option<ExprId>,
        expr: ExprSource,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        let mut growing = self.residuals.growing();
        let looks_behind = growing.expressions.looks_behind(rest);
        let mut residual = |expr| self.residuals.intern(&mut growing, expr, budget);
        let Some(rest) = residual(rest)? else { return Ok(None) };
        let blanks = blanks.map(&mut residual).transpose()?.flatten();
        let whole = whole.map(residual).transpose()?.flatten();
        let lexeme = Lexeme { blanks, text, rest, whole, looks_behind, expr };
        Ok(Some(LexemeId(self.lexemes.push(lexeme) as u32)))
    }
}

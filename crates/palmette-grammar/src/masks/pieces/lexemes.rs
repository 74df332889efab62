//! The lexemes of one grammar as pieces.

use hashbrown::HashMap;
use std::sync::Arc;

use super::{PieceId, Pieces, Unread};
use crate::Budget;
use crate::TerminalId;
use crate::lexer::{AppendOnly, Lexer, LexerState};
use crate::masks::chunks::SparseChunks;
use crate::regex::expressions::{ExprId, Expressions, Front};

/// A text at least this long at a lexeme's front is compared with the vocabulary as it is: it is a name, of which there are
/// many, and few tokens begin it.
const LONG: usize = 3;

/// Whether what begins so is best taken as one piece, rather than the text as it is.
pub(super) fn is_one_piece(front: &Front) -> bool {
    front.text.len() < LONG && (front.blanks.is_some() || front.text.is_empty())
}

/// What is left of a terminal of a grammar. A number into [`Lexemes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LexemeId(u32);

impl LexemeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is left of a terminal, as its front and what comes then.
#[derive(Debug)]
pub(super) struct Lexeme {
    /// Any number of certain bytes.
    pub(super) blanks: Option<PieceId>,
    /// Then this text.
    pub(super) text: Box<[u8]>,
    /// Then this.
    pub(super) rest: PieceId,
    /// All of it as one piece; `None` where the text is long, so that it is best taken as it is.
    pub(super) whole: Option<PieceId>,
}

/// What is left of terminals in a state of a grammar's lexer.
#[derive(Debug)]
pub(super) struct InProgress {
    pub(super) state: LexerState,
    /// Whether no byte of the lexeme was read.
    pub(super) fresh: bool,
    /// By terminal, ascending; empty when no byte was read.
    pub(super) live: Box<[(TerminalId, ExprId)]>,
}

/// Terminals and states of a grammar's lexer as pieces, as far as they were asked for.
#[derive(Debug)]
pub(in crate::masks) struct Lexemes {
    pieces: Arc<Pieces>,
    /// Expressions of the grammar as those of the pieces.
    imported: HashMap<ExprId, ExprId>,
    /// By expression of the grammar; `None` when it matches nothing.
    by_expr: HashMap<ExprId, Option<LexemeId>>,
    lexemes: Arc<AppendOnly<Lexeme>>,
    num_lexemes: usize,
    /// By terminal: its lexeme before the first byte.
    whole: Vec<Whole>,
    /// By state, if it was asked for; an error where some terminal is no piece.
    by_state: SparseChunks<Option<Result<Arc<InProgress>, Unread>>>,
}

#[derive(Clone, Copy, Debug)]
enum Whole {
    Unasked,
    Known(Option<LexemeId>),
}

impl Lexemes {
    /// None asked for yet.
    pub(in crate::masks) fn new(pieces: Arc<Pieces>) -> Self {
        Self {
            pieces,
            imported: HashMap::new(),
            by_expr: HashMap::new(),
            lexemes: Arc::new(AppendOnly::new()),
            num_lexemes: 0,
            whole: Vec::new(),
            by_state: SparseChunks::default(),
        }
    }

    /// What they are numbers into.
    pub(in crate::masks) fn pieces(&self) -> &Arc<Pieces> {
        &self.pieces
    }

    /// About how much memory they take, without the pieces.
    pub(in crate::masks) fn bytes(&self) -> usize {
        let maps = self.imported.len() + self.by_expr.len();
        maps * 32 + self.by_state.memory_bytes() + self.num_lexemes * 64 + self.whole.len() * 8
    }

    /// All lexemes, those that are made later too.
    pub(super) fn all(&self) -> &Arc<AppendOnly<Lexeme>> {
        &self.lexemes
    }

    /// What is left of terminals in a state.
    pub(super) fn in_progress(
        &mut self,
        lexer: &Lexer,
        state: LexerState,
    ) -> Result<Arc<InProgress>, Unread> {
        if let Some(Some(known)) = self.by_state.get(state.0 as usize) {
            return known.clone();
        }
        let found = lexer.remainders(state, |left| {
            if !left.independent {
                return Err(Unread::Unknown);
            }
            let live = if left.fresh { Box::default() } else { left.live.into() };
            Ok(Arc::new(InProgress { state, fresh: left.fresh, live }))
        });
        *self.by_state.entry(state.0 as usize) = Some(found.clone());
        found
    }

    /// What is left of one of the terminals in a state; `None` when it matches nothing.
    pub(super) fn left(
        &mut self,
        lexer: &Lexer,
        state: LexerState,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, Unread> {
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
    ) -> Result<Option<LexemeId>, Unread> {
        if let Some(&Whole::Known(known)) = self.whole.get(terminal.index()) {
            return Ok(known);
        }
        let found = lexer.remainders(lexer.start(), |left| {
            match left.live.binary_search_by_key(&terminal, |&(terminal, _)| terminal) {
                Ok(at) => self.make(left.expressions, left.live[at].1, budget),
                Err(_) => Ok(None),
            }
        })?;
        if self.whole.len() <= terminal.index() {
            self.whole.resize(terminal.index() + 1, Whole::Unasked);
        }
        self.whole[terminal.index()] = Whole::Known(found);
        Ok(found)
    }

    fn make(
        &mut self,
        expressions: &mut Expressions,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LexemeId>, Unread> {
        if let Some(&known) = self.by_expr.get(&expr) {
            return Ok(known);
        }
        if !expressions.is_context_free(expr) {
            return Err(Unread::Unknown);
        }
        let front = expressions.making(budget).front(expr)?;
        let known_whole = is_one_piece(&front);
        let Front { blanks, text, rest } = front;
        let mut growing = self.pieces.growing();
        let mut piece = |expr| {
            let mut making = growing.expressions.making(budget);
            let here = making.import(expressions, expr, &mut self.imported)?;
            self.pieces.intern(&mut growing, here, budget)
        };
        let made = match piece(rest)? {
            None => None,
            Some(rest) => {
                let blanks = blanks.map(&mut piece).transpose()?.flatten();
                let whole = if known_whole { piece(expr)? } else { None };
                self.lexemes.push(self.num_lexemes, Lexeme { blanks, text, rest, whole });
                self.num_lexemes += 1;
                Some(LexemeId(self.num_lexemes as u32 - 1))
            }
        };
        self.by_expr.insert(expr, made);
        Ok(made)
    }
}

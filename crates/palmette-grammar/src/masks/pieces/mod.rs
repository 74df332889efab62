//! Token effects, memoised per residual and shared by all grammars over a vocabulary.
//!
//! A *piece* is a residual, what is left of a terminal while its lexeme is in progress: the inside of a string, a
//! string of at most so many more characters, a date after its fourth digit. Pieces are expressions, and equal ones are one, whatever
//! grammar they come from. For a piece, two things are found out by one walk over the vocabulary ([`Analysis`]):
//!
//! - the tokens that *stay*: the lexeme goes on to the token's end, or ends just there;
//! - the places in the vocabulary's trie where the lexeme may *end* with more of a token to come. What comes then is a
//!   trie of suffixes ([`suffixes`]), small for most pieces: after a string's closing quote there is punctuation.
//!
//! A mask is then put together ([`reading`]) from what stays, for those terminals that the parser takes, and what a walk over the
//! tries of suffixes finds with a state of the parser's stack at hand ([`level`]). What depends on more of the stack is [pending] until
//! that is read. So masks ([`mask_nodes`]) and what goes on at a place in tokens ([`tail_nodes`]) are automata that read a stack.
//!
//! Pieces may be found out [ahead], and so may what stacks say ([`stacks_ahead`]).
//!
//! Where terminals compete for lexemes, or look at what follows these, a piece is *guarded*: an end of its lexeme asks something
//! of what follows, a *condition*. That goes along with the place in the token, so that the lexemes that begin there are those that
//! meet it ([`lexemes`]). Terminals that look at what is before their lexeme have no pieces.

mod ahead;
mod alike;
mod analysis;
mod byte_groups;
mod compare;
mod excepted;
mod gathered;
mod level;
mod lexemes;
mod mask_nodes;
mod merged;
mod models;
mod pending;
mod reading;
mod shape;
mod stacks_ahead;
mod steps;
mod suffixes;
mod tail_nodes;
mod tails;
mod token_set;
mod tops;
mod unions;

use hashbrown::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub(crate) use ahead::PiecesAhead;
use analysis::Analysis;
pub(super) use gathered::Gathered;
pub(super) use level::Component;
pub(super) use lexemes::Lexemes;
pub(super) use mask_nodes::ComponentsId;
use merged::Merged;
pub(super) use reading::{Reading, ReadingMemory};
use shape::TrieShape;
pub(super) use stacks_ahead::Look;
pub(crate) use stacks_ahead::StacksAhead;
use steps::StepTables;
use suffixes::Suffixes;
pub(super) use tails::{TailId, Tails};
use unions::Unions;

use crate::Budget;
use crate::byte_set::ByteSet;
use crate::lexer::AppendOnly;
use crate::regex::expressions::{
    ByteClasses, Exceeded, ExprId, ExpressionLimits, Expressions, Front,
};
use crate::vocabulary::VocabularyTrie;
use crate::{Interrupted, LexerError, LimitError};

/// An entry that was not asked for yet.
const UNKNOWN: u32 = 0;
/// An entry for what leads nowhere.
const DEAD: u32 = 1;
/// An entry for piece 0; others follow.
const FIRST_PIECE: u32 = 2;

/// What bounds the expressions; a grammar that needs more is walked. Their number is bounded by the memory of pieces.
const LIMITS: ExpressionLimits =
    ExpressionLimits { max_expressions: 16_000_000, max_nesting: 1_000, max_visited: 20_000 };

/// About how much memory an expression takes with its derivatives.
const EXPRESSION_BYTES: usize = 256;

/// Why a mask was not put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The pieces of the grammar are not known, and its masks are to be found by walking.
    Unknown,
    /// The budget is used up, or the work was called off.
    Interrupted(Interrupted),
}

impl From<Exceeded> for Unread {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Interrupted(why) => Self::Interrupted(why),
            _ => Self::Unknown,
        }
    }
}

impl From<LexerError> for Unread {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::Unknown, Self::Interrupted)
    }
}

impl From<LimitError> for Unread {
    fn from(_: LimitError) -> Self {
        Self::Unknown
    }
}

impl From<Interrupted> for Unread {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}

/// What is left of a terminal. A number into [`Pieces`]; equal numbers are equal pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PieceId(u32);

/// Pieces with what is known of them. Grows only; threads share it.
#[derive(Debug)]
pub(in crate::masks) struct Pieces {
    pieces: AppendOnly<Piece>,
    growing: Mutex<Growing>,
    suffixes: Suffixes,
    shape: TrieShape,
    step_tables: StepTables,
    unions: Unions,
    bytes: AtomicUsize,
    num_expressions: AtomicUsize,
}

/// The part that is behind a lock.
#[derive(Debug)]
struct Growing {
    expressions: Expressions,
    /// By expression: [`UNKNOWN`], [`DEAD`] where it matches nothing, or a piece's number after [`FIRST_PIECE`].
    ids: Vec<u32>,
    num_pieces: usize,
    /// Pieces that others are like.
    hubs: Vec<PieceId>,
    /// By condition, the bytes that it allows to come next.
    allowed: HashMap<ExprId, ByteSet>,
    /// For how many bytes two pieces agree.
    agreements: HashMap<(PieceId, PieceId), Option<u8>>,
    /// By what stands before a part, the nodes of the vocabulary's trie where that ends, if it ends there for sure.
    fronts: HashMap<ExprId, Option<Arc<[u32]>>>,
}

#[derive(Debug)]
struct Piece {
    expr: ExprId,
    classes: Arc<ByteClasses>,
    /// By class: [`UNKNOWN`], [`DEAD`], or a piece's number after [`FIRST_PIECE`].
    row: Box<[AtomicU32]>,
    /// What the lexeme asks of what follows to end here; never, where it cannot.
    ends: ExprId,
    /// Whether that may be more than nothing anywhere.
    guarded: bool,
    analysis: OnceLock<Box<Analysis>>,
    /// The vocabulary as the piece sees it, where it is a model.
    merged: OnceLock<Box<Merged>>,
}

impl Growing {
    fn remember(&mut self, expr: ExprId, entry: u32) {
        if self.ids.len() <= expr.index() {
            self.ids.resize(expr.index() + 1, UNKNOWN);
        }
        self.ids[expr.index()] = entry;
    }
}

impl Pieces {
    /// None yet.
    pub(in crate::masks) fn new(trie: &VocabularyTrie) -> Self {
        let expressions = Expressions::new(LIMITS).expect("the limits allow the first few");
        let shape = TrieShape::new(trie);
        Self {
            pieces: AppendOnly::new(),
            growing: Mutex::new(Growing {
                expressions,
                ids: Vec::new(),
                num_pieces: 0,
                hubs: Vec::new(),
                allowed: HashMap::new(),
                agreements: HashMap::new(),
                fronts: HashMap::new(),
            }),
            suffixes: Suffixes::new(trie),
            bytes: AtomicUsize::new(shape.memory_bytes()),
            shape,
            step_tables: StepTables::default(),
            unions: Unions::default(),
            num_expressions: AtomicUsize::new(0),
        }
    }

    /// About how much memory they take.
    pub(in crate::masks) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
            + self.suffixes.memory_bytes()
            + self.num_expressions.load(Ordering::Relaxed) * EXPRESSION_BYTES
    }

    /// What the lexeme asks of what follows to end here; `None` where it cannot.
    fn ends(&self, piece: PieceId) -> Option<ExprId> {
        Some(self.piece(piece).ends).filter(|&condition| condition != ExprId::NEVER)
    }

    /// Whether lexemes may ask something of what follows them.
    fn is_guarded(&self, piece: PieceId) -> bool {
        self.piece(piece).guarded
    }

    /// The bytes that a condition allows to come next.
    fn allowed_by(&self, condition: ExprId, budget: &mut Budget<'_>) -> Result<ByteSet, Exceeded> {
        let mut growing = self.growing();
        if let Some(known) = growing.allowed.get(&condition) {
            return Ok(*known);
        }
        let found = growing.expressions.first_bytes(condition, budget)?;
        growing.allowed.insert(condition, found);
        Ok(found)
    }

    /// The piece after a byte; `None` when nothing goes on so.
    fn advance(
        &self,
        piece: PieceId,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PieceId>, Exceeded> {
        let from = self.piece(piece);
        let class = from.classes.class(byte);
        match from.row[class].load(Ordering::Acquire) {
            UNKNOWN => self.find(from, class, budget),
            DEAD => Ok(None),
            found => Ok(Some(PieceId(found - FIRST_PIECE))),
        }
    }

    /// The bytes that a piece tells apart.
    fn classes(&self, piece: PieceId) -> &ByteClasses {
        &self.piece(piece).classes
    }

    /// What stands at a piece's front.
    fn front(&self, piece: PieceId, budget: &mut Budget<'_>) -> Result<Front, Exceeded> {
        let expr = self.piece(piece).expr;
        self.growing().expressions.making(budget).front(expr)
    }

    /// A piece that goes on as this one does for so many bytes; it may be this one.
    fn within(
        &self,
        piece: PieceId,
        num_bytes: u32,
        budget: &mut Budget<'_>,
    ) -> Result<PieceId, Exceeded> {
        let mut growing = self.growing();
        let within =
            growing.expressions.making(budget).within(self.piece(piece).expr, num_bytes)?;
        let within = within.map(|expr| self.intern(&mut growing, expr, budget)).transpose()?;
        Ok(within.flatten().unwrap_or(piece))
    }

    #[cold]
    fn find(
        &self,
        from: &Piece,
        class: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PieceId>, Exceeded> {
        let byte = from.classes.representatives()[class];
        let mut growing = self.growing();
        let after = growing.expressions.making(budget).derive(from.expr, byte)?;
        let found = self.intern(&mut growing, after, budget)?;
        let entry = found.map_or(DEAD, |piece| piece.0 + FIRST_PIECE);
        from.row[class].store(entry, Ordering::Release);
        Ok(found)
    }

    /// The piece of an expression; `None` when that matches nothing.
    fn intern(
        &self,
        growing: &mut Growing,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PieceId>, Exceeded> {
        match growing.ids.get(expr.index()) {
            None | Some(&UNKNOWN) => {}
            Some(&DEAD) => return Ok(None),
            Some(found) => return Ok(Some(PieceId(found - FIRST_PIECE))),
        }
        self.num_expressions.store(growing.expressions.len(), Ordering::Relaxed);
        if !growing.expressions.making(budget).matches_something(expr)? {
            growing.remember(expr, DEAD);
            return Ok(None);
        }
        let id = PieceId(growing.num_pieces as u32);
        let classes = growing.expressions.classes([expr]);
        let row: Box<[_]> = classes.representatives().iter().map(|_| UNKNOWN.into()).collect();
        let ends = growing.expressions.null(expr);
        let guarded = growing.expressions.looks_ahead(expr);
        self.add_bytes(size_of::<Piece>() + size_of_val(&*row));
        let (analysis, merged) = (OnceLock::new(), OnceLock::new());
        let piece = Piece { expr, classes, row, ends, guarded, analysis, merged };
        self.pieces.push(growing.num_pieces, piece);
        growing.num_pieces += 1;
        growing.remember(expr, id.0 + FIRST_PIECE);
        Ok(Some(id))
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn piece(&self, piece: PieceId) -> &Piece {
        self.pieces.get(piece.0 as usize)
    }

    fn growing(&self) -> MutexGuard<'_, Growing> {
        // What it holds is consistent after each of its steps, so a panic elsewhere does not spoil it.
        self.growing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Pieces {
    /// Of how many pieces it is known what tokens do to them.
    pub(in crate::masks) fn num_analysed(&self) -> usize {
        let num_pieces = self.growing().num_pieces;
        (0..num_pieces).filter(|&at| self.pieces.get(at).analysis.get().is_some()).count()
    }
}

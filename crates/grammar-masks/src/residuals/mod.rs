//! Token effects, memoised per residual and shared by all grammars over a vocabulary.
//!
//! A *residual* is the Brzozowski derivative of a terminal's expression by the bytes of the lexeme
//! read so far: the inside of a string, a string of at most so many more characters, a date after
//! its fourth digit. Residuals are hash-consed, so equal ones are one number, whatever grammar they
//! come from; their transitions are a lazy DFA. One walk over the vocabulary trie yields a
//! residual's [`TokenEffect`]:
//!
//! - the tokens *consumed whole*: the lexeme goes on to the token's end, or ends just there;
//! - the places in the vocabulary trie where the lexeme may *end* with more of a token to come.
//!   What comes then is a [suffix trie](suffix_trie), small for most residuals: after a string's
//!   closing quote there is punctuation.
//!
//! A residual that is almost another, its [reference](references), has its effect computed as a
//! [`difference`]: a walk along the pair that leaves out what cannot tell the two apart
//! ([`bounded_equivalence`]), for counts through the trie's quotient by the reference
//! ([`quotient_trie`]).
//!
//! A mask is the union, over the residuals that the tops of the LR stacks admit, of their consumed
//! tokens and of those suffixes that the parser accepts ([`mask_reading`]). Acceptance is found by
//! a [simulation](stack_simulation) of the parser on the top of a stack, which puts together the
//! [effects of lexemes](lexeme_effect) that begin at a [place](place) within tokens; a reduction
//! that pops below what was read is a [deferred reduction](deferred_reduction). Both, masks and
//! suffixes accepted at a place, are memoised as [stack automata](super::stack_automaton)
//! ([`stack_nodes`]). With blocks by indentation a place has a [state of the layer](layer_states)
//! between lexer and parser too, and [line's ends](line_ends) are told apart by the next line.
//!
//! Nodes, and the effects that they need, may be computed ahead of time ([`stack_worklist`]).
//!
//! Where terminals compete for lexemes, or look at what follows these, a residual is *guarded*: an
//! end of its lexeme asks something of what follows, a *condition*. That goes along with the place
//! in the token, so that the lexemes that begin there are those that meet it ([`lexemes`]). An
//! expression that looks behind within its lexeme carries what it has seen, and is a residual as it
//! is: nothing is cut off its front or put before it.

mod bounded_equivalence;
mod byte_groups;
mod deferred_reduction;
mod deferred_steps;
mod difference;
mod effect_computation;
mod effect_walk;
mod layer_states;
mod lexeme_effect;
mod lexemes;
mod line_end_bounds;
mod line_ends;
mod mask_failure;
mod mask_reading;
mod member_begin;
mod node_answer;
mod place;
mod quotient_trie;
mod quotient_walk;
mod references;
mod relative_layers;
mod residual_id;
mod simulation_context;
mod simulation_memory;
mod stack_nodes;
mod stack_simulation;
mod stack_worklist;
mod suffix_set;
mod suffix_sets;
mod suffix_trie;
mod token_effect;
mod transition_table;
mod transitions;
mod trie_shape;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use hashbrown::HashMap;
use palmette_core::VocabularyTrie;
use palmette_grammar_regex::ByteSet;
use palmette_grammar_regex::expressions::{
    ByteClasses, Exceeded, ExprId, ExpressionLimits, Expressions,
};

pub(super) use layer_states::{LayerId, LayerState};
pub(super) use lexemes::Lexemes;
pub(super) use mask_failure::MaskFailure;
pub(super) use mask_reading::Reading;
pub(super) use member_begin::MemberBegin;
pub(super) use node_answer::{NodeAnswer, NodeKey};
use quotient_trie::QuotientTrie;
pub(super) use residual_id::ResidualId;
pub(super) use stack_worklist::StackWorklist;
pub(super) use suffix_set::{SetKind, SuffixSetId};
pub(super) use suffix_sets::SuffixSets;
use suffix_trie::SuffixTries;
use token_effect::TokenEffect;
use transition_table::TransitionTable;
use trie_shape::TrieShape;

use crate::Budget;
use crate::mask_pool::{Row, RowEncoder};

/// An entry that was not asked for yet.
const UNKNOWN: u32 = 0;
/// An entry for what leads nowhere.
const DEAD: u32 = 1;
/// An entry for residual 0; others follow.
const FIRST_RESIDUAL: u32 = 2;

/// Limits of the expressions; a grammar that needs more is walked. Their number is bounded by the
/// memory of residuals.
const LIMITS: ExpressionLimits =
    ExpressionLimits { max_expressions: 16_000_000, max_nesting: 1_000, max_visited: 20_000 };

/// About how much memory an expression takes with its derivatives.
const EXPRESSION_BYTES: usize = 256;

/// The residual store of a vocabulary: expressions, lazy DFA rows and token effects. Grows only;
/// threads share it.
#[derive(Debug)]
pub(crate) struct Residuals {
    residuals: boxcar::Vec<Residual>,
    growing: Mutex<Growing>,
    suffixes: SuffixTries,
    shape: TrieShape,
    /// The tables of walks that have ended, at most one for each walk that there was at the same
    /// time.
    transition_tables: Mutex<Vec<TransitionTable>>,
    encoder: Mutex<RowEncoder>,
    bytes: AtomicUsize,
    num_expressions: AtomicUsize,
}

/// The part that is behind a lock.
#[derive(Debug)]
struct Growing {
    expressions: Expressions,
    /// Residuals by expression; `None` where it matches nothing.
    ids: HashMap<ExprId, Option<ResidualId>>,
    /// Reference residuals, which others are compared with.
    references: Vec<ResidualId>,
    /// References for guarded residuals, the newest last.
    guarded_references: VecDeque<ResidualId>,
    /// Next bytes by the condition that allows them.
    allowed: HashMap<ExprId, ByteSet>,
    /// Numbers of bytes for which two residuals agree.
    agreements: HashMap<(ResidualId, ResidualId), Option<u8>>,
}

#[derive(Debug)]
struct Residual {
    expr: ExprId,
    classes: Arc<ByteClasses>,
    /// Transitions by class: [`UNKNOWN`], [`DEAD`], or a residual's number after
    /// [`FIRST_RESIDUAL`].
    row: Box<[AtomicU32]>,
    /// Condition that an end of the lexeme puts on what follows; never, where it cannot end here.
    ends: ExprId,
    /// True when that may be more than nothing anywhere, or what was read of the lexeme still
    /// matters beside what is left.
    guarded: bool,
    effect: OnceLock<Box<TokenEffect>>,
    /// The vocabulary trie, quotiented by this residual, where it is a reference.
    quotient: OnceLock<Box<QuotientTrie>>,
}

impl Residuals {
    /// None yet.
    pub(crate) fn new(trie: &VocabularyTrie) -> Self {
        let expressions = Expressions::new(LIMITS).expect("the limits allow the first few");
        let shape = TrieShape::new(trie);
        Self {
            residuals: boxcar::Vec::new(),
            growing: Mutex::new(Growing {
                expressions,
                ids: HashMap::new(),
                references: Vec::new(),
                guarded_references: VecDeque::new(),
                allowed: HashMap::new(),
                agreements: HashMap::new(),
            }),
            suffixes: SuffixTries::new(trie),
            bytes: AtomicUsize::new(shape.memory_bytes()),
            shape,
            transition_tables: Mutex::default(),
            encoder: Mutex::default(),
            num_expressions: AtomicUsize::new(0),
        }
    }

    /// About how much memory they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
            + self.suffixes.memory_bytes()
            + self.num_expressions.load(Ordering::Relaxed) * EXPRESSION_BYTES
    }

    /// Condition that an end of the lexeme puts on what follows; `None` where it cannot end here.
    fn ends(&self, residual: ResidualId) -> Option<ExprId> {
        Some(self.residual(residual).ends).filter(|&condition| condition != ExprId::NEVER)
    }

    /// True when lexemes may ask something of what follows them, or look behind: then they are
    /// compared with no other residual.
    fn is_guarded(&self, residual: ResidualId) -> bool {
        self.residual(residual).guarded
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

    /// The nodes among some where a token goes on as a condition allows, as far as the next byte
    /// tells.
    fn going_on(
        &self,
        trie: &VocabularyTrie,
        nodes: impl Iterator<Item = u32>,
        condition: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<u32>, Exceeded> {
        let allowed = self.allowed_by(condition, budget)?;
        let goes_on =
            |&node: &u32| trie.children(node as usize).any(|child| allowed.contains(child.byte));
        Ok(nodes.filter(goes_on).collect())
    }

    /// The residual after a byte; `None` when nothing goes on so.
    fn advance(
        &self,
        residual: ResidualId,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ResidualId>, Exceeded> {
        let from = self.residual(residual);
        let class = from.classes.class(byte);
        match from.row[class].load(Ordering::Acquire) {
            UNKNOWN => self.find(from, class, budget),
            DEAD => Ok(None),
            found => Ok(Some(ResidualId(found - FIRST_RESIDUAL))),
        }
    }

    /// The bytes that a residual tells apart.
    fn classes(&self, residual: ResidualId) -> &ByteClasses {
        &self.residual(residual).classes
    }

    #[cold]
    fn find(
        &self,
        from: &Residual,
        class: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ResidualId>, Exceeded> {
        let byte = from.classes.representatives()[class];
        let mut growing = self.growing();
        let after = growing.expressions.making(budget).derive(from.expr, byte)?;
        let found = self.intern(&mut growing, after, budget)?;
        let entry = found.map_or(DEAD, |residual| residual.0 + FIRST_RESIDUAL);
        from.row[class].store(entry, Ordering::Release);
        Ok(found)
    }

    /// The residual of an expression; `None` when that matches nothing.
    fn intern(
        &self,
        growing: &mut Growing,
        expr: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ResidualId>, Exceeded> {
        if let Some(&known) = growing.ids.get(&expr) {
            return Ok(known);
        }
        self.num_expressions.store(growing.expressions.len(), Ordering::Relaxed);
        if !growing.expressions.making(budget).matches_something(expr)? {
            growing.ids.insert(expr, None);
            return Ok(None);
        }
        let classes = growing.expressions.classes([expr]);
        let row: Box<[_]> = classes.representatives().iter().map(|_| UNKNOWN.into()).collect();
        let ends = growing.expressions.null(expr);
        let guarded =
            growing.expressions.looks_ahead(expr) || growing.expressions.looks_behind(expr);
        self.add_bytes(size_of::<Residual>() + size_of_val(&*row));
        let (effect, quotient) = (OnceLock::new(), OnceLock::new());
        let residual = Residual { expr, classes, row, ends, guarded, effect, quotient };
        let id = ResidualId(self.residuals.push(residual) as u32);
        growing.ids.insert(expr, Some(id));
        Ok(Some(id))
    }

    /// The row of some words, perhaps near that of a reference.
    fn encode(&self, words: &[u32], like: Option<&Row>) -> Row {
        let mut encoder = self.encoder.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = encoder.memory_bytes();
        let row = encoder.encode(words, like);
        self.add_bytes(encoder.memory_bytes() - before);
        row
    }

    /// The tokens that a residual consumes whole.
    pub(crate) fn consumed(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        residual: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<&Row, MaskFailure> {
        Ok(&self.effect(trie, num_words, residual, budget)?.consumed)
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn residual(&self, residual: ResidualId) -> &Residual {
        &self.residuals[residual.0 as usize]
    }

    fn growing(&self) -> MutexGuard<'_, Growing> {
        // What it holds is consistent after each of its steps, so a panic elsewhere does not spoil
        // it.
        self.growing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

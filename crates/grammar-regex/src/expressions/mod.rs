//! Interned expressions over bytes, and their derivatives.
//!
//! # What an expression denotes
//! A set of pairs (lexeme, what follows): a lexeme may be matched only where what follows allows
//! it, as lookaheads ask. For an expression without them, what follows does not matter. The
//! derivative by a byte takes that byte off the lexeme's front; [`Expressions::null`] is what the
//! empty lexeme asks of what follows: again an expression, a *condition*, which denotes the set of
//! the texts that it matches up to their end. [`ExprId::ALL`] as a condition always holds,
//! [`ExprId::NEVER`] never.
//!
//! A lookbehind carries the derivative of "anything, then what is looked for" by the lexeme so far,
//! so it must be brought forward also where it stands in a part that has not begun:
//! `Expressions::derive` does.
//!
//! Everything is bytes; a complement is taken within UTF-8 texts when a tree is compiled
//! (`compile`).

mod build;
mod byte_classes;
mod class_rows;
mod compile;
mod conditions;
mod derive;
mod emptiness;
mod histories;
mod horizon;
mod import;
mod maker;
mod ordered;
mod relax;
mod utf8;

use std::sync::Arc;

pub use byte_classes::ByteClasses;
use byte_classes::{PartitionId, Partitions};
use class_rows::ClassRows;
pub use compile::{CompileErrorKind, Unpicked};
pub use conditions::NextBytes;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
pub use horizon::Horizon;
pub use import::Front;
pub use maker::Maker;

use crate::byte_set::ByteSet;
use crate::{Budget, CharClass, Interrupted, Multiple, Regex};

/// An expression's place in [`Expressions`]. Equal ids are equal expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(u32);

/// The shape of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// No text: the empty set.
    Never,
    /// The empty lexeme, whatever follows.
    Empty,
    /// A switch: one byte, then what its arm says. Arms are sorted and disjoint.
    Switch(Box<[Arm]>),
    /// Concatenation. The first is no concatenation.
    Concat(ExprId, ExprId),
    /// Union: sorted, at least two.
    Or(Box<[ExprId]>),
    /// Ordered choice: a backtracking matcher tries the parts in this order. At least two.
    Ordered(Box<[ExprId]>),
    /// The digits of the multiples of a number.
    Multiple(Multiple),
    /// Intersection: sorted, at least two.
    And(Box<[ExprId]>),
    /// Any bytes and any following text but these.
    Not(ExprId),
    /// A number of times.
    Repeat(Repeat),
    /// The empty lexeme where the text so far is in `history`, or is not.
    Behind { history: ExprId, negated: bool },
    /// Longest first: these lexemes; a backtracking matcher tries the longest first, whatever they
    /// are made of.
    Unordered(ExprId),
    /// A text by itself: nothing is before it and nothing follows, as far as its lookarounds see.
    Whole(ExprId),
    /// Conditioned expression: `inner` where the lexeme and what follows together are in
    /// `condition`.
    Given { condition: ExprId, inner: ExprId },
    /// Ordered choice, a backtracking matcher's pick: the first of these parts that matches, now or
    /// later.
    First(Box<[Item]>),
    /// A condition: the expression matches a lexeme that is not empty at the front of the text.
    Grows(ExprId),
    /// Lexemes that with a part of what follows, not empty, are a longer lexeme of the expression.
    Longer(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Arm {
    low: u8,
    high: u8,
    then: ExprId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Repeat {
    inner: ExprId,
    min: u32,
    max: Option<u32>,
    reluctant: bool,
}

/// A part of [`Node::First`], in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    /// The lexeme ends here if the condition holds.
    Match(ExprId),
    /// Residual: the lexemes of this expression that are not empty.
    Go(ExprId),
}

/// Properties of an expression beside its shape.
#[derive(Clone, Copy, Debug)]
struct Facts {
    null: ExprId,
    partition: PartitionId,
    /// True when a lookbehind is in a part that derivatives bring forward.
    behind: bool,
    /// True when what follows may matter.
    ahead: bool,
    /// True when only [`Node::Never`] is empty among the expressions made of such parts.
    plain: bool,
    /// True when the empty lexeme with nothing following is in.
    at_end: bool,
    /// Depth to which a derivative may have to descend.
    reach: u32,
    /// No lexeme has fewer bytes. A guess for a search, from below: parts that contradict each
    /// other are not looked into.
    shortest: u32,
    /// Guide for a search: as `shortest`, but that of an intersection's parts together, so that
    /// what brings one of them nearer to its end is tried first.
    distance: u32,
    /// No lexeme has more bytes; [`UNBOUNDED`] where that is not known.
    longest: u32,
    /// No repeat within has a greater bound.
    greatest_bound: u32,
    /// True when some lexeme is in, where that has been found out.
    has_lexemes: Option<bool>,
    /// True when it holds for some text as a condition, where that has been found out.
    can_hold: Option<bool>,
}

/// No bound on the bytes of lexemes, or one beyond all use.
const UNBOUNDED: u32 = u32::MAX;

/// An expression as it is found by its shape.
#[derive(Clone, Copy, Debug)]
struct Interned {
    id: ExprId,
    /// Hash of its shape, so that neither a growing table nor most look-ups go to the shape itself.
    hash: u64,
}

/// Limits on the work of [`Expressions`].
#[derive(Clone, Copy, Debug)]
pub struct ExpressionLimits {
    /// Limit on the number of expressions.
    pub max_expressions: usize,
    /// Limit on the nesting of expressions in places that a derivative descends to.
    pub max_nesting: u32,
    /// Limit on the expressions that one question about emptiness may visit.
    pub max_visited: usize,
}

/// A limit is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// Limit on the number of expressions.
    #[error("more than max_expressions = {0} expressions; raise it or simplify the terminals")]
    Expressions(usize),
    /// Limit on the nesting of expressions.
    #[error(
        "expressions nest deeper than max_nesting = {0}; raise it or write a shorter chain of optional parts"
    )]
    Nesting(u32),
    /// Limit on the expressions that one question visits.
    #[error(
        "deciding whether some text is left took more than max_visited = {0} expressions; raise it or simplify \
         the intersections and complements"
    )]
    Visited(usize),
    /// The budget is used up, or the work was called off.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

type ExprResult = Result<ExprId, Exceeded>;

/// All expressions made so far, with their derivatives. Grows only.
#[derive(Debug)]
pub struct Expressions {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    ids: HashTable<Interned>,
    hasher: DefaultHashBuilder,
    partitions: Partitions,
    /// Derivatives by the classes of the expression's partition.
    derivatives: ClassRows,
    /// Memo of lookbehinds brought forward.
    forwards: ClassRows,
    /// Parts that a backtracking matcher tries, in order.
    splits: HashMap<ExprId, Arc<[Item]>>,
    /// Memo of expressions within horizons.
    horizons: HashMap<(ExprId, Horizon), ExprId>,
    relaxations: HashMap<ExprId, ExprId>,
    char_classes: HashMap<CharClass, ExprId>,
    /// Memo of alternatives that several trees have, by address; each is kept, so that no other has
    /// it.
    shared_options: HashMap<usize, (Arc<[Regex]>, ExprId)>,
    /// Every UTF-8 text.
    utf8: ExprId,
    /// Memory that the nodes keep elsewhere.
    list_bytes: usize,
    limits: ExpressionLimits,
}

impl ExprId {
    /// The empty set; the condition that never holds.
    pub const NEVER: Self = Self(0);
    /// The empty lexeme.
    pub const EMPTY: Self = Self(1);
    /// Any one byte.
    pub const ANY_BYTE: Self = Self(2);
    /// Any bytes; the condition that always holds.
    pub const ALL: Self = Self(3);
}

impl Expressions {
    /// The constants and no more: [`ExprId::NEVER`] and so on.
    ///
    /// # Errors
    /// When the limits do not leave room for these.
    pub fn new(limits: ExpressionLimits) -> Result<Self, Exceeded> {
        let mut made = Self {
            nodes: Vec::new(),
            facts: Vec::new(),
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            partitions: Partitions::new(),
            derivatives: ClassRows::default(),
            forwards: ClassRows::default(),
            splits: HashMap::new(),
            horizons: HashMap::new(),
            relaxations: HashMap::new(),
            char_classes: HashMap::new(),
            shared_options: HashMap::new(),
            utf8: ExprId::NEVER,
            list_bytes: 0,
            limits,
        };
        made.making(&mut Budget::unlimited()).make_constants()?;
        Ok(made)
    }

    /// A maker of more expressions, while the budget lasts.
    pub fn making<'e, 'b>(&'e mut self, budget: &'e mut Budget<'b>) -> Maker<'e, 'b> {
        Maker::new(self, budget)
    }

    /// Condition that the empty lexeme puts on what follows.
    pub fn null(&self, of: ExprId) -> ExprId {
        self.facts(of).null
    }

    /// True when a condition holds when nothing follows.
    pub fn holds_at_end(&self, condition: ExprId) -> bool {
        self.facts(condition).at_end
    }

    /// True when what follows a lexeme may matter.
    pub fn looks_ahead(&self, of: ExprId) -> bool {
        self.facts(of).ahead
    }

    /// True when it has finitely many lexemes for sure.
    pub fn is_finite(&self, of: ExprId) -> bool {
        self.facts(of).longest < UNBOUNDED
    }

    /// Number of expressions.
    #[allow(
        clippy::len_without_is_empty,
        reason = "there are always those of nothing and of the empty lexeme"
    )]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        self.list_bytes
            + self.nodes.capacity() * (size_of::<Node>() + size_of::<Facts>())
            + self.ids.capacity() * (size_of::<Interned>() + 1)
            + self.derivatives.bytes()
            + self.forwards.bytes()
            + self.partitions.bytes()
    }

    /// The coarsest classes of bytes that none of `exprs` tells apart.
    pub fn classes(&mut self, exprs: impl IntoIterator<Item = ExprId>) -> Arc<ByteClasses> {
        let mut joined = PartitionId::TRIVIAL;
        for expr in exprs {
            let next = self.facts[expr.index()].partition;
            joined = self.partitions.join(joined, next);
        }
        Arc::clone(self.partitions.get(joined))
    }

    /// The bytes after which something is left of an expression.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn first_bytes(
        &mut self,
        of: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<ByteSet, Exceeded> {
        let classes = self.classes([of]);
        let mut leads = Vec::with_capacity(classes.representatives().len());
        for &byte in classes.representatives() {
            leads.push(self.making(budget).derive(of, byte)? != ExprId::NEVER);
        }
        let mut found = ByteSet::default();
        found.insert_all((0..=u8::MAX).filter(|&byte| leads[classes.class(byte)]));
        Ok(found)
    }

    fn facts(&self, of: ExprId) -> &Facts {
        &self.facts[of.index()]
    }

    fn node(&self, of: ExprId) -> &Node {
        &self.nodes[of.index()]
    }
}

impl ExprId {
    /// Place among all expressions.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Node {
    /// Number of parts that it lists.
    fn num_parts(&self) -> u64 {
        let parts = match self {
            Self::Switch(arms) => arms.len(),
            Self::Or(parts) | Self::Ordered(parts) | Self::And(parts) => parts.len(),
            Self::First(items) => items.len(),
            _ => 1,
        };
        parts as u64
    }

    /// The memory of the lists it owns.
    fn list_bytes(&self) -> usize {
        match self {
            Self::Switch(arms) => size_of_val(&**arms),
            Self::Or(parts) | Self::Ordered(parts) | Self::And(parts) => size_of_val(&**parts),
            Self::First(items) => size_of_val(&**items),
            _ => 0,
        }
    }
}

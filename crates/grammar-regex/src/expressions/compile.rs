//! The compiler from trees of regular expressions to hash-consed expressions.

use std::sync::Arc;

use palmette_core::NUMBER_MARK;

use super::{Arm, Exceeded, ExprId, ExprResult, Maker, Node, Repeat};
use crate::Regex;
use crate::tokens::TokenPattern;

/// Reason that a tree has no expression.
#[derive(Debug)]
pub struct CompileError(pub CompileErrorKind);

/// Kinds of reasons that a tree has no expression.
#[derive(Debug, thiserror::Error)]
pub enum CompileErrorKind {
    /// A reluctant quantifier where a set of texts is asked for.
    #[error(
        "a reluctant quantifier stands inside `{0}`, where a set of texts is asked for and not the first match; \
         write the quantifier without its `?`"
    )]
    ReluctantInside(&'static str),
    /// A token by name, whose number is not known.
    #[error(
        "it asks for token {0} by name, whose number only a vocabulary knows; resolve the grammar's tokens first"
    )]
    Unresolved(String),
    /// Nesting beyond the limit.
    #[error("it nests deeper than {0} levels; write it flatter")]
    Deep(u32),
    /// A limit of the expressions.
    #[error("{0}")]
    Exceeded(#[from] Exceeded),
}

impl<E: Into<CompileErrorKind>> From<E> for CompileError {
    fn from(kind: E) -> Self {
        Self(kind.into())
    }
}

/// Lexemes that no matcher has picked among yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unpicked {
    /// The lexemes.
    pub expr: ExprId,
    /// True when their order decides which of them ends a terminal.
    pub is_ordered: bool,
}

type Compiled = Result<ExprId, CompileError>;

/// Fate of the order in which a backtracking matcher tries things.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Kept,
    Dropped,
    /// Dropped, within a text by itself.
    Alone,
}

impl Order {
    /// Order within a set.
    fn of_set(self) -> Self {
        if self == Self::Alone { self } else { Self::Dropped }
    }
}

impl Maker<'_, '_> {
    /// The lexemes of a terminal with this tree.
    pub fn compile(&mut self, regex: &Regex) -> Compiled {
        let unpicked = self.compile_unpicked(regex)?;
        Ok(self.picked(unpicked)?)
    }

    /// The lexemes of a terminal before a backtracking matcher has picked among them, so that
    /// lookbehinds at their beginning can still be brought forward.
    pub fn compile_unpicked(&mut self, regex: &Regex) -> Result<Unpicked, CompileError> {
        self.check_depth(regex, 0)?;
        let is_ordered = is_reluctant(regex);
        let order = if is_ordered { Order::Kept } else { Order::Dropped };
        Ok(Unpicked { expr: self.tree(regex, order)?, is_ordered })
    }

    /// Pick of a backtracking matcher, where there is one to make.
    pub fn picked(&mut self, of: Unpicked) -> ExprResult {
        if of.is_ordered { self.first(of.expr) } else { Ok(of.expr) }
    }

    fn tree(&mut self, regex: &Regex, order: Order) -> Compiled {
        self.spend(1)?;
        Ok(match regex {
            Regex::Never => ExprId::NEVER,
            Regex::Empty => ExprId::EMPTY,
            Regex::Literal(text) => self.literals(vec![text.as_bytes()])?,
            Regex::Class(class) => self.class(class)?,
            Regex::Tokens(tokens) => self.tokens(tokens)?,
            Regex::Multiple(_) if order == Order::Kept => {
                let set = self.tree(regex, Order::Dropped)?;
                self.unordered(set)?
            }
            Regex::Multiple(of) => self.intern(Node::Multiple(*of))?,
            Regex::Concat(parts) => {
                let mut whole = ExprId::EMPTY;
                for part in parts.iter().rev() {
                    let part = self.tree(part, order)?;
                    whole = self.concat(part, whole)?;
                }
                whole
            }
            Regex::Alternate(options) if order == Order::Kept => {
                let mut compiled = Vec::with_capacity(options.len());
                for option in options.iter() {
                    compiled.push(self.tree(option, order)?);
                }
                self.ordered(compiled)?
            }
            // What may stand before each token of JSON is one tree in all of them.
            Regex::Alternate(options)
                if order == Order::Dropped && Arc::strong_count(options) > 1 =>
            {
                let address = Arc::as_ptr(options).addr();
                if let Some(&(_, known)) = self.shared_options.get(&address) {
                    return Ok(known);
                }
                let made = self.alternatives(options, order)?;
                self.shared_options.insert(address, (Arc::clone(options), made));
                made
            }
            Regex::Alternate(options) => self.alternatives(options, order)?,
            Regex::Repeat { inner, min, max, reluctant } => {
                if max.is_some_and(|max| max < *min) {
                    return Ok(ExprId::NEVER);
                }
                let inner = self.tree(inner, order)?;
                let reluctant = *reluctant && order == Order::Kept;
                self.repeated(Repeat { inner, min: *min, max: *max, reluctant })?
            }
            Regex::And(_) | Regex::Not(_) | Regex::Whole(_) if order == Order::Kept => {
                let set = self.tree(regex, Order::Dropped)?;
                self.unordered(set)?
            }
            Regex::And(parts) => {
                refuse_reluctant(parts, "an intersection")?;
                let mut compiled = vec![self.utf8];
                for part in parts.iter() {
                    compiled.push(self.tree(part, order.of_set())?);
                }
                if !parts.is_empty() {
                    compiled.remove(0);
                }
                self.and(compiled)?
            }
            Regex::Not(inner) => {
                refuse_reluctant(std::slice::from_ref(inner), "a complement")?;
                let inner = match has_look(inner) {
                    true => self.tree(inner, order.of_set())?,
                    false => self.open(inner)?,
                };
                let others = self.not(inner)?;
                self.and([self.utf8, others])?
            }
            Regex::Whole(inner) => {
                let inner = self.tree(inner, Order::Alone)?;
                self.whole(inner)?
            }
            Regex::Look { inner, behind: true, negated } => {
                let mut history = self.tree(inner, order.of_set())?;
                if order != Order::Alone {
                    history = self.concat(ExprId::ALL, history)?;
                }
                self.behind(history, *negated)?
            }
            Regex::Look { inner, behind: false, negated } => {
                let inner = self.tree(inner, order.of_set())?;
                let seen = self.concat(inner, ExprId::ALL)?;
                let condition = if *negated { self.not(seen)? } else { seen };
                self.given(condition, ExprId::EMPTY)?
            }
        })
    }

    fn alternatives(&mut self, options: &[Regex], order: Order) -> Compiled {
        let (mut compiled, mut texts) = (Vec::new(), Vec::new());
        for option in options {
            match option {
                Regex::Literal(text) => texts.push(text.as_bytes()),
                _ => compiled.push(self.tree(option, order)?),
            }
        }
        compiled.push(self.literals(texts)?);
        Ok(self.or(compiled)?)
    }

    /// A set with the same UTF-8 texts as the tree: where any text may come last, any bytes may.
    ///
    /// Among UTF-8 texts that is the same, since no character begins another. It is for
    /// complements: once what they forbid has come, nothing is left of them, and that is then plain
    /// without a search.
    fn open(&mut self, regex: &Regex) -> Compiled {
        self.spend(1)?;
        Ok(match regex {
            Regex::Concat(parts) if is_open(regex) => {
                let mut whole = ExprId::ALL;
                for part in parts[..parts.len() - 1].iter().rev() {
                    let part = self.tree(part, Order::Dropped)?;
                    whole = self.concat(part, whole)?;
                }
                whole
            }
            Regex::Alternate(parts) | Regex::And(parts) if parts.iter().any(is_open) => {
                let mut compiled = Vec::with_capacity(parts.len());
                for part in parts.iter() {
                    compiled.push(self.open(part)?);
                }
                let all = matches!(regex, Regex::And(_));
                if all { self.and(compiled)? } else { self.or(compiled)? }
            }
            _ => self.tree(regex, Order::Dropped)?,
        })
    }

    /// The union of tokens, each spelled by its number.
    fn tokens(&mut self, tokens: &TokenPattern) -> Compiled {
        let ranges =
            tokens.ranges().map_err(|name| CompileErrorKind::Unresolved(name.to_owned()))?;
        let number = self.number(&ranges, u32::BITS - 8)?;
        Ok(self.switch([Arm { low: NUMBER_MARK, high: NUMBER_MARK, then: number }])?)
    }

    /// A number within the ranges, which ascend and are apart, from its byte at `shift` on.
    fn number(&mut self, ranges: &[(u32, u32)], shift: u32) -> ExprResult {
        self.spend(1 + ranges.len() as u64)?;
        let below = (1 << shift) - 1;
        let mut arms = Vec::new();
        for digit in 0..=u8::MAX {
            let from = u32::from(digit) << shift;
            let first = ranges.partition_point(|&(_, high)| high < from);
            let within = ranges[first..].iter().take_while(|&&(low, _)| low <= from + below);
            let within: Vec<_> = within
                .map(|&(low, high)| (low.max(from) - from, high.min(from + below) - from))
                .collect();
            let then = match (&*within, shift) {
                ([], _) => continue,
                (_, 0) => ExprId::EMPTY,
                _ => self.number(&within, shift - 8)?,
            };
            arms.push(Arm { low: digit, high: digit, then });
        }
        self.switch(arms)
    }

    /// The union of texts: a tree by their beginnings, whose equal branches are one.
    fn literals(&mut self, mut texts: Vec<&[u8]>) -> ExprResult {
        /// Node of a trie: texts that begin with the bytes on the way here.
        #[derive(Default)]
        struct Branch {
            byte: u8,
            ends: bool,
            arms: Vec<Arm>,
        }
        if texts.is_empty() {
            return Ok(ExprId::NEVER);
        }
        self.spend(texts.iter().map(|text| text.len() as u64).sum())?;
        texts.sort_unstable();
        let mut way = vec![Branch::default()];
        let mut before: &[u8] = &[];
        for text in texts.into_iter().map(Some).chain([None]) {
            let shared =
                text.map_or(0, |text| before.iter().zip(text).take_while(|(a, b)| a == b).count());
            while way.len() > shared + 1 {
                let Some(branch) = way.pop() else { break };
                let then = self.branch(branch.arms, branch.ends)?;
                if let Some(parent) = way.last_mut() {
                    parent.arms.push(Arm { low: branch.byte, high: branch.byte, then });
                }
            }
            if let Some(text) = text {
                let rest = text[shared..].iter();
                way.extend(rest.map(|&byte| Branch { byte, ..Branch::default() }));
                if let Some(last) = way.last_mut() {
                    last.ends = true;
                }
                before = text;
            }
        }
        let root = way.remove(0);
        self.branch(root.arms, root.ends)
    }

    fn branch(&mut self, arms: Vec<Arm>, ends: bool) -> ExprResult {
        let on = self.switch(arms)?;
        if ends { self.or([ExprId::EMPTY, on]) } else { Ok(on) }
    }

    /// Refuses a tree that is deeper than the limit, before anything descends into it without
    /// looking.
    fn check_depth(&mut self, regex: &Regex, depth: u32) -> Result<(), CompileError> {
        self.spend(1)?;
        if depth > self.limits.max_nesting {
            return Err(CompileErrorKind::Deep(self.limits.max_nesting).into());
        }
        children(regex).iter().try_for_each(|child| self.check_depth(child, depth + 1))
    }
}

/// True when a reluctant quantifier decides where a lexeme ends.
fn is_reluctant(regex: &Regex) -> bool {
    match regex {
        Regex::Repeat { reluctant: true, .. } => true,
        Regex::Look { .. } | Regex::Whole(_) => false,
        _ => children(regex).iter().any(is_reluctant),
    }
}

/// True when any text may come last.
fn is_open(regex: &Regex) -> bool {
    match regex {
        Regex::Concat(parts) => parts.last().is_some_and(|last| *last == Regex::anything()),
        Regex::Alternate(parts) | Regex::And(parts) => parts.iter().any(is_open),
        _ => false,
    }
}

fn has_look(regex: &Regex) -> bool {
    match regex {
        Regex::Look { .. } => true,
        Regex::Whole(_) => false,
        _ => children(regex).iter().any(has_look),
    }
}

fn refuse_reluctant(parts: &[Regex], inside: &'static str) -> Result<(), CompileError> {
    if parts.iter().any(is_reluctant) {
        return Err(CompileErrorKind::ReluctantInside(inside).into());
    }
    Ok(())
}

fn children(regex: &Regex) -> &[Regex] {
    match regex {
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Tokens(_) => &[],
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => parts,
        Regex::Repeat { inner, .. }
        | Regex::Not(inner)
        | Regex::Whole(inner)
        | Regex::Look { inner, .. } => std::slice::from_ref(inner),
    }
}

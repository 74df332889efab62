//! One walk over the vocabulary for each piece.
//!
//! A piece is mostly like another that is known already: a string of at most forty more characters like one of any length,
//! a name that is none of five like any name. Then the walk goes through both at once ([`Analysing::compare`]), and leaves
//! out each part of the vocabulary where nothing can tell them apart: where they have become equal, differ in counts that no
//! token there uses up, or differ only in where they may end and no token there ends them.

use hashbrown::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use palmette_core::{TokenId, mask};

use super::shape::contains;
use super::steps::{Local, Steps};
use super::suffixes::SuffixId;
use super::{PieceId, Pieces, Unread};
use crate::Budget;
use crate::regex::expressions::{Exceeded, ExprId, Roaming};
use crate::vocabulary::VocabularyTrie;

/// What tokens do to a lexeme in progress.
#[derive(Debug)]
pub(super) struct Analysis {
    /// The tokens after which the lexeme goes on, or has just ended.
    pub(super) stay: TokenSet,
    /// What may be left of a token when the lexeme has ended within it, not at its front.
    pub(super) suffixes: Box<[(SuffixId, Option<Arc<Except>>)]>,
    /// The nodes of the vocabulary's trie where it may have, with more to come; ascending.
    ends: Box<[u32]>,
}

/// Tokens of a trie of suffixes that do not count, each with the length of its suffix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Except {
    /// Ascending.
    tokens: Box<[(TokenId, u32)]>,
}

impl Except {
    /// Whether the token does not count where so many bytes are left of it.
    pub(super) fn contains(&self, token: TokenId, left: u32) -> bool {
        self.tokens.binary_search(&(token, left)).is_ok()
    }
}

/// A set of tokens.
#[derive(Debug)]
pub(super) enum TokenSet {
    /// A mask row.
    Mask(Box<[u32]>),
    /// Few tokens.
    List(Box<[TokenId]>),
}

/// More exceptions than this are not kept: the trie of suffixes is built without them.
const MAX_EXCEPTIONS: usize = 4096;

impl TokenSet {
    /// The set of these tokens, for a mask row of so many words.
    fn new(tokens: Vec<TokenId>, num_words: usize) -> Self {
        if tokens.len() < num_words {
            return Self::List(tokens.into());
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(words.into())
    }

    /// The set without some tokens and with others, none of which is in both.
    fn changed(&self, inserted: Vec<TokenId>, mut denied: Vec<TokenId>, num_words: usize) -> Self {
        match self {
            Self::Mask(words) => {
                let mut words = words.clone();
                for token in denied {
                    words[token.index() / 32] &= !(1 << (token.index() % 32));
                }
                inserted.iter().for_each(|&token| mask::insert(&mut words, token));
                Self::Mask(words)
            }
            Self::List(tokens) => {
                denied.sort_unstable();
                let kept = tokens.iter().filter(|token| denied.binary_search(token).is_err());
                Self::new(kept.chain(&inserted).copied().collect(), num_words)
            }
        }
    }

    /// Adds the tokens to a mask row.
    pub(super) fn insert_into(&self, words: &mut [u32]) {
        match self {
            Self::Mask(own) => words.iter_mut().zip(own).for_each(|(word, own)| *word |= own),
            Self::List(tokens) => tokens.iter().for_each(|&token| mask::insert(words, token)),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Mask(words) => size_of_val(&**words),
            Self::List(tokens) => size_of_val(&**tokens),
        }
    }
}

impl Pieces {
    /// What tokens do to a piece, where `num_words` are those of a mask row.
    pub(super) fn analysis(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        piece: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<&Analysis, Unread> {
        let memo = &self.piece(piece).analysis;
        if let Some(known) = memo.get() {
            return Ok(known);
        }
        let at = Analysing { pieces: self, trie, num_words, steps: Steps::new(self), budget };
        let found = at.find(piece)?;
        let except: usize = found
            .suffixes
            .iter()
            .flat_map(|(_, except)| except)
            .map(|except| size_of_val(&*except.tokens))
            .sum();
        let bytes = found.stay.memory_bytes() + size_of_val(&*found.ends) + except;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(memo.get_or_init(|| Box::new(found)))
    }

    /// A simpler piece that `piece` is mostly like.
    fn model(&self, piece: PieceId) -> Result<Option<PieceId>, Exceeded> {
        let mut growing = self.growing();
        let expr = self.piece(piece).expr;
        let mut simpler = growing.expressions.making(&mut Budget::unlimited()).relaxed(expr)?;
        if simpler == expr
            && let Some(roaming) = growing.expressions.roaming(expr)
        {
            simpler = growing.expressions.making(&mut Budget::unlimited()).roaming_expr(roaming)?;
        }
        let model = self.intern(&mut growing, simpler)?;
        Ok(model.filter(|&model| model != piece))
    }

    /// The units and the end of a piece that is nothing else, and the only byte that begins the end.
    fn as_roaming(&self, piece: PieceId) -> Result<Option<(Roaming, u8)>, Exceeded> {
        let mut growing = self.growing();
        let Some(roaming) = growing.expressions.as_roaming(self.piece(piece).expr) else {
            return Ok(None);
        };
        if growing.expressions.null(roaming.end) != ExprId::NEVER {
            return Ok(None);
        }
        let byte =
            growing.expressions.making(&mut Budget::unlimited()).only_first_byte(roaming.end)?;
        Ok(byte.map(|byte| (roaming, byte)))
    }

    /// Whether the piece cannot be told from units and their end before that begins.
    fn roams(&self, piece: PieceId, like: Roaming) -> Result<bool, Exceeded> {
        match self
            .growing()
            .expressions
            .making(&mut Budget::unlimited())
            .roams(self.piece(piece).expr, like)
        {
            // What takes long to find out is not worth it.
            Err(Exceeded::Visited(_)) => Ok(false),
            found => found,
        }
    }

    /// For how many bytes, at most 254, two pieces cannot be told apart; `None` where they differ at once.
    fn agreement(&self, a: PieceId, b: PieceId) -> Result<Option<u8>, Exceeded> {
        let mut growing = self.growing();
        if let Some(&known) = growing.agreements.get(&(a, b)) {
            return Ok(known);
        }
        let exprs = [a, b].map(|piece| self.piece(piece).expr);
        let mut agree = |num_bytes: u8| {
            let [a, b] = exprs.map(|expr| {
                growing.expressions.making(&mut Budget::unlimited()).within(expr, num_bytes.into())
            });
            Ok::<_, Exceeded>(a?.is_some_and(|a| b.as_ref().is_ok_and(|b| *b == Some(a))))
        };
        // What agrees for a while agrees for any shorter while.
        let (mut agreed, mut differs) = (None, 255);
        while agreed.map_or(0, |agreed| agreed + 1) < differs {
            let between = agreed.map_or(0, |agreed: u8| agreed + (differs - agreed) / 2);
            if agree(between)? {
                agreed = Some(between);
            } else {
                differs = between;
            }
        }
        growing.agreements.insert((a, b), agreed);
        Ok(agreed)
    }
}

/// A walk for one piece.
struct Analysing<'a, 'b> {
    pieces: &'a Pieces,
    trie: &'a VocabularyTrie,
    num_words: usize,
    steps: Steps<'a>,
    budget: &'a mut Budget<'b>,
}

/// How a piece differs from its model.
#[derive(Default)]
struct Difference {
    /// Tokens that stay within the piece only.
    inserted: Vec<TokenId>,
    /// Tokens that do not, among them all that stay within the model only.
    denied: Vec<TokenId>,
    /// Nodes where the piece may end and the model may not.
    added: Vec<u32>,
    /// Nodes where the model may end and the piece may not, in ascending order.
    removed: Vec<Range<u32>>,
}

impl Analysing<'_, '_> {
    fn find(mut self, piece: PieceId) -> Result<Analysis, Unread> {
        if let Some(model) = self.pieces.model(piece)? {
            let known = self.pieces.analysis(self.trie, self.num_words, model, self.budget)?;
            let mut found = Difference::default();
            self.compare(piece, model, &mut found)?;
            return Ok(self.like(known, found));
        }
        let (mut stay, mut ends) = (Vec::new(), Vec::new());
        let (trie, mut path) = (self.trie, vec![self.steps.number(piece)?]);
        let mut index = 1;
        while index < trie.num_nodes() {
            self.budget.spend(1)?;
            let node = trie.node(index);
            path.truncate(node.depth);
            match self.steps.advance(path[node.depth - 1], node.byte)? {
                Some(next) => {
                    stay.extend_from_slice(trie.tokens_in(trie.own_ranks(index)));
                    if self.steps.ends(next) && trie.end(index) > index + 1 {
                        ends.push(index as u32);
                    }
                    path.push(next);
                    index += 1;
                }
                None => index = trie.end(index),
            }
        }
        let suffixes = self.suffixes(&ends);
        let stay = TokenSet::new(stay, self.num_words);
        Ok(Analysis { stay, suffixes: suffixes.into_iter().collect(), ends: ends.into() })
    }

    fn suffixes(&self, ends: &[u32]) -> Option<(SuffixId, Option<Arc<Except>>)> {
        (!ends.is_empty()).then(|| (self.pieces.suffixes.of(self.trie, ends), None))
    }

    /// Walks where the piece and its model differ.
    fn compare(
        &mut self,
        piece: PieceId,
        model: PieceId,
        found: &mut Difference,
    ) -> Result<(), Unread> {
        type Pair = (Option<Local>, Option<Local>);
        let trie = self.trie;
        let root: Pair = (Some(self.steps.number(piece)?), Some(self.steps.number(model)?));
        let mut agreements: HashMap<(Local, Local), Option<u8>> = HashMap::new();
        let roaming = self.pieces.as_roaming(model)?;
        let roaming = roaming.map(|(roaming, byte)| (roaming, self.pieces.shape.above(trie, byte)));
        let mut roams: HashMap<Local, bool> = HashMap::new();
        let mut path = vec![root];
        let mut index = 1;
        while index < trie.num_nodes() {
            self.budget.spend(1)?;
            let node = trie.node(index);
            path.truncate(node.depth);
            let (own, like) = path[node.depth - 1];
            let step = |steps: &mut Steps<'_>, from: Option<Local>| match from {
                Some(from) => steps.advance(from, node.byte),
                None => Ok(None),
            };
            let pair = (step(&mut self.steps, own)?, step(&mut self.steps, like)?);
            let (own, like) = match pair {
                (own, like) if own == like => {
                    index = trie.end(index);
                    continue;
                }
                (None, _) => {
                    found.denied.extend_from_slice(trie.tokens_in(trie.ranks(index)));
                    found.removed.push(index as u32..trie.end(index) as u32);
                    index = trie.end(index);
                    continue;
                }
                (Some(own), like) => (own, like),
            };
            if let Some(like) = like {
                let height = self.pieces.shape.height(index);
                let agreed = match agreements.get(&(own, like)) {
                    Some(&known) => known,
                    None => {
                        let pair = (self.steps.piece(own), self.steps.piece(like));
                        let agreed = self.pieces.agreement(pair.0, pair.1)?;
                        agreements.insert((own, like), agreed);
                        agreed
                    }
                };
                if agreed.is_some_and(|agreed| agreed >= height) {
                    index = trie.end(index);
                    continue;
                }
                if let Some((roaming, ends)) = &roaming
                    && Some(like) == root.1
                    && !contains(ends, index)
                {
                    let alike = match roams.get(&own) {
                        Some(&known) => known,
                        None => {
                            let found = self.pieces.roams(self.steps.piece(own), *roaming)?;
                            roams.insert(own, found);
                            found
                        }
                    };
                    if alike {
                        index = trie.end(index);
                        continue;
                    }
                }
            } else {
                found.inserted.extend_from_slice(trie.tokens_in(trie.own_ranks(index)));
            }
            if trie.end(index) > index + 1 {
                let ends = like.is_some_and(|like| self.steps.ends(like));
                match (self.steps.ends(own), ends) {
                    (true, false) => found.added.push(index as u32),
                    (false, true) => found.removed.push(index as u32..index as u32 + 1),
                    _ => {}
                }
            }
            path.push((Some(own), like));
            index += 1;
        }
        Ok(())
    }

    /// What tokens do to a piece that differs so from another.
    fn like(&self, model: &Analysis, found: Difference) -> Analysis {
        let mut removed = Vec::new();
        let mut ends = Vec::with_capacity(model.ends.len() + found.added.len());
        let mut ranges = found.removed.iter().peekable();
        for &end in &*model.ends {
            while ranges.next_if(|range| range.end <= end).is_some() {}
            let gone = ranges.peek().is_some_and(|range| range.contains(&end));
            if gone { removed.push(end) } else { ends.push(end) }
        }
        let exceptions = self.exceptions(&removed);
        let kept = model.suffixes.iter().all(|(_, except)| except.is_none());
        let suffixes = match exceptions {
            Some(except) if kept => {
                let except = (!except.tokens.is_empty()).then(|| Arc::new(except));
                let same = model.suffixes.iter().map(|&(id, _)| (id, except.clone()));
                same.chain(self.suffixes(&found.added)).collect()
            }
            _ => {
                let mut all = ends.clone();
                all.extend_from_slice(&found.added);
                all.sort_unstable();
                self.suffixes(&all).into_iter().collect()
            }
        };
        ends.extend_from_slice(&found.added);
        ends.sort_unstable();
        let stay = model.stay.changed(found.inserted, found.denied, self.num_words);
        Analysis { stay, suffixes, ends: ends.into() }
    }

    /// The tokens that go on after these nodes; `None` when they are many.
    fn exceptions(&self, removed: &[u32]) -> Option<Except> {
        let mut tokens = Vec::new();
        for &node in removed {
            let (node, depth) = (node as usize, self.trie.node(node as usize).depth);
            let mut below = node + 1;
            while below < self.trie.end(node) {
                let left = (self.trie.node(below).depth - depth) as u32;
                let own = self.trie.tokens_in(self.trie.own_ranks(below));
                tokens.extend(own.iter().map(|&token| (token, left)));
                below += 1;
            }
            if tokens.len() > MAX_EXCEPTIONS {
                return None;
            }
        }
        tokens.sort_unstable();
        Some(Except { tokens: tokens.into() })
    }
}

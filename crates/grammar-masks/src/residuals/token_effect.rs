//! Token effect of a residual: tokens consumed whole, and the ends of its lexeme within others.

use std::ops::Range;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_grammar_regex::expressions::ExprId;

use super::suffix_trie::SuffixId;
use crate::mask_pool::Row;
use crate::tables::IndexMap;

/// Token effect of a residual: what each token does to the lexeme in progress.
#[derive(Debug)]
pub(super) struct TokenEffect {
    /// The tokens after which the lexeme goes on, or has just ended.
    pub(super) consumed: Row,
    /// Suffix tries of the tokens within which the lexeme may end, not at their front.
    pub(super) suffixes: Box<[EndGroup]>,
    /// The nodes of the vocabulary's trie where it may have, with more to come; ascending. Not told
    /// of guarded residuals.
    pub(super) ends: Option<Box<[u32]>>,
}

/// Ends of a lexeme within tokens that ask the same of what follows.
#[derive(Debug)]
pub(super) struct EndGroup {
    pub(super) suffixes: SuffixId,
    /// Tokens that do not count.
    pub(super) except: Option<Arc<Exceptions>>,
    pub(super) condition: ExprId,
    /// True when tokens go on from there in many ways.
    pub(super) are_many: bool,
}

/// Nodes of the vocabulary's trie where a lexeme may end, ascending, by the condition there.
pub(super) type GuardedEnds = IndexMap<ExprId, Vec<u32>>;

impl TokenEffect {
    /// The ends within some ranges of nodes, both ascending.
    pub(super) fn ends_in(&self, ranges: &[Range<u32>]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut ranges = ranges.iter().peekable();
        for &end in self.ends.iter().flatten() {
            while ranges.next_if(|range| range.end <= end).is_some() {}
            found.extend(ranges.peek().filter(|range| range.contains(&end)).map(|_| end));
        }
        found
    }
}

/// Tokens of a trie of suffixes that do not count, each with the length of its suffix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exceptions {
    /// Ascending.
    pub(super) tokens: Box<[(TokenId, u32)]>,
}

impl Exceptions {
    /// True when the token does not count where so many bytes are left of it.
    pub(super) fn contains(&self, token: TokenId, left: u32) -> bool {
        self.tokens.binary_search(&(token, left)).is_ok()
    }
}

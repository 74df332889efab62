//! Draft trees: tokens that a cheaper model proposes after a text, and the states behind them.
//!
//! Several drafts of one text begin alike; as a tree each beginning is walked once, and what may
//! not follow takes all behind it with it. One draft is a tree without siblings.

use palmette_core::{CommitError, Constraint, Lengths, TokenId};
use palmette_grammar_parser::recognizer::RecognizerError;

use super::{GrammarConstraint, GrammarScratch, GrammarState};

/// Tokens after a text, each behind another or behind the text itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftTree {
    tokens: Vec<TokenId>,
    /// The token before each, which comes before it in the list; none behind the text.
    parents: Vec<Option<usize>>,
}

/// Parents that make no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftTreeError {
    /// Tokens and parents of different numbers.
    #[error("there are {tokens} tokens and {parents} parents; give a parent for each token")]
    OtherLengths {
        /// Number of tokens.
        tokens: usize,
        /// Number of parents.
        parents: usize,
    },
    /// A token whose parent is not before it.
    #[error(
        "token {node} of the draft has parent {parent}: a parent is one of the tokens before it, or none behind the text"
    )]
    LaterParent {
        /// Place of the token.
        node: usize,
        /// Parent of the token.
        parent: usize,
    },
}

impl DraftTree {
    /// A tree of tokens whose parents are before them.
    ///
    /// # Errors
    /// When a parent is not before its token, or there is not one for each.
    pub fn new(tokens: Vec<TokenId>, parents: Vec<Option<usize>>) -> Result<Self, DraftTreeError> {
        if tokens.len() != parents.len() {
            let (tokens, parents) = (tokens.len(), parents.len());
            return Err(DraftTreeError::OtherLengths { tokens, parents });
        }
        for (node, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent.filter(|&parent| parent >= node) {
                return Err(DraftTreeError::LaterParent { node, parent });
            }
        }
        Ok(Self { tokens, parents })
    }

    /// One draft: each token behind the one before.
    pub fn from_chain(tokens: Vec<TokenId>) -> Self {
        let parents = (0..tokens.len()).map(|node| node.checked_sub(1)).collect();
        Self { tokens, parents }
    }

    /// The tokens, each after its parent.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The token before each; none behind the text.
    pub fn parents(&self) -> &[Option<usize>] {
        &self.parents
    }

    /// Number of a draft's tokens up to each, itself among them.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.tokens.len());
        for &parent in &self.parents {
            depths.push(1 + parent.map_or(0, |parent| depths[parent]));
        }
        depths
    }
}

impl GrammarConstraint {
    /// The state behind each token of a draft; `None` where it may not follow, or not so that the
    /// text has one of these lengths, and behind such tokens. Nothing is committed.
    ///
    /// # Errors
    /// When a token is not in the vocabulary, or a limit of the grammar is exceeded.
    pub fn states_after(
        &self,
        state: &GrammarState,
        draft: &DraftTree,
        lengths: Option<Lengths>,
        scratch: &mut GrammarScratch,
    ) -> Result<Vec<Option<GrammarState>>, CommitError<RecognizerError>> {
        let depths = draft.depths();
        let mut states: Vec<Option<GrammarState>> = Vec::with_capacity(depths.len());
        for (node, (&token, &parent)) in draft.tokens.iter().zip(&draft.parents).enumerate() {
            let before = match parent {
                Some(parent) => states[parent].as_ref(),
                None => Some(state),
            };
            let Some(before) = before else {
                states.push(None);
                continue;
            };
            let mut ahead = before.clone();
            let is_allowed =
                match self.commit(&mut ahead, token, scratch) {
                    Ok(()) => self.ends_within(&ahead, lengths, depths[node], scratch).map_err(
                        |error| CommitError::Failed {
                            token,
                            position: ahead.num_commits().saturating_sub(1),
                            error,
                        },
                    )?,
                    Err(CommitError::NotAllowed { .. }) => false,
                    Err(error) => return Err(error),
                };
            states.push(is_allowed.then_some(ahead));
        }
        Ok(states)
    }

    /// True where a text can have one of these lengths, of which so many tokens are written by now.
    fn ends_within(
        &self,
        state: &GrammarState,
        lengths: Option<Lengths>,
        written: usize,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, RecognizerError> {
        let Some(lengths) = lengths else { return Ok(true) };
        if state.ended() {
            // The last of them was no text.
            return Ok(lengths.least < written);
        }
        match lengths.after(written) {
            Some(after) => self.has_way(state, after, scratch),
            None => Ok(false),
        }
    }
}

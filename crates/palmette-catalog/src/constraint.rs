//! A catalog as a constraint over a model's tokens.

use std::sync::Arc;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId, mask};

use crate::catalog::{Catalog, CatalogState};

/// Which tokens spell the codes of one level: code `c` is token `first_token + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelTokens {
    /// The token of code 0.
    pub first_token: u32,
    /// Size of the level's codebook.
    pub num_codes: u32,
}

/// How a model spells semantic IDs: a run of tokens for each level.
///
/// Within a level tokens ascend with codes, so that the order of ranks is the order of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTokens {
    levels: Vec<LevelTokens>,
    num_tokens: usize,
}

/// Tokens and catalog that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A level's tokens reach past the vocabulary.
    #[error(
        "level {level} needs tokens {first_token} to {last_token}, but the vocabulary has {num_tokens}"
    )]
    PastVocabulary {
        /// The level.
        level: usize,
        /// Token of its code 0.
        first_token: u32,
        /// Token of its last code.
        last_token: u64,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
    /// The catalog's IDs are longer than the model spells.
    #[error("the catalog has semantic IDs of {catalog} codes, the model spells {model} levels")]
    TooManyLevels {
        /// Codes of the longest semantic ID.
        catalog: usize,
        /// Levels with tokens.
        model: usize,
    },
    /// The catalog uses a code that has no token.
    #[error(
        "the catalog has code {code} at level {level} (item {item:?}), the model has tokens for codes below {num_codes}"
    )]
    CodeWithoutToken {
        /// The level.
        level: usize,
        /// The largest code there.
        code: u32,
        /// Codes that have a token.
        num_codes: u32,
        /// An item with that code.
        item: String,
    },
}

impl CodeTokens {
    /// Levels over a vocabulary of `num_tokens`.
    ///
    /// # Errors
    /// When a level's tokens reach past the vocabulary.
    pub fn new(levels: Vec<LevelTokens>, num_tokens: usize) -> Result<Self, TokensError> {
        for (level, &LevelTokens { first_token, num_codes }) in levels.iter().enumerate() {
            let end = u64::from(first_token) + u64::from(num_codes);
            if end > num_tokens as u64 {
                let last_token = end - 1;
                return Err(TokensError::PastVocabulary {
                    level,
                    first_token,
                    last_token,
                    num_tokens,
                });
            }
        }
        Ok(Self { levels, num_tokens })
    }

    /// The levels' runs of tokens.
    pub fn levels(&self) -> &[LevelTokens] {
        &self.levels
    }

    /// Size of the vocabulary.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// The token that spells `code` at `level`, if there is one.
    pub fn token(&self, level: usize, code: u32) -> Option<TokenId> {
        let at = self.levels.get(level)?;
        (code < at.num_codes).then(|| TokenId(at.first_token + code))
    }

    /// The code that `token` spells at `level`, if it is one of that level's.
    pub fn code(&self, level: usize, token: TokenId) -> Option<u32> {
        let at = self.levels.get(level)?;
        token.0.checked_sub(at.first_token).filter(|&code| code < at.num_codes)
    }
}

/// The semantic IDs of a catalog, as sequences of a model's tokens.
#[derive(Clone, Debug)]
pub struct CatalogConstraint {
    catalog: Arc<Catalog>,
    tokens: CodeTokens,
}

impl CatalogConstraint {
    /// Joins a catalog with the tokens a model spells it by.
    ///
    /// # Errors
    /// When the catalog has a level or a code without a token: such items could never be spelled.
    pub fn new(catalog: Arc<Catalog>, tokens: CodeTokens) -> Result<Self, TokensError> {
        let (longest, model) = (catalog.num_levels(), tokens.levels.len());
        if longest > model {
            return Err(TokensError::TooManyLevels { catalog: longest, model });
        }
        for level in 0..longest {
            let largest = catalog.levels().prefix_codes(level).max().unwrap_or(0);
            let num_codes = tokens.levels[level].num_codes;
            if largest >= num_codes {
                let has = |&rank: &u32| catalog.codes(rank).get(level) == Some(&largest);
                let item = (0..catalog.num_items()).find(has);
                return Err(TokensError::CodeWithoutToken {
                    level,
                    code: largest,
                    num_codes,
                    item: item.map(|rank| catalog.id(rank).to_owned()).unwrap_or_default(),
                });
            }
        }
        Ok(Self { catalog, tokens })
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The model's tokens.
    pub fn tokens(&self) -> &CodeTokens {
        &self.tokens
    }

    /// First token of the level a state is to choose a code of.
    fn first_token(&self, state: &CatalogState) -> u32 {
        self.tokens.levels.get(state.level()).map_or(0, |level| level.first_token)
    }
}

impl Constraint for CatalogConstraint {
    type State = CatalogState;
    type Scratch = ();

    fn num_tokens(&self) -> usize {
        self.tokens.num_tokens
    }

    fn start(&self) -> CatalogState {
        self.catalog.start()
    }

    fn fill_mask(&self, state: &CatalogState, (): &mut (), words: &mut [u32]) {
        assert_eq!(words.len(), mask::num_words(self.num_tokens()), "words of a mask row");
        words.fill(0);
        let first = self.first_token(state);
        for code in self.catalog.levels().child_codes(state.level(), state.ranks()) {
            mask::insert(words, TokenId(first + code));
        }
    }

    fn successors(
        &self,
        state: &CatalogState,
        (): &mut (),
        mut visit: impl FnMut(TokenId, CatalogState),
    ) {
        let first = self.first_token(state);
        for (code, next) in self.catalog.children(state.clone()) {
            visit(TokenId(first + code), next);
        }
    }

    fn commit(&self, state: &mut CatalogState, token: TokenId) -> Result<(), CommitError> {
        let num_tokens = self.num_tokens();
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let code = self.tokens.code(state.level(), token);
        let next = code.and_then(|code| self.catalog.child(state, code));
        *state = next.ok_or(CommitError::NotAllowed { token, position: state.level() })?;
        Ok(())
    }

    fn rollback(&self, state: &mut CatalogState, num_tokens: usize) -> Result<(), RollbackError> {
        let committed = state.level();
        let level = committed
            .checked_sub(num_tokens)
            .ok_or(RollbackError { asked: num_tokens, committed })?;
        let prefix = self.catalog.levels().prefix_of(state.ranks.start, level);
        *state = match prefix {
            Some((ranks, _)) => CatalogState { ranks, level: level as u32 },
            None => self.catalog.start(),
        };
        Ok(())
    }

    fn is_accepting(&self, state: &CatalogState) -> bool {
        !self.catalog.items_at(state).is_empty()
    }
}

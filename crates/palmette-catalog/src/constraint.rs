//! A catalog as a constraint over a model's tokens.

use std::convert::Infallible;
use std::sync::Arc;

use palmette_core::{CommitAllError, CommitError, Constraint, RollbackError, TokenId, mask};

use crate::catalog::Catalog;
use crate::index::{CatalogState, ItemSet, MaskRows};

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

/// The semantic IDs of a catalog's items, or of some of them, as sequences of a model's tokens.
///
/// Cheap to clone; each request may have a set of items of its own
/// ([`with_items`](Self::with_items)), and share the catalog with all others.
#[derive(Clone, Debug)]
pub struct CatalogConstraint {
    catalog: Arc<Catalog>,
    tokens: Arc<CodeTokens>,
    /// First token of each level.
    first_tokens: Arc<[u32]>,
    items: Option<Arc<ItemSet>>,
}

/// A code that no item has, for tokens that spell none.
const NO_CODE: u32 = u32::MAX;

impl CatalogConstraint {
    /// Joins a catalog with the tokens a model spells it by.
    ///
    /// # Errors
    /// When the catalog has a level or a code without a token: such items could never be spelled.
    pub fn new(
        catalog: Arc<Catalog>,
        tokens: impl Into<Arc<CodeTokens>>,
    ) -> Result<Self, TokensError> {
        let tokens = tokens.into();
        let (longest, model) = (catalog.num_levels(), tokens.levels.len());
        if longest > model {
            return Err(TokensError::TooManyLevels { catalog: longest, model });
        }
        for level in 0..longest {
            let num_codes = tokens.levels[level].num_codes;
            // Codes in use are looked at only where the codebook is larger than the model's.
            if catalog.index().code_bounds()[level] <= num_codes {
                continue;
            }
            let largest = catalog.index().largest_code(level).unwrap_or(0);
            if largest >= num_codes {
                let has = |&rank: &u64| catalog.codes(rank).get(level) == Some(&largest);
                let item = (0..catalog.num_items()).find(has);
                return Err(TokensError::CodeWithoutToken {
                    level,
                    code: largest,
                    num_codes,
                    item: item.map(|rank| catalog.id(rank).to_owned()).unwrap_or_default(),
                });
            }
        }
        let first_tokens = tokens.levels.iter().map(|level| level.first_token).collect();
        Ok(Self { catalog, tokens, first_tokens, items: None })
    }

    /// The same catalog, of which only `items` may be returned. They are a set of this catalog. Positions are
    /// then those that are reached from its start under the set, and not those of another.
    pub fn with_items(&self, items: Arc<ItemSet>) -> Self {
        Self { items: Some(items), ..self.clone() }
    }

    /// The items that may be returned; `None` for all.
    pub fn items(&self) -> Option<&Arc<ItemSet>> {
        self.items.as_ref()
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The model's tokens.
    pub fn tokens(&self) -> &Arc<CodeTokens> {
        &self.tokens
    }

    /// The ranks of the items that may be returned and whose whole semantic ID is this prefix.
    pub fn items_at(&self, state: &CatalogState) -> impl Iterator<Item = u64> + '_ {
        let items = self.items.as_deref();
        let allowed = move |rank: &u64| items.is_none_or(|items| items.ranks().contains(*rank));
        self.catalog.items_at(state).filter(allowed)
    }

    /// As [`fill_masks`](Constraint::fill_masks), into rows that clear what they set last and nothing else: with
    /// a large vocabulary, most of a step is clearing.
    ///
    /// # Panics
    /// When the rows do not have the words of this vocabulary.
    pub fn fill_mask_rows(&self, states: &[CatalogState], rows: &mut MaskRows) {
        let words = mask::num_words(self.num_tokens());
        assert_eq!(rows.words_per_row(), words, "words of a row for {} tokens", self.num_tokens());
        let (items, first_bits) = (self.items.as_deref(), &self.first_tokens);
        self.catalog.index().fill_mask_rows(states, items, first_bits, rows);
    }

    fn any_allowed(&self, ranks: std::ops::Range<u64>) -> bool {
        match &self.items {
            Some(items) => items.ranks().any_in(ranks),
            None => !ranks.is_empty(),
        }
    }
}

impl Constraint for CatalogConstraint {
    type State = CatalogState;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.tokens.num_tokens
    }

    fn start(&self) -> CatalogState {
        self.catalog.start()
    }

    fn fill_mask(
        &self,
        state: &CatalogState,
        scratch: &mut (),
        mask: &mut [u32],
    ) -> Result<(), Infallible> {
        self.fill_masks(std::slice::from_ref(state), scratch, mask)
    }

    fn fill_masks(
        &self,
        states: &[CatalogState],
        (): &mut (),
        masks: &mut [u32],
    ) -> Result<(), Infallible> {
        let words = mask::num_words(self.num_tokens());
        let (items, first_bits) = (self.items.as_deref(), &self.first_tokens);
        self.catalog.index().fill_masks(states, items, first_bits, words, masks);
        Ok(())
    }

    fn successors(
        &self,
        state: &CatalogState,
        (): &mut (),
        mut visit: impl FnMut(TokenId, CatalogState),
    ) -> Result<(), Infallible> {
        let Some(&level) = self.tokens.levels.get(state.level()) else { return Ok(()) };
        let items = self.items.as_deref();
        self.catalog.index().successors(std::slice::from_ref(state), items, |_, code, next| {
            // Only a damaged catalog has codes without a token.
            if code < level.num_codes {
                visit(TokenId(level.first_token + code), next);
            }
        });
        Ok(())
    }

    fn commit(
        &self,
        state: &mut CatalogState,
        token: TokenId,
        (): &mut (),
    ) -> Result<(), CommitError> {
        let num_tokens = self.num_tokens();
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let code = self.tokens.code(state.level(), token);
        let next = code.and_then(|code| self.catalog.child(state, code));
        let next = next.filter(|next| self.any_allowed(next.ranks()));
        *state = next.ok_or(CommitError::NotAllowed { token, position: state.level() })?;
        Ok(())
    }

    fn commit_all(
        &self,
        states: &mut [CatalogState],
        tokens: &[TokenId],
        (): &mut (),
    ) -> Result<(), CommitAllError> {
        assert_eq!(states.len(), tokens.len(), "a token for each state");
        let code_of = |at: usize, level| self.tokens.code(level, tokens[at]).unwrap_or(NO_CODE);
        self.catalog.index().advance(states, self.items.as_deref(), code_of);
        match states.iter().position(CatalogState::is_dead) {
            Some(place) => Err(CommitAllError::NotAllowed { place, token: tokens[place] }),
            None => Ok(()),
        }
    }

    fn rollback(&self, state: &mut CatalogState, num_tokens: usize) -> Result<(), RollbackError> {
        let level = RollbackError::remaining(state.level(), num_tokens)?;
        *state = self.catalog.index().prefix_of(state.ranks().start, level, |_| {});
        Ok(())
    }

    fn is_accepting(&self, state: &CatalogState, (): &mut ()) -> Result<bool, Infallible> {
        Ok(self.any_allowed(self.catalog.items_at(state)))
    }
}

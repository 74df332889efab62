//! A catalog as a constraint over a model's tokens.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use palmette_core::{
    CommitAllError, CommitError, Constraint, MaskWindow, RollbackError, TokenId, mask,
};

use crate::catalog::Catalog;
use crate::index::{CatalogState, ItemSet, MaskRows, MaskTarget};
use crate::tokens::{CodeTokens, LevelSpelling, LevelTokens, TokensError};

/// The semantic IDs of a catalog's items, or of some of them, as sequences of a model's tokens.
///
/// Cheap to clone; each request may have a set of items of its own
/// ([`with_items`](Self::with_items)), and share the catalog with all others.
#[derive(Clone, Debug)]
pub struct CatalogConstraint {
    catalog: Arc<Catalog>,
    tokens: Arc<CodeTokens>,
    items: Option<Arc<ItemSet>>,
}

/// A code that no item has, for tokens that spell none.
const NO_CODE: u32 = u32::MAX;

impl Catalog {
    /// The catalog as a constraint over a vocabulary of `num_tokens`, whose `levels` are runs of
    /// tokens: code `c` of level `l` is token `levels[l].start + c`.
    ///
    /// # Errors
    /// When a run is not in the vocabulary, or the catalog has a level or a code without a token.
    pub fn constraint(
        self: &Arc<Self>,
        levels: impl IntoIterator<Item = Range<u32>>,
        num_tokens: usize,
    ) -> Result<CatalogConstraint, TokensError> {
        let run = |run: Range<u32>| LevelTokens {
            first_token: run.start,
            num_codes: run.end.saturating_sub(run.start),
        };
        let tokens = CodeTokens::new(levels.into_iter().map(run).collect(), num_tokens)?;
        CatalogConstraint::new(Arc::clone(self), tokens)
    }
}

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
        let (longest, model) = (catalog.num_levels(), tokens.levels().len());
        if longest > model {
            return Err(TokensError::TooManyLevels { catalog: longest, model });
        }
        for level in 0..longest {
            check_level(&catalog, level, &tokens.levels()[level])?;
        }
        Ok(Self { catalog, tokens, items: None })
    }

    /// Restricts the catalog to `items`, which alone may be returned. They are a set of this
    /// catalog. Positions are then those that are reached from its start under the set, and not
    /// those of another.
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

    /// Fills masks as [`fill_masks`](Constraint::fill_masks) does, into rows that clear only what
    /// they set last. With a large vocabulary, most of a step is clearing.
    ///
    /// # Panics
    /// When the rows do not have the words of this vocabulary.
    pub fn fill_mask_rows(&self, states: &[CatalogState], rows: &mut MaskRows) {
        let words = mask::num_words(self.num_tokens());
        assert_eq!(rows.words_per_row(), words, "words of a row for {} tokens", self.num_tokens());
        if self.tokens.has_tables() {
            let write = |masks: &mut [u32]| self.write_masks(states, 0, words, masks);
            return rows.rewrite(states.len(), write);
        }
        let (items, first_bits) = (self.items.as_deref(), self.tokens.first_tokens());
        self.catalog.index().fill_mask_rows(states, items, first_bits, rows);
    }

    /// Writes all words of the mask rows of states, level by level as each is spelled. The first
    /// bit of a row is that of `first_token`, at or before the tokens of every such level.
    fn write_masks(
        &self,
        states: &[CatalogState],
        first_token: u32,
        words_per_row: usize,
        mut masks: &mut [u32],
    ) {
        assert_eq!(masks.len(), states.len() * words_per_row, "rows of {} states", states.len());
        if words_per_row == 0 {
            return;
        }
        let (index, items) = (self.catalog.index(), self.items.as_deref());
        for run in states.chunk_by(|a, b| a.level() == b.level()) {
            let (rows, after) = masks.split_at_mut(run.len() * words_per_row);
            masks = after;
            let level = run[0].level();
            match self.tokens.levels().get(level) {
                Some(table @ LevelSpelling::Table(_)) => {
                    rows.fill(0);
                    index.successors(run, items, |place, code, _| {
                        // Only a damaged catalog has codes without a token.
                        if let Some(TokenId(token)) = table.token(code) {
                            let row = &mut rows[place * words_per_row..][..words_per_row];
                            mask::insert(row, TokenId(token - first_token));
                        }
                    });
                }
                Some(LevelSpelling::Run(level_tokens)) => {
                    let first_bit = level_tokens.first_token - first_token;
                    let target = MaskTarget { masks: rows, words_per_row, first_bit };
                    index.fill_level(level, run, items, target);
                }
                None => rows.fill(0),
            }
        }
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
        self.tokens.num_tokens()
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
        self.write_masks(states, 0, mask::num_words(self.num_tokens()), masks);
        Ok(())
    }

    fn fill_window(
        &self,
        states: &[CatalogState],
        (): &mut (),
        window: &mut MaskWindow,
    ) -> Result<(), Infallible> {
        let runs = states.chunk_by(|a, b| a.level() == b.level());
        window.reset(self.tokens.token_range(runs.map(|run| run[0].level())), states.len());
        let (first_token, words) = (window.first_token(), window.columns().len());
        self.write_masks(states, first_token, words, window.words_mut());
        Ok(())
    }

    /// Every item below a prefix has a code after it, but for those whose whole ID it is.
    fn goes_on(&self, state: &CatalogState, (): &mut ()) -> Result<Option<bool>, Infallible> {
        Ok(Some(self.any_allowed(self.catalog.items_at(state).end..state.ranks().end)))
    }

    fn successors(
        &self,
        state: &CatalogState,
        (): &mut (),
        mut visit: impl FnMut(TokenId, CatalogState),
    ) -> Result<(), Infallible> {
        let Some(level) = self.tokens.levels().get(state.level()) else { return Ok(()) };
        let states = std::slice::from_ref(state);
        let (index, items) = (self.catalog.index(), self.items.as_deref());
        match level {
            LevelSpelling::Run(run) => index.successors(states, items, |_, code, next| {
                // Only a damaged catalog has codes without a token.
                if code < run.num_codes {
                    visit(TokenId(run.first_token + code), next);
                }
            }),
            table @ LevelSpelling::Table(_) => table.in_order(
                |child| index.successors(states, items, |_, code, next| child(code, next)),
                visit,
            ),
        }
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

/// True when every code that the catalog uses at a level has a token.
fn check_level(
    catalog: &Catalog,
    level: usize,
    spelling: &LevelSpelling,
) -> Result<(), TokensError> {
    let (index, num_codes) = (catalog.index(), spelling.num_codes());
    let item_with = |code: u32| {
        let has = |&rank: &u64| catalog.codes(rank).get(level) == Some(&code);
        let item = (0..catalog.num_items()).find(has);
        item.map(|rank| catalog.id(rank).to_owned()).unwrap_or_default()
    };
    // Codes in use are looked at only where the codebook is larger than the model's, or has gaps.
    if index.code_bounds()[level] > num_codes {
        let code = index.largest_code(level).unwrap_or(0);
        if code >= num_codes {
            let item = item_with(code);
            return Err(TokensError::CodeWithoutToken { level, code, num_codes, item });
        }
    }
    match spelling.unspelled(|visit| index.for_each_code(level, visit)) {
        Some(code) => Err(TokensError::UnspelledCode { level, code, item: item_with(code) }),
        None => Ok(()),
    }
}

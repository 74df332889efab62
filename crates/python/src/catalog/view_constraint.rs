//! A catalog's constraint for many rows of tokens at once: no state is kept between calls.

use std::convert::Infallible;
use std::sync::Arc;

use palmette_catalog::{CatalogState, CodeTokens, LevelSpelling, TokensError};
use palmette_catalog_live::{CatalogView, SnapshotConstraint, ViewItems};
use palmette_core::{Constraint, TokenId, mask};
use pyo3::PyResult;

use super::codes::IntMatrix;
use crate::buffers::MaskRows;

/// The constraint of a view, by its kind.
#[derive(Clone, Debug)]
pub(crate) enum ViewConstraint {
    Frozen(palmette_catalog::CatalogConstraint),
    Snapshot(SnapshotConstraint),
}

/// Rows and tokens that may follow them, row after row and in each ascending.
#[derive(Default)]
pub(crate) struct Followers {
    pub(crate) rows: Vec<i32>,
    pub(crate) tokens: Vec<i32>,
}

/// A code that no item has, for tokens that spell none.
const NO_CODE: u32 = u32::MAX;

/// A token of a row, where it is one of the vocabulary.
pub(crate) fn token(value: i64) -> Option<TokenId> {
    u32::try_from(value).ok().map(TokenId)
}

impl ViewConstraint {
    pub(crate) fn new(view: &CatalogView, tokens: Arc<CodeTokens>) -> Result<Self, TokensError> {
        Ok(match view {
            CatalogView::Frozen(filters) => {
                let catalog = Arc::clone(filters.catalog());
                Self::Frozen(palmette_catalog::CatalogConstraint::new(catalog, tokens)?)
            }
            CatalogView::Snapshot(snapshot) => {
                Self::Snapshot(SnapshotConstraint::new(Arc::clone(snapshot), tokens)?)
            }
        })
    }

    /// Restricts the items that may be returned.
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub(crate) fn with_items(&self, items: ViewItems) -> Self {
        match (self, items) {
            (Self::Frozen(all), ViewItems::Frozen(items)) => Self::Frozen(all.with_items(items)),
            (Self::Snapshot(all), ViewItems::Snapshot(items)) => {
                Self::Snapshot(all.with_items(items))
            }
            _ => panic!("items of another kind of view"),
        }
    }

    pub(crate) fn tokens(&self) -> &Arc<CodeTokens> {
        match self {
            Self::Frozen(constraint) => constraint.tokens(),
            Self::Snapshot(constraint) => constraint.tokens(),
        }
    }

    /// Successors of some rows of tokens; nothing after tokens that no item begins with.
    pub(crate) fn followers(&self, prefixes: &IntMatrix, rows: &[usize], found: &mut Followers) {
        match self {
            Self::Frozen(constraint) => {
                let (alive, states) = walk_frozen(constraint, prefixes, rows);
                let Some(level) = constraint.tokens().levels().get(prefixes.num_columns()) else {
                    return;
                };
                let (index, items) =
                    (constraint.catalog().index(), constraint.items().map(|items| &**items));
                let mut row_start = found.tokens.len();
                let mut last_row = None;
                index.successors(&states, items, |place, code, _| {
                    let Some(token) = level.token(code) else { return };
                    let row = alive[place] as i32;
                    if last_row != Some(row) {
                        sort_table(level, &mut found.tokens[row_start..]);
                        (row_start, last_row) = (found.tokens.len(), Some(row));
                    }
                    found.rows.push(row);
                    found.tokens.push(token.0 as i32);
                });
                sort_table(level, &mut found.tokens[row_start..]);
            }
            Self::Snapshot(constraint) => {
                let scratch = &mut Default::default();
                for &row in rows {
                    let Some(state) = walk(constraint, prefixes, row, scratch) else { continue };
                    let Ok(()) = constraint.successors(&state, scratch, |token, _| {
                        found.rows.push(row as i32);
                        found.tokens.push(token.0 as i32);
                    });
                }
            }
        }
    }

    /// Writes the masks of rows of tokens to rows of a bitmask, `into[i]` for row `i`; words past
    /// those of the vocabulary become 0.
    ///
    /// # Errors
    /// For a row of the bitmask that comes twice.
    pub(crate) fn fill_masks(
        &self,
        prefixes: &IntMatrix,
        into: &[usize],
        bitmask: &mut MaskRows,
    ) -> PyResult<()> {
        let rows: Vec<usize> = (0..prefixes.num_rows()).collect();
        match self {
            Self::Frozen(constraint) => {
                let (alive, states) = walk_frozen(constraint, prefixes, &rows);
                write_masks(constraint, &alive, &states, into, bitmask)
            }
            Self::Snapshot(constraint) => {
                let scratch = &mut Default::default();
                let walk = |&row: &usize| Some((row, walk(constraint, prefixes, row, scratch)?));
                let (alive, states): (Vec<usize>, Vec<_>) = rows.iter().filter_map(walk).unzip();
                write_masks(constraint, &alive, &states, into, bitmask)
            }
        }
    }

    /// Ids of the items whose whole semantic ID is each row of tokens.
    pub(crate) fn decode<'a>(
        &self,
        view: &'a CatalogView,
        spelled: &IntMatrix,
    ) -> Vec<Vec<&'a str>> {
        let rows: Vec<usize> = (0..spelled.num_rows()).collect();
        let mut found = vec![Vec::new(); rows.len()];
        match self {
            Self::Frozen(constraint) => {
                let (alive, states) = walk_frozen(constraint, spelled, &rows);
                for (row, state) in alive.into_iter().zip(&states) {
                    found[row] = constraint.items_at(state).map(|rank| view.id(rank)).collect();
                }
            }
            Self::Snapshot(constraint) => {
                let scratch = &mut Default::default();
                for row in rows {
                    if let Some(state) = walk(constraint, spelled, row, scratch) {
                        let items = constraint.items_at(&state);
                        found[row] = items.map(|at| view.id(view.number(at))).collect();
                    }
                }
            }
        }
        found
    }
}

/// Puts the tokens of a row in order, where codes are spelled by a table.
fn sort_table(level: &LevelSpelling, tokens: &mut [i32]) {
    if matches!(level, LevelSpelling::Table(_)) {
        tokens.sort_unstable();
    }
}

/// The rows whose tokens some item begins with, and their positions.
///
/// All rows go a level at a time, so that they wait for memory together.
fn walk_frozen(
    constraint: &palmette_catalog::CatalogConstraint,
    prefixes: &IntMatrix,
    rows: &[usize],
) -> (Vec<usize>, Vec<CatalogState>) {
    let (index, tokens) = (constraint.catalog().index(), constraint.tokens());
    let items = constraint.items().map(|items| &**items);
    let mut alive = rows.to_vec();
    let mut states = vec![constraint.start(); rows.len()];
    for level in 0..prefixes.num_columns() {
        index.advance(&mut states, items, |at, _| {
            let token = token(prefixes.get(alive[at], level));
            token.and_then(|token| tokens.code(level, token)).unwrap_or(NO_CODE)
        });
        let mut is_alive = states.iter().map(|state| !state.is_dead());
        alive.retain(|_| is_alive.next().unwrap_or(false));
        states.retain(|state| !state.is_dead());
    }
    (alive, states)
}

/// The position after a row of tokens; `None` where no item begins with them.
fn walk<C: Constraint<Error = Infallible>>(
    constraint: &C,
    prefixes: &IntMatrix,
    row: usize,
    scratch: &mut C::Scratch,
) -> Option<C::State> {
    let mut state = constraint.start();
    for value in prefixes.row(row) {
        constraint.commit(&mut state, token(value)?, scratch).ok()?;
    }
    Some(state)
}

/// Writes masks of states, those of the rows `alive`; other rows deny all.
pub(crate) fn write_masks<C: Constraint<Error = Infallible>>(
    constraint: &C,
    alive: &[usize],
    states: &[C::State],
    into: &[usize],
    bitmask: &mut MaskRows,
) -> PyResult<()> {
    let words = mask::num_words(constraint.num_tokens());
    let scratch = &mut C::Scratch::default();
    // Rows that lie one after another are filled together, so that they wait for memory together.
    let is_run = alive.len() == into.len()
        && words == bitmask.num_words()
        && into.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if let (true, Some(&first)) = (is_run, into.first())
        && let Some(masks) = bitmask.block_mut(first..first + into.len())
    {
        let Ok(()) = constraint.fill_masks(states, scratch, masks);
        return Ok(());
    }
    let mut rows = bitmask.rows_mut(into)?;
    rows.iter_mut().for_each(|row| row.fill(0));
    for (&row, state) in alive.iter().zip(states) {
        let Ok(()) = constraint.fill_mask(state, scratch, &mut rows[row][..words]);
    }
    Ok(())
}

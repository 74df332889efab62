//! A view of the catalog, spelled in the model's tokens: what the requests of one moment search.

use std::sync::{Arc, OnceLock};

use palmette_catalog::{CatalogConstraint, CatalogKeys, CodeTokens, KeysError};
use palmette_catalog_live::{CatalogView, SnapshotConstraint, ViewItems};

use crate::error::RecommendError;
use crate::prompt_format::{LevelFormat, PromptFormat};
use crate::rules::BoostCache;

/// All items of a catalog at one moment as a constraint over the model's tokens.
///
/// Frozen; a [`Recommender`](crate::Recommender) makes one for each generation and hands it to all
/// requests of that moment. A request that holds one is answered by that generation, whatever has
/// come since.
#[derive(Debug)]
pub struct SpelledView {
    view: CatalogView,
    constraint: ViewConstraint,
    tokens: Arc<CodeTokens>,
    levels: Vec<LevelFormat>,
    /// Made when first asked for.
    keys: OnceLock<Result<CatalogKeys, KeysError>>,
    /// An item with fewer codes than the model's levels; looked for when first asked.
    shorter: OnceLock<Option<u64>>,
    boosts: BoostCache,
}

/// The constraint of a view, by its kind.
#[derive(Clone, Debug)]
pub(crate) enum ViewConstraint {
    Frozen(CatalogConstraint),
    Snapshot(SnapshotConstraint),
}

impl SpelledView {
    pub(crate) fn new(
        view: CatalogView,
        tokens: &Arc<CodeTokens>,
        format: &PromptFormat,
    ) -> Result<Self, RecommendError> {
        let spelled = view.level_prefixes().unwrap_or_default().iter().zip(&format.levels);
        for (level, (catalog, model)) in spelled.enumerate() {
            if *catalog != model.prefix {
                let (catalog, model) = (catalog.clone(), model.prefix.clone());
                return Err(RecommendError::OtherLevels { level, catalog, model });
            }
        }
        format.check_witnesses(&view)?;
        let levels = format.levels.len();
        // A token that ends each item gives them all the same number of choices.
        let may_be_shorter = !format.end_tokens.is_empty();
        if let Some(number) = view.shorter_item(levels).filter(|_| !may_be_shorter) {
            let (id, codes) = (view.id(number).to_owned(), view.codes(number).len());
            return Err(RecommendError::ShorterItem { id, codes, levels });
        }
        let tokens = Arc::clone(tokens);
        let constraint = match &view {
            CatalogView::Frozen(filters) => {
                let catalog = Arc::clone(filters.catalog());
                ViewConstraint::Frozen(CatalogConstraint::new(catalog, Arc::clone(&tokens))?)
            }
            CatalogView::Snapshot(snapshot) => {
                let (snapshot, tokens) = (Arc::clone(snapshot), Arc::clone(&tokens));
                ViewConstraint::Snapshot(SnapshotConstraint::new(snapshot, tokens)?)
            }
        };
        let (levels, boosts) = (format.levels.clone(), BoostCache::default());
        let shorter = if may_be_shorter { OnceLock::new() } else { OnceLock::from(None) };
        let keys = OnceLock::new();
        Ok(Self { view, constraint, tokens, levels, keys, shorter, boosts })
    }

    /// The items.
    pub fn view(&self) -> &CatalogView {
        &self.view
    }

    /// The model's levels.
    pub(crate) fn levels(&self) -> &[LevelFormat] {
        &self.levels
    }

    /// Boosts of its items.
    pub(crate) fn boosts(&self) -> &BoostCache {
        &self.boosts
    }

    /// The tokens that spell codes.
    pub fn tokens(&self) -> &CodeTokens {
        &self.tokens
    }

    /// The constraint, or the part of it that allows only `items`.
    pub(crate) fn constraint(&self, items: Option<ViewItems>) -> ViewConstraint {
        match (&self.constraint, items) {
            (ViewConstraint::Frozen(all), Some(ViewItems::Frozen(items))) => {
                ViewConstraint::Frozen(all.with_items(items))
            }
            (ViewConstraint::Snapshot(all), Some(ViewItems::Snapshot(items))) => {
                ViewConstraint::Snapshot(all.with_items(items))
            }
            (all, None) => all.clone(),
            (_, Some(_)) => panic!("items of another kind of view"),
        }
    }

    /// An item with fewer codes than the model's levels, which only a model that ends items by a
    /// token may have.
    pub(crate) fn shorter_item(&self) -> Option<u64> {
        *self.shorter.get_or_init(|| self.view.shorter_item(self.levels.len()))
    }

    /// The semantic IDs of a frozen catalog, to be verified whole; `None` for a snapshot, whose IDs
    /// are walked instead.
    pub(crate) fn keys(&self) -> Result<Option<&CatalogKeys>, RecommendError> {
        let CatalogView::Frozen(filters) = &self.view else { return Ok(None) };
        let keys = self.keys.get_or_init(|| CatalogKeys::new(filters.catalog()));
        keys.as_ref().map(Some).map_err(|error| error.clone().into())
    }
}

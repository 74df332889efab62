//! Catalogs: a frozen file of items, and a directory that changes.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{
    BuildError, BuildOptions, CatalogBuilder, FileError, FilterCache, FilterError,
};
use palmette_live::{
    Applied, CatalogSource, CatalogView, FILTER_BYTES, LiveError, LiveOptions, ReaderOptions,
};

use crate::{Filter, Item, Update};

/// A frozen set of items, each with a semantic ID. Cheap to clone; threads share it, and the filters compiled over it.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<FilterCache>);

impl Catalog {
    /// Opens a file that [`save`](Self::save) or `palmette catalog build` wrote. Everything in it is checked.
    ///
    /// # Errors
    /// When it cannot be read, is of another version, or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        palmette_catalog::Catalog::open(path.as_ref()).map(Self::of)
    }

    /// Builds a catalog of items. Items that share a semantic ID keep this order.
    ///
    /// # Errors
    /// When an id comes twice, an attribute changes its kind, or there are too many; the message names the item, counted
    /// from 1 as its line.
    pub fn build(items: impl IntoIterator<Item = Item>) -> Result<Self, BuildError> {
        let mut builder = CatalogBuilder::new(BuildOptions::default())?;
        for (number, Item { id, codes, attributes }) in (1..).zip(items) {
            builder.push(number, id, &codes, attributes)?;
        }
        builder.finish(None, |_| {}).map(Self::of)
    }

    fn of(catalog: palmette_catalog::Catalog) -> Self {
        Self(Arc::new(FilterCache::new(Arc::new(catalog), FILTER_BYTES)))
    }

    /// Writes it to a file that [`open`](Self::open) reads; one of that name is replaced, and kept if writing fails.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.inner().write(path.as_ref())
    }

    /// Items in all.
    pub fn num_items(&self) -> u64 {
        self.inner().num_items()
    }

    /// The item with this id.
    pub fn item(&self, id: &str) -> Option<Item> {
        item_of(&self.view(), id)
    }

    /// The ids of the items that match a filter, in the order of their semantic IDs.
    ///
    /// # Errors
    /// When the filter asks for what the catalog does not have.
    pub fn filter(&self, filter: &Filter) -> Result<Vec<String>, FilterError> {
        filtered(&self.view(), filter)
    }

    /// The items as a request sees them, for the engine crates.
    pub fn view(&self) -> CatalogView {
        CatalogView::Frozen(Arc::clone(&self.0))
    }

    /// The catalog itself, for the engine crates.
    pub fn inner(&self) -> &Arc<palmette_catalog::Catalog> {
        self.0.catalog()
    }
}

impl From<Catalog> for CatalogSource {
    fn from(catalog: Catalog) -> Self {
        Self::Frozen(catalog.0)
    }
}

/// A catalog in a directory, whose items come, change and go while it is read. Cheap to clone; threads share it.
///
/// What [`apply`](Self::apply) acknowledged outlives a crash. One process at a time writes to a directory; others read it with
/// [`LiveReader`].
#[derive(Clone, Debug)]
pub struct LiveCatalog(Arc<palmette_live::LiveCatalog>);

impl LiveCatalog {
    /// Opens a directory that [`create`](Self::create) or `palmette catalog live init` made.
    ///
    /// # Errors
    /// When there is none, another process has it open, or a file is damaged.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, LiveError> {
        let live = palmette_live::LiveCatalog::open(dir.as_ref(), LiveOptions::default())?;
        Ok(Self(Arc::new(live)))
    }

    /// Makes one in a directory, with the items of a catalog.
    ///
    /// # Errors
    /// When there is one already, or the directory cannot be written to.
    pub fn create(dir: impl AsRef<Path>, items: &Catalog) -> Result<Self, LiveError> {
        let (dir, options) = (dir.as_ref(), LiveOptions::default());
        let live = palmette_live::LiveCatalog::create(
            dir,
            Some((**items.inner()).clone()),
            None,
            options,
        )?;
        Ok(Self(Arc::new(live)))
    }

    /// Applies a batch, whole or not at all; it is on disk when this returns, and readers see it from then on.
    ///
    /// # Errors
    /// When an update breaks a rule, naming it, or the log cannot be written; nothing of the batch is applied then.
    pub fn apply(&self, updates: &[Update]) -> Result<Applied, LiveError> {
        self.0.apply(updates)
    }

    /// The items as they are now: what a request sees from its beginning to its end.
    pub fn view(&self) -> CatalogView {
        self.0.snapshot().into()
    }

    /// Items in all, now.
    pub fn num_items(&self) -> u64 {
        self.view().num_items()
    }

    /// The number of the present state: one more with each batch.
    pub fn generation(&self) -> u64 {
        self.0.snapshot().generation()
    }

    /// The item with this id, now.
    pub fn item(&self, id: &str) -> Option<Item> {
        item_of(&self.view(), id)
    }

    /// The ids of the items that match a filter, now.
    ///
    /// # Errors
    /// When the filter asks for what no item ever had.
    pub fn filter(&self, filter: &Filter) -> Result<Vec<String>, FilterError> {
        filtered(&self.view(), filter)
    }

    /// Keeps the present generation under a name, to go back to.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn keep(&self, name: &str) -> Result<u64, LiveError> {
        self.0.keep(Some(name))
    }

    /// Makes the items those of a kept generation again, as a new one; returns its number.
    ///
    /// # Errors
    /// When that generation was not kept.
    pub fn rollback(&self, generation: u64) -> Result<u64, LiveError> {
        self.0.rollback(generation)
    }

    /// The live catalog itself, for the engine crates.
    pub fn inner(&self) -> &Arc<palmette_live::LiveCatalog> {
        &self.0
    }
}

impl From<LiveCatalog> for CatalogSource {
    fn from(live: LiveCatalog) -> Self {
        live.0.into()
    }
}

/// A catalog in a directory that another process changes. Cheap to clone; threads share it. It locks nothing and writes nothing,
/// and sees a new generation some 20 ms after it was published.
#[derive(Clone, Debug)]
pub struct LiveReader(Arc<palmette_live::LiveReader>);

impl LiveReader {
    /// Opens a directory that a [`LiveCatalog`] or `palmette catalog live` writes.
    ///
    /// # Errors
    /// When there is none, or a file is damaged; the message names it.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, LiveError> {
        let reader = palmette_live::LiveReader::open(dir.as_ref(), ReaderOptions::default())?;
        Ok(Self(Arc::new(reader)))
    }

    /// The items as they are now: what a request sees from its beginning to its end.
    pub fn view(&self) -> CatalogView {
        self.0.snapshot().into()
    }

    /// The number of the newest generation that was seen.
    pub fn generation(&self) -> u64 {
        self.0.snapshot().generation()
    }

    /// The item with this id, now.
    pub fn item(&self, id: &str) -> Option<Item> {
        item_of(&self.view(), id)
    }

    /// The reader itself, for the engine crates.
    pub fn inner(&self) -> &Arc<palmette_live::LiveReader> {
        &self.0
    }
}

impl From<LiveReader> for CatalogSource {
    fn from(reader: LiveReader) -> Self {
        Self::Reader(reader.0)
    }
}

/// The items of a view that match a filter, by id in the order of their numbers.
fn filtered(view: &CatalogView, filter: &Filter) -> Result<Vec<String>, FilterError> {
    let items = view.filter(filter)?;
    Ok(view.numbers_in(&items).map(|number| view.id(number).to_owned()).collect())
}

fn item_of(view: &CatalogView, id: &str) -> Option<Item> {
    view.find(id).map(|number| view.item(number))
}

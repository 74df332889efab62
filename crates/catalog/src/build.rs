//! From items in any order to a catalog.

use std::sync::atomic::{AtomicBool, Ordering};

use palmette_catalog_filter::{ColumnConflict, ColumnKind, ColumnsBuilder};
use serde_json::{Map, Value};

use crate::build_error::{BuildError, BuildErrorKind};
use crate::catalog::Catalog;
use crate::ids::IdsBuilder;
use crate::index::{CodeRows, Index, IndexOptions, MAX_CODE, MAX_LEVELS, Packer};
use crate::item::Item;
use crate::readers::{ItemSink, SourceItems};

/// Rules that items must keep to, and the form of their index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// Size of each level's codebook: at most [`MAX_LEVELS`] sizes, each from 1 to [`MAX_CODE`] + 1.
    /// With it, an ID has at most that many codes, each below its level's size; without it, the
    /// sizes are what the items use.
    pub codes_per_level: Option<Vec<u32>>,
    /// Refuse IDs that do not have this many codes. Without it, IDs may differ in length and one
    /// may be a prefix of another.
    pub num_levels: Option<usize>,
    /// Number of first levels to keep as masks and a table of ranks. Without it, as many as
    /// `dense_bytes` are enough for.
    pub dense_levels: Option<usize>,
    /// Bytes of those masks and of the table, and again of the masks of one level more; without it,
    /// a byte an item, or 4 KiB.
    pub dense_bytes: Option<u64>,
    /// Attributes of a given kind, whatever their values look like; above all timestamps, which are
    /// otherwise taken for text.
    pub columns: Vec<(String, ColumnKind)>,
}

/// The first value of an attribute that is of another kind than those before it.
#[derive(Clone, Debug, PartialEq)]
pub struct KindConflict {
    /// The attribute and both values.
    pub conflict: ColumnConflict,
    /// The line of the value.
    pub line: u64,
    /// The line of the attribute's first value.
    pub first_line: u64,
}

/// Stage of a build, for progress bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildStage {
    /// Semantic IDs are sorted.
    Sorting,
    /// Levels are indexed.
    Indexing,
    /// Ids and attributes are put in rank order.
    OrderingItems,
}

/// Takes items one by one and makes a catalog of them.
///
/// Nothing is kept twice: semantic IDs are packed as they come, ids are one text, and of each
/// attribute the distinct values are kept once. Memory while items come, a row: the packed ID and
/// its number (16 bytes for 8 codes below 2,048), the id and 6 bytes, and 1 to 4 bytes an
/// attribute.
#[derive(Debug)]
pub struct CatalogBuilder {
    options: BuildOptions,
    rows: CodeRows,
    ids: IdsBuilder,
    /// Line of each row.
    lines: Packer,
    columns: ColumnsBuilder,
}

/// Bits of a line number.
const LINE_BITS: u32 = 40;

impl CatalogBuilder {
    /// A builder without items.
    ///
    /// # Errors
    /// For codebook sizes or declared columns that [`BuildOptions`] does not allow.
    pub fn new(options: BuildOptions) -> Result<Self, BuildError> {
        check_sizes(&options)?;
        let mut columns = ColumnsBuilder::new();
        for (name, kind) in &options.columns {
            columns.declare(name, *kind).map_err(BuildErrorKind::Columns)?;
        }
        if !options.columns.is_empty() {
            columns.keep_declared_order();
        }
        let sizes = options.codes_per_level.as_deref().unwrap_or_default();
        Ok(Self {
            rows: CodeRows::with_capacity(sizes, 0),
            ids: IdsBuilder::default(),
            lines: Packer::new(LINE_BITS),
            columns,
            options,
        })
    }

    /// Items so far.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Attributes that hold values of several kinds so far and were not declared: they are kept as
    /// JSON and cannot be filtered on.
    pub fn conflicts(&self) -> impl Iterator<Item = KindConflict> {
        let line = |row: usize| self.lines.get(row as u64);
        self.columns.conflicts().map(move |conflict| KindConflict {
            line: line(conflict.row),
            first_line: line(conflict.first_row),
            conflict,
        })
    }

    /// Adds items in memory, in their order; their lines are those of the source.
    ///
    /// # Errors
    /// As [`push`](ItemSink::push).
    pub fn push_all(&mut self, items: Vec<Item>, lines: &[u64]) -> Result<(), BuildError> {
        for (index, item) in items.into_iter().enumerate() {
            let line = lines.get(index).copied().unwrap_or(index as u64 + 1);
            self.push(line, item.id, &item.codes, item.attributes)?;
        }
        Ok(())
    }

    /// Adds items of a catalog, by rank: what [`push`](ItemSink::push) does with each, without
    /// taking their attributes apart. Lines are counted on from the items so far.
    ///
    /// # Errors
    /// As [`push`](ItemSink::push); some of the items have then been added, and the builder is of
    /// no use.
    ///
    /// # Panics
    /// When a rank is not below the catalog's number of items.
    pub fn push_items_of(&mut self, catalog: &Catalog, ranks: &[u64]) -> Result<(), BuildError> {
        let mut codes = Vec::new();
        for &rank in ranks {
            let id = catalog.id(rank);
            let line = self.len() as u64 + 1;
            codes.clear();
            catalog.index().prefix_of(rank, catalog.num_levels(), |code| codes.push(code));
            let refused = |rule: String| BuildError::of_item(line, id, rule);
            check_codes(&codes, &self.options).map_err(refused)?;
            self.push_keys(line, id, &codes).map_err(refused)?;
        }
        self.columns.push_rows_of(catalog.columns(), ranks).map_err(BuildErrorKind::Columns)?;
        Ok(())
    }

    /// Takes an item's semantic ID, its id and its line: all but the attributes. `Err`: the rule,
    /// as the end of a sentence about the item.
    fn push_keys(&mut self, line: u64, id: &str, codes: &[u32]) -> Result<(), String> {
        self.rows.push(codes)?;
        self.ids.push(id)?;
        self.lines.push(line & ((1 << LINE_BITS) - 1));
        Ok(())
    }

    /// Sorts and indexes the items. Those with the same semantic ID keep the order in which they
    /// came. No items make the empty catalog, which denies everything. `level_prefixes` are the
    /// letters of each level where codes were spelled `<a_12>`; `stage_began` is told what is being
    /// done.
    ///
    /// Cost: one parallel sort; memory for the catalog beside what was taken.
    ///
    /// # Errors
    /// When an id stands twice, or for dense levels that cannot be.
    pub fn finish(
        self,
        level_prefixes: Option<Vec<String>>,
        mut stage_began: impl FnMut(BuildStage),
    ) -> Result<Catalog, BuildError> {
        let finished = self.finish_while(level_prefixes, |stage| {
            stage_began(stage);
            true
        });
        finished.map(|catalog| catalog.expect("nothing calls it off"))
    }

    /// [`finish`](Self::finish) that ends with the stage during which the flag is set; it then
    /// gives `None`.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_unless(
        self,
        level_prefixes: Option<Vec<String>>,
        cancelled: &AtomicBool,
    ) -> Result<Option<Catalog>, BuildError> {
        self.finish_while(level_prefixes, |_| !cancelled.load(Ordering::Relaxed))
    }

    fn finish_while(
        self,
        level_prefixes: Option<Vec<String>>,
        mut goes_on: impl FnMut(BuildStage) -> bool,
    ) -> Result<Option<Catalog>, BuildError> {
        let Self { options, rows, ids, lines, columns } = self;
        if !goes_on(BuildStage::Sorting) {
            return Ok(None);
        }
        let sorted = rows.sorted(true);
        let order = sorted.order();
        if !goes_on(BuildStage::Indexing) {
            return Ok(None);
        }
        let index_options = IndexOptions {
            dense_levels: options.dense_levels,
            dense_bytes: options.dense_bytes,
            codes_per_level: options.codes_per_level.clone(),
        };
        let index = Index::of_sorted(&sorted, &index_options).map_err(BuildErrorKind::Dense)?;
        drop(sorted);
        if !goes_on(BuildStage::OrderingItems) {
            return Ok(None);
        }
        let twice = |(first, second): (u32, u32), id: &str| {
            let lines = lines.finish();
            let (line, first_line) = (lines.get(u64::from(second)), lines.get(u64::from(first)));
            BuildError::from(BuildErrorKind::Twice { line, id: id.to_owned(), first_line })
        };
        let ids = ids.finish(&order).map_err(|(rows, id)| twice(rows, &id))?;
        let columns = columns.finish(Some(&order), |_, _| {});
        let codes_per_level =
            options.codes_per_level.unwrap_or_else(|| index.code_bounds().to_vec());
        Ok(Some(Catalog::from_parts(index, ids, columns, codes_per_level, level_prefixes)))
    }
}

impl ItemSink for CatalogBuilder {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        let refused = |rule: String| BuildError::of_item(line, id.as_str(), rule);
        if id.is_empty() {
            return Err(refused("has an empty id; ids are how items are named".into()));
        }
        check_codes(codes, &self.options).map_err(refused)?;
        let attributes = self.columns.push_row(&attributes);
        attributes.map_err(|e| refused(format!("cannot be kept: {e}")))?;
        self.push_keys(line, &id, codes).map_err(refused)
    }

    fn timestamps(&mut self, names: &[String]) {
        for name in names {
            // A column that was declared by the caller stays what it was declared.
            _ = self.columns.declare(name, ColumnKind::Timestamp);
        }
    }
}

impl Catalog {
    /// Makes a catalog of items with the default options. Items that share a semantic ID keep this
    /// order.
    ///
    /// # Errors
    /// When an id comes twice, an attribute changes its kind, or there are too many; the message
    /// names the item, counted from 1 as its line.
    pub fn from_items<I: Into<Item>>(
        items: impl IntoIterator<Item = I>,
    ) -> Result<Self, BuildError> {
        let mut builder = CatalogBuilder::new(BuildOptions::default())?;
        for (number, item) in (1..).zip(items) {
            let Item { id, codes, attributes } = item.into();
            builder.push(number, id, &codes, attributes)?;
        }
        builder.finish(None, |_| {})
    }

    /// Makes a catalog of items that are in memory already: [`CatalogBuilder`] with all of them.
    ///
    /// # Errors
    /// For codebook sizes that [`BuildOptions`] does not allow; then for the first item with an
    /// empty ID, more than [`MAX_LEVELS`] codes, a code over its level's size or [`MAX_CODE`], the
    /// wrong number of codes, or an id seen before; and for more items than one catalog holds.
    pub fn build(source: SourceItems, options: &BuildOptions) -> Result<Self, BuildError> {
        let SourceItems { items, lines, level_prefixes } = source;
        let mut builder = CatalogBuilder::new(options.clone())?;
        builder.push_all(items, &lines)?;
        builder.finish(level_prefixes, |_| {})
    }
}

fn check_sizes(options: &BuildOptions) -> Result<(), BuildErrorKind> {
    let sizes = options.codes_per_level.as_deref().unwrap_or_default();
    if sizes.len() > MAX_LEVELS {
        return Err(BuildErrorKind::TooManySizes { given: sizes.len() });
    }
    match sizes.iter().position(|size| !(1..=MAX_CODE + 1).contains(size)) {
        Some(level) => Err(BuildErrorKind::BadSize { level, size: sizes[level] }),
        None => Ok(()),
    }
}

/// Checks an ID against the options; rules of all IDs are checked where it is packed. Relies on
/// sizes that [`check_sizes`] has let through.
fn check_codes(codes: &[u32], options: &BuildOptions) -> Result<(), String> {
    if codes.is_empty() || codes.len() > MAX_LEVELS {
        return Ok(());
    }
    if let Some(wanted) = options.num_levels.filter(|&wanted| wanted != codes.len()) {
        let len = codes.len();
        return Err(format!("has {len} codes where every item must have {wanted}"));
    }
    let Some(sizes) = &options.codes_per_level else { return Ok(()) };
    if codes.len() > sizes.len() {
        let (len, levels) = (codes.len(), sizes.len());
        return Err(format!("has {len} codes, but codebook sizes are given for {levels} levels"));
    }
    match codes.iter().zip(sizes).position(|(code, size)| code >= size) {
        None => Ok(()),
        Some(level) => {
            let (code, size) = (codes[level], sizes[level]);
            Err(format!("has code {code} at level {level}; codes there are below {size}"))
        }
    }
}

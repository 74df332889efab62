//! Rules that all items of a live catalog keep to.

use std::collections::{HashMap, HashSet};

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder, ColumnKind};
use palmette_catalog_filter::{Columns, ColumnsBuilder, Filter, FilterError};
use serde::{Deserialize, Serialize};

use crate::error::{Kind, LiveError};
use crate::update::{RefusedUpdate, Update};

/// The rules for items, and the kinds of their attributes.
///
/// An attribute has the kind of its first value for as long as the live catalog is there: segments
/// that are built at different times must agree on what a filter may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Size of each level's codebook; without it, codes are only below 2^31.
    pub codes_per_level: Option<Vec<u32>>,
    /// Number of codes that every semantic ID has; without it, they may differ in length.
    pub num_levels: Option<usize>,
    /// Attributes and their kinds.
    pub columns: Vec<(String, ColumnKind)>,
    /// The letters of each level where codes are spelled `<a_12>`.
    pub level_prefixes: Option<Vec<String>>,
}

/// A batch that was checked.
#[derive(Debug)]
pub(crate) struct CheckedBatch {
    /// Attributes that it brings, with their kinds.
    pub(crate) added_columns: Vec<(String, ColumnKind)>,
    /// Updates that break a rule, in their order.
    pub(crate) refused: Vec<RefusedUpdate>,
}

impl Schema {
    /// The rules that a catalog's items keep to: its codebook sizes, how many codes an ID has where
    /// all have as many, its attributes and their kinds.
    pub fn of_catalog(catalog: &Catalog) -> Self {
        let column = |column: palmette_catalog_filter::ColumnDescription<'_>| {
            (column.name.to_owned(), column.kind)
        };
        Self {
            codes_per_level: (catalog.num_levels() > 0).then(|| catalog.codes_per_level().to_vec()),
            num_levels: Some(catalog.num_levels())
                .filter(|&levels| levels > 0 && catalog.index().shorter_items().is_empty()),
            columns: catalog.columns().columns().map(column).collect(),
            level_prefixes: catalog.level_prefixes().map(<[String]>::to_vec),
        }
    }

    /// Declares the kinds of attributes, before those that it has.
    ///
    /// # Errors
    /// When a name is declared with two kinds.
    pub fn declare_columns(&mut self, declared: &[(String, ColumnKind)]) -> Result<(), LiveError> {
        let mut columns: Vec<(String, ColumnKind)> = Vec::new();
        for (name, kind) in declared {
            match columns.iter().find(|(other, _)| other == name) {
                Some((_, other)) if other != kind => {
                    let rule = format!(
                        "attribute {name:?} is declared {other} and {kind}; declare it once"
                    );
                    return Err(Kind::Options(rule).into());
                }
                Some(_) => {}
                None => columns.push((name.clone(), *kind)),
            }
        }
        let is_new =
            |(name, _): &(String, ColumnKind)| declared.iter().all(|(other, _)| other != name);
        columns.extend(std::mem::take(&mut self.columns).into_iter().filter(is_new));
        self.columns = columns;
        Ok(())
    }

    /// Options of building a segment of `num_items` items.
    pub(crate) fn build_options(&self, num_items: u64) -> BuildOptions {
        BuildOptions {
            codes_per_level: self.codes_per_level.clone(),
            num_levels: self.num_levels,
            dense_levels: None,
            dense_bytes: Some(dense_bytes(num_items)),
            columns: self.columns.clone(),
        }
    }

    /// Options of a catalog of ids and codes alone.
    pub(crate) fn departed_options(&self) -> BuildOptions {
        BuildOptions { columns: Vec::new(), ..self.build_options(0) }
    }

    /// Fails unless a catalog's items keep to the rules.
    pub(crate) fn check_catalog(&self, catalog: &Catalog) -> Result<(), LiveError> {
        let wrong = |problem: String| LiveError::from(Kind::Options(problem));
        if let Some(sizes) = &self.codes_per_level {
            let levels = catalog.num_levels();
            if sizes.len() < levels {
                return Err(wrong(format!(
                    "codebook sizes are given for {} levels, the catalog has {levels}",
                    sizes.len()
                )));
            }
            for (level, &size) in sizes.iter().enumerate().take(levels) {
                if let Some(code) = catalog.index().largest_code(level).filter(|&code| code >= size)
                {
                    return Err(wrong(format!(
                        "the catalog has code {code} at level {level}, the codebook size given for \
                         it is {size}"
                    )));
                }
            }
        }
        if let Some(wanted) = self.num_levels {
            let short = (0..catalog.num_items()).find(|&rank| catalog.codes(rank).len() != wanted);
            if let Some(rank) = short {
                return Err(wrong(format!(
                    "item {:?} of the catalog has {} codes where every item must have {wanted}",
                    catalog.id(rank),
                    catalog.codes(rank).len()
                )));
            }
        }
        for column in catalog.columns().columns() {
            if let Some((_, kind)) = self.columns.iter().find(|(name, _)| name == column.name)
                && *kind != column.kind
            {
                return Err(wrong(format!(
                    "the attribute {:?} of the catalog is {}, and {kind} was asked for",
                    column.name, column.kind
                )));
            }
        }
        Ok(())
    }

    /// Checks that these codebook sizes take all that the present ones do.
    pub(crate) fn check_wider(&self, codes_per_level: &[u32]) -> Result<(), LiveError> {
        let wrong = |problem: String| LiveError::from(Kind::Options(problem));
        let Some(sizes) = &self.codes_per_level else {
            return Err(wrong(
                "no codebook sizes bind this catalog, so that there is nothing to widen".into(),
            ));
        };
        if codes_per_level.len() < sizes.len() {
            let (found, levels) = (codes_per_level.len(), sizes.len());
            return Err(wrong(format!(
                "{found} codebook sizes are given, there are {levels} levels"
            )));
        }
        for (level, (&wider, &size)) in codes_per_level.iter().zip(sizes).enumerate() {
            if wider < size {
                return Err(wrong(format!(
                    "the codebook size {wider} is given for level {level}, which has {size}; codebooks can only grow"
                )));
            }
        }
        let options = BuildOptions {
            codes_per_level: Some(codes_per_level.to_vec()),
            ..self.build_options(0)
        };
        CatalogBuilder::new(options).map(drop).map_err(LiveError::from)
    }

    /// Adds the attributes of `other` that are not there.
    pub(crate) fn add_columns(&mut self, other: &[(String, ColumnKind)]) {
        for (name, kind) in other {
            if self.kind_of(name).is_none() {
                self.columns.push((name.clone(), *kind));
            }
        }
    }

    pub(crate) fn kind_of(&self, name: &str) -> Option<ColumnKind> {
        self.columns.iter().find(|(other, _)| other == name).map(|&(_, kind)| kind)
    }

    /// Checks every update of a batch; `codes` gives those of the items that are there before it.
    pub(crate) fn check_batch(
        &self,
        updates: &[Update],
        codes: &dyn Fn(&str) -> Option<Vec<u32>>,
    ) -> Result<CheckedBatch, LiveError> {
        let added_columns = self.added_columns(updates);
        let mut options = self.build_options(updates.len() as u64);
        options.columns.extend(added_columns.iter().cloned());
        let mut builder = CatalogBuilder::new(options)?;
        let (mut changed, mut refused) = (HashMap::new(), Vec::new());
        for (index, update) in updates.iter().enumerate() {
            let number = index as u64 + 1;
            if let Err(rule) = check_update(update, number, &mut builder, &mut changed, codes) {
                let id = Some(update.id()).filter(|id| !id.is_empty()).map(str::to_owned);
                refused.push(RefusedUpdate { index, id, rule });
            }
        }
        Ok(CheckedBatch { added_columns, refused })
    }

    /// Attributes that a batch brings, each with the kind of its first value.
    fn added_columns(&self, updates: &[Update]) -> Vec<(String, ColumnKind)> {
        let mut known: HashSet<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let attributes = updates.iter().filter_map(|update| match update {
            Update::Upsert(item) => Some(&item.attributes),
            Update::Patch { attributes, .. } => Some(attributes),
            Update::Delete(_) => None,
        });
        let mut added = Vec::new();
        for (name, value) in attributes.flatten() {
            if let Some(kind) = ColumnKind::of(value)
                && known.insert(name)
            {
                added.push((name.clone(), kind));
            }
        }
        added
    }

    /// Columns of no items, by which filters are checked.
    pub(crate) fn empty_columns(&self) -> Columns {
        let mut builder = ColumnsBuilder::new();
        for (name, kind) in &self.columns {
            // Only columns that a builder took are in a schema.
            _ = builder.declare(name, *kind);
        }
        builder.finish(None, |_, _| {})
    }
}

/// Checks one update after those before it in its batch, whose items are in `changed` with their
/// codes, `None` where they are gone.
fn check_update<'a>(
    update: &'a Update,
    number: u64,
    builder: &mut CatalogBuilder,
    changed: &mut HashMap<&'a str, Option<Vec<u32>>>,
    codes: &dyn Fn(&str) -> Option<Vec<u32>>,
) -> Result<(), String> {
    let id = update.id();
    if id.is_empty() {
        return Err("has an empty id; give it one".into());
    }
    let (codes, attributes) = match update {
        Update::Upsert(item) => (item.codes.clone(), &item.attributes),
        Update::Patch { attributes, .. } => {
            let found = changed.get(id).cloned().unwrap_or_else(|| codes(id));
            let rule = "is not in the catalog, so its attributes cannot change; give it codes to insert it";
            (found.ok_or(rule)?, attributes)
        }
        Update::Delete(_) => {
            changed.insert(id, None);
            return Ok(());
        }
    };
    let pushed = builder.push(number, id.to_owned(), &codes, attributes.clone());
    pushed.map_err(|e| e.rule().map_or_else(|| e.to_string(), str::to_owned))?;
    changed.insert(id, Some(codes));
    Ok(())
}

/// Fails unless a filter fits the attributes, whatever fields there are within them.
pub(crate) fn check_filter(columns: &Columns, filter: &Filter) -> Result<(), FilterError> {
    columns.select_among(filter, &|_| None, &|name| columns.reader(name).is_some()).map(|_| ())
}

/// Limit on the dense levels of a segment, in bytes: more than by default. Every beam looks into
/// every segment, and nearly all that is to be found there is that no item has the code. A mask
/// says so in one read.
///
/// PERF: so do the codes themselves, as long as a prefix has few, and they lie closer together:
/// with 32 bytes an item a segment of 266,000 had two megabytes of masks more, and steps over it
/// took as long (`benches/segments.rs`, on an AMD EPYC (Zen 5)).
fn dense_bytes(num_items: u64) -> u64 {
    const BYTES_PER_ITEM: u64 = 6;
    const LEAST_BYTES: u64 = 16 << 10;
    const MOST_BYTES: u64 = 4 << 20;
    (num_items * BYTES_PER_ITEM).clamp(LEAST_BYTES, MOST_BYTES).max(num_items)
}

//! What all items of a live catalog have in common.

use std::collections::HashMap;

use palmette_attributes::{Columns, ColumnsBuilder, Filter, FilterError};
use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder, ColumnKind};
use serde::{Deserialize, Serialize};

use crate::error::{Kind, LiveError};
use crate::update::Update;

/// The rules for items, and the kinds of their attributes.
///
/// An attribute has the kind of its first value for as long as the live catalog is there: segments that
/// are built at different times must agree on what a filter may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Size of each level's codebook; without it, codes are only below 2^31.
    pub codes_per_level: Option<Vec<u32>>,
    /// How many codes every semantic ID has; without it, they may differ in length.
    pub num_levels: Option<usize>,
    /// Attributes and their kinds.
    pub columns: Vec<(String, ColumnKind)>,
    /// The letters of each level where codes are spelled `<a_12>`.
    pub level_prefixes: Option<Vec<String>>,
}

impl Schema {
    /// The rules that a catalog's items keep to: its codebook sizes, its attributes and their kinds.
    pub fn of_catalog(catalog: &Catalog) -> Self {
        let column = |column: palmette_attributes::ColumnDescription<'_>| {
            (column.name.to_owned(), column.kind)
        };
        Self {
            codes_per_level: (catalog.num_levels() > 0).then(|| catalog.codes_per_level().to_vec()),
            num_levels: None,
            columns: catalog.columns().columns().map(column).collect(),
            level_prefixes: catalog.level_prefixes().map(<[String]>::to_vec),
        }
    }

    /// How a segment of so many items is built.
    pub(crate) fn build_options(&self, num_items: u64) -> BuildOptions {
        BuildOptions {
            codes_per_level: self.codes_per_level.clone(),
            num_levels: self.num_levels,
            dense_levels: None,
            dense_bytes: Some(dense_bytes(num_items)),
            columns: self.columns.clone(),
        }
    }

    /// Whether a catalog's items keep to the rules; what is wrong where they do not.
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

    /// Checks a whole batch; returns the attributes that it brings and their kinds.
    pub(crate) fn check_batch(
        &self,
        updates: &[Update],
    ) -> Result<Vec<(String, ColumnKind)>, LiveError> {
        let known: HashMap<&str, ColumnKind> =
            self.columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        let mut added: Vec<(String, ColumnKind)> = Vec::new();
        for update in updates {
            let Update::Upsert(item) = update else { continue };
            for (name, value) in &item.attributes {
                let Some(kind) = ColumnKind::of(value) else { continue };
                if !known.contains_key(name.as_str())
                    && !added.iter().any(|(other, _)| other == name)
                {
                    added.push((name.clone(), kind));
                }
            }
        }
        let mut options = self.build_options(updates.len() as u64);
        options.columns.extend(added.iter().cloned());
        let mut builder = CatalogBuilder::new(options)?;
        for (index, update) in updates.iter().enumerate() {
            let refused = |id: Option<&str>, rule: String| {
                LiveError::from(Kind::Update { index, id: id.map(str::to_owned), rule })
            };
            let id = match update {
                Update::Upsert(item) => &item.id,
                Update::Delete(id) => id,
            };
            if id.is_empty() {
                return Err(refused(None, "has an empty id; give it one".into()));
            }
            let Update::Upsert(item) = update else { continue };
            let pushed = builder.push(
                index as u64 + 1,
                item.id.clone(),
                &item.codes,
                item.attributes.clone(),
            );
            pushed.map_err(|e| {
                let rule = e.rule().map_or_else(|| e.to_string(), str::to_owned);
                refused(Some(&item.id), rule)
            })?;
        }
        Ok(added)
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

/// Whether a filter fits the attributes.
pub(crate) fn check_filter(columns: &Columns, filter: &Filter) -> Result<(), FilterError> {
    columns.select(filter, &|_| None).map(|_| ())
}

/// What the dense levels of a segment may take: more than by default, since every beam looks into every segment,
/// and nearly all that is to be found there is that no item has the code. A mask says so in one read.
///
/// PERF: so do the codes themselves, as long as a prefix has few, and they lie closer together: with 32 bytes an item a segment of 266,000
/// had two megabytes of masks more, and steps over it took as long (`benches/segments.rs`, on an AMD EPYC (Zen 5)).
fn dense_bytes(num_items: u64) -> u64 {
    const BYTES_PER_ITEM: u64 = 6;
    const LEAST_BYTES: u64 = 16 << 10;
    const MOST_BYTES: u64 = 4 << 20;
    (num_items * BYTES_PER_ITEM).clamp(LEAST_BYTES, MOST_BYTES).max(num_items)
}

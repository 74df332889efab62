//! From items in any order to a catalog.

use crate::catalog::Catalog;
use crate::items::{ItemTable, TextColumn};
use crate::levels::{Levels, MAX_CODE, MAX_ITEMS, MAX_LEVELS};
use crate::readers::SourceItems;

/// What the items must keep to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// Size of each level's codebook: at most [`MAX_LEVELS`] sizes, each from 1 to [`MAX_CODE`] + 1.
    /// With it, an ID has at most that many codes, each below its level's size; without it, the
    /// sizes are what the items use.
    pub codes_per_level: Option<Vec<u32>>,
    /// Refuse IDs that do not have this many codes. Without it, IDs may differ in length and one
    /// may be a prefix of another.
    pub num_levels: Option<usize>,
}

/// Why there is no catalog: an item that cannot be in one, or options that none can keep to.
///
/// The message names the value and the rule, and for an item its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct BuildError {
    kind: BuildErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BuildErrorKind {
    #[error("line {line}: item {id:?} {rule}")]
    Item { line: u64, id: String, rule: String },
    #[error("{given} codebook sizes are given; a semantic ID has at most {MAX_LEVELS} codes")]
    TooManySizes { given: usize },
    #[error(
        "the codebook of level {level} has size {size}; sizes go from 1 to {}",
        MAX_CODE + 1
    )]
    BadSize { level: usize, size: u32 },
}

impl BuildError {
    /// A sink's refusal of one item; `rule` completes "item `id` …".
    pub fn of_item(line: u64, id: impl Into<String>, rule: impl Into<String>) -> BuildError {
        BuildError { kind: BuildErrorKind::Item { line, id: id.into(), rule: rule.into() } }
    }

    /// What is wrong with the item, as it follows "item `id`". `None` when no item is at fault.
    pub fn rule(&self) -> Option<&str> {
        match &self.kind {
            BuildErrorKind::Item { rule, .. } => Some(rule),
            _ => None,
        }
    }

    /// Line of the source the item came from; its number, from 1, when it came from no file.
    /// `None` when no item is at fault.
    pub fn line(&self) -> Option<u64> {
        match &self.kind {
            BuildErrorKind::Item { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The item's id. `None` when no item is at fault.
    pub fn id(&self) -> Option<&str> {
        match &self.kind {
            BuildErrorKind::Item { id, .. } => Some(id),
            _ => None,
        }
    }
}

impl Catalog {
    /// Sorts and indexes items. They may come in any order; items with the same semantic ID keep
    /// the order in which they came. No items make the empty catalog, which denies everything.
    ///
    /// Cost: one sort; memory for a second copy of the items' ids and attributes.
    ///
    /// # Errors
    /// For codebook sizes that [`BuildOptions`] does not allow; then for the first item with an empty ID, more than [`MAX_LEVELS`] codes, a code over its level's
    /// size or [`MAX_CODE`], the wrong number of codes, or an id seen before; and for more than
    /// [`MAX_ITEMS`] items.
    pub fn build(source: SourceItems, options: &BuildOptions) -> Result<Self, BuildError> {
        check_sizes(options).map_err(|kind| BuildError { kind })?;
        let SourceItems { items, lines, level_prefixes } = source;
        let error = |index: usize, rule: String| {
            let line = lines.get(index).copied().unwrap_or(index as u64 + 1);
            BuildError { kind: BuildErrorKind::Item { line, id: items[index].id.clone(), rule } }
        };
        if items.len() > MAX_ITEMS {
            return Err(error(
                MAX_ITEMS,
                format!("is one more than the {MAX_ITEMS} a catalog holds"),
            ));
        }
        for (index, item) in items.iter().enumerate() {
            check_codes(&item.codes, options).map_err(|rule| error(index, rule))?;
        }

        let mut order: Vec<u32> = (0..items.len() as u32).collect();
        // Input order breaks ties, so the unstable sort has one outcome.
        order.sort_unstable_by_key(|&index| (&items[index as usize].codes, index));
        let sorted = || order.iter().map(|&index| &items[index as usize]);

        let levels = Levels::of_sorted(sorted().map(|item| item.codes.as_slice()));
        let ids = TextColumn::new(sorted().map(|item| &item.id));
        let attributes = TextColumn::new(sorted().map(|item| {
            serde_json::to_string(&item.attributes).expect("a JSON object can be written")
        }));
        let table = ItemTable::new(ids, attributes).map_err(|twice| {
            let same = items.iter().enumerate().filter(|(_, item)| item.id == twice);
            let places: Vec<usize> = same.map(|(index, _)| index).collect();
            let first = lines.get(places[0]).copied().unwrap_or(places[0] as u64 + 1);
            error(places[1], format!("stands twice, first in line {first}; ids must be unique"))
        })?;
        let codes_per_level = options.codes_per_level.clone().unwrap_or_else(|| {
            let largest = |level| levels.prefix_codes(level).max().map_or(0, |code| code + 1);
            (0..levels.num_levels()).map(largest).collect()
        });
        Ok(Self::from_parts(levels, table, codes_per_level, level_prefixes))
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

/// Relies on sizes that [`check_sizes`] has let through.
fn check_codes(codes: &[u32], options: &BuildOptions) -> Result<(), String> {
    if codes.is_empty() {
        return Err("has an empty semantic ID; it needs at least one code".into());
    }
    if codes.len() > MAX_LEVELS {
        let len = codes.len();
        return Err(format!("has {len} codes; a semantic ID has at most {MAX_LEVELS}"));
    }
    if let Some(wanted) = options.num_levels.filter(|&wanted| wanted != codes.len()) {
        let len = codes.len();
        return Err(format!("has {len} codes where every item must have {wanted}"));
    }
    if let Some(sizes) = &options.codes_per_level
        && codes.len() > sizes.len()
    {
        let (len, levels) = (codes.len(), sizes.len());
        return Err(format!("has {len} codes, but codebook sizes are given for {levels} levels"));
    }
    for (level, &code) in codes.iter().enumerate() {
        let size = options.codes_per_level.as_ref().map_or(MAX_CODE + 1, |sizes| sizes[level]);
        if code >= size {
            return Err(format!("has code {code} at level {level}; codes there are below {size}"));
        }
    }
    Ok(())
}

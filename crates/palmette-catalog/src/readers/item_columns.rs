//! Which column of a table holds what.

use std::collections::HashSet;

use super::error::{Kind, Problem};
use super::json::{CODES_NAMES, ID_NAMES};

/// The columns of a table of items, as column numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemColumns {
    /// The column `item_id` (or `id`).
    pub id: usize,
    /// Where the semantic ID is.
    pub codes: CodeColumns,
    /// All other columns, in order.
    pub attributes: Vec<usize>,
}

/// Where a table holds semantic IDs, as column numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeColumns {
    /// One column with all codes: `codes` (or `semantic_id`, or `sid`).
    Whole(usize),
    /// The columns `code_0`, `code_1`, …, by level; they may stand anywhere.
    PerLevel(Vec<usize>),
}

impl ItemColumns {
    /// Finds the columns by their names.
    ///
    /// # Errors
    /// When a name appears twice, there is no column for the ID or the codes or more than one, or
    /// the numbers of code columns have gaps.
    pub fn from_names(columns: &[String]) -> Result<ItemColumns, Problem> {
        find(columns).map_err(Problem::whole)
    }
}

fn find(columns: &[String]) -> Result<ItemColumns, Kind> {
    let mut names = HashSet::new();
    if let Some(name) = columns.iter().find(|name| !names.insert(name.as_str())) {
        return Err(Kind::DuplicateColumn { name: name.clone() });
    }
    let Some(id) = find_column(columns, ID_NAMES)? else {
        return Err(Kind::MissingField { names: ID_NAMES, found: columns.to_vec() });
    };
    let whole = find_column(columns, CODES_NAMES)?;
    let levels = level_columns(columns)?;
    let codes = match (whole, levels.first()) {
        (Some(whole), Some(&level)) => {
            let (first, second) = (columns[whole].clone(), columns[level].clone());
            return Err(Kind::BothFields { first, second });
        }
        (Some(whole), None) => CodeColumns::Whole(whole),
        (None, Some(_)) => CodeColumns::PerLevel(levels),
        (None, None) => {
            const NAMES: &[&str] = &["codes", "semantic_id", "sid", "code_0"];
            return Err(Kind::MissingField { names: NAMES, found: columns.to_vec() });
        }
    };
    let is_attribute = |&column: &usize| {
        column != id
            && match &codes {
                CodeColumns::Whole(whole) => column != *whole,
                CodeColumns::PerLevel(_) => level_of(&columns[column]).is_none(),
            }
    };
    let attributes = (0..columns.len()).filter(is_attribute).collect();
    Ok(ItemColumns { id, codes, attributes })
}

fn find_column(columns: &[String], names: &[&str]) -> Result<Option<usize>, Kind> {
    let mut found = (0..columns.len()).filter(|&column| names.contains(&columns[column].as_str()));
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            Err(Kind::BothFields { first: columns[first].clone(), second: columns[second].clone() })
        }
        (first, _) => Ok(first),
    }
}

/// The columns `code_0`, `code_1`, …, wherever they stand.
fn level_columns(columns: &[String]) -> Result<Vec<usize>, Kind> {
    let mut levels: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .filter_map(|(column, name)| Some((level_of(name)?, column)))
        .collect();
    levels.sort_unstable();
    if let Some(missing) = (0..levels.len()).find(|&level| levels[level].0 != level) {
        return Err(Kind::CodeColumnGap { missing });
    }
    Ok(levels.into_iter().map(|(_, column)| column).collect())
}

/// 12 of `code_12`; `code_012` and `code_name` are attributes.
fn level_of(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("code_")?;
    let level: usize = digits.parse().ok()?;
    (level.to_string() == digits).then_some(level)
}

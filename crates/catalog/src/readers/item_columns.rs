//! Roles of a table's columns: the id, the semantic ID, the attributes.

use std::collections::HashSet;

use super::SourceOptions;
use super::csv_records::separator_hint;
use super::error::{Kind, Problem};

/// The columns of a table of items, as column numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemColumns {
    /// The column of IDs.
    pub id: usize,
    /// Columns of the semantic ID.
    pub codes: CodeColumns,
    /// All other columns, in order.
    pub attributes: Vec<usize>,
}

/// Columns of semantic IDs, as column numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeColumns {
    /// One column with all codes.
    Whole(usize),
    /// One column a level, by level; they may stand anywhere.
    PerLevel(Vec<usize>),
}

impl CodeColumns {
    fn contains(&self, column: usize) -> bool {
        match self {
            CodeColumns::Whole(whole) => column == *whole,
            CodeColumns::PerLevel(levels) => levels.contains(&column),
        }
    }
}

impl ItemColumns {
    /// Finds the columns by their names: those that `options` say, or the usual ones.
    ///
    /// # Errors
    /// When a name appears twice, there is no column for the ID or the codes or more than one, or
    /// the numbers of code columns have gaps.
    pub fn from_names(columns: &[String], options: &SourceOptions) -> Result<ItemColumns, Problem> {
        find(columns, options).map_err(Problem::whole)
    }
}

fn find(columns: &[String], options: &SourceOptions) -> Result<ItemColumns, Kind> {
    let mut names = HashSet::new();
    if let Some(name) = columns.iter().find(|name| !names.insert(name.as_str())) {
        return Err(Kind::DuplicateColumn { name: name.clone() });
    }
    let id_names = options.id_names_among(|name| columns.iter().any(|column| column == name));
    let Some(id) = find_column(columns, &id_names)? else {
        check_header(columns)?;
        return Err(Kind::missing_id(options, columns));
    };
    let codes = match options.codes_columns.is_empty() {
        true => usual_code_columns(columns, options)?,
        false => named_code_columns(columns, options)?,
    };
    if codes.contains(id) {
        return Err(Kind::IdAndCodes { name: columns[id].clone() });
    }
    let mut absent = options.left_out.iter().filter(|&name| !columns.contains(name));
    if let Some(name) = absent.next().filter(|_| !options.is_one_of_two) {
        return Err(Kind::NotLeftOut { name: name.clone(), found: columns.to_vec() });
    }
    let is_attribute = |&column: &usize| {
        column != id && !codes.contains(column) && !options.left_out.contains(&columns[column])
    };
    let attributes = (0..columns.len()).filter(is_attribute).collect();
    Ok(ItemColumns { id, codes, attributes })
}

fn usual_code_columns(columns: &[String], options: &SourceOptions) -> Result<CodeColumns, Kind> {
    let whole = find_column(columns, &options.codes_names())?;
    let levels = level_columns(columns)?;
    match (whole, levels.first()) {
        (Some(whole), Some(&level)) => {
            let (first, second) = (columns[whole].clone(), columns[level].clone());
            Err(Kind::BothFields { first, second })
        }
        (Some(whole), None) => Ok(CodeColumns::Whole(whole)),
        (None, Some(_)) => Ok(CodeColumns::PerLevel(levels)),
        (None, None) => Err(Kind::missing_codes(options, Some("code_0"), columns)),
    }
}

fn named_code_columns(columns: &[String], options: &SourceOptions) -> Result<CodeColumns, Kind> {
    let mut places = Vec::with_capacity(options.codes_columns.len());
    for name in &options.codes_columns {
        let Some(place) = columns.iter().position(|column| column == name) else {
            return Err(Kind::missing_codes_of(name, columns));
        };
        if places.contains(&place) {
            return Err(Kind::LevelTwice { name: name.clone() });
        }
        places.push(place);
    }
    Ok(match places[..] {
        [whole] => CodeColumns::Whole(whole),
        _ => CodeColumns::PerLevel(places),
    })
}

/// Refuses a header of one column whose name shows what parts its cells.
pub(super) fn check_header(columns: &[String]) -> Result<(), Kind> {
    match separator_hint(columns) {
        Some(hint) => Err(Kind::OneColumn { hint }),
        None => Ok(()),
    }
}

pub(super) fn find_column(columns: &[String], names: &[&str]) -> Result<Option<usize>, Kind> {
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

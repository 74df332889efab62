//! Field names, packings and spellings that a source has of its own.

use crate::ColumnKind;

/// Spelling of a source's values, and the kinds that they are meant to be.
///
/// The default is as values look: numbers with a point, nothing but an empty cell or null for a
/// missing value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellOptions {
    /// Kinds of attributes. A cell is read as its attribute's kind says: `90210` is a text where
    /// that is a keyword.
    pub kinds: Vec<(String, ColumnKind)>,
    /// Texts that mean a missing value, such as `NA`; `NaN` and `Infinity` also where JSON has them
    /// bare, they and `null` also where it stands in a list.
    pub nulls: Vec<String>,
    /// Separator of the texts of a list in a cell, such as `|`.
    pub list_separator: Option<String>,
    /// Mark before the fraction of a number; a point unless given.
    pub decimal: Option<char>,
    /// Mark between the thousands of a number; nothing unless given.
    pub thousands: Option<char>,
}

/// Names and spellings of a source that are not the usual ones.
///
/// The default is the usual names, and IDs that spell their codes one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOptions {
    /// The field or column of the item ID; without it `item_id` or `id`.
    pub id_column: Option<String>,
    /// The field or column of the semantic ID, or one a level, in order; without any `codes`,
    /// `semantic_id` or `sid`, or in tables `code_0`, `code_1`, ….
    pub codes_columns: Vec<String>,
    /// Codebook sizes of semantic IDs that are single numbers in mixed radix, the last level in the
    /// lowest digits: by `[8192, 8192, 8192]` a number is `(c0 * 8192 + c1) * 8192 + c2`. Empty for
    /// IDs that spell their codes.
    pub packed: Vec<u32>,
    /// Fields or columns that are not read.
    pub left_out: Vec<String>,
    /// Spelling of values, and their kinds.
    pub cells: CellOptions,
    /// True if cells of tab-separated text may stand in quotes, as those between commas.
    /// Otherwise a quote is a plain character.
    pub quoted_tabs: bool,
    /// Separator of the cells of a table of text; by its format a comma or a tab unless given.
    pub separator: Option<char>,
    /// True where a second file is read by the same options: `id_column` and `left_out` may be
    /// names of that one alone, and the ID then has one of the usual names.
    pub is_one_of_two: bool,
}

/// The usual names of an item's ID, the first of which errors suggest.
const ID_NAMES: [&str; 2] = ["item_id", "id"];
/// The usual names of a semantic ID.
const CODES_NAMES: [&str; 3] = ["codes", "semantic_id", "sid"];

impl SourceOptions {
    /// The names that an item's ID may have.
    pub(super) fn id_names(&self) -> Vec<&str> {
        match &self.id_column {
            Some(name) => vec![name],
            None => ID_NAMES.to_vec(),
        }
    }

    /// The names that an item's ID may have where `is_there` tells of each name whether it is one
    /// of a field.
    pub(super) fn id_names_among(&self, is_there: impl Fn(&str) -> bool) -> Vec<&str> {
        match &self.id_column {
            Some(name) if self.is_one_of_two && !is_there(name) => ID_NAMES.to_vec(),
            _ => self.id_names(),
        }
    }

    /// The names that a whole semantic ID may have; none where each level has its own.
    pub(super) fn codes_names(&self) -> Vec<&str> {
        match &self.codes_columns[..] {
            [] => CODES_NAMES.to_vec(),
            [name] => vec![name],
            _ => Vec::new(),
        }
    }

    /// The name of each level's code, where they are given one by one.
    pub(super) fn level_names(&self) -> Option<&[String]> {
        Some(&self.codes_columns[..]).filter(|names| names.len() > 1)
    }

    /// True of names of an ID or of codes.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.id_names().contains(&name)
            || self.is_one_of_two && ID_NAMES.contains(&name)
            || self.codes_names().contains(&name)
            || self.codes_columns.iter().any(|column| column == name)
    }
}

//! Columns that grow row by row.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::codes::GrowingCodes;
use super::column::Column;
use super::error::{AttributeError, Kind};
use super::interner::Interner;
use super::kind::{ColumnKind, ValueKind};
use super::{Columns, MAX_COLUMNS, MAX_NESTING, MAX_ROWS, MAX_VALUE_BYTES, freeze, timestamp};

/// Takes the attributes of items, row by row, and makes [`Columns`] of them.
///
/// Of each column the distinct values are kept once, as text, and a code of 1, 2 or 4 bytes a row;
/// what kind of column it is turns out in the end. A distinct value costs its text, one byte more
/// for text, and 10 to 15 bytes.
#[derive(Debug, Default)]
pub struct ColumnsBuilder {
    num_rows: usize,
    columns: Vec<ColumnBuilder>,
    by_name: HashMap<String, usize>,
    declared: Vec<(String, ColumnKind)>,
    /// True where declared columns come first, as they were declared.
    keeps_declared_order: bool,
    /// Values of the row at hand; emptied before each.
    row: Vec<RowEntry>,
    /// The values of the row at hand, as [`spell`] writes them.
    spelled: Vec<u8>,
}

/// A value of the row at hand that is not null.
#[derive(Debug)]
struct RowEntry {
    /// `None` if the column begins here.
    column: Option<usize>,
    kind: ValueKind,
    spelled_as_float: bool,
    /// End of its text in `spelled`.
    end: usize,
}

#[derive(Debug)]
pub(super) struct ColumnBuilder {
    pub(super) name: String,
    pub(super) declared: Option<ColumnKind>,
    /// The kind of its first values.
    pub(super) kind: ValueKind,
    /// The row of its first value.
    first_row: usize,
    /// The first value that was of another kind.
    pub(super) clash: Option<Clash>,
    /// A whole number within ±2^53 was given as a float.
    pub(super) spelled_as_floats: bool,
    /// Values as [`spell`] writes them.
    pub(super) values: Interner,
    /// For each row the number of its value, counted from 1; 0 where it has none.
    pub(super) codes: GrowingCodes,
}

/// A value of another kind than those before it.
#[derive(Debug)]
pub(super) struct Clash {
    pub(super) kind: ValueKind,
    row: usize,
    /// Number among the column's values.
    value: u32,
}

/// The first value of a column that is of another kind than those before it, because of which the
/// column is kept as JSON and cannot be filtered on.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnConflict {
    /// The attribute.
    pub name: String,
    /// The row of the value, from 0.
    pub row: usize,
    /// The value.
    pub value: Value,
    /// In words, what it is.
    pub kind: String,
    /// The row of the attribute's first value, from 0.
    pub first_row: usize,
    /// That value.
    pub first_value: Value,
    /// In words, what that is.
    pub first_kind: String,
}

impl ColumnsBuilder {
    /// A builder without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says of what kind a column is, whatever its values look like: it then takes no others.
    /// Without this text is never a [`ColumnKind::Timestamp`]; values of several kinds are compared
    /// in filters only in a column that was declared [`ColumnKind::Json`], each by its own kind.
    ///
    /// # Errors
    /// When the column has values already, was declared another kind, or would be one too many.
    pub fn declare(&mut self, name: &str, kind: ColumnKind) -> Result<(), AttributeError> {
        let declared = self.declared_kind(name);
        if declared == Some(kind) {
            return Ok(());
        }
        let problem = if self.by_name.contains_key(name) {
            "it has values already; declare it before the first row".to_owned()
        } else if let Some(other) = declared {
            format!("it was declared {other}; declare it once")
        } else if self.num_columns() >= MAX_COLUMNS {
            format!("there can be {MAX_COLUMNS} columns")
        } else {
            self.declared.push((name.to_owned(), kind));
            return Ok(());
        };
        Err(Kind::Declaration { name: name.to_owned(), kind, problem }.into())
    }

    /// Puts declared columns before the others, in the order in which they were declared, whichever
    /// has the first value: builders of the same declarations then give their columns alike.
    pub fn keep_declared_order(&mut self) {
        self.keeps_declared_order = true;
    }

    /// The number of rows so far.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Adds the attributes of the next item. Null is taken for a missing attribute.
    ///
    /// # Errors
    /// When there would be more than 1024 columns or 2^32 − 1 rows, a value takes more than 1 MiB
    /// as text or nests deeper than 100, or one is not what its column was declared. The row is
    /// then not added.
    pub fn push_row(&mut self, attributes: &Map<String, Value>) -> Result<(), AttributeError> {
        self.spell_row(attributes)?;
        let values = attributes.iter().filter(|(_, value)| !value.is_null());
        let mut start = 0;
        let row = std::mem::take(&mut self.row);
        for ((name, _), entry) in values.zip(&row) {
            let row = self.num_rows;
            let column = entry.column.unwrap_or_else(|| self.begin_column(name, entry.kind, row));
            let spelled = &self.spelled[start..entry.end];
            self.columns[column].push(self.num_rows, entry, spelled);
            start = entry.end;
        }
        self.row = row;
        self.num_rows += 1;
        Ok(())
    }

    /// The columns that hold values of several kinds so far, and were not declared, in their order.
    pub fn conflicts(&self) -> impl Iterator<Item = ColumnConflict> {
        self.columns.iter().filter_map(ColumnBuilder::conflict)
    }

    /// Adds rows that were frozen before, as [`push_row`](Self::push_row) with [`Columns::row`]
    /// does one by one, but that new columns come in the order of those. `ranks` are distinct.
    ///
    /// Cost: of each distinct value that stands in many rows only the first is looked at.
    ///
    /// # Errors
    /// As [`push_row`](Self::push_row); some of the rows have then been added, and the builder is
    /// of no use.
    ///
    /// # Panics
    /// When a rank is not of these columns.
    pub fn push_rows_of(&mut self, columns: &Columns, ranks: &[u64]) -> Result<(), AttributeError> {
        let outside = ranks.iter().find(|&&rank| rank >= columns.num_ranks);
        assert!(outside.is_none(), "rank {outside:?} of {}", columns.num_ranks);
        if ranks.len() > MAX_ROWS - self.num_rows {
            return Err(Kind::TooManyRows { row: MAX_ROWS }.into());
        }
        for column in &columns.columns {
            self.push_column(column, ranks)?;
        }
        self.num_rows += ranks.len();
        Ok(())
    }

    fn push_column(&mut self, from: &Column, ranks: &[u64]) -> Result<(), Kind> {
        let mut into = self.by_name.get(&from.name).copied();
        // A value that few rows have is not worth remembering: 4 bytes for each there is.
        let remembered = Some(from.dictionary.len()).filter(|&len| len <= ranks.len() / 2);
        let mut codes = vec![0; remembered.map_or(0, |len| len + 1)];
        for (row, &rank) in (self.num_rows..).zip(ranks) {
            let code = from.codes.get(rank) as usize;
            if let Some(&known @ 1..) = codes.get(code) {
                self.columns[into.expect("it has a value")].codes.push(row, known);
                continue;
            }
            let Some(value) = from.dictionary.value(code as u32) else { continue };
            let Some(kind) = ValueKind::of(&value) else { continue };
            if into.is_none()
                && self.declared_kind(&from.name).is_none()
                && self.num_columns() == MAX_COLUMNS
            {
                return Err(Kind::TooManyColumns { name: from.name.clone() });
            }
            self.spelled.clear();
            let entry = self.spell_value(&from.name, into, &value, kind)?;
            let column = into.unwrap_or_else(|| self.begin_column(&from.name, kind, row));
            into = Some(column);
            let column = &mut self.columns[column];
            column.push(row, &entry, &self.spelled);
            if let Some(known) = codes.get_mut(code) {
                *known = column.codes.get(row);
            }
        }
        Ok(())
    }

    /// Columns in which rank `r` has the attributes of row `order[r]`; all rows in their order
    /// where `order` is `None`. Columns come in the order in which they first appeared, then those
    /// that were declared and never did. `progress` is told how many columns are done, and of how
    /// many.
    ///
    /// Cost: sorting the distinct values of each column, and 4 bytes a rank while one is made.
    ///
    /// # Panics
    /// When `order` names a row that is not there, or there are more than 2^32 − 1 ranks.
    pub fn finish(self, order: Option<&[u32]>, mut progress: impl FnMut(usize, usize)) -> Columns {
        let num_ranks = order.map_or(self.num_rows, <[u32]>::len);
        assert!(num_ranks <= MAX_ROWS, "{num_ranks} ranks");
        if let Some(order) = order {
            let absent = order.iter().find(|&&row| row as usize >= self.num_rows);
            assert!(absent.is_none(), "row {absent:?} of {}", self.num_rows);
        }
        let unseen = self.declared.iter().filter(|(name, _)| !self.by_name.contains_key(name));
        let unseen =
            unseen.map(|(name, kind)| ColumnBuilder::new(name, Some(*kind), ValueKind::Other, 0));
        let mut columns = self.columns;
        columns.extend(unseen);
        if self.keeps_declared_order {
            let names = self.declared.iter().map(|(name, _)| name.as_str());
            let places: HashMap<&str, usize> = names.zip(0..).collect();
            let place = |of: &ColumnBuilder| places.get(of.name.as_str()).copied();
            columns.sort_by_key(|of| place(of).unwrap_or(usize::MAX));
        }

        let num_columns = columns.len();
        progress(0, num_columns);
        let mut done = Vec::with_capacity(num_columns);
        for column in columns {
            done.push(freeze::column(column, order, num_ranks));
            progress(done.len(), num_columns);
        }
        Columns::new(num_ranks as u64, done)
    }

    /// Number of columns so far, with the declared ones that no row has had.
    fn num_columns(&self) -> usize {
        let unseen = self.declared.iter().filter(|(name, _)| !self.by_name.contains_key(name));
        self.columns.len() + unseen.count()
    }

    fn declared_kind(&self, name: &str) -> Option<ColumnKind> {
        self.declared.iter().find(|(other, _)| other == name).map(|&(_, kind)| kind)
    }

    /// Checks a row and writes its values to `self.row` and `self.spelled`.
    fn spell_row(&mut self, attributes: &Map<String, Value>) -> Result<(), Kind> {
        let row = self.num_rows;
        self.row.clear();
        self.spelled.clear();
        if row == MAX_ROWS {
            return Err(Kind::TooManyRows { row });
        }
        let mut num_new = 0;
        for (name, value) in attributes {
            let Some(kind) = ValueKind::of(value) else { continue };
            let column = self.by_name.get(name).copied();
            if column.is_none() && self.declared_kind(name).is_none() {
                num_new += 1;
                if self.num_columns() + num_new > MAX_COLUMNS {
                    return Err(Kind::TooManyColumns { name: name.clone() });
                }
            }
            let entry = self.spell_value(name, column, value, kind)?;
            self.row.push(entry);
        }
        Ok(())
    }

    /// Checks a value that is not null and writes it after those in `self.spelled`.
    fn spell_value(
        &mut self,
        name: &str,
        column: Option<usize>,
        value: &Value,
        kind: ValueKind,
    ) -> Result<RowEntry, Kind> {
        let declared = match column {
            Some(column) => self.columns[column].declared,
            None => self.declared_kind(name),
        };
        let name = || name.to_owned();
        if let Some(declared) = declared
            && !fits(value, kind, declared)
        {
            return Err(Kind::NotAsDeclared {
                name: name(),
                declared,
                value: crate::message_values::shown(value),
            });
        }
        if kind == ValueKind::Other && is_deeper(value, MAX_NESTING) {
            return Err(Kind::TooDeep { name: name() });
        }
        let start = self.spelled.len();
        spell(value, &mut self.spelled);
        let end = self.spelled.len();
        if end - start > MAX_VALUE_BYTES {
            return Err(Kind::TooLong { name: name(), bytes: end - start });
        }
        let spelled_as_float = kind == ValueKind::Number && is_whole_float(value);
        Ok(RowEntry { column, kind, spelled_as_float, end })
    }

    /// The column that a first value begins.
    fn begin_column(&mut self, name: &str, kind: ValueKind, row: usize) -> usize {
        let declared = self.declared_kind(name);
        self.by_name.insert(name.to_owned(), self.columns.len());
        self.columns.push(ColumnBuilder::new(name, declared, kind, row));
        self.columns.len() - 1
    }
}

impl ColumnBuilder {
    fn new(name: &str, declared: Option<ColumnKind>, kind: ValueKind, first_row: usize) -> Self {
        Self {
            name: name.to_owned(),
            declared,
            kind,
            first_row,
            clash: None,
            spelled_as_floats: false,
            values: Interner::default(),
            codes: GrowingCodes::U8(Vec::new()),
        }
    }

    fn push(&mut self, row: usize, entry: &RowEntry, spelled: &[u8]) {
        self.spelled_as_floats |= entry.spelled_as_float;
        let value = self.values.intern(spelled);
        self.codes.push(row, value + 1);
        match self.kind.join(entry.kind) {
            Some(kind) => self.kind = kind,
            None if self.clash.is_none() => {
                self.clash = Some(Clash { kind: entry.kind, row, value });
            }
            None => {}
        }
    }

    fn conflict(&self) -> Option<ColumnConflict> {
        let clash = self.clash.as_ref().filter(|_| self.declared.is_none())?;
        Some(ColumnConflict {
            name: self.name.clone(),
            row: clash.row,
            value: unspelled(self.values.get(clash.value as usize)),
            kind: clash.kind.to_string(),
            first_row: self.first_row,
            first_value: unspelled(self.values.get(0)),
            first_kind: self.kind.to_string(),
        })
    }
}

/// First byte of texts that [`spell`] writes as they are.
pub(super) const TEXT_MARK: u8 = b'"';

/// Writes a value: text after a [`TEXT_MARK`] as it is, all else as JSON. Equal values, and only
/// those, are written alike.
fn spell(value: &Value, out: &mut Vec<u8>) {
    if let Value::String(text) = value {
        out.push(TEXT_MARK);
        out.extend_from_slice(text.as_bytes());
    } else {
        serde_json::to_writer(out, value).expect("JSON goes into a Vec");
    }
}

/// The value that [`spell`] wrote.
fn unspelled(spelled: &[u8]) -> Value {
    match spelled.split_first() {
        Some((&TEXT_MARK, text)) => String::from_utf8_lossy(text).into(),
        _ => serde_json::from_slice(spelled).expect("it was written as JSON"),
    }
}

fn fits(value: &Value, kind: ValueKind, declared: ColumnKind) -> bool {
    match declared {
        ColumnKind::Json => true,
        ColumnKind::Timestamp => timestamp::from_json(value).is_some(),
        declared => kind.column_kind() == declared,
    }
}

fn is_whole_float(value: &Value) -> bool {
    value.is_f64() && super::kind::number_to_json(value.as_f64().unwrap_or_default()).is_i64()
}

fn is_deeper(value: &Value, depth: usize) -> bool {
    let is_deeper = |value| depth == 0 || is_deeper(value, depth - 1);
    match value {
        Value::Array(values) => values.iter().any(is_deeper),
        Value::Object(values) => values.values().any(is_deeper),
        _ => false,
    }
}

//! A column of vectors, such as embeddings.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};

use crate::codes::lists;
use crate::error::{Fault, Kind};
use crate::scalars::{floats, ids};
use crate::table::Table;
use crate::{TableError, TableFormat};

/// The names under which item IDs are found.
const ID_COLUMNS: [&str; 2] = ["item_id", "id"];

/// Reads the vector of each item: `take(item, vector)` is called for each row, in order. Returns
/// how many rows there are.
///
/// Items are in the column `item_id` (or `id`); vectors in the column named `column`, or else in
/// the only column of lists of floats. Vectors may be of any length and hold any float, also NaN:
/// that is the caller's to judge. `progress(rows, of)` is called every 8,192 rows or fewer.
///
/// # Errors
/// When the file cannot be read or is not of `format`; when a column is missing or of a type that
/// cannot be used; for the first row whose item, vector or number is null.
pub fn read_vectors(
    path: &Path,
    format: TableFormat,
    column: Option<&str>,
    take: &mut dyn FnMut(String, &[f32]),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, TableError> {
    read(path, format, column, take, progress).map_err(|fault| TableError::new(path, fault))
}

fn read(
    path: &Path,
    format: TableFormat,
    column: Option<&str>,
    take: &mut dyn FnMut(String, &[f32]),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, Fault> {
    let Some(table) = Table::open(path, format)? else { return Ok(0) };
    let columns = Columns::of(table.schema(), column)?;
    let (mut rows_read, mut vector) = (0, Vec::new());
    table.for_each_batch(&columns.used(), &mut |rows, rows_before, num_rows| {
        columns.take_rows(rows, rows_before + 1, &mut vector, take)?;
        rows_read = rows_before + rows.num_rows() as u64;
        progress(rows_read, num_rows);
        Ok(())
    })?;
    Ok(rows_read)
}

/// Columns of items and vectors, by place and name.
struct Columns {
    item: usize,
    vector: usize,
    item_name: String,
    vector_name: String,
}

impl Columns {
    fn of(schema: &Schema, wanted: Option<&str>) -> Result<Columns, Fault> {
        let fields = schema.fields();
        let names = || fields.iter().map(|field| field.name().clone()).collect();
        let place = |name: &str| fields.iter().position(|field| field.name() == name);
        let Some(item) = ID_COLUMNS.into_iter().find_map(place) else {
            return Err(Fault::of_column(ID_COLUMNS[0], Kind::NoSuchColumn { found: names() }));
        };
        let vector = match wanted {
            Some(name) => place(name)
                .ok_or_else(|| Fault::of_column(name, Kind::NoSuchColumn { found: names() }))?,
            None => {
                let mut vectors = (0..fields.len()).filter(|&at| is_vector(fields[at].data_type()));
                match (vectors.next(), vectors.next()) {
                    (Some(only), None) => only,
                    (None, _) => return Err(Kind::NoVectors { found: names() }.into()),
                    (Some(_), Some(_)) => {
                        return Err(Kind::SeveralVectors { found: names() }.into());
                    }
                }
            }
        };
        let vector_name = fields[vector].name().clone();
        if !is_vector(fields[vector].data_type()) {
            let kind = Kind::VectorType(fields[vector].data_type().clone());
            return Err(Fault::of_column(&vector_name, kind));
        }
        Ok(Columns { item, vector, item_name: fields[item].name().clone(), vector_name })
    }

    fn used(&self) -> [usize; 2] {
        [self.item.min(self.vector), self.item.max(self.vector)]
    }

    fn take_rows(
        &self,
        rows: &RecordBatch,
        first_row: u64,
        vector: &mut Vec<f32>,
        take: &mut dyn FnMut(String, &[f32]),
    ) -> Result<(), Fault> {
        let item_is_first = self.item < self.vector;
        let (items, vectors) = match item_is_first {
            true => (&**rows.column(0), &**rows.column(1)),
            false => (&**rows.column(1), &**rows.column(0)),
        };
        let unusable =
            || Fault::of_column(&self.vector_name, Kind::VectorType(vectors.data_type().clone()));
        let item = ids(items).map_err(|kind| Fault::of_column(&self.item_name, kind))?;
        let (ranges, elements) = lists(vectors).ok_or_else(unusable)?;
        let element = floats(elements).ok_or_else(unusable)?;
        let (no_items, no_vectors) = (items.logical_nulls(), vectors.logical_nulls());
        let no_elements = elements.logical_nulls();
        let is_null = |nulls: &Option<arrow_buffer::NullBuffer>, at: usize| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(at))
        };
        for index in 0..rows.num_rows() {
            let row = first_row + index as u64;
            if is_null(&no_items, index) {
                return Err(Fault::at(row, &self.item_name, Kind::NullId));
            }
            let item = item(index);
            let range = if is_null(&no_vectors, index) { 0..0 } else { ranges(index) };
            if is_null(&no_vectors, index) || range.clone().any(|at| is_null(&no_elements, at)) {
                return Err(Fault::at(row, &self.vector_name, Kind::NullVector { item }));
            }
            vector.clear();
            vector.extend(range.map(|at| element(at) as f32));
            take(item, vector);
        }
        Ok(())
    }
}

fn is_vector(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            matches!(field.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64)
        }
        _ => false,
    }
}

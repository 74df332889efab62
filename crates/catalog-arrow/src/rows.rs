//! From a batch of rows to items.

use arrow_array::{Array, RecordBatch};
use palmette_catalog::readers::{CheckedSink, CodeColumns, ItemSink, Problem};
use serde_json::{Map, Value};

use crate::codes::{CodesColumn, ElementCodes, Elements, Numbers, code_column, codes_column};
use crate::error::{Fault, Kind};
use crate::layout::Layout;
use crate::scalars::ids;
use crate::values::{BadValue, values};

/// Pushes the items of `batch`; `first_row` is the number of its first row.
pub(crate) fn push_rows<S: ItemSink>(
    batch: &RecordBatch,
    layout: &Layout,
    first_row: u64,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Fault> {
    let column = |column: usize| &**batch.column(column);
    let name = |column: usize| layout.names[column].as_str();

    let read_id = ids(column(layout.id))?;
    let id_nulls = column(layout.id).logical_nulls();
    let codes = Codes::of(batch, layout)?;
    let attributes = layout
        .attributes
        .iter()
        .map(|&index| {
            let is_float = column(index).data_type().is_floating();
            Ok((name(index), is_float, values(column(index))?))
        })
        .collect::<Result<Vec<_>, Kind>>()?;

    for index in 0..batch.num_rows() {
        let row = first_row + index as u64;
        if id_nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
            return Err(Fault::at(row, name(layout.id), Kind::NullId));
        }
        let id = read_id(index);
        codes.read(index, row, &id, layout, sink)?;
        let mut object = Map::with_capacity(attributes.len());
        for (name, is_float, values) in &attributes {
            match values(index) {
                Ok(Value::Null) => {}
                Ok(value) => {
                    object.insert((*name).to_owned(), value);
                }
                // Not within a list, of which the others would be lost.
                Err(BadValue::NotFinite(value)) if *is_float && sink.means_none(value) => {}
                Err(bad) => return Err(Fault::at(row, name, bad.of_item(&id))),
            }
        }
        sink.push(row, id, object).map_err(|problem| Fault::of_item(problem, None))?;
    }
    Ok(())
}

/// The codes of a batch.
enum Codes<'a> {
    Whole { column: usize, array: &'a dyn Array, codes: CodesColumn<'a> },
    PerLevel(Vec<Level<'a>>),
}

struct Level<'a> {
    column: usize,
    nulls: Option<arrow_buffer::NullBuffer>,
    codes: Numbers<'a>,
}

impl<'a> Codes<'a> {
    fn of(batch: &'a RecordBatch, layout: &Layout) -> Result<Codes<'a>, Kind> {
        Ok(match &layout.codes {
            &CodeColumns::Whole(column) => {
                let array = &**batch.column(column);
                Codes::Whole { column, array, codes: codes_column(array)? }
            }
            CodeColumns::PerLevel(columns) => {
                let level = |&column: &usize| {
                    let array = &**batch.column(column);
                    let (nulls, codes) = (array.logical_nulls(), code_column(array)?);
                    Ok(Level { column, nulls, codes })
                };
                Codes::PerLevel(columns.iter().map(level).collect::<Result<_, Kind>>()?)
            }
        })
    }

    fn read<S: ItemSink>(
        &self,
        index: usize,
        row: u64,
        item: &str,
        layout: &Layout,
        sink: &mut CheckedSink<'_, S>,
    ) -> Result<(), Fault> {
        match self {
            Codes::Whole { column, array, codes } => {
                let name = layout.names[*column].as_str();
                let fault = |problem: Problem| Fault::of_item(problem, Some(name));
                match codes {
                    // As an empty list, which `push` refuses.
                    _ if array.is_null(index) => {
                        sink.codes_from_numbers(row, item, [0u32; 0]).map_err(fault)
                    }
                    CodesColumn::Text(texts) => {
                        sink.codes_from_text(row, item, texts(index)).map_err(fault)
                    }
                    CodesColumn::Packed(numbers) => {
                        sink.codes_from_numbers(row, item, [numbers(index)]).map_err(fault)
                    }
                    CodesColumn::Lists(ranges, Elements { nulls, codes }) => {
                        let range = ranges(index);
                        let is_null =
                            |at: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
                        if let Some(level) = range.clone().position(is_null) {
                            let kind = Kind::NullCode { item: item.to_owned(), level };
                            return Err(Fault::at(row, name, kind));
                        }
                        match codes {
                            ElementCodes::Numbers(codes) => {
                                sink.codes_from_numbers(row, item, range.map(codes))
                            }
                            ElementCodes::Texts(texts) => {
                                sink.codes_from_pieces(row, item, range.map(texts))
                            }
                        }
                        .map_err(fault)
                    }
                }
            }
            Codes::PerLevel(levels) => {
                let is_null = |level: &Level<'_>| {
                    level.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index))
                };
                // The last levels may be null: the semantic ID is shorter then.
                let filled = levels.iter().rposition(|level| !is_null(level));
                let levels = &levels[..filled.map_or(0, |last| last + 1)];
                if let Some(level) = levels.iter().position(is_null) {
                    let kind = Kind::NullLevel { item: item.to_owned(), level };
                    return Err(Fault::at(row, &layout.names[levels[level].column], kind));
                }
                let codes = levels.iter().map(|level| (level.codes)(index));
                sink.codes_from_numbers(row, item, codes)
                    .map_err(|problem| Fault::of_item(problem, None))
            }
        }
    }
}

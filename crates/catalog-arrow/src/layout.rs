//! Layout of a table: the columns that are read, and as what.

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Schema};
use palmette_catalog::readers::{CodeColumns, ItemColumns, SourceOptions};

use crate::codes::{CodesColumn, code_column, codes_column};
use crate::error::{Fault, Kind};
use crate::guard::guard;
use crate::scalars::ids;
use crate::values::values;

/// The columns in use. Column numbers are those of the batches read, not of the file.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The file's numbers of the columns in use, ascending.
    pub(crate) used: Vec<usize>,
    /// The names of the columns in use.
    pub(crate) names: Vec<String>,
    pub(crate) id: usize,
    pub(crate) codes: CodeColumns,
    pub(crate) attributes: Vec<usize>,
    /// The names of the attributes that are points in time.
    pub(crate) timestamps: Vec<String>,
}

impl Layout {
    /// `wanted` names the attributes to read, `None` all.
    pub(crate) fn of(
        schema: &Schema,
        options: &SourceOptions,
        wanted: Option<&[String]>,
    ) -> Result<Layout, Fault> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let columns = ItemColumns::from_names(&names, options)
            .map_err(|problem| Fault::of_item(problem, None))?;
        if let Some(wanted) = wanted {
            for name in wanted {
                match names.iter().position(|column| column == name) {
                    Some(column) if columns.attributes.contains(&column) => {}
                    Some(_) => return Err(Fault::of_column(name, Kind::NotAnAttribute)),
                    None => {
                        return Err(Fault::of_column(name, Kind::NoSuchColumn { found: names }));
                    }
                }
            }
        }
        let mut attributes = columns.attributes;
        attributes.retain(|&column| wanted.is_none_or(|wanted| wanted.contains(&names[column])));

        let mut used = vec![columns.id];
        match &columns.codes {
            CodeColumns::Whole(column) => used.push(*column),
            CodeColumns::PerLevel(columns) => used.extend(columns),
        }
        used.extend(&attributes);
        used.sort_unstable();

        let place = |column: usize| used.partition_point(|&other| other < column);
        let places = |columns: &[usize]| columns.iter().map(|&column| place(column)).collect();
        let used_names: Vec<String> = used.iter().map(|&column| names[column].clone()).collect();
        let is_time = |column: &&usize| is_time(schema.field(**column).data_type());
        let layout = Layout {
            id: place(columns.id),
            codes: match &columns.codes {
                CodeColumns::Whole(column) => CodeColumns::Whole(place(*column)),
                CodeColumns::PerLevel(columns) => CodeColumns::PerLevel(places(columns)),
            },
            timestamps: attributes
                .iter()
                .filter(is_time)
                .map(|&column| names[column].clone())
                .collect(),
            attributes: places(&attributes),
            names: used_names,
            used,
        };
        layout.check_types(schema, !options.packed.is_empty())?;
        Ok(layout)
    }

    /// A type can be read if a column of no rows can.
    fn check_types(&self, schema: &Schema, is_packed: bool) -> Result<(), Fault> {
        let check = |column: usize, read: &dyn Fn(&dyn arrow_array::Array) -> Result<(), Kind>| {
            let data_type = schema.field(self.used[column]).data_type();
            let empty = guard(|| Ok::<_, std::fmt::Error>(new_empty_array(data_type)))?;
            read(&*empty).map_err(|kind| Fault::of_column(&self.names[column], kind))
        };
        check(self.id, &|array| ids(array).map(drop))?;
        match &self.codes {
            CodeColumns::Whole(column) => check(*column, &|array| match codes_column(array)? {
                CodesColumn::Packed(_) if !is_packed => {
                    Err(Kind::PackedCodes(array.data_type().clone()))
                }
                _ => Ok(()),
            })?,
            CodeColumns::PerLevel(columns) => {
                for &column in columns {
                    check(column, &|array| code_column(array).map(drop))?;
                }
            }
        }
        for &column in &self.attributes {
            check(column, &|array| values(array).map(drop))?;
        }
        Ok(())
    }
}

pub(crate) fn is_time(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => true,
        DataType::Dictionary(_, values) => is_time(values),
        _ => false,
    }
}

//! Attributes from a file of their own, merged by item ID.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use super::bare_words::BareWords;
use super::cells::Cells;
use super::csv_records::{Dialect, Record, Records};
use super::csv_table::{bad_cell, check_count, check_quotes};
use super::error::{Kind, Problem};
use super::item_columns::{check_header, find_column};
use super::json::{
    Fields, begins_with_list, for_each_element, for_each_entry, for_each_object, id_from_json,
    take_field,
};
use super::left_out::LeftOut;
use super::utf8::Utf8Reader;
use super::{Format, Place, ReadError, SourceItems, SourceOptions, dialect};

/// Fit of an attribute file to the items it was read for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributeReport {
    /// Items the file says nothing about.
    pub num_without_attributes: usize,
    /// The IDs of the first of them, at most five.
    pub without_attributes: Vec<String>,
    /// IDs in the file that no item has.
    pub num_unknown: usize,
    /// The first of them, at most five.
    pub unknown: Vec<String>,
    /// Values an item already had and that the file replaced by a different one.
    pub num_replaced: usize,
    /// Names of [`SourceOptions::left_out`] that the file has.
    pub left_out: Vec<String>,
    /// Attributes that the file says are points in time, which text does not.
    pub timestamps: Vec<String>,
    /// Notes on the file for its users, none of them an error.
    pub notes: Vec<String>,
}

const NUM_EXAMPLES: usize = 5;

/// Adds the attributes in a file to the items of `source`, by item ID, in the format that its name
/// stands for, JSON unless it stands for one.
///
/// # Errors
///
/// When the file cannot be read, and as [`parse_attributes`].
pub fn read_attributes(
    path: &Path,
    source: &mut SourceItems,
) -> Result<AttributeReport, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::new(path, error.into()))?;
    let format = Format::from_path(path).unwrap_or(Format::IndexJson);
    parse_attributes(path, BufReader::new(file), format, &SourceOptions::default(), source)
}

/// Adds attributes to the items of `source`, by item ID; `source_name` is what errors call where
/// they come from.
///
/// They are one JSON object, `{"0": {"title": …, "brand": …}, …}`; or objects with the ID in
/// `item_id` (or `id`), one a line or in a list; or a table of text with a column of IDs. An
/// attribute an item already has is replaced. IDs without an item, and items without attributes,
/// are counted and no error.
///
/// # Errors
///
/// When the input cannot be read, holds no attributes in this format, is not of it, or repeats an
/// item ID. `source` is then unchanged.
pub fn parse_attributes(
    source_name: impl AsRef<Path>,
    reader: impl BufRead,
    format: Format,
    options: &SourceOptions,
    source: &mut SourceItems,
) -> Result<AttributeReport, ReadError> {
    let mut sink = AttributeSink::new(source, options, Place::Line);
    let found = read(reader, format, options, &mut sink).map(|()| sink.finish());
    let found = found.map_err(|problem| ReadError::new(source_name.as_ref(), problem))?;
    Ok(found.add_to(source))
}

fn read(
    reader: impl BufRead,
    format: Format,
    options: &SourceOptions,
    sink: &mut AttributeSink<'_>,
) -> Result<(), Problem> {
    let input = Utf8Reader::new(reader);
    match format {
        Format::Csv | Format::Tsv | Format::InfoText => {
            return read_table(input, dialect(format, options), sink);
        }
        Format::Npy | Format::InverseJson => {
            return Err(Problem::whole(Kind::NotAttributes { format }));
        }
        Format::IndexJson | Format::JsonLines => {}
    }
    let mut input = BareWords::new(input, &options.cells.nulls);
    if begins_with_list(&mut input)? {
        return for_each_element(input, |line, Fields(object)| sink.push(line, object));
    }
    match format {
        Format::JsonLines => for_each_object(input, |line, object| sink.push(line, object)),
        _ => {
            for_each_entry(input, |line, id, Fields(attributes)| sink.push_as(line, id, attributes))
        }
    }
}

fn read_table(
    input: impl BufRead,
    dialect: Dialect,
    sink: &mut AttributeSink<'_>,
) -> Result<(), Problem> {
    let mut records = Records::in_dialect(input, dialect);
    let mut record = Record::default();
    let Some(header_line) = records.next_record(&mut record)? else { return Ok(()) };
    let names: Vec<String> = record.cells().map(str::to_owned).collect();
    check_quotes(&records, header_line, &names)?;
    let at_header = |kind: Kind| Problem::at(header_line, kind);
    if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        return Err(at_header(Kind::DuplicateColumn { name: names[at].clone() }));
    }
    let id_names = sink.options.id_names_among(|name| names.iter().any(|other| other == name));
    sink.columns(&names);
    let id = find_column(&names, &id_names).map_err(at_header)?;
    if id.is_none() {
        check_header(&names).map_err(at_header)?;
    }
    let id = id.ok_or_else(|| at_header(Kind::missing_id(sink.options, &names)))?;
    let kinds: Vec<_> = names.iter().map(|name| sink.cells.kind(name)).collect();
    while let Some(line) = records.next_record(&mut record)? {
        check_count(line, &record, &names)?;
        let mut attributes = Map::new();
        for column in (0..names.len()).filter(|&column| column != id) {
            let value = sink.cells.of_text(record.cell(column), kinds[column]);
            let value = value.map_err(|problem| {
                bad_cell(line, record.cell(id), &names[column], &record, column, problem)
            })?;
            attributes.extend(value.map(|value| (names[column].clone(), value)));
        }
        sink.push_as(line, record.cell(id).to_owned(), attributes)?;
    }
    Ok(())
}

/// Takes attributes by item ID. They reach the items only when all have been read.
#[derive(Debug)]
pub struct AttributeSink<'a> {
    options: &'a SourceOptions,
    place: Place,
    cells: Cells,
    left_out: LeftOut,
    indices: HashMap<String, usize>,
    first_lines: HashMap<String, u64>,
    /// One entry an item.
    attributes: Vec<Option<Map<String, Value>>>,
    report: AttributeReport,
}

/// Attributes that were read for items.
#[derive(Debug)]
pub struct FoundAttributes {
    attributes: Vec<Option<Map<String, Value>>>,
    report: AttributeReport,
}

impl<'a> AttributeSink<'a> {
    /// A sink for the attributes of these items; `place` is what messages call a row's place.
    pub fn new(source: &SourceItems, options: &'a SourceOptions, place: Place) -> Self {
        let ids = source.items.iter().map(|item| item.id.clone());
        AttributeSink {
            options,
            place,
            cells: Cells::new(&options.cells),
            left_out: LeftOut::new(&options.left_out),
            indices: ids.enumerate().map(|(index, id)| (id, index)).collect(),
            first_lines: HashMap::new(),
            attributes: vec![None; source.items.len()],
            report: AttributeReport::default(),
        }
    }

    /// Says which columns a table has, also those that are not read.
    pub fn columns(&mut self, names: &[String]) {
        self.left_out.look_among(names);
    }

    /// Takes an object that has the ID among its fields.
    ///
    /// # Errors
    /// When there is no ID, it came before, or a value cannot be read as it was declared.
    pub fn push(&mut self, line: u64, mut fields: Map<String, Value>) -> Result<(), Problem> {
        let missing = |found: &[String]| Kind::missing_id(self.options, found);
        let names = self.options.id_names_among(|name| fields.contains_key(name));
        let id = take_field(line, &mut fields, &names, missing)?;
        self.push_as(line, id_from_json(line, id)?, fields)
    }

    /// Takes the attributes of an item.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_as(
        &mut self,
        line: u64,
        id: String,
        mut fields: Map<String, Value>,
    ) -> Result<(), Problem> {
        let index = self.indices.get(id.as_str()).copied();
        self.left_out.take_from(&mut fields);
        if index.is_some() {
            self.cells.read(|| format!("{} {line}", self.place), line, &id, &mut fields)?;
        }
        match self.first_lines.entry(id) {
            Entry::Occupied(entry) => {
                let (id, first_line) = (entry.key().clone(), *entry.get());
                return Err(Problem::at(line, Kind::DuplicateId { id, first_line }));
            }
            Entry::Vacant(entry) => {
                if index.is_none() {
                    self.report.num_unknown += 1;
                    if self.report.unknown.len() < NUM_EXAMPLES {
                        self.report.unknown.push(entry.key().clone());
                    }
                }
                entry.insert(line);
            }
        }
        if let Some(index) = index {
            self.attributes[index] = Some(fields);
        }
        Ok(())
    }

    /// All attributes that were read.
    pub fn finish(self) -> FoundAttributes {
        let mut report = self.report;
        report.left_out = self.left_out.present();
        report.notes.extend(self.cells.notes());
        FoundAttributes { attributes: self.attributes, report }
    }
}

impl FoundAttributes {
    /// Adds the attributes to the items for which they were read.
    pub fn add_to(self, source: &mut SourceItems) -> AttributeReport {
        let FoundAttributes { attributes, mut report } = self;
        for (item, attributes) in source.items.iter_mut().zip(attributes) {
            let Some(attributes) = attributes else {
                report.num_without_attributes += 1;
                if report.without_attributes.len() < NUM_EXAMPLES {
                    report.without_attributes.push(item.id.clone());
                }
                continue;
            };
            for (name, value) in attributes {
                let old = item.attributes.get(&name);
                report.num_replaced += usize::from(old.is_some_and(|old| *old != value));
                item.attributes.insert(name, value);
            }
        }
        report
    }
}

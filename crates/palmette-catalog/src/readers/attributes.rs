//! Attributes from a file of their own, merged by item ID.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use super::error::{Kind, Problem};
use super::json::{Fields, for_each_entry, for_each_object, id_from_json, take_field};
use super::utf8::Utf8Reader;
use super::{Format, ReadError, SourceItems, SourceOptions};

/// How well an attribute file fits the items it was read for.
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
}

const NUM_EXAMPLES: usize = 5;

/// Adds the attributes in a file to the items of `source`, by item ID.
///
/// The file is one JSON object, `{"0": {"title": …, "brand": …}, …}`, or, when its name ends in
/// `.jsonl` or `.ndjson`, an object a line with the ID in `item_id` (or `id`). An attribute an item
/// already has is replaced. Names that stand for other formats, such as `.csv`, are refused. IDs without an item, and items without attributes, are counted and no
/// error.
///
/// # Errors
///
/// When the file cannot be read, has the name of another format, is not of that form, or repeats an item ID. `source` is then
/// unchanged.
pub fn read_attributes(
    path: &Path,
    source: &mut SourceItems,
) -> Result<AttributeReport, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::new(path, error.into()))?;
    let is_json_lines = match Format::from_path(path) {
        Some(format @ (Format::Csv | Format::Tsv | Format::InfoText | Format::Npy)) => {
            return Err(ReadError::new(path, Problem::whole(Kind::NotAttributes { format })));
        }
        format => format == Some(Format::JsonLines),
    };
    merge(Utf8Reader::new(BufReader::new(file)), is_json_lines, source)
        .map_err(|problem| ReadError::new(path, problem))
}

fn merge(
    input: impl BufRead,
    is_json_lines: bool,
    source: &mut SourceItems,
) -> Result<AttributeReport, Problem> {
    let mut found = Found::new(source);
    if is_json_lines {
        let options = SourceOptions::default();
        for_each_object(input, |line, mut object| {
            let missing = |found: &[String]| Kind::missing_id(&options, found);
            let id = take_field(line, &mut object, &options.id_names(), missing)?;
            let id = id_from_json(line, id)?;
            found.add(line, id, object)
        })?;
    } else {
        for_each_entry(input, |line, id, Fields(attributes)| found.add(line, id, attributes))?;
    }
    let Found { attributes, mut report, .. } = found;

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
    Ok(report)
}

/// The attributes read so far. They reach the items only when the whole file has been read.
struct Found<'a> {
    indices: HashMap<&'a str, usize>,
    first_lines: HashMap<String, u64>,
    /// One entry an item.
    attributes: Vec<Option<Map<String, Value>>>,
    report: AttributeReport,
}

impl<'a> Found<'a> {
    fn new(source: &'a SourceItems) -> Found<'a> {
        let ids = source.items.iter().map(|item| item.id.as_str());
        Found {
            indices: ids.enumerate().map(|(index, id)| (id, index)).collect(),
            first_lines: HashMap::new(),
            attributes: vec![None; source.items.len()],
            report: AttributeReport::default(),
        }
    }

    fn add(&mut self, line: u64, id: String, fields: Map<String, Value>) -> Result<(), Problem> {
        let index = self.indices.get(id.as_str()).copied();
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
}

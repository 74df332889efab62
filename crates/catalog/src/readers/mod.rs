//! Reads items and their semantic IDs from the files in which others publish them.
//!
//! [`read_into`] reads one file in one [`Format`] and pushes each item into an [`ItemSink`];
//! [`read_items`] keeps them all as [`SourceItems`], to which [`read_attributes`] then adds titles,
//! brands and prices from a second file. Items keep the order of the source, and
//! nothing is sorted or dropped: what cannot be kept is a [`ReadError`] that names the line. A
//! source without items is legal and gives no items.
//!
//! Every format may start with a byte order mark and may end its lines with `\n` or `\r\n`, or all
//! of them with `\r`. Sources are streamed: besides what the sink keeps, one item is in memory.
//!
//! A reader of another format finds its columns with [`ItemColumns`] and hands its items to a
//! [`CheckedSink`], so that it takes what these take and says what these say.
//!
//! ```
//! use palmette_catalog::readers::{Format, parse_items};
//!
//! let text = "<a_236><b_231>\tHard start kit\t0\n<a_42><b_80>\tStaples\t1\n";
//! let source = parse_items("info.txt", text.as_bytes(), Format::InfoText)?;
//! assert_eq!(source.items[1].codes, [42, 80]);
//! assert_eq!(source.items[1].title(), Some("Staples"));
//! assert_eq!(source.level_prefixes, Some(vec!["a".to_owned(), "b".to_owned()]));
//!
//! let error = parse_items("info.txt", "<a_x>\t\t0\n".as_bytes(), Format::InfoText).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "info.txt, line 1: item \"0\": code \"<a_x>\" at level 0: expected a whole number \
//!      from 0 to 2147483647 or <letter_number>"
//! );
//! # Ok::<(), palmette_catalog::readers::ReadError>(())
//! ```

mod attributes;
mod bare_words;
mod buffered;
mod cells;
mod checked_sink;
mod codes;
mod csv_records;
mod csv_table;
mod detect;
mod encoding;
mod error;
mod format;
mod index_json;
mod info_text;
mod inverse_json;
mod item_columns;
mod json;
mod json_lines;
mod json_row;
mod left_out;
mod lines;
mod lists;
mod moments;
mod npy;
mod options;
mod patch;
mod python_literal;
mod sink;
mod source_items;
mod utf8;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use bare_words::BareWords;
use source_items::DistinctItems;
use utf8::Utf8Reader;

pub use attributes::{
    AttributeReport, AttributeSink, FoundAttributes, parse_attributes, read_attributes,
};
pub use checked_sink::{CheckedSink, Place};
pub use codes::{CodesError, parse_codes};
pub use csv_records::{Dialect, Record, Records, parse_separator, separator_hint};
pub use error::{Problem, ReadError, Role};
pub use format::{Format, UnknownFormat};
pub use item_columns::{CodeColumns, ItemColumns};
pub use lists::{check_joints, parse_list_cell};
pub use moments::Moments;
pub use options::{CellOptions, SourceOptions};
pub use patch::{Patch, parse_patch};
pub use python_literal::parse_literal;
pub use sink::{ItemSink, ReadSummary};
pub use source_items::SourceItems;

/// Reads the items of a file.
///
/// # Errors
///
/// When the file cannot be read, is not in `format`, or repeats an item ID.
pub fn read_items(path: &Path, format: Format) -> Result<SourceItems, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::new(path, error.into()))?;
    parse_items(path, BufReader::new(file), format)
}

/// Reads items from `reader`; `source_name` is what errors call it.
///
/// # Errors
///
/// When the input cannot be read, is not in `format`, or repeats an item ID.
pub fn parse_items(
    source_name: impl AsRef<Path>,
    reader: impl BufRead,
    format: Format,
) -> Result<SourceItems, ReadError> {
    let mut sink = DistinctItems::default();
    match pass_items(reader, format, &SourceOptions::default(), &mut sink) {
        Ok(summary) => Ok(SourceItems { level_prefixes: summary.level_prefixes, ..sink.source }),
        Err(problem) => Err(ReadError::new(source_name.as_ref(), sink.twice.unwrap_or(problem))),
    }
}

/// Reads the items of a file into a sink, with one item in memory at a time.
///
/// # Errors
///
/// When the file cannot be read or is not in `format`, or the sink refuses an item. The sink then
/// has the items before it.
pub fn read_into(
    path: &Path,
    format: Format,
    sink: &mut impl ItemSink,
) -> Result<ReadSummary, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::new(path, error.into()))?;
    parse_into(path, BufReader::new(file), format, &SourceOptions::default(), sink)
}

/// Reads items from `reader` into a sink; `source_name` is what errors call it, `options` say how
/// it names its fields and spells its codes.
///
/// # Errors
///
/// As [`read_into`].
pub fn parse_into(
    source_name: impl AsRef<Path>,
    reader: impl BufRead,
    format: Format,
    options: &SourceOptions,
    sink: &mut impl ItemSink,
) -> Result<ReadSummary, ReadError> {
    pass_items(reader, format, options, sink)
        .map_err(|problem| ReadError::new(source_name.as_ref(), problem))
}

/// Kind of an input that begins with these bytes and is no text, and the way out, where they show
/// it.
pub fn not_text(head: &[u8]) -> Option<String> {
    encoding::Encoding::of_head(head).map(|found| found.to_string())
}

/// Text of an input: UTF-8 without a byte order mark, with lines that end in a line feed. What is
/// no such text is an error of reading that says what it is, and the way out.
pub fn utf8_text<R: Read>(input: R) -> impl BufRead + use<R> {
    Utf8Reader::new(input)
}

fn pass_items(
    reader: impl BufRead,
    format: Format,
    options: &SourceOptions,
    sink: &mut impl ItemSink,
) -> Result<ReadSummary, Problem> {
    let place = if format == Format::Npy { Place::Row } else { Place::Line };
    let mut sink = CheckedSink::new(sink, place).with_options(options);
    if format == Format::Npy {
        npy::read(reader, &mut sink)?;
        return Ok(sink.finish());
    }
    let input = Utf8Reader::new(reader);
    match format {
        Format::InfoText if options.separator.is_none() => {
            return info_text::read(input, options, &mut sink).map(|()| sink.finish());
        }
        Format::Csv | Format::Tsv | Format::InfoText => {
            let dialect = dialect(format, options);
            return csv_table::read(input, dialect, options, &mut sink).map(|()| sink.finish());
        }
        _ => {}
    }
    let mut input = BareWords::new(input, &options.cells.nulls);
    let is_list = json::begins_with_list(&mut input)?;
    match format {
        Format::IndexJson | Format::JsonLines if is_list => {
            json_lines::read_list(input, options, &mut sink)?;
        }
        Format::IndexJson => index_json::read(input, &mut sink)?,
        Format::InverseJson => inverse_json::read(input, options, &mut sink)?,
        Format::JsonLines => json_lines::read(input, options, &mut sink)?,
        _ => unreachable!("read above"),
    }
    Ok(sink.finish())
}

/// Dialect of a format of separated text.
fn dialect(format: Format, options: &SourceOptions) -> Dialect {
    let usual = match format {
        Format::Csv => Dialect::COMMAS,
        _ => info_text::tabs(options),
    };
    Dialect { separator: options.separator.unwrap_or(usual.separator), ..usual }
}

//! The files of items that a build reads, as one stream of items.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use palmette_catalog::readers::{
    self, AttributeReport, CellOptions, Format, ItemSink, ReadSummary, Role, SourceItems,
    SourceOptions,
};
use palmette_catalog::{BuildError, ColumnKind};
use serde_json::{Map, Value};

use crate::input::{Input, is_stdin};
use crate::output::visible;
use crate::tables::{self, TableFormat};

#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Files of items, in the formats above, also compressed by gzip; - is standard input
    #[arg(required = true, value_name = "FILE")]
    items: Vec<PathBuf>,
    /// Format of the items [default: by each file's name or first bytes]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ItemFormat>,
    /// Field or column of the item's id [default: item_id or id]
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,
    /// Field or column of the semantic ID, or one for each level, such as c0,c1,c2
    /// [default: codes, semantic_id or sid; in tables also code_0, code_1, …]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    codes_column: Vec<String>,
    /// Semantic IDs are single numbers, packed by these codebook sizes: by 8192,8192,8192 a number
    /// is (c0 * 8192 + c1) * 8192 + c2
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    packed: Vec<u32>,
    /// Fields or columns that are not read
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    leave_out: Vec<String>,
    /// Text that means a missing value, such as NA; once for each. NaN and Infinity are then taken
    /// where JSON has them bare, and they or null where they stand in a list
    #[arg(long = "null", value_name = "TEXT")]
    nulls: Vec<String>,
    /// Separator of the texts of a list in a cell, such as |, where the attribute is declared
    /// keywords
    #[arg(long, value_name = "TEXT")]
    list_separator: Option<String>,
    /// Mark before the fraction of a number in a cell, such as a comma [default: a point]
    #[arg(long, value_name = "CHAR")]
    decimal: Option<char>,
    /// Mark between the thousands of a number in a cell, such as a comma [default: nothing]
    #[arg(long, value_name = "CHAR")]
    thousands: Option<char>,
    /// Separator of the cells of a table of text, such as ; or | or tab [default: a comma, or a tab
    /// in .tsv and .txt]
    #[arg(long, value_name = "CHAR", value_parser = readers::parse_separator)]
    separator: Option<char>,
    /// Cells of tab-separated files may stand in quotes; without it a quote is a character as any
    /// other
    #[arg(long)]
    quotes: bool,
}

/// Any format that items are read from.
#[derive(Clone, Copy, Debug)]
enum ItemFormat {
    Text(Format),
    Table(TableFormat),
}

impl FromStr for ItemFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let table = name.parse().map(Self::Table);
        table
            .or_else(|_| name.parse().map(Self::Text))
            .map_err(|_| format!("unknown format {name:?}; the formats are {}", format_names()))
    }
}

impl fmt::Display for ItemFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(format) => format.fmt(f),
            Self::Table(format) => format.fmt(f),
        }
    }
}

fn format_names() -> String {
    let text = Format::ALL.map(|format| format.to_string());
    let tables = TableFormat::ALL.map(|format| format.to_string());
    [text.as_slice(), &tables].concat().join(", ")
}

/// The files that were read, with the lines of all files before each.
pub(super) struct Sources {
    files: Vec<(PathBuf, u64)>,
    pub(super) summary: ReadSummary,
}

impl SourceArgs {
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.items
    }

    /// Bytes of all files, as far as they are known.
    pub(super) fn bytes(&self) -> u64 {
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
        self.items.iter().map(size).sum()
    }

    /// Options for a reader of files whose attributes have these kinds. `is_one_of_two` where
    /// attributes stand in a file of their own.
    pub(super) fn options(
        &self,
        kinds: &[(String, ColumnKind)],
        is_one_of_two: bool,
    ) -> anyhow::Result<SourceOptions> {
        let decimal = self.decimal.unwrap_or('.');
        for (option, mark) in [("--decimal", self.decimal), ("--thousands", self.thousands)] {
            let is_part = |mark: char| mark.is_ascii_alphanumeric() || matches!(mark, '-' | '+');
            if let Some(mark) = mark.filter(|&mark| is_part(mark)) {
                bail!("{option} {mark:?} is part of numbers; name another character");
            }
        }
        ensure!(
            self.thousands != Some(decimal),
            "--thousands {decimal:?} is what stands before the fraction; name another, or --decimal"
        );
        ensure!(
            self.list_separator.as_deref() != Some(""),
            "--list-separator is empty; name what parts the texts of a list, such as |"
        );
        Ok(SourceOptions {
            cells: CellOptions {
                kinds: kinds.to_vec(),
                nulls: self.nulls.clone(),
                list_separator: self.list_separator.clone(),
                decimal: self.decimal,
                thousands: self.thousands,
            },
            quoted_tabs: self.quotes,
            separator: self.separator,
            is_one_of_two,
            id_column: self.id_column.clone(),
            codes_columns: self.codes_column.clone(),
            packed: self.packed.clone(),
            left_out: self.leave_out.clone(),
        })
    }

    /// Reads all files into a sink, in order; lines are counted on from file to file.
    pub(super) fn read(
        &self,
        options: &SourceOptions,
        sink: &mut impl ItemSink,
        bar: &ProgressBar,
    ) -> anyhow::Result<Sources> {
        let mut sources = Sources { files: Vec::new(), summary: ReadSummary::default() };
        let mut sink = ConcatenatedSink { sink, lines_before: 0, last_line: 0 };
        for path in &self.items {
            ensure!(
                is_stdin(path) || !path.is_dir(),
                "{} is a folder; give the files of items in it",
                path.display()
            );
            sink.lines_before = sink.last_line;
            sources.files.push((path.clone(), sink.lines_before));
            let summary = self.read_one(path, options, &mut sink, bar)?;
            tell_notes(path, &summary.notes);
            sources.add(path, summary)?;
        }
        Ok(sources)
    }

    fn read_one(
        &self,
        path: &Path,
        options: &SourceOptions,
        sink: &mut impl ItemSink,
        bar: &ProgressBar,
    ) -> anyhow::Result<ReadSummary> {
        let input = open(path, bar)?;
        match self.format_of(&input, options)? {
            ItemFormat::Text(format) => {
                check_separator(&input, format, options)?;
                if let Format::Npy = format {
                    let name = input.name.display();
                    eprintln!("note: {name} has no ids; items are named by their rows, from 0");
                }
                let name = input.name.clone();
                readers::parse_into(&name, input.reader(), format, options, sink)
                    .map_err(|error| with_way_out(error.missing_role(), error.into()))
            }
            ItemFormat::Table(format) => {
                let (start, bytes) = (bar.position(), bar.length().unwrap_or(0));
                let mut progress = |rows: u64, of: u64| {
                    let share = rows as f64 / of.max(1) as f64;
                    bar.set_position(start + ((bytes.saturating_sub(start)) as f64 * share) as u64);
                };
                tables::read_input_into(input, format, options, sink, &mut progress)
            }
        }
    }

    /// Reads the attributes of items that were read, as items are read: by name or first bytes,
    /// decompressed, by the same options.
    pub(super) fn read_attributes(
        &self,
        path: &Path,
        options: &SourceOptions,
        source: &mut SourceItems,
        bar: &ProgressBar,
    ) -> anyhow::Result<AttributeReport> {
        ensure!(
            !is_stdin(path) || !self.items.iter().any(|path| is_stdin(path)),
            "standard input is the items' already; give the attributes as a file"
        );
        let input = open(path, bar)?;
        let name = input.plain_name();
        let table = TableFormat::detect(&input.head).or_else(|| TableFormat::from_path(&name));
        let report = if let Some(format) = table {
            tables::read_attributes(input, format, options, source)?
        } else {
            let shown = Format::detect_attributes(&input.head, options);
            let format = match (Format::from_path(&name), shown) {
                // Objects, a line each or in a list, stand in files of either name.
                (Some(Format::IndexJson) | None, Some(shown)) => shown,
                (Some(named), _) => named,
                (None, None) => match readers::not_text(&input.head) {
                    Some(what) => bail!("{}: {what}", input.name.display()),
                    None => Format::IndexJson,
                },
            };
            check_separator(&input, format, options)?;
            let name = input.name.clone();
            readers::parse_attributes(&name, input.reader(), format, options, source)
                .map_err(|error| with_way_out(error.missing_role(), error.into()))?
        };
        tell_notes(path, &report.notes);
        Ok(report)
    }

    fn format_of(&self, input: &Input, options: &SourceOptions) -> anyhow::Result<ItemFormat> {
        let name = input.plain_name();
        let shown = Format::detect(&input.head, options);
        let text = || match (Format::from_path(&name), shown) {
            // An object a line stands in files of either name.
            (Some(Format::IndexJson), Some(Format::JsonLines)) => Some(Format::JsonLines),
            (named, shown) => named.or(shown),
        };
        let table = TableFormat::detect(&input.head).or_else(|| TableFormat::from_path(&name));
        let found = self.format.or(table.map(ItemFormat::Table));
        match found.or_else(|| text().map(ItemFormat::Text)) {
            Some(format) => Ok(format),
            None if let Some(what) = readers::not_text(&input.head) => {
                bail!("{}: {what}", input.name.display())
            }
            None => bail!(
                "{}: neither name nor first bytes tell the format; say --format, one of {}",
                input.name.display(),
                format_names()
            ),
        }
    }
}

/// Opens a file, watched by a progress bar.
fn open(path: &Path, bar: &ProgressBar) -> anyhow::Result<Input> {
    let watched = bar.clone();
    Input::open(path, |file| Box::new(watched.wrap_read(file)))
        .map_err(|error| anyhow::anyhow!("{}: cannot be read: {error}", path.display()))
}

/// Refuses a separator of cells for a file that has none, unless another file is read by the same
/// options.
fn check_separator(input: &Input, format: Format, options: &SourceOptions) -> anyhow::Result<()> {
    let has_cells = matches!(format, Format::Csv | Format::Tsv | Format::InfoText);
    ensure!(
        has_cells || options.separator.is_none() || options.is_one_of_two,
        "{}: --separator parts the cells of a table of text, and the format is {format}; leave it out, or say --format csv",
        input.name.display()
    );
    Ok(())
}

/// Says what is worth knowing of a file and is no error.
fn tell_notes(path: &Path, notes: &[String]) {
    for note in notes {
        eprintln!("note: {}, {}", path.display(), visible(note));
    }
}

/// Adds the option that names a field which was not found.
pub(crate) fn with_way_out(missing: Option<Role>, error: anyhow::Error) -> anyhow::Error {
    let option = match missing {
        Some(Role::Id) => "--id-column",
        Some(Role::Codes) => "--codes-column",
        None => return error,
    };
    anyhow::anyhow!("{error}; {option} names others")
}

impl Sources {
    /// The file, and the line there, of a line counted through all files.
    pub(super) fn place(&self, line: u64) -> (&Path, u64) {
        let at = self.files.partition_point(|(_, before)| *before < line).saturating_sub(1);
        let (path, before) = &self.files[at];
        (path, line - before)
    }

    /// Joins the spelling of one more file's codes to that of the files before.
    fn add(&mut self, path: &Path, summary: ReadSummary) -> anyhow::Result<()> {
        let spelling = |prefixes: &Option<Vec<String>>| match prefixes {
            None => "as plain numbers".to_owned(),
            Some(prefixes) => prefixes.iter().map(|prefix| format!("<{prefix}_number>")).collect(),
        };
        let (before, new) = (&self.summary.level_prefixes, &summary.level_prefixes);
        let agree = match (before, new) {
            (Some(a), Some(b)) => a.iter().zip(b).all(|(a, b)| a == b),
            (before, new) => before.is_none() == new.is_none(),
        };
        ensure!(
            agree || self.summary.num_items == 0 || summary.num_items == 0,
            "{}: codes are spelled {}, and {} in the files before; spell all alike",
            path.display(),
            spelling(new),
            spelling(before)
        );
        self.summary.num_items += summary.num_items;
        self.summary.left_out.extend(summary.left_out);
        let levels = |prefixes: &Option<Vec<String>>| prefixes.as_ref().map_or(0, Vec::len);
        if levels(new) > levels(before) {
            self.summary.level_prefixes = summary.level_prefixes;
        }
        Ok(())
    }
}

/// Counts lines on from file to file, and refusals by the file at hand.
struct ConcatenatedSink<'s, S> {
    sink: &'s mut S,
    lines_before: u64,
    last_line: u64,
}

impl<S: ItemSink> ItemSink for ConcatenatedSink<'_, S> {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        self.last_line = self.lines_before + line;
        let pushed = self.sink.push(self.last_line, id, codes, attributes);
        pushed.map_err(|error| error.on_line(line))
    }

    fn timestamps(&mut self, names: &[String]) {
        self.sink.timestamps(names);
    }
}

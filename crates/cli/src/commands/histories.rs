//! Histories on the command line: which file, in which format, and what becomes of unknown items.

use std::io::BufReader;
use std::path::Path;

use anyhow::{anyhow, ensure};
use clap::Args;
use palmette_recommend::offline::{Shard, fingerprint};
use palmette_recommend_eval::{
    EachRecord, Histories, HistoryArgs, HistoryFormat, HistoryOptions, ReadNotes, UnknownItems,
    deal, parse_histories, read_histories,
};
use serde_json::{Value, json};

use crate::input::is_stdin;
use crate::output::visible;
use crate::tables::{TableFormat, history_rows_fingerprint, read_history_rows};

/// A file of histories.
#[derive(Debug, Args)]
pub(crate) struct HistoriesOptions {
    /// The file's format: json, jsonl, inter, csv, tsv, sequential, python, colons, padded,
    /// tfrecord, parquet or arrow [default: told by its name, or by --layout]
    #[arg(long, value_name = "NAME", value_parser = format, help_heading = "Histories")]
    histories_format: Option<Format>,
    #[command(flatten)]
    args: HistoryArgs,
}

/// The format of a file of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text(HistoryFormat),
    Table(TableFormat),
}

fn format(name: &str) -> Result<Format, String> {
    match name.parse::<TableFormat>() {
        Ok(table) => Ok(Format::Table(table)),
        Err(_) => {
            name.parse().map(Format::Text).map_err(|e: String| format!("{e}, parquet, arrow"))
        }
    }
}

/// Notes about a file: what was not read of it, or may have been meant otherwise.
///
/// Notes are a member of documents, or said to people.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    fn of(path: &Path, notes: &ReadNotes) -> Self {
        let note = |sentence: String| format!("{}: {sentence}", path.display());
        Self(notes.sentences().into_iter().map(note).collect())
    }

    /// Adds a sentence about a file, where there is one.
    pub(crate) fn add(&mut self, path: &Path, sentence: Option<String>) {
        self.0.extend(sentence.map(|sentence| format!("{}: {sentence}", path.display())));
    }

    /// Says them on standard error, unless they are a member of a document.
    pub(crate) fn say(&self, is_in_document: bool) {
        if !is_in_document {
            self.0.iter().for_each(|note| eprintln!("note: {}", visible(note)));
        }
    }
}

/// `error` or `skip`.
pub(crate) fn unknown_items(text: &str) -> Result<UnknownItems, String> {
    text.parse()
}

impl HistoriesOptions {
    fn format_of(&self, path: &Path) -> anyhow::Result<Format> {
        if let Some(format) = self.histories_format {
            return Ok(format);
        }
        if is_stdin(path) && self.args.layout.is_none() {
            return Ok(Format::Text(HistoryFormat::JsonLines));
        }
        let table = TableFormat::from_path(path).map(Format::Table);
        let text = || self.options().ok()?.format_of(path).map(Format::Text);
        table.or_else(text).ok_or_else(|| {
            anyhow!(
                "{}: the name tells no format of histories; say --histories-format json, jsonl, inter, csv, tsv, sequential, parquet or arrow, or --layout",
                path.display()
            )
        })
    }

    fn options(&self) -> anyhow::Result<HistoryOptions> {
        self.args.options().map_err(|reason| anyhow!("--where: {reason}"))
    }

    /// # Errors
    /// When an option is given that only a file of histories has a use for.
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        ensure!(
            self.histories_format.is_none() && !self.args.is_given(),
            "--histories-format, --layout, --separator, --list-separator, --quotes, the options of columns and --where say how --histories is read; give it, or leave them out"
        );
        Ok(())
    }

    /// Description of what decides the histories besides the file, for resumed runs.
    pub(crate) fn description(&self) -> Value {
        let HistoryArgs { layout, rows, .. } = &self.args;
        json!({
            "format": self.histories_format.map(|format| format!("{format:?}")),
            "layout": layout.map(|layout| layout.name),
            "user": self.args.user_column,
            "item": self.args.item_column,
            "history": self.args.history_column,
            "time": self.args.time_column,
            "target": self.args.target_column,
            "separator": self.args.separator,
            "list_separator": self.args.list_separator,
            "quotes": self.args.quotes,
            "where": rows.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    /// Hands on the histories of a file, or of standard input, in order; what is to be said of it.
    pub(crate) fn read(&self, path: &Path, each: &mut EachRecord<'_>) -> anyhow::Result<Notes> {
        let options = self.options()?;
        let notes = match self.format_of(path)? {
            Format::Text(format) if is_stdin(path) => {
                let (name, input) = (Path::new("standard input"), std::io::stdin().lock());
                parse_histories(name, BufReader::new(input), 0, format, &options, each)?
            }
            Format::Text(format) => read_histories(path, format, &options, each)?,
            Format::Table(format) => {
                ensure!(!is_stdin(path), "a table is read from a file, not from standard input");
                read_history_rows(path, format, &options, None, each)?
            }
        };
        Ok(Notes::of(path, &notes))
    }

    /// Hands on the histories of one part, in order; `None` for all.
    pub(crate) fn read_part(
        &self,
        path: &Path,
        shard: Option<Shard>,
        each: &mut EachRecord<'_>,
    ) -> anyhow::Result<Notes> {
        match (shard, self.format_of(path)?) {
            (None, _) => self.read(path, each),
            (Some(_), Format::Table(format)) if !is_stdin(path) => {
                let notes = read_history_rows(path, format, &self.options()?, shard, each)?;
                Ok(Notes::of(path, &notes))
            }
            (Some(shard), _) => self.read(path, &mut deal(shard, each)),
        }
    }

    /// Fingerprint of the histories of one part, or of the whole file; null on standard input.
    ///
    /// Of a table's part it reads what the part reads: other processes have the rest.
    pub(crate) fn fingerprint(&self, path: &Path, shard: Option<Shard>) -> anyhow::Result<Value> {
        if is_stdin(path) {
            return Ok(Value::Null);
        }
        if let (Some(shard), Format::Table(format)) = (shard, self.format_of(path)?)
            && let Some(part) = history_rows_fingerprint(path, format, &self.options()?, shard)?
        {
            return Ok(part);
        }
        Ok(fingerprint::file(path)?)
    }

    /// All histories of a file.
    pub(crate) fn read_all(&self, path: &Path) -> anyhow::Result<(Histories, Notes)> {
        let (gathered, notes) = Histories::gather(|each| self.read(path, each))?;
        let gathered = gathered.map_err(|reason| anyhow!("{}: {reason}", path.display()))?;
        Ok((gathered, notes))
    }
}

//! Histories on the command line: which file, in which format, and what becomes of unknown items.

use std::io::BufReader;
use std::path::Path;

use anyhow::{anyhow, ensure};
use clap::Args;
use palmette_eval::{
    EachRecord, Histories, HistoryFormat, UnknownItems, parse_histories, read_histories,
};

use serde_json::Value;

use super::shard::Shard;
use crate::fingerprint;
use crate::input::is_stdin;
use crate::tables::{TableFormat, history_rows_fingerprint, read_history_rows};

/// A file of histories.
#[derive(Debug, Args)]
pub(crate) struct HistoriesOptions {
    /// The file's format: json, jsonl, inter, csv, tsv, sequential, parquet or arrow [default: told by its name]
    #[arg(long, value_name = "NAME", value_parser = format)]
    histories_format: Option<Format>,
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

/// `error` or `skip`.
pub(crate) fn unknown_items(text: &str) -> Result<UnknownItems, String> {
    text.parse()
}

impl HistoriesOptions {
    fn format_of(&self, path: &Path) -> anyhow::Result<Format> {
        if let Some(format) = self.histories_format {
            return Ok(format);
        }
        if is_stdin(path) {
            return Ok(Format::Text(HistoryFormat::JsonLines));
        }
        let by_name = HistoryFormat::from_path(path).map(Format::Text);
        by_name.or_else(|| TableFormat::from_path(path).map(Format::Table)).ok_or_else(|| {
            anyhow!(
                "{}: the name tells no format of histories; say --histories-format json, jsonl, inter, csv, tsv, sequential, parquet or arrow",
                path.display()
            )
        })
    }

    /// Hands on the histories of a file, or of standard input, in order.
    pub(crate) fn read(&self, path: &Path, each: &mut EachRecord<'_>) -> anyhow::Result<()> {
        match self.format_of(path)? {
            Format::Text(format) if is_stdin(path) => {
                let input = BufReader::new(std::io::stdin().lock());
                Ok(parse_histories(Path::new("standard input"), input, 0, format, each)?)
            }
            Format::Text(format) => Ok(read_histories(path, format, each)?),
            Format::Table(format) => {
                ensure!(!is_stdin(path), "a table is read from a file, not from standard input");
                read_history_rows(path, format, None, each)
            }
        }
    }

    /// Hands on the histories of one part, in order; `None` for all.
    pub(crate) fn read_part(
        &self,
        path: &Path,
        shard: Option<Shard>,
        each: &mut EachRecord<'_>,
    ) -> anyhow::Result<()> {
        match (shard, self.format_of(path)?) {
            (None, _) => self.read(path, each),
            (Some(_), Format::Table(format)) if !is_stdin(path) => {
                read_history_rows(path, format, shard, each)
            }
            (Some(shard), _) => self.read(path, &mut shard.deal(each)),
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
            && let Some(part) = history_rows_fingerprint(path, format, shard)?
        {
            return Ok(part);
        }
        fingerprint::of_file(path)
    }

    /// All histories of a file.
    pub(crate) fn read_all(&self, path: &Path) -> anyhow::Result<Histories> {
        let gathered = Histories::gather(|each| self.read(path, each))?;
        gathered.map_err(|reason| anyhow!("{}: {reason}", path.display()))
    }
}

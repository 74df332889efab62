//! Parquet and Arrow files: `palmette-catalog-arrow`, or, in a build without the feature `tables`,
//! enough to tell such a file and to refuse it.

#[cfg(feature = "tables")]
pub(crate) use built_in::{read_attributes, read_input_into, write_answers};
#[cfg(feature = "tables")]
pub(crate) use histories::{history_rows_fingerprint, read_history_rows};
#[cfg(not(feature = "tables"))]
pub(crate) use left_out::{
    TableFormat, history_rows_fingerprint, read_attributes, read_history_rows, read_input_into,
    write_answers,
};
#[cfg(feature = "tables")]
pub(crate) use palmette_catalog_arrow::TableFormat;

#[cfg(feature = "tables")]
mod histories {
    use std::ops::ControlFlow;
    use std::path::Path;

    use anyhow::{anyhow, bail};
    use palmette_catalog_arrow::{TableFormat, TableRows};
    use palmette_recommend::offline::{Shard, fingerprint};
    use palmette_recommend_eval::{
        EachRecord, HistoryColumns, HistoryOptions, HistoryRows, Progress, ReadNotes, deal,
    };
    use serde_json::{Value, json};

    /// A table and its columns; `None` for an empty file.
    fn open(
        path: &Path,
        format: TableFormat,
        options: &HistoryOptions,
    ) -> anyhow::Result<Option<(TableRows, HistoryColumns)>> {
        let table = TableRows::open(path, format)?;
        let names = table.column_names();
        if names.is_empty() {
            return Ok(None);
        }
        let columns = options.columns(&names);
        let columns = columns.map_err(|reason| anyhow!("{}: {reason}", path.display()))?;
        Ok(Some((table, columns)))
    }

    /// Hands on the histories of a table, or of one part of it: a row each, or a row for each thing
    /// that a user did.
    ///
    /// Histories that are rows are cut into runs of rows, of which only their row groups are read;
    /// a user's events may be anywhere, so users are dealt out when all rows have been read.
    pub(crate) fn read_history_rows(
        path: &Path,
        format: TableFormat,
        options: &HistoryOptions,
        shard: Option<Shard>,
        each: &mut EachRecord<'_>,
    ) -> anyhow::Result<ReadNotes> {
        let Some((table, columns)) = open(path, format, options)? else {
            return Ok(ReadNotes::default());
        };
        match shard {
            Some(shard) if columns.is_events() => {
                read(table, path, &columns, None, &mut deal(shard, each))
            }
            _ => read(table, path, &columns, shard, each),
        }
    }

    fn read(
        table: TableRows,
        path: &Path,
        columns: &HistoryColumns,
        shard: Option<Shard>,
        each: &mut EachRecord<'_>,
    ) -> anyhow::Result<ReadNotes> {
        let all = table.num_rows();
        let run = shard.map_or(0..all, |shard| shard.rows(all));
        let (start, of) = (run.start, run.end - run.start);
        let mut rows = HistoryRows::new("row", each);
        rows.note_columns(&table.column_names(), columns);
        let (mut wrong, mut ended) = (None, false);
        let chosen: Vec<String> = columns.names().into_iter().map(str::to_owned).collect();
        table.read(&chosen, run, &mut |row| {
            let progress = Progress { done: row.number - start, of };
            let flow = rows.push(row.number, columns, row.values, progress);
            let flow = flow.unwrap_or_else(|bad| {
                wrong = Some(bad);
                ControlFlow::Break(())
            });
            ended = flow.is_break();
            flow
        })?;
        if let Some(wrong) = wrong {
            bail!("{}: {wrong}", path.display());
        }
        Ok(if ended { ReadNotes::default() } else { rows.finish() })
    }

    /// Fingerprint of the rows of one part; `None` where all rows are read for it.
    pub(crate) fn history_rows_fingerprint(
        path: &Path,
        format: TableFormat,
        options: &HistoryOptions,
        shard: Shard,
    ) -> anyhow::Result<Option<Value>> {
        let Some((table, columns)) = open(path, format, options)? else { return Ok(None) };
        if columns.is_events() {
            return Ok(None);
        }
        let rows = shard.rows(table.num_rows());
        let of_rows = fingerprint::byte_ranges(path, &table.bytes_of(&rows)?)?;
        Ok(Some(json!({"rows": [rows.start, rows.end], "xxh3": of_rows})))
    }
}

#[cfg(feature = "tables")]
mod built_in {
    use std::fs::File;
    use std::ops::ControlFlow;

    use anyhow::{Context, anyhow};
    use palmette_catalog::readers::{
        AttributeReport, AttributeSink, ItemSink, Place, ReadSummary, SourceItems, SourceOptions,
    };
    use palmette_catalog_arrow::{AnswerWriter, TableFormat, TableRows, read_file_into};
    use palmette_recommend::offline::AnswerBatches;

    use crate::commands::catalog::with_way_out;
    use crate::input::Input;

    /// Reads the items of a table into a sink.
    pub(crate) fn read_input_into(
        input: Input,
        format: TableFormat,
        options: &SourceOptions,
        sink: &mut impl ItemSink,
        progress: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<ReadSummary> {
        let name = input.name.clone();
        let file = input.into_file().with_context(|| name.display().to_string())?;
        read_file_into(&name, file, format, options, sink, progress)
            .map_err(|error| with_way_out(error.missing_role(), error.into()))
    }

    /// Writes answers as a table into an empty file.
    pub(crate) fn write_answers(
        file: File,
        answers: AnswerBatches,
        format: TableFormat,
    ) -> anyhow::Result<()> {
        let mut writer = AnswerWriter::new(file, format)?;
        for batch in answers {
            writer.push(&batch?)?;
        }
        Ok(writer.finish()?)
    }

    /// Adds the attributes in a table to items.
    pub(crate) fn read_attributes(
        input: Input,
        format: TableFormat,
        options: &SourceOptions,
        source: &mut SourceItems,
    ) -> anyhow::Result<AttributeReport> {
        let name = input.name.clone();
        let file = input.into_file().with_context(|| name.display().to_string())?;
        let rows = TableRows::of(&name, file, format)?;
        let names: Vec<String> = rows.column_names().into_iter().map(str::to_owned).collect();
        let is_read = |name: &&String| !options.left_out.contains(name);
        let columns: Vec<String> = names.iter().filter(is_read).cloned().collect();
        let times = rows
            .timestamp_names()
            .into_iter()
            .filter(|name| columns.iter().any(|column| column == name));
        let timestamps = times.map(str::to_owned).collect();
        let (num_rows, mut wrong) = (rows.num_rows(), None);
        let mut sink = AttributeSink::new(source, options, Place::Row);
        sink.columns(&names);
        rows.read(&columns, 0..num_rows, &mut |row| match sink.push(row.number, row.values) {
            Ok(()) => ControlFlow::Continue(()),
            Err(problem) => {
                let line = problem.line().unwrap_or(row.number);
                let error = anyhow!("{}, row {line}: {problem}", name.display());
                wrong = Some(with_way_out(problem.missing_role(), error));
                ControlFlow::Break(())
            }
        })?;
        match wrong {
            Some(error) => Err(error),
            None => Ok(AttributeReport { timestamps, ..sink.finish().add_to(source) }),
        }
    }
}

#[cfg(not(feature = "tables"))]
mod left_out {
    use std::fmt;
    use std::fs::File;
    use std::path::Path;
    use std::str::FromStr;

    use palmette_catalog::readers::{
        AttributeReport, ItemSink, ReadSummary, SourceItems, SourceOptions,
    };
    use palmette_recommend::offline::{AnswerBatches, Shard};
    use palmette_recommend_eval::{EachRecord, HistoryOptions, ReadNotes};
    use serde_json::Value;

    use crate::features::left_out;
    use crate::input::Input;

    /// A format that is told and not read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum TableFormat {
        Parquet,
        Arrow,
    }

    impl TableFormat {
        /// The formats that this build reads: none.
        pub(crate) const ALL: [Self; 0] = [];

        pub(crate) fn from_path(path: &Path) -> Option<Self> {
            match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
                "parquet" => Some(Self::Parquet),
                "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
                _ => None,
            }
        }

        pub(crate) fn detect(head: &[u8]) -> Option<Self> {
            match head {
                [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
                [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
                    Some(Self::Arrow)
                }
                _ => None,
            }
        }
    }

    impl fmt::Display for TableFormat {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.pad(match self {
                Self::Parquet => "parquet",
                Self::Arrow => "arrow",
            })
        }
    }

    impl FromStr for TableFormat {
        type Err = ();

        fn from_str(name: &str) -> Result<Self, ()> {
            [Self::Parquet, Self::Arrow]
                .into_iter()
                .find(|format| format.to_string() == name)
                .ok_or(())
        }
    }

    pub(crate) fn read_input_into(
        input: Input,
        _format: TableFormat,
        _options: &SourceOptions,
        _sink: &mut impl ItemSink,
        _progress: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<ReadSummary> {
        let name = input.name.display().to_string();
        Err(left_out("reads no Parquet or Arrow", "tables").context(name))
    }

    pub(crate) fn read_attributes(
        input: Input,
        _format: TableFormat,
        _options: &SourceOptions,
        _source: &mut SourceItems,
    ) -> anyhow::Result<AttributeReport> {
        let name = input.name.display().to_string();
        Err(left_out("reads no Parquet or Arrow", "tables").context(name))
    }

    pub(crate) fn read_history_rows(
        path: &Path,
        _format: TableFormat,
        _options: &HistoryOptions,
        _shard: Option<Shard>,
        _each: &mut EachRecord<'_>,
    ) -> anyhow::Result<ReadNotes> {
        Err(left_out("reads no Parquet or Arrow", "tables").context(path.display().to_string()))
    }

    pub(crate) fn history_rows_fingerprint(
        path: &Path,
        _format: TableFormat,
        _options: &HistoryOptions,
        _shard: Shard,
    ) -> anyhow::Result<Option<Value>> {
        Err(left_out("reads no Parquet or Arrow", "tables").context(path.display().to_string()))
    }

    pub(crate) fn write_answers(
        _file: File,
        _answers: AnswerBatches,
        _format: TableFormat,
    ) -> anyhow::Result<()> {
        Err(left_out("writes no Parquet or Arrow", "tables"))
    }
}

//! Parquet and Arrow files: `palmette-tables`, or, in a build without the feature `tables`, enough to tell such a file and
//! to refuse it.

#[cfg(feature = "tables")]
pub(crate) use built_in::read_input_into;
#[cfg(feature = "tables")]
pub(crate) use histories::read_history_rows;
#[cfg(not(feature = "tables"))]
pub(crate) use left_out::{Answer, AnswerWriter, TableFormat, read_history_rows, read_input_into};
#[cfg(feature = "tables")]
pub(crate) use palmette_tables::{Answer, AnswerWriter, TableFormat};

#[cfg(feature = "tables")]
mod histories {
    use std::ops::ControlFlow;
    use std::path::Path;

    use anyhow::bail;
    use palmette_eval::{EachRecord, HistoryColumns, HistoryRows, Progress};
    use palmette_tables::{TableFormat, read_rows};

    /// Hands on the histories of a table: a row each, or a row for each thing that a user did.
    pub(crate) fn read_history_rows(
        path: &Path,
        format: TableFormat,
        each: &mut EachRecord<'_>,
    ) -> anyhow::Result<()> {
        let mut rows = HistoryRows::new("row", each);
        let columns = std::cell::OnceCell::new();
        let (mut wrong, mut ended) = (None, false);
        let choose = &mut |names: &[&str]| {
            let found = HistoryColumns::of(names)?;
            let chosen = found.names().into_iter().map(str::to_owned).collect();
            columns.set(found).expect("columns are chosen once");
            Ok(chosen)
        };
        read_rows(path, format, choose, &mut |row| {
            let columns = columns.get().expect("columns are chosen first");
            let progress = Progress { done: row.number, of: row.of };
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
        if !ended {
            let _ = rows.finish();
        }
        Ok(())
    }
}

#[cfg(feature = "tables")]
mod built_in {
    use anyhow::Context;
    use palmette_catalog::readers::{ItemSink, ReadSummary, SourceOptions};
    use palmette_tables::{TableFormat, read_file_into};

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
}

#[cfg(not(feature = "tables"))]
mod left_out {
    use std::fmt;
    use std::fs::File;
    use std::path::Path;
    use std::str::FromStr;

    use palmette_catalog::readers::{ItemSink, ReadSummary, SourceOptions};
    use palmette_eval::EachRecord;

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

    pub(crate) fn read_history_rows(
        path: &Path,
        _format: TableFormat,
        _each: &mut EachRecord<'_>,
    ) -> anyhow::Result<()> {
        Err(left_out("reads no Parquet or Arrow", "tables").context(path.display().to_string()))
    }

    /// A row that is not written.
    #[expect(dead_code, reason = "builds with tables write it")]
    #[derive(Debug, Default)]
    pub(crate) struct Answer {
        pub(crate) user: Option<String>,
        pub(crate) items: Vec<String>,
        pub(crate) scores: Vec<f32>,
        pub(crate) codes: Vec<Vec<u32>>,
        pub(crate) skipped: u32,
        pub(crate) error: Option<String>,
    }

    /// A writer that cannot be made.
    #[derive(Debug)]
    pub(crate) enum AnswerWriter {}

    impl AnswerWriter {
        pub(crate) fn new(_file: File, _format: TableFormat) -> anyhow::Result<Self> {
            Err(left_out("writes no Parquet or Arrow", "tables"))
        }

        pub(crate) fn push(&mut self, _answers: &[Answer]) -> anyhow::Result<()> {
            match *self {}
        }

        pub(crate) fn finish(self) -> anyhow::Result<()> {
            match self {}
        }
    }
}

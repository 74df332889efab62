//! Parquet and Arrow files: `palmette-tables`, or, in a build without the feature `tables`, enough to tell such a file and
//! to refuse it.

#[cfg(feature = "tables")]
pub(crate) use built_in::read_input_into;
#[cfg(not(feature = "tables"))]
pub(crate) use left_out::{TableFormat, read_input_into};
#[cfg(feature = "tables")]
pub(crate) use palmette_tables::TableFormat;

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
    use std::path::Path;
    use std::str::FromStr;

    use palmette_catalog::readers::{ItemSink, ReadSummary, SourceOptions};

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
}

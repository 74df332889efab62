//! Parquet and Arrow files: `palmette-tables`, or, in a build without the feature `tables`, enough to tell such a file and
//! to refuse it.

#[cfg(not(feature = "tables"))]
pub(crate) use left_out::{TableFormat, read_into};
#[cfg(feature = "tables")]
pub(crate) use palmette_tables::{TableFormat, read_into};

#[cfg(not(feature = "tables"))]
mod left_out {
    use std::fmt;
    use std::fs::File;
    use std::io::{self, Read};
    use std::path::Path;
    use std::str::FromStr;

    use palmette_catalog::readers::{ItemSink, ReadSummary};

    use crate::features::left_out;

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

        pub(crate) fn detect(path: &Path) -> io::Result<Option<Self>> {
            let mut head = Vec::new();
            File::open(path)?.take(8).read_to_end(&mut head)?;
            Ok(match head.as_slice() {
                [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
                [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
                    Some(Self::Arrow)
                }
                _ => None,
            })
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

    pub(crate) fn read_into(
        path: &Path,
        _format: TableFormat,
        _attributes: Option<&[String]>,
        _sink: &mut impl ItemSink,
        _progress: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<ReadSummary> {
        Err(left_out("reads no Parquet or Arrow", "tables").context(path.display().to_string()))
    }
}

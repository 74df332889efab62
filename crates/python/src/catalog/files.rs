//! Catalogs from files of items that others publish.

use std::path::Path;

use palmette_catalog::readers::{Format, ReadError, SourceOptions, parse_into};
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder};
use palmette_catalog_arrow::{TableFormat, read_file_into};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::arrow::build_from;
use super::errors::{CatalogError, of_build};
use crate::errors::{of_io, with};
use crate::process;

/// The catalog of a Parquet or Arrow file's rows.
pub(crate) fn of_table(py: Python<'_>, path: &Path, options: &SourceOptions) -> PyResult<Catalog> {
    let file = std::fs::File::open(path).map_err(|error| of_io(py, &error, Some(path)))?;
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("arrow" | "arrows" | "feather" | "ipc") => TableFormat::Arrow,
        _ => TableFormat::Parquet,
    };
    build_from(py, |sink| read_file_into(path, file, format, options, sink, &mut |_, _| {}))
}

/// The catalog of an index: each item's codes as texts, `{"0": ["<a_1>", "<b_2>"]}`.
pub(crate) fn of_index_json(py: Python<'_>, path: &Path) -> PyResult<Catalog> {
    let text = std::fs::read(path).map_err(|error| of_io(py, &error, Some(path)))?;
    read_index(py, path, &text)
}

/// The catalog of an index in memory.
pub(crate) fn of_index(py: Python<'_>, index: Map<String, Value>) -> PyResult<Catalog> {
    let text = Value::Object(index).to_string();
    read_index(py, Path::new("index"), text.as_bytes())
}

fn read_index(py: Python<'_>, name: &Path, text: &[u8]) -> PyResult<Catalog> {
    enum BuildFailure {
        Read(ReadError),
        Build(palmette_catalog::BuildError),
    }
    let options = SourceOptions::default();
    let built = process::detach_in_pool(py, || {
        let mut builder =
            CatalogBuilder::new(BuildOptions::default()).map_err(BuildFailure::Build)?;
        let read = parse_into(name, text, Format::IndexJson, &options, &mut builder);
        let summary = read.map_err(BuildFailure::Read)?;
        builder.finish(summary.level_prefixes, |_| {}).map_err(BuildFailure::Build)
    });
    built.map_err(|failed| match failed {
        BuildFailure::Read(error) => {
            with(CatalogError::new_err(error.to_string()), py, "line", error.line())
        }
        BuildFailure::Build(error) => of_build(py, &error),
    })
}

//! Embeddings from the files in which they come.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use half::f16;
use npyz::{DType, NpyFile, Order, TypeChar};
use palmette_catalog_arrow::{TableFormat, read_vectors};
use safetensors::{Dtype, SafeTensors};

use super::Embeddings;
use crate::error::TrainError;
use crate::tensor_file::decode;

/// Reads the embeddings in `path`, by its name's ending:
///
/// - `.npy`: an array `[N, D]` of 16-, 32- or 64-bit floats, in either order;
/// - `.safetensors`: the tensor `name` (or the only one), `[N, D]` of F16, BF16, F32 or F64;
/// - `.parquet`, `.arrow`, `.feather`: a column of lists of floats, `name` or the only one, beside
///   `item_id` or `id`.
///
/// For the first two `items` is a file that names the item of each row: a JSON array, or one name a
/// line. Without it, rows are items `0`, `1`, … 64-bit floats are rounded.
///
/// # Errors
/// When a file cannot be read or is not what its name says; when items and rows are not as many;
/// and as [`Embeddings::new`].
pub fn read_embeddings(
    path: &Path,
    name: Option<&str>,
    items: Option<&Path>,
) -> Result<Embeddings, TrainError> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let (rows, width, values) = match (ending.as_deref(), TableFormat::from_path(path)) {
        (Some("npy"), _) => npy(path, name)?,
        (Some("safetensors"), _) => tensor(path, name)?,
        (_, Some(format)) => {
            if items.is_some() {
                let reason =
                    "names its items itself, in the column item_id; leave the file of items out";
                return Err(TrainError::file(path, reason));
            }
            return table(path, format, name);
        }
        _ => {
            let reason = "the name tells no format; embeddings are read from .npy, .safetensors, .parquet, \
                          .arrow and .feather files";
            return Err(TrainError::file(path, reason));
        }
    };
    let names = match items {
        Some(items) => {
            let names = read_names(items)?;
            if names.len() != rows {
                let reason =
                    format!("names {} items, but {} has {rows} rows", names.len(), path.display());
                return Err(TrainError::file(items, reason));
            }
            names
        }
        None => (0..rows).map(|row| row.to_string()).collect(),
    };
    Embeddings::new(names, width, values)
}

fn table(path: &Path, format: TableFormat, name: Option<&str>) -> Result<Embeddings, TrainError> {
    let (mut items, mut values, mut widths) = (Vec::new(), Vec::new(), Vec::new());
    let mut take = |item: String, vector: &[f32]| {
        items.push(item);
        widths.push(vector.len());
        values.extend_from_slice(vector);
    };
    read_vectors(path, format, name, &mut take, &mut |_, _| ())
        .map_err(|error| TrainError::file(path, error.to_string()))?;
    let width = widths.first().copied().unwrap_or(0);
    if let Some(row) = widths.iter().position(|&other| other != width) {
        let (item, other) = (&items[row], widths[row]);
        let reason = format!(
            "row {}: item {item:?} has {other} numbers, but the first item has {width}; all vectors must be equally long",
            row + 1
        );
        return Err(TrainError::file(path, reason));
    }
    Embeddings::new(items, width, values)
}

type Matrix = (usize, usize, Vec<f32>);

fn npy(path: &Path, name: Option<&str>) -> Result<Matrix, TrainError> {
    if let Some(name) = name {
        let reason = format!("an .npy file has one array without a name; leave {name:?} out");
        return Err(TrainError::file(path, reason));
    }
    let file = File::open(path).map_err(|error| TrainError::io(path, error))?;
    let size = file.metadata().map_err(|error| TrainError::io(path, error))?.len();
    let damaged =
        |error: std::io::Error| TrainError::file(path, format!("is no .npy file: {error}"));
    let npy = NpyFile::new(BufReader::new(file)).map_err(damaged)?;
    let shape = npy.shape().to_vec();
    let (rows, width) = two_sizes(path, &shape)?;
    let wanted = |found: &dyn std::fmt::Display| {
        TrainError::file(path, format!("holds {found}; write 16-, 32- or 64-bit floats"))
    };
    let DType::Plain(dtype) = npy.dtype() else { return Err(wanted(&npy.dtype().descr())) };
    // What a file says of its size is not believed: memory is taken for what it has.
    if (rows as u64).saturating_mul(width as u64).saturating_mul(dtype.size_field()) > size {
        let reason =
            format!("says that it holds {rows} × {width} numbers, but is only {size} bytes long");
        return Err(TrainError::file(path, reason));
    }
    let order = npy.order();
    let values: Vec<f32> = match (dtype.type_char(), dtype.size_field()) {
        (TypeChar::Float, 2) => {
            let values: Vec<f16> = npy.into_vec().map_err(damaged)?;
            values.into_iter().map(f16::to_f32).collect()
        }
        (TypeChar::Float, 4) => npy.into_vec().map_err(damaged)?,
        (TypeChar::Float, 8) => {
            let values: Vec<f64> = npy.into_vec().map_err(damaged)?;
            values.into_iter().map(|value| value as f32).collect()
        }
        _ => return Err(wanted(&dtype)),
    };
    Ok((
        rows,
        width,
        match order {
            Order::C => values,
            Order::Fortran => {
                let row = |row: usize| (0..width).map(move |column| column * rows + row);
                (0..rows).flat_map(row).map(|at| values[at]).collect()
            }
        },
    ))
}

fn tensor(path: &Path, name: Option<&str>) -> Result<Matrix, TrainError> {
    let bytes = std::fs::read(path).map_err(|error| TrainError::io(path, error))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| TrainError::file(path, format!("is not a safetensors file: {error}")))?;
    let mut names = file.names();
    names.sort_unstable();
    let name = match (name, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => {
            let reason = format!("holds {} tensors; name one of {}", names.len(), names.join(", "));
            return Err(TrainError::file(path, reason));
        }
    };
    let tensor = file.tensor(name).map_err(|_| {
        TrainError::file(path, format!("has no tensor {name:?}; it has {}", names.join(", ")))
    })?;
    let (rows, width) =
        two_sizes(path, &tensor.shape().iter().map(|&size| size as u64).collect::<Vec<_>>())?;
    let values = if tensor.dtype() == Dtype::F64 {
        let numbers = tensor.data().as_chunks::<8>().0.iter();
        numbers.map(|&bytes| f64::from_le_bytes(bytes) as f32).collect()
    } else {
        let mut values = vec![0.0; tensor.shape().iter().product()];
        decode(&mut values, tensor.dtype(), tensor.data()).map_err(|other| {
            let reason = format!("tensor {name:?} is of {other:?}; write F16, BF16, F32 or F64");
            TrainError::file(path, reason)
        })?;
        values
    };
    Ok((rows, width, values))
}

fn two_sizes(path: &Path, shape: &[u64]) -> Result<(usize, usize), TrainError> {
    if let &[rows, width] = shape
        && let (Ok(rows), Ok(width)) = (usize::try_from(rows), usize::try_from(width))
    {
        return Ok((rows, width));
    }
    let reason = format!("has shape {shape:?}; embeddings are a matrix, a row an item");
    Err(TrainError::file(path, reason))
}

/// The items' names: a JSON array of texts or numbers, or one a line.
fn read_names(path: &Path) -> Result<Vec<String>, TrainError> {
    let text = std::fs::read_to_string(path).map_err(|error| TrainError::io(path, error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if !text.trim_start().starts_with('[') {
        return Ok(text.lines().map(str::to_owned).collect());
    }
    let values: Vec<serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| TrainError::file(path, format!("is no JSON array: {error}")))?;
    let name = |(at, value): (usize, serde_json::Value)| match value {
        serde_json::Value::String(name) => Ok(name),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        other => {
            let reason = format!("entry {at} is {other}; an item is named by a text or a number");
            Err(TrainError::file(path, reason))
        }
    };
    values.into_iter().enumerate().map(name).collect()
}

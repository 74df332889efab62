//! Safetensors files of a model's flat array, and writes that are whole or absent.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, View};

use crate::error::TrainError;
use crate::params::{Layout, NamedTensor};

/// One tensor, converted to its stored form when it is written.
struct StoredTensor<'a> {
    shape: &'a [usize],
    values: &'a [f32],
    dtype: Dtype,
}

impl View for StoredTensor<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let values = self.values.iter();
        match self.dtype {
            Dtype::BF16 => values.flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect(),
            Dtype::F16 => values.flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
            _ => values.flat_map(|&v| v.to_le_bytes()).collect(),
        }
    }

    fn data_len(&self) -> usize {
        self.values.len() * self.dtype.bitsize() / 8
    }
}

/// Writes every tensor of `values`, stored as `dtype` (F32, BF16 or F16).
pub(crate) fn write(
    path: &Path,
    layout: &Layout,
    values: &[f32],
    dtype: Dtype,
) -> Result<(), TrainError> {
    write_tensors(path, layout.tensors(), values, dtype, PYTORCH)
}

/// The metadata by which other programs know what the tensors are for.
pub(crate) const PYTORCH: (&str, &str) = ("format", "pt");

/// Writes some tensors of `values`, and one entry of metadata: the order of several would be left
/// to chance.
pub(crate) fn write_tensors(
    path: &Path,
    tensors: &[NamedTensor],
    values: &[f32],
    dtype: Dtype,
    (key, value): (&str, &str),
) -> Result<(), TrainError> {
    let stored = tensors.iter().map(|tensor| {
        let values = &values[tensor.range()];
        (tensor.name.as_str(), StoredTensor { shape: &tensor.shape, values, dtype })
    });
    let metadata = HashMap::from([(key.to_owned(), value.to_owned())]);
    // What is written then is its owner's alone, and a server may run as somebody else.
    let ordinary = File::create(path).and_then(|file| file.metadata());
    let ordinary = ordinary.map_err(|error| TrainError::io(path, error))?.permissions();
    safetensors::serialize_to_file(stored, Some(metadata), path)
        .map_err(|error| TrainError::file(path, format!("cannot be written: {error}")))?;
    fs::set_permissions(path, ordinary).map_err(|error| TrainError::io(path, error))?;
    sync(path)
}

/// Reads every tensor of a layout into a flat array.
///
/// # Errors
/// When the file cannot be read, or lacks a tensor, has one of another shape or of a type other
/// than F32, BF16 and F16, or has one that the layout does not know: a model with it is another
/// model.
pub(crate) fn read(path: &Path, layout: &Layout) -> Result<Vec<f32>, TrainError> {
    let bytes = fs::read(path).map_err(|error| TrainError::io(path, error))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| TrainError::file(path, format!("is not a safetensors file: {error}")))?;
    let mut values = vec![0.0; layout.num_weights()];
    for tensor in layout.tensors() {
        let name = &tensor.name;
        let stored = file.tensor(name).map_err(|_| {
            TrainError::file(path, format!("lacks `{name}`, which config.json calls for"))
        })?;
        if stored.shape() != tensor.shape {
            let (found, wanted) = (stored.shape(), &tensor.shape);
            return Err(TrainError::file(
                path,
                format!("`{name}` has shape {found:?}, but config.json calls for {wanted:?}"),
            ));
        }
        decode(&mut values[tensor.range()], stored.dtype(), stored.data()).map_err(|dtype| {
            let reason = format!("`{name}` is stored as {dtype:?}; F32, BF16 and F16 can be read");
            TrainError::file(path, reason)
        })?;
    }
    // Some writers store the shared matrix of a tied model twice.
    let is_known = |name: &str| {
        name == "lm_head.weight" || layout.tensors().iter().any(|tensor| tensor.name == name)
    };
    match file.names().into_iter().filter(|name| !is_known(name)).min() {
        None => Ok(values),
        Some(name) => Err(TrainError::file(
            path,
            format!("holds `{name}`, which a decoder of this config.json does not have"),
        )),
    }
}

/// Converts stored bytes; returns the type when it is not one that can be read.
pub(crate) fn decode(values: &mut [f32], dtype: Dtype, bytes: &[u8]) -> Result<(), Dtype> {
    match dtype {
        Dtype::F32 => {
            let bytes = bytes.as_chunks().0;
            values.iter_mut().zip(bytes).for_each(|(v, &b)| *v = f32::from_le_bytes(b));
        }
        Dtype::BF16 => {
            let bytes = bytes.as_chunks().0;
            values.iter_mut().zip(bytes).for_each(|(v, &b)| *v = bf16::from_le_bytes(b).to_f32());
        }
        Dtype::F16 => {
            let bytes = bytes.as_chunks().0;
            values.iter_mut().zip(bytes).for_each(|(v, &b)| *v = f16::from_le_bytes(b).to_f32());
        }
        other => return Err(other),
    }
    Ok(())
}

/// Makes the file at `path` whole or leaves the old one: `write` fills a neighbour, which is
/// renamed.
pub(crate) fn replace_file(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let partial = neighbour(path, "partial");
    write(&partial)?;
    fs::rename(&partial, path).map_err(|error| TrainError::io(path, error))
}

/// Replaces a text file: at every moment there is the old one or the new one.
///
/// # Errors
/// When the folder cannot be written to.
pub fn replace_text(path: &Path, text: &str) -> Result<(), TrainError> {
    replace_file(path, |partial| write_text(partial, text))
}

/// Replaces a file of these bytes likewise.
pub(crate) fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    replace_file(path, |partial| write_bytes(partial, bytes))
}

/// Writes a text file and waits until it is stored.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), TrainError> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    fs::write(path, bytes).map_err(|error| TrainError::io(path, error))?;
    sync(path)
}

/// `dir/name` → `dir/.name.suffix`
pub(crate) fn neighbour(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

fn sync(path: &Path) -> Result<(), TrainError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| TrainError::io(path, error))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn weights_may_be_read_by_whom_other_files_may() {
        let dir = tempfile::tempdir().unwrap();
        let [weights, other] = ["weights", "other"].map(|name| dir.path().join(name));
        write_tensors(&weights, &[], &[], Dtype::F32, PYTORCH).unwrap();
        fs::write(&other, "").unwrap();
        let [weights, other] =
            [weights, other].map(|path| fs::metadata(path).unwrap().permissions().mode());
        assert_eq!(weights, other);
    }
}

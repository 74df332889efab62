//! Embeddings from files that NumPy, safetensors and Parquet writers make.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, Float64Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use npyz::WriterBuilder;
use palmette_train::semantic_ids::{Embeddings, read_embeddings};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

const ROWS: [[f32; 2]; 3] = [[0.5, -1.0], [2.0, 0.25], [0.0, 3.5]];

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn npy<T: npyz::AutoSerialize + Copy>(shape: &[u64], order: npyz::Order, values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(shape).order(order);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn safetensors(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn lists(rows: &[&[f64]]) -> ArrayRef {
    let mut lists = ListBuilder::new(Float64Builder::new());
    rows.iter().for_each(|row| lists.append_value(row.iter().copied().map(Some)));
    Arc::new(lists.finish())
}

fn names(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(7..7 + count))
}

fn check(path: &Path, name: Option<&str>, items: Option<&Path>, wanted: [&str; 3]) {
    let found = read_embeddings(path, name, items).unwrap();
    let wanted = wanted.map(str::to_owned).to_vec();
    assert_eq!(found, Embeddings::new(wanted, 2, ROWS.concat()).unwrap());
}

#[track_caller]
fn check_error(path: &Path, name: Option<&str>, items: Option<&Path>, says: &str) {
    let error = read_embeddings(path, name, items).unwrap_err().to_string();
    assert!(error.contains(says), "{error:?} does not say {says:?}");
}

#[test]
fn arrays_of_numpy() {
    let folder = Folder::new();
    let (flat, numbers) = (ROWS.concat(), ["0", "1", "2"]);
    let wide: Vec<f64> = flat.iter().copied().map(f64::from).collect();
    let narrow: Vec<half::f16> = flat.iter().copied().map(half::f16::from_f32).collect();
    let columns: Vec<f32> = (0..2).flat_map(|column| ROWS.map(|row| row[column])).collect();
    check(&folder.file("a.npy", &npy(&[3, 2], npyz::Order::C, &flat)), None, None, numbers);
    check(&folder.file("a.npy", &npy(&[3, 2], npyz::Order::C, &wide)), None, None, numbers);
    check(&folder.file("a.NPY", &npy(&[3, 2], npyz::Order::C, &narrow)), None, None, numbers);
    let path = folder.file("a.npy", &npy(&[3, 2], npyz::Order::Fortran, &columns));
    check(&path, None, None, numbers);

    let lines = folder.file("names.txt", b"lamp\ntent\r\nstove 2\n");
    check(&path, None, Some(&lines), ["lamp", "tent", "stove 2"]);
    let array = folder.file("names.json", b" [\"lamp\", 5, \"\"]");
    check(&path, None, Some(&array), ["lamp", "5", ""]);
    let few = folder.file("few.txt", b"lamp\ntent\n");
    check_error(&path, None, Some(&few), "names 2 items");
    let odd = folder.file("odd.json", b"[\"lamp\", null, 3]");
    check_error(&path, None, Some(&odd), "entry 1 is null");

    let integers = folder.file("i.npy", &npy(&[3, 2], npyz::Order::C, &[1_i32, 2, 3, 4, 5, 6]));
    check_error(&integers, None, None, "32- or 64-bit floats");
    check_error(&path, Some("x"), None, "without a name");
    let cube = folder.file("c.npy", &npy(&[3, 2, 1], npyz::Order::C, &flat));
    check_error(&cube, None, None, "[3, 2, 1]");
    let whole = npy(&[3, 2], npyz::Order::C, &flat);
    for length in 0..whole.len() {
        let cut = folder.file("cut.npy", &whole[..length]);
        assert!(read_embeddings(&cut, None, None).is_err(), "cut to {length}");
    }
}

/// A header may say that there are more numbers than memory.
#[test]
fn sizes_are_not_believed() {
    let folder = Folder::new();
    let mut bytes = npy(&[3, 2], npyz::Order::C, &ROWS.concat());
    let at = bytes.windows(5).position(|text| text == b"(3, 2").unwrap();
    // The header is padded with blanks.
    bytes.splice(at..at + 5, *b"(3000000000000, 2");
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
    bytes.drain(end - 12..end);
    check_error(&folder.file("a.npy", &bytes), None, None, "bytes long");
}

#[test]
fn tensors() {
    let folder = Folder::new();
    let bytes: Vec<u8> = ROWS.concat().into_iter().flat_map(f32::to_le_bytes).collect();
    let wide: Vec<u8> =
        ROWS.concat().into_iter().flat_map(|x| f64::from(x).to_le_bytes()).collect();
    let brain: Vec<u8> =
        ROWS.concat().into_iter().flat_map(|x| half::bf16::from_f32(x).to_le_bytes()).collect();
    let all = safetensors(&[
        ("f32", Dtype::F32, vec![3, 2], bytes.clone()),
        ("f64", Dtype::F64, vec![3, 2], wide),
        ("bf16", Dtype::BF16, vec![3, 2], brain),
        ("flat", Dtype::F32, vec![6], bytes.clone()),
        ("i32", Dtype::I32, vec![3, 2], bytes.clone()),
    ]);
    let path = folder.file("a.safetensors", &all);
    for name in ["f32", "f64", "bf16"] {
        check(&path, Some(name), None, ["0", "1", "2"]);
    }
    check_error(&path, None, None, "name one of bf16, f32, f64, flat, i32");
    check_error(&path, Some("g"), None, "no tensor \"g\"");
    check_error(&path, Some("flat"), None, "[6]");
    check_error(&path, Some("i32"), None, "I32");
    let only = safetensors(&[("any", Dtype::F32, vec![3, 2], bytes)]);
    check(&folder.file("b.safetensors", &only), None, None, ["0", "1", "2"]);
    check_error(&folder.file("c.safetensors", b"what"), None, None, "not a safetensors file");
}

#[test]
fn tables() {
    let folder = Folder::new();
    let rows: [&[f64]; 3] = [&[0.5, -1.0], &[2.0, 0.25], &[0.0, 3.5]];
    let mut fixed = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for row in ROWS {
        fixed.values().append_slice(&row);
        fixed.append(true);
    }
    let fixed: ArrayRef = Arc::new(fixed.finish());
    let path = folder.file("a.parquet", &parquet(vec![("item_id", names(3)), ("v", lists(&rows))]));
    check(&path, None, None, ["7", "8", "9"]);
    check(&path, Some("v"), None, ["7", "8", "9"]);
    check_error(&path, Some("w"), None, "no such column");
    check_error(&path, None, Some(&path), "names its items itself");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let several = vec![("v", fixed), ("title", texts), ("id", names(3)), ("w", lists(&rows))];
    let path = folder.file("b.parquet", &parquet(several));
    check(&path, Some("v"), None, ["7", "8", "9"]);
    check_error(&path, None, None, "several columns");
    check_error(&path, Some("title"), None, "cannot be a vector");

    let uneven = vec![("id", names(3)), ("v", lists(&[&[1.0, 2.0], &[3.0], &[4.0, 5.0]]))];
    check_error(
        &folder.file("c.parquet", &parquet(uneven)),
        None,
        None,
        "item \"8\" has 1 numbers",
    );
    let mut holes = ListBuilder::new(Float64Builder::new());
    holes.append_value([Some(1.0), None]);
    holes.append_null();
    let holes: ArrayRef = Arc::new(holes.finish());
    let path = folder.file("d.parquet", &parquet(vec![("id", names(2)), ("v", holes)]));
    check_error(&path, None, None, "row 1, column \"v\"");
    let twice: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
    let path =
        folder.file("e.parquet", &parquet(vec![("id", twice), ("v", lists(&[&[1.0], &[2.0]]))]));
    check_error(&path, None, None, "two embeddings");
    check_error(&folder.file("f.parquet", b""), None, None, "0 rows");
    check_error(&folder.file("g.csv", b""), None, None, ".npy");
}

//! Tables written by the libraries that define the formats, read back.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder, UInt16Builder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use palmette_catalog::readers::{
    Format, ItemSink, ReadSummary, SourceItems, SourceOptions, parse_items,
};
use palmette_catalog::{BuildError, ColumnKind, Item};
use palmette_catalog_arrow::{TableError, TableFormat, read_file_into, read_into};
use serde_json::{Map, Value, json};

use crate::written::{Way, ways};

/// Items with the names of the attributes that are points in time.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    items: SourceItems,
    timestamps: Vec<String>,
    refuse: Option<String>,
}

impl ItemSink for Seen {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        if self.refuse.as_ref() == Some(&id) {
            return Err(BuildError::of_item(line, id, "is not wanted"));
        }
        self.items.push(line, id, codes, attributes)
    }

    fn timestamps(&mut self, names: &[String]) {
        assert!(self.timestamps.is_empty() && self.items.items.is_empty());
        self.timestamps = names.to_vec();
    }
}

fn read(
    path: &Path,
    format: TableFormat,
    wanted: Option<&[&str]>,
) -> Result<(Seen, ReadSummary), TableError> {
    let wanted: Option<Vec<String>> =
        wanted.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    let mut seen = Seen::default();
    let (mut rows, mut of) = (0, None);
    let summary = read_into(path, format, wanted.as_deref(), &mut seen, &mut |read, all| {
        assert!(read > rows && read <= all && read - rows <= 8192);
        (rows, of) = (read, Some(all));
    })?;
    assert_eq!(summary.num_items, seen.items.items.len() as u64);
    assert_eq!(of.unwrap_or(0), summary.num_items);
    Ok((seen, summary))
}

/// Writes the columns in every way there is and reads them back; all must give the same.
#[track_caller]
fn check_all(columns: Vec<(&str, ArrayRef)>, check: impl Fn(Result<(Seen, ReadSummary), String>)) {
    let folder = tempfile::tempdir().unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    for way in ways() {
        let path = folder.path().join("in");
        fs::write(&path, way.write(&batch, 3)).unwrap();
        assert_eq!(TableFormat::detect(&std::fs::read(&path).unwrap()), Some(way.format()));
        let result = read(&path, way.format(), None);
        check(result.map_err(|error| {
            assert_eq!(error.path(), path);
            error.to_string().strip_prefix(path.to_str().unwrap()).expect("the path").to_owned()
        }));
    }
}

/// `lines`: the same items as JSON lines.
#[track_caller]
fn check(columns: Vec<(&str, ArrayRef)>, timestamps: &[&str], lines: &str) {
    let expected = parse_items("lines", lines.as_bytes(), Format::JsonLines).unwrap();
    check_all(columns, |result| {
        let (seen, summary) = result.unwrap();
        assert_eq!(seen.items.items, expected.items);
        assert_eq!(seen.items.lines, expected.lines);
        assert_eq!(summary.level_prefixes, expected.level_prefixes);
        assert_eq!(seen.timestamps, timestamps);
    });
}

/// Whole floats are how data frames write integers of a column that had a null.
#[test]
fn codes_that_are_whole_floats() {
    let floats = |codes: [Option<f64>; 2]| Arc::new(Float64Array::from(codes.to_vec())) as ArrayRef;
    check(
        vec![
            ("id", texts(&["a", "b"])),
            ("code_0", floats([Some(1.0), Some(2.0)])),
            ("code_1", floats([Some(3.0), Some(4.0)])),
        ],
        &[],
        "{\"id\": \"a\", \"codes\": [1, 3]}\n{\"id\": \"b\", \"codes\": [2, 4]}",
    );
    // The last levels of a shorter semantic ID are null.
    check(
        vec![
            ("id", texts(&["a", "b"])),
            ("code_0", floats([Some(1.0), Some(2.0)])),
            ("code_1", floats([Some(3.0), None])),
        ],
        &[],
        "{\"id\": \"a\", \"codes\": [1, 3]}\n{\"id\": \"b\", \"codes\": [2]}",
    );
}

/// Columns of other names, numbers that pack all codes, and columns that are not read.
#[test]
fn options_say_what_columns_are() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("pid", texts(&["a", "b"])),
        ("sid_number", Arc::new(Int64Array::from(vec![42_137, 59_999]))),
        ("photo", Arc::new(BinaryArray::from(vec![&b"x"[..], b"y"]))),
    ];
    let options = SourceOptions {
        id_column: Some("pid".into()),
        codes_columns: vec!["sid_number".into()],
        packed: vec![300, 20, 10],
        left_out: vec!["photo".into()],
        ..SourceOptions::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = parquet(&folder, columns);
    let read = |options: &SourceOptions| read_parquet(&path, options);
    let items = read(&options).unwrap();
    assert_eq!(items[0].codes, [210, 13, 7]);
    assert_eq!(items[1].codes, [299, 19, 9]);
    assert!(items[1].attributes.is_empty());
    let misspelled = SourceOptions { left_out: vec!["foto".into()], ..options };
    assert_eq!(
        read(&misspelled).unwrap_err(),
        "in: no field \"foto\", which is to be left out; the fields are \"pid\", \"sid_number\", \"photo\""
    );
}

/// Writes columns to a file.
fn parquet(folder: &tempfile::TempDir, columns: Vec<(&str, ArrayRef)>) -> std::path::PathBuf {
    let path = folder.path().join("items.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn read_parquet(path: &Path, options: &SourceOptions) -> Result<Vec<Item>, String> {
    let (mut items, file) = (SourceItems::default(), std::fs::File::open(path).unwrap());
    let (name, format) = (Path::new("in"), TableFormat::Parquet);
    let result = read_file_into(name, file, format, options, &mut items, &mut |_, _| ());
    result.map(|_| items.items).map_err(|error| error.to_string())
}

#[test]
fn values_are_read_by_declared_kinds() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", texts(&["a", "b"])),
        ("codes", texts(&["1-2", "1-3"])),
        ("zip", Arc::new(Int64Array::from(vec![90_210, 1]))),
        ("brand", texts(&["Acme", "N/A"])),
        ("price", Arc::new(Float64Array::from(vec![f64::NAN, 2.5]))),
    ];
    let mut options = SourceOptions::default();
    options.cells.kinds = vec![("zip".to_owned(), ColumnKind::Keyword)];
    let folder = tempfile::tempdir().unwrap();
    let path = parquet(&folder, columns);
    assert!(read_parquet(&path, &options).unwrap_err().contains("NaN"));
    options.cells.nulls = vec!["N/A".to_owned(), "NaN".to_owned()];
    let items = read_parquet(&path, &options).unwrap();
    assert_eq!(json!(items[0].attributes), json!({"zip": "90210", "brand": "Acme"}));
    assert_eq!(json!(items[1].attributes), json!({"zip": "1", "price": 2.5}));
}

#[track_caller]
fn check_error(columns: Vec<(&str, ArrayRef)>, expected: &str) {
    check_all(columns, |result| assert_eq!(result.map(|_| ()).unwrap_err(), expected));
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn int_lists<T: ArrowPrimitiveType>(lists: &[&[T::Native]]) -> ArrayRef {
    let lists =
        lists.iter().map(|list| Some(list.iter().map(|&code| Some(code)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<T, _, _>(lists))
}

#[test]
fn ids_of_every_type() {
    let lines = "{\"id\": 0, \"codes\": [1]}\n{\"id\": 7, \"codes\": [2]}\n";
    let dictionary: DictionaryArray<Int8Type> = vec!["0", "7"].into_iter().collect();
    let ids: [ArrayRef; 13] = [
        texts(&["0", "7"]),
        Arc::new(LargeStringArray::from(vec!["0", "7"])),
        Arc::new(StringViewArray::from(vec!["0", "7"])),
        Arc::new(dictionary),
        Arc::new(Int8Array::from(vec![0, 7])),
        Arc::new(Int16Array::from(vec![0, 7])),
        Arc::new(Int32Array::from(vec![0, 7])),
        Arc::new(Int64Array::from(vec![0, 7])),
        Arc::new(UInt8Array::from(vec![0, 7])),
        Arc::new(UInt16Array::from(vec![0, 7])),
        Arc::new(UInt32Array::from(vec![0, 7])),
        Arc::new(UInt64Array::from(vec![0, 7])),
        Arc::new(DictionaryArray::new(
            UInt32Array::from(vec![1, 0]),
            Arc::new(Int64Array::from(vec![7, 0])),
        )),
    ];
    for id in ids {
        check(
            vec![("item_id", id.clone()), ("codes", int_lists::<Int32Type>(&[&[1], &[2]]))],
            &[],
            lines,
        );
        check(vec![("codes", int_lists::<Int32Type>(&[&[1], &[2]])), ("id", id)], &[], lines);
    }
    let large = Arc::new(UInt64Array::from(vec![u64::MAX]));
    let codes = int_lists::<Int32Type>(&[&[1]]);
    check(
        vec![("id", large), ("codes", codes)],
        &[],
        "{\"id\": 18446744073709551615, \"codes\": [1]}",
    );
}

#[test]
fn codes_of_every_type() {
    let lines = "{\"id\": \"a\", \"codes\": [1, 2]}\n{\"id\": \"b\", \"codes\": [120, 0]}\n";
    let fixed = FixedSizeListArray::from_iter_primitive::<UInt8Type, _, _>(
        [Some(vec![Some(1), Some(2)]), Some(vec![Some(120), Some(0)])],
        2,
    );
    let large = LargeListArray::from_iter_primitive::<UInt64Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(120), Some(0)]),
    ]);
    let mut spelled = ListBuilder::new(StringBuilder::new());
    spelled.append_value([Some("1"), Some("2")]);
    spelled.append_value([Some("120"), Some("0")]);
    let codes: [ArrayRef; 9] = [
        int_lists::<Int8Type>(&[&[1, 2], &[120, 0]]),
        int_lists::<Int64Type>(&[&[1, 2], &[120, 0]]),
        int_lists::<UInt32Type>(&[&[1, 2], &[120, 0]]),
        Arc::new(fixed),
        Arc::new(large),
        Arc::new(spelled.finish()),
        texts(&["1 2", "120-0"]),
        Arc::new(LargeStringArray::from(vec!["1 2", "120-0"])),
        Arc::new(vec!["1 2", "120-0"].into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    for codes in codes {
        for name in ["codes", "sid", "semantic_id"] {
            check(vec![("id", texts(&["a", "b"])), (name, codes.clone())], &[], lines);
        }
    }
    check(
        vec![
            ("code_1", Arc::new(UInt16Array::from(vec![2, 5]))),
            ("id", texts(&["a", "b"])),
            ("code_0", Arc::new(Int64Array::from(vec![1, 2147483647]))),
            ("code_name", texts(&["x", "y"])),
        ],
        &[],
        "{\"id\": \"a\", \"codes\": [1, 2], \"code_name\": \"x\"}\n\
         {\"id\": \"b\", \"codes\": [2147483647, 5], \"code_name\": \"y\"}\n",
    );
    check(
        vec![("id", texts(&["a", "b"])), ("codes", texts(&["<a_1><b_2>", "<a_3>"]))],
        &[],
        "{\"id\": \"a\", \"codes\": \"<a_1><b_2>\"}\n{\"id\": \"b\", \"codes\": \"<a_3>\"}\n",
    );
}

/// Four rows, the last of nulls.
#[test]
fn attributes_of_every_type() {
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.append_value([Some("new"), None]);
    tags.append_value([None::<&str>; 0]);
    tags.append_value([Some("é")]);
    tags.append_null();
    let mut brands = StringDictionaryBuilder::<UInt8Type>::new();
    brands.extend([Some("x"), Some("y"), Some("x"), None]);
    let inner = ListArray::from_iter_primitive::<Int16Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        None,
    ]);
    let size = StructArray::new(
        Fields::from(vec![
            Field::new("w", DataType::Float32, true),
            Field::new("parts", inner.data_type().clone(), true),
        ]),
        vec![
            Arc::new(Float32Array::from(vec![Some(19.99), Some(2.0), None, Some(1.0)])),
            Arc::new(inner),
        ],
        Some(vec![true, true, true, false].into()),
    );
    let n = |values: [i64; 3]| values.map(Some).into_iter().chain([None]).collect::<Vec<_>>();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", texts(&["a", "b", "c", "d"])),
        ("codes", int_lists::<UInt16Type>(&[&[1], &[2], &[3], &[4]])),
        ("title", Arc::new(StringArray::from(vec![Some("T"), Some(""), Some("é\n"), None]))),
        (
            "view",
            Arc::new(StringViewArray::from(vec![
                Some("a longer text than twelve bytes"),
                Some("v"),
                Some(""),
                None,
            ])),
        ),
        ("brand", Arc::new(brands.finish())),
        ("i", Arc::new(Int8Array::from(vec![Some(-1), Some(0), Some(127), None]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(0), Some(1), Some(u64::MAX), None]))),
        ("l", Arc::new(Int64Array::from(n([i64::MIN, 0, i64::MAX])))),
        ("f", Arc::new(Float32Array::from(vec![Some(19.99), Some(-0.5), Some(1e10), None]))),
        ("price", Arc::new(Float64Array::from(vec![Some(9.95), Some(2.0), Some(-1e300), None]))),
        ("in_stock", Arc::new(BooleanArray::from(vec![Some(true), Some(false), Some(true), None]))),
        (
            "cost",
            Arc::new(
                Decimal128Array::from(vec![Some(1999), Some(2000), Some(-5), None])
                    .with_precision_and_scale(38, 2)
                    .unwrap(),
            ),
        ),
        (
            "count",
            Arc::new(
                Decimal128Array::from(vec![Some(1999), Some(0), Some(-5), None])
                    .with_precision_and_scale(20, 0)
                    .unwrap(),
            ),
        ),
        ("seconds", Arc::new(TimestampSecondArray::from(n([0, 1_714_564_800, -1])))),
        (
            "millis",
            Arc::new(
                TimestampMillisecondArray::from(n([0, 1_714_564_800_500, -1]))
                    .with_timezone("+02:00"),
            ),
        ),
        (
            "micros",
            Arc::new(TimestampMicrosecondArray::from(n([0, 1, -1])).with_timezone("Europe/Oslo")),
        ),
        ("nanos", Arc::new(TimestampNanosecondArray::from(n([0, 1, -1])))),
        ("day", Arc::new(Date32Array::from(vec![Some(0), Some(19_844), Some(-1), None]))),
        ("day64", Arc::new(Date64Array::from(n([0, 86_400_000, -86_400_000])))),
        ("tags", Arc::new(tags.finish())),
        ("size", Arc::new(size)),
        ("nothing", Arc::new(NullArray::new(4))),
    ];
    let rows = [
        json!({"id": "a", "codes": [1], "title": "T", "view": "a longer text than twelve bytes", "brand": "x", "i": -1, "u": 0,
            "l": i64::MIN, "f": 19.99, "price": 9.95, "in_stock": true, "cost": 19.99, "count": 1999,
            "seconds": "1970-01-01T00:00:00Z", "millis": "1970-01-01T00:00:00Z",
            "micros": "1970-01-01T00:00:00Z", "nanos": "1970-01-01T00:00:00Z",
            "day": "1970-01-01T00:00:00Z", "day64": "1970-01-01T00:00:00Z", "tags": ["new", null],
            "size": {"w": 19.99, "parts": [1, null]}}),
        json!({"id": "b", "codes": [2], "title": "", "view": "v", "brand": "y", "i": 0, "u": 1, "l": 0,
            "f": -0.5, "price": 2.0, "in_stock": false, "cost": 20.0, "count": 0,
            "seconds": "2024-05-01T12:00:00Z", "millis": "2024-05-01T12:00:00.500Z",
            "micros": "1970-01-01T00:00:00.000001Z", "nanos": "1970-01-01T00:00:00.000000001Z",
            "day": "2024-05-01T00:00:00Z", "day64": "1970-01-02T00:00:00Z", "tags": [],
            "size": {"w": 2.0}}),
        json!({"id": "c", "codes": [3], "title": "é\n", "view": "", "brand": "x", "i": 127, "u": u64::MAX,
            "l": i64::MAX, "f": 1e10, "price": -1e300, "in_stock": true, "cost": -0.05, "count": -5,
            "seconds": "1969-12-31T23:59:59Z", "millis": "1969-12-31T23:59:59.999Z",
            "micros": "1969-12-31T23:59:59.999999Z", "nanos": "1969-12-31T23:59:59.999999999Z",
            "day": "1969-12-31T00:00:00Z", "day64": "1969-12-31T00:00:00Z", "tags": ["é"],
            "size": {"parts": []}}),
        json!({"id": "d", "codes": [4]}),
    ];
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    check(columns, &["seconds", "millis", "micros", "nanos", "day", "day64"], &lines);
}

#[test]
fn errors_name_row_column_and_value() {
    let id = || ("id", texts(&["a", "b"]));
    let codes = || ("codes", int_lists::<Int32Type>(&[&[1], &[2]]));
    let ints =
        |values: [Option<i64>; 2]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };

    check_error(
        vec![("name", texts(&["a"])), ("codes", texts(&["1"]))],
        ": no field \"item_id\" or \"id\"; the fields are \"name\", \"codes\"",
    );
    check_error(
        vec![id()],
        ": no field \"codes\" or \"semantic_id\" or \"sid\" or \"code_0\"; the fields are \"id\"",
    );
    check_error(
        vec![id(), codes(), ("code_0", ints([None, None]))],
        ": both \"codes\" and \"code_0\", which mean the same; keep one of them",
    );
    check_error(
        vec![id(), ("code_1", ints([None, None]))],
        ": column code_0 is missing: code columns are numbered from 0 without gaps",
    );
    check_error(
        vec![("id", Arc::new(Float64Array::from(vec![1.0]))), ("codes", texts(&["1"]))],
        ", column \"id\": Float64 cannot be an item ID; write text or integers",
    );
    check_error(
        vec![id(), ("codes", ints([None, None]))],
        ", column \"codes\": Int64, one number, cannot be a semantic ID of several codes; write a list \
         of integers, or, if it packs all codes, say the codebook sizes that it is packed by",
    );
    check_error(
        vec![id(), ("code_0", Arc::new(Float64Array::from(vec![1.0, 2.5])))],
        ", row 2: item \"b\": code 2.5 at level 0: expected a whole number from 0 to 2147483647 or \
         <letter_number>",
    );
    check_error(
        vec![id(), codes(), ("photo", Arc::new(BinaryArray::from(vec![&b"x"[..], b"y"])))],
        ", column \"photo\": Binary cannot be an attribute; write it as text or a number, or leave \
         it out",
    );
    check_error(
        vec![("id", Arc::new(StringArray::from(vec![Some("a"), None]))), codes()],
        ", row 2, column \"id\": the item ID is null; every item needs one",
    );
    check_error(vec![("id", texts(&["a", ""])), codes()], ", row 2: the item ID is empty");

    const RULE: &str = "expected a whole number from 0 to 2147483647 or <letter_number>";
    check_error(
        vec![id(), ("codes", int_lists::<Int32Type>(&[&[1], &[2, -1]]))],
        &format!(", row 2, column \"codes\": item \"b\": code -1 at level 1: {RULE}"),
    );
    check_error(
        vec![id(), ("codes", int_lists::<UInt64Type>(&[&[1], &[2147483648]]))],
        &format!(", row 2, column \"codes\": item \"b\": code 2147483648 at level 0: {RULE}"),
    );
    check_error(
        vec![id(), ("code_0", ints([Some(1), Some(-7)]))],
        &format!(", row 2: item \"b\": code -7 at level 0: {RULE}"),
    );
    check_error(
        vec![id(), ("codes", texts(&["1-2", "x"]))],
        &format!(", row 2, column \"codes\": item \"b\": code \"x\" at level 0: {RULE}"),
    );
    check_error(
        vec![id(), ("codes", texts(&["<a_1>", "1"]))],
        ", row 2, column \"codes\": item \"b\": code \"1\" at level 0: the codes of this source are \
         spelled <letter_number> since row 1",
    );
    let empty = ": the semantic ID is empty; it needs at least one code";
    check_error(
        vec![id(), ("codes", int_lists::<Int32Type>(&[&[1], &[]]))],
        &format!(", row 2: item \"b\"{empty}"),
    );
    let mut lists = ListBuilder::new(UInt16Builder::new());
    lists.append_value([Some(1)]);
    lists.append_null();
    check_error(
        vec![id(), ("codes", Arc::new(lists.finish()))],
        &format!(", row 2: item \"b\"{empty}"),
    );
    lists.append_value([Some(1)]);
    lists.append_value([Some(1), None]);
    check_error(
        vec![id(), ("codes", Arc::new(lists.finish()))],
        ", row 2, column \"codes\": item \"b\": the code at level 1 is null; a semantic ID has no gaps",
    );
    check_error(
        vec![id(), ("code_0", ints([Some(1), None])), ("code_1", ints([Some(2), Some(3)]))],
        ", row 2, column \"code_0\": item \"b\": the code of level 0 is null and a later one is not; only trailing \
         codes may be left out",
    );
    check_error(
        vec![id(), ("code_0", ints([Some(1), None])), ("code_1", ints([Some(2), None]))],
        &format!(", row 2: item \"b\"{empty}"),
    );

    let attribute = |column: ArrayRef| vec![id(), codes(), ("x", column)];
    for value in [f64::NAN, f64::INFINITY] {
        check_error(
            attribute(Arc::new(Float64Array::from(vec![1.0, value]))),
            &format!(
                ", row 2, column \"x\": item \"b\": {value} is no JSON number; write null where \
                 there is no value"
            ),
        );
    }
    let decimals = Decimal128Array::from(vec![1, 12_345_678_901_234_567]);
    check_error(
        attribute(Arc::new(decimals.with_precision_and_scale(38, 2).unwrap())),
        ", row 2, column \"x\": item \"b\": the decimal 123456789012345.67 has more than 15 digits, \
         which a JSON number may not keep; write it as text, or as a float if it may be rounded",
    );
    check_error(
        attribute(Arc::new(TimestampMillisecondArray::from(vec![0, 253_402_300_800_000]))),
        ", row 2, column \"x\": item \"b\": 253402300800000 milliseconds since 1970 is not within \
         the years 0000 to 9999; write null where there is no value",
    );
}

#[test]
fn rows_are_counted_through_groups_and_batches() {
    let num = 20_000u32;
    let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..num));
    let codes = |bad: Option<u32>| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..num).map(|row| match bad == Some(row) {
            true => -1,
            false => i64::from(row % 256),
        })))
    };
    let pairs: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<UInt32Type, _, _>(
        (0..num).map(|row| Some([Some(row), None])),
        2,
    ));
    let size = Fields::from(vec![Field::new("n", DataType::UInt32, true)]);
    let size: ArrayRef = Arc::new(StructArray::new(size, vec![ids.clone()], None));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    // Batches below and above the rows that are handed on at a time.
    for (way, rows) in ways().into_iter().flat_map(|way| [(way, 7001), (way, 19_000)]) {
        let batch = |bad| {
            let columns =
                [("id", &ids), ("code_0", &codes(bad)), ("pair", &pairs), ("size", &size)];
            RecordBatch::try_from_iter(columns.map(|(name, column)| (name, column.clone())))
                .unwrap()
        };
        fs::write(&path, way.write(&batch(None), rows)).unwrap();
        let (seen, _) = read(&path, way.format(), None).unwrap();
        assert!(seen.items.lines.iter().copied().eq(1..=u64::from(num)));
        for (item, row) in seen.items.items.iter().zip(0..num) {
            assert_eq!((item.id.as_str(), &*item.codes), (&*row.to_string(), &[row % 256][..]));
            let attributes = Value::Object(item.attributes.clone());
            assert_eq!(attributes, json!({"pair": [row, null], "size": {"n": row}}));
        }
        fs::write(&path, way.write(&batch(Some(17_000)), rows)).unwrap();
        assert_eq!(read(&path, way.format(), None).unwrap_err().row(), Some(17_001));
    }
}

#[test]
fn only_named_attributes_are_read() {
    let columns: [(&str, ArrayRef); 5] = [
        ("photo", Arc::new(BinaryArray::from(vec![&b"x"[..]]))),
        ("brand", texts(&["b"])),
        ("codes", texts(&["1"])),
        ("title", texts(&["t"])),
        ("id", texts(&["a"])),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    for way in ways() {
        fs::write(&path, way.write(&batch, 3)).unwrap();
        let attributes = |wanted: &[&str]| {
            let (seen, _) = read(&path, way.format(), Some(wanted)).unwrap();
            Value::Object(seen.items.items[0].attributes.clone())
        };
        assert_eq!(attributes(&["title"]), json!({"title": "t"}));
        assert_eq!(attributes(&["title", "brand"]), json!({"brand": "b", "title": "t"}));
        assert_eq!(attributes(&[]), json!({}));
        let error = |name| {
            let error = read(&path, way.format(), Some(&[name])).unwrap_err();
            assert_eq!(error.column(), Some(name));
            error.to_string().split_once("\": ").unwrap().1.to_owned()
        };
        assert_eq!(
            error("tilte"),
            "there is no such column; the columns are photo, brand, codes, title, id"
        );
        assert_eq!(
            error("codes"),
            "this column is not an attribute; it holds the item's ID or codes"
        );
    }
}

#[test]
fn a_refused_item_is_named_with_its_row() {
    let batch =
        RecordBatch::try_from_iter([("id", texts(&["a", "b"])), ("codes", texts(&["1", "2"]))])
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.parquet");
    fs::write(&path, ways()[0].write(&batch, 3)).unwrap();
    let mut sink = Seen { refuse: Some("b".into()), ..Seen::default() };
    let error =
        read_into(&path, TableFormat::Parquet, None, &mut sink, &mut |_, _| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}, row 2: item \"b\" is not wanted", path.display()));
    assert_eq!(sink.items.items.len(), 1);
}

#[test]
fn no_rows_and_no_bytes_are_no_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let batch = RecordBatch::try_from_iter([("id", texts(&["a"])), ("codes", texts(&["1"]))]);
    let batch = batch.unwrap().slice(0, 0);
    for way in ways() {
        for bytes in [Vec::new(), way.write(&batch, 3)] {
            fs::write(&path, bytes).unwrap();
            let (seen, summary) = read(&path, way.format(), None).unwrap();
            assert_eq!((seen, summary), (Seen::default(), ReadSummary::default()));
        }
    }
}

#[test]
fn other_files_are_told_by_their_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let batch = RecordBatch::try_from_iter([("id", texts(&["a"])), ("codes", texts(&["1"]))]);
    let table = |way: Way| way.write(batch.as_ref().unwrap(), 3);
    for (bytes, format, expected) in [
        (
            table(ways()[0]),
            TableFormat::Arrow,
            "this is a file of format parquet, not arrow; say so",
        ),
        (
            table(Way::ArrowFile(None)),
            TableFormat::Parquet,
            "this is a file of format arrow, not parquet; say so",
        ),
        (
            b"FEA1\0\0\0\0\0".to_vec(),
            TableFormat::Arrow,
            "this is Feather version 1, which has no lists; write it anew as version 2",
        ),
        (
            b"PARE0000".to_vec(),
            TableFormat::Parquet,
            "this Parquet file is encrypted; write it without encryption",
        ),
        (
            b"item_id,codes\n".to_vec(),
            TableFormat::Parquet,
            "this is no parquet file, by its first bytes [69, 74, 65, 6d, 5f, 69, 64, 2c]",
        ),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = read(&path, format, None).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {expected}", path.display()));
    }
    let missing = read(&folder.path().join("none"), TableFormat::Arrow, None).unwrap_err();
    assert!(missing.to_string().contains("none: cannot be read: "), "{missing}");
}

#[test]
fn format_names() {
    for format in TableFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!(
        "orc".parse::<TableFormat>().unwrap_err().to_string(),
        "unknown table format \"orc\"; the formats are parquet and arrow"
    );
    for (path, format) in [
        ("d/a.parquet", Some(TableFormat::Parquet)),
        ("a.PARQUET", Some(TableFormat::Parquet)),
        ("a.arrow", Some(TableFormat::Arrow)),
        ("a.arrows", Some(TableFormat::Arrow)),
        ("a.feather", Some(TableFormat::Arrow)),
        ("a.ipc", Some(TableFormat::Arrow)),
        ("a.csv", None),
        ("parquet", None),
    ] {
        assert_eq!(TableFormat::from_path(Path::new(path)), format, "{path}");
    }
}

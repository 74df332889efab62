//! How long it takes to read a million items from a file into a sink that only counts.
//!
//! The items have an ID, eight codes below 256, a region (one of six texts), `in_stock` and
//! `price`; every format holds the same ones. The files are in the system's temporary folder and
//! have just been written, so they are read from memory.
//!
//! Run with `cargo bench -p palmette-catalog-arrow --bench read`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder, UInt16Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use divan::counter::ItemsCount;
use palmette_catalog::BuildError;
use palmette_catalog::readers::{self, Format, ItemSink};
use palmette_catalog_arrow::{TableFormat, read_into};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};
use tempfile::TempDir;

const NUM_ITEMS: usize = 1_000_000;
const REGIONS: [&str; 6] = ["se", "no", "dk", "fi", "de", "fr"];

fn main() {
    divan::main();
}

#[divan::bench(args = ["jsonl", "csv"], sample_count = 5, sample_size = 1)]
fn text(bencher: divan::Bencher<'_, '_>, name: &str) {
    let path = path(name);
    let format = Format::from_path(&path).expect("a format");
    bencher.counter(ItemsCount::new(NUM_ITEMS)).bench(|| {
        let mut count = Count::default();
        readers::read_into(&path, format, &mut count).expect("well-formed");
        assert_eq!(count.items, NUM_ITEMS);
        count
    });
}

#[divan::bench(
    args = ["snappy.parquet", "zstd.parquet", "plain.arrow"],
    sample_count = 5,
    sample_size = 1
)]
fn table(bencher: divan::Bencher<'_, '_>, name: &str) {
    let path = path(name);
    let format = TableFormat::from_path(&path).expect("a format");
    bencher.counter(ItemsCount::new(NUM_ITEMS)).bench(|| {
        let mut count = Count::default();
        read_into(&path, format, None, &mut count, &mut |_, _| ()).expect("well-formed");
        assert_eq!(count.items, NUM_ITEMS);
        count
    });
}

#[derive(Default)]
struct Count {
    items: usize,
    codes: u64,
    attributes: usize,
}

impl ItemSink for Count {
    fn push(
        &mut self,
        _line: u64,
        _id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        self.items += 1;
        self.codes += codes.iter().map(|&code| u64::from(code)).sum::<u64>();
        self.attributes += attributes.len();
        Ok(())
    }
}

fn path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(write_all).path().join(format!("items.{name}"))
}

fn codes(row: usize) -> [u16; 8] {
    // A multiplier with well-mixed upper bits.
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_le_bytes().map(u16::from)
}

fn price(row: usize) -> f64 {
    (row * 7919 % 50_000) as f64 / 100.0
}

fn write_all() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: Vec<u8>| {
        fs::write(folder.path().join(format!("items.{name}")), bytes).expect("space");
    };

    let (mut jsonl, mut csv) = (String::new(), "item_id,codes,region,in_stock,price\n".to_owned());
    for row in 0..NUM_ITEMS {
        let (codes, region) = (codes(row), REGIONS[row % 6]);
        let (in_stock, price) = (row % 5 != 0, price(row));
        writeln!(
            jsonl,
            "{{\"item_id\": \"P{row:07}\", \"codes\": {codes:?}, \"region\": \"{region}\", \
             \"in_stock\": {in_stock}, \"price\": {price}}}"
        )
        .unwrap();
        let codes = codes.map(|code| code.to_string()).join(" ");
        writeln!(csv, "P{row:07},{codes},{region},{in_stock},{price}").unwrap();
    }
    write("jsonl", jsonl.into_bytes());
    write("csv", csv.into_bytes());

    let batches: Vec<RecordBatch> = (0..NUM_ITEMS / 10_000)
        .map(|batch| batch_of(batch * 10_000..(batch + 1) * 10_000))
        .collect();
    let schema = batches[0].schema();
    for (name, compression) in [
        ("snappy.parquet", Compression::SNAPPY),
        ("zstd.parquet", Compression::ZSTD(Default::default())),
    ] {
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        write(name, writer.into_inner().unwrap());
    }
    let mut writer = FileWriter::try_new(Vec::new(), &schema).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    write("plain.arrow", writer.into_inner().unwrap());
    folder
}

fn batch_of(rows: std::ops::Range<usize>) -> RecordBatch {
    let mut all_codes = ListBuilder::new(UInt16Builder::new());
    let mut regions = StringDictionaryBuilder::<Int32Type>::new();
    for region in REGIONS {
        // One dictionary for all batches, which an Arrow file asks for.
        regions.append(region).unwrap();
    }
    let mut regions = StringDictionaryBuilder::<Int32Type>::new_with_dictionary(
        rows.len(),
        regions.finish().values().as_any().downcast_ref::<StringArray>().expect("texts"),
    )
    .unwrap();
    for row in rows.clone() {
        all_codes.append_value(codes(row).map(Some));
        regions.append_value(REGIONS[row % 6]);
    }
    let ids = rows.clone().map(|row| format!("P{row:07}"));
    let columns: [(&str, ArrayRef); 5] = [
        ("item_id", Arc::new(StringArray::from_iter_values(ids))),
        ("codes", Arc::new(all_codes.finish())),
        ("region", Arc::new(regions.finish())),
        (
            "in_stock",
            Arc::new(rows.clone().map(|row| Some(row % 5 != 0)).collect::<BooleanArray>()),
        ),
        ("price", Arc::new(Float64Array::from_iter_values(rows.map(price)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

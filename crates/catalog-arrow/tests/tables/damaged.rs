//! Files that are not what they say: every one is an error or holds items, and none ends the
//! process.

use std::fs;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder, UInt16Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_ipc::CompressionType;
use palmette_catalog::readers::SourceItems;
use palmette_catalog_arrow::{TableFormat, read_into};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::written::{Way, ways};

/// Seven rows of the types that usual files have.
fn batch() -> RecordBatch {
    let rows = 7;
    let ids: Vec<String> = (0..rows).map(|row| format!("P{row}")).collect();
    let mut codes = ListBuilder::new(UInt16Builder::new());
    (0..rows).for_each(|row| codes.append_value([Some(row), Some(3)]));
    let mut regions = StringDictionaryBuilder::<Int32Type>::new();
    (0..rows).for_each(|row| regions.append_value(["se", "no"][usize::from(row % 2)]));
    let columns: [(&str, ArrayRef); 7] = [
        ("item_id", Arc::new(StringArray::from(ids))),
        ("codes", Arc::new(codes.finish())),
        ("region", Arc::new(regions.finish())),
        ("in_stock", Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row > 2))))),
        ("price", Arc::new(Float64Array::from_iter_values((0..rows).map(f64::from)))),
        ("cost", Arc::new(Decimal128Array::from_iter_values((0..rows).map(i128::from)))),
        ("since", Arc::new(TimestampMillisecondArray::from_iter_values((0..rows).map(i64::from)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn read(folder: &TempDir, bytes: &[u8], format: TableFormat) -> Result<SourceItems, String> {
    let path = folder.path().join("in");
    fs::write(&path, bytes).unwrap();
    let mut items = SourceItems::default();
    let summary = read_into(&path, format, None, &mut items, &mut |_, _| ())
        .map_err(|error| error.to_string())?;
    assert_eq!(summary.num_items, items.items.len() as u64);
    Ok(items)
}

/// A file cut off anywhere is an error, since rows would be lost. Only a stream may end between
/// messages, for its format needs no end mark.
#[test]
fn files_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let whole = batch();
    for way in ways() {
        let bytes = way.write(&whole, 3);
        let all = read(&folder, &bytes, way.format()).unwrap();
        assert_eq!(all.items.len(), 7);
        let last = bytes.len().saturating_sub(40);
        for len in (1..last).step_by(7).chain(last..bytes.len()) {
            match (read(&folder, &bytes[..len], way.format()), way) {
                (Ok(items), Way::ArrowStream(_)) => {
                    assert!(all.items.starts_with(&items.items), "{way:?} cut at {len}");
                }
                (Ok(_), _) => panic!("{way:?} cut at {len} is read"),
                (Err(_), _) => {}
            }
        }
    }
}

/// Sizes that a file states must not be believed: memory is not asked for by them.
#[test]
fn sizes_that_are_lies() {
    let folder = tempfile::tempdir().unwrap();
    let whole = batch();
    for way in [ways()[2], ways()[8], Way::ArrowFile(Some(CompressionType::ZSTD)), ways()[12]] {
        let bytes = way.write(&whole, 3);
        // Every place, over some runs of the eight bytes that are written.
        for place in (0..bytes.len().saturating_sub(8)).step_by(3) {
            for size in [i64::MAX, 1 << 40, -1] {
                let mut bytes = bytes.clone();
                bytes[place..place + 8].copy_from_slice(&size.to_le_bytes());
                let _ = read(&folder, &bytes, way.format());
            }
        }
    }
}

proptest! {
    #[test]
    fn damaged_bytes(
        way in prop::sample::select(ways().to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = way.write(&batch(), 3);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for format in TableFormat::ALL {
            let _ = read(&folder, &bytes, format);
        }
    }

    #[test]
    fn noise(magic in 0..4usize, noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let magic: &[u8] = [&b""[..], b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"][magic];
        let bytes = [magic, &noise, magic].concat();
        let folder = tempfile::tempdir().unwrap();
        for format in TableFormat::ALL {
            let _ = read(&folder, &bytes, format);
        }
    }
}

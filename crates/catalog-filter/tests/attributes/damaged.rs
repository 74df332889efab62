//! Damaged and hostile files are errors, or answer something wrong; they never panic.

use palmette_catalog_filter::{Columns, ColumnsMeta, Filter};
use palmette_mapped::{Check, Format, SectionsIn, SectionsOut};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::tables::{builder, filter, id, rows};

const FORMAT: Format = Format { magic: *b"TESTING\0", version: 1 };

/// Asks everything there is to ask.
fn use_all(columns: &Columns, filters: &[Filter]) {
    let _ = columns.check();
    let _ = columns.bytes();
    let num_ranks = columns.num_ranks();
    for rank in (0..num_ranks.min(200)).chain([num_ranks, u64::MAX]) {
        let row = columns.row(rank);
        columns.columns().for_each(|column| _ = columns.get(rank, column.name));
        drop(row);
    }
    for filter in filters {
        for wrong in [0, 3, 40, u64::MAX] {
            if let Ok(set) = columns.select(filter, &|_| Some(wrong)) {
                assert!(set.iter().all(|rank| rank < num_ranks));
            }
        }
    }
    let _ = columns.save(&mut SectionsOut::default());
}

/// All numbers and names in a description, which are what can be damaged.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(values) => values.iter_mut().flat_map(leaves).collect(),
        Value::Object(values) => values.values_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

fn damaged_leaf() -> impl Strategy<Value = Value> {
    let widths = prop::sample::select(vec!["u8", "u16", "u32"]);
    prop_oneof![
        8 => (0..40_u64).prop_map(Value::from),
        2 => any::<u64>().prop_map(Value::from),
        2 => any::<u32>().prop_map(Value::from),
        1 => Just(Value::from(u64::MAX)),
        1 => any::<bool>().prop_map(Value::from),
        1 => widths.prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn damage_never_panics(
        rows in rows(40),
        filters in prop::collection::vec(filter(40), 1..4),
        bytes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..40),
        fields in prop::collection::vec((any::<Index>(), damaged_leaf()), 0..3),
        other_kind in prop::option::of((any::<Index>(), 0..4_usize)),
    ) {
        let mut builder = builder();
        rows.iter().for_each(|row| builder.push_row(row).expect("a row"));
        let columns = builder.finish(None, |_, _| ());
        let filters: Vec<Filter> =
            filters.iter().map(|json| Filter::from_value(json).expect("a filter")).collect();

        let mut out = SectionsOut::default();
        let mut meta = serde_json::to_value(columns.save(&mut out)).expect("a description");
        let mut file = out.to_bytes(FORMAT);
        // Header and table, 64 and 32 bytes a section, have a checksum that is always looked at.
        let num_sections = u32::from_le_bytes(file[12..16].try_into().expect("4 bytes")) as usize;
        let contents = (64 + 32 * num_sections).min(file.len());
        let contents = &mut file[contents..];
        for (at, byte) in bytes {
            if !contents.is_empty() {
                contents[at.index(contents.len())] = byte;
            }
        }
        for (at, value) in fields {
            let mut leaves = leaves(&mut meta);
            let at = at.index(leaves.len());
            *leaves[at] = value;
        }
        if let Some((column, kind)) = other_kind
            && let Some(columns) = meta["columns"].as_array_mut().filter(|list| !list.is_empty())
        {
            let at = column.index(columns.len());
            let was = columns[at]["dictionary"].as_object().and_then(|kinds| kinds.values().next().cloned());
            let mut now = serde_json::Map::new();
            now.insert(["keyword", "json", "timestamp", "boolean"][kind].to_owned(), was.into());
            columns[at]["dictionary"] = now.into();
        }

        let sections = SectionsIn::from_bytes(file.into(), FORMAT, Check::Frame)?;
        let Ok(meta) = serde_json::from_value::<ColumnsMeta>(meta) else { return Ok(()) };
        if let Ok(columns) = Columns::load(&meta, &sections) {
            use_all(&columns, &filters);
        }
    }
}

#[test]
fn check_finds_what_load_does_not_look_at() {
    let mut builder = builder();
    for i in 0..3 {
        let row = serde_json::json!({"brand": id(i), "stock": i, "tags": [id(i)], "since": i});
        builder.push_row(row.as_object().expect("an object")).expect("a row");
    }
    let mut out = SectionsOut::default();
    let meta = builder.finish(None, |_, _| ()).save(&mut out);
    let good = out.to_bytes(FORMAT);
    let load = |bytes: &[u8]| {
        let sections = SectionsIn::from_bytes(bytes.to_vec().into(), FORMAT, Check::Frame);
        Columns::load(&meta, &sections.expect("a sound frame")).expect("arrays of the right length")
    };
    assert_eq!(load(&good).check(), Ok(()));
    let num_sections = u32::from_le_bytes(good[12..16].try_into().expect("4 bytes")) as usize;
    for section in 0..num_sections {
        let entry = &good[64 + 32 * section..][..16];
        let field = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("8 bytes"));
        let (start, len) = (field(0) as usize, field(8) as usize);
        let mut bad = good.clone();
        // All ones are no UTF-8, no number, no time, no code and no place in an array.
        bad[start..start + len].fill(0xFF);
        assert!(load(&bad).check().is_err(), "section {section}");
    }
}

/// Sections of the right length, but of something else.
#[test]
fn descriptions_that_contradict_themselves_are_errors() {
    let mut builder = builder();
    for brand in ["", "a"] {
        let row = serde_json::json!({"brand": brand});
        builder.push_row(row.as_object().expect("an object")).expect("a row");
    }
    let mut out = SectionsOut::default();
    let meta = serde_json::to_value(builder.finish(None, |_, _| ()).save(&mut out));
    let meta = meta.expect("a description");
    let sections = SectionsIn::from_bytes(out.to_bytes(FORMAT).into(), FORMAT, Check::Whole);
    let sections = sections.expect("a file");
    let check = |num_ranks: u64, width: &str, section: &Value, message: &str| {
        let mut meta = meta.clone();
        meta["num_ranks"] = num_ranks.into();
        let codes = &mut meta["columns"][0]["codes"];
        codes["width"] = width.into();
        codes["section"] = section.clone();
        let meta = serde_json::from_value(meta).expect("a description");
        assert_eq!(Columns::load(&meta, &sections).unwrap_err(), message);
    };
    let texts = &meta["columns"][0]["dictionary"]["keyword"];
    check(1, "u8", &texts["text"], "column \"brand\": 2 values for 1 ranks");
    check(4, "u16", &texts["spans"]["bases"], "column \"brand\": codes of 2 values in U16");
    let many = "2 columns of 4294967296 ranks are over the limit";
    check(1 << 32, "u8", &texts["text"], many);
}

/// What a builder never makes, and filters would not find.
#[test]
fn a_negative_zero_and_a_null_are_found() {
    let check = |attributes: serde_json::Value, from: &[u8], to: &[u8]| {
        let mut builder = builder();
        builder.push_row(attributes.as_object().expect("an object")).expect("a row");
        let mut out = SectionsOut::default();
        let meta = builder.finish(None, |_, _| ()).save(&mut out);
        let file = SectionsIn::from_bytes(out.to_bytes(FORMAT).into(), FORMAT, Check::Whole);
        let file = file.expect("a file");
        let mut changed = SectionsOut::default();
        let mut num_changed = 0;
        for section in (0..).map_while(|number| file.section(number).ok()) {
            let is_it = section == from;
            num_changed += usize::from(is_it);
            changed.add(if is_it { to.to_vec().into() } else { section });
        }
        assert_eq!(num_changed, 1);
        let load = |out: &SectionsOut| {
            let bytes = out.to_bytes(FORMAT).into();
            let sections = SectionsIn::from_bytes(bytes, FORMAT, Check::Whole).expect("a file");
            Columns::load(&meta, &sections).expect("arrays of the right length").check()
        };
        assert_eq!(load(&out), Ok(()));
        assert!(load(&changed).is_err());
    };
    check(serde_json::json!({"price": 0}), &0.0_f64.to_le_bytes(), &(-0.0_f64).to_le_bytes());
    check(serde_json::json!({"object": {"": 0}}), br#"{"":0}"#, b"null  ");
}

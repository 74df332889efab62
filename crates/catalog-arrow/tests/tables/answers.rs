//! Recommendations written and read back.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use palmette_catalog_arrow::{
    AnswerWriter, TableFormat, TableRow, TableRows, answer_batch, answer_schema,
};
use palmette_recommend::offline::AnswerRecord;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use serde_json::{Value, json};

fn write(path: &Path, format: TableFormat, batches: &[Vec<AnswerRecord>]) {
    let mut writer = AnswerWriter::new(File::create(path).unwrap(), format).unwrap();
    batches.iter().for_each(|batch| writer.push(batch).unwrap());
    writer.finish().unwrap();
}

fn read(path: &Path, format: TableFormat) -> Vec<TableRow> {
    let mut rows = Vec::new();
    let table = TableRows::open(path, format).unwrap();
    let columns: Vec<String> = table.column_names().into_iter().map(str::to_owned).collect();
    let all = 0..table.num_rows();
    let each = &mut |row| {
        rows.push(row);
        ControlFlow::Continue(())
    };
    table.read(&columns, all, each).unwrap();
    rows
}

fn object(answer: &AnswerRecord) -> Value {
    let shortest = |score: &f32| score.to_string().parse::<f64>().unwrap();
    let scores = answer.scores.as_ref().map(|all| all.iter().map(shortest).collect::<Vec<f64>>());
    let mut object = json!({"user": answer.user, "items": answer.items, "scores": scores,
        "codes": answer.codes, "proven": answer.proven,
        "missed_at_most": answer.missed_at_most.as_ref().map(shortest),
        "skipped": answer.skipped, "error": answer.error});
    object.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    object
}

fn answer() -> impl Strategy<Value = AnswerRecord> {
    let item = ("[a-zé]{0,4}", -20.0_f32..0.0, prop::collection::vec(any::<u32>(), 0..4));
    let user = prop::option::of("[a-z]{0,3}");
    let missed = prop::option::of(-20.0_f32..0.0);
    (user, prop::collection::vec(item, 0..4), any::<u32>(), prop::option::of(missed)).prop_map(
        |(user, items, skipped, answered)| match answered {
            None => AnswerRecord { skipped, ..AnswerRecord::from_error(user, "no") },
            Some(missed_at_most) => AnswerRecord {
                user,
                skipped,
                proven: Some(missed_at_most.is_none()),
                missed_at_most,
                items: Some(items.iter().map(|(id, ..)| id.clone()).collect()),
                scores: Some(items.iter().map(|&(_, score, _)| score).collect()),
                codes: Some(items.into_iter().map(|(.., codes)| codes).collect()),
                error: None,
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_is_read(batches in prop::collection::vec(prop::collection::vec(answer(), 0..5), 0..4)) {
        let folder = tempfile::tempdir().unwrap();
        for format in TableFormat::ALL {
            let path = folder.path().join("answers");
            write(&path, format, &batches);
            let rows = read(&path, format);
            let number = batches.concat().len() as u64;
            prop_assert!(rows.iter().all(|row| row.of == number));
            prop_assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=number).collect::<Vec<_>>());
            let values: Vec<Value> = rows.into_iter().map(|row| row.values.into()).collect();
            let expected: Vec<Value> = batches.concat().iter().map(object).collect();
            prop_assert_eq!(values, expected);
        }
    }
}

#[test]
fn rows_as_far_as_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.parquet");
    let answer = |skipped| AnswerRecord { skipped, ..AnswerRecord::default() };
    let answers: Vec<AnswerRecord> = (0..20_000).map(answer).collect();
    write(&path, TableFormat::Parquet, &[answers]);
    let mut seen = Vec::new();
    let table = TableRows::open(&path, TableFormat::Parquet).unwrap();
    let found = ["user", "items", "scores", "codes", "proven", "missed_at_most"];
    assert_eq!(table.column_names(), [&found[..], &["skipped", "error"]].concat());
    let each = &mut |row: TableRow| {
        assert_eq!(Value::from(row.values.clone()), json!({"skipped": row.number - 1}));
        seen.push(row.number);
        if row.number == 9000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    table.read(&["skipped".to_owned()], 0..20_000, each).unwrap();
    assert_eq!(seen.len(), 9000);
}

/// Answers that tell their places.
fn numbered(count: u64) -> Vec<AnswerRecord> {
    let one = |at: u64| AnswerRecord { user: Some(format!("u{at}")), ..AnswerRecord::default() };
    (0..count).map(one).collect()
}

#[test]
fn any_run_of_rows_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    for format in TableFormat::ALL {
        let path = folder.path().join("runs");
        let all = numbered(30);
        // Groups and batches of 7, 1, 0 and 22 rows.
        let groups = [&all[..7], &all[7..8], &[], &all[8..]];
        match format {
            TableFormat::Arrow => write(&path, format, &groups.map(<[AnswerRecord]>::to_vec)),
            TableFormat::Parquet => {
                let file = File::create(&path).unwrap();
                let mut writer = ArrowWriter::try_new(file, answer_schema(), None).unwrap();
                for group in groups {
                    writer.write(&answer_batch(group)).unwrap();
                    writer.flush().unwrap();
                }
                writer.close().unwrap();
            }
        }
        let columns = ["user".to_owned()];
        let mut places = Vec::new();
        for start in 0..=30 {
            for end in start..=30 {
                let table = TableRows::open(&path, format).unwrap();
                assert_eq!(table.num_rows(), 30);
                let mut found = Vec::new();
                let read = table.read(&columns, start..end, &mut |row| {
                    assert_eq!(row.of, 30);
                    assert_eq!(row.values["user"], format!("u{}", row.number - 1));
                    found.push(row.number - 1);
                    ControlFlow::Continue(())
                });
                read.unwrap();
                assert_eq!(found, (start..end).collect::<Vec<_>>(), "{format}");
            }
            let table = TableRows::open(&path, format).unwrap();
            places.push(table.bytes_of(&(start..30)).unwrap());
        }
        // Rows of one group lie in the same bytes, and all of the file decides all rows but for
        // padding.
        assert!(places[0] != places[7] && places[7] != places[8] && places[8] == places[29]);
        let len = std::fs::metadata(&path).unwrap().len();
        let bytes: u64 = places[0].iter().map(|range| range.end - range.start).sum();
        assert!(bytes <= len && bytes + 64 >= len, "{format}: {bytes} of {len}");
        assert!(places[30].iter().all(|range| range.start == 0 || range.end == len), "{format}");
    }
}

#[test]
fn an_empty_file_has_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    File::create(&path).unwrap();
    let table = TableRows::open(&path, TableFormat::Arrow).unwrap();
    assert_eq!((table.num_rows(), table.column_names()), (0, Vec::new()));
    assert!(table.bytes_of(&(0..0)).unwrap().is_empty());
    table.read(&[], 0..0, &mut |_| panic!("a row")).unwrap();
}

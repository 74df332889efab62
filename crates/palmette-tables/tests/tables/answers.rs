//! Recommendations written and read back.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use palmette_tables::{Answer, AnswerWriter, TableFormat, TableRow, read_rows};
use proptest::prelude::*;
use serde_json::{Value, json};

fn write(path: &Path, format: TableFormat, batches: &[Vec<Answer>]) {
    let mut writer = AnswerWriter::new(File::create(path).unwrap(), format).unwrap();
    batches.iter().for_each(|batch| writer.push(batch).unwrap());
    writer.finish().unwrap();
}

fn all(names: &[&str]) -> Result<Vec<String>, String> {
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

fn read(path: &Path, format: TableFormat) -> Vec<TableRow> {
    let mut rows = Vec::new();
    read_rows(path, format, &mut all, &mut |row| {
        rows.push(row);
        ControlFlow::Continue(())
    })
    .unwrap();
    rows
}

fn object(answer: &Answer) -> Value {
    let shortest = |score: &f32| score.to_string().parse::<f64>().unwrap();
    let scores: Vec<f64> = answer.scores.iter().map(shortest).collect();
    let mut object = json!({"user": answer.user, "items": answer.items, "scores": scores,
        "codes": answer.codes, "skipped": answer.skipped, "error": answer.error});
    let fields = object.as_object_mut().unwrap();
    if answer.error.is_some() {
        ["items", "scores", "codes"].iter().for_each(|name| drop(fields.remove(*name)));
    }
    fields.retain(|_, value| !value.is_null());
    object
}

fn answer() -> impl Strategy<Value = Answer> {
    let item = ("[a-zé]{0,4}", -20.0_f32..0.0, prop::collection::vec(any::<u32>(), 0..4));
    let user = prop::option::of("[a-z]{0,3}");
    (user, prop::collection::vec(item, 0..4), any::<u32>(), any::<bool>()).prop_map(
        |(user, items, skipped, is_answered)| match is_answered {
            false => Answer { user, skipped, error: Some("no".into()), ..Answer::default() },
            true => Answer {
                user,
                skipped,
                items: items.iter().map(|(id, ..)| id.clone()).collect(),
                scores: items.iter().map(|&(_, score, _)| score).collect(),
                codes: items.into_iter().map(|(.., codes)| codes).collect(),
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
    let answers: Vec<Answer> =
        (0..20_000).map(|n| Answer { skipped: n, ..Answer::default() }).collect();
    write(&path, TableFormat::Parquet, &[answers]);
    let mut seen = Vec::new();
    let choose = &mut |_: &[&str]| Ok(vec!["skipped".to_owned()]);
    read_rows(&path, TableFormat::Parquet, choose, &mut |row| {
        assert_eq!(Value::from(row.values.clone()), json!({"skipped": row.number - 1}));
        seen.push(row.number);
        if row.number == 9000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(seen.len(), 9000);

    let refuse = &mut |names: &[&str]| Err(format!("no history among {}", names.join(", ")));
    let each = &mut |_| ControlFlow::Continue(());
    let error = read_rows(&path, TableFormat::Parquet, refuse, each).unwrap_err().to_string();
    assert!(error.contains("answers.parquet") && error.contains("among user, items"), "{error}");
}

//! Runs over histories: answers, shards, tables and refusals.

use std::path::Path;

use serde_json::{Value, json};

#[cfg(feature = "tables")]
use super::STRICT;
use super::{NARROW, Run, histories, lines, records};
use crate::command::{check_refused, palmette, palmette_with_input, run_json, write};
use crate::shop::with_recommender;

#[test]
fn each_history_is_answered_as_alone() {
    let run = Run::new();
    let mut all = histories(150);
    all[7]["items"].as_array_mut().unwrap().push("gone".into());
    all[9] = json!({"user": 9, "history": []});
    all[11] = json!({"uid": "by codes", "items": [[0, 2, 4, 0], "0-2-0-0"]});
    all[12] = json!({"user": "bad", "items": [1.5]});
    let text = lines(&all) + "garbage\n";
    let input = write(run.dir.path(), "in.jsonl", &text);
    let out = run.path("out.jsonl");
    let strict = ["--threads", "2", "--unknown", "error"];
    let report = run_json(&run.args(&input, &out, &strict));
    assert_eq!((&report["histories"], &report["answered"]), (&151.into(), &148.into()));
    assert_eq!((&report["errors"], &report["of_earlier_run"]), (&3.into(), &0.into()));
    assert!(!Path::new(&run.path("out.jsonl.partial")).exists());
    assert!(!Path::new(&run.path("out.jsonl.partial.json")).exists());
    let record = std::fs::read_to_string(run.path("_out.jsonl.run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!((&record["counts"]["histories"], &record["run"]["k"]), (&151.into(), &3.into()));

    let found = records(&out);
    assert_eq!(found.len(), 151);
    let error = |at: usize| found[at]["error"].as_str().unwrap().to_owned();
    assert!(error(7).contains("\"gone\" is not in the catalog"), "{}", error(7));
    assert!(error(12).contains("line 13") && error(12).contains("item 1.5"), "{}", error(12));
    assert!(error(150).contains("line 151") && found[150]["user"].is_null(), "{}", error(150));
    assert!(found[7].get("items").is_none() && found[0].get("error").is_none());
    for at in [0, 9, 11, 149] {
        let members = all[at].as_object().unwrap();
        let items = members.get("items").or(members.get("history")).unwrap().to_string();
        let alone = ["--history", &items];
        let rest = [&alone, &NARROW[..]].concat();
        let alone = run_json(&with_recommender("recommend", &run.recommender, &rest));
        let items = alone["items"].as_array().unwrap();
        let of = |name: &str| items.iter().map(|item| item[name].clone()).collect::<Vec<_>>();
        assert_eq!(found[at]["items"], Value::from(of("id")));
        assert_eq!(found[at]["codes"], Value::from(of("codes")));
        let score = |value: &Value| value.as_f64().unwrap() as f32;
        let scores: Vec<f32> = of("score").iter().map(score).collect();
        let given: Vec<f32> = found[at]["scores"].as_array().unwrap().iter().map(score).collect();
        assert_eq!(given, scores);
    }
    let user = |value: &Value| value["user"].as_str().map(str::to_owned);
    let given: Vec<_> = found.iter().take(7).map(user).collect();
    assert_eq!(given, all.iter().take(7).map(user).collect::<Vec<_>>());
    assert_eq!(found[9]["user"], "9");

    // Whatever the threads, the way in and the file that was there.
    let whole = std::fs::read_to_string(&out).unwrap();
    write(run.dir.path(), "one.jsonl", "something else");
    let one = run.path("one.jsonl");
    crate::command::run(&run.args(&input, &one, &["--threads", "1", "--unknown", "error"]));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), whole);
    let piped = run.path("piped.jsonl");
    let output = palmette_with_input(&run.args("-", &piped, &strict[2..]), &text);
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(&piped).unwrap(), whole);

    let skipped = run.path("skipped.jsonl");
    let report = run_json(&run.args(&input, &skipped, &["--unknown", "skip"]));
    assert_eq!(report["skipped"], json!({"items": 1, "histories": 1}));
    assert_eq!(records(&skipped)[7]["skipped"], 1);
}

#[test]
fn shards_have_each_history_once() {
    let run = Run::new();
    let mut all = histories(11);
    all[4]["items"] = json!(["gone"]);
    let text = lines(&all) + "garbage\n";
    let input = write(run.dir.path(), "in.jsonl", &text);
    let whole = run.path("whole.jsonl");
    crate::command::run(&run.args(&input, &whole, &[]));
    let whole: Vec<String> =
        std::fs::read_to_string(&whole).unwrap().lines().map(str::to_owned).collect();
    let out = run.path("out.jsonl");
    for (name, shards) in [(input.as_str(), 3), ("-", 5)] {
        for index in 0..shards {
            let shard = format!("{index}/{shards}");
            let output = palmette_with_input(&run.args(name, &out, &["--shard", &shard]), &text);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let path = run.path(&format!("out-{index:05}-of-{shards:05}.jsonl"));
            let own = std::fs::read_to_string(path).unwrap();
            let expected = whole.iter().skip(index).step_by(shards);
            assert!(own.lines().eq(expected), "{own}");
        }
    }
    assert!(!Path::new(&out).exists());
    // Another number of shards has other files; a shard is not gone on with as another.
    let report = run_json(&run.args(&input, &out, &["--shard", "1/3", "--resume"]));
    assert_eq!((&report["of_earlier_run"], &report["shard"]), (&4.into(), &"1/3".into()));
    check_refused(&run.args(&input, &out, &["--shard", "3/3"]), &["numbered from 0 to 2"]);
    let alone =
        with_recommender("recommend", &run.recommender, &["--history", "", "--shard", "0/1"]);
    check_refused(&alone, &["--histories"]);
}

#[test]
fn what_cannot_be_run_is_said_at_once() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(3)));
    let out = run.path("out.jsonl");
    let refused = |histories: &str, out: &str, rest: &[&str], words: &[&str]| {
        check_refused(&run.args(histories, out, rest), words);
    };
    refused(&input, &run.path("out.xlsx"), &[], &["out.xlsx", ".jsonl, .parquet or .arrow"]);
    refused(&input, run.dir.path().to_str().unwrap(), &[], &["tells no format"]);
    refused(&input, &input, &[], &["would be lost"]);
    refused("-", &out, &["--resume"], &["standard input"]);
    refused(&run.path("none.jsonl"), &out, &[], &["none.jsonl"]);
    refused(&input, &out, &["--history", "P0001"], &["cannot be used with"]);
    refused(&input, &out, &["--filter", "{\"must\": 7}"], &["must"]);
    let untold = write(run.dir.path(), "histories", "{}");
    refused(&untold, &out, &[], &["tells no format of histories", "--histories-format"]);
    let shop = &run.recommender;
    check_refused(&with_recommender("recommend", shop, &["--histories", &input]), &["--out"]);
    check_refused(&with_recommender("recommend", shop, &[]), &["--history"]);
    let document = write(run.dir.path(), "broken.json", "{\"1\": [\"P0001\"]");
    refused(&document, &out, &[], &["broken.json", "is not {user:"]);
    assert!(!Path::new(&out).exists());
}

/// Answers of an earlier night stay where a night has none.
#[test]
fn a_run_that_answers_nothing_fails_and_keeps_the_file() {
    let run = Run::new();
    let yesterday = "yesterday's answers\n";
    let out = write(run.dir.path(), "out.jsonl", yesterday);
    let refused = |name: &str, text: &str, rest: &[&str], words: &[&str]| {
        let input = write(run.dir.path(), name, text);
        check_refused(&run.args(&input, &out, rest), words);
        assert_eq!(std::fs::read_to_string(&out).unwrap(), yesterday, "{name}");
        for left in ["out.jsonl.partial", "out.jsonl.partial.json", "_out.jsonl.run.json"] {
            assert!(!Path::new(&run.path(left)).exists(), "{left}");
        }
    };
    // A line of reviews that is taken for one document, users and their items.
    let review =
        r#"{"reviewerID": "A1", "asin": "P0060", "overall": 5.0, "unixReviewTime": 1252800000}"#;
    let none = &[
        "none of the 4 histories",
        "\"reviewerID\" has \"A1\", which is no list",
        "jsonl",
        "--allow-empty",
    ];
    refused("reviews.json", review, &[], none);
    refused("reviews.json", review, &["--resume"], none);
    refused("empty.jsonl", "\n", &[], &["empty.jsonl: it has no histories", "--allow-empty"]);
    let gone = "{\"user\": 1, \"items\": [\"gone\"]}\n";
    let unknown = ["none of the 1 histories has an item of the catalog", "\"gone\""];
    refused("gone.jsonl", gone, &[], &unknown);
    let strict = ["--unknown", "error"];
    refused("gone.jsonl", gone, &strict, &["none of the 1 histories could", "\"gone\""]);
    let where_none = ["--where", "user=7"];
    refused("gone.jsonl", gone, &where_none, &["it has no histories"]);

    // By its layout the line is read.
    let review = write(run.dir.path(), "reviews.json", review);
    let report = run_json(&run.args(&review, &out, &["--layout", "amazon2018"]));
    assert_eq!((&report["answered"], &report["errors"]), (&1.into(), &0.into()));
    assert_eq!(records(&out)[0]["user"], "A1");
    // Where it is asked for the reasons are written.
    let gone = write(run.dir.path(), "gone.jsonl", gone);
    let report = run_json(&run.args(&gone, &out, &["--allow-empty", "--unknown", "error"]));
    assert_eq!((&report["answered"], &report["errors"]), (&0.into(), &1.into()));
    assert!(records(&out)[0]["error"].as_str().unwrap().contains("gone"));
    // One that is answered is enough.
    let one = format!("{}{}", std::fs::read_to_string(&gone).unwrap(), lines(&histories(1)));
    let one = write(run.dir.path(), "one.jsonl", &one);
    assert_eq!(run_json(&run.args(&one, &out, &strict))["answered"], 1);
    assert_eq!(run_json(&run.args(&one, &out, &[]))["answered"], 2);
    // A part may have none of the histories.
    run_json(&run.args(&one, &out, &["--shard", "4/5"]));
}

/// Columns of other names are told, and what is not read is said once.
#[test]
fn columns_are_told_and_what_is_not_read_is_said() {
    let run = Run::new();
    let csv = "user_id,item_id,date\n0,P0060,20220408\n0,P0001,20220407\n1,P0002,20220407\n";
    let input = write(run.dir.path(), "times.csv", csv);
    let out = run.path("out.jsonl");
    let noted = |rest: &[&str]| {
        let output = palmette(&run.args(&input, &out, rest));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stderr).unwrap(), records(&out))
    };
    let (said, by_file) = noted(&[]);
    assert_eq!(said.matches("not read: date").count(), 1, "{said}");
    let (said, by_time) = noted(&["--time-column", "date"]);
    assert!(!said.contains("not read") && said.contains("read as dates"), "{said}");
    let alone = |history: &str| {
        let rest = [&["--history", history], &NARROW[..]].concat();
        let answer = run_json(&with_recommender("recommend", &run.recommender, &rest));
        let ids = answer["items"].as_array().unwrap().iter().map(|item| item["id"].clone());
        ids.collect::<Value>()
    };
    assert_eq!(by_file[0]["items"], alone("P0060,P0001"));
    assert_eq!(by_time[0]["items"], alone("P0001,P0060"));
    assert_ne!(by_file[0]["items"], by_time[0]["items"]);
    let (said, one) = noted(&["--where", "user_id=1"]);
    assert!(said.contains("2 rows do not match --where"), "{said}");
    assert_eq!((one.len(), &one[0]["user"]), (1, &"1".into()));
    // A run that reads otherwise is another run.
    let args = run.args(&input, &out, &["--resume", "--time-column", "date"]);
    assert_eq!(run_json(&args)["of_earlier_run"], 0);
    assert_eq!(run_json(&args)["of_earlier_run"], 2);
}

#[test]
#[cfg(feature = "tables")]
fn tables_in_and_out() {
    use arrow_array::{ArrayRef, Float32Array, ListArray, RecordBatch, StringArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::fs::File;
    use std::sync::Arc;

    let run = Run::new();
    let mut all = histories(5);
    all[1]["items"] = json!(["gone"]);
    let input = write(run.dir.path(), "in.jsonl", &lines(&all));
    let out = run.path("out.jsonl");
    crate::command::run(&run.args(&input, &out, STRICT));
    let expected = records(&out);

    // One thing done a row, the last first; times restore the order.
    let mut rows: Vec<(String, String, i64)> = Vec::new();
    for history in &all {
        for (time, item) in history["items"].as_array().unwrap().iter().enumerate().rev() {
            let user = history["user"].as_str().unwrap().to_owned();
            rows.push((user, item.as_str().unwrap().to_owned(), time as i64));
        }
    }
    let column = |of: fn(&(String, String, i64)) -> &str| -> ArrayRef {
        Arc::new(StringArray::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let times = arrow_array::Int64Array::from(rows.iter().map(|row| row.2).collect::<Vec<_>>());
    let batch = RecordBatch::try_from_iter([
        ("user_id", column(|row| &row.0)),
        ("item_id", column(|row| &row.1)),
        ("timestamp", Arc::new(times) as ArrayRef),
    ])
    .unwrap();
    let events = run.path("events.parquet");
    let file = File::create(&events).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    for (name, histories) in [("a.parquet", &input), ("b.parquet", &events)] {
        let out = run.path(name);
        crate::command::run(&run.args(histories, &out, STRICT));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&out).unwrap()).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        let [rows] = batches.as_slice() else { panic!("one batch") };
        let texts = |name: &str| rows.column_by_name(name).unwrap().clone();
        let users = texts("user");
        let users = users.as_any().downcast_ref::<StringArray>().unwrap();
        let errors = texts("error");
        let errors = errors.as_any().downcast_ref::<StringArray>().unwrap();
        let scores = texts("scores");
        let scores = scores.as_any().downcast_ref::<ListArray>().unwrap();
        for (at, record) in expected.iter().enumerate() {
            assert_eq!(users.value(at), record["user"].as_str().unwrap());
            let Some(wanted) = record.get("scores") else {
                use arrow_array::Array;
                assert!(scores.is_null(at) && errors.value(at).contains("gone"));
                continue;
            };
            let found = scores.value(at);
            let found = found.as_any().downcast_ref::<Float32Array>().unwrap();
            let wanted = wanted.as_array().unwrap().iter().map(|s| s.as_f64().unwrap() as f32);
            assert_eq!(found.values().to_vec(), wanted.collect::<Vec<_>>());
        }
    }
    shards_of_tables(&run, &expected);
    // Back in, as Arrow.
    let arrow = run.path("c.arrow");
    crate::command::run(&run.args(&events, &arrow, STRICT));
    let again = run.path("again.jsonl");
    let report = run_json(&run.args(&arrow, &again, STRICT));
    assert_eq!((&report["histories"], &report["errors"]), (&5.into(), &1.into()));
}

/// Runs of rows, whatever the row groups, one after another give the whole; users of events are
/// dealt out.
#[cfg(feature = "tables")]
fn shards_of_tables(run: &Run, expected: &[Value]) {
    use arrow_array::RecordBatch;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use std::fs::File;
    use std::sync::Arc;

    let all = histories(5);
    let mut items = ListBuilder::new(StringBuilder::new());
    for (at, history) in all.iter().enumerate() {
        let ids = history["items"].as_array().unwrap().iter();
        ids.for_each(|id| {
            items.values().append_value(if at == 1 { "gone" } else { id.as_str().unwrap() })
        });
        items.append(true);
    }
    let users = all.iter().map(|history| history["user"].as_str().unwrap());
    let users = arrow_array::StringArray::from_iter_values(users);
    let batch = RecordBatch::try_from_iter([
        ("user", Arc::new(users) as arrow_array::ArrayRef),
        ("items", Arc::new(items.finish())),
    ])
    .unwrap();
    let path = run.path("rows.parquet");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None)
            .unwrap();
    for (start, len) in [(0, 3), (3, 2)] {
        writer.write(&batch.slice(start, len)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    for shards in [1, 2, 4, 7] {
        let mut found = Vec::new();
        for index in 0..shards {
            let out = run.path("shard.jsonl");
            let shard = format!("{index}/{shards}");
            run_json(&run.args(&path, &out, &["--shard", &shard, STRICT[0], STRICT[1]]));
            found.extend(records(&run.path(&format!("shard-{index:05}-of-{shards:05}.jsonl"))));
        }
        let user = |record: &Value| record["user"].clone();
        assert_eq!(
            found.iter().map(user).collect::<Vec<_>>(),
            expected.iter().map(user).collect::<Vec<_>>()
        );
        assert_eq!(found[4], expected[4]);
        assert!(found[1]["error"].as_str().unwrap().contains("gone"));
    }
    let dealt = run.path("dealt.jsonl");
    run_json(&run.args(
        &run.path("events.parquet"),
        &dealt,
        &["--shard", "1/2", STRICT[0], STRICT[1]],
    ));
    let dealt = records(&run.path("dealt-00001-of-00002.jsonl"));
    assert_eq!(dealt, [expected[1].clone(), expected[3].clone()]);
}

#[test]
#[cfg(not(feature = "tables"))]
fn a_build_without_tables_says_so_before_it_answers() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(1)));
    check_refused(&run.args(&input, &run.path("out.parquet"), &[]), &["--features tables"]);
    let table = write(run.dir.path(), "in.parquet", "PAR1");
    check_refused(&run.args(&table, &run.path("out.jsonl"), &[]), &["--features tables"]);
}

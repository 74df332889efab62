//! Evaluation over files of histories: notes, floors and formats.

use serde_json::{Value, json};

use super::{Run, histories, lines};
use crate::command::{check_refused, palmette, run, run_json, write};
use crate::shop::{Shop, with_recommender};

/// Floors do not know the answers of rows whose histories hold those of others.
#[test]
fn notes_are_members_of_documents() {
    let run = Run::new();
    let rows = "user_id,item_id,country\nU1,P0001,de\nU1,P0002,de\nU1,P0003,de\n";
    let input = write(run.dir.path(), "in.csv", rows);
    let out = run.path("out.jsonl");
    let args = run.args(&input, &out, &["--json"]);
    let eval = ["--histories", &input, "--no-unconstrained", "--json", "-k", "1"];
    for args in [args, with_recommender("eval", &run.recommender, &eval)] {
        let output = palmette(&args);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let notes: Vec<&str> =
            report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].ends_with("in.csv: not read: country"), "{notes:?}");
        assert!(notes[1].contains("no column has times"), "{notes:?}");
    }
}

#[test]
fn floors_of_rows_that_overlap() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let all = histories(60);
    let (mut sliding, mut last, mut nameless) = (String::new(), String::new(), String::new());
    for history in &all {
        let items = history["items"].as_array().unwrap();
        for end in 2..items.len() {
            let user = &history["user"];
            let row = json!({"user": user, "history": items[..end], "target": items[end]});
            sliding += &format!("{row}\n");
            nameless += &format!("{}\n", json!({"history": items[..end], "target": items[end]}));
            if end + 1 == items.len() {
                last += &format!("{row}\n");
            }
        }
    }
    let evaluated = |name: &str, text: &str| {
        let path = write(dir.path(), name, text);
        let rest = ["--histories", &path, "--beam-width", "10", "--no-unconstrained"];
        run_json(&with_recommender("eval", &shop, &rest))
    };
    let hit_rate = |document: &Value| document["metrics"]["item-item"]["hit_rate@10"].as_f64();
    let (sliding, last) = (evaluated("sliding.jsonl", &sliding), evaluated("last.jsonl", &last));
    let whole = evaluated("whole.jsonl", &lines(&all));
    // One row a user is what whole histories are; with all rows, an answer is known in nine of ten
    // where they know.
    assert_eq!(hit_rate(&last), hit_rate(&whole));
    assert!(hit_rate(&sliding).unwrap() < 0.3, "{sliding}");
    assert!(last["no_floors"].is_null() && sliding["no_floors"].is_null());
    let nameless = evaluated("nameless.jsonl", &nameless);
    assert_eq!(hit_rate(&nameless), None);
    assert!(nameless["no_floors"].as_str().unwrap().contains("--user-column"), "{nameless}");
    assert_eq!(nameless["metrics"]["model"], sliding["metrics"]["model"]);
}

#[test]
fn formats_of_histories_are_evaluated_alike() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let all = histories(40);
    let ids = |history: &Value| -> Vec<String> {
        let ids = history["items"].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let user = |history: &Value| history["user"].as_str().unwrap().to_owned();
    let texts: String = all.iter().map(|h| format!("{} {}\n", user(h), ids(h).join(" "))).collect();
    let mut inter = "user_id:token\titem_id:token\ttimestamp:float\n".to_owned();
    let mut rows = "user_id,history_item_id,item_id\n".to_owned();
    for history in &all {
        let of = ids(history);
        for (time, id) in of.iter().enumerate().rev() {
            inter += &format!("{}\t{id}\t{time}\n", user(history));
        }
        let (target, before) = of.split_last().unwrap();
        let list: Vec<String> = before.iter().map(|id| format!("'{id}'")).collect();
        rows += &format!("{},\"[{}]\",{target}\n", user(history), list.join(", "));
    }
    let evaluated = |name: &str, text: &str| {
        let path = write(dir.path(), name, text);
        let rest = [
            "--histories",
            &path,
            "--beam-width",
            "10",
            "--no-unconstrained",
            "--segment-by",
            "category",
        ];
        let mut document = run_json(&with_recommender("eval", &shop, &rest));
        for differs in ["seconds", "notes"] {
            document.as_object_mut().unwrap().remove(differs);
        }
        document
    };
    let expected = evaluated("h.jsonl", &lines(&all));
    assert_eq!(expected["users"], 40);
    for (name, text) in [("h.txt", &texts), ("h.inter", &inter), ("h.csv", &rows)] {
        assert_eq!(evaluated(name, text), expected, "{name}");
    }
    let spread = &expected["spread"];
    let of = |name: &str| spread[name].as_f64().unwrap();
    assert!(of("coverage@5") > 0.0 && of("coverage@5") < of("coverage@10"), "{spread}");
    assert!(of("coverage@10") <= 400.0 / 4034.0, "{spread}");
    assert!(of("gini@10") > 0.5 && of("gini@10") < 1.0, "{spread}");
    assert!((0.0..=1.0).contains(&of("new_items_asked_for")), "{spread}");
    let segments = expected["segmented"]["segments"].as_array().unwrap();
    let users: u64 = segments.iter().map(|one| one["users"].as_u64().unwrap()).sum();
    assert_eq!(users, 40, "one department an item");
    let hits: f64 = segments
        .iter()
        .map(|one| one["users"].as_f64().unwrap() * one["metrics"]["hit_rate@10"].as_f64().unwrap())
        .sum();
    let all_hits = 40.0 * expected["metrics"]["model"]["hit_rate@10"].as_f64().unwrap();
    assert!((hits - all_hits).abs() < 1e-9);

    let path = write(dir.path(), "v.csv", &rows);
    let rest = ["--histories", &path, "--split", "validation"];
    check_refused(&with_recommender("eval", &shop, &rest), &["--split validation", "v.csv"]);
    let path = write(dir.path(), "s.jsonl", &lines(&all));
    let rest = ["--histories", &path, "--users", "1", "--segment-by", "colour"];
    check_refused(
        &with_recommender("eval", &shop, &rest),
        &["colour", "category", "history-length"],
    );
}

#[test]
fn unknown_items_of_an_evaluation() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let mut all = histories(10);
    all[0]["items"].as_array_mut().unwrap().insert(0, "gone".into());
    all[1]["items"] = json!(["P0001", "gone", "gone too"]);
    let path = write(dir.path(), "h.jsonl", &lines(&all));
    let rest = ["--histories", &path, "--beam-width", "10", "--no-unconstrained"];
    check_refused(&with_recommender("eval", &shop, &rest), &["\"gone\"", "--unknown skip"]);
    let skip = [&rest[..], &["--unknown", "skip", "--segment-by", "history-length"]].concat();
    let document = run_json(&with_recommender("eval", &shop, &skip));
    assert_eq!(document["skipped"], json!({"items": 3, "histories": 2, "questions": 0}));
    let counts = (&document["histories"], &document["users"], &document["asking_nothing"]);
    assert_eq!(counts, (&10.into(), &9.into(), &1.into()));
    let text = run(&with_recommender("eval", &shop, &skip));
    for word in [
        "left out as unknown: 3 items of 2 histories",
        "1 histories of fewer than 3",
        "history-length",
    ] {
        assert!(text.contains(word), "{text}");
    }
}

//! The commands as a user types them, good input and bad.

use std::collections::HashSet;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, run, run_json, write};
use crate::shop::{Shop, with_recommender};

#[test]
fn demo_as_one_document() {
    let document = run_json(&["demo", "--once"]);
    let recommendations = document["recommendations"].as_array().unwrap();
    assert!(recommendations.len() >= 3);
    for one in recommendations {
        assert!(one["history"].as_array().unwrap().iter().all(Value::is_string));
        let items = one["items"].as_array().unwrap();
        assert_eq!(items.len(), 10);
        for item in items {
            assert!(item["id"].is_string() && item["title"].is_string());
            assert!(item["score"].as_f64().unwrap() < 0.0);
            assert_eq!(item["codes"].as_array().unwrap().len(), 4);
            assert!(!one["history"].as_array().unwrap().contains(&item["title"]), "seen again");
        }
        let scores: Vec<f64> = items.iter().map(|item| item["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b));
    }
    for stage in ["prefill", "decode", "mask", "top_k", "total"] {
        assert!(document["timings_ms"][stage].as_f64().unwrap() >= 0.0, "{stage}");
    }
}

#[test]
fn demo_for_people() {
    let text = run(&["demo", "--once", "-k", "3", "--threads", "1"]);
    assert!(text.contains("Bought, oldest first") && text.contains("prefill"), "{text}");
}

/// The built-in model must be good: the next purchase of many users is among its first ten.
#[test]
fn the_demo_model_knows_its_shop() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let histories = shop.path("histories.json");
    let rest =
        ["--histories", &histories, "--users", "150", "--beam-width", "20", "--no-unconstrained"];
    let rest = [&rest[..], &["--places"]].concat();
    let document = run_json(&with_recommender("eval", &recommender, &rest));
    assert_eq!(document["users"], 150);
    let hit_rate = |who: &str| document["metrics"][who]["hit_rate@10"].as_f64().unwrap();
    assert!(hit_rate("model") > 3.0 * hit_rate("popularity"), "{document}");
    let valid = &document["valid"]["constrained"];
    assert_eq!((&valid["generated"], &valid["share"]), (&1500.into(), &1.0.into()));
    assert!(document["valid"]["unconstrained"].is_null());
    // The metrics are those of the places.
    let places = document["places"].as_array().unwrap();
    let hits = places.iter().filter(|place| place.as_u64().is_some_and(|place| place < 10));
    assert_eq!((places.len(), hits.count() as f64 / 150.0), (150, hit_rate("model")));
}

#[test]
fn recommending_from_files_equals_the_demo() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let demo = run_json(&["demo", "--once"]);
    let titles = &demo["recommendations"][0]["history"];
    let items = std::fs::read_to_string(shop.path("items.jsonl")).unwrap();
    let items: Vec<Value> = items.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = |title: &Value| {
        let item = items.iter().find(|item| item["title"] == *title).expect("an item of the shop");
        item["item_id"].as_str().unwrap().to_owned()
    };
    let history: Vec<String> = titles.as_array().unwrap().iter().map(id).collect();
    let history = history.join(",");
    // The demonstration shows nothing that is sold out.
    let in_stock = r#"{"must": {"range": {"stock": {"gt": 0}}}}"#;
    let rest = ["--history", &history, "--filter", in_stock, "--timings", "--repeat", "2"];
    let document = run_json(&with_recommender("recommend", &recommender, &rest));
    assert_eq!(document["items"], demo["recommendations"][0]["items"]);
    assert!(document["timings_ms"]["total"].as_f64().unwrap() > 0.0);

    let one_thread = [&rest[..], &["--threads", "1"]].concat();
    let again = run_json(&with_recommender("recommend", &recommender, &one_thread));
    assert_eq!(again["items"], document["items"], "threads change nothing");
}

#[test]
fn a_live_directory_is_read_where_a_catalog_file_is() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (live, exported, updates) = (path("live"), path("exported.palm"), path("updates.jsonl"));
    let of_catalog = |catalog: &str, command: &[&str]| {
        let model = shop.path("model");
        let rest = ["--model", &model, "--catalog", catalog, "--history", "P0001,P0002"];
        run_json(&[command, &rest].concat())
    };
    run(&["catalog", "live", "init", &live, "--from", &shop.path("shop.palm")]);
    let mut before = of_catalog(&live, &["recommend"]);
    assert_eq!(take(&mut before, "generation"), 0);
    assert_eq!(before, of_catalog(&shop.path("shop.palm"), &["recommend"]));

    let first = before["items"][0].clone();
    let changes = [
        json!({"delete": first["id"]}),
        json!({"item_id": "new", "codes": first["codes"], "title": "A new one"}),
    ];
    std::fs::write(&updates, changes.map(|change| format!("{change}\n")).concat()).unwrap();
    run(&["catalog", "live", "apply", &live, &updates]);
    run(&["catalog", "live", "export", &live, "--out", &exported]);
    let mut after = of_catalog(&live, &["recommend"]);
    assert_eq!(take(&mut after, "generation"), 1);
    assert_eq!(after, of_catalog(&exported, &["recommend"]));
    assert_eq!(after["items"][0]["id"], "new", "it has the deleted one's semantic ID");
    for command in [&["--item", "new"][..], &["--prefix", ""], &["--prefix", "0,5"]] {
        let of = |catalog: &str| run_json(&[&["catalog", "inspect", catalog], command].concat());
        let (mut of_live, mut of_exported) = (of(&live), of(&exported));
        assert_eq!(take(&mut of_live, "generation"), 1);
        // An item's number in a view of segments is not its rank in a file.
        of_live.as_object_mut().unwrap().remove("rank");
        of_exported.as_object_mut().unwrap().remove("rank");
        assert_eq!(of_live, of_exported, "{command:?}");
    }
    let segments = run_json(&["catalog", "inspect", &live]);
    assert_eq!((&segments["num_items"], &segments["generation"]), (&json!(4034), &json!(1)));
    assert_eq!(segments["segments"].as_array().unwrap().len(), 2);
    check_refused(
        &["catalog", "inspect", dir.path().to_str().unwrap()],
        &["no live catalog", dir.path().to_str().unwrap()],
    );
}

/// Takes one value out of a document.
#[track_caller]
fn take(document: &mut Value, name: &str) -> Value {
    document.as_object_mut().and_then(|all| all.remove(name)).expect("the document has it")
}

/// The answers and measures of a live directory of several segments are those of the file that it
/// is exported to.
#[test]
fn several_segments_answer_as_one_file() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (live, exported, updates) = (path("live"), path("exported.palm"), path("updates.jsonl"));
    run(&["catalog", "live", "init", &live, "--from", &shop.path("shop.palm")]);

    // Items that no history has go, and others come: floors, too, then see the same items in the
    // same order.
    let read = |name: &str| std::fs::read_to_string(shop.path(name)).unwrap();
    let histories: Value = serde_json::from_str(&read("histories.json")).unwrap();
    let bought = histories.as_object().unwrap().values().flat_map(|ids| ids.as_array().unwrap());
    let bought = bought.map(|id| id.as_str().unwrap());
    let bought: HashSet<&str> = bought.chain(["P0001", "P0060"]).collect();
    let items = read("items.jsonl");
    let items: Vec<Value> = items.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let unbought: Vec<&Value> =
        items.iter().filter(|item| !bought.contains(item["item_id"].as_str().unwrap())).collect();
    assert!(unbought.len() > 20, "{} items were never bought", unbought.len());
    for (number, gone) in unbought.chunks(10).take(2).enumerate() {
        let deletes = gone.iter().map(|item| json!({"delete": item["item_id"]}));
        let inserts = gone.iter().step_by(2).map(|item| {
            let mut item = (*item).clone();
            item["item_id"] = format!("new-{number}-{}", item["item_id"].as_str().unwrap()).into();
            item["title"] = "A new one".into();
            item
        });
        let lines = deletes.chain(inserts).map(|update| format!("{update}\n"));
        std::fs::write(&updates, lines.collect::<String>()).unwrap();
        run(&["catalog", "live", "apply", &live, &updates]);
    }
    run(&["catalog", "live", "export", &live, "--out", &exported]);

    let model = shop.path("model");
    let ask = |command: &str, catalog: &str, rest: &[&str]| {
        let args = [&[command, "--model", &model, "--catalog", catalog], rest].concat();
        let output = palmette(&args);
        let says = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && says.is_empty(), "{args:?}: {says}");
        String::from_utf8(output.stdout).unwrap()
    };
    let titled = r#"{"must": {"match": {"title": "A new one"}}}"#;
    let in_stock = r#"{"must": {"range": {"stock": {"gt": 0}}}}"#;
    for rest in [
        &["--history", "P0001,P0060"][..],
        &["--history", "", "-k", "500", "--filter", in_stock],
        &["--history", "P0001", "--filter", titled],
        &["--history", "P0001,P0060", "--include-seen", "--widths", "16,64,32,32"],
    ] {
        assert_eq!(ask("recommend", &live, rest), ask("recommend", &exported, rest), "{rest:?}");
        let as_json = [rest, &["--json"]].concat();
        let document = |catalog: &str| -> Value {
            serde_json::from_str(&ask("recommend", catalog, &as_json)).unwrap()
        };
        let mut of_live = document(&live);
        assert_eq!(take(&mut of_live, "generation"), 2);
        assert_eq!(of_live, document(&exported), "{rest:?}");
    }
    let found = ask("recommend", &live, &["--history", "P0001", "--filter", titled]);
    assert!(found.contains("new-0-") && found.contains("A new one"), "{found}");

    let histories = shop.path("histories.json");
    for rest in [
        &["--users", "40"][..],
        &["--users", "20", "--cold-start", "0.05", "-k", "1,5"],
        &["--users", "10", "--weights", "int8", "--overlap"],
    ] {
        let rest = [&["--json", "--histories", &histories], rest].concat();
        let measured = |catalog: &str| {
            let mut document: Value = serde_json::from_str(&ask("eval", catalog, &rest)).unwrap();
            assert!(take(&mut document, "seconds").as_f64() > Some(0.0));
            document
        };
        assert_eq!(measured(&live), measured(&exported), "{rest:?}");
    }

    // What is gone still reads as history where it was deleted; a file that was exported since does
    // not know it.
    let gone = unbought[0]["item_id"].as_str().unwrap();
    let after_gone = ["--history", gone, "--json"];
    let document: Value = serde_json::from_str(&ask("recommend", &live, &after_gone)).unwrap();
    let departed = json!({"id": gone, "codes": unbought[0]["codes"], "departed": true});
    assert_eq!((&document["history"][0], &document["history_used"]), (&departed, &json!(1)));
    assert!(document["items"].as_array().unwrap().iter().all(|item| item["id"] != gone));
    check_refused(
        &[
            "recommend",
            "--model",
            &model,
            "--catalog",
            &exported,
            "--history",
            gone,
            "--unknown",
            "error",
        ],
        &[&format!("{gone:?} is not in the catalog of"), "its ids look like"],
    );
}

#[test]
fn drafting_needs_a_draft_head() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let refused = |command: &str, rest: &[&str], words: &[&str]| {
        check_refused(&with_recommender(command, &recommender, rest), words);
    };
    let lacks = ["draft.safetensors", "`palmette-train draft` trains"];
    refused("recommend", &["--history", "P0001", "--mode", "draft"], &lacks);
    let histories = shop.path("histories.json");
    refused("eval", &["--histories", &histories, "--mode", "draft"], &lacks);
    refused("recommend", &["--history", "P0001", "--verify", "keys"], &["give --mode draft"]);
    let both = ["--history", "P0001", "--mode", "draft", "--probe", "5"];
    refused("recommend", &both, &["--probe", "--mode beam"]);
    let wide = ["--history", "P0001", "--beam-width", "64", "--probe", "64"];
    refused("recommend", &wide, &["--probe: probe_width 64", "beam of 64", "0 for none"]);
    let narrow = ["--history", "P0001", "-k", "9", "--probe", "8"];
    refused("recommend", &narrow, &["--probe: probe_width 8", "the 9 items", "give 9 or more"]);
}

#[test]
fn a_probe_goes_first_where_the_beam_is_wide_and_changes_nothing() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let asked = |rest: &[&str]| -> Value {
        let args = [&["--history", "P0001", "-k", "3", "--json"], rest].concat();
        serde_json::from_str(&run(&with_recommender("recommend", &recommender, &args))).unwrap()
    };
    for (rest, width) in [
        (&["--beam-width", "128"][..], 16),
        (&["--beam-width", "127"], 0),
        (&["--beam-width", "127", "--probe", "4"], 4),
        (&["--widths", "128,128,200,128"], 16),
        (&["--widths", "128,128,100,128"], 0),
    ] {
        let got = asked(rest);
        assert_eq!(got["probe_width"], width, "{rest:?}");
        let without = asked(&["--beam-width", "128", "--probe", "0"]);
        assert_eq!(got["items"], without["items"], "{rest:?}");
    }
}

#[test]
fn an_answer_says_whether_it_is_proven() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let asked = |rest: &[&str]| run(&with_recommender("recommend", &recommender, rest));
    let document = |rest: &[&str]| -> Value {
        let args = [&["--history", "P0001", "-k", "5", "--json"], rest].concat();
        serde_json::from_str(&asked(&args)).unwrap()
    };
    let (wide, narrow) = (document(&[]), document(&["--beam-width", "1"]));
    assert_eq!((&wide["proven"], &wide["missed_at_most"]), (&json!(true), &Value::Null));
    assert_eq!(narrow["proven"], json!(narrow["missed_at_most"] == Value::Null));
    let proven = document(&["--beam-width", "5", "--mode", "proven"]);
    assert_eq!((&proven["proven"], &proven["mode"]), (&json!(true), &json!("proven")));
    assert_eq!(proven["items"], wide["items"]);
    // Some of these are not; all are told in one way.
    let text = |history: &str| {
        asked(&["--history", history, "-k", "3", "--beam-width", "3", "--probe", "0"])
    };
    let texts: Vec<String> = (1..13).map(|n| text(&format!("P{:04}", 300 * n))).collect();
    let told =
        texts.iter().filter(|text| text.contains("not proven: items that are missing score"));
    assert!((1..12).contains(&told.count()));
    for (words, says) in [
        (&["--prove-width", "200"][..], "give --mode proven with it"),
        (&["--mode", "proven", "--probe", "20"], "has its own"),
        (&["--mode", "proven", "--verify", "keys"], "give --mode draft with it"),
        (&["--mode", "proven", "--prove-width", "128"], "prove_width 128 is no wider"),
    ] {
        let args = [&["--history", "P0001"], words].concat();
        check_refused(&with_recommender("recommend", &recommender, &args), &[says]);
    }
}

#[test]
fn a_new_user_gets_recommendations_too() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let document =
        run_json(&with_recommender("recommend", &recommender, &["--history", "", "-k", "7"]));
    assert_eq!(document["items"].as_array().unwrap().len(), 7);
    let text = run(&with_recommender("recommend", &recommender, &["--history", "P0001, P0002"]));
    assert!(text.contains("after\n"), "{text}");
}

#[test]
fn catalogs_are_built_from_every_format_and_looked_into() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        (
            "a.json",
            r#"{"7": ["<a_1>", "<b_2>"], "8": ["<a_1>", "<b_0>"], "9": ["<a_1>", "<b_2>"]}"#,
        ),
        ("a.txt", "<a_1><b_2>\tTent\t7\n<a_1><b_0>\tMat\t8\n<a_1><b_2>\tTarp\t9\n"),
        (
            "a.jsonl",
            "{\"item_id\": 7, \"codes\": [1, 2]}\n{\"item_id\": 8, \"codes\": [1, 0]}\n{\"item_id\": 9, \"codes\": [1, 2]}\n",
        ),
        ("a.csv", "item_id,codes,price\n7,1 2,3.50\n8,1 0,2\n9,1 2,\n"),
    ];
    for (name, text) in files {
        let (items, out) = (write(dir.path(), name, text), dir.path().join("sub/out.palm"));
        let out = out.to_str().unwrap();
        let built = run_json(&["catalog", "build", &items, "--out", out]);
        assert_eq!(
            (&built["stats"]["num_items"], &built["stats"]["num_ids"]),
            (&3.into(), &2.into())
        );
        assert_eq!(run_json(&["catalog", "inspect", out])["largest_collision"], 2);
        let item = run_json(&["catalog", "inspect", out, "--item", "9"]);
        assert_eq!((&item["codes"], &item["shared_with"]), (&[1, 2].into(), &["7"].into()));
        let prefix = run_json(&["catalog", "inspect", out, "--prefix", "1"]);
        assert_eq!(prefix["children"].as_array().unwrap().len(), 2, "{name}");
        let shared = run_json(&["catalog", "inspect", out, "--prefix", "1,2"]);
        assert_eq!(shared["items"].as_array().unwrap().len(), 2);
        run(&["catalog", "inspect", out]);
        run(&["catalog", "inspect", out, "--prefix", ""]);
        run(&["catalog", "inspect", out, "--item", "7"]);
    }
}

#[test]
fn ids_may_be_shorter_where_the_model_has_an_end() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let format = std::fs::read_to_string(shop.path("model") + "/semantic_ids.json").unwrap();
    let mut format: Value = serde_json::from_str(&format).unwrap();
    format["end_tokens"] = json!([0]);
    let ending = path("ending");
    std::fs::create_dir(&ending).unwrap();
    write(ending.as_ref(), "semantic_ids.json", &format.to_string());
    let updates = write(dir.path(), "updates.jsonl", "{\"item_id\": \"A\", \"codes\": [1, 2]}\n");
    for (live, model) in [("whole", shop.path("model")), ("any", ending)] {
        for from in [None, Some(shop.path("shop.palm"))] {
            let dir = path(&format!("{live}-{}", from.is_some()));
            let from = from.iter().flat_map(|from| ["--from", from]);
            let args = ["catalog", "live", "init", &dir, "--model", &model].into_iter().chain(from);
            run(&args.collect::<Vec<_>>());
            let apply = ["catalog", "live", "apply", &dir, &updates];
            match live {
                "any" => assert_eq!(run_json(&apply)["upserted"], 1),
                _ => check_refused(&apply, &["\"A\"", "has 2 codes"]),
            }
        }
    }
}

#[test]
fn attributes_join_by_id() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "a.json", r#"{"7": [1], "8": [2]}"#);
    let attributes =
        write(dir.path(), "t.json", r#"{"7": {"title": "Tent"}, "5": {"title": "?"}}"#);
    let out = dir.path().join("a.palm");
    let out = out.to_str().unwrap();
    let args = ["catalog", "build", &items, "--attributes", &attributes, "--out", out];
    let built = run_json(&args);
    assert_eq!(built["attributes"]["items_without"], 1);
    assert_eq!(built["attributes"]["unknown_ids"], 1);
    assert_eq!(built["attributes"]["replaced_values"], 0);
    let item = run_json(&["catalog", "inspect", out, "--item", "7"]);
    assert_eq!(item["attributes"]["title"], "Tent");

    let titled = write(dir.path(), "b.jsonl", "{\"id\": 7, \"codes\": [1], \"title\": \"Old\"}\n");
    let args = ["catalog", "build", &titled, "--attributes", &attributes, "--out", out];
    assert_eq!(run_json(&args)["attributes"]["replaced_values"], 1);
    let notes = String::from_utf8(palmette(&args).stderr).unwrap();
    assert!(notes.contains("t.json replaced 1 values"), "{notes}");
    let table = write(dir.path(), "t.csv", "item_id,title\n7,Tent\n");
    let args = ["catalog", "build", &titled, "--attributes", &table, "--out", out];
    let built = run_json(&args);
    assert_eq!(built["attributes"]["items_without"], 0);
    let item = run_json(&["catalog", "inspect", out, "--item", "7"]);
    assert_eq!(item["attributes"]["title"], "Tent");
}

#[test]
fn a_build_does_not_overwrite_its_sources() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", "item_id,codes\n7,1\n");
    let attributes = write(dir.path(), "titles.json", r#"{"7": {"title": "Tent"}}"#);
    let detour = dir.path().join(".").join("items.csv");
    for out in [&items, &attributes, detour.to_str().unwrap()] {
        let args = ["catalog", "build", &items, "--attributes", &attributes, "--out", out];
        check_refused(&args, &["--out", "would be lost"]);
    }
    #[cfg(unix)]
    {
        let link = dir.path().join("link.palm");
        std::os::unix::fs::symlink(&items, &link).unwrap();
        let args = ["catalog", "build", &items, "--out", link.to_str().unwrap()];
        check_refused(&args, &["would be lost"]);
    }
    assert_eq!(std::fs::read_to_string(&items).unwrap(), "item_id,codes\n7,1\n");
}

#[test]
fn prefixes_are_taken_as_they_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    let tagged = write(dir.path(), "tagged.txt", "<a_1><b_2>\tTent\t7\n<a_1><b_0>\tMat\t8\n");
    let plain = write(dir.path(), "plain.csv", "item_id,codes\n7,1 2\n8,1 0\n");
    for (items, printed) in [(tagged, "<a_1><b_2>"), (plain, "1-2")] {
        let out = dir.path().join("out.palm");
        let out = out.to_str().unwrap();
        run(&["catalog", "build", &items, "--out", out]);
        assert!(run(&["catalog", "inspect", out, "--item", "7"]).contains(printed));
        for prefix in [printed, "1-2", "1,2", "1 2", " 1, 2"] {
            let shown = run_json(&["catalog", "inspect", out, "--prefix", prefix]);
            assert_eq!(shown["items"][0]["id"], "7", "{prefix}");
        }
        let other = ["catalog", "inspect", out, "--prefix", "<b_1><a_2>"];
        check_refused(&other, &["\"<b_1><a_2>\" is spelled", printed]);
        let bad = palmette(&["catalog", "inspect", out, "--prefix", "1-x"]);
        let message = String::from_utf8(bad.stderr).unwrap();
        assert!(message.starts_with("error: --prefix: \"x\" is no code: "), "{message}");
        assert!(!message.contains("invalid digit"), "{message}");
    }
}

/// An item id with an escape sequence and a title with a line end and another one.
#[test]
fn control_characters_of_files_stay_off_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let item = |id: &str, title: &str| {
        format!("{{\"id\": \"{id}\", \"codes\": [1, 2], \"title\": \"{title}\"}}\n")
    };
    let lines = item("7\\u001b[2J", "Tent\\n\\u001b]0;x\\u0007\\u009b") + &item("8", "Mat");
    let items = write(dir.path(), "items.jsonl", &lines);
    let attributes = write(dir.path(), "more.json", r#"{"\u001b[1m": {}}"#);
    let out = dir.path().join("out.palm");
    let out = out.to_str().unwrap();
    let mut printed = Vec::new();
    for args in [
        &["catalog", "build", &items, "--attributes", &attributes, "--out", out][..],
        &["catalog", "inspect", out],
        &["catalog", "inspect", out, "--item", "7\u{1b}[2J"],
        &["catalog", "inspect", out, "--item", "8"],
        &["catalog", "inspect", out, "--item", "9"],
        &["catalog", "inspect", out, "--prefix", ""],
        &["catalog", "inspect", out, "--prefix", "1,2"],
    ] {
        let Output { stdout, stderr, .. } = palmette(args);
        printed.extend([stdout, stderr]);
    }
    for text in &printed {
        let text = std::str::from_utf8(text).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains("Tent\n"), "{text}");
    }
    let exact = run_json(&["catalog", "inspect", out, "--item", "7\u{1b}[2J"]);
    assert_eq!(exact["attributes"]["title"], "Tent\n\u{1b}]0;x\u{7}\u{9b}");
}

#[test]
fn histories_hold_ids_with_commas_and_blanks() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let items = write(
        dir.path(),
        "items.csv",
        "item_id,codes\n\"a,b\",1 2 3 4\n\" c\",1 2 3 5\n7,1 2 3 6\n[x],2 2 3 6\n",
    );
    let out = dir.path().join("out.palm");
    let out = out.to_str().unwrap();
    run(&["catalog", "build", &items, "--out", out]);
    let model = shop.path("model");
    let recommend = ["recommend", "--model", &model, "--catalog", out, "-k", "1", "--history"];
    let history = r#"["a,b", " c", 7]"#;
    let document = run_json(&[&recommend[..], &[history]].concat());
    let ids: Vec<&Value> =
        document["history"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, ["a,b", " c", "7"]);
    assert_eq!(document["items"][0]["id"], "[x]");
    check_refused(&[&recommend[..], &["[x]"]].concat(), &["as a JSON list"]);
    check_refused(&[&recommend[..], &["[1.5]"]].concat(), &["`1.5`, expected an item"]);
    let commas = run_json(&[&recommend[..], &["a,b"]].concat());
    assert_eq!(commas["unknown"], json!(["a", "b"]));
}

#[test]
fn bad_catalogs_are_refused_by_line_and_value() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.palm");
    let out = out.to_str().unwrap();
    let lines = "{\"item_id\": 7, \"codes\": [1, 2]}\n{\"item_id\": 8, \"codes\": [1, -2]}\n";
    let negative = write(dir.path(), "negative.jsonl", lines);
    check_refused(&["catalog", "build", &negative, "--out", out], &["line 2", "-2"]);
    let twice = write(dir.path(), "twice.csv", "item_id,codes\n7,1\n7,2\n");
    check_refused(&["catalog", "build", &twice, "--out", out], &["line 3", "\"7\""]);
    let large = write(dir.path(), "large.csv", "item_id,codes\n7,1 2\n8,1 300\n");
    let args = ["catalog", "build", &large, "--out", out, "--codes-per-level", "256,256"];
    check_refused(&args, &["line 3", "code 300 at level 1", "below 256", "large.csv"]);
    let sizes = ["256"; 65].join(",");
    let args = ["catalog", "build", &large, "--out", out, "--codes-per-level", &sizes];
    check_refused(&args, &["--codes-per-level", "65 codebook sizes", "at most 64"]);
    let args = ["catalog", "build", &large, "--out", out, "--codes-per-level", "256,0"];
    check_refused(&args, &["--codes-per-level", "level 1 has size 0"]);
    let ragged = write(dir.path(), "ragged.csv", "item_id,codes\n7,1 2\n8,1\n");
    let args = ["catalog", "build", &ragged, "--out", out, "--levels", "2"];
    check_refused(&args, &["line 3", "has 1 codes where every item must have 2"]);
    let nameless = write(dir.path(), "items", "7;1 2\n");
    check_refused(&["catalog", "build", &nameless, "--out", out], &["--format", "index-json"]);
    check_refused(&["catalog", "build", "nowhere.csv", "--out", out], &["nowhere.csv"]);
    assert!(!Path::new(out).exists(), "a refused build writes nothing");

    check_refused(&["catalog", "inspect", out], &["out.palm", "`palmette catalog build`"]);
    check_refused(&["catalog", "inspect", &negative], &["not a catalog file"]);
    run(&["catalog", "build", &ragged, "--out", out]);
    check_refused(
        &["catalog", "inspect", out, "--item", "5"],
        &["\"5\" is not in the catalog", "8, 7"],
    );
    check_refused(&["catalog", "inspect", out, "--prefix", "4"], &["code 4 at level 0"]);
    check_refused(&["catalog", "inspect", out, "--prefix", "x"], &["\"x\" is no code"]);
    let mut bytes = std::fs::read(out).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(out, bytes).unwrap();
    check_refused(&["catalog", "inspect", out], &["is damaged"]);
}

#[test]
fn bad_requests_are_refused() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let check = |rest: &[&str], words: &[&str]| {
        check_refused(&with_recommender("recommend", &recommender, rest), words);
    };
    check(
        &["--history", "P0001,nothing", "--unknown", "error"],
        &["--history: item \"nothing\" is not in the catalog", "P0"],
    );
    check(&["--history", "P0001,,P0002"], &["an item id is empty"]);
    check(&["--history", "P0001", "-k", "0"], &["k is 0"]);
    check(&["--history", "P0001", "--beam-width", "0"], &["--beam-width: beam_width is 0"]);
    check(&["--history", "P0001", "--beam-width", "100000000"], &["from 1 to 65536"]);
    check(&["--history", "P0001", "--repeat", "0"], &["--repeat is 0"]);
    check(&["--history", "P0001", "--threads", "0"], &["--threads is 0"]);

    let dir = tempfile::tempdir().unwrap();
    let catalog = shop.path("shop.palm");
    let nowhere = ["recommend", "--model", "nowhere", "--catalog", &catalog, "--history", "P0001"];
    check_refused(&nowhere, &["nowhere", "semantic_ids.json"]);
    let other = write(dir.path(), "other.csv", "item_id,codes\n7,1 2 3 4\n8,1 2 3 64\n");
    let out = dir.path().join("other.palm");
    let out = out.to_str().unwrap();
    run(&["catalog", "build", &other, "--out", out]);
    let model = shop.path("model");
    let unfit = ["recommend", "--model", &model, "--catalog", out, "--history", "7"];
    check_refused(&unfit, &["do not fit", "code 64 at level 3", "\"8\""]);
    let errors = String::from_utf8(palmette(&unfit).stderr).unwrap();
    assert_eq!(errors.matches("code 64").count(), 1, "said once: {errors}");

    let unknown = write(dir.path(), "unknown.json", r#"{"u": ["P0001", "P9999"]}"#);
    let rest = ["--histories", unknown.as_str()];
    let args = with_recommender("eval", &recommender, &rest);
    check_refused(&args, &["user \"u\"", "\"P9999\"", "unknown.json"]);
    let short = write(dir.path(), "short.json", r#"{"u": ["P0001", "P0002"]}"#);
    let rest = ["--histories", short.as_str()];
    check_refused(&with_recommender("eval", &recommender, &rest), &["no history has the 3 items"]);
    let histories = shop.path("histories.json");
    let rest = ["--histories", &histories, "--split", "train"];
    check_refused(&with_recommender("eval", &recommender, &rest), &["\"train\" is no split"]);
}

#[test]
fn completions_and_help_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).contains("palmette"));
    }
    assert!(run(&["--help"]).contains("Start here"));
    assert!(run(&["catalog", "build", "--help"]).contains("index-json"));
    // The list of commands has the first line of each, the command's own help the rest too.
    let first_lines = ["items that follow a history", "on held-out items", "Serve a built-in shop"];
    let rests = ["sums of log-probabilities", "Leave-one-out", "The shop is invented"];
    let list = run(&["--help"]);
    for ((command, first), rest) in ["recommend", "eval", "demo"].iter().zip(first_lines).zip(rests)
    {
        assert!(list.contains(first) && !list.contains(rest), "{list}");
        let long = run(&[command, "--help"]);
        assert!(long.contains(first) && long.contains(rest), "{long}");
        assert!(!run(&[command, "-h"]).contains(rest));
    }
}

#[test]
fn a_width_for_each_level() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let of =
        |command: &str, rest: &[&str]| run_json(&with_recommender(command, &recommender, rest));
    let history = ["--history", "P0001,P0060", "-k", "5"];
    let even = of("recommend", &[&history[..], &["--beam-width", "64"]].concat());
    let same = of("recommend", &[&history[..], &["--widths", "64,64,64,64"]].concat());
    assert_eq!((&same["items"], &same["beam_width"]), (&even["items"], &even["beam_width"]));
    assert_eq!((&same["widths"], &even["widths"]), (&json!([64, 64, 64, 64]), &Value::Null));
    let narrow = of("recommend", &[&history[..], &["--widths", "5,5,5,6"]].concat());
    assert_eq!((narrow["items"].as_array().unwrap().len(), &narrow["beam_width"]), (5, &json!(6)));

    let histories = shop.path("histories.json");
    let asked = ["--histories", &histories, "--users", "30", "--threads", "2"];
    let even = of("eval", &[&asked[..], &["--beam-width", "20"]].concat());
    let same = of("eval", &[&asked[..], &["--widths", "20,20,20,20"]].concat());
    for part in ["metrics", "valid", "users", "beam_width"] {
        assert_eq!(even[part], same[part], "{part}");
    }

    let refused = |rest: &[&str], words: &[&str]| {
        check_refused(
            &with_recommender("recommend", &recommender, &[&history, rest].concat()),
            words,
        );
    };
    refused(&["--widths", "64,128"], &["--widths: 2 beam widths", "4 levels"]);
    refused(&["--widths", "64,0,8,8"], &["--widths: a width is 0; it must be from 1"]);
    refused(&["--widths", "64,70000,8,8"], &["70000; it must be from 1 to 65536"]);
    refused(&["--widths", "64,many,8,8"], &["--widths", "'many'"]);
    refused(&["--widths", ""], &["--widths"]);
    refused(&["--widths", "8,8,8,8", "--beam-width", "8"], &["cannot be used with"]);
}

#[test]
fn items_of_a_cold_start_are_asked_for() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let path = shop.path("histories.json");
    let histories: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let histories: Vec<Vec<&str>> = histories
        .as_object()
        .unwrap()
        .values()
        .map(|items| items.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect())
        .collect();
    let mut by_appearance: Vec<&str> = Vec::new();
    let mut has_appeared = std::collections::HashSet::new();
    for &item in histories.iter().flatten() {
        if has_appeared.insert(item) {
            by_appearance.push(item);
        }
    }
    let num_cold = (by_appearance.len() as f64 * 0.05).round() as usize;
    let cold = &by_appearance[by_appearance.len() - num_cold..];
    let asked: Vec<&Vec<&str>> =
        histories.iter().filter(|h| h.len() >= 3 && cold.contains(&h[h.len() - 1])).collect();
    assert!(!asked.is_empty());

    let rest = ["--histories", &path, "--cold-start", "0.05", "--beam-width", "20"];
    let document = run_json(&with_recommender("eval", &recommender, &rest));
    assert_eq!(document["cold_start"], 0.05);
    assert_eq!(document["cold_items"], num_cold);
    assert_eq!(document["items"], by_appearance.len());
    assert_eq!(document["users"], asked.len());
    assert_eq!(document["beam_width"], 20);
    let recall = |how: &str, k: usize| {
        document["metrics"][how][format!("recall@{k}")].as_f64().unwrap_or_else(|| panic!("{how}"))
    };
    for how in ["unconstrained", "catalog", "random", "constrained"] {
        assert!(recall(how, 1) <= recall(how, 5) && recall(how, 5) <= recall(how, 10), "{how}");
    }
    // Of those asked, a guess is one of the items that are held out and not yet seen.
    let guessed = asked.iter().map(|history| {
        let (target, before) = history.split_last().unwrap();
        let choices = cold.iter().filter(|item| !before.contains(item)).count();
        if before.contains(target) { 0.0 } else { 1.0 / choices as f64 }
    });
    let expected = guessed.sum::<f64>() / asked.len() as f64;
    assert!((recall("random", 1) - expected).abs() < 1e-12);
    // The built-in model has seen all items, so it does far better than a guess.
    assert!(recall("constrained", 10) > 2.0 * recall("random", 10), "{document}");
    assert!(recall("constrained", 10) >= recall("catalog", 10), "{document}");

    let text = run(&with_recommender("eval", &recommender, &[&rest[..], &["-k", "1"]].concat()));
    assert!(text.contains("Recall@1") && text.contains("constrained"), "{text}");

    let refused = |share: &str, words: &[&str]| {
        let rest = ["--histories", &path, "--cold-start", share];
        check_refused(&with_recommender("eval", &recommender, &rest), words);
    };
    refused("2", &["--cold-start", "is 2", "between 0 and 1"]);
    refused("0.0000001", &["histories.json", "that is 0 of the"]);
    refused("few", &["--cold-start", "few"]);
}

#[test]
fn what_rounding_changes() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let histories = shop.path("histories.json");
    let asked = ["--histories", &histories, "--users", "60", "--beam-width", "20"];
    let of = |rest: &[&str]| {
        run_json(&with_recommender("eval", &recommender, &[&asked[..], rest].concat()))
    };
    let document = of(&["--weights", "int8", "--overlap"]);
    assert_eq!((&document["users"], &document["beam_width"]), (&json!(60), &json!(20)));
    for weights in ["f32", "int8"] {
        let alone = of(&["--weights", weights, "--no-unconstrained"]);
        assert_eq!(document["metrics"][weights], alone["metrics"]["model"], "{weights}");
    }
    let share = |what: &str| document["overlap"][what].as_f64().unwrap();
    for k in [5, 10] {
        let (shared, same) = (share(&format!("shared@{k}")), share(&format!("same_order@{k}")));
        assert!(same <= shared && (0.8..1.0).contains(&shared), "{document}");
    }

    let rest = [&asked[..], &["--weights", "int8", "--overlap", "-k", "3"]].concat();
    let text = run(&with_recommender("eval", &recommender, &rest));
    assert!(text.contains("same order") && text.contains("first 3"), "{text}");
    let refused = |rest: &[&str], words: &[&str]| {
        check_refused(&with_recommender("eval", &recommender, &[&asked[..], rest].concat()), words);
    };
    refused(&["--overlap"], &["--overlap", "give --weights int8"]);
    let both = ["--weights", "int8", "--overlap", "--cold-start", "0.1"];
    refused(&both, &["--overlap", "--cold-start"]);
}

#[test]
fn rules_hold_in_answers_of_the_command() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.json");
    let file = path.to_str().unwrap();
    let args = ["--history", "P0001,P0060", "-k", "6", "--rules", file];
    let asked = |rules: &str| -> Value {
        std::fs::write(&path, rules).unwrap();
        run_json(&with_recommender("recommend", &recommender, &args))
    };
    let ids = |document: &Value| -> Vec<String> {
        let items = document["items"].as_array().unwrap().iter();
        items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let brands = |document: &Value| -> Vec<String> {
        let items = document["items"].as_array().unwrap().iter();
        let brand = |item: &Value| {
            let title = item["title"].as_str().unwrap();
            title.split(' ').next().unwrap().to_owned()
        };
        items.map(brand).collect()
    };
    let plain = asked("{}");
    assert_eq!((&plain["searches"], &plain["reranked"]), (&json!(1), &Value::Null));

    let capped = asked(r#"{"at_most": [{"attribute": "brand", "items": 1}]}"#);
    let mut distinct = brands(&capped);
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "{capped}");

    let last = ids(&plain)[5].clone();
    let boosted = asked(&format!(
        r#"{{"boosts": [{{"filter": {{"must": {{"ids": ["{last}"]}}}}, "add": 9}}], "must_exclude": ["{}"]}}"#,
        ids(&plain)[0]
    ));
    assert_eq!((&ids(&boosted)[0], &boosted["items"][0]["boost"]), (&last, &json!(9.0)));
    assert!(!ids(&boosted).contains(&ids(&plain)[0]));

    let pinned = asked(r#"{"must_include": ["P0500"], "diversity": {"lambda": 0.5, "pool": 20}}"#);
    assert!(ids(&pinned).contains(&"P0500".to_owned()), "{pinned}");
    assert_eq!(pinned["reranked"]["pool"], 20);
    let text = run(&with_recommender("recommend", &recommender, &args));
    assert!(text.contains("pinned") && text.contains("6 of the best 20 results"), "{text}");

    let refused = |rules: &str, words: &[&str]| {
        std::fs::write(&path, rules).unwrap();
        check_refused(&with_recommender("recommend", &recommender, &args), words);
    };
    refused(r#"{"at_mots": []}"#, &["rules.json", "\"at_mots\"", "did you mean \"at_most\"?"]);
    refused(r#"{"at_most": [{"attribute": "brant", "items": 1}]}"#, &["did you mean \"brand\"?"]);
    refused(r#"{"must_include": ["P0"]}"#, &["must_include names \"P0\"", "no item has this id"]);
    refused(r#"{"valid": {"from": "price"}}"#, &["\"price\", which is number", "a timestamp"]);
    let lost = ["--history", "P0001", "--rules", "no-such-file.json"];
    check_refused(
        &with_recommender("recommend", &recommender, &lost),
        &["--rules: no-such-file.json"],
    );
}

#[test]
fn a_question_is_a_body_and_options_go_before_it() {
    let shop = Shop::get();
    let recommender = shop.recommender();
    let dir = tempfile::tempdir().unwrap();
    let body = "\u{feff}{\"history\": [\"P0001\", [0, 2, 4, 0]], \"k\": 3, \"fields\": [\"price\"], \"target\": \"shop\", \"trace\": true}";
    let file = write(dir.path(), "question.json", body);
    let ask = |rest: &[&str]| {
        let rest = [&["--question", &file][..], rest].concat();
        run_json(&with_recommender("recommend", &recommender, &rest))
    };
    let answer = ask(&[]);
    let same = run_json(&with_recommender(
        "recommend",
        &recommender,
        &["--history", "P0001,0-2-4-0", "-k", "3", "--probe", "0"],
    ));
    let names = |answer: &Value| {
        let items = answer["items"].as_array().unwrap().iter();
        items.map(|item| item["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&answer), names(&same));
    assert_eq!(answer["items"][0]["attributes"].as_object().unwrap().len(), 1);
    assert_eq!(answer["levels"].as_array().unwrap().len(), 3);
    assert_eq!(ask(&["-k", "1"])["items"].as_array().unwrap().len(), 1);
    let first = &names(&answer)[0];
    for without in [first.clone(), format!("[{first:?}]")] {
        assert!(!names(&ask(&["--exclude", &without])).contains(first), "{without}");
    }
    let refused = |text: &str, rest: &[&str], words: &[&str]| {
        let file = write(dir.path(), "refused.json", text);
        let rest = [&["--question", &file][..], rest].concat();
        check_refused(&with_recommender("recommend", &recommender, &rest), words);
    };
    refused("{\"k\": 0, \"verify\": \"keys\"}", &[], &["k is 0", "; verify is about drafts"]);
    refused("{\"k\": 1, \"k\": 2}", &[], &["the member \"k\" stands twice"]);
    refused("{}", &["--exclude", "[[0, 1]]"], &["--exclude 0-1", "by id"]);
    refused(
        "{\"mode\": \"beam\", \"probe_width\": 20}",
        &[],
        &["probe_width is 20", "leave out one"],
    );
    refused("{\"mode\": \"draft\"}", &["--probe", "20"], &["--probe is about --mode beam"]);
    refused("{}", &["--rules", "-", "--question", "-"], &["cannot be used multiple times"]);
    let twice = ["--question", "-", "--rules", "-"];
    check_refused(&with_recommender("recommend", &recommender, &twice), &["read once"]);
}

#[test]
fn outputs_take_no_place_of_what_is_read() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (live, palm) = (path("live"), shop.path("shop.palm"));
    run(&["catalog", "live", "init", &live, "--from", &palm]);
    let before = run(&["catalog", "live", "status", &live]);
    for name in ["segment-0000000001.palmcat", "new.palm"] {
        let out = format!("{live}/{name}");
        let words = ["is the directory of a live catalog"];
        check_refused(&["catalog", "live", "export", &live, "--out", &out], &words);
        check_refused(&["catalog", "build", &shop.path("items.jsonl"), "--out", &out], &words);
    }
    assert_eq!(run(&["catalog", "live", "status", &live]), before);
    let updates = write(dir.path(), "updates.jsonl", "{\"delete\": \"P0001\"}\n");
    check_refused(
        &["catalog", "live", "apply", &live, &updates, "--dead-letters", &updates],
        &["--dead-letters", "is the file of updates"],
    );
    let grammar = write(dir.path(), "g.lark", "start: \"a\"\n");
    let compile = ["grammar", "compile", &grammar, "-o", &grammar];
    check_refused(&compile, &["is a file that is read"]);
    let rules = write(dir.path(), "rules.jsonl", "{\"must_exclude\": []}\n");
    let histories = shop.path("histories.json");
    let rest = ["--histories", &histories, "--rules", &rules, "--out", &rules];
    let args = shop.recommender();
    check_refused(&with_recommender("recommend", &args, &rest), &["is a file that is read"]);
}

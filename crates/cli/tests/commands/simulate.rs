//! `palmette simulate`: tables, JSON, plots, traces, recordings, and arguments that make no sense.

use serde_json::Value;

use crate::command::{check_refused, palmette_with_input, run, run_json, write};

#[test]
fn the_scheduler_bears_twice_its_capacity_and_a_queue_does_not() {
    let document = run_json(&["simulate", "--ablations", "--load", ".5,2", "--requests", "3000"]);
    assert!((40.0..45.0).contains(&document["capacity"].as_f64().unwrap()), "{document}");
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 14);
    let goodput = |policy: &str, load: f64| {
        let is_it = |run: &&Value| run["policy"] == policy && run["load"] == load;
        let run = runs.iter().find(is_it).unwrap_or_else(|| panic!("{policy} {load}: {document}"));
        run["goodput"].as_f64().unwrap() / document["capacity"].as_f64().unwrap()
    };
    assert!(goodput("FIFO, no limit", 2.0) < 0.1);
    assert!(goodput("FIFO, no limit", 0.5) > 0.45);
    assert!(goodput("the same, idle cores join", 2.0) > 0.95);
    for run in runs {
        let count = |name: &str| run[name].as_u64().unwrap();
        let ends = ["in_time", "late", "dropped", "refused"].map(count);
        assert_eq!(ends.iter().sum::<u64>(), count("offered"), "{run}");
    }
}

#[test]
fn tables_are_repeated_by_their_seed() {
    let args = ["simulate", "--rate", "20", "--requests", "500", "--seed"];
    let with = |seed| run(&[&args[..], &[seed]].concat());
    assert_eq!(with("3"), with("3"));
    assert_ne!(with("3"), with("4"));
    assert!(with("3").contains("2 streams on 2 cores, capacity"), "{}", with("3"));
}

#[test]
fn batches_have_a_row_for_each_quota() {
    let args = ["simulate", "--batch-ms", "17.6,27.8,47.7,93.2", "--quota-ms", "0,20"];
    let more = ["--rate", "60", "--requests", "1000", "--ablations"];
    let table = run(&[&args[..], &more].concat());
    for name in ["one at a time", "up to 8, quota 0 ms", "up to 8, quota 20 ms"] {
        assert!(table.contains(name), "{name}: {table}");
    }
}

#[test]
fn plots_are_well_formed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plots/load.svg");
    let plot = path.to_str().unwrap();
    let load = ["--load", ".3,1,3", "--requests", "300"];
    run(&[&["simulate", "--ablations", "--plot", plot][..], &load].concat());
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 14);
    assert_eq!(svg.matches("<circle").count(), 42);
    assert!(svg.contains("prefers-color-scheme: dark"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn traces_are_read_from_files_and_pipes() {
    let trace = "{\"at_ms\": 0, \"prompt_tokens\": 20}\n\n\
                 {\"at_ms\": 12.5, \"prompt_tokens\": 500, \"deadline_ms\": 10, \"rows\": 600}\n\
                 {\"at_ms\": 3, \"prompt_tokens\": 40, \"beam\": 16, \"class\": \"bulk\"}\n";
    let output = palmette_with_input(&["simulate", "--trace", "-", "--json"], trace);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &document["runs"][0];
    assert_eq!([&run["offered"], &run["in_time"], &run["refused"]], [3, 2, 1], "{document}");
    let dir = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("", "no requests"),
        (
            "{\"at_ms\": 0, \"prompt_tokens\": 2}\n{\"at_ms\": -1, \"prompt_tokens\": 2}",
            ":2: at_ms -1",
        ),
        ("{\"at_ms\": 0, \"prompt_tokens\": 2, \"beams\": 3}", "unknown field `beams`"),
        ("{\"at_ms\": 0}", "prompt_tokens"),
    ] {
        let path = write(dir.path(), "trace.jsonl", text);
        check_refused(&["simulate", "--trace", &path], &["trace.jsonl", words]);
    }
}

#[test]
fn recordings_replay_and_the_first_difference_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log.jsonl");
    let log = log.to_str().unwrap();
    let burst = ["simulate", "--load", "2", "--requests", "300", "--bursts", "--record", log];
    run(&burst);
    let replayed = run_json(&["simulate", "--replay", log]);
    assert_eq!(replayed["agrees"], true);
    assert!(replayed["events"].as_u64() > Some(300), "{replayed}");
    let text = std::fs::read_to_string(log).unwrap();
    // A scheduler that refuses something else.
    let other = text.replacen("\"admission\":true", "\"admission\":false", 1);
    let other = write(dir.path(), "other.jsonl", &other);
    check_refused(
        &["simulate", "--replay", &other],
        &["other.jsonl:", "the actions differ", "recorded", "now"],
    );
    // Cut off in the middle of a run, between lines, it agrees as far as it goes.
    let half: Vec<&str> = text.lines().take(101).collect();
    let half = write(dir.path(), "half.jsonl", &half.join("\n"));
    assert_eq!(run_json(&["simulate", "--replay", &half])["agrees"], true);
    let headless = text.split_once('\n').unwrap().1;
    let headless = write(dir.path(), "headless.jsonl", headless);
    check_refused(
        &["simulate", "--replay", &headless],
        &["headless.jsonl:1", "the first line must be"],
    );
    check_refused(&["simulate", "--record", log], &["--record writes one run, and there are 6"]);
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    for (args, words) in [
        (&["--rate", "0"][..], "--rate 0"),
        (&["--load", "nan"], "--load NaN"),
        (&["--deadline-ms=-5"], "--deadline-ms -5: must be from"),
        (&["--streams", "0"], "--streams 0: must be from 1"),
        (&["--streams", "5000"], "--streams 5000"),
        (&["--noise", "9"], "--noise 9"),
        (&["--prompt-tokens", "9,8"], "--prompt-tokens"),
        (&["--requests", "99999999999"], "--requests 99999999999"),
        (&["--rate", "1000000", "--seconds", "1000000"], "at most 5000000"),
        (&["--margin", ".5"], "--margin 0.5"),
        (&["--rate", "1", "--load", "1"], "cannot be used with"),
    ] {
        check_refused(&[&["simulate"], args].concat(), &[words]);
    }
    let dir = tempfile::tempdir().unwrap();
    let cost = write(dir.path(), "model.cost", "{\"c0\": 0.00001}");
    check_refused(&["simulate", "--cost", &cost], &["model.cost", "costs are in microseconds"]);
    let cost = write(dir.path(), "model.cost", "{\"c7\": 1}");
    check_refused(&["simulate", "--cost", &cost], &["model.cost: no cost model", "c7"]);
    let cost = write(dir.path(), "model.cost", "{\"c0\": 10000}");
    let document = run_json(&["simulate", "--cost", &cost, "--load", ".5", "--requests", "200"]);
    assert_eq!(document["capacity"], 200.0);
}

//! `palmette bench` as a user types it.

use serde_json::Value;

use crate::command::palmette;

/// A small catalog, without waiting for a large cache to be swept.
const SMALL: [&str; 13] = [
    "bench",
    "catalog",
    "--items",
    "1000",
    "--levels",
    "4",
    "--vocab",
    "100",
    "--samples",
    "5",
    "--sweep-bytes",
    "1000000",
    "--json",
];

#[track_caller]
fn report(args: &[&str]) -> Value {
    let output = palmette(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    assert!(errors.is_empty(), "--json leaves the error stream alone: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// One spread of times a level, each in order.
#[track_caller]
fn check_times(times: &Value) {
    let times = times.as_object().expect("an object");
    assert_eq!(times.keys().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    times.values().for_each(check_spread);
}

fn check_spread(spread: &Value) {
    let [min, p50, p99] = ["min", "p50", "p99"].map(|name| spread[name].as_f64().unwrap());
    assert!(0.0 < min && min <= p50 && p50 <= p99, "{spread}");
}

#[test]
fn the_report_has_every_field() {
    let report = report(&[SMALL.as_slice(), &["--peers", "--filter-share", "0.1"]].concat());
    let fields: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "items",
            "distinct_ids",
            "levels",
            "vocab",
            "dense",
            "beams",
            "distribution",
            "seed",
            "samples",
            "filter_share",
            "bytes_per_item",
            "index_bytes",
            "build_cpu_s",
            "build_wall_s",
            "peak_bytes",
            "step_us",
            "step_own_core_us",
            "line_reads_us",
            "step_hot_us",
            "kept_rows_us",
            "successors_us",
            "successors_own_core_us",
            "filtered_step_us",
            "filter_set",
            "branching",
            "sweep_bytes",
            "machine",
            "peers",
        ]
    );
    assert_eq!([&report["items"], &report["levels"], &report["vocab"]], [1000, 4, 100]);
    assert_eq!([&report["beams"], &report["samples"], &report["seed"]], [140, 5, 1]);
    assert_eq!(report["sweep_bytes"], 1_000_000);
    assert_eq!(report["distribution"], "uniform");
    let distinct = report["distinct_ids"].as_u64().unwrap();
    assert!((990..=1000).contains(&distinct), "{distinct}");
    let bytes = report["index_bytes"].as_f64().unwrap();
    assert_eq!(report["bytes_per_item"].as_f64().unwrap(), bytes / 1000.0);
    assert!(report["build_wall_s"].as_f64().unwrap() > 0.0);
    for times in ["step_us", "step_hot_us", "kept_rows_us", "successors_us", "filtered_step_us"] {
        check_times(&report[times]);
    }
    check_spread(&report["line_reads_us"]);
    for times in ["step_own_core_us", "successors_own_core_us"] {
        let levels: Vec<&Value> = report[times].as_object().unwrap().values().collect();
        let steps: Vec<u64> = levels.iter().map(|own| own["steps"].as_u64().unwrap()).collect();
        assert!(steps.len() == 4 && steps.iter().all(|&steps| steps <= 5), "{steps:?}");
        assert!(steps.iter().any(|&steps| steps > 0), "the fastest is one of them: {steps:?}");
        levels.into_iter().filter(|own| own["steps"] != 0).for_each(check_spread);
    }

    // 1,000 uniform items use all 100 first codes; each has about ten second codes, and deeper
    // prefixes have little more than one.
    let branching = report["branching"].as_object().unwrap();
    let branching: Vec<f64> = branching.values().map(|mean| mean.as_f64().unwrap()).collect();
    assert_eq!(branching[0], 100.0);
    assert!((5.0..20.0).contains(&branching[1]), "{branching:?}");
    assert!(branching[2..].iter().all(|mean| (1.0..2.0).contains(mean)), "{branching:?}");

    let peers = report["peers"].as_array().unwrap();
    let names: Vec<&Value> = peers.iter().map(|peer| &peer["name"]).collect();
    assert_eq!(
        names,
        [
            "csr_trie",
            "hash_trie",
            "ppv_exact",
            "ppv_top50",
            "hash_bitmap",
            "mixed_radix_set",
            "unconstrained"
        ]
    );
    for peer in peers {
        check_times(&peer["step_us"]);
        let keeps_rows = peer["name"] != "unconstrained";
        assert_eq!(peer["bytes_per_item"].as_f64().unwrap() > 0.0, keeps_rows, "{peer}");
        let exact = peer["exact"].as_bool().unwrap();
        assert_eq!(exact, peer.get("false_positive_rate").is_none(), "{peer}");
    }
    let rate = |peer: usize, name: &str| peers[peer][name].as_f64().unwrap();
    assert_eq!(rate(3, "false_positive_rate"), 0.0);
    assert!(rate(3, "false_negative_rate") > 0.2, "50 of 100 codes are never looked at");
    assert!((0.0..0.5).contains(&rate(4, "false_positive_rate")));
    assert_eq!(rate(4, "false_negative_rate"), 0.0);
    assert!(rate(5, "false_positive_rate") > 0.5, "only the last level is checked");
    assert_eq!(rate(6, "false_positive_rate"), 1.0);
}

#[test]
fn the_figures_that_are_no_times_depend_on_the_seed_alone() {
    let figures = |args: &[&str]| {
        let report = report(&[SMALL.as_slice(), args].concat());
        ["distinct_ids", "index_bytes", "branching"].map(|name| report[name].clone())
    };
    let power = ["--distribution", "power", "--threads", "1"];
    assert_eq!(figures(&power), figures(&["--distribution", "power", "--threads", "2"]));
    assert_ne!(figures(&power), figures(&[power.as_slice(), &["--seed", "2"]].concat()));
}

#[test]
fn a_comb_branches_as_asked() {
    let comb = ["--distribution", "comb", "--branching", "50"];
    let report = report(&[SMALL.as_slice(), &comb].concat());
    assert_eq!(report["branching"]["3"], 50.0);
    assert_eq!(report["distinct_ids"], 1000);
}

#[test]
fn people_get_a_table() {
    let args: Vec<&str> = SMALL.into_iter().filter(|arg| *arg != "--json").collect();
    let output = palmette(&[args.as_slice(), &["--peers"]].concat());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for words in ["1,000 items of 4 codes", "bytes an item", "successors", "ppv_top50", "not exact"]
    {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
}

#[test]
fn impossible_sizes_are_refused_by_name() {
    for (args, words) in [
        (&["--items", "0"][..], "0 items"),
        (&["--levels", "65"], "65 levels"),
        (&["--vocab", "0"], "vocabulary of 0"),
        (&["--beams", "0"], "0 beams"),
        (&["--samples", "0"], "0 samples"),
        (&["--threads", "0"], "0 threads"),
        (&["--dense", "5"], "5 dense levels"),
        (&["--filter-share", "0"], "filter share of 0"),
        (&["--filter-share", "nan"], "filter share of NaN"),
        (&["--branching", "8"], "--distribution comb"),
        (&["--distribution", "comb", "--branching", "101"], "branching of 101"),
        (&["--items", "4000000000", "--levels", "64"], "of memory"),
    ] {
        let base = ["bench", "catalog"].into_iter();
        let sizes = [("--items", "10"), ("--levels", "4"), ("--vocab", "100")];
        let missing = sizes.iter().filter(|(name, _)| !args.contains(name));
        let missing = missing.flat_map(|&(name, value)| [name, value]);
        let all: Vec<&str> = base.chain(missing).chain(args.iter().copied()).collect();
        let output = palmette(&all);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{all:?}: {errors}");
        assert!(errors.contains(words), "{all:?} lacks {words:?}: {errors}");
        assert!(output.stdout.is_empty(), "{all:?} printed a result");
    }
}

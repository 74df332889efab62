//! `palmette bench recommend` as a user types it.

use serde_json::{Value, json};

use crate::command::{check_refused, run, run_json};

/// A model and a catalog that are made in no time.
const SMALL: [&str; 16] = [
    "bench",
    "recommend",
    "--params=1m",
    "--hidden=32",
    "--inner=48",
    "--layers=2",
    "--heads=4",
    "--kv-heads=2",
    "--head-dim=8",
    "--prompt=20",
    "--beam=8",
    "--levels=3",
    "--codes=16",
    "--items=500",
    "--threads=1",
    "--repeat=2",
];

fn small(more: &[&str]) -> Vec<&'static str> {
    let replaced = |usual: &&&str| {
        let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
        more.iter().all(|option| name(option) != name(usual))
    };
    let usual = SMALL.iter().filter(replaced).copied();
    usual.chain(more.iter().map(|option| -> &'static str { option.to_string().leak() })).collect()
}

fn number(report: &Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or_else(|| panic!("{name} in {report}"))
}

#[test]
fn the_report_is_whole_and_agrees_with_itself() {
    let report = run_json(&small(&[]));
    let stages = ["prefill_ms", "decode_ms", "mask_ms", "topk_ms"];
    for stage in stages {
        assert!(number(&report, stage) > 0.0, "{stage}");
    }
    // Of two requests a median is the mean, so that the stages' sum is the mean of the requests'
    // sums.
    let sum: f64 = stages.iter().map(|stage| number(&report, stage)).sum();
    let total = number(&report, "total_ms");
    assert!(sum <= total * 1.0001, "{sum} ms of stages in {total}");
    assert!(number(&report, "min_total_ms") <= total);

    let (flops, gflops) = (number(&report, "flops"), number(&report, "gemm_gflops"));
    assert!((number(&report, "bound_ms") / (flops / gflops / 1e6) - 1.0).abs() < 1e-9);
    assert!((number(&report, "ratio") / (total / number(&report, "bound_ms")) - 1.0).abs() < 1e-9);
    assert!(number(&report, "prefill_flops") < flops);

    assert_eq!(report["kv_bytes_planned"], report["kv_bytes_used"]);
    // 19 tokens in panels of 16: 2 layers × 2 heads × 8 values, 32 keys and 19 rows of 16 values a
    // head.
    let prompt = 4 * 2 * (2 * 8 * 32 + 2 * 16 * 19);
    // 2 passes of 8 beams, each a key and a value of 2 × 8 numbers a layer; then where they lie.
    let beams = 4 * 2 * 8 * 2 * 2 * 16 + 2 * 8 * 8 + 8 * 3;
    assert_eq!(report["kv_bytes_used"], json!(prompt + beams));
    assert_eq!(report["kv_bytes_beams"], json!(beams));

    let shape = &report["model"];
    assert_eq!(shape["hidden_size"], 32);
    let layer = 32 * (4 + 2 * 2) * 8 + 4 * 8 * 32 + 3 * 32 * 48 + 2 * 32 + 2 * 8;
    assert_eq!(report["params"], json!(50 * 32 + 2 * layer + 32));
    assert_eq!(report["prompt_tokens"], 19);
    assert_eq!(report["rows"], json!([8, 8]));
    assert_eq!(report["widths"], json!([8, 8, 8]));
    for (name, value) in
        [("beam", 8), ("levels", 3), ("codes", 16), ("items", 500), ("threads", 1), ("repeat", 2)]
    {
        assert_eq!(report[name], value, "{name}");
    }
    assert_eq!(report["logits"], 16, "those of a level");
    assert!(report["machine"].is_object());
}

/// What was counted does not depend on how fast it went.
#[test]
fn widths_and_wholes_change_what_is_counted() {
    let counted = |more: &[&str]| run_json(&small(more));
    let (even, wide) = (counted(&[]), counted(&["--beam=16"]));
    assert_eq!(wide["rows"], json!([16, 16]));
    assert!(number(&wide, "flops") > number(&even, "flops"));
    assert_eq!(wide["prefill_flops"], even["prefill_flops"]);

    let scheduled: Vec<String> = small(&["--widths=4,16,2"])
        .into_iter()
        .filter(|o| *o != "--beam=8")
        .map(Into::into)
        .collect();
    let scheduled = run_json(&scheduled.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((&scheduled["rows"], &scheduled["beam"]), (&json!([4, 16]), &json!(2)));
    assert_eq!(scheduled["kv_bytes_planned"], scheduled["kv_bytes_used"]);
    let slots = |slots: u64, widest: u64| slots * 4 * 2 * 2 * 16 + 2 * widest * 8 + 8 * 3;
    assert_eq!(scheduled["kv_bytes_beams"], json!(slots(20, 16)));
    assert_eq!(wide["kv_bytes_beams"], json!(slots(32, 16)));

    let whole = counted(&["--normaliser=vocabulary"]);
    assert_eq!(whole["logits"], 50);
    assert!(number(&whole, "flops") > number(&even, "flops"));
}

#[test]
fn rounded_weights_take_less() {
    let [full, rounded] = ["f32", "int8"].map(|format| {
        let report = run_json(&small(&[&format!("--weights={format}")]));
        assert_eq!(report["weights"], format);
        report
    });
    for same in ["flops", "params", "kv_bytes_used", "rows"] {
        assert_eq!(full[same], rounded[same], "{same}");
    }
    // Columns fill up panels of 16 here.
    assert_eq!(number(&full, "weight_bytes"), 4.0 * (number(&full, "params") + 14.0 * 32.0));
    assert!(number(&rounded, "weight_bytes") * 2.0 < number(&full, "weight_bytes"));
}

#[test]
fn for_people() {
    let text = run(&small(&[]));
    for word in ["prefill", "decode", "mask", "top-k", "total", "bound", "beam 8", "as planned"] {
        assert!(text.contains(word), "{word:?} in {text}");
    }
    assert!(!text.contains("comes back"));
    let text = run(&small(&["--returning"]));
    assert!(text.contains("a user who comes back with one more event"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    check_refused(&small(&["--device=cuda:999"]), &["--device cuda:999"]);
    check_refused(&small(&["--device-memory=1GiB"]), &["--device-memory is of a device"]);
    check_refused(&small(&["--prompt=3"]), &["a prompt of 3 tokens", "shortest has 4"]);
    check_refused(&small(&["--weights=int4"]), &["int4", "f32, bf16, int8"]);
    check_refused(&small(&["--levels=0"]), &["levels is 0"]);
    check_refused(&small(&["--beam=0"]), &["beam is 0"]);
    check_refused(&small(&["--probe=4"]), &["probe of 4", "random weights", "--timings"]);
    check_refused(&small(&["--widths=1,2,3"]), &["cannot be used with", "--beam"]);
    let without_beam = |widths: &str| -> Vec<&'static str> {
        small(&[widths]).into_iter().filter(|option| *option != "--beam=8").collect()
    };
    check_refused(&without_beam("--widths=4,8"), &["2 beam widths", "3 levels"]);
    check_refused(&without_beam("--widths=4,x,8"), &["--widths", "'x'"]);
    check_refused(&without_beam("--widths=4,0,8"), &["beam is 0"]);
}

//! `palmette bench members` as a user types it.

use serde_json::Value;

use crate::command::{check_refused, run, run_json};
use crate::grammar::Files;

fn small(more: &[&'static str]) -> Vec<&'static str> {
    let small = ["bench", "members", "--walks=20", "--vocab=r50k_base"];
    small.into_iter().chain(more.iter().copied()).collect()
}

/// Names of what was timed, with how often.
fn counts(times: &Value) -> Vec<(&str, u64)> {
    let rows = times.as_array().expect("a list").iter();
    rows.map(|row| {
        (row["what"].as_str().expect("a name"), row["us"]["count"].as_u64().expect("a count"))
    })
    .collect()
}

#[test]
fn no_mask_differs_from_the_definition() {
    for kind in ["--kind=titles", "--kind=names", "--kind=skus", "--kind=urls"] {
        let report = run_json(&small(&[kind, "--strings=300", "--compare=400"]));
        let compared = &report["compared"];
        assert_eq!(compared["masks"], 400, "{kind}");
        assert_eq!(compared["different"], 0, "{kind}");
        // Places come again.
        let places = compared["places"].as_u64().expect("a count");
        assert!((20..400).contains(&places), "{kind}: {places}");
    }
}

#[test]
fn the_report_is_whole_and_agrees_with_itself() {
    let report = run_json(&small(&["--strings=500", "--compare=4"]));
    let lexicon = &report["lexicon"];
    let number = |name: &str| lexicon[name].as_f64().expect(name);
    assert!((490.0..=500.0).contains(&number("strings")), "{lexicon}");
    assert!((50.0..70.0).contains(&(number("text_bytes") / number("strings"))), "{lexicon}");
    let ratio = number("bytes") / number("text_bytes");
    assert!((number("bytes_per_text_byte") - ratio).abs() < 1e-9);
    let set = counts(&report["set"]);
    for run in ["all", "all, again", "1%", "1%, again"] {
        assert!(set.contains(&(format!("{run}: mask of the root").as_str(), 20)), "{set:?}");
    }
    // The same tokens again.
    let named = |what: &str| set.iter().find(|(name, _)| *name == what).expect(what).1;
    assert_eq!(named("1%: mask after tokens"), named("1%, again: mask after tokens"));
    let whole = counts(&report["whole"]);
    let names: Vec<_> = whole.iter().map(|(name, _)| *name).collect();
    assert!(!names.contains(&"plain string: masks within members"), "{names:?}");
    assert!(names.contains(&"1%, again: masks within members"), "{names:?}");
    let of = |what: &str| whole.iter().find(|(name, _)| *name == what).map_or(0, |row| row.1);
    // One mask a token.
    for run in ["plain string", "all", "1%, again"] {
        let masks =
            of(&format!("{run}: masks within members")) + of(&format!("{run}: other masks"));
        assert_eq!(masks, of(&format!("{run}: commits")), "{run}");
    }
}

#[test]
fn a_document_is_measured_by_each_unit() {
    let report = run_json(&small(&["--document-bytes=2000"]));
    let units: Vec<_> = report["units"].as_array().expect("a list").iter().collect();
    let names: Vec<_> = units.iter().map(|unit| unit["unit"].as_str().expect("a name")).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(units.iter().all(|unit| unit["members"].as_u64() > Some(10)), "{units:?}");
    assert!(run(&small(&["--document-bytes=2000"])).contains("sentences: "));
}

#[test]
fn other_engines_read_the_strings_as_an_enumeration() {
    let files = Files::new();
    let path = files.0.path().join("listed.jsonl").to_str().expect("UTF-8").to_owned();
    let written = run(&[&small(&["--strings=40", "--cases"])[..], &[&path]].concat());
    assert!(written.ends_with("1 case, 20 texts\n"), "{written}");
    let report =
        run_json(&["bench", "grammar", "--vocab=r50k_base", "--walks=1", "--cases", &path]);
    assert_eq!((&report["valid"], &report["valid_rejected"]), (&20.into(), &0.into()));
}

#[test]
fn people_get_tables() {
    let text = run(&small(&["--strings=100", "--compare=2"]));
    assert!(text.contains("0 of 2 masks differ from the definition"), "{text}");
    assert!(text.contains("bind under a new filter"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    check_refused(&small(&["--strings=0"]), &["there are 0 strings"]);
    check_refused(&small(&["--document-bytes=10"]), &["a document of 10 bytes is too short"]);
    check_refused(&small(&["--document-bytes=2000", "--strings=5"]), &["cannot be used with"]);
}

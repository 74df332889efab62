//! Which schemas compile, and whether their grammars accept the valid instances and no others.
//!
//! Instances are spelled as Python's `json.dumps` spells them by default. Two kinds of data:
//!
//! ```text
//! json_schema_bench schemas FILE.jsonl [NAME]   one {"name", "schema", "tests": [{"valid", "data"}]} a line
//! json_schema_bench suite FOLDER [KEYWORD]      the JSON Schema Test Suite: its drafts 2020-12 and 7, by file
//! json_schema_bench times FILE.jsonl [NAME]     how long the phases of compiling take, the best of five times
//! ```
//!
//! `--order schema` fixes the order of properties, `--relax` lets go of what no grammar can
//! express, `--strict` refuses all of it, `--list` prints every disagreement.
#![allow(clippy::print_stdout)]

// The tests read texts in the same way.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use palmette_grammar::{
    Budget, Recognizer, RecognizerLimits,
    engine::lexer::Lexer,
    frontends::json_schema::{
        Digits, Draft, Inexpressible, JsonSchemaError, JsonSchemaOptions, PropertyOrder, parse,
    },
};
use palmette_testkit::grammar::Machine;
use palmette_testkit::json::dumps;
use serde_json::Value;

fn main() {
    let mut options = JsonSchemaOptions::default();
    let mut words = Vec::new();
    let mut list = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--order" => {
                options.order = match arguments.next().as_deref() {
                    Some("schema") => PropertyOrder::Schema,
                    Some(max) => PropertyOrder::Any { max_tracked: max.parse().expect("a number") },
                    None => panic!("--order schema, or how many properties are tracked"),
                }
            }
            "--relax" => options.inexpressible = Inexpressible::Ignored,
            "--strict" => options.inexpressible = Inexpressible::Refused,
            "--list" => list = true,
            _ => words.push(argument),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["schemas", file, ref rest @ ..] => schemas(file, rest.first().copied(), list, &options),
        ["times", file, ref rest @ ..] => times(file, rest.first().copied(), &options),
        ["suite", folder, ref rest @ ..] => {
            suite(Path::new(folder), rest.first().copied(), list, options)
        }
        _ => panic!(
            "json_schema_bench schemas FILE [NAME] | suite FOLDER [KEYWORD] | times FILE [NAME]"
        ),
    }
}

/// Outcomes of the instances of some schemas.
#[derive(Default)]
struct Tally {
    schemas: usize,
    compiled: usize,
    valid: usize,
    valid_rejected: usize,
    invalid: usize,
    invalid_accepted: usize,
}

impl Tally {
    fn row(&self) -> String {
        format!(
            "{:5} {:8} {:6} {:8} {:7} {:8}",
            self.schemas,
            self.compiled,
            self.valid,
            self.valid_rejected,
            self.invalid,
            self.invalid_accepted
        )
    }
}

const HEADER: &str = "schemas compiled valid rejected invalid accepted";

fn schemas(file: &str, name: Option<&str>, list: bool, options: &JsonSchemaOptions) {
    let text = fs::read_to_string(file).expect("the file of schemas");
    let mut tally = Tally::default();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut times = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a line of JSON");
        let row_name = row["name"].as_str().expect("a name");
        if name.is_some_and(|name| !row_name.contains(name)) {
            continue;
        }
        let schema = row["schema"].to_string();
        let tests = row["tests"].as_array().expect("tests");
        let instances: Vec<_> =
            tests.iter().map(|test| (test["valid"] == true, &test["data"])).collect();
        match check(&schema, &instances, options, &mut tally) {
            Ok(outcome) => {
                times.push((outcome.front_end, outcome.tables, row_name.to_owned()));
                for (instance, valid) in outcome.wrong {
                    let verdict = if valid { "REJECTED" } else { "ACCEPTED" };
                    println!(
                        "{verdict} {row_name} {}",
                        clipped(&instance, if list { 4000 } else { 150 })
                    );
                }
            }
            Err(reason) => {
                reasons.entry(reason.kind).or_default().push(format!("{row_name}: {}", reason.text))
            }
        }
    }
    println!("{HEADER}\n{}", tally.row());
    for (kind, schemas) in reasons {
        println!("{} {kind}", schemas.len());
        for schema in schemas.iter().take(if list { 1000 } else { 3 }) {
            println!("    {}", clipped(schema, 300));
        }
    }
    times.sort();
    let at = |part: f64| times.get(((times.len().max(1) - 1) as f64 * part) as usize);
    for (label, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        if let Some((front_end, _, name)) = at(part) {
            println!("front end {label} {front_end:?} {name}");
        }
    }
    times.sort_by_key(|(_, tables, _)| *tables);
    for (label, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let at = times.get(((times.len().max(1) - 1) as f64 * part) as usize);
        if let Some((_, tables, name)) = at {
            println!("lexer and parser {label} {tables:?} {name}");
        }
    }
}

/// The phases of compiling, over all schemas that compile.
fn times(file: &str, name: Option<&str>, options: &JsonSchemaOptions) {
    const PHASES: [&str; 4] = ["front end", "lexer", "tables", "all"];
    let text = fs::read_to_string(file).expect("the file of schemas");
    let mut rows: Vec<([Duration; 4], String)> = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a line of JSON");
        let row_name = row["name"].as_str().expect("a name");
        if name.is_some_and(|name| !row_name.contains(name)) {
            continue;
        }
        let schema = row["schema"].to_string();
        if let Some(best) = best_of(5, || compile_times(&schema, options)) {
            rows.push((best, row_name.to_owned()));
        }
    }
    println!("{} schemas", rows.len());
    for (at, phase) in PHASES.iter().enumerate() {
        rows.sort_by(|(a, _), (b, _)| a[at].cmp(&b[at]));
        let part = |part: f64| rows[((rows.len() - 1) as f64 * part) as usize].0[at];
        let (p50, p90, p99) = (part(0.5), part(0.9), part(0.99));
        let sum: Duration = rows.iter().map(|(times, _)| times[at]).sum();
        println!("{phase:10} p50 {p50:.1?} p90 {p90:.1?} p99 {p99:.1?} sum {sum:.1?}");
        for (times, name) in rows.iter().rev().take(6) {
            println!("    {:.1?} {name}", times[at]);
        }
    }
}

/// The least of each phase, of so many times; `None` where the schema does not compile.
fn best_of<const N: usize>(
    times: usize,
    once: impl Fn() -> Option<[Duration; N]>,
) -> Option<[Duration; N]> {
    let mut best = once()?;
    for _ in 1..times {
        for (best, now) in best.iter_mut().zip(once()?) {
            *best = now.min(*best);
        }
    }
    Some(best)
}

fn compile_times(schema: &str, options: &JsonSchemaOptions) -> Option<[Duration; 4]> {
    let start = Instant::now();
    let grammar = Arc::new(parse(schema, options).ok()?);
    let parsed = start.elapsed();
    let (limits, mut budget) = (RecognizerLimits::default(), Budget::unlimited());
    let recognizer = Recognizer::new(Arc::clone(&grammar), &limits, &mut budget).ok()?;
    let all = start.elapsed();
    drop(recognizer);
    let start = Instant::now();
    Lexer::new(&grammar, &limits.lexer).ok()?;
    let lexer = start.elapsed();
    Some([parsed, lexer, (all - parsed).saturating_sub(lexer), all])
}

fn suite(folder: &Path, keyword: Option<&str>, list: bool, options: JsonSchemaOptions) {
    let drafts = [("draft2020-12", Draft::Draft202012), ("draft7", Draft::Draft7)];
    for (name, draft) in drafts {
        // The standard knows no limit on digits, and its tests have integers of 53.
        let mut options = JsonSchemaOptions { draft, digits: Digits::Any, ..options.clone() };
        remotes(&folder.join("remotes"), "http://localhost:1234", name, &mut options);
        println!("{name:40} {HEADER}");
        let mut total = Tally::default();
        for group in ["", "optional", "optional/format"] {
            // The drafts leave it open whether formats are asserted: the tests of each have their
            // own folder.
            options.formats = group == "optional/format";
            let folder = folder.join("tests").join(name).join(group);
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
            files.sort();
            for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "json")) {
                let stem = file.file_stem().expect("a name").to_string_lossy();
                if keyword.is_some_and(|keyword| *stem != *keyword) {
                    continue;
                }
                let mut tally = Tally::default();
                let mut notes = Vec::new();
                let text = fs::read_to_string(file).expect("a file of tests");
                let cases: Value = serde_json::from_str(&text).expect("JSON");
                for case in cases.as_array().expect("cases") {
                    let tests = case["tests"].as_array().expect("tests");
                    let instances: Vec<_> =
                        tests.iter().map(|test| (test["valid"] == true, &test["data"])).collect();
                    match check(&case["schema"].to_string(), &instances, &options, &mut tally) {
                        Ok(outcome) => {
                            for (instance, valid) in outcome.wrong {
                                let verdict = if valid { "REJECTED" } else { "ACCEPTED" };
                                notes.push(format!(
                                    "{verdict} {} {}",
                                    case["description"],
                                    clipped(&instance, 200)
                                ));
                            }
                        }
                        Err(reason) => {
                            notes.push(format!("{} {}", case["description"], reason.text))
                        }
                    }
                }
                println!("{:40} {}", format!("{group}/{stem}"), tally.row());
                if list {
                    notes.iter().for_each(|note| println!("    {}", clipped(note, 400)));
                }
                total.schemas += tally.schemas;
                total.compiled += tally.compiled;
                total.valid += tally.valid;
                total.valid_rejected += tally.valid_rejected;
                total.invalid += tally.invalid;
                total.invalid_accepted += tally.invalid_accepted;
            }
        }
        println!("{:40} {}", "all", total.row());
    }
}

/// Gives the suite's other schemas the URIs that its tests call them by.
fn remotes(folder: &Path, uri: &str, draft: &str, options: &mut JsonSchemaOptions) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let uri = format!("{uri}/{name}");
        if path.is_dir() {
            if !name.starts_with("draft") || name == draft {
                remotes(&path, &uri, draft, options);
            }
        } else if let Ok(text) = fs::read_to_string(&path) {
            options.resources.insert(uri, text);
        }
    }
}

struct Outcome {
    front_end: Duration,
    tables: Duration,
    /// Instances on which the grammar is wrong, and whether they are valid.
    wrong: Vec<(String, bool)>,
}

struct Reason {
    kind: String,
    text: String,
}

fn check(
    schema: &str,
    instances: &[(bool, &Value)],
    options: &JsonSchemaOptions,
    tally: &mut Tally,
) -> Result<Outcome, Reason> {
    tally.schemas += 1;
    let start = Instant::now();
    let parsed = parse(schema, options);
    let front_end = start.elapsed();
    let grammar = match parsed {
        Ok(grammar) => Some(grammar),
        // No grammar is the grammar of no value.
        Err(error) if error.is_empty() => None,
        Err(error) => return Err(reason(&error)),
    };
    let start = Instant::now();
    let machine = grammar
        .as_ref()
        .map(Machine::new)
        .transpose()
        .map_err(|text| Reason { kind: "lexer or parser".into(), text })?;
    let tables = start.elapsed();
    tally.compiled += 1;
    let mut wrong = Vec::new();
    for &(valid, data) in instances {
        let text = dumps(data);
        let accepted = machine.as_ref().is_some_and(|machine| machine.accepts(&text));
        if valid {
            tally.valid += 1;
            tally.valid_rejected += usize::from(!accepted);
        } else {
            tally.invalid += 1;
            tally.invalid_accepted += usize::from(accepted);
        }
        if accepted != valid {
            wrong.push((text, valid));
        }
    }
    Ok(Outcome { front_end, tables, wrong })
}

fn reason(error: &JsonSchemaError) -> Reason {
    let kind = if error.is_limit_exceeded() {
        "limit".into()
    } else {
        let kind = if error.is_unsupported() { "unsupported" } else { "invalid" };
        format!("{kind} {}", error.keyword().unwrap_or("schema"))
    };
    Reason { kind, text: error.to_string() }
}

fn clipped(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

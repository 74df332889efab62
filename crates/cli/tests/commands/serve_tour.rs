//! The tour of `docs/http.md`: its commands are run as they stand against a server, and what they
//! print is compared with the page.
//!
//! Between `<!-- tour -->` and `<!-- end -->` stand a block of `sh` and one with its output:
//! `json`, one or more documents laid out in any way; `http`, the status, headers that must be
//! there and a document; or `text`. What differs from run to run is not compared: ids of requests,
//! times, and the last digits of scores.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::server::Server;

const PAGE: &str = "docs/http.md";
/// The address that the page shows.
const SHOWN: &str = "http://127.0.0.1:8080";

/// A block of commands, the kind of its output, and the output.
struct Step {
    line: usize,
    commands: String,
    kind: String,
    output: String,
}

/// Blocks of code between a marker and the next end, each with its language and first line.
fn blocks(page: &str, marker: &str) -> Vec<Vec<(String, usize, String)>> {
    let marker = format!("<!-- {marker} -->");
    let mut found = Vec::new();
    let mut part: Option<Vec<(String, usize, String)>> = None;
    let mut is_open = false;
    for (number, line) in (1..).zip(page.lines()) {
        match (&mut part, line) {
            (None, _) if line == marker => part = Some(Vec::new()),
            (None, _) => {}
            (Some(_), "<!-- end -->") => found.extend(part.take()),
            (Some(blocks), _) if line.starts_with("```") => {
                is_open = !is_open;
                if is_open {
                    blocks.push((line[3..].to_owned(), number + 1, String::new()));
                }
            }
            (Some(blocks), _) if is_open => {
                if let Some((_, _, text)) = blocks.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            (Some(_), _) => {}
        }
    }
    assert!(part.is_none(), "{marker} has no end");
    found
}

fn steps(page: &str) -> Vec<Step> {
    let step = |blocks: Vec<(String, usize, String)>| {
        let [(sh, line, commands), (kind, _, output)] = <[_; 2]>::try_from(blocks)
            .unwrap_or_else(|blocks| panic!("a step has commands and output: {blocks:?}"));
        assert_eq!(sh, "sh", "line {line}");
        Step { line, commands, kind, output }
    };
    blocks(page, "tour").into_iter().map(step).collect()
}

fn documents(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    serde_json::Deserializer::from_str(text).into_iter().collect()
}

/// Equality of two texts, but for numbers of milliseconds.
fn same_text(shown: &str, printed: &str) -> bool {
    let masked = |text: &str| {
        let mut words: Vec<&str> = text.split(' ').collect();
        for place in 1..words.len() {
            if words[place] == "ms" && words[place - 1].parse::<f64>().is_ok() {
                words[place - 1] = "N";
            }
        }
        words.join(" ")
    };
    masked(shown) == masked(printed)
}

/// The first place at which a document differs from the shown one; `None` where it does not.
fn difference(place: &str, shown: &Value, printed: &Value) -> Option<String> {
    // Ids of requests and operations, and times; a length that depends on the machine.
    let varies = ["/request_id", "/operation", "/seconds", "/retry_after_ms", "/uptime_seconds"];
    let is_kind = std::mem::discriminant(shown) == std::mem::discriminant(printed);
    if is_kind && (varies.iter().any(|end| place.ends_with(end)) || place.contains("/timings_ms/"))
    {
        return None;
    }
    match (shown, printed) {
        (Value::Object(shown), Value::Object(printed)) => {
            let names =
                |of: &serde_json::Map<String, Value>| of.keys().cloned().collect::<Vec<_>>();
            if names(shown) != names(printed) {
                return Some(format!("{place}: {:?} and not {:?}", names(printed), names(shown)));
            }
            shown.iter().find_map(|(name, value)| {
                difference(&format!("{place}/{name}"), value, &printed[name.as_str()])
            })
        }
        (Value::Array(shown), Value::Array(printed)) if shown.len() == printed.len() => {
            let mut pairs = shown.iter().zip(printed).enumerate();
            pairs.find_map(|(at, (shown, printed))| {
                difference(&format!("{place}/{at}"), shown, printed)
            })
        }
        (Value::Number(shown), Value::Number(printed)) if place.ends_with("/score") => {
            let (shown, printed) = (shown.as_f64()?, printed.as_f64()?);
            ((shown - printed).abs() > 1e-3).then(|| format!("{place}: {printed} and not {shown}"))
        }
        (Value::String(shown), Value::String(printed)) if same_text(shown, printed) => None,
        _ if shown == printed => None,
        _ => Some(format!("{place}: {printed} and not {shown}")),
    }
}

fn json_difference(shown: &str, printed: &str) -> Option<String> {
    let shown = documents(shown).expect("the page's JSON");
    match documents(printed) {
        Ok(printed) => difference("", &Value::Array(shown), &Value::Array(printed)),
        Err(error) => Some(format!("it is no JSON: {error}")),
    }
}

fn http_difference(shown: &str, printed: &str) -> Option<String> {
    let printed = printed.replace('\r', "");
    let (head, body) = printed.split_once("\n\n")?;
    let (shown_head, shown_body) = shown.split_once("\n\n").expect("a head and a body");
    let mut heads = shown_head.lines();
    if heads.next() != head.lines().next() {
        return Some(format!("the status is {:?}", head.lines().next()));
    }
    for header in heads {
        let name = header.split(':').next().unwrap_or("");
        let given = head.lines().find(|line| line.split(':').next() == Some(name));
        let varies = ["x-request-id", "retry-after"].contains(&name);
        match given {
            Some(given) if varies || given == header => {}
            _ => return Some(format!("the header {name} is {given:?} and not {header:?}")),
        }
    }
    json_difference(shown_body, body)
}

/// The check itself: what differs is found, and what varies is not.
#[test]
fn differences_are_found() {
    let check = |shown, printed, differs: bool| {
        assert_eq!(json_difference(shown, printed).is_some(), differs, "{shown} {printed}");
    };
    check(r#"{"a": 1} {"b": 2}"#, r#"{"a":1}{"b":2}"#, false);
    check(r#"{"a": 1}"#, r#"{"a": 2}"#, true);
    check(r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, true);
    check(r#"[1]"#, r#"[1, 2]"#, true);
    check(r#"{"score": -2.5}"#, r#"{"score": -2.5000001}"#, false);
    check(r#"{"score": -2.5}"#, r#"{"score": -2.6}"#, true);
    check(r#"{"request_id": "a"}"#, r#"{"request_id": "b"}"#, false);
    check(r#"{"request_id": "a"}"#, r#"{"request_id": 7}"#, true);
    check(r#"{"timings_ms": {"total": 1}}"#, r#"{"timings_ms": {"total": 2}}"#, false);
    check(r#"{"detail": "in 5 ms"}"#, r#"{"detail": "in 703 ms"}"#, false);
    check(r#"{"detail": "in 5 ms"}"#, r#"{"detail": "in 5 s"}"#, true);
    check("{}", "oops", true);
}

#[test]
fn commands_of_the_page_print_what_it_shows() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no curl, so {PAGE} was not checked");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let dir = tempfile::tempdir().unwrap();
    // `palmette` is the built command.
    let bin = Path::new(env!("CARGO_BIN_EXE_palmette")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let bash = |commands: &str| {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", commands]).current_dir(dir.path());
        command.env("PATH", &path);
        command
    };

    // The command that starts the server, and those before it.
    let [start] = <[_; 1]>::try_from(blocks(&page, "start")).expect("one start");
    let (before, serve) = start[0].2.trim_end().rsplit_once('\n').expect("commands");
    let made = bash(before).output().expect("bash");
    assert!(made.status.success(), "{before}: {}", String::from_utf8_lossy(&made.stderr));
    // `exec`: the process that is ended is the server.
    let serve = format!("exec {serve} --listen 127.0.0.1:0 --json --drain-delay 0");
    let server = Server::start_by(&mut bash(&serve));

    let steps = steps(&page);
    assert!(steps.len() > 5, "{} steps", steps.len());
    for Step { line, commands, kind, output } in steps {
        let url = format!("http://{}", server.address);
        let ran = bash(&commands.replace(SHOWN, &url)).output().expect("bash");
        let printed = String::from_utf8(ran.stdout).expect("UTF-8");
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{PAGE}, line {line}: {errors}\n{commands}\n{printed}");
        let different = match kind.as_str() {
            "json" => json_difference(&output, &printed),
            "http" => http_difference(&output, &printed),
            "text" => (output.trim_end() != printed.trim_end()).then(|| "another text".to_owned()),
            other => panic!("{PAGE}, line {line}: {other:?} is no kind of output"),
        };
        if let Some(different) = different {
            panic!("{PAGE}, line {line}: {different}\nprinted:\n{printed}\nlog:\n{}", server.log());
        }
    }
}

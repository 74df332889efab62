//! `palmette loadtest` against a server of a few lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, run, run_json, write};

/// A server on a port of its own; bodies that came.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// `reply` gives status and body for the number of a request among all, and what it asks.
    fn start(reply: impl Fn(usize, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let server = Self { url, seen: Arc::clone(&seen) };
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream.unwrap(), &seen, &*reply));
            }
        });
        server
    }

    /// Items that follow from the history alone.
    fn steady() -> Self {
        Self::start(|_, body| (200, json!({"items": [{"id": body["history"], "score": -1.5}]})))
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Value>>,
    reply: &dyn Fn(usize, &Value) -> (u16, Value),
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(body.clone());
            seen.len() - 1
        };
        let (status, answer) = reply(number, &body);
        let media_type = if status == 200 { "json" } else { "problem+json" };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/{media_type}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all((head + &answer).as_bytes()).ok()?;
    }
}

fn histories(dir: &Path) -> String {
    write(dir, "h.json", r#"{"ann": ["A", "B"], "bob": ["C", [1, 2]], "cid": []}"#)
}

#[test]
fn rates_are_offered_and_reported() {
    // The first request is the one that looks whether the server answers.
    let server = Server::start(|number, _| match number % 4 {
        1 => (429, json!({"detail": "full"})),
        2 => (500, json!({"detail": "oh"})),
        _ => (200, json!({"items": [1, 2]})),
    });
    let dir = tempfile::tempdir().unwrap();
    let (histories, plot) = (histories(dir.path()), dir.path().join("a/load.svg"));
    let filter = r#"{"range": {"price": {"lt": 60}}}"#;
    let args = ["loadtest", "--url", &server.url, "--rate", "100,200", "--seconds", "0.4"];
    let more = ["--warmup", "0", "--histories", &histories, "-k", "3", "--seed", "5"];
    let asked = ["--filter", filter, "--deadline-ms", "9000", "--target", "shop"];
    let with = ["--with", r#"{"mode": "draft"}"#, "--plot", plot.to_str().unwrap()];
    let document = run_json(&[&args[..], &more, &asked, &with].concat());
    let rates = document["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 2);
    let mut all = 0;
    for (report, rate) in rates.iter().zip([100.0, 200.0]) {
        let count = |name: &str| report[name].as_u64().unwrap();
        assert_eq!(report["rate"], rate);
        assert_eq!(count("in_time"), count("short"));
        assert_eq!(count("sent"), count("offered"));
        assert_eq!(count("in_time") + count("status_429") + count("other_errors"), count("sent"));
        assert!(count("status_429") > 0 && count("other_errors") > 0);
        assert_eq!(report["errors"][0]["error"], "status 500: oh");
        assert!(report["latency_ms"]["p99"].as_f64() >= report["latency_ms"]["p50"].as_f64());
        assert!(report["driver"]["cpu_share"].as_f64().is_none_or(|share| share > 0.0));
        all += count("sent") as usize;
    }
    assert_eq!(document["histories"], 3);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len(), all + 1);
    let expected = json!({
        "target": "shop", "k": 3, "beam_width": 128, "filter": {"range": {"price": {"lt": 60}}},
        "deadline_ms": 9000, "mode": "draft", "history": ["C", {"codes": [1, 2]}],
    });
    assert!(seen.contains(&expected), "{:?}", seen[0]);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("measured"));
}

#[test]
fn tables_tell_of_answers_and_driver() {
    let server = Server::start(|number, _| match number {
        0 | 1 => (200, json!({"items": []})),
        _ => (418, json!({"detail": "tea\u{1b}pot"})),
    });
    let dir = tempfile::tempdir().unwrap();
    let histories = histories(dir.path());
    let args = ["loadtest", "--url", &server.url, "--sequential", "--histories", &histories];
    let text = run(&args);
    for words in
        ["in time/s", "refused p99", "waited", "one by one", "2 times: status 418: tea\u{fffd}pot"]
    {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(server.seen.lock().unwrap().len(), 4);
}

#[test]
fn answers_are_saved_and_compared() {
    let server = Server::steady();
    let dir = tempfile::tempdir().unwrap();
    let histories = histories(dir.path());
    let alone = dir.path().join("alone.jsonl");
    let alone = alone.to_str().unwrap();
    let common = ["loadtest", "--url", &server.url, "--histories", &histories];
    let sequential = ["--sequential", "--requests", "5", "--save-answers", alone];
    let document = run_json(&[&common[..], &sequential].concat());
    assert_eq!(
        (&document["rates"][0]["rate"], &document["rates"][0]["in_time"]),
        (&Value::Null, &json!(5))
    );
    let lines: Vec<Value> = std::fs::read_to_string(alone)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = |index: u64, history: Value| json!({"index": index, "status": 200, "items": [{"id": history, "score": -1.5}]});
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], expected(0, json!(["A", "B"])));
    assert_eq!(lines[4], expected(4, json!(["C", {"codes": [1, 2]}])));

    let load = ["--rate", "200", "--seconds", "0.3", "--warmup", "0.1", "--compare", alone];
    let document = run_json(&[&common[..], &load].concat());
    assert_eq!(document["comparison"]["compared"], document["rates"][0]["in_time"]);
    assert_eq!(document["comparison"]["different"], 0);

    // Another server: the second history has another answer.
    let other = Server::start(|_, body| {
        let score = if body["history"][0] == "C" { -1.25 } else { -1.5 };
        (200, json!({"items": [{"id": body["history"], "score": score}]}))
    });
    let common = ["loadtest", "--url", &other.url, "--histories", &histories];
    let output = palmette(&[&common[..], &load].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("request 1, items "), "{errors}");
    assert!(errors.contains("-1.25}]") && errors.contains("-1.5}]"), "{errors}");
    let output = palmette(&[&common[..], &load, &["--json"]].concat());
    assert!(!output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["comparison"]["first"]["index"], 1);
}

#[test]
fn curves_of_another_document_are_drawn_beside() {
    let server = Server::steady();
    let dir = tempfile::tempdir().unwrap();
    let histories = histories(dir.path());
    let runs = json!({"runs": [
        {"policy": "deadline first", "offered_rate": 50.5, "goodput": 49.0, "p99_ms": 20.0},
        {"policy": "deadline first", "offered_rate": 99.5, "goodput": 80.0, "p99_ms": 0.0},
    ]});
    let beside = write(dir.path(), "simulated.json", &runs.to_string());
    let plot = dir.path().join("load.svg");
    let plot = plot.to_str().unwrap();
    let args = ["loadtest", "--url", &server.url, "--rate", "50", "--seconds", "0.1", "--warmup"];
    let more = ["0", "--histories", &histories, "--plot", plot, "--beside"];
    run(&[&args[..], &more, &[&beside]].concat());
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.contains("deadline first") && svg.contains("stroke-dasharray=\"6 4\""), "{svg}");
    let none = write(dir.path(), "none.json", "{}");
    let words = ["none.json", "goodput", "palmette simulate --json"];
    check_refused(&[&args[..], &more, &[&none]].concat(), &words);
}

#[test]
fn what_cannot_be_tested_is_refused() {
    let server = Server::steady();
    let dir = tempfile::tempdir().unwrap();
    let histories = histories(dir.path());
    let empty = write(dir.path(), "empty.json", "{}");
    let key = write(dir.path(), "key", "two words\n");
    let check = |url: &str, rest: &[&str], words: &[&str]| {
        let args = ["loadtest", "--url", url];
        check_refused(&[&args[..], rest].concat(), words);
    };
    let load = |rate, seconds| ["--histories", &histories, "--rate", rate, "--seconds", seconds];
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("http://127.0.0.1:{port}");
    check(&nobody, &load("5", "1"), &[&nobody, "cannot be reached", "palmette serve"]);
    check("https://127.0.0.1:1", &load("5", "1"), &["--url", "https is not spoken"]);
    check("127.0.0.1:1", &load("5", "1"), &["--url", "http://"]);
    check(&server.url, &load("0", "1"), &["--rate", "the rate is 0;"]);
    check(&server.url, &load("5,NaN", "1"), &["--rate", "the rate is NaN;"]);
    check(&server.url, &load("1e9", "1"), &["--rate", "at most 100000"]);
    check(&server.url, &load("x", "1"), &["--rate"]);
    check(&server.url, &load("5", "-1"), &["--seconds"]);
    check(&server.url, &load("5", "1e9"), &["--seconds", "86400"]);
    check(&server.url, &["--histories", &histories], &["--rate"]);
    let none = ["--histories", &empty, "--rate", "5"];
    check(&server.url, &none, &["empty.json has no histories"]);
    let with = |option, value| [&load("5", "1")[..], &[option, value]].concat();
    check(&server.url, &with("--with", "[]"), &["--with", "JSON object"]);
    check(&server.url, &with("--with", r#"{"k": 5}"#), &["--with has \"k\""]);
    check(&server.url, &with("--filter", r#"{"rang": 1}"#), &["rang"]);
    check(&server.url, &with("--key-file", &key), &["--key-file", "visible ASCII"]);
    check(&server.url, &with("--connections", "0"), &["connections is 0"]);
    check(&server.url, &with("--deadline-ms", "20000"), &["deadline is 20000 ms", "10000 ms"]);
    check(&server.url, &with("--plot", &histories), &["--plot", "it would be lost"]);
    check(&server.url, &with("--compare", &empty), &["--compare", "line 1"]);
    assert!(server.seen.lock().unwrap().is_empty(), "nothing is sent before all is well");
}

/// Ctrl-C: what has been measured is reported, and in one JSON document.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_a_report() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let server = Server::steady();
    let dir = tempfile::tempdir().unwrap();
    let histories = histories(dir.path());
    let child = Command::new(env!("CARGO_BIN_EXE_palmette"))
        .args(["loadtest", "--url", &server.url, "--rate", "100", "--seconds", "600", "--json"])
        .args(["--warmup", "0", "--histories", &histories])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while server.seen.lock().unwrap().len() < 10 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && began.elapsed() < Duration::from_secs(120));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["interrupted"], true);
    assert!(document["rates"][0]["in_time"].as_u64() >= Some(9), "{document}");
}

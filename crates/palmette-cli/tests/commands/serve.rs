//! `palmette serve` and `palmette demo` as processes: starting, answering, refusing bad flags, and ending.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::command::{check_refused, write};
use crate::server::{Server, ask, shop_args};
use crate::shop::Shop;

/// Questions of which each takes a good part of a second, all different.
fn long_batch(count: usize) -> Value {
    let history: Vec<String> = (1..=30).map(|n| format!("P{n:04}")).collect();
    let requests: Vec<Value> = (0..count).map(|n| json!({"k": 900 + n % 100})).collect();
    json!({"defaults": {"history": history, "beam_width": 4096}, "requests": requests})
}

/// Sends a batch in a thread; returns once the scheduler has it.
fn begin(server: &Server, count: usize) -> mpsc::Receiver<std::io::Result<(u16, Value)>> {
    let (sender, answer) = mpsc::channel();
    let address = server.address.clone();
    thread::spawn(move || {
        let body = long_batch(count).to_string();
        // A test that failed meanwhile does not wait for it.
        _ = sender.send(ask(&address, "POST", "/v1/recommend/batch", Some(&body)));
    });
    server.wait_until("the batch is queued", || server.metric("palmette_queue_requests") > 0.0);
    answer
}

#[test]
fn a_shop_is_served_and_what_was_admitted_is_answered_before_the_end() {
    let mut server = Server::start(&shop_args(&["--drain-delay", "0", "--json"]));
    let body = json!({"history": ["P0001", "P0060"], "k": 3, "fields": ["title"]});
    let (status, answer) = server.post("/v1/recommend", &body);
    assert_eq!(status, 200, "{answer}");
    let ids: Vec<&str> =
        answer["items"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["P0086", "P0074", "P0090"]);
    assert!(answer["items"][0]["fields"]["title"].is_string());
    assert_eq!(server.get("/readyz").0, 200);

    let answer = begin(&server, 8);
    server.signal("TERM");
    server.wait_until("new connections are refused", || !server.takes_connections());
    let (status, answer) = answer.recv().unwrap().expect("an answer, though the server ends");
    let statuses: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!((status, statuses), (200, vec![&json!(200); 8]));
    assert_eq!(server.ended(), Some(0), "{}", server.log());
}

#[test]
fn before_a_drain_balancers_have_time_to_notice() {
    let mut server = Server::start(&shop_args(&["--drain-delay", "600", "--json"]));
    server.signal("INT");
    server.wait_until("it is not ready", || server.get("/readyz").0 == 503);
    let (status, health) = server.get("/healthz");
    assert_eq!((status, &health["reasons"]), (503, &json!(["draining"])));
    // Until the delay is over requests are answered as before.
    assert_eq!(server.post("/v1/recommend", &json!({"history": ["P0001"], "k": 1})).0, 200);
    assert_eq!(server.get("/livez").0, 200);

    // A second signal waits neither for the delay nor for what is being answered.
    let answer = begin(&server, 200);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    assert!(!answer.recv().unwrap().is_ok_and(|(status, _)| status == 200), "it was waited for");
    assert!(server.log().contains("ended at once"), "{}", server.log());
}

#[test]
fn the_demonstration_is_a_server() {
    let mut server =
        Server::start(&["demo", "--listen", "127.0.0.1:0", "--json"].map(str::to_owned));
    let (status, answer) = server.post("/v1/recommend", &json!({"history": ["P0001"], "k": 3}));
    assert_eq!((status, answer["items"].as_array().map(Vec::len)), (200, Some(3)), "{answer}");
    // Its stock changes.
    server.wait_until("the stock changes", || server.metric("palmette_catalog_generation") > 0.0);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
}

#[test]
fn flags_that_cannot_be_served_are_refused() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let model = shop.path("model");
    let catalog = format!("shop={}", shop.path("shop.palm"));
    let none = dir.path().join("none");
    let none = none.to_str().unwrap();
    let text = write(dir.path(), "text", "no catalog");
    let check = |args: &[&str], words: &[&str]| check_refused(&[&["serve"], args].concat(), words);
    let pair = ["--model", &model, "--catalog", &catalog, "--listen", "127.0.0.1:0"];
    let with = |more: &[&str], words: &[&str]| check(&[&pair, more].concat(), words);

    check(&[], &["--model", "--catalog", "--data-dir"]);
    check(&["--model", none, "--catalog", &catalog], &[none, "No such file"]);
    check(&["--model", &model, "--catalog", none], &[none, "No such file"]);
    check(&["--model", &model, "--catalog", &text], &[&text]);
    check(&["--model", "..", "--catalog", &catalog], &["\"..\"", "NAME="]);
    check(&["--model", "a b=x", "--catalog", &catalog], &["\"a b\"", "A-Z a-z 0-9"]);
    let second = format!("other={model}");
    check(
        &["--model", &model, "--model", &second, "--catalog", &catalog],
        &["2 models and 1 catalogs", "--target ALIAS=MODEL:CATALOG"],
    );
    check(
        &["--model", &model, "--model", &model, "--catalog", &catalog],
        &["--model", "\"model\" twice", "NAME="],
    );
    with(&["--catalog", &catalog], &["--catalog", "\"shop\" twice", "NAME="]);
    with(&["--target", "a=model:shop", "--target", "a=model:shop"], &["--target", "\"a\" twice"]);
    with(&["--target", "a=none:shop"], &["no model \"none\"", "there are model"]);
    with(&["--target", "a=model:none"], &["no catalog \"none\"", "there are shop"]);
    with(&["--target", "a"], &["--target a", "ALIAS=MODEL:CATALOG"]);
    with(&["--target", "a/b=model:shop"], &["\"a/b\"", "A-Z a-z 0-9"]);
    with(&["--deadline-ms", "40000"], &["40000", "--max-deadline-ms 30000"]);
    with(&["--deadline-ms", "0"], &["--deadline-ms is 0"]);
    with(&["--streams", "0"], &["--streams is 0", "1 to 1024"]);
    with(&["--bulk-share", "NaN"], &["--bulk-share is NaN", "0 to 1"]);
    with(&["--overload-status", "450"], &["450", "429", "503"]);
    with(&["--memory-mb", "9999999999999"], &["--memory-mb", "9999999999999"]);
    with(&["--answer-cache-mb", "9999999999999"], &["--answer-cache-mb", "9999999999999"]);
    with(&["--log", "palmette=loud"], &["--log palmette=loud", "error, warn, info, debug"]);
    for address in ["8080", "localhost", "127.0.0.1:99999", "example.org:80"] {
        check(
            &["--model", &model, "--catalog", &catalog, "--listen", address],
            &["--listen", address],
        );
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    check(
        &["--model", &model, "--catalog", &catalog, "--listen", &taken],
        &[&taken, "in use", "--listen 127.0.0.1:0"],
    );
}

//! `palmette serve` and `palmette demo` as processes: starting, answering, refusing bad flags, and
//! ending.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::command::{check_refused, run, run_json, write};
use crate::generate::Model;
use crate::server::{Server, ask, ask_with, shop_args};
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

/// Keys are read again on SIGHUP, which ends a server that has none.
#[test]
fn keys_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let keys = keys.to_str().unwrap();
    let key = run_json(&["key", "web", "--add-to", keys])["key"].as_str().unwrap().to_owned();
    let mut server = Server::start(&shop_args(&["--drain-delay", "0", "--json", "--keys", keys]));
    let asks = || server.post_with(&key, "/v1/recommend", &json!({"history": ["P0001"], "k": 1})).0;
    assert_eq!((asks(), server.post("/v1/recommend", &json!({})).0), (200, 401));
    std::fs::write(keys, "# nobody\n").unwrap();
    assert_eq!(asks(), 200, "before it is told");
    server.signal("HUP");
    server.wait_until("the key is taken away", || asks() == 401);
    std::fs::write(keys, "nonsense\n").unwrap();
    server.signal("HUP");
    server.wait_until("the file is refused", || server.log().contains("keys are as they were"));
    assert_eq!((asks(), server.get("/readyz").0), (401, 200));
    assert!(!server.log().contains(&key));
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());

    let mut server = Server::start(&shop_args(&["--drain-delay", "0", "--json"]));
    server.signal("HUP");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
}

/// Acknowledged batches are there after the process was killed while it wrote.
#[test]
fn updates_outlive_a_process_that_is_killed() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let live = live.to_str().unwrap();
    let (model, from) = (shop.path("model"), shop.path("shop.palm"));
    run(&["catalog", "live", "init", live, "--from", &from, "--model", &model]);
    let catalog = format!("shop={live}");
    let args = ["serve", "--model", &model, "--catalog", &catalog, "--listen", "127.0.0.1:0"];
    let args: Vec<String> = args.iter().chain(&["--json"]).map(|&arg| arg.to_owned()).collect();
    let acknowledged: Arc<Mutex<Vec<(usize, u64)>>> = Arc::default();
    for round in 1..=3 {
        let mut server = Server::start(&args);
        assert_eq!(server.get("/readyz").0, 200);
        check_acknowledged(&server, &acknowledged.lock().unwrap());
        let (address, seen) = (server.address.clone(), Arc::clone(&acknowledged));
        let writer = thread::spawn(move || {
            for number in round * 1_000_000.. {
                let item = json!({"item_id": format!("N{number}"), "codes": [0, 2, 4, 0]});
                let patch = json!({"item_id": "P0060", "stock": number});
                let batch = format!("{item}\n{patch}");
                match ask(&address, "POST", "/v1/catalogs/shop/items", Some(&batch)) {
                    Ok((200, applied)) => {
                        let generation = applied["generation"].as_u64().unwrap();
                        seen.lock().unwrap().push((number, generation));
                    }
                    // Killed: whether this batch is there is not known.
                    Err(_) => return,
                    Ok(other) => panic!("{other:?}"),
                }
            }
        });
        server.wait_until("updates are acknowledged", || {
            acknowledged.lock().unwrap().len() >= 20 * round
        });
        server.kill();
        writer.join().unwrap();
    }
    let server = Server::start(&args);
    check_acknowledged(&server, &acknowledged.lock().unwrap());
    assert_eq!(server.post("/v1/recommend", &json!({"history": ["P0060"], "k": 1})).0, 200);
}

#[track_caller]
fn check_acknowledged(server: &Server, acknowledged: &[(usize, u64)]) {
    let Some(&(last, generation)) = acknowledged.last() else { return };
    let now = server.get("/v1/catalogs/shop").1["generation"].as_u64().unwrap();
    // The batch that was on its way when the process was killed may be there too.
    assert!(now == generation || now == generation + 1, "{now}, acknowledged {generation}");
    for (number, _) in acknowledged {
        let (status, item) = server.get(&format!("/v1/catalogs/shop/items/N{number}"));
        assert_eq!((status, &item["codes"]), (200, &json!([0, 2, 4, 0])), "N{number}");
    }
    let stock = server.get("/v1/catalogs/shop/items/P0060").1["attributes"]["stock"].as_f64();
    let is_last = stock == Some(last as f64) || stock == Some((last + 1) as f64);
    assert!(is_last, "{stock:?} of {last}");
}

/// Its own page may ask, pages of others may not.
#[track_caller]
fn check_pages(server: &Server) {
    let own = format!("http://{}", server.address);
    for (path, origin, wanted) in [
        ("/", &own[..], 200),
        ("/v1/targets", &own, 200),
        ("/v1/targets", "http://localhost:8599", 403),
        ("/", "null", 403),
    ] {
        let header = format!("origin: {origin}\r\n");
        let (status, _) = ask_with(&server.address, "GET", path, &header, None).unwrap();
        assert_eq!(status, wanted, "{path} by {origin}");
    }
}

/// Names of the command line are hosts of requests without keys.
#[test]
fn a_server_answers_by_the_names_it_was_told() {
    let more = ["--json", "--server-name", "shop.internal"];
    let mut args = shop_args(&more);
    let place = args.iter().position(|arg| arg == "127.0.0.1:0").unwrap();
    args[place] = "localhost:0".to_owned();
    let server = Server::start(&args);
    for (host, wanted) in [("localhost", 200), ("shop.internal:80", 200), ("other.internal", 403)] {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        let head = format!("GET /livez HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {wanted}")), "{host}: {answer}");
    }
}

#[test]
fn the_demonstration_is_a_server() {
    let mut server =
        Server::start(&["demo", "--listen", "127.0.0.1:0", "--json"].map(str::to_owned));
    let (status, answer) = server.post("/v1/recommend", &json!({"history": ["P0001"], "k": 3}));
    assert_eq!((status, answer["items"].as_array().map(Vec::len)), (200, Some(3)), "{answer}");
    check_pages(&server);
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
    check(
        &["--model", &format!("a b={model}"), "--catalog", &catalog],
        &["\"a b\"", "A-Z a-z 0-9"],
    );
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
    let (small, named) = (Model::new(), Model::of("tied_f32", ["<|tool|>", "</s>"]));
    let smol = format!("smol={}", small.path());
    let texts = |more: &[&str], words: &[&str]| {
        check(&[&["--text", &smol, "--listen", "127.0.0.1:0"], more].concat(), words);
    };
    let draft = ["--text-draft-model", &smol];
    texts(&["--text-draft-model", "x=y"], &["--text-draft-model x=y", "no text model \"x\""]);
    texts(&["--text-draft-model", "y"], &["--text-draft-model y", "it is MODEL=DIR"]);
    texts(&[draft, draft].concat(), &["--text-draft-model gives \"smol\" twice"]);
    texts(
        &["--text-draft-model", "smol=nowhere"],
        &["--text-draft-model smol=nowhere", "nowhere: not a folder"],
    );
    texts(
        &[&draft[..], &["--text-draft-tokens", "0"]].concat(),
        &["--text-draft-tokens is 0", "the draft model of smol", "leave --text-draft-model out"],
    );
    // A model of recommendations is none of texts.
    let of_items = format!("smol={model}");
    texts(&["--text-draft-model", &of_items], &[&format!("--text-draft-model {of_items}")]);
    texts(
        &["--text-draft-model", &format!("smol={}", named.path())],
        &["smol: the draft model", "token 95 is the special token <|tool|> there"],
    );
    with(&["--target", "a/b=model:shop"], &["\"a/b\"", "A-Z a-z 0-9"]);
    with(&["--deadline-ms", "40000"], &["40000", "--max-deadline-ms 30000"]);
    with(&["--deadline-ms", "0"], &["--deadline-ms is 0"]);
    with(&["--streams", "0"], &["--streams is 0", "1 to 1024"]);
    with(&["--bulk-share", "NaN"], &["--bulk-share is NaN", "0 to 1"]);
    with(&["--overload-status", "450"], &["450", "429", "503"]);
    with(&["--memory-mb", "9999999999999"], &["--memory-mb", "9999999999999"]);
    with(&["--answer-cache-mb", "9999999999999"], &["--answer-cache-mb", "9999999999999"]);
    with(&["--log", "palmette=loud"], &["--log palmette=loud", "error, warn, info, debug"]);
    let absent = dir.path().join("absent").to_str().unwrap().to_owned();
    with(&["--keys", &absent], &["absent", "No such file"]);
    let keys = write(dir.path(), "keys", "web recommend * s3cret\n");
    let output = crate::command::palmette(&[&["serve"], &pair[..], &["--keys", &keys]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("keys, line 1") && !errors.contains("s3cret"), "{errors}");
    for address in
        ["8080", "localhost", "127.0.0.1:99999", "a b:80", "localhost:http", "https://localhost:80"]
    {
        check(
            &["--model", &model, "--catalog", &catalog, "--listen", address],
            &["--listen", address, "127.0.0.1:8080"],
        );
    }
    check(
        &["--model", &model, "--catalog", &catalog, "--listen", "no-such-host.invalid:80"],
        &["--listen", "no-such-host.invalid", "looked up"],
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    check(
        &["--model", &model, "--catalog", &catalog, "--listen", &taken],
        &[&taken, "in use", "--listen 127.0.0.1:0"],
    );
}

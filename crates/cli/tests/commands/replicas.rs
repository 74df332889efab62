//! Several servers over one log in a directory, as processes: killed, paused and wiped while
//! clients write. The long run over other stores is `lab/checks/replicas/chaos.py`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::check_refused;
use crate::server::{Server, ask, ask_with};
use crate::shop::Shop;

fn args(dir: &Path, log: &str, name: &str, more: &[String]) -> Vec<String> {
    let (log, data) = (format!("file://{}", dir.join(log).display()), dir.join(name));
    let data = data.to_str().unwrap().to_owned();
    let args = ["serve", "--shared-log", &log, "--data-dir", &data, "--listen", "127.0.0.1:0"];
    let fixed = ["--json", "--drain-delay", "0", "--threads", "1", "--base-entries", "20"];
    let args = args.iter().chain(&fixed).map(|&arg| arg.to_owned());
    args.chain(more.iter().cloned()).collect()
}

/// Further arguments of the first server, which gives the log a model and a catalog.
fn first() -> Vec<String> {
    let shop = Shop::get();
    let (model, catalog) = (shop.path("model"), format!("shop={}", shop.path("shop.palm")));
    vec!["--model".into(), model, "--catalog".into(), catalog]
}

#[track_caller]
fn wait_ready(server: &Server) {
    server.wait_until("it is ready", || server.get("/readyz").0 == 200);
}

fn generation(server: &Server) -> u64 {
    server.get("/v1/catalogs/shop").1["generation"].as_u64().unwrap()
}

/// Sends a request; its answer, head and body. Headers have the end of their lines.
fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// The bytes of a body.
fn fetch(address: &str, path: &str) -> Vec<u8> {
    let mut answer = send(address, "GET", path, "", "");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

/// The items of an answer as they were written: their order, scores and fields to the last digit.
#[track_caller]
fn items(server: &Server, question: &Value) -> String {
    let (status, answer) = server.post("/v1/recommend", question);
    assert_eq!(status, 200, "{answer}");
    answer["items"].to_string()
}

#[test]
fn acknowledged_batches_are_on_all_servers_once_whatever_is_killed() {
    const BATCHES: u64 = 60;
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str, more: &[String]| Server::start(&args(dir.path(), "log", name, more));
    let servers = [
        RwLock::new(start("0", &first())),
        RwLock::new(start("1", &[])),
        RwLock::new(start("2", &[])),
    ];
    let address = |at: u64| servers[at as usize % 3].read().unwrap().address.clone();
    let (acknowledged, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let (address, acknowledged) = (&address, &acknowledged);
                scope.spawn(move || {
                    for number in 0..BATCHES {
                        let id = format!("W{writer}-{number}");
                        let item =
                            json!({"item_id": id, "codes": [number % 8, 2, 4, 0], "price": number});
                        let patch = json!({"item_id": "P0060", "stock": number});
                        let key = format!("idempotency-key: {id}\r\n");
                        let batch = format!("{item}\n{patch}");
                        // Asked elsewhere until somebody answers.
                        for attempt in 0.. {
                            let to = address(writer + number + attempt);
                            let path = "/v1/catalogs/shop/items";
                            match ask_with(&to, "POST", path, &key, Some(&batch)) {
                                Ok((200, done)) => {
                                    acknowledged
                                        .lock()
                                        .unwrap()
                                        .push(done["generation"].as_u64().unwrap());
                                    break;
                                }
                                Ok((503, _)) | Err(_) => {
                                    std::thread::sleep(Duration::from_millis(10))
                                }
                                Ok(other) => panic!("{other:?}"),
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for round in 0..3_usize {
                std::thread::sleep(Duration::from_millis(200));
                let paused = servers[(round + 1) % 3].read().unwrap();
                paused.signal("STOP");
                {
                    let mut killed = servers[round].write().unwrap();
                    killed.kill();
                    let name = round.to_string();
                    if round == 1 {
                        std::fs::remove_dir_all(dir.path().join(&name)).unwrap();
                    }
                    *killed = start(&name, &[]);
                }
                paused.signal("CONT");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let done: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        done.into_iter().for_each(|done| done.unwrap());
    });
    let servers = servers.map(|server| server.into_inner().unwrap());
    let mut made = acknowledged.into_inner().unwrap();
    made.sort_unstable();
    // Every batch made a generation of its own, and no other generation was made.
    assert_eq!(made, (1..=2 * BATCHES).collect::<Vec<_>>());
    for server in &servers {
        wait_ready(server);
        server.wait_until("it has everything", || generation(server) == 2 * BATCHES);
    }
    let export = |server: &Server| fetch(&server.address, "/v1/catalogs/shop/export");
    let exports = servers.each_ref().map(export);
    assert!(exports[0] == exports[1] && exports[1] == exports[2], "exports differ");
    for number in 0..30_u32 {
        let history = [format!("P{:04}", number + 1), format!("W{}-{number}", number % 2)];
        let filter = json!({"must": [{"key": "price", "range": {"lt": 10 + 2 * number}}]});
        let question = json!({
            "history": history, "k": 12, "filter": filter, "fields": ["*"], "deadline_ms": 30_000,
            "generation": 2 * BATCHES,
        });
        let answers = servers.each_ref().map(|server| items(server, &question));
        assert!(answers[0] == answers[1] && answers[1] == answers[2], "{question}: {answers:?}");
    }
}

/// A new model, and its catalog, go live on all servers by one request to any of them, and back.
#[test]
fn targets_are_switched_everywhere_by_one_of_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str, more: &[String]| Server::start(&args(dir.path(), "log", name, more));
    let (one, two) = (start("one", &first()), start("two", &[]));
    [&one, &two].into_iter().for_each(wait_ready);
    let shop = Shop::get();
    let models = dir.path().join("two/models/next");
    std::fs::create_dir_all(&models).unwrap();
    for entry in std::fs::read_dir(shop.path("model")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), models.join(entry.file_name())).unwrap();
    }
    // Other files, so another model.
    std::fs::write(models.join("note"), "next").unwrap();
    let (status, made) = two.post("/v1/models", &json!({"name": "next", "path": "next"}));
    assert_eq!(status, 201, "{made}");
    let lines = "{\"item_id\": \"only\", \"codes\": [0, 2, 4, 0]}\n";
    let length =
        format!("content-type: application/x-ndjson\r\ncontent-length: {}\r\n", lines.len());
    let made = send(&two.address, "PUT", "/v1/catalogs/next?model=next", &length, lines);
    assert!(made.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&made));
    let put = |server: &Server, pair: Value| {
        let done = ask(&server.address, "PUT", "/v1/targets/shop", Some(&pair.to_string()));
        assert_eq!(done.unwrap().0, 200);
    };
    let question = json!({"target": "shop", "history": ["P0001"], "k": 3, "deadline_ms": 30_000});
    let before = items(&one, &question);
    put(&two, json!({"model": "next", "catalog": "next"}));
    for server in [&one, &two] {
        server.wait_until("it is switched", || items(server, &question).contains("\"only\""));
    }
    put(&one, json!({"model": "model", "catalog": "shop"}));
    for server in [&one, &two] {
        server.wait_until("it is back", || items(server, &question) == before);
    }
    // A second target changes nothing for those who name none, until it is made the default: on all
    // servers.
    let unnamed = json!({"history": ["P0001"], "k": 3, "deadline_ms": 30_000});
    let act = |server: &Server, actions: Value| {
        let (status, done) = server.post("/v1/targets", &json!({"actions": actions}));
        assert_eq!(status, 200, "{done}");
    };
    act(&two, json!([{"set": {"alias": "a", "model": "next", "catalog": "next"}}]));
    for server in [&one, &two] {
        let aliases = || server.get("/v1/targets").1["targets"].as_array().map(Vec::len);
        server.wait_until("there are two", || aliases() == Some(2));
        assert_eq!(items(server, &unnamed), before);
    }
    act(&one, json!([{"default": {"alias": "a"}}]));
    for server in [&one, &two] {
        server.wait_until("it is moved", || items(server, &unnamed).contains("\"only\""));
    }
    act(&two, json!([{"default": {"alias": "shop"}}, {"delete": {"alias": "a"}}]));
    for server in [&one, &two] {
        server.wait_until("it is back", || items(server, &unnamed) == before);
    }
    let gone = ask(&one.address, "DELETE", "/v1/catalogs/next", None).unwrap();
    assert_eq!(gone.0, 204, "{gone:?}");
    two.wait_until("it is gone there too", || two.get("/v1/catalogs/next").0 == 404);
    let gone = ask(&two.address, "DELETE", "/v1/models/next", None).unwrap();
    assert_eq!(gone.0, 204, "{gone:?}");
    let models = |server: &Server| server.get("/v1/models").1["models"].as_array().map(Vec::len);
    one.wait_until("the model is gone there too", || models(&one) == Some(1));
    let copies = std::fs::read_dir(dir.path().join("two/replicas")).unwrap();
    let mut names = copies.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.starts_with("model-next-")), "its copy is removed");
    // Whoever comes later finds it so.
    let three = start("three", &[]);
    wait_ready(&three);
    assert_eq!(items(&three, &question), before);
}

#[test]
fn a_damaged_log_makes_a_server_not_ready_and_another_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str, more: &[String]| Server::start(&args(dir.path(), "log", name, more));
    let one = start("one", &first());
    wait_ready(&one);
    let item = json!({"item_id": "N1", "codes": [0, 2, 4, 0]}).to_string();
    let post =
        |server: &Server| ask(&server.address, "POST", "/v1/catalogs/shop/items", Some(&item));
    assert_eq!(post(&one).unwrap().0, 200);
    let identity = one.get("/v1/catalogs/shop").1["log"]["identity"].as_str().unwrap().to_owned();
    let frame = dir.path().join(format!("log/catalogs/shop/{identity}/log/{:020}", 1));
    let sound = std::fs::read(&frame).unwrap();
    let mut damaged = sound.clone();
    damaged[60] ^= 1;
    std::fs::write(&frame, damaged).unwrap();
    let two = start("two", &[]);
    let reasons = || two.get("/healthz").1["reasons"].to_string();
    two.wait_until("it names the entry", || reasons().contains("entry 1 cannot be applied"));
    assert_eq!((two.get("/readyz").0, generation(&two)), (503, 0));
    std::fs::write(&frame, sound).unwrap();
    wait_ready(&two);
    assert_eq!(generation(&two), 1);
    drop((one, two));
    // The directory of one log, and another log.
    drop(start("other", &[]));
    let other = args(dir.path(), "another log", "one", &first());
    let other: Vec<&str> =
        other.iter().map(String::as_str).filter(|arg| *arg != "--json").collect();
    check_refused(&other, &["data directory has copies of the log", "swapped"]);
    let base = ["serve", "--listen", "127.0.0.1:0"];
    check_refused(&[&base[..], &["--shared-log", "file:///x"]].concat(), &["--data-dir"]);
    let data = dir.path().join("new").to_str().unwrap().to_owned();
    let with = ["--data-dir", &data, "--shared-log", "ftp://x"];
    check_refused(&[&base[..], &with].concat(), &["ftp://x", "file://DIRECTORY"]);
    let with = ["--data-dir", &data, "--shared-log", "file:///x", "--max-lag-seconds", "0"];
    check_refused(&[&base[..], &with].concat(), &["more than 0"]);
}

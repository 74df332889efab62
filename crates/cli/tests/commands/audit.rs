//! The server's log: who changed what, and the traces that requests are part of.

use serde_json::{Value, json};

use crate::command::{check_refused, run_json};
use crate::server::{Server, ask_with, shop_args};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Lines of the log that say this.
fn lines(server: &Server, said: &str) -> Vec<Value> {
    let log = server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == said).collect()
}

#[test]
fn each_change_is_in_the_log_with_who_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let keys = keys.to_str().unwrap();
    let key = |name: &str, scopes: &str| {
        let made = run_json(&["key", name, "--scopes", scopes, "--add-to", keys]);
        made["key"].as_str().unwrap().to_owned()
    };
    let (feed, boss) = (key("feed", "items"), key("boss", "admin,recommend"));
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let more = ["--keys", keys, "--data-dir", data, "--log-format", "json", "--json"];
    let server = Server::start(&shop_args(&more));
    let send = |method: &str, path: &str, key: &str, body: &str| {
        let headers = format!(
            "authorization: Bearer {key}\r\nx-request-id: change-1\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"
        );
        ask_with(&server.address, method, path, &headers, Some(body)).unwrap()
    };
    let pair = json!({"model": "model", "catalog": "shop"}).to_string();
    assert_eq!(send("PUT", "/v1/targets/next", &boss, &pair).0, 200);
    assert_eq!(send("PUT", "/v1/targets/next", &feed, &pair).0, 403);
    assert_eq!(send("PATCH", "/v1/catalogs/shop/items/P0001", &feed, "{\"price\": 1}").0, 409);
    assert_eq!(send("POST", "/v1/recommend", &boss, "{\"target\": \"next\", \"k\": 1}").0, 200);
    server.wait_until("lines of them", || lines(&server, "not changed").len() >= 2);
    let changed = lines(&server, "changed");
    let line =
        changed.iter().find(|line| line["route"] == "/v1/targets/{alias}").expect("the switch");
    for (member, wanted) in [
        ("level", json!("INFO")),
        ("key", json!("boss")),
        ("method", json!("PUT")),
        ("target_name", json!("next=model:shop")),
        ("status", json!(200)),
        ("request_id", json!("change-1")),
    ] {
        assert_eq!(line[member], wanted, "{member} of {line}");
    }
    assert!(line.to_string().contains(TRACE), "{line}");
    let refused = lines(&server, "not changed");
    let of = |status: u16| refused.iter().find(|line| line["status"] == status).expect("a refusal");
    assert_eq!((&of(403)["key"], &of(403)["target_name"]), (&json!("feed"), &json!("next")));
    assert_eq!((&of(409)["key"], &of(409)["catalog"]), (&json!("feed"), &json!("shop")));
    // Questions change nothing; and no key is in the log.
    assert!(!server.log().contains("/v1/recommend"), "{}", server.log());
    assert!(!server.log().contains(&boss) && !server.log().contains(&feed));
}

#[test]
fn pages_of_all_origins_need_keys() {
    let args = shop_args(&["--cors", "*"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    check_refused(&args, &["--cors", "--keys"]);
    for wrong in ["shop.example", "https://shop.example/path", "https://", "ftp://shop.example"] {
        let args = shop_args(&["--cors", wrong]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        check_refused(&args, &["scheme, host and port"]);
    }
}

#[cfg(not(feature = "otel"))]
#[test]
fn traces_are_refused_by_name_where_the_build_has_none() {
    let args = shop_args(&["--otlp", "http://127.0.0.1:4318"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    check_refused(&args, &["hands no traces on", "--features otel"]);
}

/// A collector that takes one request: its path and its body.
#[cfg(feature = "otel")]
#[test]
fn requests_are_handed_to_a_collector_as_spans_of_their_traces() {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, sent) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut piece) = (Vec::new(), [0; 4096]);
            let length = |text: &str| -> Option<usize> {
                let (head, _) = text.split_once("\r\n\r\n")?;
                let lines = head.lines().map(str::to_ascii_lowercase);
                let mut of = lines.filter_map(|line| {
                    line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()
                });
                Some(head.len() + 4 + of.next_back()?)
            };
            loop {
                let read = stream.read(&mut piece).unwrap();
                text.extend_from_slice(&piece[..read]);
                let so_far = String::from_utf8_lossy(&text).into_owned();
                if read == 0 || length(&so_far).is_some_and(|whole| text.len() >= whole) {
                    break;
                }
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}").unwrap();
            if sender.send(String::from_utf8_lossy(&text).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut server = Server::start(&shop_args(&["--otlp", &url, "--drain-delay", "0", "--json"]));
    let header = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n");
    let answer = ask_with(&server.address, "POST", "/v1/recommend", &header, Some("{\"k\": 1}"));
    assert_eq!(answer.unwrap().0, 200);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    let all: String = sent.try_iter().collect();
    for word in ["POST /v1/traces", TRACE, "00f067aa0ba902b7", "POST /v1/recommend", "palmette"] {
        assert!(all.contains(word), "{word} in {all}");
    }
}

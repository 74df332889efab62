//! Lives of texts: clients that go away, times, and drains.

use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use palmette_text::engine::EngineOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::shop::config;
use crate::text::{Writing, chat, writing, writing_with};

/// Waits until the metrics have a line.
async fn metric(writing: &Writing, line: &str) {
    for _ in 0..1000 {
        let metrics = writing.send(Method::GET, "/metrics", Body::empty()).await.text;
        if metrics.contains(line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no {line} in the metrics");
}

fn endless() -> Value {
    chat(json!({"ignore_eos": true, "max_tokens": 500, "stream": true}))
}

/// A client that goes away in the middle of a stream frees its place, in which another is answered;
/// who finds no place waits, and is refused where too many do.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_free_their_places() {
    let engine = EngineOptions { max_texts: 1, max_waiting: 1, ..EngineOptions::default() };
    let mut config = config();
    config.drain_delay = Duration::from_millis(100);
    let writing = writing_with(config, engine);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = writing.server.clone();
    let served = tokio::spawn(async move {
        server.serve(listener, async { _ = stopped.await }).await.unwrap();
    });
    let ask = async || {
        let mut client = TcpStream::connect(address).await.unwrap();
        let body = endless().to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all((head + &body).as_bytes()).await.unwrap();
        client
    };
    for _ in 0..3 {
        let mut client = ask().await;
        let mut some = [0; 700];
        client.read_exact(&mut some).await.unwrap();
        assert!(some.starts_with(b"HTTP/1.1 200"));
        drop(client);
    }
    metric(&writing, "palmette_text_requests{model=\"tiny\",state=\"writing\"} 0").await;
    writing.chat(json!({"max_tokens": 3})).await.ok();
    // On a fast machine a text may be whole before the next client comes.
    let mut refused = None;
    for _ in 0..200 {
        let clients = [ask().await, ask().await, ask().await];
        tokio::time::sleep(Duration::from_millis(2)).await;
        let answer = writing.chat(json!({"max_tokens": 3})).await;
        drop(clients);
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a text that finds neither a place nor room to wait is refused");
    let retry = refused.headers.get("retry-after").cloned();
    let (message, _) = refused.error(429, "overloaded");
    assert!(message.contains("wait") && retry.is_some(), "{message}");
    stop.send(()).unwrap();
    served.await.unwrap();
    writing.chat(json!({})).await.error(503, "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_texts_are_measured() {
    let writing = writing();
    writing.chat(json!({"max_tokens": 20, "guided_regex": "[a-z]{20}"})).await.ok();
    let metrics = writing.send(Method::GET, "/metrics", Body::empty()).await.text;
    for name in ["queue", "first_token", "token"] {
        let counted = format!("palmette_text_{name}_seconds_count{{model=\"tiny\"}}");
        assert!(metrics.contains(&counted), "{counted} in {metrics}");
    }
    assert!(
        metrics.contains("palmette_text_seconds_bucket{model=\"tiny\",le=\"600\"}"),
        "{metrics}"
    );
}

/// A text that is not whole when its time in a drain is over ends by an error: a stream's last
/// event, or the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_texts_by_an_error() {
    let engine = EngineOptions { max_texts: 1, ..EngineOptions::default() };
    let mut config = config();
    config.text_drain_grace = Duration::from_millis(100);
    let writing = writing_with(config, engine);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = writing.server.clone();
    let served = tokio::spawn(async move {
        server.serve(listener, async { _ = stopped.await }).await.unwrap();
    });
    let ask = async |streams: bool| {
        let mut client = TcpStream::connect(address).await.unwrap();
        let body = chat(json!({"ignore_eos": true, "max_tokens": 500, "n": 30, "stream": streams}));
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all((head + &body).as_bytes()).await.unwrap();
        client
    };
    let (mut stream, mut whole) = (ask(true).await, ask(false).await);
    let mut some = [0; 700];
    stream.read_exact(&mut some).await.unwrap();
    metric(&writing, "palmette_text_requests{model=\"tiny\",state=\"writing\"} 1").await;
    stop.send(()).unwrap();
    let mut end = String::new();
    stream.read_to_string(&mut end).await.unwrap();
    let last = end.rsplit("data: ").next().unwrap();
    assert!(last.contains("\"code\":\"unavailable\"") && last.ends_with("0\r\n\r\n"), "{last}");
    assert!(!end.contains("[DONE]"));
    end.clear();
    whole.read_to_string(&mut end).await.unwrap();
    assert!(end.starts_with("HTTP/1.1 503") && end.contains("\"unavailable\""), "{end}");
    served.await.unwrap();
}

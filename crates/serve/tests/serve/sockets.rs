//! Connections: slow ones, many at once, and the end of a server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use palmette_serve::ServeConfig;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::shop::{config, shopping};

/// A server on a free port, the end of which is asked for by the sender.
async fn serving(config: ServeConfig) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let shop = shopping(config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let stopped = async { _ = stopped.await };
        shop.server.serve(listener, stopped).await.unwrap();
    });
    (address, stop, served)
}

fn post(body: &str) -> String {
    format!(
        "POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Bytes that come until the other side ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended too.
    _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_let_go_and_hold_nobody_up() {
    let mut config = config();
    config.read_timeout = Duration::from_millis(400);
    let (address, stop, served) = serving(config).await;
    let mut slow_headers = TcpStream::connect(address).await.unwrap();
    slow_headers.write_all(b"POST /v1/recommend HTTP/1.1\r\nhost:").await.unwrap();
    let mut slow_body = TcpStream::connect(address).await.unwrap();
    slow_body
        .write_all(b"POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{")
        .await
        .unwrap();

    let mut quick = TcpStream::connect(address).await.unwrap();
    let body = json!({"target": "shop", "k": 1}).to_string();
    quick.write_all(post(&body).as_bytes()).await.unwrap();
    assert!(rest(&mut quick).await.starts_with("HTTP/1.1 200"));

    assert!(rest(&mut slow_body).await.starts_with("HTTP/1.1 408"));
    // There is no request yet to answer.
    let headers = rest(&mut slow_headers).await;
    assert!(headers.is_empty() || headers.starts_with("HTTP/1.1 408"), "{headers}");
    drop(stop);
    served.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drains_answers_what_it_took_and_ends() {
    let mut config = config();
    config.drain_delay = Duration::from_millis(300);
    let (address, stop, served) = serving(config).await;
    let mut asking = TcpStream::connect(address).await.unwrap();
    // Its head is there, its body comes during the drain.
    let body = json!({"target": "shop", "k": 2}).to_string();
    let whole = post(&body);
    let (head, tail) = whole.split_at(whole.len() - 5);
    asking.write_all(head.as_bytes()).await.unwrap();
    let mut ready = TcpStream::connect(address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    ready
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let ready = rest(&mut ready).await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("draining"), "{ready}");
    asking.write_all(tail.as_bytes()).await.unwrap();
    let answer = rest(&mut asking).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    served.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// Clients that go away in the middle leave nothing behind: streams are idle again, and others are
/// answered.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_cost_no_more_than_a_pass() {
    let (address, stop, served) = serving(config()).await;
    let wide = json!({"target": "shop", "beam_width": 4096, "k": 10}).to_string();
    for _ in 0..8 {
        let mut gone = TcpStream::connect(address).await.unwrap();
        gone.write_all(post(&wide).as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(gone);
    }
    // The work of some is stopped between two passes, and that of others never begun.
    let mut is_idle = false;
    for _ in 0..500 {
        let mut asking = TcpStream::connect(address).await.unwrap();
        let get = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        asking.write_all(get).await.unwrap();
        let metrics = rest(&mut asking).await;
        let stopped = "palmette_recommend_stopped_total{reason=\"cancelled\"}";
        if metrics.contains(stopped) && metrics.contains("palmette_streams{state=\"busy\"} 0") {
            is_idle = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_idle, "streams go on with what nobody waits for");
    let body = json!({"target": "shop", "k": 1}).to_string();
    let mut asking = TcpStream::connect(address).await.unwrap();
    asking.write_all(post(&body).as_bytes()).await.unwrap();
    assert!(rest(&mut asking).await.starts_with("HTTP/1.1 200"));
    stop.send(()).unwrap();
    served.await.unwrap();
}

/// A connection may be idle for longer than a head may take.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_have_a_time_of_their_own() {
    let mut config = config();
    config.read_timeout = Duration::from_millis(200);
    config.idle_timeout = Duration::from_millis(1500);
    let (address, stop, served) = serving(config).await;
    let mut kept = TcpStream::connect(address).await.unwrap();
    let get = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut answer = [0; 4096];
    for _ in 0..2 {
        kept.write_all(get).await.unwrap();
        let len = kept.read(&mut answer).await.unwrap();
        assert!(answer[..len].starts_with(b"HTTP/1.1 200"), "{len}");
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    // A head that has begun has the time of heads.
    let began = Instant::now();
    kept.write_all(b"GET /livez HTTP/1.1\r\nhost:").await.unwrap();
    rest(&mut kept).await;
    assert!(began.elapsed() < Duration::from_millis(800), "{:?}", began.elapsed());
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(get).await.unwrap();
    let began = Instant::now();
    assert!(rest(&mut idle).await.starts_with("HTTP/1.1 200"));
    let took = began.elapsed();
    assert!((Duration::from_millis(1400)..Duration::from_secs(20)).contains(&took), "{took:?}");
    drop(stop);
    served.await.unwrap();
}

/// Lines that come during a drain are not answered one by one with refusals: the stream ends, and
/// says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_a_stream_of_lines_by_its_last_line() {
    let (address, stop, served) = serving(config()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/recommend/stream HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let line = "{\"target\": \"shop\", \"k\": 1}\n";
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    stream.write_all(chunk.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"items\"") {
        let mut bytes = [0; 4096];
        let len = stream.read(&mut bytes).await.unwrap();
        assert!(len > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..len]);
    }
    stop.send(()).unwrap();
    let end = rest(&mut stream).await;
    assert_eq!(end.matches("\"status\":503").count(), 2, "of the line and its problem: {end}");
    assert!(end.contains("draining") && end.ends_with("0\r\n\r\n"), "{end}");
    served.await.unwrap();
}

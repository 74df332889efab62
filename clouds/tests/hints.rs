//! Hints over a NATS server:
//!
//!     nats-server -a 127.0.0.1 -p 4222 &
//!     PALMETTE_TEST_NATS=nats://127.0.0.1:4222 cargo test --no-default-features --features nats --test hints
//!
//! Without `PALMETTE_TEST_NATS` only what needs no server is tested.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use palmette_clouds::HintedLog;
use palmette_catalog_replica::{MemoryLog, SharedLog};

const LONG: Duration = Duration::from_secs(60);

/// A pause in which a hint would have come.
const PAUSE: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_log_is_as_it_is() {
    let log: Arc<dyn SharedLog> = Arc::new(MemoryLog::default());
    // Port 9 of this machine discards, where anything listens there at all.
    let hinted = HintedLog::new(Arc::clone(&log), "nats://127.0.0.1:9").expect("an address");
    assert_eq!(hinted.poll(), log.poll());
    let begun = Instant::now();
    hinted.wait("a", PAUSE).await;
    assert!(begun.elapsed() >= PAUSE);
    assert!(hinted.create("a/1", Bytes::from_static(b"x")).await.expect("made"));
    assert!(!hinted.create("a/1", Bytes::from_static(b"y")).await.expect("there is one"));
    assert_eq!(log.read("a/1").await.expect("read"), Some(Bytes::from_static(b"x")));
}

#[tokio::test]
async fn addresses_of_nothing_are_refused() {
    for server in ["nats://", "http://[", ""] {
        let log: Arc<dyn SharedLog> = Arc::new(MemoryLog::default());
        let error = HintedLog::new(log, server).expect_err(server).to_string();
        assert!(error.contains("nats://HOST:PORT"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_hear_of_new_objects_in_their_folder() {
    let Ok(server) = std::env::var("PALMETTE_TEST_NATS") else {
        eprintln!("SKIPPED: PALMETTE_TEST_NATS names no NATS server");
        return;
    };
    let log: Arc<dyn SharedLog> = Arc::new(MemoryLog::default());
    let open = || Arc::new(HintedLog::new(Arc::clone(&log), &server).expect("an address"));
    let (writer, reader) = (open(), open());
    let begun = Instant::now();
    while writer.poll() == log.poll() || reader.poll() == log.poll() {
        assert!(begun.elapsed() < LONG, "no connection to {server}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A folder is told of from when somebody waited there first.
    reader.wait("a/log", Duration::ZERO).await;
    for number in 0..20 {
        let waiting = tokio::spawn({
            let reader = Arc::clone(&reader);
            async move {
                let begun = Instant::now();
                reader.wait("a/log", LONG).await;
                begun.elapsed()
            }
        });
        let name = format!("a/log/{number}");
        assert!(writer.create(&name, Bytes::from_static(b"x")).await.expect("made"));
        assert!(waiting.await.expect("no panic") < LONG / 2, "no hint of {name}");
    }
    // Nor does anything else wake it: another folder, an object that was there.
    assert!(writer.create("b/log/1", Bytes::from_static(b"x")).await.expect("made"));
    assert!(!writer.create("a/log/1", Bytes::from_static(b"x")).await.expect("there is one"));
    let begun = Instant::now();
    reader.wait("a/log", PAUSE).await;
    assert!(begun.elapsed() >= PAUSE);
}

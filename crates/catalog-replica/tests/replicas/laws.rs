//! Laws of every home of logs.

use std::sync::Arc;

use bytes::Bytes;
use palmette_catalog_replica::SharedLog;

use crate::crew::runtime;

pub(crate) async fn check_laws(store: Arc<dyn SharedLog>) {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let none: [&str; 0] = [];
    assert_eq!(store.read("a/b").await.unwrap(), None);
    assert_eq!(store.names("a", "", 10).await.unwrap(), none);
    assert!(store.create("a/b", bytes("one")).await.unwrap());
    assert!(!store.create("a/b", bytes("two")).await.unwrap());
    assert_eq!(store.read("a/b").await.unwrap(), Some(bytes("one")));
    assert!(store.exists("a/b").await.unwrap() && !store.exists("a/c").await.unwrap());
    // Of many that try one makes it.
    let tries: Vec<_> = (0..16)
        .map(|at| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store.create("a/raced", Bytes::from(vec![at; 100_000])).await.unwrap()
            })
        })
        .collect();
    let mut winners = Vec::new();
    for (at, tried) in tries.into_iter().enumerate() {
        if tried.await.unwrap() {
            winners.push(at as u8);
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(store.read("a/raced").await.unwrap().unwrap()[..], vec![winners[0]; 100_000][..]);
    for name in ["a/3", "a/1", "a/2", "a/d/e", "b/0"] {
        store.create(name, bytes(name)).await.unwrap();
    }
    let names = async |after: &str, limit| store.names("a", after, limit).await.unwrap();
    assert_eq!(names("", 3).await, ["1", "2", "3"]);
    assert_eq!(names("1", 2).await, ["2", "3"]);
    assert_eq!(names("10", 1).await, ["2"]);
    let files = names("3", 10).await;
    assert!(files.contains(&"b".to_owned()) && files.contains(&"raced".to_owned()), "{files:?}");
    store.delete("a/2").await.unwrap();
    store.delete("a/2").await.unwrap();
    assert_eq!(names("", 2).await, ["1", "3"]);
    assert!(store.create("a/2", bytes("again")).await.unwrap());

    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let long: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    for content in [&b""[..], b"short", &long] {
        std::fs::write(&from, content).unwrap();
        store.put_file("f/x", &from).await.unwrap();
        assert!(store.get_file("f/x", &to).await.unwrap());
        assert!(std::fs::read(&to).unwrap() == content, "{} bytes", content.len());
    }
    assert!(!store.get_file("f/y", &to).await.unwrap());
    store.delete("f/x").await.unwrap();
    assert!(!store.get_file("f/x", &to).await.unwrap());
    // Told of what was made, or not, it ends.
    store.wait("a", std::time::Duration::from_millis(20)).await;
}

/// Checks the store of `PALMETTE_TEST_LOG`, below a folder of its own.
pub(crate) fn check_by_address() {
    let Ok(address) = std::env::var("PALMETTE_TEST_LOG") else { return };
    let address = match address.starts_with("postgres") {
        // A database has no folders.
        true => address,
        false => format!("{address}/laws"),
    };
    let runtime = runtime();
    let store = runtime.block_on(palmette_catalog_replica::open(&address)).unwrap();
    runtime.block_on(check_laws(store));
}

//! `palmette serve` over a disk that is full for a while: refused, said, and back by itself.

use palmette_testkit::disk::SmallDisk;
use serde_json::json;

use crate::command::run;
use crate::server::{Server, ask};
use crate::shop::Shop;

/// Lines of changes, some hundred KiB.
fn lines(round: usize) -> String {
    let note = "x".repeat(60);
    let line = |n: usize| json!({"item_id": format!("P{:04}", 100 + n % 800), "note": format!("{note}{round}-{n}")});
    (0..3000).map(|n| format!("{}\n", line(n))).collect()
}

#[test]
fn a_full_disk_is_said_and_passes() {
    let Some(disk) = SmallDisk::mount(3 << 10) else { return };
    let shop = Shop::get();
    let live = disk.path().join("live").to_str().unwrap().to_owned();
    let (model, palm) = (shop.path("model"), shop.path("shop.palm"));
    run(&["catalog", "live", "init", &live, "--from", &palm, "--model", &model]);
    let catalog = format!("shop={live}");
    let args = [
        "serve",
        "--model",
        &model,
        "--catalog",
        &catalog,
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--drain-delay",
        "0",
    ];
    let server = Server::start(&args.map(str::to_owned));
    let items = "/v1/catalogs/shop/items";
    let change = |body: &str| ask(&server.address, "POST", items, Some(body)).unwrap();
    let recommend = || server.post("/v1/recommend", &json!({"history": ["P0001"], "k": 3})).0;
    assert_eq!(server.get("/readyz").1, "ok");
    for round in 0..2 {
        disk.fill();
        let (status, problem) = change(&lines(round));
        assert_eq!(status, 503, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("nothing was applied"), "{problem}");
        let (status, ready) = server.get("/readyz");
        assert!(status == 200 && ready.as_str().unwrap().contains("cannot write"), "{ready}");
        let health = server.get("/healthz").1;
        assert!(
            health["warnings"][0].as_str().unwrap().contains("catalog shop: cannot write"),
            "{health}"
        );
        assert!(server.metric("palmette_catalog_write_failed") > 0.0);
        assert_eq!(recommend(), 200);
        disk.free();
        // Without a change that would try it.
        server
            .wait_until("there is room", || server.metric("palmette_catalog_write_failed") == 0.0);
        server.wait_until("nothing is left to say", || server.get("/readyz").1 == "ok");
        let (status, done) = change("{\"item_id\": \"P0005\", \"stock\": 1}\n");
        assert_eq!((status, &done["patched"]), (200, &json!(1)), "{done}");
        change("{\"item_id\": \"P0005\", \"stock\": 2}\n");
    }
    drop(server);
    run(&["catalog", "verify", &live]);
}

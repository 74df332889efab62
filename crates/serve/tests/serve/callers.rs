//! Callers of a server without keys: programs and its own page, no page of another origin.

use axum::body::Body;
use axum::http::Method;
use palmette_serve::{NewKey, Scope, ServeConfig};
use serde_json::json;

use crate::shop::{config, shopping};

const LINE: &str = "{\"item_id\": \"P0060\", \"stock\": 0}\n";

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_origin_asks_or_changes_anything() {
    let shop = shopping(config());
    let before = shop.get("/v1/catalogs/items").await.ok()["generation"].clone();
    let pair = json!({"model": "m", "catalog": "frozen"}).to_string();
    let ask = json!({"k": 1}).to_string();
    let requests = [
        (Method::POST, "/v1/catalogs/items/items", LINE),
        (Method::DELETE, "/v1/catalogs/items/items/P0060", ""),
        (Method::PATCH, "/v1/catalogs/items/items/P0060", "{\"stock\": 0}"),
        (Method::PUT, "/v1/targets/shop", &pair),
        (Method::POST, "/v1/targets", "{\"actions\": []}"),
        (Method::POST, "/v1/catalogs/items/generations", "{}"),
        (Method::PUT, "/v1/catalogs/new", LINE),
        (Method::POST, "/v1/recommend", &ask),
        (Method::GET, "/v1/catalogs/items/items/P0060", ""),
        (Method::GET, "/v1/catalogs/items/export", ""),
        (Method::GET, "/metrics", ""),
        (Method::GET, "/", ""),
        (Method::GET, "/nothing", ""),
    ];
    for (method, path, body) in requests {
        for foreign in [
            ("origin", "http://localhost:8599"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("host", "evil.example"),
            ("host", "evil.example:8080"),
        ] {
            let answer = shop.send_with(method.clone(), path, &[foreign], body.to_owned()).await;
            let (detail, _) = answer.problem(403);
            assert!(detail.contains("--keys"), "{method} {path} by {foreign:?}: {detail}");
        }
    }
    assert_eq!(shop.get("/v1/catalogs/items").await.ok()["generation"], before);
    // Its own page, by whatever name it was opened.
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
        let own = format!("http://{host}");
        let headers = [("host", host), ("origin", own.as_str())];
        shop.send_with(Method::POST, "/v1/catalogs/items/items", &headers, LINE).await.ok();
        shop.send_with(Method::GET, "/", &headers, Body::empty()).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_were_told_are_the_servers_own() {
    let shop = shopping(ServeConfig {
        server_names: vec!["shop.internal".to_owned()],
        origins: vec!["https://shop.example".to_owned()],
        ..config()
    });
    let ask = json!({"k": 1}).to_string();
    let post = |headers: &'static [(&'static str, &'static str)]| {
        shop.send_with(Method::POST, "/v1/recommend", headers, ask.clone())
    };
    post(&[("host", "shop.internal:8080")]).await.ok();
    post(&[("host", "shop.internal"), ("origin", "https://shop.internal")]).await.ok();
    post(&[("origin", "https://shop.example")]).await.ok();
    post(&[("host", "other.internal")]).await.problem(403);
    post(&[("origin", "http://shop.example")]).await.problem(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_hosts_and_origins_are_free() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let made = NewKey::make("web", &Scope::ALL, &[]).unwrap();
    std::fs::write(&file, &made.line).unwrap();
    let shop = shopping(ServeConfig { keys: Some(file.path().to_owned()), ..config() });
    let bearer = format!("Bearer {}", made.key);
    let page = [("host", "shop.example"), ("origin", "https://other.example")];
    let headers = [&page[..], &[("authorization", bearer.as_str())]].concat();
    let ask = json!({"k": 1}).to_string();
    shop.send_with(Method::POST, "/v1/recommend", &headers, ask.clone()).await.ok();
    // A page has no key.
    shop.send_with(Method::POST, "/v1/recommend", &page, ask).await.problem(401);
    shop.send_with(Method::GET, "/readyz", &page, Body::empty()).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_say_what_their_body_is() {
    let shop = shopping(config());
    for (method, path) in [
        (Method::POST, "/v1/catalogs/items/items"),
        (Method::PUT, "/v1/catalogs/items/items/P0060"),
        (Method::PATCH, "/v1/catalogs/items/items/P0060"),
        (Method::POST, "/v1/catalogs/items/generations"),
        (Method::POST, "/v1/catalogs/items/rollback"),
        (Method::PUT, "/v1/catalogs/new"),
        (Method::PUT, "/v1/targets/new"),
        (Method::POST, "/v1/targets"),
        (Method::POST, "/v1/models"),
    ] {
        let request = axum::http::Request::builder().method(method.clone()).uri(path);
        let request = request.header("host", "localhost").body(Body::from(LINE)).unwrap();
        let Ok(response) = tower::ServiceExt::oneshot(shop.router.clone(), request).await;
        assert_eq!(response.status(), 415, "{method} {path}");
        // Types that need no permission of a browser.
        for simple in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
        {
            let headers = [("content-type", simple)];
            let answer = shop.send_with(method.clone(), path, &headers, LINE).await;
            // Without a data directory there is no place for a catalog, whatever its body is.
            answer.problem(if path.ends_with("/new") && path.contains("catalogs") {
                409
            } else {
                415
            });
        }
    }
    let questions =
        [("/v1/recommend", "{\"k\": 1}"), ("/v1/catalogs/items/items/query", "{\"limit\": 1}")];
    for (path, body) in questions {
        let request = axum::http::Request::builder().method(Method::POST).uri(path);
        let request = request.header("host", "localhost").body(Body::from(body)).unwrap();
        let Ok(response) = tower::ServiceExt::oneshot(shop.router.clone(), request).await;
        assert_eq!(response.status(), 200, "{path}");
    }
    // Nothing is in the body of a deletion.
    shop.send(Method::DELETE, "/v1/catalogs/items/items/P0060", Body::empty()).await.ok();
}

//! What surrounds bodies: compression, pages of other origins, and paths of the server's machine.

use std::io::{Read, Write};

use axum::body::Body;
use axum::http::{Method, Request};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::shop::{Shopping, config, shopping};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_come_compressed_within_the_same_limits() {
    let mut config = config();
    config.max_upload = 1 << 20;
    let shop = shopping(config);
    let compressed = [("content-encoding", "gzip"), ("content-type", "application/json")];
    let send =
        |path: &'static str, body: Vec<u8>| shop.send_with(Method::POST, path, &compressed, body);
    let question = json!({"target": "still", "history": ["P0001"], "k": 2});
    let plain = shop.post("/v1/recommend", &question).await.ok();
    let answer = send("/v1/recommend", gzip(question.to_string().as_bytes())).await.ok();
    assert_eq!(answer["items"], plain["items"]);
    let lines = gzip(br#"{"item_id": "zip", "codes": [0, 0, 0, 1]}"#);
    assert_eq!(send("/v1/catalogs/items/items", lines).await.ok()["upserted"], 1);
    // A few thousand bytes that would be millions.
    let spaces = gzip(&vec![b' '; 8 << 20]);
    assert!(spaces.len() < 20_000);
    for path in ["/v1/recommend", "/v1/recommend/batch", "/v1/catalogs/items/items"] {
        send(path, spaces.clone()).await.problem(413);
    }
    let (detail, _) = send("/v1/recommend", b"{}".to_vec()).await.problem(400);
    assert!(detail.contains("gzip"), "{detail}");
    let other = [("content-encoding", "br")];
    let refused = shop.send_with(Method::POST, "/v1/recommend", &other, "{}").await;
    assert_eq!(refused.headers["accept-encoding"], "gzip");
    let (detail, _) = refused.problem(415);
    assert!(detail.contains("gzip is read"), "{detail}");
}

async fn whole(
    shop: &Shopping,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (axum::http::HeaderMap, u16, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let Ok(response) = shop.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await;
    let (parts, body) = response.into_parts();
    (parts.headers, parts.status.as_u16(), body.collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_for_those_who_take_it() {
    let shop = shopping(config());
    let takes = [("accept-encoding", "br, gzip"), ("content-type", "application/json")];
    let question = json!({"target": "still", "history": ["P0001"], "k": 50, "fields": ["*"]});
    for (method, path, body) in [
        (Method::POST, "/v1/recommend", &question),
        (Method::POST, "/v1/recommend/stream", &question),
        (Method::GET, "/openapi.json", &Value::Null),
        (Method::GET, "/metrics", &Value::Null),
        (Method::GET, "/", &Value::Null),
    ] {
        let (headers, status, bytes) = whole(&shop, method.clone(), path, &takes, body).await;
        assert_eq!(
            (status, headers["content-encoding"].to_str().unwrap()),
            (200, "gzip"),
            "{path}"
        );
        assert!(headers.get_all("vary").iter().any(|vary| vary == "accept-encoding"), "{path}");
        assert!(!headers.contains_key("content-length"), "{path}");
        let mut text = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert!(text.len() > bytes.len(), "{path}");
        let (headers, _, plain) = whole(&shop, method, path, &takes[1..], body).await;
        assert!(!headers.contains_key("content-encoding"), "{path}");
        assert!(headers.get_all("vary").iter().any(|vary| vary == "accept-encoding"), "{path}");
        assert_eq!(plain.first(), text.as_bytes().first(), "{path}");
    }
    // A file is as it lies, so that its parts can be asked for; a short answer is not worth it.
    for path in ["/v1/catalogs/items/export", "/livez"] {
        let (headers, status, _) = whole(&shop, Method::GET, path, &takes, &Value::Null).await;
        assert_eq!((status, headers.contains_key("content-encoding")), (200, false), "{path}");
    }
}

fn tag_of(text: &str) -> axum::http::HeaderValue {
    format!("\"{text}\"").parse().unwrap()
}

/// A strong tag is of bytes: what is compressed has another. Conditions take either.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_have_tags_of_their_own() {
    let shop = shopping(config());
    let takes = [("accept-encoding", "gzip"), ("content-type", "application/json")];
    let item = "/v1/catalogs/items/items/P0001";
    let send = async |method: Method, headers: &[(&str, &str)], body: &Value| {
        whole(&shop, method, item, headers, body).await
    };
    let (_, status, _) = send(Method::PATCH, &takes, &json!({"note": "x".repeat(3000)})).await;
    assert_eq!(status, 200);
    let (packed, _, bytes) = send(Method::GET, &takes, &Value::Null).await;
    let (plain, _, other) = send(Method::GET, &takes[1..], &Value::Null).await;
    assert_ne!(bytes, other);
    assert_eq!((&packed["etag"], &plain["etag"]), (&tag_of("1-gzip"), &tag_of("1")));
    // A client that read compressed changes what it read.
    for (generation, end) in [(1, "-gzip"), (2, "")] {
        let condition = format!("\"7\", \"{generation}{end}\"");
        let headers = [("content-type", "application/json"), ("if-match", condition.as_str())];
        let change = json!({"stock": 1000 + generation});
        let (_, status, answer) = send(Method::PATCH, &headers, &change).await;
        assert_eq!(status, 200, "{condition}: {}", String::from_utf8_lossy(&answer));
        let (_, status, _) = send(Method::PATCH, &headers, &change).await;
        assert_eq!(status, 412, "{condition}");
    }
    for accepts in [&takes[..1], &[]] {
        let (first, _, _) = whole(&shop, Method::GET, "/", accepts, &Value::Null).await;
        let tag = first["etag"].to_str().unwrap().to_owned();
        let again = [accepts, &[("if-none-match", tag.as_str())]].concat();
        let (headers, status, bytes) = whole(&shop, Method::GET, "/", &again, &Value::Null).await;
        assert_eq!((status, bytes.len(), &headers["etag"]), (304, 0, &first["etag"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_origins_that_were_named_may_ask() {
    let mut config = config();
    config.origins = vec!["https://shop.example".to_owned()];
    let shop = shopping(config);
    let from =
        |origin: &'static str| [("origin", origin), ("access-control-request-method", "POST")];
    let (headers, status, _) =
        whole(&shop, Method::OPTIONS, "/v1/recommend", &from("https://shop.example"), &Value::Null)
            .await;
    assert_eq!(status, 204);
    assert_eq!(headers["access-control-allow-origin"], "https://shop.example");
    for (name, word) in
        [("methods", "PATCH"), ("headers", "authorization"), ("headers", "idempotency-key")]
    {
        let allowed = headers[&format!("access-control-allow-{name}")].to_str().unwrap();
        assert!(allowed.contains(word), "{allowed}");
    }
    let question = json!({"target": "still", "k": 1});
    let asked = [("origin", "https://shop.example"), ("content-type", "application/json")];
    let (headers, status, _) = whole(&shop, Method::POST, "/v1/recommend", &asked, &question).await;
    assert_eq!(
        (status, headers["access-control-allow-origin"].to_str().unwrap()),
        (200, "https://shop.example")
    );
    assert!(
        headers["access-control-expose-headers"].to_str().unwrap().contains("palmette-generation")
    );
    // Errors are shown to the page as well.
    let (headers, status, _) =
        whole(&shop, Method::POST, "/v1/recommend", &asked, &json!({"k": 0})).await;
    assert_eq!((status, headers.contains_key("access-control-allow-origin")), (422, true));
    for origin in
        ["https://evil.example", "https://shop.example.evil.example", "null", "http://shop.example"]
    {
        let (headers, status, _) =
            whole(&shop, Method::OPTIONS, "/v1/recommend", &from(origin), &Value::Null).await;
        assert!(
            status >= 400 && !headers.contains_key("access-control-allow-origin"),
            "{origin}: {status}"
        );
        assert!(headers.get_all("vary").iter().any(|vary| vary == "origin"), "{origin}");
    }
    let silent = shopping(crate::shop::config());
    let (headers, status, _) = whole(
        &silent,
        Method::OPTIONS,
        "/v1/recommend",
        &from("https://shop.example"),
        &Value::Null,
    )
    .await;
    assert!(status >= 400 && !headers.contains_key("access-control-allow-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_no_path_of_the_servers_machine() {
    let data = tempfile::tempdir().unwrap();
    let broken = data.path().join("models/broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("config.json"), "{}").unwrap();
    let mut config = config();
    config.data_dir = Some(data.path().to_owned());
    let shop = shopping(config);
    let real = data.path().canonicalize().unwrap();
    for path in ["broken", "absent", "broken/config.json"] {
        let answer = shop.post("/v1/models", &json!({"name": "x", "path": path})).await;
        let text = answer.body.to_string();
        let (detail, at) = answer.problem(422);
        assert_eq!(at, "/path");
        assert!(detail.contains("models"), "{detail}");
        for hidden in [data.path(), real.as_path(), std::env::temp_dir().as_path()] {
            assert!(!text.contains(hidden.to_str().unwrap()), "{text}");
        }
    }
}

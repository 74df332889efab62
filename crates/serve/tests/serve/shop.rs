//! A server over the demonstration's shop, frozen or live, and requests to it.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use palmette_catalog::{Catalog, Check};
use palmette_catalog_live::{LiveCatalog, LiveOptions};
use palmette_demo::{Demo, Shop};
use palmette_serve::{ServeConfig, Server};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// A server and its routes.
pub(crate) struct Routed {
    pub(crate) server: Server,
    pub(crate) router: Router,
}

/// A server and what it serves.
pub(crate) struct Shopping {
    pub(crate) routed: Routed,
    pub(crate) demo: &'static Demo,
    /// The directory of the live catalog.
    pub(crate) dir: TempDir,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// Streams of one thread, deadlines that a busy machine keeps.
pub(crate) fn config() -> ServeConfig {
    let mut config = ServeConfig::default();
    config.schedule.streams = 2;
    config.schedule.threads = 2;
    config.default_deadline = Duration::from_secs(20);
    config.drain_delay = Duration::ZERO;
    config
}

/// The shop as target `shop` of model `m` and live catalog `items`, and frozen as `still` of
/// `frozen`.
pub(crate) fn shopping(config: ServeConfig) -> Shopping {
    // Generated once: it takes longer than most tests.
    static DEMO: LazyLock<Demo> = LazyLock::new(|| Demo::load().expect("the built-in model"));
    static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(Shop::demo().catalog()));
    let demo = &*DEMO;
    let server = Server::new(config).expect("threads");
    let recommender = demo.recommender();
    server.add_model("m", recommender.engine().clone(), recommender.format().clone()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let copy = Catalog::from_bytes("shop", CATALOG.to_bytes(), Check::Frame).unwrap();
    let live =
        LiveCatalog::create_with(dir.path(), Some(copy), None, LiveOptions::default()).unwrap();
    server.add_catalog("items", Arc::new(live), Some(dir.path())).unwrap();
    server.add_catalog("frozen", Arc::clone(&CATALOG), None).unwrap();
    server.set_target("shop", "m", "items").unwrap();
    server.set_target("still", "m", "frozen").unwrap();
    Shopping { routed: Routed::new(server), demo, dir }
}

impl Deref for Shopping {
    type Target = Routed;

    fn deref(&self) -> &Routed {
        &self.routed
    }
}

impl Routed {
    pub(crate) fn new(server: Server) -> Self {
        Self { router: server.router(), server }
    }

    /// One request to the routes, without a socket.
    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Answered {
        self.send_with(method, path, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answered {
        let asked = method.clone();
        let mut request = Request::builder().method(method.clone()).uri(path);
        let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        // As clients do; a test that gives either is about it.
        let usual = [("host", "localhost", true), ("content-type", "application/json", has_body)];
        for (name, value, is_usual) in usual {
            if is_usual && !has(name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a sound request");
        let Ok(response) = self.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        check_documented(&asked, path, parts.status);
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        Answered { status: parts.status, headers: parts.headers, body }
    }

    /// `POST` of a JSON document.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(Method::POST, path, body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.send(Method::GET, path, Body::empty()).await
    }
}

/// Checks that the OpenAPI document has the status for the route.
#[track_caller]
pub(crate) fn check_documented(method: &Method, path: &str, status: StatusCode) {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| serde_json::to_value(palmette_serve::openapi()).expect("a document"));
    let path = path.split('?').next().unwrap_or_default();
    let is_of = |template: &str| {
        let (mut of, mut given) = (template.split('/'), path.split('/'));
        of.by_ref().zip(given.by_ref()).all(|(of, given)| of.starts_with('{') || of == given)
            && template.split('/').count() == path.split('/').count()
    };
    let paths = DOCUMENT["paths"].as_object().expect("paths").iter();
    // A path without parameters goes before one that has them.
    let found = paths.filter(|(template, _)| is_of(template));
    let Some((template, methods)) = found.min_by_key(|(template, _)| template.matches('{').count())
    else {
        return;
    };
    let Some(route) = methods.get(method.as_str().to_ascii_lowercase()) else { return };
    let (exact, family) = (status.as_str().to_owned(), format!("{}XX", &status.as_str()[..1]));
    let has = |status: &str| route["responses"].get(status).is_some();
    assert!(has(&exact) || has(&family), "{method} {template} answers {status} undocumented");
}

impl Answered {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        self.body
    }

    /// Checks that it is a problem of this status, and returns detail and the first place.
    #[track_caller]
    pub(crate) fn problem(self, status: u16) -> (String, String) {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["request_id"], self.headers["x-request-id"].to_str().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&self.body["detail"]), text(&self.body["errors"][0]["pointer"]))
    }
}

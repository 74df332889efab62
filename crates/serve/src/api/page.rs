//! The page: files of the program itself, with tags for revalidation and a policy that keeps the
//! browser at this server.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;
use crate::problem::Problem;

/// Scripts, styles and requests of this server alone; nothing inline, no frame around it, no text
/// that becomes markup.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; \
     require-trusted-types-for 'script'",
);

/// A file of the page.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
    /// Tag of the text, in quotes.
    tag: HeaderValue,
}

macro_rules! assets {
    ($($name:literal: $media_type:literal),* $(,)?) => {
        [$(Asset::new($name, $media_type, include_str!(concat!("../page/", $name)))),*]
    };
}

static ASSETS: LazyLock<[Asset; 14]> = LazyLock::new(|| {
    assets! {
        "index.html": "text/html; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
        "app.js": "text/javascript; charset=utf-8",
        "client.js": "text/javascript; charset=utf-8",
        "items.js": "text/javascript; charset=utf-8",
        "dom.js": "text/javascript; charset=utf-8",
        "question.js": "text/javascript; charset=utf-8",
        "fan.js": "text/javascript; charset=utf-8",
        "results.js": "text/javascript; charset=utf-8",
        "live.js": "text/javascript; charset=utf-8",
        "texts.js": "text/javascript; charset=utf-8",
        "places.js": "text/javascript; charset=utf-8",
        "signs.js": "text/javascript; charset=utf-8",
    }
});

/// `/` and `/assets/…`. They are for browsers and not part of the OpenAPI document.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/", get(index)).route("/assets/{name}", get(asset))
}

async fn index(headers: HeaderMap) -> Response {
    ASSETS[0].answer(&headers)
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match ASSETS[1..].iter().find(|asset| asset.name == name) {
        Some(asset) => Ok(asset.answer(&headers)),
        None => Err(Problem::not_found(format!("the page has no file {name:?}; / is the page"))),
    }
}

impl Asset {
    fn new(name: &'static str, media_type: &'static str, text: &'static str) -> Self {
        let tag = format!("\"{:016x}\"", fnv1a(text.as_bytes()));
        let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
        Self { name, media_type, text, tag }
    }

    /// The file, or 304 where the browser has it. It asks each time: names stay, and programs are
    /// replaced.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let is_known = known.is_some_and(|tags| {
            let mut tags = tags.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
            tags.any(|tag| tag == "*" || tag.as_bytes() == self.tag.as_bytes())
        });
        let headers = [
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (CONTENT_SECURITY_POLICY, POLICY),
            (ETAG, self.tag.clone()),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        match is_known {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, [(CONTENT_TYPE, self.media_type)], self.text).into_response(),
        }
    }
}

/// FNV-1a of 64 bits: the tag changes when the file does. No key, since nobody gains by two files
/// of one tag.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

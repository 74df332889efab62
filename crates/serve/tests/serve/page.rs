//! The page: types, tags and policy of its files, and addresses in them.

use axum::body::Body;
use axum::http::Method;

use crate::shop::{Shopping, config, shopping};

/// Files that the page's own text names, from `/` on, each with its text.
async fn files(shop: &Shopping) -> Vec<(String, String)> {
    let mut files = vec![("/".to_owned(), String::new())];
    let mut next = 0;
    while next < files.len() {
        let text = shop.get(&files[next].0).await.ok().as_str().unwrap().to_owned();
        for (_, rest) in matches(&text, "\"/assets/").chain(matches(&text, "\"./")) {
            let path = format!("/assets/{}", rest.split('"').next().unwrap());
            if files.iter().all(|(known, _)| *known != path) {
                files.push((path, String::new()));
            }
        }
        files[next].1 = text;
        next += 1;
    }
    files
}

/// Texts before and after each place of a text in another.
fn matches<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.match_indices(part).map(|(at, _)| (&text[..at], &text[at + part.len()..]))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_their_type_and_a_policy_and_are_sent_once() {
    let shop = shopping(config());
    let files = files(&shop).await;
    assert!(files.len() > 4, "a style and several scripts: {files:?}");
    let mut tags = Vec::new();
    for (path, text) in &files {
        let answer = shop.get(path).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let media_type = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(header("content-type"), media_type, "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("cache-control"), "no-cache", "{path}");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        let tag = header("etag");
        assert!(!text.is_empty() && !tags.contains(&tag), "{path}");

        for known in [&tag, "*", &format!("\"0\", W/{tag}")] {
            let known = [("if-none-match", known)];
            let again = shop.send_with(Method::GET, path, &known, Body::empty()).await;
            assert_eq!((again.status.as_u16(), again.body.as_str()), (304, Some("")), "{path}");
            assert_eq!(again.headers["etag"], tag, "{path}");
        }
        let other = [("if-none-match", "\"0\"")];
        let again = shop.send_with(Method::GET, path, &other, Body::empty()).await;
        assert_eq!(again.status.as_u16(), 200, "{path}");
        tags.push(tag);
    }
    let (detail, _) = shop.get("/assets/nothing.js").await.problem(404);
    assert!(detail.contains("nothing.js"), "{detail}");
    shop.send(Method::POST, "/", Body::empty()).await.problem(405);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_names_no_other_host_and_has_no_script_or_style_within() {
    let shop = shopping(config());
    for (path, text) in files(&shop).await {
        for (before, rest) in matches(&text, "://") {
            let is_namespace =
                before.ends_with("http") && rest.starts_with("www.w3.org/2000/svg\"");
            assert!(is_namespace, "{path} names another host: {}", &rest[..rest.len().min(40)]);
        }
        for (_, rest) in matches(&text, "\"/").chain(matches(&text, "`/")) {
            let end = rest.find(['"', '`', '$']).unwrap_or(rest.len());
            let is_address = |of: char| of.is_ascii_alphanumeric() || "._/-".contains(of);
            if !rest[..end].chars().all(is_address) {
                continue;
            }
            // The page, its files, routes; and places in a body.
            let routes = ["assets/", "v1/", "openapi.json", "metrics"];
            let is_route = routes.iter().any(|route| rest.starts_with(route));
            let places = ["", "k", "beam_width", "deadline_ms", "generation", "mode", "rules"];
            assert!(is_route || places.contains(&&rest[..end]), "{path}: /{}", &rest[..end]);
        }
        // The policy would keep these from doing anything.
        for within in [" style=\"", "<style", " onclick=\"", "javascript:", ".innerHTML"] {
            assert!(!text.contains(within), "{path} has {within}");
        }
        let scripts = matches(&text, "<script").all(|(_, rest)| rest.contains(" src=\"/assets/"));
        assert!(scripts, "{path} has a script within");
    }
}

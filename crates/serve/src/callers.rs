//! Callers without keys: programs and this server's own page, no page of another origin.
//!
//! A browser sends what any page tells it to, to loopback too. A page of another origin betrays
//! itself by `Origin`; one whose name was made to mean this machine's address (DNS rebinding) by
//! `Host`. So both are checked where there are no keys; with keys a page would need one. Bodies of
//! writes have a type, since those without need no permission of the browser (CORS).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::config::ServeConfig;
use crate::domain::permissions;
use crate::problem::{Kind, Problem};

/// Refuses requests that do not say once where they are sent to, and pages of other origins where
/// there are no keys.
pub(crate) async fn enforce(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check(&app.config, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses writes that do not say what their body is.
pub(crate) async fn enforce_type(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let is_write =
        route.is_some_and(|route| permissions::is_write(request.method().as_str(), route.as_str()));
    if is_write && !request.headers().contains_key(CONTENT_TYPE) {
        let detail =
            "the body says nothing of its type; send Content-Type, such as application/json";
        return Problem::new(Kind::UnsupportedMedia, detail).into_response();
    }
    next.run(request).await
}

fn check(config: &ServeConfig, request: &Request) -> Result<(), Problem> {
    let authority = authority(request)?;
    if config.keys.is_some() {
        return Ok(());
    }
    if let Some(host) = authority.as_ref().filter(|host| !is_own_host(config, host)) {
        let detail = format!(
            "the request is for {host}, and this server has no keys: it takes requests for addresses, localhost and the names that it \
             was told (--listen NAME:PORT, --server-name NAME); or give it keys (--keys)"
        );
        return Err(Problem::new(Kind::Forbidden, detail));
    }
    match foreign_origin(config, request.headers(), authority.as_ref()) {
        None => Ok(()),
        Some(origin) => Err(Problem::new(
            Kind::Forbidden,
            format!(
                "the request comes from a page of {origin:?}, and this server has no keys: only its own page may ask; give it keys (--keys)"
            ),
        )),
    }
}

/// Host and port that a request is sent to; `None` of HTTP/1.0, which need not say it.
fn authority(request: &Request) -> Result<Option<Authority>, Problem> {
    let refused = |detail: String| Err(Problem::new(Kind::BadRequest, detail));
    let mut given = request.headers().get_all(HOST).iter();
    let host = match (given.next(), given.next()) {
        (_, Some(_)) => return refused("there are two Host headers; send one".to_owned()),
        (None, None) => None,
        (Some(value), None) => {
            let parsed = value.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
            match parsed.filter(|host| !host.as_str().contains('@')) {
                Some(host) => Some(host),
                None => {
                    return refused(format!(
                        "Host is {value:?}; it must be a host, or host:port, such as localhost:8080"
                    ));
                }
            }
        }
    };
    // HTTP/2 has it there, and requests with a whole URL.
    match (request.uri().authority(), host) {
        (Some(of_path), Some(host)) if !of_path.as_str().eq_ignore_ascii_case(host.as_str()) => {
            refused(format!("the request is for {of_path}, and its Host is {host}; send one"))
        }
        (of_path, host) => match host.or_else(|| of_path.cloned()) {
            None if request.version() > Version::HTTP_10 => {
                refused("there is no Host header; send one".to_owned())
            }
            found => Ok(found),
        },
    }
}

/// True for a host that nobody else can have made mean this server. Such are an address, localhost,
/// or a name that it was told.
fn is_own_host(config: &ServeConfig, authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = host.strip_suffix('.').unwrap_or(host);
    address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || config.server_names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Origin of the page that sent a request, where that is not this server's own or one that it was
/// told.
fn foreign_origin(
    config: &ServeConfig,
    headers: &HeaderMap,
    authority: Option<&Authority>,
) -> Option<String> {
    let origins = headers.get_all(ORIGIN).iter();
    let mut origins = origins.map(|origin| String::from_utf8_lossy(origin.as_bytes()));
    let is_told =
        |origin: &str| config.origins.iter().any(|told| told.eq_ignore_ascii_case(origin));
    let foreign = origins.find(|origin| !is_told(origin) && !is_of(origin, authority));
    foreign.map(|origin| origin.into_owned())
}

/// True if an origin is that of the server which a request is sent to.
fn is_of(origin: &str, authority: Option<&Authority>) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    // Before a proxy it may be https, which changes the port that is not written.
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let (Ok(origin), Some(authority)) = (rest.parse::<Authority>(), authority) else {
        return false;
    };
    let port_of = |of: &Authority| of.port_u16().unwrap_or(port);
    origin.host().eq_ignore_ascii_case(authority.host()) && port_of(&origin) == port_of(authority)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    /// Status that a request with these headers is refused with; 200 where it is not.
    fn status(config: &ServeConfig, version: Version, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(uri).version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match check(config, &request.body(Body::empty()).unwrap()) {
            Ok(()) => 200,
            Err(problem) => problem.status,
        }
    }

    #[test]
    fn hosts_are_addresses_localhost_and_names_that_were_told() {
        let config =
            ServeConfig { server_names: vec!["shop.internal".to_owned()], ..Default::default() };
        let keyed = ServeConfig { keys: Some("keys".into()), ..Default::default() };
        for (host, wanted) in [
            ("127.0.0.1", 200),
            ("127.0.0.1:8080", 200),
            ("10.1.2.3:1", 200),
            ("[::1]", 200),
            ("[::1]:8080", 200),
            ("localhost", 200),
            ("LocalHost:8080", 200),
            ("localhost.:8080", 200),
            ("shop.internal:80", 200),
            ("SHOP.internal", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("localhost.evil.example:8080", 403),
            ("sub.shop.internal", 403),
            ("2130706433", 403),
            ("[evil]", 403),
        ] {
            let headers = [("host", host)];
            assert_eq!(status(&config, Version::HTTP_11, "/", &headers), wanted, "{host}");
            assert_eq!(status(&keyed, Version::HTTP_11, "/", &headers), 200, "{host} with keys");
        }
        for config in [&config, &keyed] {
            for host in ["", "a b", "user@127.0.0.1", "127.0.0.1/", "http://127.0.0.1", "é"] {
                let given = status(config, Version::HTTP_11, "/", &[("host", host)]);
                assert_eq!(given, 400, "{host}");
            }
            let twice = [("host", "127.0.0.1"), ("host", "127.0.0.1")];
            assert_eq!(status(config, Version::HTTP_11, "/", &twice), 400);
            assert_eq!(status(config, Version::HTTP_11, "/", &[]), 400);
            assert_eq!(status(config, Version::HTTP_10, "/", &[]), 200);
            assert_eq!(status(config, Version::HTTP_2, "/", &[]), 400);
            assert_eq!(status(config, Version::HTTP_2, "http://127.0.0.1/", &[]), 200);
            let other = [("host", "localhost")];
            assert_eq!(status(config, Version::HTTP_11, "http://127.0.0.1/", &other), 400);
        }
        assert_eq!(status(&config, Version::HTTP_2, "http://evil.example/", &[]), 403);
        let absolute = [("host", "evil.example")];
        assert_eq!(status(&config, Version::HTTP_11, "http://evil.example/", &absolute), 403);
    }

    #[test]
    fn origins_are_the_servers_own_or_were_told() {
        let config =
            ServeConfig { origins: vec!["https://shop.example".to_owned()], ..Default::default() };
        let keyed = ServeConfig { keys: Some("keys".into()), ..Default::default() };
        for (host, origin, wanted) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080", 200),
            ("localhost:8080", "http://LOCALHOST:8080", 200),
            ("localhost", "http://localhost", 200),
            ("localhost:80", "http://localhost", 200),
            ("localhost", "https://localhost", 200),
            ("localhost:443", "https://localhost", 200),
            ("[::1]:8080", "http://[::1]:8080", 200),
            ("localhost:8080", "https://shop.example", 200),
            ("localhost:8080", "http://shop.example", 403),
            ("localhost:8080", "http://localhost:8599", 403),
            ("127.0.0.1:8080", "http://localhost:8080", 403),
            ("localhost:80", "https://localhost", 403),
            ("localhost", "null", 403),
            ("localhost", "", 403),
            ("localhost", "localhost", 403),
            ("localhost", "file://localhost", 403),
            ("localhost", "chrome-extension://localhost", 403),
            ("localhost", "http://localhost/", 403),
            ("localhost", "http://localhost, http://localhost", 403),
        ] {
            let headers = [("host", host), ("origin", origin)];
            let given = status(&config, Version::HTTP_11, "/", &headers);
            assert_eq!(given, wanted, "{origin} for {host}");
            assert_eq!(status(&keyed, Version::HTTP_11, "/", &headers), 200, "{origin} with keys");
        }
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "null")];
        assert_eq!(status(&config, Version::HTTP_11, "/", &two), 403);
        assert_eq!(status(&config, Version::HTTP_10, "/", &[("origin", "http://localhost")]), 403);
    }
}

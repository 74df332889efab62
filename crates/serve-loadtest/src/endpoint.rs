//! Addresses of servers: `http://host:port`, with a path before `/v1` where a proxy adds one.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use hyper::Uri;

/// The path of the API that is asked, below the address.
const RECOMMEND: &str = "/v1/recommend";

/// A server's address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host as it is looked up: an IPv6 address has no brackets.
    host: String,
    port: u16,
    /// The value of `Host`.
    authority: String,
    /// Path before `/v1`; without a slash at its end.
    prefix: String,
}

/// An address that cannot be asked. The message names it, the rule, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url:?}: {reason}")]
pub struct UrlError {
    url: String,
    reason: String,
}

impl Endpoint {
    /// Reads `http://host[:port][/prefix]`.
    ///
    /// # Errors
    /// For other schemes (there is no TLS here), user names, queries, and what is no URL.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        const EXAMPLE: &str = "give an address such as http://127.0.0.1:8080";
        let error = |reason: String| UrlError { url: url.to_owned(), reason };
        let uri: Uri = url.trim().parse().map_err(|e| error(format!("{e}; {EXAMPLE}")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(error(
                    "https is not spoken here; ask the server itself, or a port of the proxy without TLS, over http".to_owned(),
                ));
            }
            Some(other) => {
                return Err(error(format!("the scheme {other:?} is not http; {EXAMPLE}")));
            }
            None => return Err(error(format!("the URL has no scheme; {EXAMPLE}"))),
        }
        let Some(authority) = uri.authority().filter(|a| !a.host().is_empty()) else {
            return Err(error(format!("the URL has no host; {EXAMPLE}")));
        };
        if authority.as_str().contains('@') {
            return Err(error(
                "a name or password in a URL is not sent; give a key file".to_owned(),
            ));
        }
        let port = match authority.as_str().rsplit_once(':') {
            // `[::1]` has colons, none of them before a port.
            Some((_, port)) if !port.ends_with(']') => port.parse().ok().filter(|&port| port > 0),
            _ => Some(80),
        };
        let Some(port) = port else {
            return Err(error("the port is not from 1 to 65535".to_owned()));
        };
        if uri.query().is_some() {
            return Err(error(format!("the URL has a query; {EXAMPLE}")));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = uri.path().trim_end_matches('/');
        let prefix = path.strip_suffix(RECOMMEND).unwrap_or(path).to_owned();
        Ok(Self { host, port, authority: authority.as_str().to_owned(), prefix })
    }

    /// The path that is asked.
    pub(crate) fn recommend_path(&self) -> String {
        format!("{}{RECOMMEND}", self.prefix)
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Looks up the host; not empty.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<SocketAddr> = found.map_err(|e| e.to_string())?.collect();
        if found.is_empty() { Err("the host has no address".to_owned()) } else { Ok(found) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, host: &str, port: u16, path: &str) {
        let endpoint = Endpoint::parse(url).unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port), "{url}");
        assert_eq!(endpoint.recommend_path(), path, "{url}");
    }

    #[track_caller]
    fn check_refused(url: &str, words: &str) {
        let error = Endpoint::parse(url).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(&format!("{url:?}")), "{error}");
    }

    #[test]
    fn addresses_that_can_be_asked() {
        check("http://127.0.0.1:8080", "127.0.0.1", 8080, "/v1/recommend");
        check("http://shop.example/", "shop.example", 80, "/v1/recommend");
        check("http://[::1]:9/eu/", "::1", 9, "/eu/v1/recommend");
        check("http://[::1]", "::1", 80, "/v1/recommend");
        check("http://a:1/v1/recommend", "a", 1, "/v1/recommend");
    }

    #[test]
    fn addresses_that_cannot() {
        check_refused("https://127.0.0.1:8080", "https is not spoken");
        check_refused("127.0.0.1:8080", "http://127.0.0.1:8080");
        check_refused("localhost", "no scheme");
        check_refused("ftp://a", "\"ftp\" is not http");
        check_refused("http://", "http://127.0.0.1:8080");
        check_refused("", "http://127.0.0.1:8080");
        check_refused("http://me:secret@a", "key file");
        check_refused("http://a:0", "1 to 65535");
        check_refused("http://a:70000", "65535");
        check_refused("http://a:b", "http://");
        check_refused("http://a/?x=1", "query");
    }
}

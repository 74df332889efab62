//! Bodies of requests, made before any is sent.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{HeaderMap, Request};

use crate::endpoint::Endpoint;

/// Body of a request, shared by all that are sent with it.
pub type Body = Bytes;

/// Bodies with the headers that all of them have.
#[derive(Clone, Debug)]
pub struct Requests {
    bodies: Vec<Body>,
    authorization: Option<HeaderValue>,
    /// Items that are asked for; an answer with fewer is short.
    pub(crate) k: usize,
}

/// A key that no header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key is empty or has characters that no header can carry; a key is one line of visible ASCII"
)]
pub struct KeyError;

impl Requests {
    /// Requests for `k` items each, without a key. Request `i` has the body `i mod n` of `n`; none
    /// can be asked if there are none.
    pub fn new(bodies: Vec<Body>, k: usize) -> Self {
        Self { bodies, authorization: None, k }
    }

    /// Requests with a key, sent as `Authorization: Bearer`.
    ///
    /// # Errors
    /// For a key that is empty or not visible ASCII.
    pub fn with_key(mut self, key: &str) -> Result<Self, KeyError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| KeyError)?;
        // Debug output has no key.
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Distinct bodies.
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// True where nothing can be asked.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The body of a request.
    pub(crate) fn body(&self, index: u64) -> Bytes {
        self.bodies[(index % self.bodies.len() as u64) as usize].clone()
    }

    pub(crate) fn headers(&self, endpoint: &Endpoint) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // A URL's authority has only characters that a header may have.
        if let Ok(host) = HeaderValue::from_str(endpoint.authority()) {
            headers.insert(HOST, host);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.authorization {
            headers.insert(AUTHORIZATION, key.clone());
        }
        headers
    }
}

/// Message; `path` is of an [`Endpoint`].
pub(crate) fn message(path: &hyper::Uri, headers: &HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = hyper::Method::POST;
    *request.uri_mut() = path.clone();
    *request.headers_mut() = headers.clone();
    request
}

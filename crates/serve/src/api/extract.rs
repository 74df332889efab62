//! Parts of a request's head whose faults are problem documents.

use axum::extract::{FromRequestParts, Path as AxumPath, Query as AxumQuery};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use hyper::header::{ETAG, IF_MATCH};
use palmette_document::Wrong;
use serde::de::DeserializeOwned;

use crate::problem::{Kind, Problem};

/// The generation that an answer was read at.
pub(crate) const GENERATION: HeaderName = HeaderName::from_static("palmette-generation");

/// Parameters in the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = AxumPath::<T>::from_request_parts(parts, state).await;
        let refused = |error: axum::extract::rejection::PathRejection| {
            Problem::new(Kind::Invalid, format!("the path: {}", error.body_text()))
        };
        found.map(|AxumPath(found)| Self(found)).map_err(refused)
    }
}

/// Parameters after the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let refused = |error: axum::extract::rejection::QueryRejection| {
            // What comes before says in which type it was to be put.
            let text = error.body_text();
            let begins = ["unknown field", "missing field", "duplicate field", "invalid "];
            let rule =
                begins.iter().find_map(|begin| text.find(begin)).map_or(&*text, |at| &text[at..]);
            let detail = Wrong::reworded(rule).of("a parameter");
            Problem::new(Kind::Invalid, format!("the query: {detail}"))
        };
        AxumQuery::try_from_uri(&parts.uri).map(|AxumQuery(found)| Self(found)).map_err(refused)
    }
}

/// The condition of `If-Match`: generations of which the catalog must be at one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// None, or `*`.
    Any,
    OneOf(Vec<u64>),
}

impl IfMatch {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut generations = Vec::new();
        for value in headers.get_all(IF_MATCH) {
            for tag in value.to_str().unwrap_or("?").split(',').map(str::trim) {
                let generation = || tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok();
                match (tag, generation()) {
                    ("*", _) => return Ok(Self::Any),
                    (_, Some(generation)) => generations.push(generation),
                    (_, None) => {
                        return Err(Problem::new(
                            Kind::Invalid,
                            format!(
                                "If-Match has {tag:?}; a generation in quotes is meant, as \"1042\""
                            ),
                        ));
                    }
                }
            }
        }
        Ok(if generations.is_empty() { Self::Any } else { Self::OneOf(generations) })
    }

    /// Refuses where the catalog is elsewhere.
    pub(crate) fn check(&self, now: u64) -> Result<(), Problem> {
        match self {
            Self::OneOf(generations) if !generations.contains(&now) => Err(self.failed(now)),
            _ => Ok(()),
        }
    }

    /// The generations of which the catalog must be at one; `None` for any.
    pub(crate) fn generations(&self) -> Option<Vec<u64>> {
        match self {
            Self::Any => None,
            Self::OneOf(generations) => Some(generations.clone()),
        }
    }

    /// The problem of a catalog that is elsewhere.
    pub(crate) fn failed(&self, now: u64) -> Problem {
        let named = self.generations().unwrap_or_default();
        let detail = format!(
            "the catalog is at generation {now}, If-Match names {named:?}; read it again and decide anew"
        );
        Problem::new(Kind::PreconditionFailed, detail)
    }
}

/// The text of a header; `None` without it.
pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let value = headers.get(name).map(HeaderValue::to_str).transpose();
    value.map_err(|_| Problem::new(Kind::Invalid, format!("{name} is no printable ASCII")))
}

/// The media type of a body, without parameters and in small letters; empty without one.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let given = headers.get(hyper::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// An answer with the generation in its header.
pub(crate) fn answered(generation: Option<u64>, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    if let Some(generation) = generation {
        response.headers_mut().insert(GENERATION, HeaderValue::from(generation));
    }
    response
}

/// An answer of one generation, in its headers too.
pub(crate) fn at_generation(generation: Option<u64>, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    let mut add = |name: HeaderName, value: HeaderValue| response.headers_mut().insert(name, value);
    if let Some(generation) = generation {
        add(GENERATION, HeaderValue::from(generation));
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{generation}\"")) {
            add(ETAG, tag);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_checked() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IF_MATCH, value.parse().unwrap());
            }
            IfMatch::of(&headers)
        };
        assert_eq!(of(&[]).unwrap(), IfMatch::Any);
        assert_eq!(of(&["*"]).unwrap(), IfMatch::Any);
        let some = of(&["\"3\", \"4\"", "\"9\""]).unwrap();
        assert_eq!(some, IfMatch::OneOf(vec![3, 4, 9]));
        assert!(some.check(4).is_ok());
        assert_eq!(some.check(5).unwrap_err().status, 412);
        for wrong in ["3", "\"x\"", "W/\"3\"", "", "\"3"] {
            assert_eq!(of(&[wrong]).unwrap_err().status, 422, "{wrong}");
        }
    }
}

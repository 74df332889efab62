//! Bodies of `/v1/recommend/batch`.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::RecommendAnswer;
use crate::problem::Problem;

/// Requests of one batch, at most.
const MAX_REQUESTS: usize = 1024;

/// Questions that one generation answers.
///
/// They are kept as text: parsed, small values would take tens of times their bytes, all at once.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    /// Members for all requests that do not have them.
    #[schema(value_type = Object)]
    pub defaults: Option<Box<RawValue>>,
    /// Requests as `/v1/recommend` takes them, up to 1,024.
    #[serde(deserialize_with = "bounded")]
    #[schema(value_type = Vec<Object>, max_items = 1024)]
    pub requests: Vec<Box<RawValue>>,
}

/// A list that ends with the first request too many.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    struct Requests;

    impl<'de> Visitor<'de> for Requests {
        type Value = Vec<Box<RawValue>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of requests")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(request) = requests.next_element()? {
                if all.len() == MAX_REQUESTS {
                    return Err(A::Error::custom(format!(
                        "the batch has more than {MAX_REQUESTS} requests: send several, or a stream"
                    )));
                }
                all.push(request);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_seq(Requests)
}

/// Answers in the order of the requests.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// The request's id.
    pub request_id: String,
    /// An answer or a problem for each request.
    pub results: Vec<BatchResult>,
}

/// An answer or a problem.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BatchResult {
    /// Status that the request would have had alone.
    pub status: u16,
    /// The answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<RecommendAnswer>,
    /// The problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

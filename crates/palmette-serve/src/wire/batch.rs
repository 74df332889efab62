//! Bodies of `/v1/recommend/batch`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::RecommendAnswer;
use crate::problem::Problem;

/// Questions that one generation answers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    /// Members for all requests that do not have them.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub defaults: Map<String, Value>,
    /// Requests as `/v1/recommend` takes them, up to 1,024.
    #[schema(value_type = Vec<Object>)]
    pub requests: Vec<Value>,
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

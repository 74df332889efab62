//! Envelope of a question: which catalog and moment are asked, by when and how urgently. A server
//! reads it.

use std::fmt;

use palmette_catalog_filter::whole_number;
use palmette_document::{DocumentError, Members};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{RecommendQuestion, shown};

/// Members of a body that are no part of the question: they change who answers and when, not the
/// answer to a question about a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestEnvelope {
    /// Alias of a target, or `model:catalog`. May be left out where there is one target.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = "shop"))]
    pub target: Option<String>,
    /// The generation to answer by: the newest, or one that is kept, by number or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationName>,
    /// A generation to wait for, until the deadline: one that an update was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_generation: Option<u64>,
    /// Milliseconds from receipt in which the answer is of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub deadline_ms: Option<u64>,
    /// Class of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// Body of a request: a question in its envelope, their members side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct RecommendBody {
    /// Catalog and model that are asked, and the deadline.
    pub envelope: RequestEnvelope,
    /// The question.
    pub question: RecommendQuestion,
}

impl RecommendBody {
    /// Reads a body from JSON.
    ///
    /// # Errors
    /// When it is no JSON, a member is unknown or its value is not one that it takes.
    pub fn from_json(text: &[u8]) -> Result<Self, DocumentError> {
        let members: Members = palmette_document::read(text)?;
        let (envelope, question) = members.split().map_err(DocumentError::Fault)?;
        Ok(Self { envelope, question })
    }
}

/// One object with the members of both.
#[cfg(feature = "schema")]
impl utoipa::PartialSchema for RecommendBody {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::{RefOr, Schema};
        let mut both = RecommendQuestion::schema();
        if let (RefOr::T(Schema::Object(both)), RefOr::T(Schema::Object(envelope))) =
            (&mut both, RequestEnvelope::schema())
        {
            both.properties.extend(envelope.properties);
        }
        both
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for RecommendBody {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        RecommendQuestion::schemas(schemas);
        RequestEnvelope::schemas(schemas);
    }
}

/// A generation: its number, or the name under which it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum GenerationName {
    /// Number of a generation.
    Number(u64),
    /// Name of a generation.
    Name(String),
}

/// The number, or the name.
impl fmt::Display for GenerationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for GenerationName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = || value.as_u64().or_else(|| whole_number(&value)?.try_into().ok());
        let name = value
            .as_str()
            .map(|name| Self::Name(name.to_owned()))
            .or_else(|| number().map(Self::Number));
        name.ok_or_else(|| {
            let (given, wanted) = (shown(&value), "a generation's number or its name");
            D::Error::invalid_type(Unexpected::Other(&given), &wanted)
        })
    }
}

/// Class of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Somebody waits: it has a deadline.
    #[default]
    Interactive,
    /// Answered when no interactive request waits, without a deadline unless it names one.
    Bulk,
}

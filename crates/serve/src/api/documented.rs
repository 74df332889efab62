//! Statuses of problems in the OpenAPI document, for each kind of route.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::problem::{Kind, PROBLEM_JSON, Problem};
use crate::wire::OpenAiError;

macro_rules! problems {
    ($($(#[doc = $doc:literal])* $name:ident: $($kind:ident)*;)*) => {$(
        $(#[doc = $doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses(&[$(Kind::$kind),*])
            }
        }
    )*};
}

problems! {
    /// Problems of a question.
    Recommends: NotJson Unauthorised Forbidden NotFound SlowRequest Gone TooLarge UnsupportedMedia Invalid Overloaded Unavailable
        DeadlineMissed;
    /// Problems of a list of questions, each of which has problems of its own.
    Batches: NotJson Unauthorised Forbidden SlowRequest TooLarge UnsupportedMedia Invalid Unavailable;
    /// Problems of questions line by line, whose problems are lines.
    Streams: BadRequest Unauthorised Forbidden UnsupportedMedia;
    /// Problems of a route that changes models or targets.
    Switches: NotJson Unauthorised Forbidden NotFound SlowRequest Conflict TooLarge UnsupportedMedia Invalid Unavailable;
    /// Problems of a probe.
    Probes: BadRequest Forbidden;
    /// Problems of a route that lists what the key permits.
    Lists: BadRequest Unauthorised Forbidden;
    /// Problems of a route that reads and takes no body.
    Looks: BadRequest Unauthorised Forbidden NotFound Gone Invalid;
    /// Problems of a route that reads what a body asks for.
    Reads: NotJson Unauthorised Forbidden NotFound SlowRequest Gone TooLarge UnsupportedMedia Invalid;
    /// Problems of a route that changes something by a body.
    Writes: NotJson Unauthorised Forbidden NotFound SlowRequest Conflict Gone PreconditionFailed TooLarge UnsupportedMedia Invalid
        Unavailable;
    /// Problems of a route that changes something and takes no body.
    Deletes: BadRequest Unauthorised Forbidden NotFound Conflict PreconditionFailed Invalid Unavailable;
}

/// Errors of a request for text, in OpenAI's form.
pub(crate) struct Texts;

impl IntoResponses for Texts {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let kinds = [
            Kind::NotJson,
            Kind::Unauthorised,
            Kind::Forbidden,
            Kind::NotFound,
            Kind::SlowRequest,
            Kind::Gone,
            Kind::TooLarge,
            Kind::UnsupportedMedia,
            Kind::NoText,
            Kind::Overloaded,
            Kind::Internal,
            Kind::Unavailable,
            Kind::DeadlineMissed,
        ];
        let response = |kind: &Kind| {
            let problem = Problem::new(*kind, "");
            let schema = Ref::from_schema_name(OpenAiError::name());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response = ResponseBuilder::new().description(problem.title);
            (
                problem.status.to_string(),
                response.content("application/json", content).build().into(),
            )
        };
        kinds.iter().map(response).collect()
    }
}

fn responses(kinds: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    let response = |kind: &Kind| {
        let problem = Problem::new(*kind, "");
        let content =
            ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
        let response =
            ResponseBuilder::new().description(problem.title).content(PROBLEM_JSON, content);
        (problem.status.to_string(), response.build().into())
    };
    kinds.iter().map(response).collect()
}

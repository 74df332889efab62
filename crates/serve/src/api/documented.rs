//! Statuses of problems in the OpenAPI document, for each kind of route.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::problem::{Kind, PROBLEM_JSON, Problem};
use crate::wire::{MessageError, OpenAiError};

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

/// Errors of a request for text, in Anthropic's form.
pub(crate) struct Messages;

const OF_TEXTS: [Kind; 13] = [
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

impl IntoResponses for Texts {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        of_schema::<OpenAiError>(&OF_TEXTS, "application/json")
    }
}

impl IntoResponses for Messages {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        of_schema::<MessageError>(&OF_TEXTS, "application/json")
    }
}

fn responses(kinds: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    of_schema::<Problem>(kinds, PROBLEM_JSON)
}

fn of_schema<T: ToSchema>(kinds: &[Kind], media: &str) -> BTreeMap<String, RefOr<Response>> {
    let response = |kind: &Kind| {
        let problem = Problem::new(*kind, "");
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(T::name()))).build();
        let response = ResponseBuilder::new().description(problem.title);
        (problem.status.to_string(), response.content(media, content).build().into())
    };
    kinds.iter().map(response).collect()
}

//! The OpenAPI document: what the macros make of routes and types, and what holds of all of them.

use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, OpenApi, PathItem, RefOr, Response, Schema};

use crate::domain::permissions;
use crate::wire::filter;

/// Name of the way in which a key is sent.
const KEY: &str = "key";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Palmette",
        description = "Recommendations that are always items of the catalog, under a deadline; and texts under grammars.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    // Those of filters contain one another, so that the macros do not follow them.
    components(schemas(
        filter::HistoryForm, crate::wire::OpenAiError, crate::wire::MessageError, filter::Condition, filter::Conditions, filter::Filter, filter::MinShould, filter::Nested,
        filter::NestedCondition, filter::TextOrNumber
    )),
    tags(
        (name = "recommend", description = "Items that follow a history"),
        (name = "catalogs", description = "Items, generations and catalogs"),
        (name = "operations", description = "Work that goes on after its request was answered"),
        (name = "targets", description = "Pairs of model and catalog"),
        (name = "text", description = "Texts under grammars, as OpenAI's and Anthropic's clients ask for them"),
        (name = "probes", description = "State of the process")
    )
)]
struct Document;

/// The document without routes.
pub(crate) fn empty() -> OpenApi {
    Document::openapi()
}

/// Adds to a document with all routes what holds of each: the key that it needs, and a description
/// of each answer.
pub(crate) fn finished(mut document: OpenApi) -> OpenApi {
    let mut components = document.components.take().unwrap_or_default();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "A key of the server's file, which `palmette key` makes; as `x-api-key: KEY` too. A server without such a file takes requests without one.",
    ));
    components.add_security_scheme(KEY, SecurityScheme::Http(scheme.build()));
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            operation.security = Some(security(method, path));
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    describe(response, &components);
                }
            }
        }
    }
    document.components = Some(components);
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
        ("PATCH", &mut item.patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Keys by which a route is let through, with the scopes that they need: with one, or without where
/// the server has none.
fn security(method: &str, path: &str) -> Vec<SecurityRequirement> {
    let without = SecurityRequirement::default();
    match permissions::scopes(method, path) {
        None => vec![without],
        Some(scopes) => {
            let scopes = scopes.iter().map(ToString::to_string);
            vec![SecurityRequirement::new(KEY, scopes), without]
        }
    }
}

/// Describes a response that does not say what it is by the first sentence of its type.
fn describe(response: &mut Response, components: &Components) {
    if !response.description.is_empty() {
        return;
    }
    let schema = response.content.values().find_map(|content| match content {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    });
    let of_type = schema.and_then(|schema| match schema {
        RefOr::Ref(of) => description(components, of.ref_location.rsplit('/').next()?),
        RefOr::T(_) => None,
    });
    response.description = of_type.unwrap_or_else(|| "The answer".to_owned());
}

/// First sentence about a type.
fn description(components: &Components, name: &str) -> Option<String> {
    let description = match components.schemas.get(name)? {
        RefOr::T(Schema::Object(object)) => object.description.as_deref(),
        RefOr::T(Schema::OneOf(of)) => of.description.as_deref(),
        RefOr::T(Schema::AllOf(of)) => of.description.as_deref(),
        _ => None,
    };
    let text = description?;
    let end = text.find(['.', '\n']).unwrap_or(text.len());
    Some(text[..end].to_owned())
}

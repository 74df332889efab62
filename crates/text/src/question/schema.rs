//! OpenAPI schema of bodies: one object with the members of all parts.

use std::borrow::Cow;

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{OwnMembers, TextBody, TextEnvelope, TextMembers};

impl<Own: OwnMembers + ToSchema> PartialSchema for TextBody<Own> {
    fn schema() -> RefOr<Schema> {
        let mut body = Own::schema();
        if let RefOr::T(Schema::Object(body)) = &mut body {
            body.description = Some(Own::ABOUT.to_owned());
            for part in [TextMembers::schema(), TextEnvelope::schema()] {
                if let RefOr::T(Schema::Object(part)) = part {
                    body.properties.extend(part.properties);
                }
            }
        }
        body
    }
}

impl<Own: OwnMembers + ToSchema> ToSchema for TextBody<Own> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(Own::BODY)
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Own::schemas(schemas);
        TextMembers::schemas(schemas);
        TextEnvelope::schemas(schemas);
    }
}

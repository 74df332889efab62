//! The drafts' own metaschemas, by the URIs that they have: schemas refer to them, and nothing is
//! downloaded.
//!
//! The files in `metaschemas/` are those that the JSON Schema organisation publishes with each
//! draft, as they are.

/// The metaschema of a URI without fragment, whichever of `http` and `https` it begins with.
pub(super) fn metaschema(uri: &str) -> Option<&'static str> {
    let (scheme, name) = uri.split_once("://")?;
    let found = METASCHEMAS.iter().find(|(known, _)| *known == name)?;
    ["http", "https"].contains(&scheme).then_some(found.1)
}

const METASCHEMAS: &[(&str, &str)] = &[
    ("json-schema.org/draft-04/schema", include_str!("metaschemas/draft-04.json")),
    ("json-schema.org/draft-06/schema", include_str!("metaschemas/draft-06.json")),
    ("json-schema.org/draft-07/schema", include_str!("metaschemas/draft-07.json")),
    (
        "json-schema.org/draft/2019-09/meta/applicator",
        include_str!("metaschemas/2019-09/applicator.json"),
    ),
    (
        "json-schema.org/draft/2019-09/meta/content",
        include_str!("metaschemas/2019-09/content.json"),
    ),
    ("json-schema.org/draft/2019-09/meta/core", include_str!("metaschemas/2019-09/core.json")),
    ("json-schema.org/draft/2019-09/meta/format", include_str!("metaschemas/2019-09/format.json")),
    (
        "json-schema.org/draft/2019-09/meta/meta-data",
        include_str!("metaschemas/2019-09/meta-data.json"),
    ),
    (
        "json-schema.org/draft/2019-09/meta/validation",
        include_str!("metaschemas/2019-09/validation.json"),
    ),
    ("json-schema.org/draft/2019-09/schema", include_str!("metaschemas/2019-09/schema.json")),
    (
        "json-schema.org/draft/2020-12/meta/applicator",
        include_str!("metaschemas/2020-12/applicator.json"),
    ),
    (
        "json-schema.org/draft/2020-12/meta/content",
        include_str!("metaschemas/2020-12/content.json"),
    ),
    ("json-schema.org/draft/2020-12/meta/core", include_str!("metaschemas/2020-12/core.json")),
    (
        "json-schema.org/draft/2020-12/meta/format-annotation",
        include_str!("metaschemas/2020-12/format-annotation.json"),
    ),
    (
        "json-schema.org/draft/2020-12/meta/format-assertion",
        include_str!("metaschemas/2020-12/format-assertion.json"),
    ),
    (
        "json-schema.org/draft/2020-12/meta/meta-data",
        include_str!("metaschemas/2020-12/meta-data.json"),
    ),
    (
        "json-schema.org/draft/2020-12/meta/unevaluated",
        include_str!("metaschemas/2020-12/unevaluated.json"),
    ),
    (
        "json-schema.org/draft/2020-12/meta/validation",
        include_str!("metaschemas/2020-12/validation.json"),
    ),
    ("json-schema.org/draft/2020-12/schema", include_str!("metaschemas/2020-12/schema.json")),
];

//! The keywords of the standard, and where each has schemas in it.

/// Kind of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Names or refers to schemas.
    Core,
    /// Says something of the value, if only in some drafts.
    Assertion,
    /// The value is a schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// An object whose values are schemas.
    NamedSchemas,
    /// `items` of before 2020-12: a schema or a list of them; `dependencies`: schemas or lists of
    /// names.
    Mixed,
    /// An annotation, which has no effect on which values are valid.
    Annotation,
}

/// All keywords.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().map(|(name, _)| *name)
}

/// A keyword that has no effect where none of others stands beside it.
pub(super) const DEPENDENT: [(&str, &[&str]); 6] = [
    ("else", &["if"]),
    ("if", &["then", "else"]),
    ("maxContains", &["contains"]),
    ("minContains", &["contains"]),
    ("then", &["if"]),
    ("contentSchema", &["contentMediaType"]),
];

/// The role of the keyword `name`, in any draft; `None` when none knows it.
pub(super) fn role(name: &str) -> Option<Role> {
    let at = KEYWORDS.binary_search_by_key(&name, |keyword| keyword.0).ok()?;
    Some(KEYWORDS[at].1)
}

/// Sorted by name.
const KEYWORDS: [(&str, Role); 72] = {
    use Role::*;
    [
        ("$anchor", Core),
        ("$comment", Annotation),
        ("$defs", NamedSchemas),
        ("$dynamicAnchor", Core),
        ("$dynamicRef", Core),
        ("$id", Core),
        ("$recursiveAnchor", Core),
        ("$recursiveRef", Core),
        ("$ref", Core),
        ("$schema", Core),
        ("$vocabulary", Core),
        ("additionalItems", Schema),
        ("additionalProperties", Schema),
        ("allOf", Schemas),
        ("anyOf", Schemas),
        ("const", Assertion),
        ("contains", Schema),
        ("contentEncoding", Assertion),
        ("contentMediaType", Assertion),
        ("contentSchema", Annotation),
        ("default", Annotation),
        ("definitions", NamedSchemas),
        ("dependencies", Mixed),
        ("dependentRequired", Assertion),
        ("dependentSchemas", NamedSchemas),
        ("deprecated", Annotation),
        ("description", Annotation),
        ("else", Schema),
        ("enum", Assertion),
        ("example", Annotation),
        ("examples", Annotation),
        ("exclusiveMaximum", Assertion),
        ("exclusiveMinimum", Assertion),
        ("format", Assertion),
        ("id", Core),
        ("if", Schema),
        ("items", Mixed),
        ("links", Annotation),
        ("maxContains", Assertion),
        ("maxItems", Assertion),
        ("maxLength", Assertion),
        ("maxProperties", Assertion),
        ("maximum", Assertion),
        ("minContains", Assertion),
        ("minItems", Assertion),
        ("minLength", Assertion),
        ("minProperties", Assertion),
        ("minimum", Assertion),
        ("multipleOf", Assertion),
        ("not", Schema),
        ("nullable", Annotation),
        ("oneOf", Schemas),
        ("pattern", Assertion),
        ("patternProperties", NamedSchemas),
        ("prefixItems", Schemas),
        ("properties", NamedSchemas),
        ("propertyNames", Schema),
        ("propertyOrdering", Annotation),
        ("readOnly", Annotation),
        ("required", Assertion),
        ("then", Schema),
        ("title", Annotation),
        ("type", Assertion),
        ("unevaluatedItems", Schema),
        ("unevaluatedProperties", Schema),
        ("uniqueItems", Assertion),
        ("writeOnly", Annotation),
        ("x-at-most", Assertion),
        ("x-catalog", Assertion),
        ("x-distinct", Assertion),
        ("x-record", Assertion),
        ("x-substring", Assertion),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KEYWORDS.windows(2).all(|two| two[0].0 < two[1].0));
    }
}

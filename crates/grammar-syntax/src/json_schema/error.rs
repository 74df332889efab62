//! Errors and warnings about a schema.

use std::fmt;

use crate::{Interrupted, Span};

/// A schema that cannot be compiled: what is wrong, and where.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct JsonSchemaError(Box<Inner>);

#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{kind}", place(.document, .pointer, .span))]
struct Inner {
    document: Option<String>,
    pointer: String,
    span: Option<Span>,
    kind: Kind,
}

/// Warning about a member whose name comes again.
pub(crate) const REPEATED: &str =
    "this member has no effect: its name comes again in this object, and the last one counts";

/// A remark on a schema or grammar: a statement without effect, or one that dialects read
/// differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The place as a JSON pointer; empty for the whole, and in grammars that are no JSON.
    pub pointer: String,
    /// Place in the source text.
    pub span: Span,
    /// The warning in words.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "{}: {}", self.span, self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("not JSON: {0}")]
    Syntax(String),
    #[error("`{keyword}`: {reason}")]
    Invalid { keyword: String, reason: String },
    #[error("`{keyword}` is not supported here: {reason}")]
    Unsupported { keyword: String, reason: String },
    #[error(
        "`{keyword}` refers to {uri:?}, which is not in this schema; give it by its URI: --resource URI=FILE, \
         `JsonSchemaOptions::resources`, or `resources` beside the schema in a request (nothing is downloaded)"
    )]
    Unresolved { keyword: String, uri: String },
    #[error("needs more than the limit `{limit}` = {value}{why}")]
    Limit { limit: &'static str, value: usize, why: String },
    #[error("no value is valid for this schema{0}")]
    Empty(String),
    #[error("arguments of a call are an object, and no object is valid for this schema")]
    NoObject,
    #[error(
        "{name:?} cannot be written as the name of a parameter: {rule}; rename it, or write calls in a format \
         whose arguments are JSON"
    )]
    ParameterName { name: String, rule: &'static str },
    #[error("this is {what}, no schema; the schema is inside it, at {schema:?}: give that alone")]
    Wrapped { what: &'static str, schema: String },
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl JsonSchemaError {
    pub(super) fn new(
        document: Option<String>,
        pointer: String,
        span: Option<Span>,
        kind: Kind,
    ) -> Self {
        Self(Box::new(Inner { document, pointer, span, kind }))
    }

    /// The place as a JSON pointer into the schema; the empty pointer is the whole.
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// The place in the source text.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// This error without the place in the source text, for a schema that was put into text by
    /// others than who wrote it.
    #[must_use]
    pub fn without_span(&self) -> Self {
        Self(Box::new(Inner { span: None, ..(*self.0).clone() }))
    }

    /// The URI of the document that it is about, where that is not the schema itself.
    pub(crate) fn document(&self) -> Option<&str> {
        self.0.document.as_deref()
    }

    /// The problem without its place, in a schema at the pointer `at` of a document.
    pub(crate) fn message_at(&self, at: &str) -> String {
        match &self.0.kind {
            Kind::Wrapped { what, schema } => {
                Kind::Wrapped { what, schema: format!("{at}{schema}") }.to_string()
            }
            kind => kind.to_string(),
        }
    }

    /// The keyword that is wrong or not supported, where it is one.
    pub fn keyword(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Invalid { keyword, .. }
            | Kind::Unsupported { keyword, .. }
            | Kind::Unresolved { keyword, .. } => Some(keyword),
            Kind::Syntax(_)
            | Kind::Limit { .. }
            | Kind::Empty(_)
            | Kind::NoObject
            | Kind::ParameterName { .. }
            | Kind::Wrapped { .. }
            | Kind::Interrupted(_) => None,
        }
    }

    /// True when the schema is right but asks for what no grammar here can express.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.0.kind, Kind::Unsupported { .. })
    }

    /// True when a limit of [`JsonSchemaLimits`](super::JsonSchemaLimits) is exceeded.
    pub fn is_limit_exceeded(&self) -> bool {
        matches!(self.0.kind, Kind::Limit { .. })
    }

    /// The name of the limit that is exceeded.
    pub fn limit(&self) -> Option<&'static str> {
        match self.0.kind {
            Kind::Limit { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// The name of a parameter that cannot be written in the style of a call's arguments.
    pub(crate) fn unwritable_parameter(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::ParameterName { name, .. } => Some(name),
            _ => None,
        }
    }

    /// True when the schema is right and no value is valid for it.
    pub fn is_empty(&self) -> bool {
        matches!(self.0.kind, Kind::Empty(_) | Kind::NoObject)
    }

    /// The JSON pointer to the schema inside, where the document is no schema but a tool definition
    /// or a response format.
    pub fn schema_inside(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Wrapped { schema, .. } => Some(schema),
            _ => None,
        }
    }

    /// The reason for which the work stopped, if the budget ran out or it was called off.
    pub fn interrupted(&self) -> Option<Interrupted> {
        match self.0.kind {
            Kind::Interrupted(interrupted) => Some(interrupted),
            _ => None,
        }
    }

    /// True when a `$ref` leads to a schema that was not given.
    pub fn is_unresolved(&self) -> bool {
        matches!(self.0.kind, Kind::Unresolved { .. })
    }
}

fn place(document: &Option<String>, pointer: &str, span: &Option<Span>) -> String {
    let mut place = String::new();
    if let Some(document) = document {
        place += &format!("{document}: ");
    }
    if let Some(span) = span {
        place += &format!("{span}, ");
    }
    place + &format!("at {:?}: ", if pointer.is_empty() { "/" } else { pointer })
}

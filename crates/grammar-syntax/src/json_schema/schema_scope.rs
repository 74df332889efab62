//! Scopes of members that a schema asks for.

use std::sync::Arc;

use super::source::JsonId;
use crate::ScopeKind;

/// A scope that a schema asks for, with the place where it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SchemaScope {
    pub(super) name: Arc<str>,
    pub(super) kind: ScopeKind,
    pub(super) at: JsonId,
}

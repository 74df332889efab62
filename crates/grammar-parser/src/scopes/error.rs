//! Errors of scopes of members that cannot be honoured.

use crate::Interrupted;

/// A scope of members that a grammar cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A scope of members that begins in one rule and ends in another.
    #[error("{scope} begins and ends in different rules; write both its ends in one rule's body")]
    Split {
        /// The scope.
        scope: String,
    },
    /// A scope within another of the same set.
    #[error(
        "{scope} stands within {outer}: which of the two a member belongs to is not defined; bind the inner one by another name, or \
         leave one of them out"
    )]
    Nested {
        /// The scope.
        scope: String,
        /// The one around it.
        outer: String,
    },
    /// A scope without members.
    #[error("{scope} has no member of {set} in it; name one there, or leave it out")]
    Empty {
        /// The scope.
        scope: String,
        /// The set.
        set: String,
    },
    /// A distinct scope whose members are not all of one kind.
    #[error(
        "{scope} has members of several fields, or records of different fields, of which it is not known how many are left together; \
         write one field of the set in it, or records with the same fields"
    )]
    Mixed {
        /// The scope.
        scope: String,
    },
    /// A record in a distinct scope that may be written without what tells its item from others.
    #[error(
        "{record} stands in {scope} and may be written without the id of its item, so that items could not be told apart; give it a \
         required member that is the id"
    )]
    RecordWithoutId {
        /// The record.
        record: String,
        /// The scope around it.
        scope: String,
    },
    /// A scope that counts items by a group, whose members are values that several items may have.
    #[error(
        "{scope} counts items, and {slot} does not tell items apart; write their ids there, or records with them"
    )]
    GroupsOfValues {
        /// The scope.
        scope: String,
        /// The slot.
        slot: String,
    },
    /// Scopes of several sets whose numbers depend on each other in too many ways.
    #[error(
        "scopes of several sets depend on each other in more than {limit} ways; use fewer of them"
    )]
    Entangled {
        /// The limit.
        limit: usize,
    },
    /// The budget is used up, or the compilation was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

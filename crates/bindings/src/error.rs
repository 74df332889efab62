//! Errors of giving a grammar's names their sets.

use palmette_catalog::{FilterError, grouped};
use palmette_catalog_members::FieldError;
use palmette_grammar::{CompileError, ScopeShortage, SubstringRule};
use palmette_lexicon::{BuildError, DocumentsError};

/// Names and sets that do not fit a grammar.
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// The grammar names a set that was not given.
    #[error("the grammar names the {} {slot}, which is not bound; {hint}", kind(*.is_documents))]
    Unbound {
        /// The set as the grammar calls it, with its field.
        slot: String,
        /// The name to bind.
        name: String,
        /// True of documents that are quoted.
        is_documents: bool,
        /// The names that are bound.
        hint: String,
    },
    /// A name was bound that the grammar does not ask for.
    #[error("{name} is bound, and the grammar names no such catalog; {hint}")]
    Unused {
        /// The name.
        name: String,
        /// The names that the grammar asks for.
        hint: String,
    },
    /// A filter was given for a name that is not bound.
    #[error("a filter is given for {name}, which is bound to no catalog; bind it first")]
    Unfiltered {
        /// The name.
        name: String,
    },
    /// A value of a list that is no member.
    #[error("values of {name}: {error}")]
    Value {
        /// The name that the list is bound by.
        name: String,
        /// The reason.
        error: BuildError,
    },
    /// Documents of which no substrings can be had.
    #[error("documents of {name}: {error}")]
    Documents {
        /// The name that they are bound by.
        name: String,
        /// The reason.
        error: DocumentsError,
    },
    /// Documents where the grammar names a catalog, or the other way round.
    #[error("the grammar names {slot} as {asked}, and {bound} is bound; bind {asked}")]
    Kind {
        /// The set as the grammar calls it.
        slot: String,
        /// The name to bind.
        name: String,
        /// The kind that the grammar names.
        asked: &'static str,
        /// The kind that is bound.
        bound: &'static str,
    },
    /// A request's filter that is none, or does not fit the catalog.
    #[error("filter of {name}: {error}")]
    Filter {
        /// The name that it is of.
        name: String,
        /// The reason.
        error: Box<FilterError>,
    },
    /// A filter in the grammar that is none, or does not fit the catalog.
    #[error("the grammar's filter of {slot}: {error}")]
    SlotFilter {
        /// The set as the grammar calls it.
        slot: String,
        /// The reason.
        error: Box<FilterError>,
    },
    /// A field that the catalog cannot give.
    #[error("{slot}: {error}")]
    Field {
        /// The set as the grammar calls it.
        slot: String,
        /// The name that it is bound by.
        name: String,
        /// The reason.
        error: Box<FieldError>,
    },
    /// Semantic IDs of which nothing says how they are written.
    #[error(
        "the grammar names {slot}, semantic IDs, and no tokens spell the codes of {name}: {reason}; \
         name {name}.id to write ids"
    )]
    NoCodeTokens {
        /// The set as the grammar calls it.
        slot: String,
        /// The name that it is bound by.
        name: String,
        /// The reason that there are none.
        reason: String,
    },
    /// Tokens of another model.
    #[error(
        "{slot}: the tokens that spell codes are of {tokens}, and the grammar's vocabulary has \
         {num_tokens}: both must be one model's"
    )]
    OtherVocabulary {
        /// The set as the grammar calls it.
        slot: String,
        /// Tokens of their vocabulary.
        tokens: usize,
        /// Tokens of the grammar's.
        num_tokens: usize,
    },
    /// No text is left.
    #[error("no text is left, since the grammar needs a member: {}", shortages(.0))]
    NoText(Vec<Shortage>),
    /// A scope that the set bound to its name cannot have.
    #[error("{scope}: {reason}")]
    Scope {
        /// The scope as messages name it.
        scope: String,
        /// The name of its set.
        name: String,
        /// The reason.
        reason: String,
    },
    /// No text is left, since scopes have too few items to choose from.
    #[error("no text is left: {}", .0.iter().map(short).collect::<Vec<_>>().join("; "))]
    Short(Vec<ScopeShortage>),
    /// The grammar without what needs a member of an empty set cannot be made ready.
    #[error(transparent)]
    Compile(Box<CompileError>),
}

/// A set without members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The set as the grammar calls it.
    pub slot: String,
    /// Items, or documents, that it is taken from.
    pub num_items: u64,
    /// The rule of quotes, of documents.
    pub quotes: Option<SubstringRule>,
}

fn kind(is_documents: bool) -> &'static str {
    if is_documents { "set of documents" } else { "catalog" }
}

fn shortages(all: &[Shortage]) -> String {
    let of = |Shortage { slot, num_items, quotes }: &Shortage| {
        let num = grouped(*num_items);
        let Some(rule) = quotes else { return format!("{slot}: 0 of {num} match") };
        let (unit, min) = (rule.unit().name(), rule.min());
        let max = rule.max().map(|max| format!(" and at most {max}")).unwrap_or_default();
        format!("{slot}: none of its {num} documents has {unit} of at least {min}{max} characters")
    };
    all.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn short(ScopeShortage { scope, eligible, needed, .. }: &ScopeShortage) -> String {
    format!("{scope} needs {needed}, and {} may be written there", grouped(*eligible))
}

//! Contract of all Palmette engines: token ids, token masks and the [`Constraint`] trait.
//!
//! A *constraint* is a set of token sequences: the semantic IDs of a catalog, the sentences of a
//! grammar. At every decoding step it says which tokens keep a completion possible. The decoder
//! knows only this crate's trait; catalogs and grammars do not know each other. Where a grammar has
//! texts of a catalog for parts, it asks a [`MemberSet`] for them.
//!
//! ```
//! use palmette_core::{TokenId, TokenMask};
//!
//! let mut mask = TokenMask::new(40);
//! mask.insert(TokenId(3));
//! mask.insert(TokenId(39));
//! assert_eq!(mask.iter().collect::<Vec<_>>(), [TokenId(3), TokenId(39)]);
//! assert_eq!(mask.as_words().len(), 2); // 40 bits in u32 words, bit t of the row is token t
//! ```
//!
//! # Invariants
//! - Every constraint obeys the seven laws at `Constraint`; `palmette_testkit::laws::check` runs
//!   them on random walks, and is itself tested to catch constraints that break them.
//! - A failure is never an answer. Every call of a constraint that a limit may stop returns its
//!   error (`Infallible` where there is none): a search, a matcher and a row of a batch end with
//!   it, never with a shorter answer or a mask of zeros to mistake for one.
#![forbid(unsafe_code)]

mod any;
mod binding;
mod budget;
mod constraint;
mod lengths;
pub mod mask;
mod mask_window;
mod member_set;
mod member_spelling;
mod remaining_members;
mod scope_memory;
mod sequence_part;
mod substring_rule;
mod token;
mod unconstrained;
mod vocabulary;
pub mod vocabulary_trie;

pub use any::{AnyConstraint, AnyError, AnyScratch, AnyState};
pub use binding::{Binding, ScopedSets, SlotId};
pub use budget::{Asker, Askers, Budget, Interrupted};
pub use constraint::{CommitAllError, CommitError, Constraint, RollbackError, successors_by_mask};
pub use lengths::Lengths;
pub use mask::TokenMask;
pub use mask_window::MaskWindow;
pub use member_set::{Cursor, MemberId, MemberSet};
pub use member_spelling::MemberSpelling;
pub use remaining_members::{RemainderCache, RemainingMembers};
pub use scope_memory::{OpenScope, ScopeId, ScopeMemory};
pub use sequence_part::SequencePart;
pub use substring_rule::{SubstringRule, SubstringRuleError, SubstringUnit};
pub use token::{NUMBER_BYTES, NUMBER_MARK, TokenId};
pub use unconstrained::Unconstrained;
pub use vocabulary::{Vocabulary, VocabularyError};
pub use vocabulary_trie::VocabularyTrie;

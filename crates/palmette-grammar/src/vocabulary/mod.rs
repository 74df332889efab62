//! The model's tokens as lexers see them: a trie of their bytes, and classes of tokens that nothing tells apart.

mod bytes_below;
mod fingerprint;
mod indexed;
mod token_classes;
mod trie;

pub use bytes_below::BytesBelow;
pub(crate) use bytes_below::of_kind;
pub use fingerprint::VocabularyFingerprint;
pub use indexed::IndexedVocabulary;
pub use token_classes::{Refinement, TokenClasses};
pub use trie::{Descend, Node, VocabularyTrie};

//! The vocabulary trie: a model's tokens by their bytes.

mod bytes_below;
mod depth_first;
mod fingerprint;
mod indexed;
mod spellings;
mod trie;

pub use bytes_below::BytesBelow;
pub(crate) use bytes_below::of_kind;
pub use depth_first::Visit;
pub use fingerprint::VocabularyFingerprint;
pub use indexed::IndexedVocabulary;
pub use spellings::{Numbered, Spellings};
pub use trie::{Node, VocabularyTrie};

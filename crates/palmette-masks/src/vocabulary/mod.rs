//! The vocabulary trie: a model's tokens by their bytes.

mod depth_first;
mod fingerprint;
mod spellings;
mod trie;

pub use depth_first::Visit;
pub use fingerprint::VocabularyFingerprint;
pub use spellings::{Numbered, Spellings};
pub use trie::{Node, VocabularyTrie};

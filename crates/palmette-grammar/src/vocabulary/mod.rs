//! The model's tokens as lexers see them: a trie of their bytes, and classes of tokens that nothing tells apart.

mod fingerprint;
mod token_classes;
mod trie;

pub use fingerprint::VocabularyFingerprint;
pub use token_classes::{Refinement, TokenClasses};
pub use trie::{Descend, Node, VocabularyTrie};

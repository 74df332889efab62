//! Spellings of a vocabulary's tokens, and a hash of a vocabulary's contents.

mod fingerprint;
mod spellings;

pub use fingerprint::VocabularyFingerprint;
pub use spellings::{NumberedTokens, Spellings};

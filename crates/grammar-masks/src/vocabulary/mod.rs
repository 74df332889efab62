//! Spellings of a vocabulary's tokens, and a hash of a vocabulary's contents.

mod fingerprint;
mod line_blanks;
mod name_tokens;
mod spellings;

pub use fingerprint::VocabularyFingerprint;
pub(crate) use line_blanks::{LineBlanks, LineEndTail};
pub use name_tokens::NameTokens;
pub use spellings::{NumberedTokens, Spellings};

//! Cutting text into tokens.

use std::fmt;
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary};

use crate::byte_pairs::BytePairs;
use crate::hugging_face::HuggingFace;
use crate::longest_tokens::LongestTokens;
use crate::rank_pairs::RankPairs;
use crate::scored_pairs::{Refusal, ScoredPairs};
use crate::tokenize_error::{MAX_SPACE_RUN, TokenizeError};

/// Cuts text into tokens as the vocabulary's model was taught to read it; for lists of pieces,
/// which do not say how, by the longest token first.
///
/// Text is read as the middle of a text (nothing is put before it), and never as special tokens.
pub struct Tokenizer {
    method: Method,
    vocabulary: Arc<Vocabulary>,
    /// For [`Method::Longest`].
    longest: Option<LongestTokens>,
}

/// Way in which text is cut.
pub(crate) enum Method {
    /// Byte pairs of the encoding.
    Encoding(BytePairs),
    /// Tokenizer of a `tokenizer.json`.
    Tokenizer(HuggingFace),
    /// Byte pairs by ranks and a pattern of a file.
    Ranks(RankPairs),
    /// Pieces of a SentencePiece model, of the kinds that are followed.
    Scored(Result<ScoredPairs, Refusal>),
    /// At each place the longest token that fits; of equal ones, the lowest id.
    Longest,
}

impl Tokenizer {
    pub(crate) fn new(method: Method, vocabulary: Arc<Vocabulary>) -> Self {
        let is_longest = matches!(method, Method::Longest);
        let longest = is_longest.then(|| LongestTokens::new(Arc::clone(&vocabulary)));
        Self { method, vocabulary, longest }
    }

    /// The tokens of a text. Their bytes, one after another, are the text.
    ///
    /// # Errors
    /// When the tokenizer changes this text (normalises it, or lacks a character), when no token
    /// fits, when a run of white space is longer than 500,000 characters, or when the tokenizer is
    /// a `tokenizer.json`'s and the build lacks the feature `hf-tokenizers`.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
        check_space_runs(text)?;
        let tokens: Vec<_> = match &self.method {
            Method::Encoding(pairs) => pairs.encode(text),
            Method::Ranks(pairs) => pairs.encode(text)?,
            Method::Tokenizer(tokenizer) => tokenizer.encode(text)?,
            Method::Scored(Ok(pairs)) => pairs.encode(text)?,
            Method::Scored(Err(Refusal { by })) => return Err(TokenizeError::Unsupported { by }),
            Method::Longest => match &self.longest {
                Some(longest) => longest.cut(text.as_bytes())?,
                None => Vec::new(),
            },
        };
        self.check_bytes(text.as_bytes(), &tokens)?;
        Ok(tokens)
    }

    fn check_bytes(&self, text: &[u8], tokens: &[TokenId]) -> Result<(), TokenizeError> {
        let mut at = 0;
        for &token in tokens {
            // One without text stands for something unknown, such as a space that was put before
            // the text.
            let bytes = Some(self.vocabulary.text(token)).filter(|bytes| !bytes.is_empty());
            let rest = bytes.and_then(|bytes| text[at..].strip_prefix(bytes));
            at = text.len() - rest.ok_or(TokenizeError::Changed { at })?.len();
        }
        if at < text.len() { Err(TokenizeError::Changed { at }) } else { Ok(()) }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encoding(_) => "Encoding",
            Self::Tokenizer(_) => "Tokenizer",
            Self::Ranks(_) => "Ranks",
            Self::Scored(_) => "Scored",
            Self::Longest => "Longest",
        })
    }
}

fn check_space_runs(text: &str) -> Result<(), TokenizeError> {
    if text.len() <= MAX_SPACE_RUN {
        return Ok(());
    }
    let mut run = 0;
    for (at, char) in text.char_indices() {
        run = if char.is_whitespace() { run + 1 } else { 0 };
        if run > MAX_SPACE_RUN {
            return Err(TokenizeError::SpaceRun { at });
        }
    }
    Ok(())
}

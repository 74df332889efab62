//! The tokenizer of a `tokenizer.json`: the `tokenizers` crate, or a stand-in in a build without
//! the feature `hf-tokenizers`. (The bytes of its tokens are read without it, in
//! `tokenizer_json.rs`.)

#[cfg(feature = "hf-tokenizers")]
pub(crate) use carried::{HuggingFace, WholeText};
#[cfg(not(feature = "hf-tokenizers"))]
pub(crate) use left_out::{HuggingFace, WholeText};

#[cfg(feature = "hf-tokenizers")]
mod carried {
    use palmette_core::TokenId;
    use serde_json::Value;

    use crate::tokenize_error::TokenizeError;

    /// The tokenizer as its file says.
    pub(crate) struct HuggingFace(Box<tokenizers::Tokenizer>);

    impl HuggingFace {
        /// # Errors
        /// Objection of the `tokenizers` crate to the file.
        pub(crate) fn new(file: Value) -> Result<Self, String> {
            let mut tokenizer: Box<tokenizers::Tokenizer> =
                Box::new(serde_json::from_value(file).map_err(|error| error.to_string())?);
            tokenizer.set_encode_special_tokens(true);
            Ok(Self(tokenizer))
        }

        /// The tokens of a text.
        pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
            let encoding = self
                .0
                .encode_fast(text, false)
                .map_err(|error| TokenizeError::Failed { reason: error.to_string() })?;
            Ok(encoding.get_ids().iter().copied().map(TokenId).collect())
        }
    }

    /// The tokenizer as its file says, for whole texts in which the names of added tokens are
    /// these.
    pub(crate) struct WholeText(Box<tokenizers::Tokenizer>);

    impl WholeText {
        /// # Errors
        /// Objection of the `tokenizers` crate to the file.
        pub(crate) fn new(file: &[u8]) -> Result<Self, String> {
            let tokenizer = tokenizers::Tokenizer::from_bytes(file);
            let mut tokenizer = Box::new(tokenizer.map_err(|error| error.to_string())?);
            tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
            tokenizer.with_padding(None);
            Ok(Self(tokenizer))
        }

        pub(crate) fn encode(
            &self,
            text: &str,
            around: bool,
        ) -> Result<Vec<TokenId>, TokenizeError> {
            let encoding = self.0.encode_fast(text, around).map_err(failed)?;
            Ok(encoding.get_ids().iter().copied().map(TokenId).collect())
        }

        /// The number that the tokenizer gives a name: for added tokens its own count, whatever the
        /// file says.
        pub(crate) fn token(&self, name: &str) -> Option<u32> {
            self.0.token_to_id(name)
        }

        pub(crate) fn decode(&self, tokens: &[TokenId]) -> Result<String, TokenizeError> {
            let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
            self.0.decode(&ids, false).map_err(failed)
        }
    }

    fn failed(error: tokenizers::Error) -> TokenizeError {
        TokenizeError::Failed { reason: error.to_string() }
    }
}

#[cfg(not(feature = "hf-tokenizers"))]
mod left_out {
    use palmette_core::TokenId;
    use serde_json::Value;

    use crate::tokenize_error::TokenizeError;

    /// Refuses every text, and says why.
    pub(crate) struct HuggingFace;

    impl HuggingFace {
        pub(crate) fn new(_file: Value) -> Result<Self, String> {
            Ok(Self)
        }

        pub(crate) fn encode(&self, _text: &str) -> Result<Vec<TokenId>, TokenizeError> {
            Err(TokenizeError::LeftOut { by: "a tokenizer.json", feature: "hf-tokenizers" })
        }
    }

    /// Refuses every text, and says why.
    pub(crate) struct WholeText;

    impl WholeText {
        pub(crate) fn new(_file: &[u8]) -> Result<Self, String> {
            Ok(Self)
        }

        pub(crate) fn encode(&self, _: &str, _: bool) -> Result<Vec<TokenId>, TokenizeError> {
            Err(TokenizeError::LeftOut { by: "a tokenizer.json", feature: "hf-tokenizers" })
        }

        /// Not known.
        pub(crate) fn token(&self, _: &str) -> Option<u32> {
            None
        }

        pub(crate) fn decode(&self, _: &[TokenId]) -> Result<String, TokenizeError> {
            Err(TokenizeError::LeftOut { by: "a tokenizer.json", feature: "hf-tokenizers" })
        }
    }
}

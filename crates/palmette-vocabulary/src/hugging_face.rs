//! The tokenizer of a `tokenizer.json`: the `tokenizers` crate, or a stand-in in a build without the feature
//! `hf-tokenizers`. (The bytes of its tokens are read without it, in `tokenizer_json.rs`.)

#[cfg(feature = "hf-tokenizers")]
pub(crate) use carried::HuggingFace;
#[cfg(not(feature = "hf-tokenizers"))]
pub(crate) use left_out::HuggingFace;

#[cfg(feature = "hf-tokenizers")]
mod carried {
    use palmette_core::TokenId;
    use serde_json::Value;

    use crate::TokenizeError;

    /// The tokenizer as its file says.
    pub(crate) struct HuggingFace(Box<tokenizers::Tokenizer>);

    impl HuggingFace {
        /// # Errors
        /// What the `tokenizers` crate has against the file.
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
}

#[cfg(not(feature = "hf-tokenizers"))]
mod left_out {
    use palmette_core::TokenId;
    use serde_json::Value;

    use crate::TokenizeError;

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
}

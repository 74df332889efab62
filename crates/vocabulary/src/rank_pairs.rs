//! Byte-pair encoder over the ranks and the pattern of a file, or a stand-in in a build without the
//! feature `encodings`.

#[cfg(feature = "encodings")]
pub(crate) use carried::RankPairs;
#[cfg(not(feature = "encodings"))]
pub(crate) use left_out::RankPairs;

#[cfg(feature = "encodings")]
mod carried {
    use std::collections::HashMap;

    use fancy_regex::Regex;
    use palmette_core::TokenId;

    use crate::merging::merge;
    use crate::tokenize_error::TokenizeError;

    /// Cuts text by a pattern, then each part by merging its bytes, the pair of lowest rank first
    /// (tiktoken).
    pub(crate) struct RankPairs {
        pattern: Regex,
        /// Tokens by their bytes. A token of lower rank has a lower id.
        tokens: HashMap<Box<[u8]>, TokenId>,
    }

    impl RankPairs {
        /// # Errors
        /// When the pattern is no regular expression.
        pub(crate) fn new<'a>(
            pattern: &str,
            tokens: impl Iterator<Item = (TokenId, &'a [u8])>,
        ) -> Result<Self, String> {
            let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
            Ok(Self { pattern, tokens: tokens.map(|(token, text)| (text.into(), token)).collect() })
        }

        /// The tokens of a text.
        pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
            let mut tokens = vec![];
            for part in self.pattern.find_iter(text) {
                let part =
                    part.map_err(|error| TokenizeError::Failed { reason: error.to_string() })?;
                self.encode_part(text.as_bytes(), part.start()..part.end(), &mut tokens)?;
            }
            Ok(tokens)
        }

        fn encode_part(
            &self,
            text: &[u8],
            part: std::ops::Range<usize>,
            tokens: &mut Vec<TokenId>,
        ) -> Result<(), TokenizeError> {
            let token = |range: std::ops::Range<usize>| self.tokens.get(&text[range]).copied();
            if let Some(token) = token(part.clone()) {
                tokens.push(token);
                return Ok(());
            }
            for symbol in merge(part.map(|at| at..at + 1).collect(), token) {
                let at = symbol.start;
                tokens.push(token(symbol).ok_or(TokenizeError::NoToken { at })?);
            }
            Ok(())
        }
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        thread_local! {
            /// The encoding as `tiktoken-rs` has it, and its ranks and pattern here.
            static BOTH: (tiktoken_rs::CoreBPE, RankPairs) = {
                let encoding = crate::load("o200k_base").unwrap().vocabulary;
                let pattern = tiktoken_rs::O200K_BASE_PAT_STR;
                (tiktoken_rs::o200k_base().unwrap(), RankPairs::new(pattern, encoding.texts()).unwrap())
            };
        }

        fn check(text: &str) {
            BOTH.with(|(theirs, own)| {
                let expected: Vec<_> =
                    theirs.encode_ordinary(text).into_iter().map(TokenId).collect();
                assert_eq!(own.encode(text).unwrap(), expected, "{text:?}");
            });
        }

        #[test]
        fn real_texts_are_cut_as_by_tiktoken() {
            check(include_str!("../../../ARCHITECTURE.md"));
            check(include_str!("rank_pairs.rs"));
            check(&" \u{3000}\n".repeat(500));
            check(&"antidisestablishmentarianism".repeat(100));
        }

        proptest! {
            #[test]
            fn any_text_is_cut_as_by_tiktoken(text in "([a-zA-Z]{1,9}| |\\n|\\PC|['漢é0-9]){0,30}") {
                check(&text);
            }
        }

        #[test]
        fn a_byte_without_a_token_is_an_error() {
            let tokens = [(TokenId(0), &b"a"[..]), (TokenId(1), b"aa")];
            let pairs = RankPairs::new("a+|b", tokens.into_iter()).unwrap();
            assert_eq!(pairs.encode("aaa").unwrap(), [1, 0].map(TokenId));
            assert_eq!(pairs.encode("ab"), Err(TokenizeError::NoToken { at: 1 }));
            assert!(RankPairs::new("(", [].into_iter()).is_err());
        }
    }
}

#[cfg(not(feature = "encodings"))]
mod left_out {
    use palmette_core::TokenId;

    use crate::tokenize_error::TokenizeError;

    /// Refuses every text, and says why.
    pub(crate) struct RankPairs;

    impl RankPairs {
        pub(crate) fn new<'a>(
            _pattern: &str,
            _tokens: impl Iterator<Item = (TokenId, &'a [u8])>,
        ) -> Result<Self, String> {
            Ok(Self)
        }

        pub(crate) fn encode(&self, _text: &str) -> Result<Vec<TokenId>, TokenizeError> {
            Err(TokenizeError::LeftOut { by: "ranks and a pattern", feature: "encodings" })
        }
    }
}

//! Byte-pair encoders of the tiktoken encodings: `tiktoken-rs`, or stand-ins in a build without the
//! feature `encodings`.

#[cfg(feature = "encodings")]
pub(crate) use carried::BytePairs;
#[cfg(not(feature = "encodings"))]
pub(crate) use left_out::BytePairs;

#[cfg(feature = "encodings")]
mod carried {
    use palmette_core::TokenId;
    use tiktoken_rs::CoreBPE;

    /// The encoder of one encoding; its tables are built once a process and kept.
    #[derive(Clone, Copy)]
    pub(crate) struct BytePairs(&'static CoreBPE);

    impl BytePairs {
        /// The encoder of the encoding of this name.
        pub(crate) fn of(encoding: &str) -> Option<Self> {
            Some(Self(match encoding {
                "o200k_base" => tiktoken_rs::o200k_base_singleton(),
                "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
                "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
                "p50k_base" => tiktoken_rs::p50k_base_singleton(),
                "p50k_edit" => tiktoken_rs::p50k_edit_singleton(),
                "r50k_base" => tiktoken_rs::r50k_base_singleton(),
                _ => return None,
            }))
        }

        /// The bytes of a token.
        pub(crate) fn bytes(self, id: u32) -> Option<Vec<u8>> {
            self.0.decode_bytes(&[id]).ok()
        }

        /// The special tokens with their names.
        pub(crate) fn specials(self) -> Vec<(u32, &'static str)> {
            let id = |name| self.0.encode_with_special_tokens(name)[0];
            self.0.special_tokens().into_iter().map(|name| (id(name), name)).collect()
        }

        /// The tokens of a text, none of them special.
        pub(crate) fn encode(self, text: &str) -> Vec<TokenId> {
            self.0.encode_ordinary(text).into_iter().map(TokenId).collect()
        }
    }
}

#[cfg(not(feature = "encodings"))]
mod left_out {
    use palmette_core::TokenId;

    /// No encoder is carried: there is no value of this type.
    #[derive(Clone, Copy)]
    pub(crate) enum BytePairs {}

    impl BytePairs {
        pub(crate) fn of(_encoding: &str) -> Option<Self> {
            None
        }

        pub(crate) fn bytes(self, _id: u32) -> Option<Vec<u8>> {
            match self {}
        }

        pub(crate) fn specials(self) -> Vec<(u32, &'static str)> {
            match self {}
        }

        pub(crate) fn encode(self, _text: &str) -> Vec<TokenId> {
            match self {}
        }
    }
}

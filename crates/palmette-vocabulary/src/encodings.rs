//! The encodings that the program carries.

use palmette_core::TokenId;
use tiktoken_rs::CoreBPE;

use crate::draft::Draft;
use crate::error::Kind;
use crate::load::{Format, Source};
use crate::tokenizer::Method;

/// An encoding: byte-pair ranks, special tokens and the pattern that splits text.
pub(crate) struct Encoding {
    name: &'static str,
    /// Tokens, special ones and holes included.
    num_tokens: u32,
    /// Tokens with text: how many lines its tiktoken file has.
    num_texts: usize,
    ends: &'static [u32],
    /// Built once a process and kept.
    core: fn() -> &'static CoreBPE,
}

// Two encodings with the same ranks stand in the order in which a file of these ranks is taken for one.
static ENCODINGS: [Encoding; 6] = [
    Encoding {
        name: "o200k_base",
        num_tokens: 200_019,
        num_texts: 199_998,
        ends: &[199_999],
        core: tiktoken_rs::o200k_base_singleton,
    },
    // A response ends by <|endoftext|>, <|return|> or <|call|>.
    Encoding {
        name: "o200k_harmony",
        num_tokens: 201_088,
        num_texts: 199_998,
        ends: &[199_999, 200_002, 200_012],
        core: tiktoken_rs::o200k_harmony_singleton,
    },
    Encoding {
        name: "cl100k_base",
        num_tokens: 100_277,
        num_texts: 100_256,
        ends: &[100_257],
        core: tiktoken_rs::cl100k_base_singleton,
    },
    Encoding {
        name: "p50k_base",
        num_tokens: 50_281,
        num_texts: 50_280,
        ends: &[50_256],
        core: tiktoken_rs::p50k_base_singleton,
    },
    Encoding {
        name: "p50k_edit",
        num_tokens: 50_284,
        num_texts: 50_280,
        ends: &[50_256],
        core: tiktoken_rs::p50k_edit_singleton,
    },
    Encoding {
        name: "r50k_base",
        num_tokens: 50_257,
        num_texts: 50_256,
        ends: &[50_256],
        core: tiktoken_rs::r50k_base_singleton,
    },
];

/// The names of the encodings that [`load`](crate::load) knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENCODINGS.iter().map(|encoding| encoding.name)
}

/// The encoding of this name.
pub(crate) fn find(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().find(|encoding| encoding.name == name)
}

/// The encoding whose tokens with text are exactly these.
pub(crate) fn with_texts(texts: &[Option<Vec<u8>>]) -> Option<&'static Encoding> {
    let num_texts = texts.iter().flatten().count();
    ENCODINGS.iter().filter(|encoding| encoding.num_texts == num_texts).find(|encoding| {
        let core = (encoding.core)();
        texts.iter().zip(0..).all(|(text, id)| {
            text.as_ref().is_none_or(|text| core.decode_bytes(&[id]).is_ok_and(|own| own == *text))
        })
    })
}

impl Encoding {
    /// Its tokens, ends and tokenizer.
    pub(crate) fn source(&self) -> Result<Source, Kind> {
        let core = (self.core)();
        let mut draft = Draft::default();
        for name in core.special_tokens() {
            draft.special(core.encode_with_special_tokens(name)[0].into(), name)?;
        }
        draft.reserve(self.num_tokens.into())?;
        let special: Vec<_> = draft.specials.iter().map(|(token, _)| *token).collect();
        for id in 0..self.num_tokens {
            draft.texts[id as usize] = core.decode_bytes(&[id]).ok();
        }
        for token in special {
            draft.texts[token.index()] = None;
        }
        Ok(Source {
            draft,
            format: Format::Encoding,
            method: Some(Method::Encoding(core)),
            ends: Some(self.ends.iter().map(|&id| TokenId(id)).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_the_encodings() {
        for encoding in &ENCODINGS {
            let name = encoding.name;
            let core = (encoding.core)();
            let draft = encoding.source().unwrap().draft;
            assert_eq!(draft.texts.iter().flatten().count(), encoding.num_texts, "{name}");
            assert!(core.decode_bytes(&[encoding.num_tokens - 1]).is_ok(), "{name}");
            for past in encoding.num_tokens..encoding.num_tokens + 10_000 {
                assert!(core.decode_bytes(&[past]).is_err(), "{name}: {past} is a token");
            }
            for &end in encoding.ends {
                assert!(draft.specials.iter().any(|(token, _)| token.0 == end), "{name}: {end}");
            }
        }
    }

    #[test]
    fn texts_tell_the_encoding() {
        let texts = |name| find(name).unwrap().source().unwrap().draft.texts;
        let found = |texts: &[Option<Vec<u8>>]| with_texts(texts).map(|encoding| encoding.name);
        assert_eq!(found(&texts("r50k_base")), Some("r50k_base"));
        assert_eq!(found(&texts("p50k_edit")), Some("p50k_base"), "the same ranks");
        let mut other = texts("r50k_base");
        other.swap(300, 301);
        assert_eq!(found(&other), None);
    }
}

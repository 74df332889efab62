//! The tiktoken encodings, by name.

use palmette_core::TokenId;

use crate::byte_pairs::BytePairs;
use crate::draft::Draft;
use crate::error::Kind;
use crate::source::{EndsFound, Format, Source};
use crate::tokenizer::Method;

/// An encoding: byte-pair ranks, special tokens and the pattern that splits text.
pub(crate) struct Encoding {
    pub(crate) name: &'static str,
    /// Tokens, special ones and holes included.
    num_tokens: u32,
    /// Tokens with text: how many lines its tiktoken file has.
    num_texts: usize,
    ends: &'static [u32],
}

// Two encodings with the same ranks stand in the order in which a file of these ranks is taken for
// one.
static ENCODINGS: [Encoding; 6] = [
    Encoding { name: "o200k_base", num_tokens: 200_019, num_texts: 199_998, ends: &[199_999] },
    // A response ends by <|endoftext|>, <|return|> or <|call|>.
    Encoding {
        name: "o200k_harmony",
        num_tokens: 201_088,
        num_texts: 199_998,
        ends: &[199_999, 200_002, 200_012],
    },
    Encoding { name: "cl100k_base", num_tokens: 100_277, num_texts: 100_256, ends: &[100_257] },
    Encoding { name: "p50k_base", num_tokens: 50_281, num_texts: 50_280, ends: &[50_256] },
    Encoding { name: "p50k_edit", num_tokens: 50_284, num_texts: 50_280, ends: &[50_256] },
    Encoding { name: "r50k_base", num_tokens: 50_257, num_texts: 50_256, ends: &[50_256] },
];

/// The names of the encodings that [`load`](crate::load) knows; none in a build without the feature
/// `encodings`.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENCODINGS.iter().filter(|_| cfg!(feature = "encodings")).map(|encoding| encoding.name)
}

/// The encoding of this name, whether it is carried or not.
pub(crate) fn find(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().find(|encoding| encoding.name == name)
}

/// The encoding whose tokens with text are exactly these, of those that are carried.
pub(crate) fn with_texts(texts: &[Option<Vec<u8>>]) -> Option<&'static Encoding> {
    let num_texts = texts.iter().flatten().count();
    ENCODINGS.iter().filter(|encoding| encoding.num_texts == num_texts).find(|encoding| {
        BytePairs::of(encoding.name).is_some_and(|pairs| {
            let is_own = |text: &Vec<u8>, id| pairs.bytes(id).is_some_and(|own| own == *text);
            texts
                .iter()
                .zip(0..)
                .all(|(text, id)| text.as_ref().is_none_or(|text| is_own(text, id)))
        })
    })
}

impl Encoding {
    /// Source of the encoding: its tokens, ends and tokenizer.
    ///
    /// # Errors
    /// When it is not carried.
    pub(crate) fn source(&self) -> Result<Source, Kind> {
        let pairs = BytePairs::of(self.name).ok_or(Kind::EncodingsLeftOut)?;
        let mut draft = Draft::default();
        for (id, name) in pairs.specials() {
            draft.special(id.into(), name)?;
        }
        draft.reserve(self.num_tokens.into())?;
        let special: Vec<_> = draft.specials.iter().map(|(token, _)| *token).collect();
        for id in 0..self.num_tokens {
            draft.texts[id as usize] = pairs.bytes(id);
        }
        for token in special {
            draft.texts[token.index()] = None;
        }
        Ok(Source {
            draft,
            format: Format::Encoding,
            method: Some(Method::Encoding(pairs)),
            ends: Some((self.ends.iter().map(|&id| TokenId(id)).collect(), EndsFound::Encoding)),
            assumptions: vec![],
        })
    }
}

#[cfg(all(test, feature = "encodings"))]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_the_encodings() {
        for encoding in &ENCODINGS {
            let name = encoding.name;
            let pairs = BytePairs::of(name).expect("it is carried");
            let draft = encoding.source().unwrap().draft;
            assert_eq!(draft.texts.iter().flatten().count(), encoding.num_texts, "{name}");
            assert!(pairs.bytes(encoding.num_tokens - 1).is_some(), "{name}");
            for past in encoding.num_tokens..encoding.num_tokens + 10_000 {
                assert!(pairs.bytes(past).is_none(), "{name}: {past} is a token");
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

//! From a token as a file spells it to its bytes.

use serde_json::Value;

use crate::error::{Kind, invalid};

/// Spelling of bytes by a vocabulary: steps applied to each piece alone, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spelling {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Each occurrence of the first is the second.
    Replace(String, String),
    /// `<0x0A>` is the byte 0A.
    ByteFallback,
    /// Each character is a byte, see [`byte_of`].
    ByteLevel,
}

impl Spelling {
    /// The UTF-8 of the piece.
    pub(crate) fn plain() -> Self {
        Self { steps: vec![] }
    }

    /// `▁` is a space, `<0x0A>` the byte 0A.
    pub(crate) fn sentence_piece() -> Self {
        Self { steps: vec![Step::Replace("▁".into(), " ".into()), Step::ByteFallback] }
    }

    /// `▁` is a space.
    pub(crate) fn spaces() -> Self {
        Self { steps: vec![Step::Replace("▁".into(), " ".into())] }
    }

    /// A byte a character.
    pub(crate) fn byte_level() -> Self {
        Self { steps: vec![Step::ByteLevel] }
    }

    /// The spelling that `pieces`, less the special ones, suggest.
    pub(crate) fn guess<'a>(pieces: impl Iterator<Item = &'a str> + Clone) -> Self {
        if pieces.clone().any(|piece| piece.contains('▁')) {
            Self::sentence_piece()
        } else if pieces.clone().any(|piece| piece.contains('Ġ'))
            && pieces.clone().flat_map(str::chars).all(|char| byte_of(char).is_some())
        {
            Self::byte_level()
        } else {
            Self::plain()
        }
    }

    /// The spelling that a `tokenizer.json` states: its decoder's, or where it has none, the one
    /// its normalizer or pre-tokenizer writes.
    pub(crate) fn of_tokenizer(file: &Value) -> Result<Self, Kind> {
        let mut steps = vec![];
        if !file["decoder"].is_null() {
            for decoder in parts(&file["decoder"], "decoders") {
                steps.extend(decoder_step(decoder)?);
            }
        } else {
            let normalizers = parts(&file["normalizer"], "normalizers");
            let pre_tokenizers = parts(&file["pre_tokenizer"], "pretokenizers");
            for part in normalizers.into_iter().chain(pre_tokenizers) {
                if matches!(part["type"].as_str(), Some("ByteLevel" | "Metaspace")) {
                    steps.extend(decoder_step(part)?);
                }
            }
        }
        if file["model"]["byte_fallback"] == true && !steps.contains(&Step::ByteFallback) {
            steps.push(Step::ByteFallback);
        }
        Ok(Self { steps })
    }

    /// The bytes of a piece.
    pub(crate) fn bytes(&self, piece: &str) -> Vec<u8> {
        let mut text = piece.to_owned();
        for step in &self.steps {
            match step {
                Step::Replace(from, to) => {
                    if text.contains(from.as_str()) {
                        text = text.replace(from.as_str(), to);
                    }
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return vec![byte];
                    }
                }
                // A piece with any other character is taken for text, as Hugging Face does.
                Step::ByteLevel => {
                    if let Some(bytes) = text.chars().map(byte_of).collect() {
                        return bytes;
                    }
                }
            }
        }
        text.into_bytes()
    }
}

/// The parts of a `Sequence`, sequences within it opened; a part itself when it is none; nothing
/// for `null`.
pub(crate) fn parts<'a>(part: &'a Value, members: &str) -> Vec<&'a Value> {
    match &part[members] {
        Value::Array(list) => list.iter().flat_map(|part| parts(part, members)).collect(),
        _ if part.is_null() => vec![],
        _ => vec![part],
    }
}

fn decoder_step(decoder: &Value) -> Result<Option<Step>, Kind> {
    let kind = decoder["type"].as_str().unwrap_or("no type");
    Ok(match kind {
        "ByteLevel" => Some(Step::ByteLevel),
        "ByteFallback" => Some(Step::ByteFallback),
        "Metaspace" => {
            let space = decoder["replacement"].as_str().unwrap_or("▁");
            Some(Step::Replace(space.to_owned(), " ".to_owned()))
        }
        "Replace" => match (decoder["pattern"]["String"].as_str(), decoder["content"].as_str()) {
            // An empty pattern would be found everywhere.
            (Some(from), Some(to)) if !from.is_empty() => {
                Some(Step::Replace(from.to_owned(), to.to_owned()))
            }
            _ => {
                return Err(invalid(format!(
                    "decoder {decoder} replaces what is not a plain string; bytes of single tokens are not defined by it"
                )));
            }
        },
        // These two join tokens, and take the space off the beginning of the whole text.
        "Fuse" | "Strip" => None,
        _ => {
            return Err(invalid(format!(
                "decoder {kind:?} does not give each token bytes of its own; read are ByteLevel, ByteFallback, \
                 Metaspace, Replace, Fuse, Strip, and sequences of them"
            )));
        }
    })
}

/// The byte of a piece `<0x0A>`.
pub(crate) fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .then(|| u8::from_str_radix(digits, 16).ok())?
}

/// The byte that a character of the byte-level alphabet stands for. Printable characters of Latin-1
/// stand for themselves; the other 68 bytes, ascending, are U+0100 and on.
pub(crate) fn byte_of(char: char) -> Option<u8> {
    match u32::from(char) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_byte_level_alphabet_is_a_bijection() {
        let mut bytes: Vec<_> = ('\0'..='\u{FFFF}').filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<_>>());
        assert_eq!(
            ['Ġ', 'Ċ', 'ĉ', 'A', 'Ã'].map(byte_of),
            [b' ', b'\n', b'\t', b'A', 0xC3].map(Some)
        );
    }

    #[test]
    #[cfg(feature = "hf-tokenizers")]
    fn the_byte_level_alphabet_is_that_of_the_tokenizers_crate() {
        use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};
        let byte_level =
            tokenizers::pre_tokenizers::byte_level::ByteLevel::new(false, false, false);
        // All of Latin-1 and some of beyond: every byte but those that UTF-8 never has.
        let text: String = ('\0'..='\u{7FF}').chain(['€', '漢', '🌴']).collect();
        let mut spelled = PreTokenizedString::from(text.as_str());
        byte_level.pre_tokenize(&mut spelled).unwrap();
        let splits = spelled.get_splits(OffsetReferential::Normalized, OffsetType::Byte);
        let spelled: String = splits.iter().map(|(piece, _, _)| *piece).collect();
        assert_eq!(Spelling::byte_level().bytes(&spelled), text.as_bytes());
    }

    #[test]
    fn a_decoder_spells_single_tokens() {
        let llama = json!({"model": {}, "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}});
        let spelling = Spelling::of_tokenizer(&llama).unwrap();
        assert_eq!(spelling, Spelling::sentence_piece());
        let spelled = ["▁the", "▁▁", "<0x0A>", "<0xZZ>", "<0x+1>", "é"].map(|p| spelling.bytes(p));
        assert_eq!(spelled, [&b" the"[..], b"  ", b"\n", b"<0xZZ>", b"<0x+1>", "é".as_bytes()]);

        let gpt = json!({"model": {}, "decoder": null, "pre_tokenizer": {"type": "Sequence",
            "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}});
        let spelling = Spelling::of_tokenizer(&gpt).unwrap();
        assert_eq!(spelling, Spelling::byte_level());
        assert_eq!(
            ["Ġthe", "Ã", "a b"].map(|p| spelling.bytes(p)),
            [&b" the"[..], b"\xC3", b"a b"]
        );
    }

    #[test]
    fn decoders_that_do_not_spell_tokens_are_refused() {
        for decoder in [
            json!({"type": "WordPiece", "prefix": "##"}),
            json!({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}),
            json!({"type": "Replace", "pattern": {"String": ""}, "content": ""}),
            json!(7),
        ] {
            assert!(Spelling::of_tokenizer(&json!({"decoder": decoder})).is_err(), "{decoder}");
        }
    }

    #[test]
    fn lists_are_told_apart() {
        let guess = |pieces: &[&'static str]| Spelling::guess(pieces.iter().copied());
        assert_eq!(guess(&["a", "▁b", "Ġ"]), Spelling::sentence_piece());
        assert_eq!(guess(&["a", "Ġb"]), Spelling::byte_level());
        assert_eq!(guess(&["a", "Ġb", " "]), Spelling::plain());
        assert_eq!(guess(&["a", "b"]), Spelling::plain());
    }
}

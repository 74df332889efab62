//! SentencePiece `.model` files: pieces and their kinds from a protobuf of `sentencepiece_model.proto`.
//!
//! Read are the fields for pieces (1: text 1, kind 3), and of the trainer's settings (2) the end token (42); all others are skipped.
//! Cost: linear in the file; nothing is reserved by a length that the file states.

use crate::AngleTokens;
use crate::draft::Draft;
use crate::error::{Kind, invalid};
use crate::load::{Format, Source};
use crate::options::is_in_angles;
use crate::spelling::Spelling;

/// The kinds of pieces, by their numbers in the file.
mod kind {
    pub(super) const UNKNOWN: u64 = 2;
    pub(super) const CONTROL: u64 = 3;
    pub(super) const USER_DEFINED: u64 = 4;
    pub(super) const UNUSED: u64 = 5;
}

/// The end token's id where the file does not say it.
const DEFAULT_END: u64 = 2;

/// Whether a file looks like one: its first field is a message, whose first is a text.
pub(crate) fn is_model(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\n', _, b'\n', ..]) && bytes.contains(&0)
}

/// Reads the tokens. How the model cuts text is not read.
pub(crate) fn read(bytes: &[u8], angle_tokens: AngleTokens) -> Result<Source, Kind> {
    let mut in_angles = Vec::new();
    let (mut draft, spelling) = (Draft::default(), Spelling::sentence_piece());
    let (mut id, mut end, mut controls) = (0, DEFAULT_END, Vec::new());
    for field in Fields(bytes) {
        match field.ok_or_else(|| damaged(id))? {
            (1, Content::Bytes(piece)) => {
                let (text, kind) = piece_of(piece).ok_or_else(|| damaged(id))?;
                match kind {
                    kind::UNKNOWN | kind::CONTROL | kind::UNUSED => draft.special(id, text)?,
                    kind::USER_DEFINED
                        if angle_tokens == AngleTokens::Special && is_in_angles(text) =>
                    {
                        draft.special(id, text)?;
                        in_angles.push(text.to_owned());
                    }
                    kind::USER_DEFINED => {
                        draft.text(id, text, text.replace('▁', " ").into_bytes())?
                    }
                    _ => draft.text(id, text, spelling.bytes(text))?,
                }
                if kind == kind::CONTROL {
                    controls.push(id);
                }
                id += 1;
            }
            (2, Content::Bytes(trainer)) => {
                for field in Fields(trainer) {
                    if let (42, Content::Number(token)) = field.ok_or_else(|| damaged(id))? {
                        end = token;
                    }
                }
            }
            _ => {}
        }
    }
    if id == 0 {
        return Err(invalid("a SentencePiece model without pieces"));
    }
    let ends = controls.contains(&end).then(|| vec![palmette_core::TokenId(end as u32)]);
    Ok(Source { draft, ends, angle_tokens: in_angles, ..Source::of(Format::SentencePiece) })
}

fn damaged(id: u64) -> Kind {
    invalid(format!(
        "a SentencePiece model that is damaged or cut off after {id} pieces; copy it again"
    ))
}

/// A piece's text and kind.
fn piece_of(message: &[u8]) -> Option<(&str, u64)> {
    let (mut text, mut kind) = (None, 1);
    for field in Fields(message) {
        match field? {
            (1, Content::Bytes(bytes)) => text = Some(str::from_utf8(bytes).ok()?),
            (3, Content::Number(number)) => kind = number,
            _ => {}
        }
    }
    text.map(|text| (text, kind))
}

/// The fields of a protobuf message; `None` at the first that is malformed, then nothing.
struct Fields<'a>(&'a [u8]);

enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of four or eight bytes.
    Fixed,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Content<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Content<'a>)> {
        let tag = self.number()?;
        let content = match tag & 7 {
            0 => Content::Number(self.number()?),
            1 => self.take(8).map(|_| Content::Fixed)?,
            2 => {
                let length = self.number()?;
                Content::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => self.take(4).map(|_| Content::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, content))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

//! SentencePiece models: the few fields of a `ModelProto` that say what pieces spell and how text
//! is cut.

use palmette_core::TokenId;

use crate::draft::Draft;
use crate::error::{Kind, invalid};
use crate::options::{Assumption, LoadOptions};
use crate::protobuf::{Field, Fields};
use crate::scored_pairs::{Refusal, ScoredPairs};
use crate::source::{EndsFound, Format, Source};
use crate::spelling::{Spelling, fallback_byte};
use crate::tokenizer::Method;

/// An entry of `pieces`.
struct Piece<'a> {
    text: &'a str,
    score: f32,
    kind: PieceKind,
}

/// `SentencePiece.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// The fields of `trainer_spec` and `normalizer_spec` that are read, at first with the defaults of
/// their declaration.
struct Spec<'a> {
    model_type: u64,
    byte_fallback: bool,
    /// `None` where the file does not say, −1 for no such token.
    eos_id: Option<i64>,
    eos_piece: &'a str,
    has_character_map: bool,
    removes_extra_spaces: bool,
    escapes_spaces: bool,
}

/// Recognises a model, be it damaged: it begins with the field of a piece, whose first field is its
/// text.
///
/// A text list may begin so too, with an empty line. It is taken for a model if it is not text, has
/// the length of the first piece's text as a control character, or is a whole model.
pub(crate) fn is_model(bytes: &[u8]) -> bool {
    let [b'\n', rest @ ..] = bytes else { return false };
    let length = rest.iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    let Some([b'\n', inside @ ..]) = rest.get(length..) else { return false };
    let is_text = || str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    inside.first().is_some_and(is_control) || !is_text() || pieces_and_spec(bytes).is_ok()
}

/// Reads tokens and tokenizer.
pub(crate) fn read(bytes: &[u8], options: &LoadOptions) -> Result<Source, Kind> {
    let (pieces, spec) = pieces_and_spec(bytes)?;
    let mut draft = Draft::default();
    let mut angled = vec![];
    for (piece, id) in pieces.iter().zip(0..) {
        match piece.kind {
            PieceKind::Unknown | PieceKind::Control => draft.special(id, piece.text)?,
            PieceKind::UserDefined if options.angle_tokens.takes(piece.text) => {
                angled.push((id, piece.text.to_owned()));
                draft.special(id, piece.text)?;
            }
            _ => draft.text(id, piece.text, piece.bytes(id)?)?,
        }
    }
    let ends = spec.end(&pieces, &draft)?;
    let pairs = pairs(&pieces, &spec, &draft);
    Ok(Source {
        draft,
        format: Format::SentencePiece,
        method: Some(Method::Scored(pairs)),
        ends: ends.map(|end| (vec![end], EndsFound::Source("trainer_spec in the model"))),
        assumptions: Assumption::angle_tokens(angled),
    })
}

impl Piece<'_> {
    fn bytes(&self, id: u64) -> Result<Vec<u8>, Kind> {
        if self.kind != PieceKind::Byte {
            return Ok(Spelling::spaces().bytes(self.text));
        }
        let byte = fallback_byte(self.text).ok_or_else(|| {
            invalid(format!(
                "piece {id} is {:?} and of type BYTE; such pieces are spelled <0x0A>",
                self.text
            ))
        })?;
        Ok(vec![byte])
    }
}

impl Spec<'_> {
    /// The end token: the piece of `eos_id`, else the control piece that `eos_piece` names.
    fn end(&self, pieces: &[Piece], draft: &Draft) -> Result<Option<TokenId>, Kind> {
        match self.eos_id {
            Some(id) if id >= pieces.len() as i64 => Err(invalid(format!(
                "eos_id in its trainer_spec is {id}, and it has {} pieces",
                pieces.len()
            ))),
            Some(id) if id >= 0 => Ok(Some(TokenId(id as u32))),
            _ => {
                let end = draft.id_of(self.eos_piece);
                Ok(end.filter(|end| pieces[end.index()].kind == PieceKind::Control))
            }
        }
    }

    /// The reason why text is not cut as this model does.
    fn refusal(&self, pieces: &[Piece]) -> Option<Refusal> {
        let is_unused = |piece: &Piece| piece.kind == PieceKind::Unused;
        match self.model_type {
            2 if self.has_character_map => {
                Some("a SentencePiece model that normalises text by a character map")
            }
            2 if !self.escapes_spaces => {
                Some("a SentencePiece model that does not write spaces as ▁")
            }
            2 if pieces.iter().any(is_unused) => Some("a SentencePiece model with unused pieces"),
            2 => None,
            3 => Some("a SentencePiece model of words"),
            4 => Some("a SentencePiece model of characters"),
            _ => Some("a SentencePiece unigram model"),
        }
        .map(|by| Refusal { by })
    }
}

fn pairs(pieces: &[Piece], spec: &Spec, draft: &Draft) -> Result<ScoredPairs, Refusal> {
    if let Some(refusal) = spec.refusal(pieces) {
        return Err(refusal);
    }
    let mut pairs = ScoredPairs::new(spec.removes_extra_spaces);
    for (piece, id) in pieces.iter().zip(0..) {
        // Angle tokens that were taken as special have no text.
        let (token, Some(text)) = (TokenId(id), &draft.texts[id as usize]) else { continue };
        match piece.kind {
            PieceKind::Byte if spec.byte_fallback => pairs.add_byte(text[0], token),
            PieceKind::Byte => {}
            PieceKind::UserDefined => {
                pairs.add_user_defined(text);
                pairs.add(text, token, piece.score);
            }
            _ => pairs.add(text, token, piece.score),
        }
    }
    Ok(pairs)
}

fn pieces_and_spec(bytes: &[u8]) -> Result<(Vec<Piece<'_>>, Spec<'_>), Kind> {
    let mut spec = Spec {
        model_type: 1,
        byte_fallback: false,
        eos_id: None,
        eos_piece: "</s>",
        has_character_map: false,
        removes_extra_spaces: true,
        escapes_spaces: true,
    };
    let mut pieces = vec![];
    let mut fields = Fields::new(bytes, bytes.len());
    while let Some(field) = fields.next() {
        let (number, field) = field.map_err(damaged)?;
        let Field::Bytes(message) = field else { continue };
        let message = Fields::new(message, fields.at());
        match number {
            1 => pieces.push(piece(message, pieces.len())?),
            2 => spec.read_trainer(message)?,
            3 => spec.read_normalizer(message)?,
            _ => {}
        }
    }
    if pieces.is_empty() {
        return Err(invalid("a SentencePiece model without pieces"));
    }
    Ok((pieces, spec))
}

fn damaged(error: impl std::fmt::Display) -> Kind {
    invalid(format!("a SentencePiece model that is cut off or damaged: {error}"))
}

fn piece(fields: Fields<'_>, id: usize) -> Result<Piece<'_>, Kind> {
    let mut piece = Piece { text: "", score: 0.0, kind: PieceKind::Normal };
    for field in fields {
        match field.map_err(damaged)? {
            (1, Field::Bytes(text)) => piece.text = utf8(text, format_args!("piece {id}"))?,
            (2, Field::Fixed32(bits)) => piece.score = f32::from_bits(bits),
            (3, Field::Varint(kind)) => piece.kind = piece_kind(kind, id)?,
            _ => {}
        }
    }
    if piece.text.is_empty() {
        return Err(damaged(format_args!("piece {id} is empty")));
    }
    if piece.score.is_nan() {
        return Err(damaged(format_args!("the score of piece {id} is not a number")));
    }
    Ok(piece)
}

fn piece_kind(kind: u64, id: usize) -> Result<PieceKind, Kind> {
    Ok(match kind {
        1 => PieceKind::Normal,
        2 => PieceKind::Unknown,
        3 => PieceKind::Control,
        4 => PieceKind::UserDefined,
        5 => PieceKind::Unused,
        6 => PieceKind::Byte,
        _ => return Err(damaged(format_args!("piece {id} is of type {kind}; types are 1 to 6"))),
    })
}

fn utf8<'a>(text: &'a [u8], named: std::fmt::Arguments) -> Result<&'a str, Kind> {
    str::from_utf8(text).map_err(|_| damaged(format_args!("{named} is not UTF-8")))
}

impl<'a> Spec<'a> {
    fn read_trainer(&mut self, fields: Fields<'a>) -> Result<(), Kind> {
        for field in fields {
            match field.map_err(damaged)? {
                (3, Field::Varint(kind)) => self.model_type = kind,
                (35, Field::Varint(flag)) => self.byte_fallback = flag != 0,
                (42, Field::Varint(id)) => self.eos_id = Some(id.cast_signed()),
                (47, Field::Bytes(text)) => self.eos_piece = utf8(text, format_args!("eos_piece"))?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_normalizer(&mut self, fields: Fields<'a>) -> Result<(), Kind> {
        for field in fields {
            match field.map_err(damaged)? {
                (2, Field::Bytes(map)) => self.has_character_map = !map.is_empty(),
                (4, Field::Varint(flag)) => self.removes_extra_spaces = flag != 0,
                (5, Field::Varint(flag)) => self.escapes_spaces = flag != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

//! Lists of pieces, in JSON or a line each.

use serde_json::Value;

use crate::draft::Draft;
use crate::error::{Kind, invalid};
use crate::source::{Format, Source};
use crate::spelling::Spelling;
use crate::tokenizer::Method;

/// Reads an array of pieces (`null` for an id without a token) or an object piece → id.
pub(crate) fn read_json(json: &Value) -> Result<Source, Kind> {
    let mut pieces: Vec<(u64, &str)> = vec![];
    let mut num_tokens = 0;
    match json {
        Value::Array(list) => {
            num_tokens = list.len() as u64;
            for (piece, id) in list.iter().zip(0..) {
                match piece {
                    Value::String(piece) => pieces.push((id, piece)),
                    Value::Null => {}
                    other => {
                        return Err(invalid(format!(
                            "element {id} of the list is {}; a list of pieces holds strings, and null for ids \
                             without a token",
                            shown(other)
                        )));
                    }
                }
            }
        }
        Value::Object(object) => {
            for (piece, id) in object {
                let Some(id) = id.as_u64() else {
                    return Err(invalid(format!(
                        "{piece:?} has the value {}; an object of pieces holds a token id for each piece, and a \
                         tokenizer.json has an object \"model\"",
                        shown(id)
                    )));
                };
                pieces.push((id, piece));
            }
        }
        _ => {
            return Err(Kind::Unrecognised { found: "a JSON value that is no list and no object" });
        }
    }
    if pieces.is_empty() {
        return Err(Kind::Unrecognised { found: "a JSON list or object without pieces" });
    }
    read_pieces(&pieces, num_tokens, Format::Pieces)
}

/// Reads a token a line, numbered from 0; see [`unescaped`]. An empty line is an id without a
/// token.
pub(crate) fn read_text(text: &str) -> Result<Source, Kind> {
    let lines: Vec<_> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let mut tokens = vec![];
    for (line, number) in lines.iter().zip(1..) {
        tokens.push(unescaped(line).map_err(|reason| invalid(format!("line {number}: {reason}")))?);
    }
    let pieces: Option<Vec<_>> = tokens.iter().map(|token| str::from_utf8(token).ok()).collect();
    match pieces {
        Some(pieces) => {
            let pieces: Vec<_> = (0..).zip(pieces).collect();
            read_pieces(&pieces, pieces.len() as u64, Format::TextList)
        }
        // Some line is not text once unescaped: the list spells bytes itself.
        None => {
            let mut draft = Draft::default();
            draft.reserve(tokens.len() as u64)?;
            for (token, id) in tokens.into_iter().zip(0..) {
                match str::from_utf8(&token) {
                    Ok("") => {}
                    Ok(name) if is_special(name) => draft.special(id, name)?,
                    Ok(piece) => draft.text(id, piece, token.clone())?,
                    Err(_) => draft.unnamed(id, token)?,
                }
            }
            Ok(source(draft, Format::TextList))
        }
    }
}

fn read_pieces(pieces: &[(u64, &str)], num_tokens: u64, format: Format) -> Result<Source, Kind> {
    let with_text = pieces.iter().map(|(_, piece)| *piece).filter(|piece| !is_special(piece));
    let spelling = Spelling::guess(with_text);
    let mut draft = Draft::default();
    draft.reserve(num_tokens)?;
    for &(id, piece) in pieces {
        if piece.is_empty() {
            draft.reserve(id.saturating_add(1))?;
        } else if is_special(piece) {
            draft.special(id, piece)?;
        } else {
            draft.text(id, piece, spelling.bytes(piece))?;
        }
    }
    Ok(source(draft, format))
}

fn source(draft: Draft, format: Format) -> Source {
    Source { draft, format, method: Some(Method::Longest), ends: None, assumptions: vec![] }
}

/// A list does not say which of its pieces are special: these are.
fn is_special(piece: &str) -> bool {
    const BARE: [&str; 8] = ["unk", "s", "pad", "mask", "bos", "eos", "cls", "sep"];
    let inside = |open, close| piece.strip_prefix(open)?.strip_suffix(close);
    piece == "</s>"
        || inside("<", ">").is_some_and(|name| BARE.contains(&name))
        || inside("[", "]").is_some_and(|name: &str| {
            name != "S" && name != "s" && BARE.contains(&name.to_ascii_lowercase().as_str())
        })
        || inside("<|", "|>").is_some_and(|name: &str| !name.is_empty())
        || inside("<｜", "｜>").is_some_and(|name: &str| !name.is_empty())
}

/// A line of a text list: `\n`, `\r`, `\t`, `\\` and `\xHH` (one byte) are escapes.
fn unescaped(line: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    let digits = rest.next().and_then(digit).zip(rest.next().and_then(digit));
                    let (high, low) = digits.ok_or(
                        "\\x without two hexadecimal digits; a backslash itself is spelled \\\\",
                    )?;
                    (high * 16 + low) as u8
                }
                _ => {
                    return Err(
                        "a backslash begins none of the escapes \\n \\r \\t \\\\ \\xHH; a \
                                backslash itself is spelled \\\\"
                            .to_owned(),
                    );
                }
            },
            b'\r' => {
                return Err("a carriage return; lines end with a line feed alone, and a token's \
                            carriage return is spelled \\r"
                    .to_owned());
            }
            byte => byte,
        });
    }
    Ok(bytes)
}

/// A JSON value, short enough for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescaped(r"a\n\r\t\\\x0a\xFFé").unwrap(), b"a\n\r\t\\\n\xFF\xC3\xA9");
        for bad in [r"\", r"\q", r"\x", r"\x1", r"\xg0", r"\x+1", "a\r", "\\é"] {
            assert!(unescaped(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn special_pieces_are_known_by_name() {
        for special in [
            "</s>",
            "<s>",
            "<unk>",
            "<pad>",
            "[PAD]",
            "[SEP]",
            "<|im_end|>",
            "<｜end▁of▁sentence｜>",
        ] {
            assert!(is_special(special), "{special}");
        }
        for text in ["<", "s", "<a>", "[S]", "[s]", "[0]", "<||>", "<|", "|>", "<0x0A>", "</a>"] {
            assert!(!is_special(text), "{text}");
        }
    }
}

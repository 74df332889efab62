//! Hugging Face `tokenizer.json`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::draft::Draft;
use crate::error::{Kind, invalid};
use crate::hugging_face::HuggingFace;
use crate::options::{AngleTokens, Assumption};
use crate::source::{Format, Source};
use crate::spelling::Spelling;
use crate::tokenizer::Method;

/// Reads tokens and tokenizer.
pub(crate) fn read(file: Value, angle_tokens: AngleTokens) -> Result<Source, Kind> {
    let (draft, assumptions) = tokens(&file, angle_tokens)?;
    let tokenizer = HuggingFace::new(within_text(file, angle_tokens))
        .map_err(|error| invalid(format!("its tokenizer cannot be built: {error}")))?;
    let method = Some(Method::Tokenizer(tokenizer));
    Ok(Source { draft, format: Format::TokenizerJson, method, ends: None, assumptions })
}

fn tokens(file: &Value, angle_tokens: AngleTokens) -> Result<(Draft, Vec<Assumption>), Kind> {
    let model = &file["model"];
    check_model(model)?;
    let spelling = Spelling::of_tokenizer(file)?;
    let mut draft = Draft::default();
    let added = added_tokens(file)?;
    let ids: HashMap<_, _> = added.iter().map(|token| (token.content, token.id)).collect();
    let mut angled = vec![];
    for token in &added {
        if token.special {
            draft.special(token.id, token.content)?;
        } else if angle_tokens.takes(token.content) {
            angled.push((token.id, token.content.to_owned()));
            draft.special(token.id, token.content)?;
        } else {
            // Added tokens are found in the text as it is, before anything is spelled.
            draft.text(token.id, token.content, token.content.as_bytes().to_vec())?;
        }
    }
    let (pieces, unknown) = model_pieces(model)?;
    for (piece, id) in pieces {
        match ids.get(piece) {
            Some(&added) if added == id => {}
            Some(added) => {
                return Err(invalid(format!(
                    "{piece:?} has id {id} in model.vocab and {added} among added_tokens"
                )));
            }
            None if unknown == Some(piece) => draft.special(id, piece)?,
            None => draft.text(id, piece, spelling.bytes(piece))?,
        }
    }
    Ok((draft, Assumption::angle_tokens(angled)))
}

/// Refuses models whose tokens have no bytes of their own.
fn check_model(model: &Value) -> Result<(), Kind> {
    match model["type"].as_str() {
        Some("WordPiece") => {
            return Err(invalid(
                "a WordPiece model: its decoder guesses where spaces were, so no bytes belong to a token; a \
                 vocabulary with BPE or Unigram is needed",
            ));
        }
        Some("WordLevel") => {
            return Err(invalid(
                "a WordLevel model: its tokens are words without the spaces between them, so no bytes belong to a \
                 token; a vocabulary with BPE or Unigram is needed",
            ));
        }
        Some("BPE" | "Unigram") => {}
        None if model["merges"].is_array() || model["vocab"].is_array() => {}
        None => return Err(invalid("\"model\" has no \"type\"; read are BPE and Unigram")),
        Some(other) => {
            return Err(invalid(format!(
                "model type {other:?} is not known; read are BPE and Unigram"
            )));
        }
    }
    for affix in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[affix].as_str().is_some_and(|affix| !affix.is_empty()) {
            return Err(invalid(format!(
                "model.{affix} is {}; such a vocabulary marks words, not bytes, and is not read",
                model[affix]
            )));
        }
    }
    Ok(())
}

struct AddedToken<'a> {
    id: u64,
    content: &'a str,
    special: bool,
}

fn added_tokens(file: &Value) -> Result<Vec<AddedToken<'_>>, Kind> {
    let list = file["added_tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut tokens = vec![];
    for (token, index) in list.iter().zip(0..) {
        let (Some(id), Some(content)) = (token["id"].as_u64(), token["content"].as_str()) else {
            return Err(invalid(format!(
                "added_tokens[{index}] needs a number \"id\" and a string \"content\""
            )));
        };
        let special = token["special"] == true;
        tokens.push(AddedToken { id, content, special });
    }
    Ok(tokens)
}

/// Pieces with their ids, and the piece for what the model does not know.
#[expect(clippy::type_complexity, reason = "named at the only call")]
fn model_pieces(model: &Value) -> Result<(Vec<(&str, u64)>, Option<&str>), Kind> {
    match &model["vocab"] {
        Value::Object(vocab) => {
            let mut pieces = vec![];
            for (piece, id) in vocab {
                let id = id.as_u64().ok_or_else(|| {
                    invalid(format!(
                        "model.vocab gives {piece:?} the id {id}; ids are numbers from 0"
                    ))
                })?;
                pieces.push((piece.as_str(), id));
            }
            Ok((pieces, model["unk_token"].as_str()))
        }
        Value::Array(vocab) => {
            let mut pieces = vec![];
            for (entry, id) in vocab.iter().zip(0..) {
                let piece = entry[0].as_str().ok_or_else(|| {
                    invalid(format!("model.vocab[{id}] is {entry}; entries are [piece, score]"))
                })?;
                pieces.push((piece, id));
            }
            let unknown = model["unk_id"].as_u64().and_then(|id| pieces.get(id as usize));
            let unknown = unknown.map(|(piece, _)| *piece);
            Ok((pieces, unknown))
        }
        _ => Err(invalid(
            "model.vocab is neither an object piece -> id nor a list of [piece, score]",
        )),
    }
}

/// Changes a tokenizer for the middle of a text: nothing is added, and nothing cut off.
///
/// No space is put before it, it is not padded, and nothing is put around it. (The decoder is not
/// asked: bytes are read from the pieces.)
fn within_text(mut file: Value, angle_tokens: AngleTokens) -> Value {
    for token in file["added_tokens"].as_array_mut().into_iter().flatten() {
        // Else the text `<tool_call>` would be cut into a token that has no text.
        if token["content"].as_str().is_some_and(|content| angle_tokens.takes(content)) {
            token["special"] = json!(true);
        }
    }
    without_prefix(&mut file["normalizer"]);
    without_prefix(&mut file["pre_tokenizer"]);
    for whole in ["truncation", "padding", "post_processor", "decoder"] {
        file[whole] = Value::Null;
    }
    file
}

fn without_prefix(part: &mut Value) {
    match part["type"].as_str() {
        Some("Sequence") => {
            for members in ["normalizers", "pretokenizers"] {
                if let Some(list) = part.get_mut(members).and_then(Value::as_array_mut) {
                    list.iter_mut().for_each(without_prefix);
                    list.retain(|member| !member.is_null());
                }
            }
        }
        Some("Prepend") => *part = Value::Null,
        Some("Metaspace") => {
            part["add_prefix_space"] = json!(false);
            part["prepend_scheme"] = json!("never");
        }
        Some("ByteLevel") => part["add_prefix_space"] = json!(false),
        _ => {}
    }
}

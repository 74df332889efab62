//! A model of random weights over a vocabulary of characters and a few longer pieces.

use std::ops::ControlFlow;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_model::{Model, ModelConfig};
use palmette_text::{
    OpenError, TextEnd, TextEvent, TextModel, TextModelOptions, TextPiece, TextRequest, generate,
};
use palmette_vocabulary::{LoadOptions, load_bytes};
use serde_json::json;

/// Characters of ASCII, then these.
pub(crate) const LONGER: [&str; 8] =
    ["{\"", "\": ", "true", "false", "</s>", "<|call|>", "ab", "\n\n"];

pub(crate) fn pieces() -> serde_json::Value {
    let characters = (' '..='~').map(String::from);
    json!(characters.chain(LONGER.map(String::from)).collect::<Vec<_>>())
}

/// `extra` are logits more than there are tokens; less, where negative.
pub(crate) fn config(extra: i64) -> ModelConfig {
    let num_tokens = (95 + LONGER.len()) as i64 + extra;
    serde_json::from_value(json!({
        "vocab_size": num_tokens, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 160,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false
    }))
    .unwrap()
}

pub(crate) fn model_with(extra: i64) -> TextModel {
    model_of(extra, &TextModelOptions::default()).unwrap()
}

pub(crate) fn model_of(extra: i64, options: &TextModelOptions) -> Result<TextModel, OpenError> {
    let model = Arc::new(Model::random(config(extra), 5).unwrap());
    let loaded = load_bytes("tiny", pieces().to_string().as_bytes(), &LoadOptions::default());
    TextModel::from_parts("tiny", model, loaded.unwrap(), options)
}

pub(crate) fn model() -> TextModel {
    model_with(0)
}

pub(crate) fn token(model: &TextModel, piece: &str) -> TokenId {
    let vocabulary = model.vocabulary().vocabulary();
    let texts = &mut vocabulary.texts();
    let found = texts.find(|(_, text)| *text == piece.as_bytes()).map(|(token, _)| token);
    found.or_else(|| vocabulary.named(piece)).expect(piece)
}

/// A text with all that was heard of it.
pub(crate) fn write(model: &TextModel, request: &TextRequest) -> (Vec<TextPiece>, TextEnd) {
    let (mut pieces, mut ends) = (Vec::new(), 0);
    let ended = generate(model, request, &mut |event| {
        match event {
            TextEvent::Text(piece) => {
                assert_eq!(ends, 0, "text after the end");
                pieces.push(piece);
            }
            TextEvent::End(_) => ends += 1,
            TextEvent::Stage(_) => {}
        }
        ControlFlow::Continue(())
    });
    assert_eq!(ends, usize::from(ended.is_ok()));
    (pieces, ended.unwrap())
}

pub(crate) fn text(pieces: &[TextPiece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

pub(crate) fn tokens(pieces: &[TextPiece]) -> Vec<TokenId> {
    pieces.iter().flat_map(|piece| &piece.tokens).map(|token| token.token).collect()
}

//! Model folders, as configuration and weights: what loads computes a row of logits within its
//! plan, or it is refused.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{Model, ModelConfig, Session, SessionOptions};

/// The byte between `config.json` and the weights: no UTF-8 text has it.
const SEPARATOR: u8 = 0xFF;

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|&byte| byte == SEPARATOR) else { return };
    let config = match ModelConfig::from_bytes(&data[..end]) {
        Ok(config) => config,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let model = match Model::from_bytes(config, data[end + 1..].to_vec()) {
        Ok(model) => Arc::new(model),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let options =
        SessionOptions { max_prompt_tokens: 3, max_beams: 2, max_decode_passes: 1, threads: 1 };
    let Ok(mut session) = Session::new(&model, options) else { return };
    if session.set_prompt(&[TokenId(0), TokenId(0)]).is_ok()
        && let Ok(logits) = session.prompt_logits()
    {
        assert_eq!(logits.len(), model.config().vocab_size);
    }
});

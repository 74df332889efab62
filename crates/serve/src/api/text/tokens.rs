//! `POST /tokenize` and `POST /detokenize`, as vLLM has them.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use palmette_core::TokenId;
use palmette_text::Detokenizer;

use super::answer::token_text;
use super::request::refused;
use crate::api::body;
use crate::api::documented::Texts;
use crate::app::App;
use crate::domain::background::blocking;
use crate::domain::registry::Table;
use crate::domain::text_catalogs::TextCatalogs;
use crate::domain::texts::ServedText;
use crate::problem::Problem;
use crate::wire::{ChatMembers, Detokenize, Detokenized, Tokenize, Tokenized};

/// Cuts a text, or the prompt of a chat, into tokens.
#[utoipa::path(
    post, path = "/tokenize", operation_id = "tokenize", tag = "text", request_body = Tokenize,
    responses((status = 200, body = Tokenized), Texts)
)]
pub(crate) async fn tokenize(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Tokenized>, Problem> {
    let asked: Tokenize = body::object(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(asked.model.as_deref())?;
    blocking(move || cut((&table, &served), &asked)).await?.map(Json)
}

fn cut(
    (table, served): (&Arc<Table>, &ServedText),
    asked: &Tokenize,
) -> Result<Tokenized, Problem> {
    let tokens = match (&asked.prompt, &asked.messages) {
        (Some(text), None) => {
            let model = served.model();
            let tokens = match asked.add_special_tokens {
                Some(false) => model.encode_prompt(text),
                _ => model.encode_text(text),
            };
            tokens.map_err(|error| Problem::invalid("/prompt", error.to_string()))?
        }
        (None, Some(messages)) => {
            let chat = ChatMembers {
                messages: messages.clone(),
                tools: asked.tools.clone(),
                add_generation_prompt: asked.add_generation_prompt,
                continue_final_message: asked.continue_final_message,
                chat_template_kwargs: asked.chat_template_kwargs.clone(),
                ..ChatMembers::default()
            };
            let settings = served.settings(TextCatalogs::for_model(table, served))?;
            chat.prompt_tokens(served.model(), &settings).map_err(refused)?
        }
        _ => return Err(Problem::invalid("/prompt", "give a prompt or messages, one of the two")),
    };
    let strings = || tokens.iter().map(|&token| token_text(served, token)).collect();
    Ok(Tokenized {
        count: tokens.len(),
        max_model_len: served.engine.max_positions(),
        token_strs: (asked.return_token_strs == Some(true)).then(strings),
        tokens: tokens.into_iter().map(|token| token.0).collect(),
    })
}

/// The text of tokens, special ones by their names.
#[utoipa::path(
    post, path = "/detokenize", operation_id = "detokenize", tag = "text", request_body = Detokenize,
    responses((status = 200, body = Detokenized), Texts)
)]
pub(crate) async fn detokenize(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Detokenized>, Problem> {
    let asked: Detokenize = body::object(&app, &headers, body).await?;
    let served = app.registry.table().text(asked.model.as_deref())?;
    let vocabulary = served.model().vocabulary().vocabulary();
    let num_tokens = vocabulary.num_tokens();
    if let Some((place, token)) =
        asked.tokens.iter().enumerate().find(|(_, token)| **token as usize >= num_tokens)
    {
        let detail = format!("there is no token {token}; the vocabulary has {num_tokens}");
        return Err(Problem::invalid(format!("/tokens/{place}"), detail));
    }
    let shown = Arc::new(served.model().special_names().clone());
    let mut detokenizer = Detokenizer::new(Arc::clone(vocabulary), Vec::new()).showing(shown);
    let mut prompt: String =
        asked.tokens.iter().map(|&token| detokenizer.push(TokenId(token)).text).collect();
    prompt += &detokenizer.finish();
    Ok(Json(Detokenized { prompt }))
}

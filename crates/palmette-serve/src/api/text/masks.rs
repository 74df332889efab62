//! `POST /v1/masks`: the tokens that a grammar allows after a text, for those who try a schema, tools or a grammar.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use palmette_core::{Constraint, TokenId, mask};
use palmette_grammar::{GrammarScratch, Interrupted, MaskBudget, RecognizerError};
use palmette_text::Constrained;
use serde_json::json;

use super::answer::missed;
use super::body::read;
use super::constraint::{asked, tools_of};
use super::request::{Going, Warnings, compiled, deadline};
use crate::api::documented::Texts;
use crate::api::recommend::blocking;
use crate::problem::Problem;
use crate::server::{App, Received};
use crate::texts::{self, ServedText};
use crate::wire::{ChatMembers, MaskAnswer, MaskBody, MaskMembers, MaskToken, TextMembers};

/// Bytes of a text, at most: what comes after them is as in longer texts.
const MOST_TEXT: usize = 64 << 10;
/// Tokens that are shown where a request does not say, and at most.
const SHOWN: usize = 40;
const MOST_SHOWN: usize = 1000;
/// Bytes that must follow which are told, at most.
const MOST_FORCED: usize = 1024;

/// Tells which tokens may follow a text under a schema, tools or a grammar.
///
/// The members that name a form are those of a chat or a completion, and the mask is the one that they would have there.
#[utoipa::path(
    post, path = "/v1/masks", operation_id = "show_mask", tag = "text", request_body = MaskBody,
    responses((status = 200, body = MaskAnswer), Texts)
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<MaskAnswer>, Problem> {
    let (own, both): (MaskMembers, TextMembers) = read(&app, &headers, body).await?;
    let served = texts::named(&app.registry.table(), both.model.as_deref())?;
    let until = deadline(&app, &both, received.0)?;
    let is_gone = Arc::new(AtomicBool::new(false));
    let _going = Going(Arc::clone(&is_gone));
    let work = blocking(move || answer(&served, &own, &both, &is_gone));
    let answered = tokio::time::timeout_at(until.into(), work).await;
    Ok(Json(answered.map_err(|_| missed())???))
}

fn answer(
    served: &ServedText,
    own: &MaskMembers,
    both: &TextMembers,
    is_gone: &AtomicBool,
) -> Result<MaskAnswer, Problem> {
    let text = own.text.as_deref().unwrap_or_default();
    if text.len() > MOST_TEXT {
        let detail = format!("the text has {} bytes; {MOST_TEXT} at most are read", text.len());
        return Err(Problem::invalid("/text", detail));
    }
    let show = own.show.unwrap_or(SHOWN);
    if show > MOST_SHOWN {
        let detail = format!("show is {show}; {MOST_SHOWN} tokens at most are shown");
        return Err(Problem::invalid("/show", detail));
    }
    let chat = chat(own)?;
    let tools = tools_of(&chat, served.tool_format, &served.name)?;
    let tools = tools.as_ref().map(|tools| (&chat, tools));
    let found = asked(both, served.json, tools)?.ok_or_else(|| {
        Problem::invalid(
            "",
            "no member names a form of the answer, so that every token may follow: give response_format, structured_outputs, a guided_… \
             member, or tools",
        )
    })?;
    let mut warnings = Warnings::default();
    let Constrained::Grammar(grammar) = compiled(served, &found, is_gone, &mut warnings)? else {
        return Err(Problem::invalid(found.pointer, "it is no grammar"));
    };
    let began = Instant::now();
    let mut scratch = GrammarScratch::default();
    let mut state = grammar.start();
    let place = |error: &dyn ToString| Problem::invalid("/text", error.to_string());
    grammar
        .commit_bytes(&mut state, text.as_bytes(), &mut scratch)
        .map_err(|error| place(&error))?;
    let mut row = vec![0; mask::num_words(grammar.num_tokens())];
    let steps = served.model().mask_steps();
    let budget = MaskBudget::of_steps(steps, Some(is_gone));
    let filled = grammar.fill_mask_within(&state, &mut scratch, &mut row, &budget);
    filled.map_err(|error| match error {
        RecognizerError::Interrupted(Interrupted::OutOfBudget { .. }) => Problem::invalid(
            found.pointer.clone(),
            format!("the mask takes more than its budget of {steps} steps: make the grammar simpler or less ambiguous"),
        ),
        other => place(&other),
    })?;
    let forced =
        grammar.forced_bytes(&state, MOST_FORCED, &mut scratch).map_err(|error| place(&error))?;
    let may_end = grammar.is_accepting(&state, &mut scratch).map_err(|error| place(&error))?;
    let took = began.elapsed();
    let vocabulary = grammar.vocabulary();
    let mut allowed: Vec<TokenId> = mask::iter(&row).collect();
    let count = allowed.len();
    allowed.sort_by_key(|&token| {
        (vocabulary.text(token).len(), vocabulary.text(token).to_vec(), token)
    });
    let token = |token: TokenId| MaskToken {
        token: token.0,
        text: served.model().special_name(token).map_or_else(
            || String::from_utf8_lossy(vocabulary.text(token)).into_owned(),
            str::to_owned,
        ),
    };
    Ok(MaskAnswer {
        model: served.name.clone(),
        allowed: count,
        num_tokens: grammar.num_tokens(),
        may_end,
        forced: String::from_utf8_lossy(&forced).into_owned(),
        tokens: allowed.into_iter().take(show).map(token).collect(),
        milliseconds: took.as_secs_f64() * 1e3,
        warnings: warnings.into_vec(),
    })
}

/// The members about tools as a chat has them.
fn chat(own: &MaskMembers) -> Result<ChatMembers, Problem> {
    let MaskMembers { tools, tool_choice, parallel_tool_calls, .. } = own;
    let members = json!({
        "messages": [], "tools": tools, "tool_choice": tool_choice, "parallel_tool_calls": parallel_tool_calls,
    });
    serde_json::from_value(members).map_err(|error| Problem::invalid("/tools", error.to_string()))
}

//! `POST /v1/masks`: the tokens that a grammar allows after a text, for those who try a schema,
//! tools or a grammar.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use palmette_core::{Constraint, TokenId, mask};
use palmette_document::Fault;
use palmette_grammar::{GrammarScratch, Interrupted, MaskBudget, RecognizerError};
use palmette_text::question::{AnswerForm, ChatQuestion, CheckError, TextQuestion};

use super::answer::{missed, token_text};
use super::request::{MOST_PLACE_TEXT, check_place, deadline, named, prepared};
use crate::api::body;
use crate::api::documented::Texts;
use crate::app::{App, Received};
use crate::domain::texts::ServedText;
use crate::problem::Problem;
use crate::wire::{
    BoundCatalog, ChatMembers, MaskAnswer, MaskBody, MaskMembers, MaskToken, TextMember,
};

/// Tokens that are shown where a request does not say, and at most.
const SHOWN: usize = 40;
const MOST_SHOWN: usize = 1000;
/// Limit on the shown bytes that must follow.
const MOST_FORCED: usize = 1024;

/// Tells which tokens may follow a text under a schema, tools or a grammar.
///
/// The members that name a form are those of a chat or a completion, and the mask is the one that
/// they would have there.
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
    let MaskBody { envelope, question } = body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let answered = prepared((&table, &served), until, move |served, settings, is_gone| {
        let TextQuestion { own, text } = question;
        let shown = (own.show, MOST_SHOWN, "tokens");
        check_place(own.text.as_deref(), shown)
            .and_then(|()| check_tokens(&own, served))
            .map_err(|fault| CheckError::Faults(fault.into()))?;
        let chat = ChatMembers {
            tools: own.tools.clone(),
            tool_choice: own.tool_choice.clone(),
            parallel_tool_calls: own.parallel_tool_calls,
            lax_tools: own.lax_tools,
            ..ChatMembers::default()
        };
        let chat = ChatQuestion { own: chat, text };
        let form = chat.answer_form(served.model(), settings, is_gone)?;
        Ok(answer(served, &own, form, is_gone))
    });
    answered.await?.map(Json)
}

/// Checks the tokens that may stand in the place of a text.
fn check_tokens(own: &MaskMembers, served: &ServedText) -> Result<(), Fault> {
    let Some(tokens) = &own.tokens else { return Ok(()) };
    if own.text.is_some() {
        return Err(Fault::new(
            "/tokens",
            "text and tokens are both the answer so far; leave one out",
        ));
    }
    if tokens.len() > MOST_PLACE_TEXT {
        let detail =
            format!("there are {} tokens; {MOST_PLACE_TEXT} at most are read", tokens.len());
        return Err(Fault::new("/tokens", detail));
    }
    let num_tokens = served.model().vocabulary().vocabulary().num_tokens();
    match tokens.iter().position(|&token| token as usize >= num_tokens) {
        Some(at) => {
            let detail =
                format!("there is no token {}; the vocabulary has {num_tokens}", tokens[at]);
            Err(Fault::new(format!("/tokens/{at}"), detail))
        }
        None => Ok(()),
    }
}

fn answer(
    served: &ServedText,
    own: &MaskMembers,
    form: Option<AnswerForm>,
    is_gone: &AtomicBool,
) -> Result<MaskAnswer, Problem> {
    let AnswerForm { bound, pointer, warnings } = form.ok_or_else(|| {
        Problem::invalid(
            "",
            "no member names a form of the answer, so that every token may follow: give response_format, structured_outputs, a guided_… \
             member, or tools",
        )
    })?;
    let grammar = bound.constraint();
    let show = own.show.unwrap_or(SHOWN);
    let began = Instant::now();
    let mut scratch = GrammarScratch::default();
    let mut state = grammar.start();
    let place = |error: &dyn ToString| Problem::invalid("/text", error.to_string());
    let text = own.text.as_deref().unwrap_or_default();
    grammar
        .commit_bytes(&mut state, text.as_bytes(), &mut scratch)
        .map_err(|error| place(&error))?;
    let tokens: Vec<TokenId> = own.tokens.iter().flatten().copied().map(TokenId).collect();
    for (at, &token) in tokens.iter().enumerate() {
        grammar
            .commit(&mut state, token, &mut scratch)
            .map_err(|error| Problem::invalid(format!("/tokens/{at}"), error.to_string()))?;
    }
    let mut row = vec![0; mask::num_words(grammar.num_tokens())];
    let steps = served.model().mask_steps();
    let budget = MaskBudget::of_steps(steps, Some(is_gone));
    let filled = grammar.fill_mask_within(&state, &mut scratch, &mut row, &budget);
    filled.map_err(|error| match error {
        RecognizerError::Interrupted(Interrupted::OutOfBudget { .. }) => Problem::invalid(
            pointer,
            format!("the mask takes more than its budget of {steps} steps: make the grammar simpler or less ambiguous"),
        ),
        RecognizerError::Interrupted(Interrupted::Cancelled) => missed(),
        RecognizerError::Interrupted(
            Interrupted::OutOfBytes { .. }
            | Interrupted::TooManyWays { .. }
            | Interrupted::TooManyResiduals,
        )
        | RecognizerError::Unbound { .. }
        | RecognizerError::Lexer(_)
        | RecognizerError::Parser(_) => place(&error),
    })?;
    let forced =
        grammar.forced_bytes(&state, MOST_FORCED, &mut scratch).map_err(|error| place(&error))?;
    let may_end = grammar.is_accepting(&state, &mut scratch).map_err(|error| place(&error))?;
    let took = began.elapsed();
    let catalogs = BoundCatalog::by_name(bound.sources());
    let members = match catalogs.is_empty() {
        true => None,
        false => {
            let told = |token| token_text(served, token).len();
            let members = match own.tokens {
                Some(_) => bound.members_of_tokens(&tokens, told),
                None => bound.members_with(text.as_bytes(), &mut scratch),
            };
            let members = members.map_err(|error| place(&error))?.unwrap_or_default();
            Some(members.into_iter().map(|member| TextMember::after(0, member)).collect())
        }
    };
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
        catalogs,
        members,
        warnings: named(warnings),
    })
}

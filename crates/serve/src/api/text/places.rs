//! `POST /v1/places`: what may follow a text, character by character and item by item, for people
//! who type; no text model is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use palmette_bindings::{Place, RefusedValue};
use palmette_text::GrammarCompiler;
use palmette_text::question::{
    AnswerForm, CheckError, TextDefaults, TextLimits, TextQuestion, TextSettings,
};

use super::answer::missed;
use super::request::{Going, check_place, deadline, named, refused};
use crate::api::body;
use crate::api::documented::Texts;
use crate::app::{App, Received};
use crate::domain::background::blocking;
use crate::domain::text_catalogs::TextCatalogs;
use crate::problem::Problem;
use crate::wire::{
    BoundCatalog, CharacterRange, MembersHere, PlaceAnswer, PlaceBody, PlaceMembers, RefusedText,
    TextMember,
};

/// Members of a set that are shown where a request does not say, and at most.
const SHOWN: usize = 20;
const MOST_SHOWN: usize = 200;
/// Label of these grammars in metrics, where texts have the name of their model.
const LABEL: &str = "places";

/// Tells what may follow a text under a schema or a grammar: characters, and members of catalogs.
///
/// The members that name a form and its catalogs are those of a chat or a completion. No text model
/// is needed. Where the text is none, the answer is about its longest part that is, and says what
/// is refused behind it.
#[utoipa::path(
    post, path = "/v1/places", operation_id = "show_place", tag = "text", request_body = PlaceBody,
    responses((status = 200, body = PlaceAnswer), Texts)
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<PlaceAnswer>, Problem> {
    let PlaceBody { envelope, question } = body::text(&app, &headers, body).await?;
    let until = deadline(&app, &envelope, received.0)?;
    let settings = TextSettings {
        limits: TextLimits::default(),
        defaults: TextDefaults::default(),
        tool_format: None,
        now: None,
        catalogs: Some(TextCatalogs::without_model(&app.registry.table(), LABEL)),
    };
    let is_gone = Arc::new(AtomicBool::new(false));
    let _going = Going(Arc::clone(&is_gone));
    let work = blocking(move || {
        let mut answered = answer(&app.place_grammars, &question, &settings, &is_gone)?;
        let no_model = || "model: without effect, since no model is asked".to_owned();
        answered.warnings.extend(envelope.model.is_some().then(no_model));
        match is_gone.load(Ordering::Relaxed) {
            true => Err(missed()),
            false => Ok(answered),
        }
    });
    tokio::time::timeout_at(until.into(), work).await.map_err(|_| missed())??.map(Json)
}

fn answer(
    grammars: &GrammarCompiler,
    question: &TextQuestion<PlaceMembers>,
    settings: &TextSettings,
    is_gone: &AtomicBool,
) -> Result<PlaceAnswer, Problem> {
    let TextQuestion { own, text: members } = question;
    let shown = (own.show, MOST_SHOWN, "members of a set");
    check_place(own.text.as_deref(), shown)
        .map_err(|fault| refused(CheckError::Faults(fault.into())))?;
    let form = members.form(grammars, settings, is_gone).map_err(refused)?;
    let AnswerForm { bound, warnings, .. } = form.ok_or_else(|| {
        Problem::invalid(
            "",
            "no member names a form of the text, so that anything may follow: give response_format, structured_outputs or a guided_… member",
        )
    })?;
    let text = own.text.as_deref().unwrap_or_default();
    let began = Instant::now();
    let place = bound.place(text.as_bytes(), own.show.unwrap_or(SHOWN));
    let place = place.map_err(|error| Problem::invalid("/text", error.to_string()))?;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let (next, other_characters) = CharacterRange::of_bytes(&place.next);
    let refused = (place.read < text.len()).then(|| refusal(&place, text));
    let within = place.within.into_iter().map(MembersHere::of).collect();
    let members = place.members.into_iter().map(|member| TextMember::after(0, member)).collect();
    Ok(PlaceAnswer {
        read: place.read,
        refused,
        may_end: place.may_end,
        forced: String::from_utf8_lossy(&place.forced).into_owned(),
        next,
        other_characters,
        within,
        catalogs: BoundCatalog::by_name(bound.sources()),
        members,
        milliseconds,
        warnings: named(warnings),
    })
}

/// Refusal of what stands behind the place, and the reason.
fn refusal(place: &Place, text: &str) -> RefusedText {
    // Within a character it is the whole of it.
    let at = (0..=place.read).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let character = text[at..].chars().next().unwrap_or_default();
    let detail = match &place.refused {
        Some(RefusedValue { set, field, value, nearest }) => {
            let near = match &**nearest {
                [] => "; none is like it".to_owned(),
                [one] => format!("; the nearest is {one:?}"),
                all => format!("; the nearest are {all:?}").replace(['[', ']'], ""),
            };
            format!(
                "{value:?} is none of the values of {set}.{field} that may be written here{near}"
            )
        }
        None => format!("{character:?} cannot follow here"),
    };
    RefusedText { at, character, detail }
}

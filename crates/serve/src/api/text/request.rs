//! From a question to texts that an engine writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palmette_document::Fault;
use palmette_text::engine::{SubmitError, Ticket, Update};
use palmette_text::question::{CheckError, CheckedText, Refusal, TextSettings};
use tokio::sync::{mpsc, watch};

use super::answer::missed;
use crate::app::{App, Drain};
use crate::domain::background::blocking;
use crate::domain::registry::Table;
use crate::domain::text_catalogs::TextCatalogs;
use crate::domain::texts::ServedText;
use crate::problem::{Kind, MemberShortage, OpenAiCode, Problem};
use crate::text_times::TextTimes;
use crate::wire::TextEnvelope;

/// A prompt that leaves no room for the answer.
const TOO_LONG: OpenAiCode = OpenAiCode::ContextLengthExceeded;

/// Outcome of one of the answers.
pub(super) type Part = (usize, Update);

/// The answers of a request, being written. Dropping it ends them.
pub(super) struct Answers {
    pub(super) parts: mpsc::UnboundedReceiver<Part>,
    pub(super) drain: watch::Receiver<Drain>,
    _tickets: Vec<Ticket>,
}

/// The time by which an answer is of use.
pub(super) fn deadline(
    app: &App,
    envelope: &TextEnvelope,
    arrived: Instant,
) -> Result<Instant, Problem> {
    let most = app.config.max_text_time;
    match envelope.deadline_ms {
        None => Ok(arrived + most),
        Some(ms) if ms > 0 && Duration::from_millis(ms) <= most => {
            Ok(arrived + Duration::from_millis(ms))
        }
        Some(ms) => Err(Problem::invalid(
            "/deadline_ms",
            format!("deadline_ms is {ms}; this server takes 1 to {}", most.as_millis()),
        )),
    }
}

/// Does the work that a question needs before a text can begin, on a thread where nobody waits; a
/// client that goes away, or the deadline, calls it off.
pub(super) async fn prepared<T: Send + 'static>(
    (table, served): (&Arc<Table>, &Arc<ServedText>),
    until: Instant,
    work: impl FnOnce(&ServedText, &TextSettings, &AtomicBool) -> Result<T, CheckError> + Send + 'static,
) -> Result<T, Problem> {
    let settings = served.settings(TextCatalogs::for_model(table, served))?;
    let served = Arc::clone(served);
    let is_gone = Arc::new(AtomicBool::new(false));
    let _going = Going(Arc::clone(&is_gone));
    let work = blocking(move || work(&served, &settings, &is_gone));
    let done = tokio::time::timeout_at(until.into(), work).await.map_err(|_| missed())??;
    done.map_err(refused)
}

/// Bytes of the text of a question about one place, at most: what comes after them is as in longer
/// texts.
pub(super) const MOST_PLACE_TEXT: usize = 64 << 10;

/// Checks the text of a question about one place, and how much it wants to be shown: at most so
/// many of what is named.
pub(super) fn check_place(
    text: Option<&str>,
    (show, most, what): (Option<usize>, usize, &str),
) -> Result<(), Fault> {
    let bytes = text.map_or(0, str::len);
    if bytes > MOST_PLACE_TEXT {
        let detail = format!("the text has {bytes} bytes; {MOST_PLACE_TEXT} at most are read");
        return Err(Fault::new("/text", detail));
    }
    match show {
        Some(show) if show > most => {
            let detail = format!("show is {show}; {most} {what} at most are shown");
            Err(Fault::new("/show", detail))
        }
        Some(_) | None => Ok(()),
    }
}

/// A question that cannot be asked, as a problem.
pub(super) fn refused(error: CheckError) -> Problem {
    match error {
        CheckError::Faults(faults) => Problem::of_faults(faults),
        CheckError::TooLong(faults) => Problem::of_faults(faults).with_code(TOO_LONG),
        CheckError::Refused(refusal, faults) => match refusal {
            Refusal::Forbidden => Problem::of_faults_as(Kind::Forbidden, faults),
            Refusal::TooLarge => Problem::of_faults_as(Kind::TooLarge, faults),
            Refusal::Gone => Problem::of_faults_as(Kind::Gone, faults),
            Refusal::NoText(_) => Problem {
                // Sets without a member are what leaves no text.
                shortage: Some(Box::new(MemberShortage { eligible: 0, needed: 1 })),
                ..Problem::of_faults_as(Kind::NoText, faults)
            },
        },
        CheckError::Cancelled => missed(),
        CheckError::Model(error) => Problem::new(Kind::Internal, error.to_string()),
    }
}

/// Parts of a question without effect that an answer names, at most.
const MAX_WARNINGS: usize = 20;

/// Parts of a question without effect, as many as an answer names.
pub(super) fn named(mut warnings: Vec<String>) -> Vec<String> {
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    warnings.truncate(MAX_WARNINGS);
    warnings.extend((more > 0).then(|| format!("and {more} more")));
    warnings
}

/// A flag that is set when this is dropped: work that nobody waits for any more ends.
pub(super) struct Going(pub(super) Arc<AtomicBool>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Hands all answers to the engine, or none.
pub(super) fn submit(
    app: &App,
    served: &ServedText,
    question: &CheckedText,
) -> Result<Answers, Problem> {
    let drain = app.drain();
    if *drain.borrow() >= Drain::Closed {
        return Err(Problem::new(Kind::Unavailable, "the server is draining").retry_after(1000));
    }
    let (sender, parts) = mpsc::unbounded_channel();
    let mut tickets = Vec::with_capacity(question.num_answers());
    // Who does not listen any more has dropped the ticket, too.
    if let Some(beams) = &question.beams {
        for (number, request) in question.requests.iter().enumerate() {
            let (sender, first) = (sender.clone(), number * question.n);
            let mut times: Vec<TextTimes> =
                (0..question.n).map(|_| TextTimes::begin(&served.name)).collect();
            let sink = move |place: usize, update: Update| {
                times[place].see(&update);
                drop(sender.send((first + place, update)));
            };
            let ticket = served.engine.search_to(request, beams, Box::new(sink));
            tickets.push(ticket.map_err(|error| not_taken(app, &error))?);
        }
        return Ok(Answers { parts, drain, _tickets: tickets });
    }
    for place in 0..question.num_answers() {
        let sender = sender.clone();
        let mut times = TextTimes::begin(&served.name);
        let sink = move |update: Update| {
            times.see(&update);
            drop(sender.send((place, update)));
        };
        let ticket = served.engine.submit_to(&question.request(place), Box::new(sink));
        tickets.push(ticket.map_err(|error| not_taken(app, &error))?);
    }
    Ok(Answers { parts, drain, _tickets: tickets })
}

fn not_taken(app: &App, error: &SubmitError) -> Problem {
    match error {
        SubmitError::Full { .. } => Problem::new(Kind::Overloaded, error.to_string())
            .with_status(app.config.overload_status)
            .retry_after(1000),
        SubmitError::TooLong { .. } => Problem::invalid("", error.to_string()).with_code(TOO_LONG),
        SubmitError::TooManyBeams { .. } => Problem::invalid("/best_of", error.to_string()),
        SubmitError::BeamsTooLong { .. } => {
            Problem::invalid("/max_tokens", error.to_string()).with_code(TOO_LONG)
        }
        SubmitError::Closed => Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000),
        // A question was checked before.
        SubmitError::Request(_) => Problem::new(Kind::Internal, error.to_string()),
    }
}

//! From members of a body to what an engine takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palmette_core::TokenId;
use palmette_grammar::CacheError;
use palmette_text::engine::{Refused, Ticket, Update};
use palmette_text::{Constrained, RequestError, SamplerOptions, SpecialText, TextRequest};
use tokio::sync::{mpsc, watch};

use super::constraint::Asked;
use crate::problem::{Kind, OpenAiCode, Problem};
use crate::server::{App, Drain};
use crate::text_times::TextTimes;
use crate::texts::ServedText;
use crate::wire::{OneOrMany, TextMembers};

/// Most answers to one request.
const MAX_ANSWERS: usize = 64;
/// Most stop texts, and bytes of each.
const MAX_STOPS: usize = 16;
const MAX_STOP_BYTES: usize = 1024;
/// Most log-probabilities at one place.
const MAX_LOGPROBS: usize = 20;

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

/// A prompt, and the member that it is from.
pub(super) struct Prompt {
    pub(super) tokens: Vec<TokenId>,
    pub(super) pointer: String,
}

/// What a route knows of a request besides the members that both have.
pub(super) struct OfRoute {
    /// Most tokens of an answer; `None` for as many as there is room for.
    pub(super) max_tokens: Option<usize>,
    /// The member that says it, as a JSON pointer.
    pub(super) max_tokens_at: &'static str,
    pub(super) logprobs: Option<usize>,
    /// The member that says how many.
    pub(super) logprobs_at: &'static str,
    /// The same for the prompt's tokens.
    pub(super) prompt_logprobs: Option<usize>,
    pub(super) special: SpecialText,
}

/// The time by which an answer is of use.
pub(super) fn deadline(
    app: &App,
    both: &TextMembers,
    arrived: Instant,
) -> Result<Instant, Problem> {
    let most = app.config.max_text_time;
    match both.deadline_ms {
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

/// Answers wanted of each prompt.
pub(super) fn answers_wanted(both: &TextMembers, prompts: usize) -> Result<usize, Problem> {
    let n = both.n.unwrap_or(1);
    let most = MAX_ANSWERS / prompts.max(1);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(Problem::invalid(
            "/n",
            format!(
                "n is {n} for {prompts} prompts; it must be at least 1, and {MAX_ANSWERS} answers in all at most"
            ),
        )),
    }
}

/// Parts of a request without effect that an answer names, at most.
const MAX_WARNINGS: usize = 20;

/// Parts of a request that have no effect, as an answer names them.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings(Vec<String>);

impl Warnings {
    pub(super) fn add(&mut self, warning: String) {
        self.0.push(warning);
    }

    pub(super) fn into_vec(mut self) -> Vec<String> {
        let more = self.0.len().saturating_sub(MAX_WARNINGS);
        self.0.truncate(MAX_WARNINGS);
        self.0.extend((more > 0).then(|| format!("and {more} more")));
        self.0
    }
}

/// Compiles a grammar, unless the client goes away meanwhile. Not for a thread that others wait for.
pub(super) fn compiled(
    served: &ServedText,
    asked: &Asked,
    is_gone: &AtomicBool,
    warnings: &mut Warnings,
) -> Result<Constrained, Problem> {
    let compiled = served.model().compile_unless(&asked.source, is_gone);
    let grammar = compiled.map_err(|error| match error {
        CacheError::Cancelled => Problem::new(Kind::DeadlineMissed, error.to_string()),
        other => Problem::invalid(asked.pointer.clone(), other.to_string()),
    })?;
    let name = asked.pointer.trim_start_matches('/').replace('/', ".");
    grammar.notes().into_iter().for_each(|note| warnings.add(format!("{name}: {note}")));
    Ok(Constrained::by(&grammar))
}

/// A flag that is set when this is dropped: work that nobody waits for any more ends.
pub(super) struct Going(pub(super) Arc<AtomicBool>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The request to the engine of each prompt.
pub(super) fn requests(
    served: &ServedText,
    both: &TextMembers,
    of_route: &OfRoute,
    prompts: Vec<Prompt>,
    constraint: &Constrained,
) -> Result<Vec<TextRequest>, Problem> {
    let sampler = sampler(both)?;
    let stop = stops(both)?;
    if let Some(wanted) = of_route.logprobs
        && wanted > MAX_LOGPROBS
    {
        let detail =
            format!("{wanted} log-probabilities at each place; {MAX_LOGPROBS} at most are given");
        return Err(Problem::invalid(of_route.logprobs_at, detail));
    }
    let logit_bias = logit_bias(both)?;
    let stop_tokens = both.stop_token_ids.iter().flatten().map(|&token| TokenId(token));
    let stop_tokens: Vec<TokenId> = stop_tokens.collect();
    let room = served.engine.max_positions();
    let one = |prompt: Prompt| {
        let room = room.saturating_sub(prompt.tokens.len());
        if room == 0 && of_route.max_tokens != Some(0) {
            let (tokens, most) = (prompt.tokens.len(), served.engine.max_positions());
            let detail = format!(
                "the prompt has {tokens} tokens, and this model is served with {most} for prompt and answer: shorten it"
            );
            return Err(Problem::invalid(prompt.pointer, detail).with_code(TOO_LONG));
        }
        let max_tokens = of_route.max_tokens.unwrap_or(room);
        // No end token is allowed before so many.
        let least = if both.ignore_eos == Some(true) { max_tokens } else { 0 };
        let request = TextRequest {
            constraint: constraint.clone(),
            sampler,
            logit_bias: logit_bias.clone(),
            min_tokens: both.min_tokens.unwrap_or(0).max(least),
            stop: stop.clone(),
            stop_tokens: stop_tokens.clone(),
            logprobs: of_route.logprobs,
            prompt_logprobs: of_route.prompt_logprobs,
            special: of_route.special.clone(),
            ..TextRequest::new(prompt.tokens, max_tokens)
        };
        request
            .check(served.model())
            .map_err(|error| refused(&error, &prompt.pointer, of_route.max_tokens_at))?;
        if max_tokens > room {
            let detail = format!(
                "{max_tokens} tokens are asked for, and after the prompt there is room for {room}: ask for fewer, or leave the number out"
            );
            return Err(Problem::invalid(of_route.max_tokens_at, detail).with_code(TOO_LONG));
        }
        Ok(request)
    };
    prompts.into_iter().map(one).collect()
}

fn sampler(both: &TextMembers) -> Result<SamplerOptions, Problem> {
    let top_k = match both.top_k {
        None | Some(0 | -1) => None,
        Some(k) => {
            let k = usize::try_from(k).ok().and_then(std::num::NonZeroUsize::new);
            Some(k.ok_or_else(|| {
                Problem::invalid(
                    "/top_k",
                    "top_k is negative; it must be at least 1, or 0 or -1 for all",
                )
            })?)
        }
    };
    let seed = match both.seed {
        Some(seed) => seed as u64,
        None => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(|error| {
                Problem::new(Kind::Unavailable, format!("no random numbers: {error}"))
            })?;
            u64::from_le_bytes(bytes)
        }
    };
    let options = SamplerOptions::default();
    Ok(SamplerOptions {
        temperature: both.temperature.unwrap_or(1.0),
        top_p: both.top_p.unwrap_or(options.top_p),
        min_p: both.min_p.unwrap_or(options.min_p),
        repetition_penalty: both.repetition_penalty.unwrap_or(options.repetition_penalty),
        presence_penalty: both.presence_penalty.unwrap_or(options.presence_penalty),
        frequency_penalty: both.frequency_penalty.unwrap_or(options.frequency_penalty),
        top_k,
        seed,
    })
}

fn stops(both: &TextMembers) -> Result<Vec<String>, Problem> {
    let stops = both.stop.clone().map_or(Vec::new(), OneOrMany::into_vec);
    let longest = stops.iter().map(String::len).max().unwrap_or(0);
    if stops.len() > MAX_STOPS || longest > MAX_STOP_BYTES {
        let detail = format!(
            "{} stop texts, the longest of {longest} bytes; {MAX_STOPS} of {MAX_STOP_BYTES} bytes are taken",
            stops.len()
        );
        return Err(Problem::invalid("/stop", detail));
    }
    Ok(stops)
}

fn logit_bias(both: &TextMembers) -> Result<Vec<(TokenId, f32)>, Problem> {
    let one = |(token, &bias): (&String, &f32)| match token.parse() {
        Ok(token) => Ok((TokenId(token), bias)),
        Err(_) => Err(Problem::invalid(
            "/logit_bias",
            format!("logit_bias has {token:?}; the members' names are ids of tokens"),
        )),
    };
    both.logit_bias.iter().flatten().map(one).collect()
}

/// A rule of the engine that a request breaks, with the member that does.
fn refused(error: &RequestError, prompt: &str, max_tokens: &str) -> Problem {
    let pointer = match error {
        RequestError::EmptyPrompt | RequestError::PromptTooLong { .. } => prompt.to_owned(),
        RequestError::TooLong { .. } | RequestError::NoTokens => max_tokens.to_owned(),
        RequestError::MinAboveMax { .. } => "/min_tokens".to_owned(),
        RequestError::EmptyStop { place } => format!("/stop/{place}"),
        RequestError::UnknownToken { what: "the prompt", .. } => prompt.to_owned(),
        RequestError::UnknownToken { what: "logit_bias", .. } => "/logit_bias".to_owned(),
        RequestError::UnknownToken { .. } => "/stop_token_ids".to_owned(),
        RequestError::Sampler(error) => format!("/{}", error.name()),
        _ => String::new(),
    };
    let problem = Problem::invalid(pointer, error.to_string());
    match error {
        RequestError::PromptTooLong { .. } | RequestError::TooLong { .. } => {
            problem.with_code(TOO_LONG)
        }
        _ => problem,
    }
}

/// Hands all answers to the engine, or none. Those of one prompt differ in their random numbers alone: the seed and those after it.
pub(super) fn submit(
    app: &App,
    served: &ServedText,
    requests: &[TextRequest],
    n: usize,
) -> Result<Answers, Problem> {
    let drain = app.drain();
    if *drain.borrow() >= Drain::Closed {
        return Err(Problem::new(Kind::Unavailable, "the server is draining").retry_after(1000));
    }
    let (sender, parts) = mpsc::unbounded_channel();
    let mut tickets = Vec::with_capacity(requests.len() * n);
    for request in requests {
        for number in 0..n {
            let (sender, place) = (sender.clone(), tickets.len());
            let mut request = request.clone();
            request.sampler.seed = request.sampler.seed.wrapping_add(number as u64);
            // Who does not listen any more has dropped the ticket, too.
            let mut times = TextTimes::begin(&served.name);
            let sink = move |update: Update| {
                times.see(&update);
                drop(sender.send((place, update)));
            };
            let ticket = served.engine.submit_to(&request, Box::new(sink));
            tickets.push(ticket.map_err(|error| not_taken(app, &error))?);
        }
    }
    Ok(Answers { parts, drain, _tickets: tickets })
}

fn not_taken(app: &App, error: &Refused) -> Problem {
    match error {
        Refused::Full { .. } => Problem::new(Kind::Overloaded, error.to_string())
            .with_status(app.config.overload_status)
            .retry_after(1000),
        Refused::TooLong { .. } => Problem::invalid("", error.to_string()).with_code(TOO_LONG),
        Refused::Closed => Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000),
        other => Problem::invalid("", other.to_string()),
    }
}

//! Check of a question: defaults filled in, prompt, grammar and sampler made, or all faults at
//! once.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;

use palmette_bindings::{BoundSource, Shortage};
use palmette_core::TokenId;
use palmette_decode::{LengthRule, SamplerOptions};
use palmette_document::{Fault, Faults, respelled};
use palmette_vocabulary::TokenizeError;

use super::grammar::BoundForm;
use super::prompt::Prompt;
use super::tools::Calling;
use super::{ChatQuestion, CompletionQuestion, OneOrMany, TextMembers, TextSettings};
use crate::error::{RequestError, RequestMember};
use crate::grammar_compiler::GrammarCompiler;
use crate::item_search::ItemSearch;
use crate::model::TextModel;
use crate::request::{Constrained, SpecialText, TextRequest};
use crate::text_beams::TextBeams;
use crate::tool_calls::ToolCallReader;

/// A question without a fault, as requests to an engine or a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckedText {
    /// One for each prompt, at least one.
    pub requests: Vec<TextRequest>,
    /// Answers of each prompt.
    pub n: usize,
    /// Search whose best texts are the answers to a prompt, fewer where fewer are found; `None`
    /// where they are drawn.
    pub beams: Option<TextBeams>,
    /// Reading of calls from the answers, where there are tools.
    pub calling: Option<Calling>,
    /// Echo of each prompt before its answers; empty where it is not echoed.
    pub echoes: Vec<String>,
    /// Parts of the question that have no effect.
    pub warnings: Vec<String>,
    /// The catalogs and documents that are bound, ascending by name.
    pub sources: Vec<BoundSource>,
}

impl CheckedText {
    /// Answers to all prompts.
    pub fn num_answers(&self) -> usize {
        self.requests.len() * self.n
    }

    /// The request of an answer by its number, by prompt and then by answer. Those of one prompt
    /// differ in their random numbers alone: the seed and those after it.
    pub fn request(&self, answer: usize) -> TextRequest {
        let mut request = self.requests[answer / self.n].clone();
        let number = (answer % self.n) as u64;
        request.sampler.seed = request.sampler.seed.wrapping_add(number);
        request
    }
}

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckError {
    /// The question breaks rules.
    Faults(Faults),
    /// The question breaks rules, one of them the limit on what the model reads.
    TooLong(Faults),
    /// The question breaks rules, one of them about the catalogs that its grammar names.
    Refused(Refusal, Faults),
    /// Compiling its grammar was called off.
    Cancelled,
    /// The model cuts no text into tokens: not the question's fault.
    Model(TokenizeError),
}

/// The reason why a set that the grammar names cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The asker may not use a catalog.
    Forbidden,
    /// Values or documents are over their limit.
    TooLarge,
    /// A generation is not kept any more.
    Gone,
    /// No text is left: these sets have no members.
    NoText(Vec<Shortage>),
}

impl CheckError {
    /// The rules that the question breaks; `None` where it is not the question's fault.
    pub fn faults(&self) -> Option<&Faults> {
        match self {
            Self::Faults(faults) | Self::TooLong(faults) | Self::Refused(_, faults) => Some(faults),
            Self::Cancelled | Self::Model(_) => None,
        }
    }
}

impl CheckError {
    /// The error with a surface's own names for members in its sentences.
    #[must_use]
    pub fn respelled(self, names: &[(&str, &str)]) -> Self {
        match self {
            Self::Faults(faults) => Self::Faults(faults.respelled(names)),
            Self::TooLong(faults) => Self::TooLong(faults.respelled(names)),
            Self::Refused(refusal, faults) => Self::Refused(refusal, faults.respelled(names)),
            Self::Cancelled | Self::Model(_) => self,
        }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faults(faults) | Self::TooLong(faults) | Self::Refused(_, faults) => {
                faults.fmt(f)
            }
            Self::Cancelled => f.write_str("the compilation was cancelled"),
            Self::Model(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckError {}

/// A check under way of a form and its catalogs, for which no model is needed.
pub(super) struct FormCheck<'a> {
    pub(super) grammars: &'a GrammarCompiler,
    pub(super) settings: &'a TextSettings,
    pub(super) cancelled: &'a AtomicBool,
    pub(super) warnings: Vec<String>,
    /// The end of the check for a reason that is not the question's.
    pub(super) failure: Option<CheckError>,
    faults: Faults,
    refusal: Option<Refusal>,
}

/// A check under way of a question to a model.
pub(super) struct Check<'a> {
    pub(super) model: &'a TextModel,
    /// Check of what does not hang on the model.
    form: FormCheck<'a>,
    is_too_long: bool,
}

/// Warning of an answer that is to be whole within its tokens and may not be.
const UNKNOWN_WAY: &str = "finish: no way to the end of the answer was found within bounds, so it may be cut off at max_tokens";

/// Values of members that chats and completions spell otherwise.
struct SpelledMembers {
    max_tokens: Option<usize>,
    /// The member that says it, as a JSON pointer.
    max_tokens_at: &'static str,
    /// Limit on tokens where no member gives one. `None` for as many as there is room for.
    default_tokens: Option<usize>,
    logprobs: Option<usize>,
    logprobs_at: &'static str,
    prompt_logprobs: Option<usize>,
    special: SpecialText,
}

impl ChatQuestion {
    /// Checks the question against a model, by the settings of a surface: the prompt is made, and
    /// the grammar compiled, which setting `cancelled` calls off.
    ///
    /// # Errors
    /// With every fault that does not hang on another, or when the grammar was called off.
    pub fn check(
        &self,
        model: &TextModel,
        settings: &TextSettings,
        cancelled: &AtomicBool,
    ) -> Result<CheckedText, CheckError> {
        let Self { own: chat, text } = self;
        let mut check = Check::new(model, settings, cancelled);
        let n = check.answers(text, 1);
        let mut tools = check.take(chat.callable_tools(model, settings)).flatten();
        let prompt = check.chat_prompt(chat, tools.as_ref());
        if let (Some(tools), Some(prompt)) = (&mut tools, &prompt) {
            tools.format = tools.format.after_prompt(prompt);
        }
        let tokens = prompt.and_then(|prompt| {
            let tokens = model.encode_prompt(&prompt);
            check.encoded(tokens, "/messages")
        });
        let form = check.grammar(text, tools.as_ref().map(|tools| (chat, tools)));
        let (constraint, sources) = parts(form);
        let calling = tools.map(|tools| tools.calling());
        let logprobs = match (chat.logprobs, chat.top_logprobs) {
            (Some(true), top) => Some(top.unwrap_or(0)),
            (Some(false) | None, top) => {
                if top.is_some_and(|top| top > 0) {
                    let detail = "top_logprobs needs logprobs to be true";
                    check.fault(Fault::new("/top_logprobs", detail));
                }
                None
            }
        };
        let (max_tokens, max_tokens_at) = match (chat.max_completion_tokens, text.max_tokens) {
            (Some(new), old) => {
                if let Some(old) = old.filter(|&old| old != new) {
                    let detail = format!(
                        "max_completion_tokens is {new}, and max_tokens is {old}; leave one out"
                    );
                    check.fault(Fault::new("/max_tokens", detail));
                }
                (Some(new), "/max_completion_tokens")
            }
            (None, old) => (old, "/max_tokens"),
        };
        let special = calling
            .as_ref()
            .map_or(SpecialText::Hidden, |calling| ToolCallReader::special_text(&calling.format));
        let spelled = SpelledMembers {
            max_tokens,
            max_tokens_at,
            default_tokens: settings.defaults.chat_tokens,
            logprobs,
            logprobs_at: "/top_logprobs",
            prompt_logprobs: None,
            special,
        };
        let prompt = tokens.map(|tokens| Prompt { tokens, pointer: "/messages".to_owned() });
        let requests = check.requests(text, &spelled, vec![prompt], constraint);
        let beams = check.beams(text, n, &requests);
        let warnings = std::mem::take(&mut check.warnings);
        let echoes = vec![String::new()];
        check.finish(CheckedText { requests, n, beams, calling, echoes, warnings, sources })
    }
}

impl CompletionQuestion {
    /// Checks the question against a model, by the settings of a surface: prompts are cut into
    /// tokens, and the grammar compiled, which setting `cancelled` calls off.
    ///
    /// # Errors
    /// With every fault that does not hang on another, or when the grammar was called off.
    pub fn check(
        &self,
        model: &TextModel,
        settings: &TextSettings,
        cancelled: &AtomicBool,
    ) -> Result<CheckedText, CheckError> {
        let Self { own: completion, text } = self;
        let mut check = Check::new(model, settings, cancelled);
        let n = check.answers(text, completion.prompt.count());
        let prompts = check.prompts(completion);
        let (constraint, sources) = parts(check.grammar(text, None));
        let echo = completion.echo == Some(true);
        // A prompt that is all of the answer is read, if not for its likelihoods. A search has
        // neither.
        let is_searched = text.use_beam_search == Some(true);
        let only_echo = (text.max_tokens == Some(0) && !is_searched).then_some(0);
        let spelled = SpelledMembers {
            max_tokens: text.max_tokens,
            max_tokens_at: "/max_tokens",
            default_tokens: settings.defaults.completion_tokens,
            logprobs: completion.logprobs,
            logprobs_at: "/logprobs",
            prompt_logprobs: completion.logprobs.or(only_echo).filter(|_| echo),
            special: SpecialText::Hidden,
        };
        let mut echoes = Vec::with_capacity(prompts.len());
        let one = |prompt: Option<(Prompt, String)>| {
            let (prompt, text) = prompt?;
            echoes.push(if echo { text } else { String::new() });
            Some(prompt)
        };
        let prompts = prompts.into_iter().map(one).collect();
        let requests = check.requests(text, &spelled, prompts, constraint);
        let beams = check.beams(text, n, &requests);
        let warnings = std::mem::take(&mut check.warnings);
        check.finish(CheckedText { requests, n, beams, calling: None, echoes, warnings, sources })
    }
}

/// The constraint of a form, and what it is bound to.
fn parts(form: Option<BoundForm>) -> (Option<Constrained>, Vec<BoundSource>) {
    let Some(BoundForm { bound, .. }) = form else { return Default::default() };
    let sources = bound.sources().to_vec();
    (Some(bound.into()), sources)
}

impl<'a> FormCheck<'a> {
    pub(super) fn new(
        grammars: &'a GrammarCompiler,
        settings: &'a TextSettings,
        cancelled: &'a AtomicBool,
    ) -> Self {
        let (warnings, failure, faults, refusal) = Default::default();
        Self { grammars, settings, cancelled, warnings, failure, faults, refusal }
    }

    /// Adds a fault. Several prompts break a rule about the same member once.
    pub(super) fn fault(&mut self, fault: Fault) {
        if !self.faults.iter().any(|other| *other == fault) {
            self.faults.push(fault);
        }
    }

    /// Adds a fault about a set that the grammar names.
    pub(super) fn refuse(&mut self, refusal: Option<Refusal>, fault: Fault) {
        self.refusal = self.refusal.take().or(refusal);
        self.fault(fault);
    }

    pub(super) fn take<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.fault(fault)).ok()
    }

    /// The value, where nothing is against it.
    pub(super) fn finish<T>(self, value: T) -> Result<T, CheckError> {
        match (self.failure, self.faults.or(value), self.refusal) {
            (Some(failure), ..) => Err(failure),
            (None, Ok(value), _) => Ok(value),
            (None, Err(faults), Some(refusal)) => Err(CheckError::Refused(refusal, faults)),
            (None, Err(faults), None) => Err(CheckError::Faults(faults)),
        }
    }
}

impl<'a> Deref for Check<'a> {
    type Target = FormCheck<'a>;

    fn deref(&self) -> &FormCheck<'a> {
        &self.form
    }
}

impl DerefMut for Check<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.form
    }
}

impl<'a> Check<'a> {
    pub(super) fn new(
        model: &'a TextModel,
        settings: &'a TextSettings,
        cancelled: &'a AtomicBool,
    ) -> Self {
        let form = FormCheck::new(model.grammars(), settings, cancelled);
        Self { model, form, is_too_long: false }
    }

    /// The value, where nothing is against it.
    pub(super) fn finish<T>(self, value: T) -> Result<T, CheckError> {
        self.form.finish(value).map_err(|error| match error {
            CheckError::Faults(faults) if self.is_too_long => CheckError::TooLong(faults),
            other => other,
        })
    }

    /// Answers wanted of each prompt.
    fn answers(&mut self, text: &TextMembers, prompts: usize) -> usize {
        let n = text.n.unwrap_or(1);
        let most = self.settings.limits.max_answers;
        if !(1..=most / prompts.max(1)).contains(&n) {
            let of = if prompts == 1 { String::new() } else { format!(" for {prompts} prompts") };
            let detail =
                format!("n is {n}{of}; it must be at least 1, and {most} answers in all at most");
            self.fault(Fault::new("/n", detail));
        }
        n
    }

    /// The search for the answers to each prompt, where one is asked for.
    fn beams(
        &mut self,
        text: &TextMembers,
        n: usize,
        requests: &[TextRequest],
    ) -> Option<TextBeams> {
        let TextMembers { use_beam_search, best_of, length_penalty, .. } = *text;
        let of_texts = TextBeams::of_texts(n);
        if use_beam_search != Some(true) {
            if let Some(width) = best_of.filter(|&width| width != 1) {
                let detail = format!(
                    "best_of is {width}; only 1 is computed where answers are drawn: use n, or use_beam_search for the best of several"
                );
                self.fault(Fault::new("/best_of", detail));
            }
            let neutral = of_texts.length_penalty;
            if let Some(penalty) = length_penalty.filter(|&penalty| penalty != neutral) {
                let detail = format!(
                    "length_penalty is {penalty}; only {neutral} is computed where answers are drawn: leave it out, or use_beam_search"
                );
                self.fault(Fault::new("/length_penalty", detail));
            }
            return None;
        }
        let beams = TextBeams {
            width: best_of.unwrap_or(of_texts.width),
            length_penalty: length_penalty.unwrap_or(of_texts.length_penalty),
            ..of_texts
        };
        for error in requests.iter().flat_map(|request| beams.broken_rules(request)) {
            // As wide as there are answers wanted: their own rule was checked.
            if best_of.is_some() || error.member() != "best_of" {
                self.fault(Fault::new(format!("/{}", error.member()), error.to_string()));
            }
        }
        Some(beams)
    }

    /// The request of each prompt. Where none could be made, the other members are checked by a
    /// prompt of one token.
    fn requests(
        &mut self,
        text: &TextMembers,
        spelled: &SpelledMembers,
        prompts: Vec<Option<Prompt>>,
        constraint: Option<Constrained>,
    ) -> Vec<TextRequest> {
        let most = self.settings.limits.max_logprobs;
        if let Some(wanted) = spelled.logprobs.filter(|&wanted| wanted > most) {
            let detail =
                format!("{wanted} log-probabilities at each place; {most} at most are given");
            self.fault(Fault::new(spelled.logprobs_at, detail));
        }
        let stop_tokens = text.stop_token_ids.iter().flatten().map(|&token| TokenId(token));
        let shape = TextRequest {
            constraint: constraint.unwrap_or_default(),
            length: text.finish.map_or(LengthRule::Promised, LengthRule::from),
            sampler: self.sampler(text),
            logit_bias: self.logit_bias(text),
            ignores_ends: text.ignore_eos == Some(true),
            stop: self.stops(text),
            stop_tokens: stop_tokens.collect(),
            logprobs: spelled.logprobs,
            prompt_logprobs: spelled.prompt_logprobs,
            special: spelled.special.clone(),
            item_search: text.item_search.map(ItemSearch::from),
            ..TextRequest::new(Vec::new(), 0)
        };
        let fewest = shape.fewest_tokens(self.model);
        let is_promised = shape.length != LengthRule::Cut && shape.constraint.grammar().is_some();
        if is_promised && fewest.is_none() {
            self.warnings.push(UNKNOWN_WAY.to_owned());
        }
        let shape = (&shape, fewest);
        let prompts: Vec<Prompt> = prompts.into_iter().flatten().collect();
        if prompts.is_empty() {
            self.request(text, spelled, shape, vec![TokenId(0)], None);
        }
        let one = |prompt: Prompt| {
            self.request(text, spelled, shape, prompt.tokens, Some(&prompt.pointer))
        };
        prompts.into_iter().map(one).collect()
    }

    /// The request of a prompt from `pointer`; `None` for one that stands in for those that are at
    /// fault. `shape` is all but its prompt, with the fewest tokens of its text where they are
    /// known.
    fn request(
        &mut self,
        text: &TextMembers,
        spelled: &SpelledMembers,
        (shape, fewest): (&TextRequest, Option<usize>),
        prompt: Vec<TokenId>,
        pointer: Option<&str>,
    ) -> TextRequest {
        let limit = self.settings.limits.max_positions;
        let tokens = prompt.len();
        let room = limit.min(self.model.context_length()).saturating_sub(tokens);
        let default = || {
            // Nobody asked for so few.
            let tokens = spelled.default_tokens.map(|tokens| tokens.max(fewest.unwrap_or(0)));
            tokens.map_or(room, |tokens| tokens.min(room)).max(1)
        };
        let max_tokens = spelled.max_tokens.unwrap_or_else(default);
        let min_tokens = text.min_tokens.unwrap_or(0);
        let request = TextRequest { prompt, max_tokens, min_tokens, ..shape.clone() };
        let broken = request.broken_rules_of(self.model, fewest);
        let fits_model = !broken.iter().any(RequestError::is_too_long);
        for error in broken {
            self.broken_rule(&error, spelled, pointer);
        }
        let Some(pointer) = pointer.filter(|_| fits_model && tokens + max_tokens > limit) else {
            return request;
        };
        self.is_too_long = true;
        self.fault(match room {
            0 => Fault::new(
                pointer,
                format!(
                    "the prompt has {tokens} tokens, and this model is served with {limit} for prompt and answer: shorten it"
                ),
            ),
            room => Fault::new(
                spelled.max_tokens_at,
                format!(
                    "{max_tokens} tokens are asked for, and after the prompt there is room for {room}: ask for fewer, or leave the number out"
                ),
            ),
        });
        request
    }

    /// A rule of the model that a request breaks, with the member that does.
    fn broken_rule(
        &mut self,
        error: &RequestError,
        spelled: &SpelledMembers,
        prompt: Option<&str>,
    ) {
        let at = match error.member() {
            RequestMember::Prompt => match prompt {
                Some(pointer) => pointer.to_owned(),
                None => return,
            },
            RequestMember::MaxTokens if error.is_too_long() && prompt.is_none() => return,
            RequestMember::MaxTokens => spelled.max_tokens_at.to_owned(),
            RequestMember::MinTokens => "/min_tokens".to_owned(),
            RequestMember::Stop(place) => format!("/stop/{place}"),
            RequestMember::StopTokens => "/stop_token_ids".to_owned(),
            RequestMember::LogitBias => "/logit_bias".to_owned(),
            RequestMember::Sampler(name) => format!("/{name}"),
            // Not of a question: its grammar is compiled for the model, and prompts are scored
            // where there is an engine.
            RequestMember::ItemSearch => "/item_search".to_owned(),
            RequestMember::TextBeams(name) => format!("/{name}"),
            RequestMember::Constraint | RequestMember::PromptLogprobs => String::new(),
        };
        self.is_too_long |= error.is_too_long();
        let limit = spelled.max_tokens_at.trim_start_matches('/');
        self.fault(Fault::new(at, respelled(&error.to_string(), &[("max_tokens", limit)])));
    }

    fn sampler(&mut self, text: &TextMembers) -> SamplerOptions {
        let top_k = match text.top_k {
            None | Some(0 | -1) => None,
            Some(k) => {
                let number = usize::try_from(k).ok().and_then(NonZeroUsize::new);
                if number.is_none() {
                    let detail = format!("top_k is {k}; it must be at least 1, or 0 or -1 for all");
                    self.fault(Fault::new("/top_k", detail));
                }
                number
            }
        };
        let defaults = &self.settings.defaults;
        let options = SamplerOptions::default();
        SamplerOptions {
            temperature: text.temperature.unwrap_or(defaults.temperature),
            top_p: text.top_p.unwrap_or(options.top_p),
            min_p: text.min_p.unwrap_or(options.min_p),
            repetition_penalty: text.repetition_penalty.unwrap_or(options.repetition_penalty),
            presence_penalty: text.presence_penalty.unwrap_or(options.presence_penalty),
            frequency_penalty: text.frequency_penalty.unwrap_or(options.frequency_penalty),
            top_k,
            seed: text.seed.map_or(defaults.seed, i64::cast_unsigned),
        }
    }

    fn stops(&mut self, text: &TextMembers) -> Vec<String> {
        let stops = text.stop.as_ref().map_or(&[][..], OneOrMany::as_slice);
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        let (most, bytes) = (self.settings.limits.max_stops, self.settings.limits.max_stop_bytes);
        if stops.len() > most || longest > bytes {
            let count = stops.len();
            let detail = format!(
                "{count} stop texts, the longest of {longest} bytes; {most} of {bytes} bytes are taken"
            );
            self.fault(Fault::new("/stop", detail));
        }
        stops.to_vec()
    }

    fn logit_bias(&mut self, text: &TextMembers) -> Vec<(TokenId, f32)> {
        let mut all = Vec::new();
        for (token, &bias) in text.logit_bias.iter().flatten() {
            match token.parse() {
                Ok(token) => all.push((TokenId(token), bias)),
                Err(_) => {
                    let detail =
                        format!("logit_bias has {token:?}; the members' names are ids of tokens");
                    self.fault(Fault::new("/logit_bias", detail));
                }
            }
        }
        all
    }
}

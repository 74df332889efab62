//! Answers put together from what engines tell.

use std::collections::BTreeMap;
use std::time::Instant;

use palmette_core::{TokenId, Vocabulary};
use palmette_text::engine::{EngineError, Update};
use palmette_text::question::{Calling, FinishReport};
use palmette_text::{
    FinishReason, LogProbabilities, Member, Piece, TextCause, TextEnd, TextPiece, TextToken,
    ToolCallReader, Usage,
};
use serde_json::{Value, json};

use super::request::{self, Answers};
use crate::app::Drain;
use crate::domain::texts::ServedText;
use crate::problem::{Kind, Problem};
use crate::wire::{
    ChatLogprobs, CompletionLogprobs, CustomCall, FinishName, FunctionCall, TextUsage,
    TokenLogprob, ToolCall,
};

/// The lowest log-probability that is written: JSON has no infinity.
const LEAST_LOGPROB: f32 = -9999.0;

/// The next part of some answer, `None` where none comes until then; or the problem that ends all
/// of them.
pub(super) async fn next(
    answers: &mut Answers,
    until: Instant,
) -> Result<Option<request::Part>, Problem> {
    let part = tokio::select! {
        // Parts that are there go before the end.
        biased;
        part = tokio::time::timeout_at(until.into(), answers.parts.recv()) => part,
        () = Drain::TextsOver.reached(&mut answers.drain) => return Err(drained()),
    };
    match part {
        Ok(Some((_, Update::Failed(error)))) => Err(failed(&error)),
        Ok(Some(part)) => Ok(Some(part)),
        Ok(None) => Err(failed(&EngineError::Closed)),
        Err(_) => Ok(None),
    }
}

/// A text that was not whole when its time in a drain was over.
fn drained() -> Problem {
    let detail = "the server ends, and the text was not whole in the time that it gave for it; ask another server";
    Problem::new(Kind::Unavailable, detail).retry_after(1000)
}

pub(super) fn missed() -> Problem {
    Problem::new(
        Kind::DeadlineMissed,
        "the answer was not whole by the deadline; ask for fewer tokens, or give it more time (deadline_ms)",
    )
}

/// A text that broke off.
fn failed(error: &EngineError) -> Problem {
    match error {
        EngineError::Closed => unavailable(error),
        _ => match error.cause() {
            TextCause::Request => Problem::invalid("", format!("the text broke off: {error}")),
            TextCause::Engine => internal(error),
            TextCause::Device => unavailable(error),
        },
    }
}

fn unavailable(error: &EngineError) -> Problem {
    Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000)
}

fn internal(error: &EngineError) -> Problem {
    tracing::error!(%error, "a text broke off");
    Problem::new(Kind::Internal, "the text broke off; the log has more")
}

/// Words, reasoning and calls in an answer's text, each with the number of the call that has begun
/// last.
pub(super) struct Reader {
    calls: Option<ToolCallReader>,
    /// Names of tools whose input is a text.
    customs: Vec<String>,
    /// Calls that have begun.
    begun: usize,
    /// True where a whole call came last.
    is_after_call: bool,
    /// True while a call goes on, and after one that was broken off.
    is_call_cut: bool,
    /// The call of a custom tool that is being read, and its arguments so far.
    custom: Option<(String, String)>,
}

/// A part of an answer.
pub(super) enum Part {
    Words(String),
    Reasoning(String),
    Call {
        name: String,
    },
    Arguments(String),
    CallEnd {
        /// False where the text ended before the call did.
        is_whole: bool,
    },
    /// A call of a custom tool, which has ended.
    Custom {
        call: CustomCall,
        is_whole: bool,
    },
}

type Parts = Vec<(usize, Part)>;

impl Reader {
    pub(super) fn new(calling: Option<&Calling>) -> Self {
        let calls = calling.map(Calling::reader);
        let customs = calling.map_or_else(Vec::new, |calling| calling.customs.clone());
        Self { calls, customs, begun: 0, is_after_call: false, is_call_cut: false, custom: None }
    }

    /// Tokens of the reasoning among those that come next.
    pub(super) fn reasoning_tokens(&self, tokens: &[TextToken]) -> usize {
        let is_reasoning = self.calls.as_ref().is_some_and(ToolCallReader::is_reasoning);
        if is_reasoning { tokens.len() } else { 0 }
    }

    pub(super) fn push(&mut self, text: &str) -> Parts {
        let pieces = match &mut self.calls {
            Some(reader) => reader.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![Piece::Text(text.to_owned())],
        };
        self.numbered(pieces)
    }

    /// Text that was held back, and the name of the end. Calls that are whole are what was asked
    /// for, though others might have followed.
    pub(super) fn finish(&mut self, ended: &TextEnd) -> (Parts, FinishName) {
        let pieces = self.calls.take().map_or_else(Vec::new, ToolCallReader::finish);
        let pieces = self.numbered(pieces);
        let name = match &ended.reason {
            FinishReason::Length if ended.is_complete && self.is_after_call => {
                FinishName::ToolCalls
            }
            // Of a call that was broken off nobody is to make one.
            reason => finish_name(reason, self.begun > 0 && !self.is_call_cut),
        };
        (pieces, name)
    }

    fn numbered(&mut self, pieces: Vec<Piece>) -> Parts {
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            self.begun += usize::from(matches!(piece, Piece::CallBegin { .. }));
            match piece {
                Piece::CallBegin { .. } => self.is_call_cut = true,
                Piece::CallEnd { is_whole } => self.is_call_cut = !is_whole,
                _ => {}
            }
            self.is_after_call = match &piece {
                Piece::CallEnd { is_whole } => *is_whole,
                Piece::Text(text) => self.is_after_call && text.trim_ascii().is_empty(),
                _ => false,
            };
            let part = self.part(piece);
            parts.extend(part.map(|part| (self.begun.saturating_sub(1), part)));
        }
        parts
    }

    /// Part that a piece is; `None` within a custom tool's call.
    fn part(&mut self, piece: Piece) -> Option<Part> {
        match (piece, &mut self.custom) {
            (Piece::Text(text), _) => Some(Part::Words(text)),
            (Piece::Reasoning(text), _) => Some(Part::Reasoning(text)),
            (Piece::CallBegin { name, .. }, custom) if self.customs.contains(&name) => {
                *custom = Some((name, String::new()));
                None
            }
            (Piece::CallBegin { name, .. }, _) => Some(Part::Call { name }),
            (Piece::Arguments(text), Some((_, arguments))) => {
                arguments.push_str(&text);
                None
            }
            (Piece::Arguments(text), None) => Some(Part::Arguments(text)),
            (Piece::CallEnd { is_whole }, custom) => Some(match custom.take() {
                Some((name, arguments)) => {
                    let call = CustomCall { name, input: input_of(&arguments) };
                    Part::Custom { call, is_whole }
                }
                None => Part::CallEnd { is_whole },
            }),
        }
    }
}

/// The text that a custom tool is called with, which stands in its arguments as `input`; of a call
/// that broke off, what is there of it.
fn input_of(arguments: &str) -> String {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let input = |read: Value| read.get("input")?.as_str().map(str::to_owned);
    // The longest escape is a pair of `\u` with four digits each; a part of one at the end is no
    // text.
    let ends = (0..12).filter_map(|cut| arguments.get(..arguments.len().checked_sub(cut)?));
    let broken_off = || ends.filter_map(|begun| read(&format!("{begun}\"}}"))).find_map(input);
    read(arguments).and_then(input).or_else(broken_off).unwrap_or_default()
}

/// The name of an end.
pub(super) fn finish_name(reason: &FinishReason, has_calls: bool) -> FinishName {
    match (reason, has_calls) {
        (FinishReason::Length | FinishReason::Cancelled, _) => FinishName::Length,
        (_, true) => FinishName::ToolCalls,
        (_, false) => FinishName::Stop,
    }
}

/// Adds what is told of a text beside the members of another interface: the way in which the rule
/// for its length held, and the score of one that was searched.
pub(super) fn add_report(document: &mut Value, finish: Option<FinishReport>, score: Option<f32>) {
    if let Some(finish) = finish {
        document["finish"] = json!(finish);
    }
    // By the digits that tell it from others, as in members that are no values of JSON before.
    if let Some(score) = score.and_then(|score| score.to_string().parse::<f64>().ok()) {
        document["score"] = json!(score);
    }
}

/// The name of a call, of this request's and no other's.
pub(super) fn call_id(request: &str, answer: usize, call: usize) -> String {
    let request: String = request.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("call_{request}{answer:02}{call:02}")
}

/// An answer so far.
#[derive(Default)]
pub(super) struct PartialAnswer {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<ToolCall>,
    /// The text ended before the last of the calls did.
    pub(super) is_call_cut: bool,
    /// Tokens of the reasoning.
    pub(super) reasoning_tokens: usize,
    pub(super) tokens: Vec<TextToken>,
    /// Log-probabilities of the prompt's tokens from the second on.
    pub(super) prompt: Vec<LogProbabilities>,
    pub(super) end: Option<(FinishName, Usage)>,
    /// The text of the request's before which it ended.
    pub(super) stop: Option<String>,
    /// The way in which the rule for its length held.
    pub(super) finish: Option<FinishReport>,
    /// Score of an answer that a search found.
    pub(super) score: Option<f32>,
    /// A search found fewer answers than were wanted, and this is none.
    pub(super) is_missing: bool,
    /// Members of the catalogs that the grammar names.
    pub(super) members: Vec<Member>,
}

impl PartialAnswer {
    fn add(&mut self, parts: Parts, id: impl Fn(usize) -> String) {
        for (number, part) in parts {
            match part {
                Part::Words(text) => self.text.push_str(&text),
                Part::Reasoning(text) => self.reasoning.push_str(&text),
                Part::Call { name } => {
                    let function = Some(FunctionCall { name, arguments: String::new() });
                    let id = id(number);
                    self.calls.push(ToolCall { id, kind: "function", function, custom: None });
                }
                Part::Arguments(text) => {
                    if let Some(function) =
                        self.calls.last_mut().and_then(|call| call.function.as_mut())
                    {
                        function.arguments.push_str(&text);
                    }
                }
                Part::Custom { call, is_whole } => {
                    let (id, custom) = (id(number), Some(call));
                    self.calls.push(ToolCall { id, kind: "custom", function: None, custom });
                    self.is_call_cut = !is_whole;
                }
                Part::CallEnd { is_whole } => self.is_call_cut = !is_whole,
            }
        }
    }
}

/// Waits for all answers, `count` of them.
pub(super) async fn whole(
    mut answers: Answers,
    count: usize,
    until: Instant,
    calling: Option<&Calling>,
    request_id: &str,
) -> Result<Vec<PartialAnswer>, Problem> {
    let mut written: Vec<(Reader, PartialAnswer)> =
        (0..count).map(|_| (Reader::new(calling), PartialAnswer::default())).collect();
    let mut left = count;
    while left > 0 {
        let (place, update) = next(&mut answers, until).await?.ok_or_else(missed)?;
        let (reader, answer) = &mut written[place];
        let id = |call| call_id(request_id, place, call);
        match update {
            Update::Text(TextPiece { text, tokens }) => {
                answer.reasoning_tokens += reader.reasoning_tokens(&tokens);
                answer.tokens.extend(tokens);
                answer.add(reader.push(&text), id);
            }
            Update::End(ended, _) => {
                let (parts, finish) = reader.finish(&ended);
                answer.add(parts, id);
                answer.end = Some((finish, ended.usage));
                answer.finish = FinishReport::of(&ended);
                if let FinishReason::StopString(text) = ended.reason {
                    answer.stop = Some(text);
                }
                answer.score = ended.score;
                answer.members = ended.members;
                left -= 1;
            }
            Update::Prompt(found) => answer.prompt = found,
            Update::Missing => (answer.is_missing, left) = (true, left - 1),
            Update::Failed(_) => {}
        }
    }
    Ok(written.into_iter().map(|(_, answer)| answer).collect())
}

/// Tokens of all answers; those of a prompt count once.
pub(super) fn usage(prompt_tokens: usize, completion_tokens: usize) -> TextUsage {
    let total_tokens = prompt_tokens + completion_tokens;
    TextUsage { prompt_tokens, completion_tokens, total_tokens }
}

fn bytes_of(served: &ServedText, token: TokenId) -> Vec<u8> {
    let vocabulary: &Vocabulary = served.model().vocabulary().vocabulary();
    match served.model().special_name(token) {
        Some(name) => name.as_bytes().to_vec(),
        None => vocabulary.text(token).to_vec(),
    }
}

/// A token as a text: special ones by their names.
pub(super) fn token_text(served: &ServedText, token: TokenId) -> String {
    written(&bytes_of(served, token))
}

fn written(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Log-probabilities of tokens as a chat has them; `None` where they were not asked for.
pub(super) fn chat_logprobs(served: &ServedText, tokens: &[TextToken]) -> Option<ChatLogprobs> {
    let one = |token: TokenId, logprob: f32| {
        let bytes = bytes_of(served, token);
        let logprob = logprob.max(LEAST_LOGPROB);
        TokenLogprob { token: written(&bytes), logprob, bytes, top_logprobs: None }
    };
    let of = |token: &TextToken| {
        let LogProbabilities { token: logprob, top } = token.logprobs.as_ref()?;
        let top = top.iter().map(|&(token, logprob)| one(token, logprob)).collect();
        Some(TokenLogprob { top_logprobs: Some(top), ..one(token.token, *logprob) })
    };
    tokens.iter().map(of).collect::<Option<Vec<_>>>().map(|content| ChatLogprobs { content })
}

/// Log probabilities in the form of completions; the first token stands after `offset` characters.
pub(super) fn completion_logprobs(
    served: &ServedText,
    tokens: &[TextToken],
    offset: &mut usize,
) -> Option<CompletionLogprobs> {
    let mut lists = CompletionLogprobs::default();
    for token in tokens {
        add_logprobs(served, &mut lists, token.token, Some(token.logprobs.as_ref()?), offset);
    }
    Some(lists)
}

/// Log probabilities of a prompt's tokens, of which the first has none.
pub(super) fn prompt_logprobs(
    served: &ServedText,
    tokens: &[TokenId],
    found: &[LogProbabilities],
    offset: &mut usize,
) -> CompletionLogprobs {
    let mut lists = CompletionLogprobs::default();
    let found = std::iter::once(None).chain(found.iter().map(Some));
    for (&token, found) in tokens.iter().zip(found) {
        add_logprobs(served, &mut lists, token, found, offset);
    }
    lists
}

fn add_logprobs(
    served: &ServedText,
    lists: &mut CompletionLogprobs,
    token: TokenId,
    found: Option<&LogProbabilities>,
    offset: &mut usize,
) {
    let text = written(&bytes_of(served, token));
    lists.text_offset.push(*offset);
    *offset += text.chars().count();
    lists.tokens.push(text);
    lists.token_logprobs.push(found.map(|found| found.token.max(LEAST_LOGPROB)));
    let one = |&(token, logprob): &(TokenId, f32)| {
        (written(&bytes_of(served, token)), logprob.max(LEAST_LOGPROB))
    };
    let top =
        |found: &LogProbabilities| -> BTreeMap<String, f32> { found.top.iter().map(one).collect() };
    lists.top_logprobs.push(found.map(top));
}

#[cfg(test)]
mod tests {
    use super::input_of;

    #[test]
    fn an_input_is_read_as_far_as_it_came() {
        for (arguments, input) in [
            ("{\"input\": \"a\\nb\"}", "a\nb"),
            ("{\"input\": \"a\\nb", "a\nb"),
            ("{\"input\": \"a\\n\\u00", "a\n"),
            ("{\"input\": \"a\\", "a"),
            ("{\"input\": \"", ""),
            ("{\"inp", ""),
            ("", ""),
        ] {
            assert_eq!(input_of(arguments), input, "{arguments}");
        }
    }
}

//! Answers put together from what engines tell.

use std::collections::BTreeMap;
use std::time::Instant;

use palmette_core::{TokenId, Vocabulary};
use palmette_text::engine::{EngineError, Update};
use palmette_text::{
    FinishReason, LogProbabilities, Piece, TextPiece, TextToken, ToolCallReader, ToolFormat, Usage,
};

use super::request::{Answers, Part};
use crate::problem::{Kind, Problem};
use crate::texts::ServedText;
use crate::wire::{
    ChatLogprobs, CompletionLogprobs, FinishName, FunctionCall, TextUsage, TokenLogprob, ToolCall,
};

/// The lowest log-probability that is written: JSON has no infinity.
const LEAST_LOGPROB: f32 = -9999.0;

/// The next part of some answer, `None` where none comes until then; or the problem that ends all of them.
pub(super) async fn next(answers: &mut Answers, until: Instant) -> Result<Option<Part>, Problem> {
    match tokio::time::timeout_at(until.into(), answers.parts.recv()).await {
        Ok(Some((_, Update::Failed(error)))) => Err(failed(&error)),
        Ok(Some(part)) => Ok(Some(part)),
        Ok(None) => Err(failed(&EngineError::Closed)),
        Err(_) => Ok(None),
    }
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
        EngineError::Closed => Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000),
        EngineError::Panicked | EngineError::Sequences(_) => {
            tracing::error!(%error, "a text broke off");
            Problem::new(Kind::Internal, "the text broke off; the log has more")
        }
        // A limit of the grammar, or bias that leaves nothing to draw.
        other => Problem::invalid("", format!("the text broke off: {other}")),
    }
}

/// Words, reasoning and calls in an answer's text, each with the number of the call that has begun last.
pub(super) struct Reader {
    calls: Option<ToolCallReader>,
    /// Calls that have begun.
    begun: usize,
}

type Pieces = Vec<(usize, Piece)>;

impl Reader {
    pub(super) fn new(format: Option<&'static ToolFormat>) -> Self {
        Self { calls: format.map(ToolCallReader::new), begun: 0 }
    }

    pub(super) fn push(&mut self, text: &str) -> Pieces {
        let pieces = match &mut self.calls {
            Some(reader) => reader.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![Piece::Text(text.to_owned())],
        };
        self.numbered(pieces)
    }

    /// Text that was held back, and the name of the end.
    pub(super) fn finish(&mut self, reason: &FinishReason) -> (Pieces, FinishName) {
        let pieces = self.calls.take().map_or_else(Vec::new, ToolCallReader::finish);
        let pieces = self.numbered(pieces);
        (pieces, finish_name(reason, self.begun > 0))
    }

    fn numbered(&mut self, pieces: Vec<Piece>) -> Pieces {
        let number = |piece: Piece| {
            self.begun += usize::from(matches!(piece, Piece::CallBegin { .. }));
            (self.begun.saturating_sub(1), piece)
        };
        pieces.into_iter().map(number).collect()
    }
}

/// The name of an end.
pub(super) fn finish_name(reason: &FinishReason, has_calls: bool) -> FinishName {
    match (reason, has_calls) {
        (FinishReason::Length | FinishReason::Cancelled, _) => FinishName::Length,
        (_, true) => FinishName::ToolCalls,
        (_, false) => FinishName::Stop,
    }
}

/// The name of a call, of this request's and no other's.
pub(super) fn call_id(request: &str, answer: usize, call: usize) -> String {
    let request: String = request.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("call_{request}{answer:02}{call:02}")
}

/// An answer so far.
#[derive(Default)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) tokens: Vec<TextToken>,
    pub(super) end: Option<(FinishName, Usage)>,
}

impl Written {
    fn add(&mut self, pieces: Pieces, id: impl Fn(usize) -> String) {
        for (_, piece) in pieces {
            match piece {
                Piece::Text(text) => self.text.push_str(&text),
                Piece::Reasoning(text) => self.reasoning.push_str(&text),
                Piece::CallBegin { index, name } => {
                    let function = FunctionCall { name, arguments: String::new() };
                    self.calls.push(ToolCall { id: id(index), kind: "function", function });
                }
                Piece::Arguments(text) => {
                    if let Some(call) = self.calls.last_mut() {
                        call.function.arguments.push_str(&text);
                    }
                }
                Piece::CallEnd { .. } => {}
            }
        }
    }
}

/// Waits for all answers, `count` of them.
pub(super) async fn whole(
    mut answers: Answers,
    count: usize,
    until: Instant,
    format: Option<&'static ToolFormat>,
    request_id: &str,
) -> Result<Vec<Written>, Problem> {
    let mut written: Vec<(Reader, Written)> =
        (0..count).map(|_| (Reader::new(format), Written::default())).collect();
    let mut left = count;
    while left > 0 {
        let (place, update) = next(&mut answers, until).await?.ok_or_else(missed)?;
        let (reader, answer) = &mut written[place];
        let id = |call| call_id(request_id, place, call);
        match update {
            Update::Text(TextPiece { text, tokens }) => {
                answer.tokens.extend(tokens);
                answer.add(reader.push(&text), id);
            }
            Update::End(ended, _) => {
                let (pieces, finish) = reader.finish(&ended.reason);
                answer.add(pieces, id);
                answer.end = Some((finish, ended.usage));
                left -= 1;
            }
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
        let LogProbabilities { token: logprob, top } = token.logprobs.as_ref()?;
        let text = written(&bytes_of(served, token.token));
        lists.text_offset.push(*offset);
        *offset += text.chars().count();
        lists.tokens.push(text);
        lists.token_logprobs.push(logprob.max(LEAST_LOGPROB));
        let of = |&(token, logprob): &(TokenId, f32)| {
            (written(&bytes_of(served, token)), logprob.max(LEAST_LOGPROB))
        };
        let top: BTreeMap<String, f32> = top.iter().map(of).collect();
        lists.top_logprobs.push(top);
    }
    Some(lists)
}

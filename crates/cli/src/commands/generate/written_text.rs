//! A text that was written: its parts, its end, and times.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use palmette_text::engine::Spent;
use palmette_text::question::FinishReport;
use palmette_text::{
    FinishReason, Member, Piece, Stage, TextEnd, TextEvent, TextModel, TextToken, ToolCallReader,
};
use serde_json::{Value, json};

use super::show::Show;
use crate::output::visible;

/// A text being written, and the time it takes.
pub(super) struct Clock {
    last: Instant,
    spent: Spent,
    reader: Option<ToolCallReader>,
    pieces: Vec<Piece>,
    tokens: Vec<TextToken>,
    failed: Option<anyhow::Error>,
}

/// A text, and how it was written.
pub(super) struct WrittenText {
    pub(super) ended: TextEnd,
    pub(super) spent: Spent,
    pieces: Vec<Piece>,
    tokens: Vec<TextToken>,
}

impl Clock {
    pub(super) fn start(reader: Option<ToolCallReader>) -> Self {
        Self {
            last: Instant::now(),
            spent: Spent::default(),
            reader,
            pieces: Vec::new(),
            tokens: Vec::new(),
            failed: None,
        }
    }

    /// Time that somebody else took note of.
    pub(super) fn count(&mut self, spent: Spent) {
        self.spent += spent;
    }

    /// Hears of the text. What showing it takes is in no stage's time.
    pub(super) fn hear(&mut self, event: TextEvent, show: &mut Show) -> ControlFlow<()> {
        let heard = Instant::now();
        let since = heard - self.last;
        match event {
            TextEvent::Stage(stage) => {
                *match stage {
                    Stage::Prefill => &mut self.spent.prompt,
                    Stage::Decode => &mut self.spent.passes,
                    Stage::Mask => &mut self.spent.masks,
                    Stage::TopK => &mut self.spent.choices,
                } += since;
                self.spent.num_passes += usize::from(stage == Stage::Decode);
                self.last = heard;
            }
            TextEvent::Text(piece) => {
                self.tokens.extend(piece.tokens);
                let pieces = match &mut self.reader {
                    Some(reader) => reader.push(&piece.text),
                    None => vec![Piece::Text(piece.text)],
                };
                self.take(pieces, show);
                // The stage goes on where it was.
                self.last += heard.elapsed();
            }
            TextEvent::End(_) => {}
        }
        match self.failed.is_some() || show.is_gone() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn take(&mut self, pieces: Vec<Piece>, show: &mut Show) {
        for piece in pieces {
            if let Err(error) = show.piece(&piece) {
                self.failed.get_or_insert(error);
            }
            match (self.pieces.last_mut(), piece) {
                (Some(Piece::Text(last)), Piece::Text(text))
                | (Some(Piece::Reasoning(last)), Piece::Reasoning(text))
                | (Some(Piece::Arguments(last)), Piece::Arguments(text)) => last.push_str(&text),
                (_, piece) => self.pieces.push(piece),
            }
        }
    }

    pub(super) fn end(mut self, ended: TextEnd, show: &mut Show) -> anyhow::Result<WrittenText> {
        let rest = self.reader.take().map_or_else(Vec::new, ToolCallReader::finish);
        self.take(rest, show);
        match self.failed {
            Some(error) => return Err(error),
            None => show.end()?,
        }
        let Self { spent, pieces, tokens, .. } = self;
        Ok(WrittenText { ended, spent, pieces, tokens })
    }
}

/// A call of a tool.
struct Call<'a> {
    name: &'a str,
    arguments: String,
    is_whole: bool,
}

impl WrittenText {
    fn text(&self) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.pieces.iter().filter_map(text).collect()
    }

    fn calls(&self) -> Vec<Call<'_>> {
        let mut calls: Vec<Call<'_>> = Vec::new();
        for piece in &self.pieces {
            match (piece, calls.last_mut()) {
                (Piece::CallBegin { name, .. }, _) => {
                    calls.push(Call { name, arguments: String::new(), is_whole: false });
                }
                (Piece::Arguments(text), Some(call)) => call.arguments.push_str(text),
                (Piece::CallEnd { is_whole }, Some(call)) => call.is_whole = *is_whole,
                _ => {}
            }
        }
        calls
    }

    /// True where a whole call comes last.
    fn ends_with_call(&self) -> bool {
        let is_word =
            |piece: &&Piece| !matches!(piece, Piece::Text(text) if text.trim_ascii().is_empty());
        let last = self.pieces.iter().rev().find(is_word);
        matches!(last, Some(Piece::CallEnd { is_whole: true }))
    }

    /// The reason of the end, in a word of OpenAI's interface.
    fn finish_reason(&self) -> &'static str {
        match &self.ended.reason {
            FinishReason::Length if self.ended.is_complete && self.ends_with_call() => "tool_calls",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
            // Of a call that was broken off nobody is to make one.
            _ if self.calls().last().is_some_and(|call| call.is_whole) => "tool_calls",
            _ => "stop",
        }
    }

    pub(super) fn json(&self, model: &TextModel, n: Option<usize>, warnings: &[String]) -> Value {
        let usage = self.ended.usage;
        let mut document = json!({});
        if let Some(n) = n {
            document["index"] = json!(n);
        }
        document["text"] = json!(self.text());
        let reasoning: String = self.pieces.iter().filter_map(reasoning_of).collect();
        if !reasoning.is_empty() {
            document["reasoning"] = json!(reasoning);
        }
        let calls = self.calls();
        if !calls.is_empty() {
            let call = |call: &Call<'_>| json!({"name": call.name, "arguments": call.arguments.trim(), "is_whole": call.is_whole});
            document["tool_calls"] = calls.iter().map(call).collect();
        }
        document["finish_reason"] = json!(self.finish_reason());
        match &self.ended.reason {
            FinishReason::StopString(stop) => document["stop"] = json!(stop),
            FinishReason::EndToken(token) => {
                document["end_token"] = json!(token_text(model, *token))
            }
            _ => {}
        }
        document["is_complete"] = json!(self.ended.is_complete);
        if let Some(finish) = FinishReport::of(&self.ended) {
            document["finish"] = json!(finish);
        }
        if let Some(score) = self.ended.score {
            document["score"] = json!(score);
        }
        document["usage"] = json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "forced_tokens": usage.forced_tokens,
            "passes": self.spent.num_passes + usize::from(!self.spent.prompt.is_zero()),
        });
        let seconds = |time: Duration| json!((time.as_secs_f64() * 1e6).round() / 1e6);
        document["seconds"] = json!({
            "prompt": seconds(self.spent.prompt),
            "passes": seconds(self.spent.passes),
            "masks": seconds(self.spent.masks),
            "choices": seconds(self.spent.choices),
        });
        if self.tokens.iter().any(|token| token.logprobs.is_some()) {
            document["tokens"] = self.tokens.iter().map(|token| token_json(model, token)).collect();
        }
        if !self.ended.members.is_empty() {
            document["members"] = self.ended.members.iter().map(member_json).collect();
        }
        if !warnings.is_empty() {
            document["warnings"] = json!(warnings);
        }
        document
    }

    /// A line for people: tokens, speed, forced tokens, masks, end.
    pub(super) fn summary(&self, model: &TextModel) -> String {
        let usage = self.ended.usage;
        let ended = match &self.ended.reason {
            FinishReason::EndToken(token) => format!("ended by {}", token_text(model, *token)),
            FinishReason::Complete => "ended by the grammar".to_owned(),
            FinishReason::StopString(stop) => format!("ended by the stop string {stop:?}"),
            FinishReason::Length => "cut off at the most tokens".to_owned(),
            FinishReason::Cancelled => "broken off".to_owned(),
        };
        let incomplete =
            if self.ended.is_complete { "" } else { ", not a whole text of the grammar" };
        let steered = self.ended.length.map_or(0, |length| length.steered);
        let steered = match steered {
            0 => String::new(),
            1 => ", in time by 1 token that was not the model's choice".to_owned(),
            steered => format!(", in time by {steered} tokens that were not the model's choice"),
        };
        let head = tokens_line(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.forced_tokens,
            &self.spent,
        );
        format!("{head}; {}{steered}{incomplete}", visible(&ended))
    }
}

/// `41 tokens in 1.20 s, 34.2 a second, after a prompt of 30 in 0.41 s; 12 forced (29.3 %); masks
/// 0.41 % of the time`.
pub(super) fn tokens_line(prompt: usize, tokens: usize, forced: usize, spent: &Spent) -> String {
    let writing = spent.total() - spent.prompt;
    // The texts of a search are found together; its time stands with the first.
    if spent.num_passes == 0 && spent.prompt.is_zero() {
        return format!("{tokens} tokens after a prompt of {prompt}; {forced} forced");
    }
    let per_second = tokens as f64 / writing.as_secs_f64().max(1e-9);
    let share = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    let masks = share(spent.masks.as_secs_f64(), spent.total().as_secs_f64());
    format!(
        "{tokens} tokens in {:.2} s, {per_second:.1} a second, after a prompt of {prompt} in {:.2} s; {forced} forced ({:.1} %); masks \
         {masks:.2} % of the time",
        writing.as_secs_f64(),
        spent.prompt.as_secs_f64(),
        share(forced as f64, tokens as f64),
    )
}

fn reasoning_of(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Reasoning(text) => Some(text),
        _ => None,
    }
}

/// A token's name or its bytes, as text.
fn token_text(model: &TextModel, token: palmette_core::TokenId) -> String {
    let named = model.special_name(token).map(str::to_owned);
    let text = || model.vocabulary().vocabulary().text(token);
    named.unwrap_or_else(|| String::from_utf8_lossy(text()).into_owned())
}

/// A member of a catalog or of documents, in bytes of the text as the model wrote it.
fn member_json(of: &Member) -> Value {
    let mut document = json!({
        "set": of.set, "field": of.field, "value": of.value, "span": [of.span.start, of.span.end],
    });
    if let Some(id) = &of.id {
        document["id"] = json!(id);
    }
    if let Some(place) = &of.place {
        document["document"] = json!(place.document);
        document["place"] = json!([place.span.start, place.span.end]);
    }
    if let [own, others @ ..] = &*of.ranked {
        document["score"] = json!(own.score);
        let others = others.iter().map(|other| json!({"id": other.id, "score": other.score}));
        document["alternatives"] = others.collect();
    }
    document
}

fn token_json(model: &TextModel, of: &TextToken) -> Value {
    let logprobs = of.logprobs.clone().unwrap_or_default();
    let top = logprobs.top.iter().map(
        |&(token, log)| json!({"id": token.0, "text": token_text(model, token), "logprob": log}),
    );
    json!({
        "id": of.token.0,
        "text": token_text(model, of.token),
        "forced": of.is_forced,
        "logprob": logprobs.token,
        "top": top.collect::<Vec<_>>(),
    })
}

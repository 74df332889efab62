//! Times of a text as its reader sees them: queue, first token, between tokens, whole.

use std::time::{Duration, Instant};

use palmette_text::engine::Update;

/// Times of one text, from its request on.
#[derive(Debug)]
pub(crate) struct TextTimes {
    model: String,
    began: Instant,
    /// When the last piece came.
    last: Option<Instant>,
}

impl TextTimes {
    pub(crate) fn begin(model: &str) -> Self {
        Self { model: model.to_owned(), began: Instant::now(), last: None }
    }

    /// Counts what has happened to the text.
    pub(crate) fn see(&mut self, update: &Update) {
        let now = Instant::now();
        match update {
            Update::Text(piece) => {
                match self.last {
                    None => self.record("palmette_text_first_token_seconds", now - self.began, 1),
                    Some(last) => {
                        // Several that came at once took a part of the time each.
                        let tokens = u32::try_from(piece.tokens.len().max(1)).unwrap_or(u32::MAX);
                        let each = (now - last) / tokens;
                        self.record("palmette_text_token_seconds", each, tokens as usize);
                    }
                }
                self.last = Some(now);
            }
            Update::End(ended, spent) => {
                metrics::counter!("palmette_text_members_total", "model" => self.model.clone())
                    .increment(ended.members.len() as u64);
                self.record("palmette_text_queue_seconds", spent.waited, 1);
                self.record("palmette_text_seconds", now - self.began, 1);
            }
            Update::Prompt(_) | Update::Missing | Update::Failed(_) => {}
        }
    }

    fn record(&self, name: &'static str, took: Duration, times: usize) {
        metrics::histogram!(name, "model" => self.model.clone())
            .record_many(took.as_secs_f64(), times);
    }
}

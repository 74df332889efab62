//! One text, with a session of the model, or as a sequence where a device computes it.

use std::ops::ControlFlow;
use std::sync::Arc;

use palmette_decode::{LogitsSource, Stage};
use palmette_model::{Model, Session, SessionOptions};

use crate::error::{RequestError, TextError};
use crate::item_beams::SequenceReader;
use crate::model::TextModel;
use crate::request::TextRequest;
use crate::sequence::{TextEnd, TextEvent, TextSequence};

/// Writes one text, and tells `events` of it as it comes; [`ControlFlow::Break`] ends it.
///
/// # Errors
/// When the request breaks a rule ([`TextError::request`]), a limit of the constraint is exceeded,
/// or there is not the memory for so long a text.
pub fn generate(
    model: &TextModel,
    request: &TextRequest,
    events: &mut dyn FnMut(TextEvent) -> ControlFlow<()>,
) -> Result<TextEnd, TextError> {
    TextSession::new(model.clone()).generate(request, events)
}

/// A session of the model that writes one text after another: its memory is kept from text to text,
/// and grows with the longest. A beginning in common with the text before is not read again.
#[derive(Debug)]
pub struct TextSession {
    model: TextModel,
    session: Option<Session>,
    /// Tokens that the session was planned for.
    planned: usize,
    /// Reader of texts that search items, and of all on a device.
    reader: Option<SequenceReader>,
}

impl TextSession {
    /// A session that has planned nothing yet.
    pub fn new(model: TextModel) -> Self {
        Self { model, session: None, planned: 0, reader: None }
    }

    /// The model.
    pub fn model(&self) -> &TextModel {
        &self.model
    }

    /// Writes one text, as [`generate()`] does.
    ///
    /// # Errors
    /// As [`generate()`].
    pub fn generate(
        &mut self,
        request: &TextRequest,
        events: &mut dyn FnMut(TextEvent) -> ControlFlow<()>,
    ) -> Result<TextEnd, TextError> {
        if request.prompt_logprobs.is_some() {
            return Err(RequestError::PromptLogprobs.into());
        }
        let mut sequence = TextSequence::new(&self.model, request)?;
        let here = self.model.engine().model();
        let has_items = request.max_item_tokens() > 0;
        let mut stage = Stage::Prefill;
        let mut cancelled = false;
        loop {
            // The one who listens may break off at any event; the next settling ends the text.
            let events = &mut |event| {
                let flow = events(event);
                cancelled |= flow.is_break();
                if cancelled { ControlFlow::Break(()) } else { flow }
            };
            if let Some(ended) = sequence.settle(events)? {
                return Ok(ended.clone());
            }
            let unread = sequence.take_unread();
            let Some(here) = here.as_ref().filter(|_| !has_items) else {
                let reader = match stage {
                    Stage::Prefill => self.reader_for(request, has_items)?,
                    _ => self.reader.as_mut().expect("it was begun"),
                };
                reader.read(unread)?;
                let _ = events(TextEvent::Stage(stage));
                stage = Stage::Decode;
                reader.choose(&mut sequence, events)?;
                continue;
            };
            let logits = match stage {
                Stage::Prefill => {
                    let tokens = request.prompt.len() + request.max_tokens;
                    self.session_for(here, tokens)?.prompt_logits_after(unread)?
                }
                _ => self.session.as_mut().expect("it was begun").append(unread)?,
            };
            let _ = events(TextEvent::Stage(stage));
            stage = Stage::Decode;
            sequence.choose(logits, events)?;
        }
    }

    /// Session with room for `tokens` tokens. What the one before has read is kept where there is
    /// room in it.
    fn session_for(&mut self, here: &Arc<Model>, tokens: usize) -> Result<&mut Session, TextError> {
        if self.session.is_none() || self.planned < tokens {
            // Not both at once.
            self.session = None;
            // Texts of about the same length need no plan each.
            let planned = tokens.next_power_of_two().min(self.model.context_length());
            let options = SessionOptions {
                max_prompt_tokens: planned,
                max_beams: 0,
                max_decode_passes: 0,
                threads: self.model.threads(),
            };
            self.session = Some(Session::new(here, options)?);
            self.planned = planned;
        }
        Ok(self.session.as_mut().expect("just planned"))
    }

    /// Reader with room for a text and the beams of its items, which has read nothing.
    fn reader_for(
        &mut self,
        request: &TextRequest,
        has_items: bool,
    ) -> Result<&mut SequenceReader, TextError> {
        let tokens = request.prompt.len() + request.max_tokens;
        let suits =
            |reader: &SequenceReader| reader.planned >= tokens && (reader.has_items || !has_items);
        match self.reader.take().filter(suits) {
            Some(mut reader) => {
                reader.begin()?;
                self.reader = Some(reader);
            }
            None => self.reader = Some(SequenceReader::new(&self.model, tokens, has_items)?),
        }
        Ok(self.reader.as_mut().expect("just made"))
    }
}

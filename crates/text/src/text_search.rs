//! Search for the best texts after a prompt: its rules, its run, and the texts told one by one.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use palmette_core::TokenId;
use palmette_decode::{EndingSearch, LengthPenalty, LengthRule, SamplerOptions};

use crate::beam_reader::{BeamReader, BeamRows, BeamSequences, OwnRows};
use crate::error::{RequestError, TextError};
use crate::model::TextModel;
use crate::request::TextRequest;
use crate::sequence::{TextEnd, TextEvent, TextSequence};
use crate::text_beams::{TextBeams, TextBeamsError};

impl TextBeams {
    /// The rules that the search breaks, or members of the request beside it.
    pub fn broken_rules(&self, request: &TextRequest) -> Vec<TextBeamsError> {
        let Self { width, texts, length_penalty: penalty } = *self;
        let mut broken = Vec::new();
        if !(1..=Self::MAX_WIDTH).contains(&width) {
            broken.push(TextBeamsError::Width { width, max: Self::MAX_WIDTH });
        } else if !(1..=width).contains(&texts) {
            broken.push(TextBeamsError::Texts { texts, width });
        }
        if LengthPenalty::new(penalty).is_none() {
            broken.push(TextBeamsError::Penalty { penalty });
        }
        let mut beside = |is_neutral: bool, member, value: &dyn fmt::Display, neutral| {
            let value = value.to_string();
            let error = || TextBeamsError::Beside { member, value, neutral };
            broken.extend((!is_neutral).then(error));
        };
        let SamplerOptions { temperature, top_p, min_p, top_k, .. } = request.sampler;
        let SamplerOptions { repetition_penalty, presence_penalty, frequency_penalty, .. } =
            request.sampler;
        beside([0.0, 1.0].contains(&temperature), "temperature", &temperature, Some("0 and 1"));
        beside(top_p == 1.0, "top_p", &top_p, Some("1"));
        beside(min_p == 0.0, "min_p", &min_p, Some("0"));
        beside(top_k.is_none(), "top_k", &top_k.map_or(0, NonZeroUsize::get), Some("0"));
        let repetition = repetition_penalty;
        beside(repetition == 1.0, "repetition_penalty", &repetition, Some("1"));
        beside(presence_penalty == 0.0, "presence_penalty", &presence_penalty, Some("0"));
        beside(frequency_penalty == 0.0, "frequency_penalty", &frequency_penalty, Some("0"));
        let (biases, stops) = (request.logit_bias.len(), request.stop.len());
        beside(biases == 0, "logit_bias", &format_args!("given for {biases} tokens"), None);
        beside(stops == 0, "stop", &format_args!("{stops} texts"), Some("stop_token_ids"));
        let logprobs = request.logprobs.or(request.prompt_logprobs);
        beside(logprobs.is_none(), "logprobs", &"asked for", None);
        beside(request.item_search.is_none(), "item_search", &"given", None);
        let is_gentle = request.length == LengthRule::Gentle;
        beside(!is_gentle, "finish", &"gentle", Some("promised and cut"));
        broken
    }

    /// Tokens whose keys and values the search keeps at most.
    pub(crate) fn planned_tokens(&self, request: &TextRequest) -> usize {
        BeamSequences::planned_tokens(request.prompt.len(), self.width, request.max_tokens)
    }

    /// Finds the best texts after a prompt and tells each of them by its place, best first, once
    /// all are found; [`ControlFlow::Break`] ends the search. Ends of the texts are returned.
    ///
    /// Keys and values take memory of its own, planned from prompt, width and length; an
    /// [engine](crate::engine::Engine::search_to) has them in its pages.
    ///
    /// # Errors
    /// When the request breaks a rule ([`TextError::request`]), a limit of the constraint is
    /// exceeded, there is not the memory, or the search was ended.
    pub fn search(
        &self,
        model: &TextModel,
        request: &TextRequest,
        events: &mut dyn FnMut(usize, TextEvent) -> ControlFlow<()>,
    ) -> Result<Vec<TextEnd>, TextError> {
        let size = (self.width, request.max_tokens);
        self.search_by(model, request, || OwnRows::new(model, &request.prompt, size), events)
    }

    /// [`search`](Self::search) whose rows are read by another side, which is asked for once the
    /// request is found to be sound.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub(crate) fn search_by<R: BeamRows>(
        &self,
        model: &TextModel,
        request: &TextRequest,
        rows: impl FnOnce() -> Result<R, TextError>,
        events: &mut dyn FnMut(usize, TextEvent) -> ControlFlow<()>,
    ) -> Result<Vec<TextEnd>, TextError> {
        let broken = self.broken_rules(request).into_iter().next();
        let (Some(width), Some(penalty), None) =
            (NonZeroUsize::new(self.width), LengthPenalty::new(self.length_penalty), &broken)
        else {
            let broken = broken.unwrap_or(TextBeamsError::Width { width: 0, max: Self::MAX_WIDTH });
            return Err(RequestError::from(broken).into());
        };
        let text = TextSequence::new(model, request)?;
        let (constraint, ends) = text.ends();
        let search = EndingSearch { ends: ends.clone(), width, results: self.texts, penalty };
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        let mut reader = BeamReader::new(rows()?, width.get(), num_tokens);
        let key = &mut text_key(model, request);
        let control = &mut |stage| {
            let flow = events(0, TextEvent::Stage(stage));
            text.is_called_off().store(flow.is_break(), Ordering::Relaxed);
            flow
        };
        let found = search.run(&**constraint, &mut reader, key, control)?;
        let mut told = Vec::with_capacity(found.len());
        for (place, found) in found.iter().enumerate() {
            let mut text = TextSequence::new(model, request)?;
            told.push(text.write_found(found, &mut |event| events(place, event))?);
        }
        Ok(told)
    }
}

/// Key that tells texts apart: their bytes, and tokens that have none, such as codes of items.
fn text_key(model: &TextModel, request: &TextRequest) -> impl FnMut(&[TokenId]) -> Vec<u32> {
    const TOKEN: u32 = 1 << 31;
    let vocabulary = model.vocabulary().vocabulary().clone();
    let mut ends = model.end_tokens().to_vec();
    ends.extend(&request.stop_tokens);
    move |tokens: &[TokenId]| {
        let mut key = Vec::with_capacity(tokens.len());
        for &token in tokens.iter().filter(|token| !ends.contains(token)) {
            match vocabulary.text(token) {
                [] => key.push(TOKEN | token.0),
                bytes => key.extend(bytes.iter().map(|&byte| u32::from(byte))),
            }
        }
        key
    }
}

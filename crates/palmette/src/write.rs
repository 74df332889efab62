//! Text under a grammar, from logits to bytes: generation with stop strings and streaming.

use std::ops::ControlFlow;

use palmette_core::TokenId;
use palmette_decode::{
    DecodeError, Finish, GenerateOptions, Generator, LengthReport, LengthRule, LogitsSource,
    NewToken, Sampler,
};
use palmette_text::StopStrings;

use crate::grammar::CompiledGrammar;

/// Limits of a text besides the grammar: a length, stop tokens and stop strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The most tokens.
    pub max_tokens: usize,
    /// Rule for a text that would take more: cut off, or [promised](LengthRule::Promised) to be
    /// whole within them.
    pub length: LengthRule,
    /// Tokens after which the text ends.
    pub stop_tokens: Vec<TokenId>,
    /// Strings before which the text ends. They are no part of it.
    pub stop_strings: Vec<String>,
    /// The prompt's tokens, where the sampler's repetition penalty is to count them.
    pub context: Vec<TokenId>,
}

impl WriteOptions {
    /// Writes at most `max_tokens` tokens.
    pub fn new(max_tokens: usize) -> Self {
        let (stop_tokens, stop_strings, context) = (Vec::new(), Vec::new(), Vec::new());
        let length = LengthRule::default();
        Self { max_tokens, length, stop_tokens, stop_strings, context }
    }
}

/// A text written under a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenText {
    /// Bytes of the text. UTF-8 where the grammar says so and the text is whole; else a character
    /// may be cut at the end.
    pub bytes: Vec<u8>,
    /// The tokens that were generated, those of a stop string included.
    pub tokens: Vec<TokenId>,
    /// Reason of its end. [`Finish::Stopped`] is a stop string, or that the caller broke off.
    pub finish: Finish,
    /// The stop string that ended it.
    pub stop_string: Option<String>,
    /// Membership of the generated text in the language.
    pub is_accepting: bool,
    /// Tokens that were the only allowed ones, for which the model was not asked.
    pub forced: usize,
    /// Passes of the model.
    pub passes: usize,
    /// The way in which the rule for its length held; `None` where it might be cut off.
    pub length: Option<LengthReport>,
}

impl CompiledGrammar {
    /// Writes one text, with logits of `source` after its prompt. `on_bytes` is called with bytes
    /// as soon as no stop string can begin in them, and ends the text by [`ControlFlow::Break`].
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, a row has no distribution, the source fails, or a
    /// text that is promised to be whole takes more tokens than it may have.
    pub fn write<L: LogitsSource>(
        &self,
        source: &mut L,
        sampler: &mut Sampler,
        options: WriteOptions,
        mut on_bytes: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<WrittenText, L::Error>
    where
        L::Error: From<DecodeError>,
    {
        let WriteOptions { max_tokens, length, stop_tokens, stop_strings, context } = options;
        let options = GenerateOptions::new(max_tokens);
        let options = GenerateOptions { length, stop_tokens, context, ..options };
        let mut generator = Generator::new(options);
        let mut stops = StopStrings::new(stop_strings);
        let (mut bytes, mut stop_string) = (Vec::new(), None);
        let mut send = |new: &[u8], bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(new);
            if new.is_empty() { ControlFlow::Continue(()) } else { on_bytes(new) }
        };
        let on_token = &mut |new: NewToken<'_>| {
            let released = stops.push(self.vocabulary().text(new.token));
            stop_string = released.stop;
            let flow = send(&released.bytes, &mut bytes);
            if stop_string.is_some() { ControlFlow::Break(()) } else { flow }
        };
        let done = generator.run(self.constraint(), source, sampler, on_token)?;
        // What a stop string might have begun in is text after all.
        let held = stops.finish();
        if done.finish == Finish::Stopped {
            bytes.extend(held);
        } else {
            // It has ended, whatever the caller says.
            let _ = send(&held, &mut bytes);
        }
        Ok(WrittenText {
            bytes,
            tokens: generator.tokens().to_vec(),
            finish: done.finish,
            stop_string,
            is_accepting: done.is_accepting,
            forced: done.forced,
            passes: done.passes,
            length: done.length,
        })
    }
}

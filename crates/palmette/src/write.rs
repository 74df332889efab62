//! Text under a grammar, from logits to bytes: generation with stop strings and streaming.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use palmette_core::TokenId;
use palmette_decode::{
    DecodeError, Finish, GenerateOptions, Generator, LogitsSource, NewToken, Sampler,
};

use crate::grammar::CompiledGrammar;

/// Limits of a text besides the grammar: a length, stop tokens and stop strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The most tokens.
    pub max_tokens: usize,
    /// Tokens after which the text ends.
    pub stop_tokens: Vec<TokenId>,
    /// Strings before which the text ends. They are no part of it.
    pub stop_strings: Vec<String>,
    /// The prompt's tokens, where the sampler's repetition penalty is to count them.
    pub context: Vec<TokenId>,
}

impl WriteOptions {
    /// At most so many tokens.
    pub fn new(max_tokens: usize) -> Self {
        let (stop_tokens, stop_strings, context) = (Vec::new(), Vec::new(), Vec::new());
        Self { max_tokens, stop_tokens, stop_strings, context }
    }
}

/// A text written under a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its bytes. UTF-8 where the grammar says so and the text is whole; else a character may be cut at the end.
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
}

impl CompiledGrammar {
    /// Writes one text, with logits of `source` after its prompt. `on_bytes` is called with bytes as soon as no stop
    /// string can begin in them, and ends the text by [`ControlFlow::Break`].
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, a row has no distribution, or the source fails.
    pub fn write<L: LogitsSource>(
        &self,
        source: &mut L,
        sampler: &mut Sampler,
        options: WriteOptions,
        mut on_bytes: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Written, L::Error>
    where
        L::Error: From<DecodeError>,
    {
        let WriteOptions { max_tokens, stop_tokens, stop_strings, context } = options;
        let mut generator = Generator::new(GenerateOptions { max_tokens, stop_tokens, context });
        let mut stream = Stream { stop_strings, bytes: Vec::new(), sent: 0 };
        let mut stop_string = None;
        let on_token = &mut |new: NewToken| {
            stop_string = stream.push(self.vocabulary().text(new.token));
            let until = match stop_string {
                Some(_) => stream.bytes.len(),
                None => stream.bytes.len() - stream.undecided(),
            };
            let flow = stream.send(until, &mut on_bytes);
            if stop_string.is_some() { ControlFlow::Break(()) } else { flow }
        };
        let done = generator.run(self.constraint(), source, sampler, on_token)?;
        if done.finish != Finish::Stopped {
            // What a stop string might have begun in is text after all.
            let _ = stream.send(stream.bytes.len(), &mut on_bytes);
        }
        Ok(Written {
            bytes: stream.bytes,
            tokens: generator.tokens().to_vec(),
            finish: done.finish,
            stop_string,
            is_accepting: done.is_accepting,
            forced: done.forced,
            passes: done.passes,
        })
    }
}

/// Bytes on their way to the caller, held back where a stop string may have begun.
struct Stream {
    stop_strings: Vec<String>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Stream {
    /// Adds bytes. Where a stop string is complete, what is from its beginning on is cut off; of several, the one that
    /// begins first counts, then the longest.
    fn push(&mut self, bytes: &[u8]) -> Option<String> {
        let old = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let begins = |stop: &&String| {
            let first = (old + 1).saturating_sub(stop.len());
            let mut places = self.bytes[first..].windows(stop.len());
            places.position(|window| window == stop.as_bytes()).map(|place| first + place)
        };
        let stops = self.stop_strings.iter().filter(|stop| !stop.is_empty());
        let found = stops.filter_map(|stop| Some((begins(&stop)?, stop.clone())));
        let (place, stop) = found.min_by_key(|(place, stop)| (*place, Reverse(stop.len())))?;
        self.bytes.truncate(place);
        Some(stop)
    }

    /// Number of last bytes that may be the beginning of a stop string.
    fn undecided(&self) -> usize {
        let begin = |stop: &String| {
            let most = stop.len().saturating_sub(1).min(self.bytes.len());
            (1..=most).rev().find(|&len| self.bytes.ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
        };
        self.stop_strings.iter().map(begin).max().unwrap_or(0)
    }

    fn send(
        &mut self,
        until: usize,
        on_bytes: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if until <= self.sent {
            return ControlFlow::Continue(());
        }
        let flow = on_bytes(&self.bytes[self.sent..until]);
        self.sent = until;
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in, what is sent after each piece, and the stop string.
    #[track_caller]
    fn check(stops: &[&str], pieces: &[&str], sent: &[&str], stop: Option<&str>) {
        let stop_strings = stops.iter().map(ToString::to_string).collect();
        let mut stream = Stream { stop_strings, bytes: Vec::new(), sent: 0 };
        let (mut got, mut found) = (Vec::new(), None);
        for piece in pieces {
            found = stream.push(piece.as_bytes());
            let held = if found.is_some() { 0 } else { stream.undecided() };
            let mut part = String::new();
            let _ = stream.send(stream.bytes.len() - held, &mut |bytes| {
                part += std::str::from_utf8(bytes).expect("ASCII");
                ControlFlow::Continue(())
            });
            got.push(part);
            if found.is_some() {
                break;
            }
        }
        assert_eq!((got, found.as_deref()), (sent.iter().map(ToString::to_string).collect(), stop));
    }

    #[test]
    fn bytes_are_held_back_while_a_stop_string_may_have_begun() {
        check(&[], &["ab", "c"], &["ab", "c"], None);
        check(&["END"], &["abE", "Nc", "xEND y"], &["ab", "ENc", "x"], Some("END"));
        check(&["aab"], &["a", "a", "a", "b"], &["", "", "a", ""], Some("aab"));
        check(&["b", "ab"], &["xab"], &["x"], Some("ab"));
        check(&["bc", "b"], &["abc"], &["a"], Some("bc"));
        check(&[""], &["abc"], &["abc"], None);
        check(&["\n\n"], &["a\n", "\nb"], &["a", ""], Some("\n\n"));
    }
}

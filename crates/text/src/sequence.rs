//! A text being written: constraint, sampler and stream of one sequence, without the model.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use palmette_bindings::{BoundGrammar, CODES_FIELD, Member, RankedItem};
use palmette_core::{AnyConstraint, AnyState, TokenId, Unconstrained};
use palmette_decode::{
    BeamOptions, BeamSearch, EndedSequence, Finish, GenerateOptions, Generator, LengthReport,
    LogProbabilities, NewToken, Sampler, Stage, StepBackend,
};
use palmette_grammar::GrammarConstraint;

use crate::bounded_grammar::BoundedGrammar;
use crate::detokenize::Detokenizer;
use crate::error::{RequestError, TextError, TextErrorKind};
use crate::item_search::{ItemSearch, MAX_ITEM_TOKENS, ScoredTokens, SearchedItem};
use crate::model::TextModel;
use crate::request::{Constrained, TextRequest};

/// Event of writing a text.
#[derive(Clone, Debug, PartialEq)]
pub enum TextEvent {
    /// A part of the work has ended: [`Stage::Mask`] when masks were made and forced tokens
    /// committed, [`Stage::TopK`] when a token was drawn; [`Stage::Prefill`] and [`Stage::Decode`]
    /// are passes of the model.
    Stage(Stage),
    /// More of the text.
    Text(TextPiece),
    /// The text has ended. Nothing comes after it.
    End(TextEnd),
}

/// Some whole characters of a text, with the tokens that were generated since the piece before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPiece {
    /// The characters; none where tokens are left over at the end.
    pub text: String,
    /// The tokens. A token that ends the text is not among them.
    pub tokens: Vec<TextToken>,
}

/// A token of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextToken {
    /// The token.
    pub token: TokenId,
    /// True for a token that was no choice, and took no pass of the model.
    pub is_forced: bool,
    /// Log-probability among the allowed tokens, and those of the likeliest, where asked for.
    pub logprobs: Option<LogProbabilities>,
}

/// The end of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextEnd {
    /// Reason of its end.
    pub reason: FinishReason,
    /// Membership in the constraint's set: false where a text was cut off. True without a
    /// constraint.
    pub is_complete: bool,
    /// The way in which the rule for its length held; `None` where the text might be cut off, and
    /// without a constraint. Of a text that was searched it has the rule: no tokens were drawn.
    pub length: Option<LengthReport>,
    /// Numbers of tokens.
    pub usage: Usage,
    /// Score of a text that a [search](crate::TextBeams) found: the sum of its tokens'
    /// log-probabilities, by its length.
    pub score: Option<f32>,
    /// The items that were [searched](TextRequest::search_items), in their order.
    pub searched: Vec<SearchedItem>,
    /// Members of the catalogs that the grammar names, in their order, with their bytes of the text
    /// as it was told.
    pub members: Vec<Member>,
}

/// The reason why a text ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model wrote an end token, or one of the request's.
    EndToken(TokenId),
    /// The constraint allows nothing more, and knows no end token.
    Complete,
    /// A stop string came.
    StopString(String),
    /// The most tokens were written.
    Length,
    /// The caller broke off.
    Cancelled,
}

/// Tokens that a text took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The prompt's.
    pub prompt_tokens: usize,
    /// Tokens of the text, with the one that ended it.
    pub completion_tokens: usize,
    /// Tokens of the text that were no choice.
    pub forced_tokens: usize,
}

/// One text being written: all of it but the model.
///
/// [`settle`](Self::settle), then [`take_unread`](Self::take_unread) for the model, then
/// [`choose`](Self::choose) from the logits after what it read; again until `settle` says that the
/// text has ended. Whether one sequence is driven so or several in a batch, the text is the same.
pub struct TextSequence {
    constraint: Arc<dyn AnyConstraint>,
    is_constrained: bool,
    /// The grammar whose members the end tells.
    bound: Option<BoundGrammar>,
    is_called_off: Arc<AtomicBool>,
    generator: Generator<dyn AnyConstraint>,
    sampler: Sampler,
    /// The tokens that were handed out first: the prompt's and those forced after it.
    prompt: Vec<TokenId>,
    prompt_is_read: bool,
    prompt_tokens: usize,
    prompt_logprobs: Option<usize>,
    item_search: Option<ItemSearch>,
    searched: Vec<SearchedItem>,
    writer: Writer,
    /// Score of a text that was found.
    score: Option<f32>,
    /// Logits as long as the vocabulary, where the model's are not.
    row: Vec<f32>,
    ended: Option<TextEnd>,
}

/// The stream of a text's characters.
#[derive(Debug)]
struct Writer {
    detokenizer: Detokenizer,
    /// Tokens since the last piece.
    tokens: Vec<TextToken>,
    /// Tokens that end the text.
    ends: Vec<TokenId>,
    logprobs: Option<usize>,
    stop_string: Option<String>,
    /// Bytes of the text so far.
    len: usize,
}

/// Hears of a text as it is written, and ends it by [`ControlFlow::Break`].
pub(crate) type Events<'a> = dyn FnMut(TextEvent) -> ControlFlow<()> + 'a;

impl TextSequence {
    /// A text at its beginning.
    ///
    /// # Errors
    /// Objection of [`TextRequest::check`] to the request.
    pub fn new(model: &TextModel, request: &TextRequest) -> Result<Self, RequestError> {
        request.check(model)?;
        let sampler = request.sampler_checked()?;
        let vocabulary = model.vocabulary().vocabulary();
        let num_tokens = vocabulary.num_tokens();
        let is_called_off = Arc::<AtomicBool>::default();
        let bounded = |grammar: &GrammarConstraint| {
            let (grammar, mask_steps) = (grammar.clone(), model.mask_steps());
            let (is_called_off, model) = (Arc::clone(&is_called_off), model.clone());
            Arc::new(BoundedGrammar { grammar, mask_steps, is_called_off, model })
        };
        let (constraint, is_constrained): (Arc<dyn AnyConstraint>, _) = match &request.constraint {
            Constrained::Grammar(grammar) => (bounded(grammar), true),
            Constrained::Bound(bound) => (bounded(bound.constraint()), true),
            Constrained::By(constraint) => (Arc::clone(constraint), true),
            // One more than may be generated: the length is the generator's to say.
            Constrained::Nothing => {
                (Arc::new(Unconstrained::new(num_tokens, request.max_tokens + 1)), false)
            }
        };
        let mut ends = model.end_tokens().to_vec();
        ends.extend(&request.stop_tokens);
        let counts_prompt = request.sampler.repetition_penalty != 1.0;
        let mut generator = Generator::new(GenerateOptions {
            max_tokens: request.max_tokens,
            min_tokens: request.min_tokens,
            ignores_stops: request.ignores_ends,
            stop_tokens: ends.clone(),
            context: if counts_prompt { request.prompt.clone() } else { Vec::new() },
            parts: request.max_item_tokens() > 0,
            length: request.length,
        });
        generator.start(&*constraint);
        let shown = Arc::new(request.special.shown(model));
        let detokenizer = Detokenizer::new(Arc::clone(vocabulary), request.stop.clone());
        let writer = Writer {
            detokenizer: detokenizer.showing(shown),
            tokens: Vec::new(),
            ends,
            logprobs: request.logprobs,
            stop_string: None,
            len: 0,
        };
        let bound = match &request.constraint {
            Constrained::Bound(bound) => Some(bound.clone()),
            _ => None,
        };
        Ok(Self {
            constraint,
            is_constrained,
            bound,
            is_called_off,
            generator,
            sampler,
            prompt: request.prompt.clone(),
            prompt_is_read: false,
            prompt_tokens: request.prompt.len(),
            prompt_logprobs: request.prompt_logprobs,
            item_search: request.item_search,
            searched: Vec::new(),
            writer,
            score: None,
            row: Vec::new(),
            ended: None,
        })
    }

    /// Makes masks and moves over forced tokens, until a token has to be [chosen](Self::choose):
    /// `None`. Else the end of the text, which was told to `events` as well.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    pub fn settle(&mut self, events: &mut Events<'_>) -> Result<Option<&TextEnd>, TextError> {
        if self.ended.is_some() {
            return Ok(self.ended.as_ref());
        }
        let Self { generator, constraint, writer, .. } = self;
        let on_token = &mut |new: NewToken<'_>| writer.write(&new, events);
        let mut finish = generator.settle(&**constraint, on_token)?;
        if events(TextEvent::Stage(Stage::Mask)).is_break() {
            finish = finish.or(Some(Finish::Stopped));
        }
        let Some(finish) = finish else { return Ok(None) };
        let ended = self.end(finish)?;
        self.writer.finish(&ended.reason, events);
        // It has ended, whatever the caller says.
        let _ = events(TextEvent::End(ended.clone()));
        Ok(Some(self.ended.insert(ended)))
    }

    /// Tokens that the model has to read before it gives the logits of the next choice: the
    /// prompt's at first, then those that were generated since. They count as read from now on.
    ///
    /// A caller that fills masks while the model reads takes them first and settles then; where
    /// that leaves new ones, which were forced, the logits after these are wanted instead.
    pub fn take_unread(&mut self) -> &[TokenId] {
        let written = self.generator.take_unread();
        if std::mem::replace(&mut self.prompt_is_read, true) {
            return written;
        }
        self.prompt.extend_from_slice(written);
        &self.prompt
    }

    /// True where the model has tokens to read.
    pub fn has_unread(&self) -> bool {
        !self.prompt_is_read || !self.generator.unread().is_empty()
    }

    /// Draws the next token from the model's logits after all tokens so far, and commits it. A row
    /// that is longer than the vocabulary is padding at its end; what a shorter one lacks has no
    /// probability.
    ///
    /// # Errors
    /// When the row has no distribution, or a limit of the constraint is exceeded.
    pub fn choose(&mut self, logits: &[f32], events: &mut Events<'_>) -> Result<(), TextError> {
        let Self { generator, constraint, writer, sampler, row, .. } = self;
        let num_tokens = palmette_core::Constraint::num_tokens(&**constraint);
        let logits = match logits.get(..num_tokens) {
            Some(logits) => logits,
            None => {
                row.clear();
                row.extend_from_slice(logits);
                row.resize(num_tokens, f32::NEG_INFINITY);
                row
            }
        };
        let mut stopped = false;
        let on_token = &mut |new: NewToken<'_>| {
            stopped |= events(TextEvent::Stage(Stage::TopK)).is_break();
            let flow = writer.write(&new, events);
            if stopped { ControlFlow::Break(()) } else { flow }
        };
        generator.choose(&**constraint, logits, sampler, on_token)?;
        Ok(())
    }

    /// True where an item comes next that is to be [searched](Self::search), in place of a choice.
    pub fn is_before_item(&self) -> bool {
        self.generator.part().is_some()
    }

    /// Searches the item that comes next, after all tokens so far, and commits the best.
    ///
    /// # Errors
    /// When the search fails or is called off, a limit of the constraint is exceeded, or the model
    /// gives no item a likelihood; the text is as it was.
    pub fn search<B>(&mut self, backend: &mut B, events: &mut Events<'_>) -> Result<(), B::Error>
    where
        B: StepBackend<Error: From<TextError>>,
    {
        let (Some(part), Some(options)) = (self.generator.part(), self.item_search) else {
            return Ok(());
        };
        let left = self.generator.tokens_left();
        let max_tokens = part.max_tokens.unwrap_or_else(|| left.min(MAX_ITEM_TOKENS));
        let width = NonZeroUsize::new(options.beam_width).unwrap_or(NonZeroUsize::MIN);
        let mut search = BeamSearch::<dyn AnyConstraint>::new(BeamOptions { width, max_tokens });
        let is_called_off = &self.is_called_off;
        let control = &mut |_| match is_called_off.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        search.run_controlled(&*part.constraint, backend, control)?;
        let found = search.results().take(1 + options.alternatives);
        let found = found.map(|one| ScoredTokens { tokens: one.tokens.to_vec(), score: one.score });
        let found: Vec<ScoredTokens> = found.collect();
        let Some(best) = found.first() else { return Err(TextError::stuck().into()) };
        let place = self.generator.tokens().len();
        let Self { generator, constraint, writer, .. } = self;
        let mut stopped = events(TextEvent::Stage(Stage::TopK)).is_break();
        let on_token = &mut |new: NewToken<'_>| {
            stopped |= writer.write(&new, events).is_break();
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        generator.choose_part(&**constraint, &best.tokens, on_token)?;
        self.searched.push(SearchedItem { place, found });
        Ok(())
    }

    /// Writes a text to its end that a search found, instead of settling and choosing.
    ///
    /// # Errors
    /// As [`settle`](Self::settle), and when the constraint refuses a token.
    pub(crate) fn write_found(
        &mut self,
        found: &EndedSequence,
        events: &mut Events<'_>,
    ) -> Result<TextEnd, TextError> {
        self.score = Some(found.score);
        let Self { generator, constraint, writer, .. } = self;
        let on_token = &mut |new: NewToken<'_>| writer.write(&new, events);
        generator.choose_part(&**constraint, &found.tokens, on_token)?;
        match self.settle(events)? {
            Some(ended) => Ok(ended.clone()),
            None => Err(TextError::stuck()),
        }
    }

    /// The constraint, and the ends of the text.
    pub(crate) fn ends(&self) -> (&Arc<dyn AnyConstraint>, &GenerateOptions) {
        (&self.constraint, self.generator.options())
    }

    /// Position in the constraint after all tokens so far; `None` where nothing constrains.
    pub(crate) fn state(&self) -> Option<&AnyState> {
        self.generator.state().filter(|_| self.is_constrained)
    }

    /// A flag that calls off the mask that is being made, which fails then: for a text that nobody
    /// wants any more.
    pub fn is_called_off(&self) -> &Arc<AtomicBool> {
        &self.is_called_off
    }

    /// The likeliest tokens to tell at each place of the prompt; `None` where its likelihoods are
    /// not wanted.
    pub fn prompt_logprobs(&self) -> Option<usize> {
        self.prompt_logprobs
    }

    /// Tokens that the text may still have.
    pub fn tokens_left(&self) -> usize {
        self.generator.tokens_left()
    }

    /// The tokens of the text so far.
    pub fn tokens(&self) -> &[TokenId] {
        self.generator.tokens()
    }

    /// The end, once it has come.
    pub fn ended(&self) -> Option<&TextEnd> {
        self.ended.as_ref()
    }

    fn end(&mut self, finish: Finish) -> Result<TextEnd, TextError> {
        let reason = match (finish, self.writer.stop_string.take()) {
            (Finish::Stopped, Some(stop)) => FinishReason::StopString(stop),
            (Finish::Stopped, None) => FinishReason::Cancelled,
            (Finish::Complete, _) => FinishReason::Complete,
            (Finish::StopToken(token), _) => FinishReason::EndToken(token),
            (Finish::MaxTokens, _) => FinishReason::Length,
        };
        let usage = Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.generator.tokens().len(),
            forced_tokens: self.generator.forced(),
        };
        let is_complete = !self.is_constrained || self.generator.is_accepting(&*self.constraint)?;
        if reason == FinishReason::Complete && !is_complete {
            return Err(TextErrorKind::Stuck.into());
        }
        let members = self.members(&reason)?;
        let searched = std::mem::take(&mut self.searched);
        let length = self.generator.length().filter(|_| self.is_constrained);
        let score = self.score;
        Ok(TextEnd { reason, is_complete, length, usage, score, searched, members })
    }

    /// The members of the text as far as it is told.
    fn members(&self, reason: &FinishReason) -> Result<Vec<Member>, TextError> {
        let Some(bound) = &self.bound else { return Ok(Vec::new()) };
        let (vocabulary, shown) =
            (bound.constraint().vocabulary(), self.writer.detokenizer.shown());
        let mut tokens = self.generator.tokens().to_vec();
        tokens.retain(|token| !self.writer.ends.contains(token));
        let told = |token| shown.get(&token).map_or(vocabulary.text(token).len(), String::len);
        let mut members = bound.members_of_tokens(&tokens, told)?.unwrap_or_default();
        let mut codes = members.iter_mut().filter(|member| member.field == CODES_FIELD);
        for SearchedItem { place, found } in &self.searched {
            let begin = tokens.iter().take(*place).map(|&token| told(token)).sum::<usize>();
            let Some(member) = codes.find(|member| member.span.start == begin) else { continue };
            let ranked = found.iter().filter_map(|one| {
                let id = bound.item_of_tokens(&member.set, &one.tokens)?;
                Some(RankedItem { id, score: one.score })
            });
            member.ranked = ranked.collect();
        }
        // What was held back is told at the end, unless it is cut off.
        if matches!(reason, FinishReason::StopString(_) | FinishReason::Cancelled) {
            members.retain(|member| member.span.end <= self.writer.len);
        }
        Ok(members)
    }
}

impl fmt::Debug for TextSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextSequence")
            .field("generator", &self.generator)
            .field("writer", &self.writer)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Writer {
    fn write(&mut self, new: &NewToken<'_>, events: &mut Events<'_>) -> ControlFlow<()> {
        if self.ends.contains(&new.token) {
            return ControlFlow::Continue(());
        }
        let logprobs = |top| LogProbabilities::of(new.token, new.logits, new.allowed, top);
        let logprobs = self.logprobs.map(logprobs);
        self.tokens.push(TextToken { token: new.token, is_forced: new.is_forced, logprobs });
        let released = self.detokenizer.push(new.token);
        self.stop_string = released.stop;
        let flow = match released.text.is_empty() {
            true => ControlFlow::Continue(()),
            false => self.send(released.text, events),
        };
        if self.stop_string.is_some() { ControlFlow::Break(()) } else { flow }
    }

    /// Text that was held back, unless a stop string cut it off or nobody listens any more.
    fn finish(&mut self, reason: &FinishReason, events: &mut Events<'_>) {
        let text = match reason {
            FinishReason::StopString(_) | FinishReason::Cancelled => String::new(),
            _ => self.detokenizer.finish(),
        };
        if !(text.is_empty() && self.tokens.is_empty()) {
            let _ = self.send(text, events);
        }
    }

    fn send(&mut self, text: String, events: &mut Events<'_>) -> ControlFlow<()> {
        self.len += text.len();
        events(TextEvent::Text(TextPiece { text, tokens: std::mem::take(&mut self.tokens) }))
    }
}

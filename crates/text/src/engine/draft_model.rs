//! Draft model: a smaller model of the same tokens, whose likeliest ones are the guesses.
//!
//! Prompt look-up (`drafts`) guesses where a text quotes, and costs nothing. Where it has no guess,
//! this has one for every text: `k` tokens for one pass over what the texts have written since and
//! `k − 1` passes over a token of each, all texts that guess side by side. The text's own model
//! verifies a guess as any other, by drawing from its own logits, so that a draft model changes
//! passes and never a text.
//!
//! # Grammars
//! A guess keeps the rules of its text ([`TextRules`]): each token is the likeliest that the
//! grammar takes after those before it. That is asked of the grammar's parser and not of its masks:
//! a mask may take long, and nobody waits for another text's; a token that is refused costs a step
//! of the parser. Where some of the likeliest are all refused, the guess ends. It ends before a
//! token that would end the text, too.
//!
//! # Following
//! Each text has a sequence here, beside the one that its own model reads. It is read along: parts
//! of a prompt as the text's model reads them, and what came true of a guess stays; what did not is
//! taken away at the next one. Texts that begin alike share pages here as they do there. Where no
//! page is free, first texts that have ended go, then the youngest that asks; it has no guess from
//! then on. After a failure nobody has one. Neither is a failure of a text.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;

use palmette_core::{AnyConstraint, AnyScratch, AnyState, CommitError, Constraint, TokenId};
use palmette_decode::likeliest;
use palmette_model::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};

use super::shares::shares;
use crate::model::TextModel;
use crate::sequence::TextSequence;

/// Tokens that a place is tried with before the guess ends.
const TRIED: usize = 64;

/// Rules of a text that hold for guesses at it too: its grammar and its ends.
pub(super) struct TextRules {
    constraint: Arc<dyn AnyConstraint>,
    /// Position in it after the tokens so far; `None` where nothing constrains.
    state: Option<AnyState>,
    /// Tokens that end the text.
    stops: Vec<TokenId>,
    /// Tokens that the text must have before it may end.
    least: usize,
    /// Tokens that are left of these.
    until_stops: usize,
}

impl TextRules {
    pub(super) fn new(text: &TextSequence) -> Self {
        let (constraint, options) = text.ends();
        let least = if options.ignores_stops { usize::MAX } else { options.min_tokens };
        let (constraint, stops) = (Arc::clone(constraint), options.stop_tokens.clone());
        let mut rules = Self { constraint, state: None, stops, least, until_stops: least };
        rules.follow(text);
        rules
    }

    /// Follows the text to where it is now.
    pub(super) fn follow(&mut self, text: &TextSequence) {
        self.until_stops = self.least.saturating_sub(text.tokens().len());
        self.state = text.state().cloned();
    }

    /// The likeliest token that may follow the first `guessed` ones of a guess, and the state moved
    /// over it; `None` where the text would end, or none of the likeliest may follow.
    fn next(
        &self,
        logits: &[f32],
        guessed: usize,
        state: &mut Option<AnyState>,
        Scratch { constraint: scratch, best }: &mut Scratch,
    ) -> Option<TokenId> {
        let tokens = (0..).map(TokenId).zip(logits.iter().copied());
        let tokens = tokens.filter(|(_, logit)| *logit > f32::NEG_INFINITY);
        let mut tried = 0;
        // Mostly it is the first.
        for most in [1, TRIED] {
            likeliest(tokens.clone(), most, best);
            for &(token, _) in best.iter().skip(tried) {
                let stops = self.stops.contains(&token);
                if stops && guessed < self.until_stops {
                    continue;
                }
                let committed = match state {
                    Some(state) => self.constraint.commit(state, token, scratch),
                    None => Ok(()),
                };
                match committed {
                    Ok(()) => return (!stops).then_some(token),
                    Err(CommitError::Failed { .. }) => return None,
                    Err(_) => {}
                }
            }
            tried = best.len();
        }
        None
    }
}

/// Working memory of choosing a token.
#[derive(Default)]
struct Scratch {
    constraint: AnyScratch,
    /// The likeliest tokens of a row.
    best: Vec<(TokenId, f32)>,
}

/// A text that a guess is wanted for.
pub(super) struct Wish<'a> {
    /// Number of the text.
    pub(super) number: u64,
    /// The prompt's tokens and the text's; one at least.
    pub(super) tokens: &'a [TokenId],
    /// Tokens of the guess at most; 0 where the text is only to be read.
    pub(super) most: usize,
    pub(super) rules: &'a TextRules,
}

/// The draft model's part of the texts that are written.
pub(super) struct DraftModel {
    sequences: Box<dyn SequenceStore>,
    /// Tokens of the vocabulary.
    num_tokens: usize,
    /// Tokens that the model can read.
    vocab_size: usize,
    /// Readings by the numbers of their texts, the oldest first.
    readings: BTreeMap<u64, Reading>,
    scratch: Scratch,
    /// True after a failure of what computes the model.
    is_broken: bool,
    passes: u64,
}

/// Beginning of a text that was read, and the guess behind it.
#[derive(Default)]
struct Reading {
    /// `None` where it was given up.
    sequence: Option<SequenceId>,
    /// Tokens of the text that were read.
    read: usize,
    /// Guessed tokens that were read behind them.
    ahead: Vec<TokenId>,
    /// True where the text has ended, and is kept for others that begin as it does.
    has_ended: bool,
}

/// A guess that grows.
struct Growing {
    /// Place of the wish.
    wish: usize,
    sequence: SequenceId,
    /// Place of its stretch in the latest pass.
    stretch: usize,
    state: Option<AnyState>,
    /// Last token of it.
    last: TokenId,
}

impl Growing {
    fn stretch(&self) -> Stretch<'_> {
        let tokens = slice::from_ref(&self.last);
        Stretch { sequence: self.sequence, tokens, wants_logits: true }
    }
}

impl DraftModel {
    pub(super) fn new(model: &TextModel, sequences: Box<dyn SequenceStore>) -> Self {
        Self {
            sequences,
            num_tokens: model.vocabulary().vocabulary().num_tokens(),
            vocab_size: model.engine().config().vocab_size,
            readings: BTreeMap::new(),
            scratch: Scratch::default(),
            is_broken: false,
            passes: 0,
        }
    }

    /// Passes so far.
    pub(super) fn passes(&self) -> u64 {
        self.passes
    }

    /// True where it may have a guess for a text: neither gave the text up nor failed.
    pub(super) fn can_guess(&self, number: u64) -> bool {
        let reading = self.readings.get(&number);
        !self.is_broken && reading.is_none_or(|reading| reading.sequence.is_some())
    }

    /// Has a text begin with the first tokens of another, as far as these were read here, in whole
    /// pages.
    pub(super) fn begin_as(&mut self, number: u64, other: u64, tokens: usize) {
        let Some(Reading { sequence: Some(sequence), read, .. }) = self.readings.get(&other) else {
            return;
        };
        let same = tokens.min(*read);
        let same = same - same % SequencesOptions::PAGE_TOKENS;
        if let Ok(fork) = self.sequences.fork(*sequence, same) {
            let reading = Reading { sequence: Some(fork), read: same, ..Reading::default() };
            self.forget(number);
            self.readings.insert(number, reading);
        }
    }

    /// Keeps what was read of a text that has ended, as long as there is room.
    pub(super) fn keep(&mut self, number: u64) {
        if let Some(reading) = self.readings.get_mut(&number) {
            reading.has_ended = true;
        }
    }

    /// Forgets what was read of a text.
    pub(super) fn forget(&mut self, number: u64) {
        self.give_up(number);
        self.readings.remove(&number);
    }

    /// Reads of each text what is new, in a pass of at most so many rows, and guesses what comes
    /// next where nothing is left to be read; a guess for each wish, empty where there is none.
    pub(super) fn guess(&mut self, wishes: &[Wish<'_>], rows: usize) -> Vec<Vec<TokenId>> {
        let mut guesses = vec![Vec::new(); wishes.len()];
        if !self.is_broken && self.grow(wishes, rows, &mut guesses).is_err() {
            self.is_broken = true;
        }
        guesses
    }

    fn grow(
        &mut self,
        wishes: &[Wish<'_>],
        rows: usize,
        guesses: &mut [Vec<TokenId>],
    ) -> Result<(), SequencesError> {
        wishes.iter().for_each(|wish| self.follow(wish));
        let mut growing = self.catch_up(wishes, rows)?;
        loop {
            growing.retain_mut(|one| self.lengthen(one, &wishes[one.wish], &mut guesses[one.wish]));
            if growing.is_empty() {
                return Ok(());
            }
            let stretches: Vec<Stretch<'_>> = growing.iter().map(Growing::stretch).collect();
            match self.sequences.pass(&stretches) {
                Ok(()) => self.passes += 1,
                // They are as long as they are.
                Err(SequencesError::NoRoom { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            for (stretch, one) in growing.iter_mut().enumerate() {
                one.stretch = stretch;
                self.reading_mut(wishes[one.wish].number).ahead.push(one.last);
            }
        }
    }

    /// Adds a token to a guess, whose logits the latest pass has; true where it is to have another.
    fn lengthen(&mut self, one: &mut Growing, wish: &Wish<'_>, guess: &mut Vec<TokenId>) -> bool {
        let logits = self.sequences.logits(one.stretch).unwrap_or_default();
        let logits = &logits[..self.num_tokens.min(logits.len())];
        let (rules, state, scratch) = (wish.rules, &mut one.state, &mut self.scratch);
        let next =
            catch_unwind(AssertUnwindSafe(|| rules.next(logits, guess.len(), state, scratch)));
        // A constraint's own defect: the text meets it by itself, where it comes so far.
        let Ok(Some(next)) = next else { return false };
        guess.push(next);
        one.last = next;
        // The last token of a guess is not read.
        let most = wish.most.min(self.sequences.max_positions() - wish.tokens.len() + 1);
        guess.len() < most && next.index() < self.vocab_size
    }

    /// Brings a text's sequence to the tokens that came true; at least one is left to be read, for
    /// the logits after it.
    fn follow(&mut self, wish: &Wish<'_>) {
        if !self.readings.contains_key(&wish.number) {
            let sequence = self.with_room(|sequences| sequences.add());
            self.readings.insert(wish.number, Reading { sequence, ..Reading::default() });
        }
        let reading = self.readings.get_mut(&wish.number).expect("it was put in");
        let Some(sequence) = reading.sequence else { return };
        let ahead = std::mem::take(&mut reading.ahead);
        let came = wish.tokens[reading.read..].iter().zip(&ahead);
        let same = came.take_while(|(a, b)| a == b).count();
        let (has, most) = (reading.read + ahead.len(), wish.tokens.len() - 1);
        reading.read = (reading.read + same).min(most);
        if reading.read == has {
            return;
        }
        let read = reading.read;
        let truncated = self.with_room(|sequences| sequences.truncate(sequence, read));
        match truncated {
            Some(_) => self.reading_mut(wish.number).sequence = truncated,
            None => self.give_up(wish.number),
        }
    }

    /// Reads what is new, and begins the guesses of the texts that nothing is left of.
    fn catch_up(
        &mut self,
        wishes: &[Wish<'_>],
        rows: usize,
    ) -> Result<Vec<Growing>, SequencesError> {
        let rows = rows.min(self.sequences.options().max_rows);
        loop {
            for wish in wishes {
                let unread = &wish.tokens[self.reading_mut(wish.number).read..];
                let is_known = |token: &TokenId| token.index() < self.vocab_size;
                let fits = wish.tokens.len() <= self.sequences.max_positions();
                if !fits || !unread.iter().all(is_known) {
                    self.give_up(wish.number);
                }
            }
            // The last token is left to the pass whose logits are wanted.
            let want = |wish: &Wish<'_>| match &self.readings[&wish.number] {
                Reading { sequence: Some(_), read, .. } if wish.most > 0 => {
                    wish.tokens.len() - read
                }
                Reading { sequence: Some(_), read, .. } => wish.tokens.len() - 1 - read,
                Reading { sequence: None, .. } => 0,
            };
            let wants: Vec<usize> = wishes.iter().map(want).collect();
            let given = shares(rows, &wants);
            let (mut stretches, mut growing) = (Vec::new(), Vec::new());
            for (place, (wish, &count)) in wishes.iter().zip(&given).enumerate() {
                let Reading { sequence: Some(sequence), read, .. } = self.readings[&wish.number]
                else {
                    continue;
                };
                if count == 0 {
                    continue;
                }
                let tokens = &wish.tokens[read..read + count];
                let wants_logits = wish.most > 0 && count == wants[place];
                if wants_logits {
                    let (stretch, state) = (stretches.len(), wish.rules.state.clone());
                    let last = tokens[count - 1];
                    growing.push(Growing { wish: place, sequence, stretch, state, last });
                }
                stretches.push(Stretch { sequence, tokens, wants_logits });
            }
            if stretches.is_empty() {
                return Ok(growing);
            }
            match self.sequences.pass(&stretches) {
                Ok(()) => {
                    self.passes += 1;
                    for (wish, count) in wishes.iter().zip(given) {
                        self.reading_mut(wish.number).read += count;
                    }
                    return Ok(growing);
                }
                Err(SequencesError::NoRoom { .. }) => {
                    if !self.forget_ended() {
                        let youngest = wishes.iter().zip(&given).rev().find(|(_, of)| **of > 0);
                        youngest.into_iter().for_each(|(wish, _)| self.give_up(wish.number));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn reading_mut(&mut self, number: u64) -> &mut Reading {
        self.readings.get_mut(&number).expect("every wish was followed")
    }

    /// Takes a place or a page, where texts that have ended may have to go for it.
    fn with_room(
        &mut self,
        mut take: impl FnMut(&mut dyn SequenceStore) -> Result<SequenceId, SequencesError>,
    ) -> Option<SequenceId> {
        loop {
            match take(&mut *self.sequences) {
                Ok(sequence) => return Some(sequence),
                Err(_) if self.forget_ended() => {}
                Err(_) => return None,
            }
        }
    }

    /// Forgets the oldest text that has ended; false where there is none.
    fn forget_ended(&mut self) -> bool {
        let ended = self.readings.iter().find(|(_, reading)| reading.has_ended);
        let ended = ended.map(|(&number, _)| number);
        ended.into_iter().for_each(|number| self.forget(number));
        ended.is_some()
    }

    /// Gives a text's pages up; it has no guesses from then on.
    fn give_up(&mut self, number: u64) {
        let Some(reading) = self.readings.get_mut(&number) else { return };
        let Reading { sequence, has_ended, .. } = std::mem::take(reading);
        reading.has_ended = has_ended;
        if let Some(sequence) = sequence {
            self.is_broken |= self.sequences.remove(sequence).is_err();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use palmette_core::mask;
    use palmette_grammar::GrammarSource;
    use palmette_grammar::frontends::regex::RegexOptions;
    use palmette_model::{Session, SessionOptions};
    use palmette_testkit::tiny_model;
    use palmette_vocabulary::{LoadOptions, load_bytes};
    use proptest::prelude::*;

    use super::*;
    use crate::model::TextModelOptions;
    use crate::request::{Constrained, TextRequest};

    const POSITIONS: usize = 300;
    const AMPLE: usize = 4000;

    fn model() -> TextModel {
        let pieces = tiny_model::pieces(&["true", "false", "ab", "\n"]);
        let json = serde_json::to_string(&pieces).unwrap();
        let vocabulary = load_bytes("tiny", json.as_bytes(), &LoadOptions::default()).unwrap();
        let model = Arc::new(tiny_model::model(pieces.len(), POSITIONS));
        TextModel::from_parts("tiny", model, vocabulary, &TextModelOptions::default()).unwrap()
    }

    fn draft_model(model: &TextModel, max_sequences: usize, max_tokens: usize) -> DraftModel {
        let plan = SequencesOptions { max_sequences, max_tokens, max_rows: 64, threads: 1 };
        DraftModel::new(model, model.engine().open_sequences(plan).unwrap())
    }

    /// A text that is written by whoever tests.
    struct Text {
        number: u64,
        sequence: TextSequence,
        rules: TextRules,
        tokens: Vec<TokenId>,
    }

    impl Text {
        fn new(model: &TextModel, number: u64, kind: usize, prompt: usize) -> Self {
            let words: String = "a palm leaf, ".chars().cycle().take(prompt).collect();
            let mut request = TextRequest::new(model.encode_text(&words).unwrap(), 100);
            let text = ["", "[a-z]{0,9}(, [A-Z][a-z]{1,4}){0,30}", "(true|false|abba|[0-9])*"];
            if !text[kind % 3].is_empty() {
                let (text, options) = (text[kind % 3].to_owned(), RegexOptions::default());
                let source = GrammarSource::Regex { text, options };
                request.constraint = Constrained::by(&model.compile(&source).unwrap());
            }
            (request.ignores_ends, request.min_tokens) = (kind > 4, kind);
            let mut sequence = TextSequence::new(model, &request).unwrap();
            let rules = TextRules::new(&sequence);
            let tokens = sequence.take_unread().to_vec();
            Self { number, sequence, rules, tokens }
        }

        /// Writes forced tokens, and after them this one where it may follow, or another; false
        /// where the text has ended.
        fn write(&mut self, model: &TextModel, token: TokenId) -> bool {
            let heard = &mut |_| ControlFlow::Continue(());
            let goes_on = self.sequence.settle(heard).unwrap().is_none();
            if goes_on {
                let mut logits = vec![0.0; model.vocabulary().vocabulary().num_tokens()];
                logits[token.index()] = 9.0;
                self.sequence.choose(&logits, heard).unwrap();
            }
            self.tokens.extend_from_slice(self.sequence.take_unread());
            self.rules.follow(&self.sequence);
            goes_on
        }

        /// The guess by its definition: the first of the likeliest tokens in the mask, by passes
        /// over all tokens, until one ends the text or none of them is in it.
        fn guess(&self, model: &TextModel, most: usize) -> Vec<TokenId> {
            let options = SessionOptions {
                max_prompt_tokens: POSITIONS,
                max_beams: 0,
                max_decode_passes: 0,
                threads: 1,
            };
            let mut session = Session::new(&model.engine().model().unwrap(), options).unwrap();
            let num_tokens = model.vocabulary().vocabulary().num_tokens();
            let (constraint, options) = self.sequence.ends();
            let (mut state, mut scratch) = (self.sequence.state().cloned(), AnyScratch::default());
            let mut guess: Vec<TokenId> = Vec::new();
            while guess.len() < most {
                let all = [&self.tokens[..], &guess].concat();
                let logits = session.prompt_logits_after(&all).unwrap();
                let mut order: Vec<usize> = (0..num_tokens).collect();
                order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
                let mut allowed = vec![u32::MAX; mask::num_words(num_tokens)];
                if let Some(state) = &state {
                    constraint.fill_mask(state, &mut scratch, &mut allowed).unwrap();
                }
                let written = self.sequence.tokens().len() + guess.len();
                if options.ignores_stops || written < options.min_tokens {
                    let stops = options.stop_tokens.iter();
                    stops.for_each(|&stop| mask::remove(&mut allowed, stop));
                }
                let order = order.into_iter().map(|token| TokenId(token as u32));
                let next = order.take(TRIED).find(|&token| mask::contains(&allowed, token));
                let Some(next) = next.filter(|next| !options.stop_tokens.contains(next)) else {
                    break;
                };
                guess.push(next);
                if let Some(state) = &mut state {
                    constraint.commit(state, next, &mut scratch).unwrap();
                }
            }
            guess
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Guesses side by side, whatever came true of those before, are those of their definition;
        /// where rows, places or pages are short, some of their first tokens.
        #[test]
        fn guesses_are_those_of_their_definition(
            texts in prop::collection::vec((0_usize..8, 1_usize..140), 1..5),
            steps in prop::collection::vec(prop::collection::vec((0_usize..7, 0_usize..8, 0_u32..100), 5), 1..12),
            places in prop::sample::select(vec![9, 3]),
            max_tokens in prop::sample::select(vec![AMPLE, 256, 64]),
            rows in prop::sample::select(vec![usize::MAX, 9]),
        ) {
            let model = model();
            let mut drafts = draft_model(&model, places, max_tokens);
            let is_ample = (places, max_tokens) == (9, AMPLE);
            let mut next = texts.len() as u64;
            let mut texts: Vec<Text> = (0..).zip(&texts)
                .map(|(number, &(kind, prompt))| Text::new(&model, number, kind, prompt))
                .collect();
            for step in steps {
                let wishes: Vec<Wish<'_>> = texts.iter().zip(&step)
                    .map(|(text, &(most, ..))| Wish { number: text.number, tokens: &text.tokens, most, rules: &text.rules })
                    .collect();
                // A pass has so many rows; what is left is read by the next ones.
                let mut guesses = drafts.guess(&wishes, rows);
                if is_ample {
                    for _ in 0..wishes.iter().map(|wish| wish.tokens.len()).sum::<usize>() {
                        if wishes.iter().zip(&guesses).all(|(wish, guess)| wish.most == 0 || !guess.is_empty()) {
                            break;
                        }
                        guesses = drafts.guess(&wishes, rows);
                    }
                }
                let mut ended = Vec::new();
                for (place, ((text, &(most, came_true, token)), guess)) in texts.iter_mut().zip(&step).zip(&guesses).enumerate() {
                    let defined = text.guess(&model, most);
                    prop_assert!(defined.starts_with(guess), "{:?} of {:?}", guess, defined);
                    prop_assert!(!is_ample || guess.len() == defined.len(), "{:?} of {:?}", guess, defined);
                    let true_ones = guess.iter().take(came_true).copied();
                    if !true_ones.chain([TokenId(token)]).all(|token| text.write(&model, token)) {
                        ended.push(place);
                    }
                }
                for place in ended.into_iter().rev() {
                    let Text { number, tokens, .. } = texts.remove(place);
                    if tokens.len() % 2 == 0 {
                        drafts.forget(number);
                        continue;
                    }
                    drafts.keep(number);
                    let (kind, prompt) = (place + tokens.len(), tokens.len().min(130));
                    let text = Text::new(&model, next, kind % 8, prompt);
                    let same = text.tokens.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
                    drafts.begin_as(next, number, same.min(text.tokens.len() - 1));
                    texts.push(text);
                    next += 1;
                }
            }
            prop_assert!(!drafts.is_broken);
            // Nothing is held of texts that are forgotten.
            for number in 0..next {
                drafts.forget(number);
            }
            let pages = max_tokens / SequencesOptions::PAGE_TOKENS;
            prop_assert!(drafts.sequences.free_pages() >= pages && drafts.readings.is_empty());
        }
    }
}

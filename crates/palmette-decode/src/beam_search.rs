//! The search itself: live hypotheses, their masks, and the pool of results.

use std::num::NonZeroUsize;
use std::ops::Range;

use palmette_core::{CommitAllError, CommitError, Constraint, TokenId, mask};

use crate::error::DecodeError;
use crate::log_softmax::max_and_log_sum_exp;
use crate::logits_source::LogitsSource;
use crate::top_k::{Extension, TopK};

/// How wide and how long a search may get; all its memory is planned from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeamOptions {
    /// Hypotheses kept at each step, and results at most.
    pub width: NonZeroUsize,
    /// The longest sequence of the constraint. A longer one is an error, never cut.
    pub max_tokens: usize,
}

/// The width of each step.
#[derive(Clone, Debug)]
struct Schedule {
    /// One a step as far as sequences go; where they have no tokens, one all the same.
    widths: Box<[NonZeroUsize]>,
    /// The largest.
    widest: usize,
    max_tokens: usize,
}

/// One result: a sequence of the constraint's set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hypothesis<'a, S> {
    /// The generated tokens.
    pub tokens: &'a [TokenId],
    /// Sum of the tokens' log-probabilities.
    pub score: f32,
    /// The constraint's position after the last token.
    pub state: &'a S,
}

/// A beam search over constraint `C`: every buffer it needs, made once and reused.
///
/// Memory, W = the width, or the largest of a schedule, N = `max_tokens`, V tokens: masks `W · V / 8` bytes, sequences
/// `16 · W · N` bytes, and `4 W` states: live ones, those of the next step, and up to two widths of
/// results. After the first search over a vocabulary no
/// step allocates unless cloning a state does.
#[derive(Debug)]
pub struct BeamSearch<C: Constraint> {
    schedule: Schedule,
    scratch: C::Scratch,
    num_tokens: usize,
    /// Hypotheses that score less are not kept.
    floor: f32,
    step: usize,
    live: Rows<C::State>,
    /// The hypotheses of the step being built; swapped with `live`.
    next: Rows<C::State>,
    /// One mask row per live hypothesis, `words_per_row` words each.
    masks: Vec<u32>,
    words_per_row: usize,
    top_k: TopK,
    selected: Vec<Extension>,
    results: Results<C::State>,
}

/// Hypotheses in rows, best first: structure of arrays, so that parents and tokens can be handed
/// to the model as slices.
#[derive(Debug)]
struct Rows<S> {
    states: Vec<S>,
    scores: Vec<f32>,
    /// Row this hypothesis had extended, in the step before.
    parents: Vec<u32>,
    /// Its last token.
    tokens: Vec<TokenId>,
    /// All its tokens, `max_tokens` places a row.
    sequences: Vec<TokenId>,
}

#[derive(Debug)]
struct Results<S> {
    entries: Vec<ResultEntry<S>>,
    /// `max_tokens` places a slot; slots are reused, so entries name theirs.
    sequences: Vec<TokenId>,
    places: usize,
    free_slots: Vec<u32>,
    found: u64,
}

#[derive(Debug)]
struct ResultEntry<S> {
    score: f32,
    /// Order of discovery: the tie rule.
    found: u64,
    slot: u32,
    len: u32,
    state: S,
}

impl<C: Constraint> BeamSearch<C> {
    /// Plans a search as wide at every step.
    pub fn new(options: BeamOptions) -> Self {
        let BeamOptions { width, max_tokens } = options;
        Self::planned(Schedule::new(vec![width; max_tokens.max(1)], max_tokens))
    }

    /// Plans a search over sequences of at most as many tokens as there are widths: after the token of
    /// step `i` the best `widths[i]` hypotheses are kept. The last is also how many results there are
    /// at most, whatever their lengths.
    ///
    /// # Panics
    /// Without widths.
    pub fn with_widths(widths: &[NonZeroUsize]) -> Self {
        assert!(!widths.is_empty(), "a schedule has a width for every step");
        Self::planned(Schedule::new(widths.to_vec(), widths.len()))
    }

    fn planned(schedule: Schedule) -> Self {
        let Schedule { widest, max_tokens, .. } = schedule;
        Self {
            scratch: C::Scratch::default(),
            num_tokens: 0,
            floor: f32::NEG_INFINITY,
            step: 0,
            live: Rows::new(widest, max_tokens),
            next: Rows::new(widest, max_tokens),
            masks: Vec::new(),
            words_per_row: 0,
            top_k: TopK::new(widest),
            selected: Vec::with_capacity(widest),
            results: Results::new(schedule.num_results() + widest, max_tokens),
            schedule,
        }
    }

    /// How many hypotheses are kept at each step; the last is how many results there are at most.
    pub fn widths(&self) -> &[NonZeroUsize] {
        &self.schedule.widths
    }

    /// Runs to the end; [`results`](Self::results) then gives what was found.
    ///
    /// # Errors
    /// A [`DecodeError`], or the source's own error.
    pub fn run<L: LogitsSource>(&mut self, constraint: &C, source: &mut L) -> Result<(), L::Error>
    where
        L::Error: From<DecodeError>,
    {
        self.start(constraint)?;
        let (model, constrained) = (source.num_tokens(), constraint.num_tokens());
        if model != constrained {
            return Err(DecodeError::VocabularyMismatch { model, constraint: constrained }.into());
        }
        while self.is_live() {
            let logits = if self.step == 0 {
                source.prompt_logits()?
            } else {
                source.next_logits(self.parents(), self.tokens())?
            };
            self.select(logits)?;
            self.expand(constraint)?;
        }
        Ok(())
    }

    /// Begins anew at the constraint's start.
    ///
    /// # Errors
    /// When the constraint exceeds a limit of its own.
    pub fn start(&mut self, constraint: &C) -> Result<(), DecodeError> {
        self.start_above(f32::NEG_INFINITY, constraint)
    }

    /// As [`start`](Self::start), for results of at least this score: hypotheses that fall below it are let go at once,
    /// since scores only fall.
    ///
    /// What is found is to the bit what a search without a floor finds, but for the results below it. Each step keeps
    /// exactly those of the other search's hypotheses that are not below: rows are ordered by score, and whatever comes
    /// of a row scores no more.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_above(&mut self, floor: f32, constraint: &C) -> Result<(), DecodeError> {
        self.floor = floor;
        self.step = 0;
        self.results.clear();
        self.live.clear();
        self.num_tokens = constraint.num_tokens();
        self.words_per_row = mask::num_words(self.num_tokens);
        self.masks.resize(self.schedule.widest * self.words_per_row, 0);

        let start = constraint.start();
        if constraint.is_accepting(&start) {
            self.results.insert(0.0, &[], &start);
        }
        constraint.fill_mask(&start, &mut self.scratch, &mut self.masks[..self.words_per_row]);
        self.check_masks(constraint, 0)?;
        if !mask::is_empty(&self.masks[..self.words_per_row]) {
            self.live.push(start, 0.0, 0, TokenId(0));
        }
        Ok(())
    }

    /// Whether another step could change the results.
    ///
    /// Scores only fall, so the search ends once the best live hypothesis is no better than the
    /// worst of as many results as there may be.
    pub fn is_live(&self) -> bool {
        match (self.live.scores.first(), self.results.worst_if_full(self.schedule.num_results())) {
            (None, _) => false,
            (Some(&best), Some(worst)) => best > worst,
            (Some(_), None) => true,
        }
    }

    /// Row each live hypothesis had extended, in the rows of the step before.
    pub fn parents(&self) -> &[u32] {
        &self.live.parents
    }

    /// Last token of each live hypothesis.
    pub fn tokens(&self) -> &[TokenId] {
        &self.live.tokens
    }

    /// Scores the allowed extensions of every live hypothesis and keeps the best, as many as the step's width.
    ///
    /// `logits`: `[live hypotheses, V]`. Follow with [`expand`](Self::expand).
    ///
    /// # Errors
    /// When the shape is wrong or a row has no distribution; the search must then be started anew.
    pub fn select(&mut self, logits: &[f32]) -> Result<(), DecodeError> {
        self.select_of(logits, 0..self.num_tokens)
    }

    /// As [`select`](Self::select), from the logits of some tokens only, `[live hypotheses, columns]`: probabilities are
    /// over these, and the constraint must allow no others at this step. Where a level's tokens are known beforehand,
    /// the model need not compute the rest.
    ///
    /// # Errors
    /// As [`select`](Self::select), and when the constraint allows a token that is not among the columns.
    pub fn select_of(&mut self, logits: &[f32], columns: Range<usize>) -> Result<(), DecodeError> {
        self.select_where(logits, columns, |_, _| true)
    }

    /// As [`select_of`](Self::select_of), of the extensions that `accepts` wants: it is given a hypothesis' tokens and the
    /// next, and asked only about those that would otherwise be kept. To verify what the constraint leaves open, such as
    /// whole sequences at the last step.
    ///
    /// # Errors
    /// As [`select_of`](Self::select_of).
    pub fn select_where(
        &mut self,
        logits: &[f32],
        columns: Range<usize>,
        mut accepts: impl FnMut(&[TokenId], TokenId) -> bool,
    ) -> Result<(), DecodeError> {
        let (beams, num_columns) = (self.live.scores.len(), columns.len());
        if beams * num_columns != logits.len() {
            let (num_tokens, got) = (num_columns, logits.len());
            return Err(DecodeError::ShapeMismatch { beams, num_tokens, got });
        }
        // A step that failed may have left extensions of its own.
        self.top_k.begin(self.schedule.width_of(self.step));
        for (beam, row) in logits.chunks_exact(num_columns.max(1)).enumerate() {
            let (max, normaliser) = max_and_log_sum_exp(row);
            if !normaliser.is_finite() {
                return Err(DecodeError::BadLogits { beam, step: self.step });
            }
            let parent_score = self.live.scores[beam];
            // Adding 0 turns −0 into +0, which `total_cmp` would tell apart.
            let score = |logit: f32| parent_score + (logit - normaliser) + 0.0;
            // Rounding keeps order, so no extension scores more than this. Source: xGR, arXiv 2512.11529, §6.2; there a
            // beam's extensions are sorted and the first that loses ends it.
            if score(max) < self.floor || !self.top_k.would_take(score(max)) {
                continue;
            }
            let words = &self.masks[beam * self.words_per_row..][..self.words_per_row];
            let sequence = &self.live.sequences[beam * self.schedule.max_tokens..][..self.step];
            for token in mask::iter(words) {
                let place = token.index().checked_sub(columns.start);
                let Some(&logit) = place.and_then(|place| row.get(place)) else {
                    return Err(self.no_logit(token));
                };
                let score = score(logit);
                if score >= self.floor && self.top_k.would_take(score) && accepts(sequence, token) {
                    self.top_k.take(Extension { score, parent: beam as u32, token });
                }
            }
        }
        self.top_k.drain_into(&mut self.selected);
        Ok(())
    }

    /// A token that is allowed and has no logit: past the vocabulary, or not asked for.
    fn no_logit(&self, token: TokenId) -> DecodeError {
        let step = self.step;
        if token.index() >= self.num_tokens {
            DecodeError::BrokenConstraint { token, step }
        } else {
            DecodeError::MissingLogit { token, step }
        }
    }

    /// Moves the selected hypotheses over their tokens: collects the accepting ones, fills the masks
    /// of those that can go on.
    ///
    /// # Errors
    /// When a hypothesis could grow past `max_tokens`, or the constraint refuses what its mask allows.
    pub fn expand(&mut self, constraint: &C) -> Result<(), DecodeError> {
        let max_tokens = self.schedule.max_tokens;
        self.next.clear();
        for &Extension { score, parent, token } in &self.selected {
            let state = self.live.states[parent as usize].clone();
            self.next.push(state, score, parent, token);
        }
        let Rows { states, tokens, .. } = &mut self.next;
        if let Err(refused) = constraint.commit_all(states, tokens, &mut self.scratch) {
            return Err(self.why_refused(constraint, refused));
        }
        if self.step >= max_tokens && !self.next.states.is_empty() {
            return Err(DecodeError::TooLong { max_tokens });
        }
        let words = self.next.states.len() * self.words_per_row;
        constraint.fill_masks(&self.next.states, &mut self.scratch, &mut self.masks[..words]);
        self.check_masks(constraint, self.step + 1)?;
        for (row, state) in self.next.states.iter().enumerate() {
            let parent_row = self.next.parents[row] as usize;
            let sequence = &mut self.next.sequences[row * max_tokens..][..=self.step];
            sequence[..self.step]
                .copy_from_slice(&self.live.sequences[parent_row * max_tokens..][..self.step]);
            sequence[self.step] = self.next.tokens[row];
            // After the masks, which have brought in what this reads.
            if constraint.is_accepting(state) {
                self.results.insert(self.next.scores[row], sequence, state);
            }
        }
        self.drop_ended_rows();
        self.results.keep_best(self.schedule.num_results());
        std::mem::swap(&mut self.live, &mut self.next);
        self.step += 1;
        Ok(())
    }

    /// A mask that denies all because of a limit would end a hypothesis without a word.
    fn check_masks(&self, constraint: &C, step: usize) -> Result<(), DecodeError> {
        match constraint.failure(&self.scratch) {
            None => Ok(()),
            Some(why) => Err(DecodeError::Constraint { step, why }),
        }
    }

    /// Whether a selected hypothesis exceeded a limit of the constraint, or its mask was wrong.
    #[cold]
    fn why_refused(&self, constraint: &C, refused: CommitAllError) -> DecodeError {
        let CommitAllError { place, token } = refused;
        let step = self.step;
        let mut parent = self.live.states[self.selected[place].parent as usize].clone();
        match constraint.commit(&mut parent, token) {
            Err(CommitError::Failed { why, .. }) => DecodeError::Constraint { step, why },
            _ => DecodeError::BrokenConstraint { token, step },
        }
    }

    /// Moves the rows that can go on before those that cannot, and lets go of the latter.
    fn drop_ended_rows(&mut self) {
        let (words, max_tokens) = (self.words_per_row, self.schedule.max_tokens);
        let mut kept = 0;
        for row in 0..self.next.states.len() {
            if mask::is_empty(&self.masks[row * words..][..words]) {
                continue;
            }
            if kept < row {
                self.masks.copy_within(row * words..(row + 1) * words, kept * words);
                self.next.move_row(row, kept, max_tokens);
            }
            kept += 1;
        }
        self.next.truncate(kept);
    }

    /// The accepting hypotheses so far, best first; final once nothing is live.
    pub fn results(&self) -> impl ExactSizeIterator<Item = Hypothesis<'_, C::State>> {
        self.results.entries.iter().map(|entry| Hypothesis {
            tokens: self.results.sequence(entry),
            score: entry.score,
            state: &entry.state,
        })
    }
}

impl Schedule {
    fn new(widths: Vec<NonZeroUsize>, max_tokens: usize) -> Self {
        let widest = widths.iter().map(|width| width.get()).max().unwrap_or(1);
        Self { widths: widths.into(), widest, max_tokens }
    }

    /// A step past the last is one that will be refused.
    fn width_of(&self, step: usize) -> usize {
        self.widths[step.min(self.widths.len() - 1)].get()
    }

    fn num_results(&self) -> usize {
        self.widths[self.widths.len() - 1].get()
    }
}

impl<S> Rows<S> {
    fn new(width: usize, max_tokens: usize) -> Self {
        Self {
            states: Vec::with_capacity(width),
            scores: Vec::with_capacity(width),
            parents: Vec::with_capacity(width),
            tokens: Vec::with_capacity(width),
            sequences: vec![TokenId(0); width * max_tokens],
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.scores.clear();
        self.parents.clear();
        self.tokens.clear();
    }

    /// Puts row `from` in place of row `to`; what was there goes to `from`.
    fn move_row(&mut self, from: usize, to: usize, max_tokens: usize) {
        self.states.swap(from, to);
        self.scores.swap(from, to);
        self.parents.swap(from, to);
        self.tokens.swap(from, to);
        self.sequences.copy_within(from * max_tokens..(from + 1) * max_tokens, to * max_tokens);
    }

    fn truncate(&mut self, len: usize) {
        self.states.truncate(len);
        self.scores.truncate(len);
        self.parents.truncate(len);
        self.tokens.truncate(len);
    }

    fn push(&mut self, state: S, score: f32, parent: u32, token: TokenId) {
        self.states.push(state);
        self.scores.push(score);
        self.parents.push(parent);
        self.tokens.push(token);
    }
}

impl<S: Clone> Results<S> {
    /// For `slots` entries: a step adds as many as its width to those kept.
    fn new(slots: usize, max_tokens: usize) -> Self {
        Self {
            entries: Vec::with_capacity(slots),
            sequences: vec![TokenId(0); slots * max_tokens],
            places: max_tokens,
            free_slots: (0..slots as u32).rev().collect(),
            found: 0,
        }
    }

    fn clear(&mut self) {
        self.free_slots.extend(self.entries.drain(..).map(|entry| entry.slot));
        self.found = 0;
    }

    fn insert(&mut self, score: f32, sequence: &[TokenId], state: &S) {
        let slot = self.free_slots.pop().expect("at most a step's width, then `keep_best`");
        let start = slot as usize * self.places;
        self.sequences[start..start + sequence.len()].copy_from_slice(sequence);
        self.entries.push(ResultEntry {
            score,
            found: self.found,
            slot,
            len: sequence.len() as u32,
            state: state.clone(),
        });
        self.found += 1;
    }

    fn keep_best(&mut self, width: usize) {
        self.entries.sort_unstable_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| a.found.cmp(&b.found))
        });
        let kept = width.min(self.entries.len());
        self.free_slots.extend(self.entries.drain(kept..).map(|entry| entry.slot));
    }

    fn worst_if_full(&self, width: usize) -> Option<f32> {
        self.entries.get(width - 1).map(|entry| entry.score)
    }

    fn sequence(&self, entry: &ResultEntry<S>) -> &[TokenId] {
        &self.sequences[entry.slot as usize * self.places..][..entry.len as usize]
    }
}

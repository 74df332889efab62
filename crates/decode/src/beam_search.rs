//! The policy of a beam search: live hypotheses, their masks, and the pool of results.

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;

use palmette_core::{CommitAllError, Constraint, MaskWindow, TokenId, mask};

use crate::error::DecodeError;
use crate::gains::{ExtensionGains, Objective, StepGains};
use crate::step::{Extension, Pass, SearchPlan, Step, dropped_at_most, larger};

/// Width and length of a search, from which all its memory is planned.
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
    /// Gain of the hypothesis (see [`Gains`](crate::Gains)); 0 in a search without gains.
    pub gain: f32,
    /// The constraint's position after the last token.
    pub state: &'a S,
}

/// A beam search over constraint `C`: every buffer it needs, made once and reused.
///
/// Memory, W = the width, or the largest of a schedule, N = `max_tokens`, V tokens of the widest
/// [window](MaskWindow) that the constraint has: masks `W · V / 8` bytes, sequences `16 · W · N`
/// bytes, and `4 W` states: live ones, those of the next step, and up to two widths of results.
/// After the first search over a constraint no step allocates unless cloning a state does.
pub struct BeamSearch<C: Constraint + ?Sized> {
    schedule: Schedule,
    scratch: C::Scratch,
    num_tokens: usize,
    /// Hypotheses of a smaller total are not kept.
    floor: f32,
    /// The largest total that was let go.
    dropped: Option<f32>,
    step: usize,
    live: Rows<C::State>,
    /// The hypotheses of the step being built; swapped with `live`.
    next: Rows<C::State>,
    /// One mask row per live hypothesis, once they are made.
    masks: MaskWindow,
    has_masks: bool,
    /// True for each row of `next` that a token may follow.
    goes_on: Vec<bool>,
    /// The driver's buffer between steps.
    extensions: Vec<Extension>,
    /// The driver's buffers of whole searches.
    steps: Vec<Vec<Extension>>,
    results: Results<C::State>,
}

/// Hypotheses in rows, best first: structure of arrays, so that parents and tokens can be handed
/// to the model as slices.
#[derive(Debug)]
struct Rows<S> {
    states: Vec<S>,
    scores: Vec<f32>,
    /// The largest gains of what may come of them.
    bounds: Vec<f32>,
    /// Row this hypothesis had extended, in the step before.
    parents: Vec<u32>,
    /// Last token of each row.
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
    gain: f32,
    /// Order of discovery: the tie rule.
    found: u64,
    slot: u32,
    len: u32,
    state: S,
}

impl<C: Constraint + ?Sized> BeamSearch<C> {
    /// Plans a search as wide at every step.
    pub fn new(options: BeamOptions) -> Self {
        let BeamOptions { width, max_tokens } = options;
        Self::planned(Schedule::new(vec![width; max_tokens.max(1)], max_tokens))
    }

    /// Plans a search over sequences of at most as many tokens as there are widths: after the token
    /// of step `i` the best `widths[i]` hypotheses are kept. The last is also how many results
    /// there are at most, whatever their lengths.
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
            dropped: None,
            step: 0,
            live: Rows::new(widest, max_tokens),
            next: Rows::new(widest, max_tokens),
            masks: MaskWindow::with_rows(widest),
            has_masks: false,
            goes_on: Vec::with_capacity(widest),
            extensions: Vec::with_capacity(widest),
            steps: Vec::new(),
            results: Results::new(schedule.num_results() + widest, max_tokens),
            schedule,
        }
    }

    /// Number of hypotheses kept at each step; the last limits the results.
    pub fn widths(&self) -> &[NonZeroUsize] {
        &self.schedule.widths
    }

    /// Begins again at the constraint's start.
    ///
    /// # Errors
    /// When the constraint exceeds a limit of its own.
    pub fn start(&mut self, constraint: &C) -> Result<(), DecodeError> {
        self.start_above(f32::NEG_INFINITY, constraint)
    }

    /// Starts as [`start`](Self::start) does, for results of at least this total. A total is score
    /// and [gain](crate::Gains) together; hypotheses that fall below it are let go at once, since
    /// totals only fall.
    ///
    /// What is found is to the bit what a search without a floor finds, but for the results below
    /// it. Each step keeps exactly those of the other search's hypotheses that are not below: rows
    /// are ordered by total, and whatever comes of a row has no more.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_above<'a>(
        &mut self,
        floor: f32,
        objective: impl Into<Objective<'a, C>>,
    ) -> Result<(), DecodeError>
    where
        C: 'a,
    {
        let objective = objective.into();
        let constraint = objective.constraint;
        self.floor = floor;
        self.dropped = None;
        self.step = 0;
        self.results.clear();
        self.live.clear();
        self.num_tokens = constraint.num_tokens();

        let start = constraint.start();
        if constraint.is_accepting(&start, &mut self.scratch).map_err(at_step(0))? {
            self.results.insert(0.0, objective.gain(&start), &[], &start);
        }
        let states = std::slice::from_ref(&start);
        let filled = constraint.fill_window(states, &mut self.scratch, &mut self.masks);
        filled.map_err(at_step(0))?;
        self.has_masks = true;
        if !mask::is_empty(self.masks.words()) {
            let bound = objective.bound(&start);
            self.live.push(start, Extension { score: 0.0, bound, parent: 0, token: TokenId(0) });
        }
        Ok(())
    }

    /// True if another step could change the results.
    ///
    /// Totals only fall, so the search ends once the best live hypothesis is no better than the
    /// worst of as many results as there may be.
    pub fn is_live(&self) -> bool {
        let best = self.live.scores.first().zip(self.live.bounds.first());
        match (best, self.results.worst_if_full(self.schedule.num_results())) {
            (None, _) => false,
            (Some((score, bound)), Some(worst)) => score + bound > worst,
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

    /// The step that comes next, for a [`StepBackend`](crate::StepBackend). Follow with
    /// [`expand`](Self::expand).
    pub fn step(&self) -> Step<'_> {
        self.step_with(None)
    }

    /// The bounds of the next step's extensions, for [`step_with`](Self::step_with); `None` without
    /// gains.
    pub(crate) fn step_gains<'a>(
        &'a self,
        objective: Objective<'a, C>,
        scratch: Option<&'a RefCell<C::Scratch>>,
    ) -> Option<StepGains<'a, C>> {
        let (constraint, states) = (objective.constraint, &self.live.states[..]);
        let (gains, scratch) = objective.gains.zip(scratch)?;
        Some(StepGains { constraint, gains, states, scratch })
    }

    pub(crate) fn step_with<'a>(&'a self, gains: Option<&'a dyn ExtensionGains>) -> Step<'a> {
        debug_assert!(self.has_masks, "a step is asked for once its masks are made");
        Step {
            pass: self.pass(),
            bounds: &self.live.bounds,
            masks: &self.masks,
            num_tokens: self.num_tokens,
            width: self.schedule.width_of(self.step),
            floor: self.floor,
            gains,
        }
    }

    /// The pass that comes next.
    pub(crate) fn pass(&self) -> Pass<'_> {
        Pass {
            index: self.step,
            parents: &self.live.parents,
            tokens: &self.live.tokens,
            scores: &self.live.scores,
            sequences: &self.live.sequences,
            max_tokens: self.schedule.max_tokens,
        }
    }

    /// Moves hypotheses over the step's best extensions: collects the accepting ones, fills the
    /// masks of those that can go on.
    ///
    /// # Errors
    /// When the extensions are not what the step asked for, a hypothesis could grow past
    /// `max_tokens`, a limit of the constraint is exceeded, or it refuses what its mask allows. The
    /// search must then be started anew.
    pub fn expand<'a>(
        &mut self,
        objective: impl Into<Objective<'a, C>>,
        best: &[Extension],
    ) -> Result<(), DecodeError>
    where
        C: 'a,
    {
        let objective = objective.into();
        let dropped = dropped_at_most(self.schedule.width_of(self.step), self.floor, best);
        self.advance(objective, best, dropped)?;
        self.fill_masks(objective.constraint)
    }

    /// The first half of [`expand`](Self::expand): what goes on is then known, for the next pass.
    /// Where only masks tell, they are made here. No extension that is not among the best has a
    /// larger total than `dropped`.
    pub(crate) fn advance(
        &mut self,
        objective: Objective<'_, C>,
        best: &[Extension],
        dropped: Option<f32>,
    ) -> Result<(), DecodeError> {
        let constraint = objective.constraint;
        self.check_extensions(best)?;
        self.dropped = larger(self.dropped, dropped);
        let (step, max_tokens) = (self.step, self.schedule.max_tokens);
        self.next.clear();
        for extension in best {
            let state = self.live.states[extension.parent as usize].clone();
            self.next.push(state, *extension);
        }
        let Rows { states, tokens, .. } = &mut self.next;
        constraint.commit_all(states, tokens, &mut self.scratch).map_err(|error| match error {
            CommitAllError::Failed { error, .. } => at_step(step)(error),
            CommitAllError::NotAllowed { token, .. } => {
                DecodeError::BrokenConstraint { token, step }
            }
        })?;
        if step >= max_tokens && !self.next.states.is_empty() {
            return Err(DecodeError::TooLong { max_tokens });
        }
        self.find_what_goes_on(constraint).map_err(at_step(step + 1))?;
        for (row, state) in self.next.states.iter().enumerate() {
            let parent_row = self.next.parents[row] as usize;
            let sequence = &mut self.next.sequences[row * max_tokens..][..=step];
            sequence[..step]
                .copy_from_slice(&self.live.sequences[parent_row * max_tokens..][..step]);
            sequence[step] = self.next.tokens[row];
            let accepts = constraint.is_accepting(state, &mut self.scratch);
            if accepts.map_err(at_step(step + 1))? {
                let (score, gain) = (self.next.scores[row], objective.gain(state));
                self.results.insert(score, gain, sequence, state);
            }
        }
        self.drop_ended_rows();
        let cut = self.results.keep_best(self.schedule.num_results());
        self.dropped = larger(self.dropped, cut);
        std::mem::swap(&mut self.live, &mut self.next);
        self.step += 1;
        Ok(())
    }

    /// Writes into `goes_on` which rows of `next` do: as the constraint knows it, or by masks.
    fn find_what_goes_on(&mut self, constraint: &C) -> Result<(), C::Error> {
        let states = &self.next.states;
        self.goes_on.clear();
        for state in states {
            let Some(goes_on) = constraint.goes_on(state, &mut self.scratch)? else { break };
            self.goes_on.push(goes_on);
        }
        self.has_masks = self.goes_on.len() < states.len();
        if self.has_masks {
            constraint.fill_window(states, &mut self.scratch, &mut self.masks)?;
            let rows = (0..states.len()).map(|row| !mask::is_empty(self.masks.row(row)));
            self.goes_on.clear();
            self.goes_on.extend(rows);
        }
        Ok(())
    }

    /// The second half of [`expand`](Self::expand): masks of the live hypotheses, unless they are
    /// made.
    pub(crate) fn fill_masks(&mut self, constraint: &C) -> Result<(), DecodeError> {
        if !self.has_masks {
            let states = &self.live.states;
            let filled = constraint.fill_window(states, &mut self.scratch, &mut self.masks);
            filled.map_err(at_step(self.step))?;
            self.has_masks = true;
        }
        Ok(())
    }

    /// Postcondition of a backend: no more extensions than the width, of live rows, in descending
    /// order and above the floor.
    fn check_extensions(&self, best: &[Extension]) -> Result<(), DecodeError> {
        let (rows, width) = (self.live.scores.len(), self.schedule.width_of(self.step));
        let reason = if best.len() > width {
            format!("{} extensions, at a width of {width}", best.len())
        } else if let Some(one) = best.iter().find(|one| one.parent as usize >= rows) {
            format!("an extension of row {}, of {rows} rows", one.parent)
        } else if best.iter().any(|one| one.total().is_nan()) {
            "a score that is no number".to_owned()
        } else if !best.is_sorted_by(|a, b| a > b) {
            "extensions that do not descend by total, parent and token".to_owned()
        } else if best.last().is_some_and(|last| last.total() < self.floor) {
            format!("a total below the floor, {}", self.floor)
        } else {
            return Ok(());
        };
        Err(DecodeError::BrokenBackend { step: self.step, reason })
    }

    /// The sizes of the whole search.
    pub(crate) fn search_plan(&self) -> SearchPlan<'_> {
        SearchPlan { widths: &self.schedule.widths, floor: self.floor }
    }

    /// The driver's buffers of the extensions of all steps, lent for one run.
    pub(crate) fn take_steps(&mut self) -> Vec<Vec<Extension>> {
        std::mem::take(&mut self.steps)
    }

    pub(crate) fn keep_steps(&mut self, steps: Vec<Vec<Extension>>) {
        self.steps = steps;
    }

    /// The driver's buffer of extensions, lent for one run.
    pub(crate) fn take_extensions(&mut self) -> Vec<Extension> {
        std::mem::take(&mut self.extensions)
    }

    pub(crate) fn keep_extensions(&mut self, extensions: Vec<Extension>) {
        self.extensions = extensions;
    }

    /// Moves the rows that can go on before those that cannot, and lets go of the latter.
    fn drop_ended_rows(&mut self) {
        let max_tokens = self.schedule.max_tokens;
        let mut kept = 0;
        for row in (0..self.next.states.len()).filter(|&row| self.goes_on[row]) {
            if kept < row {
                if self.has_masks {
                    self.masks.move_row(row, kept);
                }
                self.next.move_row(row, kept, max_tokens);
            }
            kept += 1;
        }
        self.masks.truncate(kept);
        self.next.truncate(kept);
    }

    /// Bound on the totals of the set's sequences that are not among the results; `None` where the
    /// results are the whole set.
    ///
    /// Totals only fall, so what comes of a hypothesis has no more than it had: the largest total
    /// that the search ever let go bounds all that it did not find. Results above the bound are
    /// thus the first of an exhaustive search, in its order. Where all sequences are of one length
    /// so are those that equal it: of equals the search keeps those that come first, and so do
    /// their extensions. Cost: one maximum beside each selection.
    pub fn missed_at_most(&self) -> Option<f32> {
        // A search that is over early leaves some that go on.
        let live = self.live.scores.first().zip(self.live.bounds.first());
        larger(self.dropped, live.map(|(score, bound)| score + bound))
    }

    /// True where it keeps at every step what the other does, and more.
    pub(crate) fn is_as_wide_as(&self, other: &Self) -> bool {
        let (own, others) = (&self.schedule, &other.schedule);
        own.max_tokens == others.max_tokens
            && own.widths.iter().zip(&others.widths).all(|(own, other)| own >= other)
    }

    /// Takes over the results of another search, no wider than this, that reach a total.
    pub(crate) fn copy_results(&mut self, from: &Self, floor: f32) {
        self.results.clear();
        self.live.clear();
        self.dropped = from.missed_at_most();
        for found in from.results() {
            if found.total() >= floor {
                self.results.insert(found.score, found.gain, found.tokens, found.state);
            } else {
                self.dropped = larger(self.dropped, Some(found.total()));
            }
        }
    }

    /// Hands the results over that were found since, best first: none are left, so that they end no
    /// search.
    pub(crate) fn drain_results(&mut self, mut each: impl FnMut(Hypothesis<'_, C::State>)) {
        self.results().for_each(&mut each);
        self.results.clear();
    }

    /// The accepting hypotheses so far, best first; final once nothing is live.
    pub fn results(&self) -> impl ExactSizeIterator<Item = Hypothesis<'_, C::State>> {
        self.results.entries.iter().map(|entry| Hypothesis {
            tokens: self.results.sequence(entry),
            score: entry.score,
            gain: entry.gain,
            state: &entry.state,
        })
    }
}

impl<S> Hypothesis<'_, S> {
    /// Score and gain together: the order of results.
    pub fn total(&self) -> f32 {
        self.score + self.gain
    }
}

impl<S> ResultEntry<S> {
    fn total(&self) -> f32 {
        self.score + self.gain
    }
}

impl<C: Constraint + ?Sized> fmt::Debug for BeamSearch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeamSearch")
            .field("widths", &self.schedule.widths)
            .field("step", &self.step)
            .field("live", &self.live.scores.len())
            .field("results", &self.results.entries.len())
            .finish_non_exhaustive()
    }
}

/// Error of an exceeded limit of the constraint, after `step` tokens.
fn at_step<E: std::error::Error>(step: usize) -> impl FnOnce(E) -> DecodeError {
    move |error| DecodeError::Constraint { step, why: error.to_string() }
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
            bounds: Vec::with_capacity(width),
            parents: Vec::with_capacity(width),
            tokens: Vec::with_capacity(width),
            sequences: vec![TokenId(0); width * max_tokens],
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.scores.clear();
        self.bounds.clear();
        self.parents.clear();
        self.tokens.clear();
    }

    /// Puts row `from` in place of row `to`; what was there goes to `from`.
    fn move_row(&mut self, from: usize, to: usize, max_tokens: usize) {
        self.states.swap(from, to);
        self.scores.swap(from, to);
        self.bounds.swap(from, to);
        self.parents.swap(from, to);
        self.tokens.swap(from, to);
        self.sequences.copy_within(from * max_tokens..(from + 1) * max_tokens, to * max_tokens);
    }

    fn truncate(&mut self, len: usize) {
        self.states.truncate(len);
        self.scores.truncate(len);
        self.bounds.truncate(len);
        self.parents.truncate(len);
        self.tokens.truncate(len);
    }

    fn push(&mut self, state: S, extension: Extension) {
        let Extension { score, bound, parent, token } = extension;
        self.states.push(state);
        self.scores.push(score);
        self.bounds.push(bound);
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

    fn insert(&mut self, score: f32, gain: f32, sequence: &[TokenId], state: &S) {
        let slot = self.free_slots.pop().expect("at most a step's width, then `keep_best`");
        let start = slot as usize * self.places;
        self.sequences[start..start + sequence.len()].copy_from_slice(sequence);
        self.entries.push(ResultEntry {
            score,
            gain,
            found: self.found,
            slot,
            len: sequence.len() as u32,
            state: state.clone(),
        });
        self.found += 1;
    }

    /// Lets go of all but the best; returns the largest total of the others.
    fn keep_best(&mut self, width: usize) -> Option<f32> {
        self.entries.sort_unstable_by(|a, b| {
            b.total().total_cmp(&a.total()).then_with(|| a.found.cmp(&b.found))
        });
        let kept = width.min(self.entries.len());
        let cut = self.entries.get(kept).map(ResultEntry::total);
        self.free_slots.extend(self.entries.drain(kept..).map(|entry| entry.slot));
        cut
    }

    fn worst_if_full(&self, width: usize) -> Option<f32> {
        self.entries.get(width - 1).map(ResultEntry::total)
    }

    fn sequence(&self, entry: &ResultEntry<S>) -> &[TokenId] {
        &self.sequences[entry.slot as usize * self.places..][..entry.len as usize]
    }
}

//! The thread that runs the model: admit, plan a pass, run it, draw tokens.

mod guessing;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_core::TokenId;
use palmette_model::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};

use super::EngineOptions;
use super::desk::{Arrivals, Desk, Job, Settled, Waiting, Writing};
use super::draft_model::{DraftModel, TextRules};
use super::drafts::{Ahead, DraftLengths, Guesser};
use super::scores::Scores;
use super::searching::{BeamAsk, Searching};
use super::shares::shares;
use super::spent::Spent;
use super::updates::{EngineError, Update, tell};
use crate::item_beams::SequenceBeams;
use crate::sequence::{FinishReason, TextEnd, TextSequence};

/// The part of a pass's time that the model waits for masks before it: those that are quick let
/// forced tokens go into the pass, too.
const GRACE: u32 = 50;

/// Texts that are being written, and the model's part of them.
pub(super) struct Runner {
    desk: Arc<Desk>,
    sequences: Box<dyn SequenceStore>,
    draft_model: Option<DraftModel>,
    options: EngineOptions,
    /// In the order of their admission.
    rows: Vec<Row>,
    /// Texts that have ended, the latest last: others may begin as they do.
    kept: VecDeque<IdleSequence>,
    /// The search that is being made.
    search: Option<Searching>,
    next: u64,
    /// Tokens of the vocabulary.
    num_tokens: usize,
    /// Time of the latest pass.
    pass_time: Duration,
}

/// A text that is being written.
struct Row {
    number: u64,
    /// `None` while its mask is being made.
    writing: Option<Box<Writing>>,
    /// True if its mask has been made.
    is_settled: bool,
    /// `None` before the first token is read, and while its pages are given up.
    sequence: Option<SequenceId>,
    /// Gave its pages up and waits for others.
    is_parked: bool,
    /// Tokens that the model has read or is to read: the prompt, then the text so far.
    tokens: Vec<TokenId>,
    prompt: usize,
    read: usize,
    /// Tokens that prompt and text may have.
    most: usize,
    /// Logits after the tokens that were read, where the mask came later than they did or a draft
    /// was read as well.
    ahead: Option<Ahead>,
    /// The guesser of the latest draft, and the lengths of drafts by each.
    guesser: Guesser,
    lengths: [DraftLengths; 2],
    /// Rules that guesses of a draft model keep; `None` where there is no such model.
    rules: Option<TextRules>,
    /// Time of passes since the latest choice.
    spent: Spent,
    /// A defect that ends it when its mask comes.
    broken: Option<SequencesError>,
    /// Likelihoods of the prompt that are wanted; the text begins after them.
    scores: Option<Scores>,
}

/// A text that has ended.
struct IdleSequence {
    number: u64,
    sequence: SequenceId,
    tokens: Vec<TokenId>,
}

/// Part of a pass that is one text's, by its place: how many of its tokens, and a draft behind
/// them.
struct Share {
    place: usize,
    count: usize,
    draft: Vec<TokenId>,
}

impl Share {
    fn rows(&self) -> usize {
        self.count + self.draft.len()
    }
}

type Plan = Vec<Share>;

/// The beginning of a sequence.
enum Begin {
    /// With nothing.
    Empty,
    /// With the first tokens of another, which has this number.
    As(u64, SequenceId, usize),
    /// Later: a text that is being read has the same beginning.
    Later,
}

impl Row {
    fn unread(&self) -> usize {
        self.tokens.len() - self.read
    }

    fn can_go(&self) -> bool {
        !self.is_parked && self.unread() > 0 && self.broken.is_none()
    }

    /// Goes over the tokens that were drafted and read; true where the logits after all tokens are
    /// known.
    fn go_ahead(&mut self) -> bool {
        let Some(ahead) = &mut self.ahead else { return false };
        self.read += ahead.take(&self.tokens[self.read..]);
        self.unread() == 0
    }

    /// True where an item is to be searched next.
    fn is_before_item(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.text.is_before_item())
    }

    /// Takes the tokens that its text has had since.
    fn take_unread(&mut self, text: &mut TextSequence) {
        self.tokens.extend_from_slice(text.take_unread());
        self.rules.iter_mut().for_each(|rules| rules.follow(text));
    }

    /// True where its own tokens are read, few at a time.
    fn writes(&self) -> bool {
        !self.is_parked && self.read >= self.prompt
    }
}

impl Runner {
    pub(super) fn new(
        desk: Arc<Desk>,
        (sequences, draft_model): (Box<dyn SequenceStore>, Option<DraftModel>),
        options: EngineOptions,
        num_tokens: usize,
    ) -> Self {
        let (rows, kept, pass_time) = (Vec::new(), VecDeque::new(), Duration::ZERO);
        let (search, next) = (None, 0);
        Self {
            desk,
            sequences,
            draft_model,
            options,
            rows,
            kept,
            search,
            next,
            num_tokens,
            pass_time,
        }
    }

    /// Runs until the end. A panic is a defect, and ends all texts.
    pub(super) fn run(mut self) {
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_until_stopped()));
        let error = || match &ran {
            Ok(()) => EngineError::Closed,
            Err(_) => EngineError::Panicked,
        };
        self.desk.stop();
        let waiting = self.desk.take(usize::MAX, false, 0, Duration::ZERO).waiting;
        let waiting = waiting.into_iter().map(|waiting| waiting.writing);
        let here = self.rows.drain(..).filter_map(|row| row.writing);
        here.chain(waiting).for_each(|mut writing| writing.fail(error()));
    }

    fn run_until_stopped(&mut self) {
        loop {
            let arrivals = self.take();
            if arrivals.is_stopping {
                return;
            }
            self.drop_unwanted();
            for settled in arrivals.settled {
                self.take_settled(settled);
            }
            for ask in arrivals.beams {
                self.take_ask(ask);
            }
            for Waiting { mut writing, since } in arrivals.waiting {
                writing.spent.waited = since.elapsed();
                match writing.is_dropped() {
                    true => self.desk.count(|counts| counts.cancelled += 1),
                    false => self.admit(writing),
                }
            }
            self.unpark();
            let beams = self.beam_rows();
            let plan = self.plan(beams);
            if !plan.is_empty() || beams > 0 {
                self.pass(&plan, beams);
            }
            self.publish();
        }
    }

    fn take(&self) -> Arrivals {
        let away = self.rows.iter().filter(|row| row.writing.is_none()).count();
        let is_idle = !self.rows.iter().any(Row::can_go) && !self.beams_can_go();
        let beams = self.search.as_ref().map_or(0, |search| search.width);
        let places = match self.rows.iter().any(|row| row.is_parked) {
            // They came first.
            true => 0,
            // A search's beams take places, too.
            false => self.options.max_texts.saturating_sub(self.rows.len() + beams),
        };
        let began = Instant::now();
        let arrivals = self.desk.take(places, is_idle, away, self.pass_time / GRACE);
        if away > 0 {
            let took = began.elapsed().as_secs_f64();
            self.desk.count(|counts| counts.stall_seconds += took);
        }
        arrivals
    }

    /// Takes a message of the search that is made.
    fn take_ask(&mut self, ask: BeamAsk) {
        let store = &mut *self.sequences;
        let taken = match ask {
            BeamAsk::Begin { prompt, width, is_dropped, logits, reply } => {
                let ways = (logits, reply);
                self.search = Some(Searching::new(prompt, width, is_dropped, ways));
                Ok(())
            }
            BeamAsk::Step { parents, tokens, logits } => match &mut self.search {
                Some(search) => search.follow(store, &parents, (tokens, logits)),
                None => Ok(()),
            },
            BeamAsk::End => self.search.take().map_or(Ok(()), |search| search.end(store)),
        };
        if let Err(error) = taken {
            self.fail_search(error);
        }
    }

    /// True where a search waits for a pass, or begins in the places that are free.
    fn beams_can_go(&self) -> bool {
        self.search.as_ref().is_some_and(|search| match search.has_begun() {
            true => search.can_go(),
            false => self.rows.len() + search.width <= self.options.max_texts,
        })
    }

    /// Pages of it are some that no text can have.
    fn search_holds(&self) -> bool {
        self.search.as_ref().is_some_and(Searching::has_begun)
    }

    /// Rows of the next pass that are a search's. It has what it wants: texts give up their pages.
    fn beam_rows(&mut self) -> usize {
        if !self.beams_can_go() {
            return 0;
        }
        let prompt_rows = match self.rows.is_empty() {
            true => self.sequences.options().max_rows,
            false => self.options.prompt_rows,
        };
        loop {
            let (Some(search), store) = (&mut self.search, &mut *self.sequences) else { return 0 };
            let begun = if search.has_begun() { Ok(()) } else { search.begin(store) };
            match begun.and_then(|()| search.rows(store, prompt_rows)) {
                Ok(rows) => return rows,
                // A kept sequence's place, or a page.
                Err(SequencesError::NoRoom { .. } | SequencesError::TooManySequences { .. })
                    if self.make_room_beside(usize::MAX) => {}
                Err(error) => {
                    self.fail_search(error);
                    return 0;
                }
            }
        }
    }

    fn fail_search(&mut self, error: SequencesError) {
        self.search.iter_mut().for_each(|search| search.fail(error.clone()));
    }

    fn admit(&mut self, mut writing: Box<Writing>) {
        let tokens = writing.text.take_unread().to_vec();
        let number = self.next;
        self.next += 1;
        let prompt = tokens.len();
        let scores = writing.text.prompt_logprobs().map(|top| Scores::new(top, self.num_tokens));
        let mut row = Row {
            number,
            writing: None,
            is_settled: false,
            sequence: None,
            is_parked: false,
            tokens,
            prompt,
            read: 0,
            most: prompt + writing.text.tokens_left(),
            ahead: None,
            guesser: Guesser::default(),
            lengths: Default::default(),
            rules: self.draft_model.as_ref().map(|_| TextRules::new(&writing.text)),
            spent: Spent::default(),
            broken: None,
            scores,
        };
        match row.scores {
            Some(_) => row.writing = Some(writing),
            // The first mask is made while the prompt is read.
            None => self.desk.hand_over(Job { row: number, writing }),
        }
        self.rows.push(row);
    }

    /// Takes back a text whose mask was made.
    fn take_settled(&mut self, settled: Settled) {
        let Settled { row, mut writing, outcome } = settled;
        let Some(place) = self.rows.iter().position(|of| of.number == row) else { return };
        let broken = self.rows[place].broken.take().map(EngineError::from);
        match broken.map_or(outcome, Err) {
            Err(_) if writing.is_dropped() => self.cancel(place),
            Err(error) => self.fail(place, writing, error),
            Ok(true) => self.end(place, &writing),
            Ok(false) if writing.is_dropped() => self.cancel(place),
            Ok(false) => {
                let row = &mut self.rows[place];
                row.take_unread(&mut writing.text);
                row.writing = Some(writing);
                row.is_settled = true;
                // Where forced tokens came that were not drafted, the logits after them are wanted.
                if row.go_ahead() {
                    self.go_on(place);
                }
            }
        }
    }

    /// Counts a text that has ended, as its sink was told.
    fn end(&mut self, place: usize, writing: &Writing) {
        let Some(TextEnd { reason, usage, .. }) = writing.text.ended() else { return };
        if *reason == FinishReason::Cancelled {
            return self.cancel(place);
        }
        self.desk.count(|counts| {
            counts.ended += 1;
            counts.text_tokens += usage.completion_tokens as u64;
            counts.forced_tokens += usage.forced_tokens as u64;
        });
        self.remove(place);
    }

    /// Removes the texts that nobody wants any more and whose masks are not being made, and lets a
    /// search end that waits.
    fn drop_unwanted(&mut self) {
        if self.search.as_ref().is_some_and(Searching::is_unwanted) {
            self.fail_search(SequencesError::Engine("nobody wants the search any more".to_owned()));
        }
        for place in (0..self.rows.len()).rev() {
            if self.rows[place].writing.as_ref().is_some_and(|writing| writing.is_dropped()) {
                self.cancel(place);
            }
        }
    }

    fn cancel(&mut self, place: usize) {
        self.desk.count(|counts| counts.cancelled += 1);
        self.remove(place);
    }

    fn fail(&mut self, place: usize, mut writing: Box<Writing>, error: EngineError) {
        self.desk.count(|counts| counts.failed += 1);
        writing.fail(error);
        self.remove(place);
    }

    /// Ends a text's part in the model; its pages are kept for others that begin as it does.
    fn remove(&mut self, place: usize) {
        let row = self.rows.remove(place);
        row.ahead.iter().for_each(|ahead| self.count_draft(ahead));
        let is_short = row.read < SequencesOptions::PAGE_TOKENS;
        let sequence = match row.sequence {
            Some(sequence) if !is_short => sequence,
            sequence => {
                sequence.into_iter().for_each(|sequence| self.give_up(sequence));
                return self.forget_draft(row.number);
            }
        };
        let (number, mut tokens) = (row.number, row.tokens);
        tokens.truncate(row.read);
        self.kept.push_back(IdleSequence { number, sequence, tokens });
        self.draft_model.iter_mut().for_each(|model| model.keep(number));
        if self.kept.len() > self.options.max_texts {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let oldest = self.kept.pop_front();
        let Some(IdleSequence { number, sequence, .. }) = oldest else { return false };
        self.give_up(sequence);
        self.forget_draft(number);
        true
    }

    fn give_up(&mut self, sequence: SequenceId) {
        self.sequences.remove(sequence).expect("the sequence is a row's or a kept one");
    }

    /// Lets the oldest text that gave its pages up go on, if there are pages for it and one more
    /// for each of the others, or nobody else is there.
    fn unpark(&mut self) {
        let beams = self.search.as_ref().filter(|search| search.has_begun());
        let others = self.rows.iter().filter(|row| !row.is_parked).count()
            + beams.map_or(0, |search| search.width);
        let Some(place) = self.rows.iter().position(|row| row.is_parked) else { return };
        let needed = self.rows[place].tokens.len().div_ceil(SequencesOptions::PAGE_TOKENS) + others;
        while self.sequences.free_pages() < needed && self.forget_oldest() {}
        self.rows[place].is_parked = others > 0 && self.sequences.free_pages() < needed;
    }

    /// Shares of the next pass. Texts that are being written get what they want, prompts a part of
    /// the rows, each a fair share of it; a search has `beams` rows besides.
    fn plan(&mut self, beams: usize) -> Plan {
        let goes: Vec<bool> = (0..self.rows.len()).map(|place| self.begin(place)).collect();
        let max_rows = self.sequences.options().max_rows - beams;
        let someone_writes = beams > 0 || self.rows.iter().any(Row::writes);
        let prompt_rows = if someone_writes { self.options.prompt_rows } else { max_rows };
        let is_small = |row: &Row| row.writes() && row.unread() <= self.options.prompt_rows;
        let wants = |small: bool| -> Vec<usize> {
            let want = |(row, &goes): (&Row, &bool)| match goes && is_small(row) == small {
                true => row.unread(),
                false => 0,
            };
            self.rows.iter().zip(&goes).map(want).collect()
        };
        let (texts, prompts) = (wants(true), wants(false));
        let for_texts = match prompts.iter().any(|&want| want > 0) {
            true => max_rows - prompt_rows.min(max_rows.saturating_sub(self.options.max_texts)),
            false => max_rows,
        };
        let texts = shares(for_texts, &texts);
        let left = max_rows - texts.iter().sum::<usize>();
        let prompts = shares(prompt_rows.min(left), &prompts);
        let given = texts.iter().zip(&prompts).map(|(text, prompt)| text + prompt);
        let shares = given.enumerate().filter(|(_, count)| *count > 0);
        let mut plan: Plan =
            shares.map(|(place, count)| Share { place, count, draft: Vec::new() }).collect();
        let left = max_rows - plan.iter().map(|share| share.count).sum::<usize>();
        self.draft_all(&mut plan, left, someone_writes);
        plan
    }

    /// Gives a text that can go its sequence; false where it cannot go, or is better begun later.
    fn begin(&mut self, place: usize) -> bool {
        if !self.rows[place].can_go() {
            return false;
        }
        if self.rows[place].sequence.is_some() {
            return self.end_draft(place);
        }
        // What another has read tells no likelihoods.
        let beginning = match self.rows[place].scores {
            Some(_) => Begin::Empty,
            None => self.beginning_of(place),
        };
        let begun = match beginning {
            Begin::Later => return false,
            Begin::Empty => (self.sequences.add(), 0),
            Begin::As(other, sequence, tokens) => {
                let number = self.rows[place].number;
                self.draft_model.iter_mut().for_each(|model| model.begin_as(number, other, tokens));
                (self.sequences.fork(sequence, tokens), tokens)
            }
        };
        let (sequence, tokens) = begun;
        let row = &mut self.rows[place];
        row.sequence =
            Some(sequence.expect("there is a place for each text, and whole pages are shared"));
        row.read = tokens;
        self.desk.count(|counts| counts.shared_tokens += tokens as u64);
        true
    }

    /// The longest beginning that another text has in whole pages. At least one token is left to be
    /// read, for the logits after it.
    fn beginning_of(&self, place: usize) -> Begin {
        let tokens = &self.rows[place].tokens;
        let most = tokens.len() - 1;
        let common = |other: &[TokenId]| {
            let same = tokens[..most].iter().zip(other).take_while(|(a, b)| a == b).count();
            same - same % SequencesOptions::PAGE_TOKENS
        };
        let mut best = (0, Begin::Empty);
        for kept in &self.kept {
            let same = common(&kept.tokens);
            if same > best.0 {
                best = (same, Begin::As(kept.number, kept.sequence, same));
            }
        }
        for row in self.rows[..place].iter().filter(|row| !row.is_parked) {
            let same = common(&row.tokens);
            if same > best.0 {
                let read = |sequence| match row.read >= same {
                    true => Begin::As(row.number, sequence, same),
                    false => Begin::Later,
                };
                best = (same, row.sequence.map_or(Begin::Later, read));
            }
        }
        best.1
    }

    fn pass(&mut self, plan: &Plan, beams: usize) {
        let tokens: Vec<Vec<TokenId>> = plan
            .iter()
            .map(|Share { place, count, draft }| {
                let row = &self.rows[*place];
                [&row.tokens[row.read..row.read + count], draft].concat()
            })
            .collect();
        let stretch = |(share, tokens)| {
            let &Share { place, count, ref draft } = share;
            let row = &self.rows[place];
            Stretch {
                sequence: row.sequence.expect("a row that goes was begun"),
                tokens,
                wants_logits: count == row.unread() && draft.is_empty(),
            }
        };
        let mut stretches: Vec<Stretch<'_>> =
            plan.iter().zip(tokens.iter().map(Vec::as_slice)).map(stretch).collect();
        let of_beams = self.search.as_ref().filter(|_| beams > 0);
        stretches.extend(of_beams.into_iter().flat_map(|search| search.stretches(beams)));
        let began = Instant::now();
        let passed = self.sequences.pass(&stretches);
        let took = began.elapsed();
        drop(stretches);
        match passed {
            Ok(()) => {}
            // Without drafts, before anybody gives up pages.
            Err(SequencesError::NoRoom { .. })
                if plan.iter().any(|share| !share.draft.is_empty()) =>
            {
                let without = |share: &Share| Share { draft: Vec::new(), ..*share };
                return self.pass(&plan.iter().map(without).collect(), beams);
            }
            Err(SequencesError::NoRoom { .. }) => return self.make_room(plan),
            // A defect: the texts of the pass break off, and others go on.
            Err(error) => {
                if beams > 0 {
                    self.fail_search(error.clone());
                }
                for &Share { place, .. } in plan.iter().rev() {
                    self.break_off(place, error.clone());
                }
                return;
            }
        }
        self.pass_time = took;
        let began = Instant::now();
        let rows = beams + plan.iter().map(Share::rows).sum::<usize>();
        let mut prompt_tokens = 0;
        if let Some(search) = self.search.as_mut().filter(|_| beams > 0) {
            search.take_logits(&*self.sequences, plan.len(), beams);
        }
        // What is chosen may end a text, but none is removed before it is settled: places stay.
        let mut before_items = Vec::new();
        for (number, share) in plan.iter().enumerate() {
            let &Share { place, count, .. } = share;
            let row = &mut self.rows[place];
            row.spent.count_pass(took, share.rows() as f64 / rows as f64, row.read < row.prompt);
            prompt_tokens += row.prompt.saturating_sub(row.read).min(count) as u64;
            row.read += count;
            let Some(logits) = self.sequences.logits(number) else { continue };
            match row.is_settled && row.writing.is_some() {
                true if row.is_before_item() => {
                    row.ahead = Some(Ahead::new(Vec::new(), logits.to_vec()));
                    before_items.push(place);
                }
                true => Self::choose_of(&self.desk, row, logits),
                false => row.ahead = Some(Ahead::new(Vec::new(), logits.to_vec())),
            }
        }
        let mut failed = self.score(plan);
        failed.extend(self.verify(plan));
        failed.sort_by_key(|(place, _)| *place);
        let chose = began.elapsed();
        self.desk.count(|counts| {
            counts.passes += 1;
            counts.rows += rows as u64;
            counts.prompt_tokens += prompt_tokens;
            counts.pass_seconds += took.as_secs_f64();
            counts.choose_seconds += chose.as_secs_f64();
        });
        // Their passes come after all logits of this one are taken.
        for place in before_items {
            self.search(place);
        }
        // Last, since places change.
        for (place, error) in failed.into_iter().rev() {
            self.break_off(place, error);
        }
    }

    /// Finds likelihoods of prompts in the pass that has been made, and lets the texts begin whose
    /// prompts are through; returns those that failed, in order.
    fn score(&mut self, plan: &Plan) -> Vec<(usize, SequencesError)> {
        let mut failed = Vec::new();
        for (number, &Share { place, count, .. }) in plan.iter().enumerate() {
            let row = &mut self.rows[place];
            let Some(scores) = &mut row.scores else { continue };
            let prompt = &row.tokens[..row.prompt];
            let read = (row.read - count, count);
            if let Err(error) = scores.add(&mut *self.sequences, number, prompt, read) {
                failed.push((place, error));
                continue;
            }
            let Some(found) = scores.take(row.prompt).filter(|_| row.read >= row.prompt) else {
                continue;
            };
            row.scores = None;
            let Some(mut writing) = row.writing.take() else { continue };
            if !writing.is_dropped() {
                (writing.sink)(Update::Prompt(found));
            }
            self.desk.hand_over(Job { row: row.number, writing });
        }
        failed
    }

    /// Forgets a text that has ended, or takes the pages of the youngest one.
    fn make_room(&mut self, plan: &Plan) {
        if self.forget_oldest() {
            return;
        }
        let youngest = self.rows.iter().rposition(|row| row.sequence.is_some());
        let holders = self.rows.iter().filter(|row| row.sequence.is_some()).count();
        match youngest {
            Some(place) if holders > 1 || self.search_holds() => self.park(place),
            // A text alone has room for all that it may become, and so has a search.
            _ => {
                let error = SequencesError::NoRoom { needed: 1, free: 0 };
                self.fail_search(error.clone());
                plan.iter().rev().for_each(|share| self.break_off(share.place, error.clone()));
            }
        }
    }

    /// Ends a text by a defect of the model's part.
    fn break_off(&mut self, place: usize, error: SequencesError) {
        match self.rows[place].writing.take() {
            Some(writing) => self.fail(place, writing, error.into()),
            None => self.rows[place].broken = Some(error),
        }
    }

    /// Takes a text one token or one item further, whose mask and logits are there.
    fn go_on(&mut self, place: usize) {
        if self.rows[place].is_before_item() {
            return self.search(place);
        }
        let row = &mut self.rows[place];
        let Some(ahead) = row.ahead.take() else { return };
        Self::choose_of(&self.desk, row, ahead.logits());
        row.ahead = Some(ahead);
        row.go_ahead();
    }

    /// Searches a text's next item and hands the text over to be settled.
    fn search(&mut self, place: usize) {
        let Some(logits) = self.rows[place].ahead.as_ref().map(|ahead| ahead.logits().to_vec())
        else {
            return;
        };
        // Where its pages were given up meanwhile, it is read again and then searched.
        if !self.end_draft(place) {
            return;
        }
        let row = &mut self.rows[place];
        let Some(sequence) = row.sequence else { return };
        let Some(mut writing) = row.writing.take() else { return };
        row.is_settled = false;
        let number = row.number;
        writing.spent += std::mem::take(&mut row.spent);
        let began = Instant::now();
        let outcome = loop {
            let Writing { text, sink, is_dropped, spent } = &mut *writing;
            let mut beams =
                SequenceBeams::new(&mut *self.sequences, sequence, &logits, self.num_tokens);
            let searched = catch_unwind(AssertUnwindSafe(|| {
                text.search(&mut beams, &mut |event| tell(sink, is_dropped, event, || *spent))
            }));
            let ((passes, rows), needs_room) = (beams.passes, beams.needs_room);
            spent.num_passes += passes as usize;
            self.desk.count(|counts| {
                counts.passes += passes;
                counts.rows += rows;
            });
            match searched {
                Ok(Err(_)) if needs_room && self.make_room_beside(place) => {}
                // A search for whole texts gives no pages up: this text does, and comes after it.
                Ok(Err(_)) if needs_room && self.search_holds() => {
                    let row = &mut self.rows[place];
                    (row.writing, row.is_settled) = (Some(writing), true);
                    return self.park(place);
                }
                Ok(searched) => break searched.map_err(EngineError::from),
                Err(_) => break Err(EngineError::Panicked),
            }
        };
        let took = began.elapsed();
        writing.spent.passes += took;
        self.desk.count(|counts| counts.pass_seconds += took.as_secs_f64());
        match outcome {
            Ok(()) => {
                self.rows[place].take_unread(&mut writing.text);
                self.desk.hand_over(Job { row: number, writing });
            }
            Err(error) => {
                self.desk.hand_back(Settled { row: number, writing, outcome: Err(error) });
            }
        }
    }

    /// Forgets a text that has ended, or takes the pages of the youngest one beside a row; false
    /// where there is none.
    fn make_room_beside(&mut self, place: usize) -> bool {
        if self.forget_oldest() {
            return true;
        }
        let holds = |at: &usize| *at != place && self.rows[*at].sequence.is_some();
        match (0..self.rows.len()).rev().find(holds) {
            Some(youngest) => {
                self.park(youngest);
                true
            }
            None => false,
        }
    }

    /// Takes the pages of a text, which is read again later.
    fn park(&mut self, place: usize) {
        let row = &mut self.rows[place];
        (row.is_parked, row.read) = (true, 0);
        let ahead = row.ahead.take();
        let sequence = row.sequence.take();
        sequence.into_iter().for_each(|sequence| self.give_up(sequence));
        ahead.iter().for_each(|ahead| self.count_draft(ahead));
        self.forget_draft(self.rows[place].number);
        self.desk.count(|counts| counts.preempted += 1);
    }

    /// Draws a text's next token and hands it over to be settled.
    fn choose_of(desk: &Desk, row: &mut Row, logits: &[f32]) {
        let Some(mut writing) = row.writing.take() else { return };
        row.is_settled = false;
        let began = Instant::now();
        let Writing { text, sink, is_dropped, spent } = &mut *writing;
        *spent += std::mem::take(&mut row.spent);
        let chosen = catch_unwind(AssertUnwindSafe(|| {
            text.choose(logits, &mut |event| tell(sink, is_dropped, event, || *spent))
        }));
        spent.choices += began.elapsed();
        let error = match chosen {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.into()),
            Err(_) => Some(EngineError::Panicked),
        };
        match error {
            None => {
                row.take_unread(&mut writing.text);
                desk.hand_over(Job { row: row.number, writing });
            }
            Some(error) => {
                desk.hand_back(Settled { row: row.number, writing, outcome: Err(error) })
            }
        }
    }

    fn publish(&self) {
        let writing = self.rows.len();
        let parked = self.rows.iter().filter(|row| row.is_parked).count();
        let free_pages = self.sequences.free_pages();
        self.desk.count(|counts| {
            (counts.writing, counts.parked, counts.free_pages) = (writing, parked, free_pages);
        });
    }
}

//! Runner's part of drafts: what a pass reads behind a text's tokens, and what came true of it.

use std::time::Instant;

use palmette_model::SequencesError;

use super::{Plan, Runner, Share};
use crate::engine::draft_model::Wish;
use crate::engine::drafts::{Ahead, Guesser, draft};

impl Runner {
    /// Gives the shares of a plan their drafts, which have so many rows together: what is looked up
    /// first, since it costs nothing; where there is nothing, what the draft model guesses.
    pub(super) fn draft_all(&mut self, plan: &mut Plan, mut left: usize, someone_writes: bool) {
        // Places in the plan, and the most tokens of their guesses.
        let mut asked: Vec<(usize, usize)> = Vec::new();
        for (number, share) in plan.iter_mut().enumerate() {
            let most = self.longest_draft(share, left);
            let row = &mut self.rows[share.place];
            if most > 0 {
                let most = row.lengths[Guesser::LookUp as usize].next(most);
                share.draft = draft(&row.tokens, most).to_vec();
                row.guesser = Guesser::LookUp;
                left -= share.draft.len();
            }
            let model = self.draft_model.as_ref();
            let can_guess = model.is_some_and(|model| model.can_guess(row.number));
            if !can_guess || !share.draft.is_empty() {
                continue;
            }
            let most = match most {
                0 => 0,
                most => row.lengths[Guesser::Model as usize].next(most),
            };
            // A prompt is read along.
            if most > 0 || !row.writes() {
                asked.push((number, most));
                left -= most;
            }
        }
        self.guess(plan, &asked, someone_writes);
    }

    /// Tokens of the draft that a text's pass may read behind the last of its tokens.
    fn longest_draft(&self, share: &Share, left: usize) -> usize {
        let row = &self.rows[share.place];
        let is_last = share.count == row.unread() && row.scores.is_none();
        if !is_last || row.is_before_item() {
            return 0;
        }
        // The last token of a text is not read, nor is one that an item's search chooses.
        let room = row.most.saturating_sub(row.tokens.len() + 1);
        self.options.draft_tokens.min(room).min(left)
    }

    /// Has the draft model guess for the shares at these places of a plan.
    fn guess(&mut self, plan: &mut Plan, asked: &[(usize, usize)], someone_writes: bool) {
        let Self { draft_model: Some(model), rows, options, .. } = self else { return };
        let wish = |&(number, most): &(usize, usize)| {
            let row = &rows[plan[number].place];
            let rules = row.rules.as_ref()?;
            Some((number, Wish { number: row.number, tokens: &row.tokens, most, rules }))
        };
        let (numbers, wishes): (Vec<usize>, Vec<Wish<'_>>) = asked.iter().filter_map(wish).unzip();
        if wishes.is_empty() {
            return;
        }
        // As many rows of prompts as the pass has, so that texts stall no longer for both.
        let texts = wishes.iter().filter(|wish| wish.most > 0).count();
        let max_rows = match someone_writes {
            true => options.prompt_rows + texts * (options.draft_tokens + 1),
            false => usize::MAX,
        };
        let (began, passes) = (Instant::now(), model.passes());
        let guesses = model.guess(&wishes, max_rows);
        let passes = model.passes() - passes;
        for (number, guess) in numbers.into_iter().zip(guesses) {
            if !guess.is_empty() {
                rows[plan[number].place].guesser = Guesser::Model;
            }
            plan[number].draft = guess;
        }
        let took = began.elapsed().as_secs_f64();
        self.desk.count(|counts| {
            counts.draft_passes += passes;
            counts.draft_seconds += took;
        });
    }

    /// Forgets what the draft model read of a text.
    pub(super) fn forget_draft(&mut self, number: u64) {
        self.draft_model.iter_mut().for_each(|model| model.forget(number));
    }

    /// Takes the drafted tokens that did not come true from a text's sequence; false where its
    /// pages are given up for that.
    pub(super) fn end_draft(&mut self, place: usize) -> bool {
        let Some(ahead) = self.rows[place].ahead.take() else { return true };
        self.count_draft(&ahead);
        let row = &mut self.rows[place];
        let (drafted, came_true) = ahead.counts();
        if drafted > 0 {
            row.lengths[row.guesser as usize].learn(drafted, came_true);
        }
        let (Some(sequence), true) = (row.sequence, ahead.has_more()) else { return true };
        let read = row.read;
        loop {
            match self.sequences.truncate(sequence, read) {
                Ok(sequence) => {
                    self.rows[place].sequence = Some(sequence);
                    return true;
                }
                // A place or a page that it takes for a moment.
                Err(_) if self.forget_oldest() => {}
                Err(_) => {
                    self.park(place);
                    return false;
                }
            }
        }
    }

    pub(super) fn count_draft(&self, ahead: &Ahead) {
        let (drafted, came_true) = ahead.counts();
        self.desk.count(|counts| {
            counts.drafted_tokens += drafted as u64;
            counts.draft_hits += came_true as u64;
        });
    }

    /// Takes the logits of the drafts of the pass that has been made, and draws by the first of
    /// them; returns the texts whose logits failed, in order.
    pub(super) fn verify(&mut self, plan: &Plan) -> Vec<(usize, SequencesError)> {
        let mut failed = Vec::new();
        let most = self.sequences.options().max_sequences;
        for (number, Share { place, count, draft }) in plan.iter().enumerate() {
            if draft.is_empty() {
                continue;
            }
            let (mut rows, mut at, end) = (Vec::new(), count - 1, count + draft.len());
            while at < end {
                let some = at..end.min(at + most);
                at = some.end;
                match self.sequences.logits_of_rows(number, some) {
                    Ok(Some(logits)) => rows.extend_from_slice(logits),
                    Ok(None) => unreachable!("rows of the pass, no more than sequences"),
                    Err(error) => {
                        failed.push((*place, error));
                        break;
                    }
                }
            }
            let row = &mut self.rows[*place];
            let ahead = Ahead::new(draft.clone(), rows);
            let is_whole = failed.last().is_none_or(|(of, _)| of != place);
            if is_whole {
                row.ahead = Some(ahead);
            }
            if is_whole && row.is_settled && row.writing.is_some() {
                self.go_on(*place);
            }
        }
        failed
    }
}

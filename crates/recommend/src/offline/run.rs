//! Runs: histories come in, answers go out in their order.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::counts::AnswerCounts;
use super::error::OfflineError;
use super::record::AnswerRecord;
use super::sink::AnswerSink;
use crate::batch::side_by_side;
use crate::error::RecommendError;
use crate::fields::PromptFields;
use crate::named_item::NamedItem;
use crate::question::CheckedQuestion;
use crate::recommender::Recommender;
use crate::request::Recommendations;
use crate::worker::Worker;

/// Histories that are answered side by side, for each worker: enough that workers seldom wait for
/// the last one.
const ASKED_AT_ONCE: usize = 64;

/// Items of such histories, at most about.
const ITEMS_AT_ONCE: usize = 1 << 20;

/// Names of fields that are remembered as not read.
const MOST_UNREAD: usize = 16;

/// A history as its source gives it, and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHistory {
    /// The user's id, where the source has one.
    pub user: Option<String>,
    /// Fields of the prompt that are its own; those that no text of the model's prompts reads are
    /// [left out](OfflineRun::unread_fields).
    pub fields: PromptFields,
    /// The items, oldest first; or the reason why the record cannot be read, which becomes its
    /// answer's error.
    pub items: Result<Vec<NamedItem>, String>,
}

/// Outcome of a history that was handed to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStep {
    /// An earlier run had answered it.
    Kept,
    /// History that waits for others, to be answered with them.
    Waiting,
    /// History that was answered, with all that waited.
    Answered,
}

/// One question asked about each of many histories, whose answers are equal however many workers
/// there are.
///
/// Rows of different histories share no products: each worker answers one history after another, on
/// one thread. Histories wait until there are some for each worker; [`finish`](Self::finish)
/// answers the last of them.
pub struct OfflineRun<'a> {
    question: CheckedQuestion,
    workers: Vec<Worker>,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    waiting: Vec<WaitingHistory>,
    waiting_items: usize,
    counts: AnswerCounts,
    unread_fields: BTreeSet<String>,
}

/// A history that has been read, and the question about it where its items can be read.
#[derive(Debug)]
struct WaitingHistory {
    user: Option<String>,
    question: Result<CheckedQuestion, String>,
}

impl std::fmt::Debug for OfflineRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("OfflineRun");
        shown.field("workers", &self.workers.len()).field("counts", &self.counts);
        shown.field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl<'a> OfflineRun<'a> {
    /// A run of this question, whose own history is not asked about, on so many workers of one
    /// thread each, at most one for each of rayon's.
    ///
    /// # Errors
    /// When a worker cannot be [prepared](Worker::prepare): what is wrong with all answers is told
    /// once.
    pub fn new(
        recommender: &Arc<Recommender>,
        question: CheckedQuestion,
        num_workers: usize,
    ) -> Result<Self, RecommendError> {
        // More than rayon has threads would never work at once.
        let num_workers = num_workers.clamp(1, rayon::current_num_threads().max(1));
        let worker = |_| Worker::new(Arc::clone(recommender), 1);
        let mut workers: Vec<Worker> = (0..num_workers).map(worker).collect();
        for worker in &mut workers {
            question.with_request(false, |request| worker.prepare(request))?;
        }
        Ok(Self {
            question,
            workers,
            is_cancelled: &|| false,
            waiting: Vec::new(),
            waiting_items: 0,
            counts: AnswerCounts::default(),
            unread_fields: BTreeSet::new(),
        })
    }

    /// Ends the run where the condition holds; it is looked at in each stage of each search, on
    /// every worker.
    #[must_use]
    pub fn cancel_when(self, is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { is_cancelled, ..self }
    }

    /// The counts so far, without histories that wait.
    pub fn counts(&self) -> &AnswerCounts {
        &self.counts
    }

    /// Names of the histories' fields that no text of the model's prompts reads: the first of them.
    pub fn unread_fields(&self) -> &BTreeSet<String> {
        &self.unread_fields
    }

    /// Takes the next history, and answers it with those that wait where they are enough.
    ///
    /// # Errors
    /// When the sink takes no records or was of other histories, or the run was cancelled.
    pub fn push(
        &mut self,
        history: NamedHistory,
        sink: &mut impl AnswerSink,
    ) -> Result<RunStep, OfflineError> {
        let NamedHistory { user, mut fields, items } = history;
        if let Some(kept) = sink.next_kept(user.as_deref())? {
            self.counts.add(&kept);
            self.counts.kept += 1;
            return Ok(RunStep::Kept);
        }
        // There is a worker at least, and all have one recommender.
        let prompts = self.workers.first().map(|worker| worker.recommender().prompts());
        let unread = prompts.map(|of| of.drop_unread(&mut fields)).unwrap_or_default();
        let room = MOST_UNREAD.saturating_sub(self.unread_fields.len());
        self.unread_fields.extend(unread.into_iter().take(room));
        let about = |items| self.question.about(items, fields).map_err(|faults| faults.to_string());
        let question = items.and_then(about);
        self.waiting_items += question.as_ref().map_or(0, |of| of.named().len());
        self.waiting.push(WaitingHistory { user, question });
        let most = ASKED_AT_ONCE * self.workers.len();
        if self.waiting.len() < most && self.waiting_items < ITEMS_AT_ONCE {
            return Ok(RunStep::Waiting);
        }
        self.answer_waiting(sink)?;
        Ok(RunStep::Answered)
    }

    /// Answers the histories that still wait; the counts of all.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self, sink: &mut impl AnswerSink) -> Result<AnswerCounts, OfflineError> {
        self.answer_waiting(sink)?;
        Ok(self.counts)
    }

    /// Answers the histories that wait, side by side.
    fn answer_waiting(&mut self, sink: &mut impl AnswerSink) -> Result<(), OfflineError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_items = 0;
        let questions = waiting.iter().filter_map(|one| one.question.as_ref().ok());
        let mut answers = self.answers(questions).into_iter();
        if (self.is_cancelled)() {
            // Some of the answers say so in place of their items.
            return Err(OfflineError::Cancelled);
        }
        let mut records = Vec::with_capacity(waiting.len());
        for WaitingHistory { user, question } in waiting {
            let record = match question {
                Err(reason) => AnswerRecord::from_error(user, reason),
                Ok(question) => {
                    self.counts.add_stranger(&question);
                    let answer = answers.next().expect("one a question");
                    AnswerRecord::from_answer(user, &question, answer.as_ref())
                }
            };
            self.counts.add(&record);
            records.push(record);
        }
        sink.push(records)
    }

    fn answers<'q>(
        &mut self,
        questions: impl Iterator<Item = &'q CheckedQuestion>,
    ) -> Vec<Result<Recommendations, RecommendError>> {
        let is_cancelled = self.is_cancelled;
        let questions: Vec<&CheckedQuestion> = questions.collect();
        side_by_side(&mut self.workers, &questions, |worker, question| {
            worker.answer(question, false, &mut |_| match is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })
    }
}

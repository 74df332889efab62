//! Work of the engine: a checked question with its recommender, and what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use palmette_recommend::{
    CheckedQuestion, KnownPrompt, Mode, Planned, RecommendError, Recommendations, Recommender,
    Request,
};
use palmette_serve_schedule::{Job, Micros, Refusal, Shape, StopReason};
use tokio::sync::oneshot;

use crate::wire::Timings;

/// A checked question on its way to a worker.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) recommender: Arc<Recommender>,
    /// Set once nobody asks the recommender any more: no worker is kept for it then.
    pub(crate) is_over: Arc<AtomicBool>,
    pub(crate) question: CheckedQuestion,
}

impl Work {
    /// Sizes of it for the scheduler, and those of the narrower search.
    pub(crate) fn shapes(
        &self,
        model: u32,
        threads: usize,
    ) -> Result<(Shape, Option<Shape>), RecommendError> {
        let question = &self.question;
        let shape = |narrowed| {
            question.with_request(narrowed, |request| {
                let planned = self.recommender.planned(request, threads)?;
                let known = self.recommender.known_prompt(request)?;
                Ok::<Shape, RecommendError>(shape_of(
                    &self.recommender,
                    request,
                    &planned,
                    model,
                    known.unwrap_or_else(|| KnownPrompt {
                        tokens: self.recommender.about_prompt_tokens(question.history().len()),
                        known: 0,
                    }),
                    // No level has more prefixes than there are items.
                    question.matching(),
                ))
            })
        };
        let narrower = question.can_be_narrowed().then(|| shape(true)).transpose()?;
        Ok((shape(false)?, narrower))
    }
}

/// Sizes of a request: tokens of its prompt, and rows of the pass after each level. A pass has at
/// most as many rows as the beam is wide, or as there are codes or items.
pub(crate) fn shape_of(
    recommender: &Recommender,
    request: &Request<'_>,
    planned: &Planned,
    model: u32,
    prompt: KnownPrompt,
    most: u64,
) -> Shape {
    let format = recommender.format();
    let mut prefixes = 1_u64;
    let mut rows_of = |(level, &width): (usize, &usize)| {
        // What ends an item is one choice.
        let codes = format.levels.get(level).map_or(1, |level| level.num_codes());
        prefixes = prefixes.saturating_mul(u64::from(codes));
        (width as u64).min(prefixes).min(most)
    };
    let is_draft = matches!(request.mode, Mode::Draft(_));
    let read = if is_draft { 0 } else { planned.widths.len() - 1 };
    let rows: Vec<u64> = planned.widths[..read].iter().enumerate().map(&mut rows_of).collect();
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    // Free text takes a pass of one row for each token at most, and reads the prompt anew for each
    // item that is explained, where it is not known.
    let explained = request.explain_items.map_or((0, 0), |of| (of.items, of.max_tokens));
    let thought = request.think.map_or(0, |think| think.max_tokens);
    let free = thought.saturating_add(explained.0.saturating_mul(explained.1)) as u64;
    let prompt_tokens = prompt.tokens.saturating_mul(1 + explained.0);
    let known_tokens = prompt.known.saturating_mul(1 + explained.0);
    Shape {
        model,
        mode: match recommender.mode_of(request) {
            Mode::Auto | Mode::Beam => 0,
            Mode::Probed(_) => 1,
            Mode::Draft(_) => 2,
            Mode::Proven(_) => 3,
        },
        prompt_tokens: count(prompt_tokens as u64),
        known_tokens: count(known_tokens as u64),
        passes: count((read as u64).saturating_add(free)),
        rows: count(rows.iter().sum::<u64>().saturating_add(free)),
        widest: count(rows.iter().copied().max().unwrap_or(0)),
        bytes: planned.bytes as u64,
    }
}

/// Work on its way to the scheduler.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) job: Job,
    pub(crate) work: Arc<Work>,
    pub(crate) reply: oneshot::Sender<Outcome>,
    pub(crate) stop: Arc<Stop>,
}

/// The end of work.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Box<Answer>),
    /// Not begun, since it would end too late or there is not the room.
    Refused {
        why: Refusal,
        finish: Micros,
        retry_after: Micros,
    },
    /// Begun or queued, and broken off.
    Stopped(StopReason),
    Failed(RecommendError),
    /// A defect: the worker panicked.
    Panicked,
    /// The engine has ended.
    Ended,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) found: Recommendations,
    /// Cursor of the items that come next.
    pub(crate) cursor: Option<String>,
    pub(crate) narrowed: bool,
    pub(crate) timings: Timings,
}

/// Stop flag of running work: written by the scheduler, read between stages.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

impl Stop {
    pub(crate) fn set(&self, why: StopReason) {
        let code = match why {
            StopReason::Deadline => 1,
            StopReason::Cancelled => 2,
            StopReason::Drained => 3,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<StopReason> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(StopReason::Deadline),
            2 => Some(StopReason::Cancelled),
            _ => Some(StopReason::Drained),
        }
    }
}

//! Events and actions: the closed list of what can happen and of what is to be done.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cost::CostModel;
use crate::job::{Job, Micros};

/// Event that the caller hands to the scheduler. Events have one order, the caller's, and their
/// times never go back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A request came.
    Arrive(Job),
    /// A running job ended a stage of its work.
    Phase {
        /// The stream it runs on.
        stream: u32,
        /// The job.
        job: u64,
        /// The number of the stage, from 0.
        phase: u8,
    },
    /// All jobs of a stream's batch have ended, whether they were answered, stopped or failed.
    Ended {
        /// The stream.
        stream: u32,
        /// Time from start to end.
        worked: Micros,
    },
    /// A client went away.
    Cancel {
        /// The job.
        job: u64,
    },
    /// A time asked for by [`Action::WakeAt`] has come. Harmless at any other time.
    Wake,
    /// The process is to end: new jobs are refused, admitted ones go on. A second time: the grace
    /// is over, queued jobs end and running ones are asked to stop.
    Drain,
    /// There are more or fewer streams. Those with numbers beyond it take no new work.
    Resize {
        /// The number of streams.
        streams: u32,
    },
    /// The costs of a model, new or measured again. What was learnt about the former ones is
    /// dropped.
    Costs {
        /// Index of the model.
        model: u32,
        /// The costs.
        costs: CostModel,
    },
}

/// Action for the caller to take, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start the jobs as one batch on an idle stream.
    Start {
        /// The stream, idle until now.
        stream: u32,
        /// The jobs, most urgent first.
        jobs: Jobs,
        /// Threads to compute with. Those of other idle streams may be among them: these get no
        /// work until this one ends.
        threads: u32,
    },
    /// Refuse a job that has just arrived: its end.
    Refuse {
        /// The job.
        job: u64,
        /// The reason.
        why: Refusal,
        /// Predicted end, from now; 0 where time was not the reason. If the job would be in time
        /// and make another one late, that lateness is added to its own deadline.
        finish: Micros,
        /// Time to wait before asking again: how late it would be, spread by ±20%. 0 where time was
        /// not the reason.
        retry_after: Micros,
    },
    /// Stop a job. A queued one has ended by this; a running one is to be stopped between stages,
    /// and [`Event::Ended`] follows.
    Stop {
        /// The job.
        job: u64,
        /// The reason.
        why: StopReason,
    },
    /// Send [`Event::Wake`] at this time, instead of any asked for before.
    WakeAt(Micros),
}

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The job, or one that was promised its time, would be late.
    Late,
    /// The job does not fit into memory or a batch, were it alone; or too many are queued.
    Memory,
    /// The process is ending.
    Draining,
}

/// Reason of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The deadline has passed, or will before the job can end.
    Deadline,
    /// The client went away.
    Cancelled,
    /// The grace of a drain is over.
    Drained,
}

/// Job of a batch that starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchJob {
    /// The job.
    pub job: u64,
    /// Do the narrower work instead of the work wanted.
    pub narrowed: bool,
}

const INLINE: usize = 8;

/// Jobs of a batch, the first eight without an allocation.
#[derive(Clone, Default)]
pub struct Jobs {
    len: usize,
    first: [BatchJob; INLINE],
    more: Vec<BatchJob>,
}

impl Jobs {
    /// The jobs, most urgent first.
    pub fn iter(&self) -> impl Iterator<Item = BatchJob> {
        let first = &self.first[..self.len.min(INLINE)];
        first.iter().chain(&self.more).copied()
    }

    /// The number of jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, job: BatchJob) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = job,
            None => self.more.push(job),
        }
        self.len += 1;
    }
}

impl FromIterator<BatchJob> for Jobs {
    fn from_iter<I: IntoIterator<Item = BatchJob>>(jobs: I) -> Self {
        let mut all = Self::default();
        jobs.into_iter().for_each(|job| all.push(job));
        all
    }
}

impl PartialEq for Jobs {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Jobs {}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Jobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<BatchJob>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Line of a recording: a JSON object of its own.
///
/// A recording begins with [`Record::Begin`]; then each event is followed by the actions it led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Record {
    /// `{"config": …, "costs": […]}`: the arguments of [`Scheduler::new`](crate::Scheduler::new).
    Begin {
        /// The configuration.
        config: crate::Config,
        /// The cost models.
        costs: Vec<CostModel>,
    },
    /// `{"now": …, "event": …}`: the arguments of [`Scheduler::step`](crate::Scheduler::step).
    Event {
        /// The time.
        now: Micros,
        /// The event.
        event: Event,
    },
    /// `{"actions": […]}`: the actions of the event before; this line may be left out where there
    /// are none.
    Actions {
        /// The actions.
        actions: Vec<Action>,
    },
}

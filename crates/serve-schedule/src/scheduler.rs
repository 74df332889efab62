//! State machine of the scheduler: one event in, actions out.

use serde::{Deserialize, Serialize};

use crate::admission::Outlook;
use crate::batch::{self, Limits, Predictor};
use crate::config::Config;
use crate::correction::{Corrections, Margins};
use crate::cost::{CostModel, Work};
use crate::event::{Action, BatchJob, Event, Jobs, Refusal, StopReason};
use crate::job::{Class, Job, Micros, Shape};
use crate::queue::{Queue, Queued};

/// Jobs that may be queued in each class; one more is refused for memory.
const MAX_QUEUED: usize = 1 << 16;
/// Cost models that there may be; those beyond are ignored.
const MAX_MODELS: usize = 1 << 12;

/// Scheduler of jobs with deadlines over streams.
///
/// The caller tells it all that happens, in order ([`step`](Self::step)), and does what it says.
///
/// Cost of a step: O(queued jobs × streams) at an arrival, O(queued + streams) else. Buffers are
/// reused: once they have the size of queue and streams, a step allocates nothing, but for a start
/// of more than eight jobs.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: Config,
    predictor: Predictor,
    interactive: Queue,
    bulk: Queue,
    /// At least as many as take work: those that a smaller size took out end what they run.
    streams: Vec<Stream>,
    /// Number of streams that take work.
    active: usize,
    drain: Drain,
    /// The time that was asked for last.
    wake: Micros,
    outlook: Outlook,
    ends: Vec<Micros>,
    ends_before: Vec<Micros>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    /// Drain during which nothing new is admitted.
    Begun,
    /// Drain that is over: the queue is empty.
    Over,
}

/// State of a stream: one batch at a time. An idle stream has no jobs, and no lender.
#[derive(Clone, Debug, Default)]
struct Stream {
    jobs: Vec<Running>,
    class: Class,
    /// Shape of the batch's first job.
    shape: Shape,
    work: Work,
    bytes: u64,
    threads: u32,
    expected: Micros,
    /// The factor that the prediction was corrected by: the cell's, or that of joined threads.
    correction: f64,
    /// Predicted end, with the margin.
    end: Micros,
    /// The stream that runs a batch with this one's threads.
    lent_to: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    id: u64,
    deadline: Micros,
    is_stopping: bool,
}

impl Stream {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.lent_to.is_none()
    }

    fn runs_bulk(&self) -> bool {
        !self.jobs.is_empty() && self.class == Class::Bulk
    }

    /// Predicted end as seen at a time. A batch that has overrun is given a little more, again and
    /// again.
    fn free(&self, now: Micros) -> Micros {
        match self.end < now {
            true => now.plus(Micros(self.expected.0 / 16 + 1)),
            false => self.end,
        }
    }
}

/// Numbers of a scheduler at a moment, for metrics and for whoever waits for a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Interactive jobs queued.
    pub queued: usize,
    /// Bulk jobs queued.
    pub queued_bulk: usize,
    /// Expected time of all queued jobs, each by itself on one stream.
    pub queued_work: Micros,
    /// Streams that take work.
    pub streams: u32,
    /// Streams that run a batch, or whose threads are lent to one.
    pub busy: u32,
    /// Jobs that run.
    pub running: usize,
    /// Planned bytes of the jobs that run.
    pub bytes: u64,
    /// Factor between a prediction and what is promised.
    pub margin: f64,
    /// No new jobs are admitted.
    pub draining: bool,
}

impl Status {
    /// True where no job is queued or runs: after a drain, the end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queued == 0 && self.queued_bulk == 0 && self.running == 0
    }
}

impl Scheduler {
    /// A scheduler without jobs. Numbers of the configuration that are out of range are moved into
    /// it.
    #[must_use]
    pub fn new(config: Config, costs: Vec<CostModel>) -> Self {
        let predictor = Predictor {
            costs,
            corrections: Corrections::default(),
            margins: Margins::new(config.margin),
        };
        let mut scheduler = Self {
            config,
            predictor,
            interactive: Queue::new(config.order),
            bulk: Queue::new(config.order),
            streams: Vec::new(),
            active: 0,
            drain: Drain::No,
            wake: Micros::NEVER,
            outlook: Outlook::default(),
            ends: Vec::new(),
            ends_before: Vec::new(),
        };
        scheduler.resize(config.streams);
        scheduler
    }

    /// Takes an event and adds what is to be done, in order, to `actions`.
    ///
    /// Times never go back from one event to the next. What does not fit the state, such as the end
    /// of a stream that runs nothing, is ignored.
    pub fn step(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Arrive(job) => self.arrive(now, job, actions),
            Event::Ended { stream, worked } => self.ended(stream as usize, worked),
            Event::Cancel { job } => self.cancel(job, actions),
            Event::Drain => self.drain(actions),
            Event::Resize { streams } => self.resize(streams),
            Event::Costs { model, costs } => self.set_costs(model, costs),
            // A stage that has ended says nothing but the time.
            Event::Phase { .. } | Event::Wake => {}
        }
        self.stop_late(now, actions);
        self.dispatch(now, actions);
        self.ask_to_wake(now, actions);
    }

    /// Sets the costs of a model, as [`Event::Costs`] does, which recordings need.
    pub fn set_costs(&mut self, model: u32, costs: CostModel) {
        let place = model as usize;
        if place >= MAX_MODELS {
            return;
        }
        if place >= self.predictor.costs.len() {
            self.predictor.costs.resize(place + 1, CostModel::default());
        }
        self.predictor.costs[place] = costs;
        self.predictor.corrections.forget(model);
    }

    /// The numbers of this moment. O(queued + streams).
    #[must_use]
    pub fn status(&self) -> Status {
        let threads = self.stream_threads();
        let expected = |queued: &Queued| {
            self.predictor.expected(&queued.shape, &Work::of(&queued.shape), threads)
        };
        let queued = self.interactive.iter().chain(self.bulk.iter());
        Status {
            queued: self.interactive.len(),
            queued_bulk: self.bulk.len(),
            queued_work: queued.map(expected).fold(Micros(0), Micros::plus),
            streams: self.active as u32,
            busy: self.streams.iter().filter(|stream| !stream.is_idle()).count() as u32,
            running: self.streams.iter().map(|stream| stream.jobs.len()).sum(),
            bytes: self.bytes(),
            margin: self.predictor.margins.factor(),
            draining: self.drain != Drain::No,
        }
    }

    // Arrival.

    fn arrive(&mut self, now: Micros, job: Job, actions: &mut Vec<Action>) {
        if self.knows(job.id) {
            return;
        }
        let refuse =
            |why, finish, retry_after| Action::Refuse { job: job.id, why, finish, retry_after };
        if self.drain != Drain::No {
            return actions.push(refuse(Refusal::Draining, Micros(0), Micros(0)));
        }
        let wanted = Queued::new(job);
        if self.queue(job.class).len() >= MAX_QUEUED {
            return actions.push(refuse(Refusal::Memory, Micros(0), Micros(0)));
        }
        let tries = [Some(wanted), wanted.narrower()]
            .map(|queued| queued.filter(|queued| self.fits(&queued.shape)));
        let mut late = None;
        for queued in tries.into_iter().flatten() {
            match self.lateness(now, &queued) {
                None => return self.queue_mut(job.class).push(queued),
                Some(lateness) => late = Some(lateness),
            }
        }
        match late {
            // The last one tried does the least work, so it tells the earliest end.
            Some(lateness) => {
                let finish = job.deadline.plus(lateness).since(now);
                actions.push(refuse(Refusal::Late, finish, spread(lateness, job.id)));
            }
            None => actions.push(refuse(Refusal::Memory, Micros(0), Micros(0))),
        }
    }

    /// True where the job could run if it were alone.
    fn fits(&self, shape: &Shape) -> bool {
        shape.bytes <= self.config.memory
            && shape.prompt_tokens <= self.config.batch_tokens
            && shape.widest <= self.config.batch_rows
    }

    /// Lateness of the job, or of the one behind it that it would make the latest; `None` if nobody
    /// would be late.
    fn lateness(&mut self, now: Micros, queued: &Queued) -> Option<Micros> {
        if !self.config.admission {
            return None;
        }
        let class = queued.job.class;
        if let Some(end) = self.end_if_started_now(now, queued) {
            let lateness = end.since(queued.job.deadline);
            return (lateness.0 > 0).then_some(lateness);
        }
        let place = self.queue(class).place(&queued.job);
        let (mut ends, mut before) =
            (std::mem::take(&mut self.ends), std::mem::take(&mut self.ends_before));
        self.walk(now, class, Some((place, queued)), &mut ends);
        let queue = self.queue(class);
        let behind = || queue.iter().enumerate().skip(place);
        let lateness = |end: Micros, deadline: Micros| end.since(deadline);
        let mut worst = lateness(ends[place], queued.job.deadline);
        if worst.0 == 0 && behind().any(|(other, queued)| ends[other + 1] > queued.job.deadline) {
            self.walk(now, class, None, &mut before);
            // One that is late anyway, because something took longer than predicted, keeps nobody
            // out.
            let queue = self.queue(class);
            for (other, queued) in queue.iter().enumerate().skip(place) {
                if before[other] <= queued.job.deadline {
                    worst = worst.max(lateness(ends[other + 1], queued.job.deadline));
                }
            }
        }
        (self.ends, self.ends_before) = (ends, before);
        (worst.0 > 0).then_some(worst)
    }

    /// The predicted end of a job that starts at once, on the threads of all idle streams; `None`
    /// where others wait too, or it has to wait itself.
    fn end_if_started_now(&self, now: Micros, queued: &Queued) -> Option<Micros> {
        let is_alone = self.interactive.is_empty() && self.bulk.is_empty();
        let may_wait = self.config.batch_jobs > 1 && self.config.quota.0 > 0;
        let fits = self.bytes().saturating_add(queued.shape.bytes) <= self.config.memory;
        let idle = self.streams[..self.active].iter().any(Stream::is_idle)
            && (queued.job.class == Class::Interactive || self.may_run_bulk());
        if !(is_alone && fits && idle) || may_wait {
            return None;
        }
        let threads = self.threads_if_last(queued.job.class);
        let (expected, _) = self.expected(&queued.shape, &Work::of(&queued.shape), threads);
        Some(now.plus(self.predictor.promised(expected)))
    }

    /// Predicts the ends of all queued jobs of a class, and of one more at a place.
    fn walk(
        &mut self,
        now: Micros,
        class: Class,
        more: Option<(usize, &Queued)>,
        ends: &mut Vec<Micros>,
    ) {
        let mut outlook = std::mem::take(&mut self.outlook);
        outlook.memory = self.config.memory;
        outlook.running.clear();
        outlook.free.clear();
        let free = |stream: &Stream| {
            let owner = stream.lent_to.map_or(stream, |lender| &self.streams[lender]);
            if owner.jobs.is_empty() { now } else { owner.free(now) }
        };
        let busy = self.streams.iter().filter(|stream| !stream.jobs.is_empty());
        outlook.running.extend(busy.map(|stream| (free(stream), stream.bytes)));
        let active = &self.streams[..self.active];
        match class {
            Class::Interactive => outlook.free.extend(active.iter().map(free)),
            Class::Bulk => {
                // Those that run bulk jobs are of its share; the rest of it are at best the ones
                // that are idle first.
                let of_share = active.iter().filter(|stream| stream.runs_bulk());
                outlook.free.extend(of_share.map(free));
                let num_of_share = outlook.free.len();
                let others = active.iter().filter(|stream| !stream.runs_bulk());
                outlook.free.extend(others.map(free));
                outlook.free[num_of_share..].sort_unstable();
                outlook.free.truncate(self.bulk_streams());
            }
        }
        outlook.free.sort_unstable();
        let queue = self.queue(class);
        let place = more.map_or(queue.len(), |(place, _)| place);
        let jobs = queue
            .iter()
            .take(place)
            .chain(more.map(|(_, queued)| queued))
            .chain(queue.iter().skip(place));
        outlook.walk(jobs, &self.limits(), &self.predictor, ends);
        self.outlook = outlook;
    }

    // Ends.

    fn ended(&mut self, number: usize, worked: Micros) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        if stream.jobs.is_empty() {
            return;
        }
        let was_stopped = stream.jobs.iter().any(|job| job.is_stopping);
        let Stream { shape, work, threads, expected, correction, .. } = *stream;
        stream.jobs.clear();
        stream.bytes = 0;
        for other in &mut self.streams {
            if other.lent_to == Some(number) {
                other.lent_to = None;
            }
        }
        // Of a batch that was stopped only an overrun is known.
        if expected.0 > 0 && (worked > expected || !was_stopped) {
            let ratio = worked.0 as f64 / expected.0 as f64;
            let is_joined = threads > self.stream_threads();
            self.predictor.margins.add(ratio);
            // Relative to the correction that the prediction was made with: many batches may end
            // after it has changed.
            match is_joined {
                true => self.predictor.corrections.learn_threads(threads, ratio * correction),
                false => self.predictor.corrections.learn(&shape, &work, ratio * correction),
            }
        }
        while self.streams.len() > self.active && self.streams.last().is_some_and(Stream::is_idle) {
            self.streams.pop();
        }
    }

    fn cancel(&mut self, id: u64, actions: &mut Vec<Action>) {
        if self.interactive.remove(id).or_else(|| self.bulk.remove(id)).is_some() {
            return actions.push(Action::Stop { job: id, why: StopReason::Cancelled });
        }
        let mut running = self.streams.iter_mut().flat_map(|stream| &mut stream.jobs);
        if let Some(job) = running.find(|job| job.id == id && !job.is_stopping) {
            job.is_stopping = true;
            actions.push(Action::Stop { job: id, why: StopReason::Cancelled });
        }
    }

    fn drain(&mut self, actions: &mut Vec<Action>) {
        self.drain = match self.drain {
            Drain::No => Drain::Begun,
            Drain::Begun | Drain::Over => Drain::Over,
        };
        if self.drain == Drain::Over {
            while let Some(queued) = self.interactive.pop().or_else(|| self.bulk.pop()) {
                actions.push(Action::Stop { job: queued.job.id, why: StopReason::Drained });
            }
            self.stop_running(StopReason::Drained, |_| true, actions);
        }
    }

    /// Stops all whose deadline has passed.
    fn stop_late(&mut self, now: Micros, actions: &mut Vec<Action>) {
        for queue in [&mut self.interactive, &mut self.bulk] {
            while let Some(queued) = queue.remove_expired(now) {
                actions.push(Action::Stop { job: queued.job.id, why: StopReason::Deadline });
            }
        }
        self.stop_running(StopReason::Deadline, |job| job.deadline < now, actions);
    }

    fn stop_running(
        &mut self,
        why: StopReason,
        which: impl Fn(&Running) -> bool,
        actions: &mut Vec<Action>,
    ) {
        for job in self.streams.iter_mut().flat_map(|stream| &mut stream.jobs) {
            if !job.is_stopping && which(job) {
                job.is_stopping = true;
                actions.push(Action::Stop { job: job.id, why });
            }
        }
    }

    fn resize(&mut self, streams: u32) {
        self.active = streams.clamp(1, Config::MAX_STREAMS) as usize;
        let longest_busy =
            self.streams.iter().rposition(|stream| !stream.is_idle()).map_or(0, |last| last + 1);
        self.streams.resize_with(self.active.max(longest_busy), Stream::default);
    }

    // Starts.

    fn dispatch(&mut self, now: Micros, actions: &mut Vec<Action>) {
        while let Some(stream) = self.streams[..self.active].iter().position(Stream::is_idle) {
            let class = match self.interactive.is_empty() {
                false => Class::Interactive,
                true if self.may_run_bulk() => Class::Bulk,
                true => return,
            };
            if !self.start(now, class, stream, actions) {
                return;
            }
        }
    }

    /// Starts the batch at the head of a queue on an idle stream, or drops its first job; false
    /// where it waits.
    fn start(
        &mut self,
        now: Micros,
        class: Class,
        number: usize,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Some(first) = self.queue(class).get(0).copied() else { return false };
        let would_be_late = |scheduler: &Self, queued: &Queued| {
            let threads = match scheduler.queue(class).len() {
                1 => scheduler.threads_if_last(class),
                _ => scheduler.stream_threads(),
            };
            let (expected, _) =
                scheduler.expected(&queued.shape, &Work::of(&queued.shape), threads);
            now.plus(expected) > queued.job.deadline
        };
        if would_be_late(self, &first) {
            let narrower = first.narrower().filter(|queued| self.fits(&queued.shape));
            match narrower.filter(|queued| !would_be_late(self, queued)) {
                Some(narrower) => self.queue_mut(class).replace_first(narrower),
                None => {
                    self.queue_mut(class).pop();
                    actions.push(Action::Stop { job: first.job.id, why: StopReason::Deadline });
                }
            }
            return true;
        }
        let left = self.config.memory.saturating_sub(self.bytes());
        if first.shape.bytes > left {
            return false;
        }
        let limits = self.limits();
        let queue = self.queue(class);
        let Some(batch) = batch::head(queue.iter(), now, left, &limits, &self.predictor) else {
            return false;
        };
        if batch.start > now {
            return false;
        }
        let threads = match batch.jobs == queue.len() {
            true => self.threads_if_last(class),
            false => self.stream_threads(),
        };
        let (expected, correction) = self.expected(&first.shape, &batch.work, threads);
        self.lend_to(number, threads);
        let end = now.plus(self.predictor.promised(expected));
        let mut jobs = Jobs::default();
        let mut running = std::mem::take(&mut self.streams[number].jobs);
        for _ in 0..batch.jobs {
            let Some(queued) = self.queue_mut(class).pop() else { break };
            jobs.push(BatchJob { job: queued.job.id, narrowed: queued.narrowed });
            running.push(Running {
                id: queued.job.id,
                deadline: queued.job.deadline,
                is_stopping: false,
            });
        }
        let (shape, work, bytes) = (first.shape, batch.work, batch.bytes);
        self.streams[number] = Stream {
            jobs: running,
            class,
            shape,
            work,
            bytes,
            threads,
            expected,
            correction,
            end,
            lent_to: None,
        };
        actions.push(Action::Start { stream: number as u32, jobs, threads });
        true
    }

    /// Threads of a batch that starts now and leaves nobody waiting: those of all idle streams.
    fn threads_if_last(&self, class: Class) -> u32 {
        let own = self.stream_threads();
        if !self.config.join_idle || class == Class::Bulk || !self.bulk.is_empty() {
            return own;
        }
        let idle = self.streams[..self.active].iter().filter(|stream| stream.is_idle()).count();
        let most = self.config.threads / own;
        own * (idle as u32).min(most).max(1)
    }

    /// Lends the threads of other idle streams to one, until it has `threads`.
    fn lend_to(&mut self, number: usize, threads: u32) {
        let lenders = (threads / self.stream_threads()).saturating_sub(1);
        let idle = self.streams[..self.active].iter_mut().enumerate();
        let idle = idle.filter(|(other, stream)| *other != number && stream.is_idle());
        idle.take(lenders as usize).for_each(|(_, stream)| stream.lent_to = Some(number));
    }

    /// Expected time on so many threads, and the correction in it that can be learnt from how long
    /// it takes.
    fn expected(&self, shape: &Shape, work: &Work, threads: u32) -> (Micros, f64) {
        let predictor = &self.predictor;
        match threads > self.stream_threads() {
            true => (
                predictor.expected_joined(shape, work, threads),
                predictor.corrections.of_threads(threads),
            ),
            false => {
                (predictor.expected(shape, work, threads), predictor.corrections.of(shape, work))
            }
        }
    }

    /// Asks to be woken for the next deadline, or when a batch has waited for others long enough.
    fn ask_to_wake(&mut self, now: Micros, actions: &mut Vec<Action>) {
        let running = self.streams.iter().flat_map(|stream| &stream.jobs);
        let running = running.filter(|job| !job.is_stopping).map(|job| job.deadline).min();
        let deadline = self
            .interactive
            .earliest()
            .min(self.bulk.earliest())
            .min(running.unwrap_or(Micros::NEVER));
        // At its deadline a job is still in time.
        let mut wake = deadline.plus(Micros(1));
        if self.config.quota.0 > 0 && self.streams[..self.active].iter().any(Stream::is_idle) {
            let class = if self.interactive.is_empty() { Class::Bulk } else { Class::Interactive };
            let left = self.config.memory.saturating_sub(self.bytes());
            let batch =
                batch::head(self.queue(class).iter(), now, left, &self.limits(), &self.predictor);
            if let Some(batch) = batch.filter(|batch| batch.start > now) {
                wake = wake.min(batch.start);
            }
        }
        if wake != self.wake && wake < Micros::NEVER {
            actions.push(Action::WakeAt(wake));
        }
        self.wake = wake;
    }

    // Numbers.

    fn queue(&self, class: Class) -> &Queue {
        match class {
            Class::Interactive => &self.interactive,
            Class::Bulk => &self.bulk,
        }
    }

    fn queue_mut(&mut self, class: Class) -> &mut Queue {
        match class {
            Class::Interactive => &mut self.interactive,
            Class::Bulk => &mut self.bulk,
        }
    }

    fn knows(&self, id: u64) -> bool {
        let mut running = self.streams.iter().flat_map(|stream| &stream.jobs);
        self.interactive.has(id) || self.bulk.has(id) || running.any(|job| job.id == id)
    }

    fn bytes(&self) -> u64 {
        self.streams.iter().fold(0, |sum, stream| sum.saturating_add(stream.bytes))
    }

    /// Threads of a stream by itself. Those that a smaller size sets free go to none.
    fn stream_threads(&self) -> u32 {
        (self.config.threads / self.config.streams.max(1)).max(1)
    }

    fn limits(&self) -> Limits {
        Limits::new(&self.config, self.stream_threads())
    }

    fn bulk_streams(&self) -> usize {
        ((f64::from(self.config.bulk_share) * self.active as f64) as usize).clamp(1, self.active)
    }

    fn may_run_bulk(&self) -> bool {
        self.streams.iter().filter(|stream| stream.runs_bulk()).count() < self.bulk_streams()
    }
}

/// A duration ±20%, by a hash of the job's id (SplitMix64): clients that were refused together do
/// not come back together.
fn spread(duration: Micros, id: u64) -> Micros {
    let mut hash = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let share = (hash >> 11) as f64 / (1u64 << 53) as f64;
    Micros((duration.0 as f64 * (0.8 + 0.4 * share)).round() as u64)
}

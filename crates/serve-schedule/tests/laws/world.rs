//! Clients and workers in virtual time, which hold each action to the laws as it comes.

use std::collections::BTreeMap;

use palmette_serve_schedule::{
    Action, Class, Config, Event, Job, Jobs, Micros, Order, Record, Refusal, Scheduler, Shape,
    StopReason, Work,
};

use crate::ops::{COSTS, Op, What};

/// State of a job, as the actions told it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Queued,
    Running {
        stream: u32,
        is_stopping: bool,
    },
    Refused(Refusal),
    /// Stopped in the queue.
    Stopped(StopReason),
    /// Ran to its end, at this time, or was stopped on the way.
    Ended {
        at: Micros,
        was_stopped: Option<StopReason>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) job: Job,
    pub(crate) takes: u64,
    pub(crate) is_narrowed: bool,
    pub(crate) was_stopped: Option<StopReason>,
    pub(crate) state: State,
}

impl Known {
    pub(crate) fn shape(&self) -> Shape {
        match (self.is_narrowed, self.job.narrower) {
            (true, Some(narrower)) => narrower,
            _ => self.job.shape,
        }
    }
}

#[derive(Clone, Debug)]
struct Batch {
    jobs: Vec<u64>,
    threads: u32,
    started: Micros,
    ends: Micros,
    class: Class,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Micros,
    pub(crate) jobs: BTreeMap<u64, Known>,
    pub(crate) log: Vec<Record>,
    running: BTreeMap<u32, Batch>,
    wake: Option<Micros>,
    is_exact: bool,
    streams: u32,
    was_resized: bool,
    drains: u32,
}

impl World {
    /// With exact costs everything takes as long as predicted.
    pub(crate) fn new(config: Config, is_exact: bool) -> Self {
        let costs = vec![COSTS];
        Self {
            config,
            scheduler: Scheduler::new(config, costs.clone()),
            now: Micros(0),
            jobs: BTreeMap::new(),
            log: vec![Record::Begin { config, costs }],
            running: BTreeMap::new(),
            wake: None,
            is_exact,
            streams: config.streams,
            was_resized: false,
            drains: 0,
        }
    }

    pub(crate) fn run(config: Config, is_exact: bool, ops: &[Op]) -> Self {
        let mut world = Self::new(config, is_exact);
        ops.iter().for_each(|op| world.apply(op));
        world.finish();
        world
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        self.advance(self.now.plus(Micros(op.gap)));
        match op.what {
            What::Arrive { class, shape, narrower, slack, takes } => {
                let alone = COSTS.predict(&shape) as u64;
                let id = self.jobs.len() as u64;
                // Whole steps of time, so that some deadlines are equal.
                let deadline = Micros((self.now.0 + alone * slack / 100).next_multiple_of(5000));
                let job = Job { id, class, arrived: self.now, deadline, shape, narrower };
                let (is_narrowed, was_stopped, state) = (false, None, State::Queued);
                self.jobs.insert(id, Known { job, takes, is_narrowed, was_stopped, state });
                self.step(Event::Arrive(job));
                // The same id again has no second end.
                if !matches!(self.jobs[&id].state, State::Refused(_) | State::Stopped(_)) {
                    self.step(Event::Arrive(job));
                }
            }
            What::Cancel(before) => {
                let job = (self.jobs.len() as u64).saturating_sub(1 + before);
                self.step(Event::Cancel { job });
            }
            What::Phase(stream) => {
                let job = self.running.get(&stream).map_or(0, |batch| batch.jobs[0]);
                self.step(Event::Phase { stream, job, phase: 0 });
            }
            What::Drain => {
                self.drains += 1;
                self.step(Event::Drain);
            }
            What::Resize(streams) => {
                self.was_resized = true;
                self.streams = streams.max(1);
                self.step(Event::Resize { streams });
            }
            What::Stray(stream) if self.running.contains_key(&stream) => {}
            What::Stray(stream) => self.step(Event::Ended { stream, worked: Micros(7) }),
        }
    }

    /// Drains, and sees to it that everything ends.
    pub(crate) fn finish(&mut self) {
        self.drains += 1;
        self.step(Event::Drain);
        self.advance(Micros::NEVER);
        assert!(self.running.is_empty());
        // Bulk jobs without an end have no deadline, or their turn has not come: none is left when
        // nothing runs.
        for known in self.jobs.values() {
            assert!(
                !matches!(known.state, State::Queued | State::Running { .. }),
                "no end: {known:?}"
            );
        }
        assert!(self.scheduler.status().is_empty(), "{:?}", self.scheduler.status());
    }

    /// Times at which the streams that take work are idle.
    pub(crate) fn free(&self) -> Vec<Micros> {
        let end = |stream| self.running.get(&stream).map_or(self.now, |batch| batch.ends);
        (0..self.streams).map(end).collect()
    }

    pub(crate) fn queued(&self, class: Class) -> impl Iterator<Item = &Known> + Clone {
        self.jobs
            .values()
            .filter(move |known| known.state == State::Queued && known.job.class == class)
    }

    /// Lets everything happen that is due until a time: ends before wake-ups.
    fn advance(&mut self, until: Micros) {
        loop {
            let end = self.running.iter().map(|(&stream, batch)| (batch.ends, stream)).min();
            let wake = self.wake.unwrap_or(Micros::NEVER);
            match end {
                Some((at, stream)) if at <= until && at <= wake => {
                    self.now = self.now.max(at);
                    let Some(batch) = self.running.remove(&stream) else { return };
                    for &id in &batch.jobs {
                        let known = self.jobs.get_mut(&id).expect("a job that was started");
                        assert!(matches!(known.state, State::Running { .. }));
                        known.state = State::Ended { at: self.now, was_stopped: known.was_stopped };
                    }
                    let worked = self.now.since(batch.started);
                    self.step(Event::Ended { stream, worked });
                }
                _ if wake <= until && wake < Micros::NEVER => {
                    self.now = self.now.max(wake);
                    self.wake = None;
                    self.step(Event::Wake);
                }
                _ => break,
            }
        }
        if until < Micros::NEVER {
            self.now = until;
        }
    }

    pub(crate) fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        let arrived = match &event {
            Event::Arrive(job) => Some(job.id),
            _ => None,
        };
        self.log.push(Record::Event { now: self.now, event: event.clone() });
        self.scheduler.step(self.now, event, &mut actions);
        for action in &actions {
            match action {
                Action::Start { stream, jobs, threads } => self.start(*stream, jobs, *threads),
                Action::Refuse { job, why, .. } => {
                    assert_eq!(arrived, Some(*job), "refused later than at arrival");
                    let known = self.jobs.get_mut(job).expect("a job that came");
                    assert_eq!(known.state, State::Queued, "two ends: {known:?}");
                    known.state = State::Refused(*why);
                }
                Action::Stop { job, why } => self.stop(*job, *why),
                Action::WakeAt(time) => {
                    assert!(*time > self.now, "woken for what is past");
                    self.wake = Some(*time);
                }
            }
        }
        self.log.push(Record::Actions { actions });
        let status = self.scheduler.status();
        assert_eq!(status.bytes, self.held());
        assert_eq!(status.queued, self.queued(Class::Interactive).count());
        assert_eq!(status.queued_bulk, self.queued(Class::Bulk).count());
    }

    fn stop(&mut self, id: u64, why: StopReason) {
        let now = self.now;
        let known = self.jobs.get_mut(&id).expect("a job that came");
        match known.state {
            State::Queued => known.state = State::Stopped(why),
            State::Running { stream, is_stopping: false } => {
                known.state = State::Running { stream, is_stopping: true };
                known.was_stopped = Some(why);
                // A lone job ends with its stage.
                let batch = self.running.get_mut(&stream).expect("a batch that runs");
                if batch.jobs.len() == 1 {
                    batch.ends = batch.ends.min(now.plus(Micros(1000)));
                }
            }
            _ => panic!("stopped twice: {known:?}"),
        }
        match why {
            StopReason::Deadline => {}
            StopReason::Drained => assert!(self.drains > 1),
            StopReason::Cancelled => {}
        }
    }

    fn start(&mut self, stream: u32, jobs: &Jobs, threads: u32) {
        let config = self.config;
        assert!(stream < self.streams, "a stream that takes no work");
        assert!(!self.running.contains_key(&stream), "two batches on a stream");
        assert!(!jobs.is_empty() && jobs.len() <= config.batch_jobs as usize);
        let mut work = Work::default();
        let (mut rows, mut takes, mut class) = (0, 0, None);
        for started in jobs.iter() {
            let known = self.jobs.get_mut(&started.job).expect("a job that came");
            assert_eq!(known.state, State::Queued, "started: {known:?}");
            known.state = State::Running { stream, is_stopping: false };
            known.is_narrowed = started.narrowed;
            assert!(!started.narrowed || known.job.narrower.is_some());
            let shape = known.shape();
            work.add(&shape);
            rows += shape.widest;
            takes = takes.max(known.takes);
            assert!(class.is_none_or(|class| class == known.job.class), "classes mixed");
            class = Some(known.job.class);
        }
        let class = class.expect("a batch has a job");
        assert!(work.tokens() <= config.batch_tokens.into(), "too many tokens");
        assert!(rows <= config.batch_rows, "too many rows");
        self.none_is_overtaken(jobs, class);
        let own = config.threads / config.streams;
        assert!(threads >= own);
        let speed = f64::from(threads) / (1.0 + 0.05 * f64::from(threads - 1));
        let exact = (COSTS.of(&work) / speed - 1e-6).ceil() as u64;
        let lasts = if self.is_exact { exact } else { exact * takes / 100 };
        let (jobs, started) = (jobs.iter().map(|started| started.job).collect(), self.now);
        let ends = self.now.plus(Micros(lasts));
        self.running.insert(stream, Batch { jobs, threads, started, ends, class });
        self.within_budgets();
    }

    /// Jobs start in the queue's order: equal deadlines by arrival, then by id.
    fn none_is_overtaken(&self, jobs: &Jobs, class: Class) {
        let key = |id: u64| {
            let job = self.jobs[&id].job;
            match self.config.order {
                Order::Deadline => (job.deadline, job.arrived, id),
                Order::Arrival => (job.arrived, Micros(0), id),
            }
        };
        let mut keys: Vec<_> = jobs.iter().map(|started| key(started.job)).collect();
        keys.extend(self.queued(class).map(|known| key(known.job.id)).min());
        assert!(keys.is_sorted(), "overtaken");
        if class == Class::Bulk {
            assert_eq!(self.queued(Class::Interactive).count(), 0, "bulk before interactive");
        }
    }

    fn held(&self) -> u64 {
        let bytes = |id: &u64| self.jobs[id].shape().bytes;
        self.running.values().flat_map(|batch| &batch.jobs).map(bytes).sum()
    }

    fn within_budgets(&self) {
        assert!(self.held() <= self.config.memory, "too much memory");
        if !self.was_resized {
            let threads: u32 = self.running.values().map(|batch| batch.threads).sum();
            assert!(threads <= self.config.threads, "more threads than there are");
            let bulk = self.running.values().filter(|batch| batch.class == Class::Bulk).count();
            let share = (self.config.bulk_share * self.config.streams as f32) as usize;
            assert!(bulk <= share.max(1), "too many bulk streams");
        }
    }
}

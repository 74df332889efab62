//! Virtual clock: a heap of what happens next, and streams whose work shares the cores.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;

use crate::cost::Work;
use crate::event::{Action, Event};
use crate::job::{Job, Micros, Shape};
use crate::scheduler::Scheduler;
use crate::simulation::arrivals::Arrival;
use crate::simulation::machine::Machine;
use crate::simulation::outcome::{Outcome, quantile};

/// Decider of what starts: takes events, gives actions, as [`Scheduler::step`].
pub trait Policy: fmt::Debug {
    /// Takes an event and adds what is to be done.
    fn step(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>);
}

impl Policy for Scheduler {
    fn step(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        Self::step(self, now, event, actions);
    }
}

/// Runs requests through a policy until all have ended.
///
/// `observe` sees each event and its actions, as a recording has them. A worker looks at a stop
/// between stages: its prompt and each pass. Of a batch all jobs must be stopped before it ends.
///
/// Cost: O(log n) a request and stage, and O(streams) where batches have more threads than there
/// are cores.
///
/// # Panics
///
/// If the policy starts something on a busy stream or a job that does not wait: its own fault.
pub fn simulate(
    arrivals: &[Arrival],
    machine: &Machine,
    policy: &mut dyn Policy,
    observe: &mut dyn FnMut(Micros, &Event, &[Action]),
) -> Outcome {
    let mut run = Run::new(arrivals, machine);
    let mut actions = Vec::new();
    while let Some((now, event)) = run.next() {
        actions.clear();
        policy.step(now, event.clone(), &mut actions);
        observe(now, &event, &actions);
        actions.iter().for_each(|action| run.act(action));
    }
    run.outcome()
}

/// Next thing to happen; at equal times in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NextEvent {
    /// End of a stage, unless the stream's work was planned again since.
    Stage {
        stream: u32,
        plan: u64,
    },
    Arrival(usize),
    /// A wake-up, unless another was asked for since.
    Wake {
        request: u64,
    },
}

struct Run<'a> {
    arrivals: &'a [Arrival],
    machine: &'a Machine,
    due: BinaryHeap<Reverse<(Micros, NextEvent)>>,
    now: Micros,
    streams: Vec<Option<Batch>>,
    /// Threads of all batches.
    threads: u32,
    plans: u64,
    wakes: u64,
    waiting: HashSet<u64>,
    tally: Outcome,
    latencies_ms: Vec<f64>,
    worked: f64,
    wasted: f64,
    last_end: Micros,
}

struct Batch {
    jobs: Vec<(usize, bool)>,
    threads: u32,
    started: Micros,
    /// Ends of the stages, in microseconds of work at full speed; the last is the batch's.
    stages: Vec<f64>,
    stage: usize,
    done: f64,
    /// The time at which `done` was right.
    seen: Micros,
    plan: u64,
}

impl<'a> Run<'a> {
    fn new(arrivals: &'a [Arrival], machine: &'a Machine) -> Self {
        let mut due = BinaryHeap::new();
        if let Some(first) = arrivals.first() {
            due.push(Reverse((first.at, NextEvent::Arrival(0))));
        }
        Self {
            arrivals,
            machine,
            due,
            now: Micros(0),
            streams: Vec::new(),
            threads: 0,
            plans: 0,
            wakes: 0,
            waiting: HashSet::new(),
            tally: Outcome::default(),
            latencies_ms: Vec::new(),
            worked: 0.0,
            wasted: 0.0,
            last_end: Micros(0),
        }
    }

    /// Goes to the next time at which something happens, and tells what.
    fn next(&mut self) -> Option<(Micros, Event)> {
        while let Some(Reverse((at, due))) = self.due.pop() {
            let event = match due {
                NextEvent::Wake { request } if request == self.wakes => Event::Wake,
                NextEvent::Wake { .. } => continue,
                NextEvent::Arrival(number) => {
                    self.now = at;
                    self.arrive(number)
                }
                NextEvent::Stage { stream, plan } => {
                    let batch = self.streams[stream as usize].as_ref();
                    if batch.is_none_or(|batch| batch.plan != plan) {
                        continue;
                    }
                    self.now = at;
                    self.end_stage(stream)
                }
            };
            self.now = at;
            return Some((at, event));
        }
        None
    }

    fn arrive(&mut self, number: usize) -> Event {
        let arrival = self.arrivals[number];
        if let Some(next) = self.arrivals.get(number + 1) {
            self.due.push(Reverse((next.at.max(self.now), NextEvent::Arrival(number + 1))));
        }
        self.tally.offered += 1;
        let id = number as u64;
        self.waiting.insert(id);
        let deadline = self.now.plus(arrival.within);
        let Arrival { class, shape, .. } = arrival;
        Event::Arrive(Job { id, class, arrived: self.now, deadline, shape, narrower: None })
    }

    fn end_stage(&mut self, stream: u32) -> Event {
        let place = &mut self.streams[stream as usize];
        let Some(mut batch) = place.take() else { return Event::Wake };
        batch.done = batch.stages[batch.stage];
        batch.seen = self.now;
        let is_last = batch.stage + 1 == batch.stages.len();
        let (stage, job) = (batch.stage, batch.jobs[0].0 as u64);
        if is_last || batch.jobs.iter().all(|&(_, is_stopping)| is_stopping) {
            let worked = self.now.since(batch.started);
            self.end(&batch);
            return Event::Ended { stream, worked };
        }
        batch.stage += 1;
        *place = Some(batch);
        self.plan(stream);
        Event::Phase { stream, job, phase: stage.min(255) as u8 }
    }

    fn end(&mut self, batch: &Batch) {
        let share = batch.done * f64::from(batch.threads) / batch.jobs.len() as f64;
        let was_cut = batch.stage + 1 < batch.stages.len();
        for &(number, is_stopping) in &batch.jobs {
            let arrival = &self.arrivals[number];
            let took = self.now.since(arrival.at);
            let is_answered = !is_stopping && !was_cut;
            if is_answered {
                self.latencies_ms.push(took.as_ms());
            }
            self.worked += share;
            match is_answered && took <= arrival.within {
                true => self.tally.in_time += 1,
                false => {
                    self.tally.late += 1;
                    self.wasted += share;
                }
            }
        }
        self.last_end = self.now;
        self.set_threads(self.threads - batch.threads);
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Refuse { job, .. } => {
                self.stops_waiting(*job);
                self.tally.refused += 1;
            }
            Action::Stop { job, .. } => {
                let mut running =
                    self.streams.iter_mut().flatten().flat_map(|batch| &mut batch.jobs);
                match running.find(|(number, _)| *number as u64 == *job) {
                    Some((_, is_stopping)) => *is_stopping = true,
                    None => {
                        self.stops_waiting(*job);
                        self.tally.dropped += 1;
                    }
                }
            }
            Action::WakeAt(at) => {
                self.wakes += 1;
                self.due.push(Reverse((*at, NextEvent::Wake { request: self.wakes })));
            }
            Action::Start { stream, jobs, threads } => {
                let jobs: Vec<_> = jobs.iter().map(|started| started.job).collect();
                self.start(*stream, &jobs, *threads);
            }
        }
    }

    fn stops_waiting(&mut self, job: u64) {
        assert!(self.waiting.remove(&job), "job {job} does not wait");
    }

    fn start(&mut self, stream: u32, jobs: &[u64], threads: u32) {
        let mut work = Work::default();
        let mut noise: f64 = 0.0;
        for &job in jobs {
            self.stops_waiting(job);
            let arrival = &self.arrivals[job as usize];
            work.add(&arrival.shape);
            // Jobs of a batch wait for each other.
            noise = noise.max(arrival.noise);
        }
        let shape = self.arrivals[jobs[0] as usize].shape;
        let all = self.machine.service.micros(&work, threads) * noise;
        let place = stream as usize;
        if self.streams.len() <= place {
            self.streams.resize_with(place + 1, || None);
        }
        assert!(self.streams[place].is_none(), "stream {stream} is busy");
        let stages = stages(&shape, self.machine.service.prompt_share(&shape), all);
        let jobs = jobs.iter().map(|&job| (job as usize, false)).collect();
        let (started, seen) = (self.now, self.now);
        let batch = Batch { jobs, threads, started, stages, stage: 0, done: 0.0, seen, plan: 0 };
        self.streams[place] = Some(batch);
        self.set_threads(self.threads + threads);
        self.plan(stream);
    }

    /// Changes the number of threads, and plans all work again where speeds change.
    fn set_threads(&mut self, threads: u32) {
        let before = self.speed();
        if before == speed(self.machine.cores, threads) {
            self.threads = threads;
            return;
        }
        let now = self.now;
        for batch in self.streams.iter_mut().flatten() {
            batch.done += now.since(batch.seen).0 as f64 * before;
            batch.seen = now;
        }
        self.threads = threads;
        for stream in 0..self.streams.len() {
            if self.streams[stream].is_some() {
                self.plan(stream as u32);
            }
        }
    }

    fn speed(&self) -> f64 {
        speed(self.machine.cores, self.threads)
    }

    /// Sets the time at which a stream's stage ends.
    fn plan(&mut self, stream: u32) {
        let speed = self.speed();
        self.plans += 1;
        let Some(batch) = &mut self.streams[stream as usize] else { return };
        batch.plan = self.plans;
        let left = (batch.stages[batch.stage] - batch.done).max(0.0) / speed;
        let at = batch.seen.plus(Micros(left.ceil() as u64)).max(self.now);
        self.due.push(Reverse((at, NextEvent::Stage { stream, plan: self.plans })));
    }

    fn outcome(mut self) -> Outcome {
        let first = self.arrivals.first().map_or(Micros(0), |arrival| arrival.at);
        let last = self.arrivals.last().map_or(Micros(0), |arrival| arrival.at);
        let seconds = last.since(first).0 as f64 / 1e6;
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        self.latencies_ms.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&self.latencies_ms, share);
        let cores = f64::from(self.machine.cores.max(1));
        let span = self.last_end.since(first).0 as f64 * cores;
        Outcome {
            offered_rate: per_second(self.tally.offered),
            goodput: per_second(self.tally.in_time),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            wasted: if self.worked > 0.0 { self.wasted / self.worked } else { 0.0 },
            utilisation: if span > 0.0 { self.worked / span } else { 0.0 },
            ..self.tally
        }
    }
}

/// Speed of every thread, of 1: cores are shared alike.
fn speed(cores: u32, threads: u32) -> f64 {
    (f64::from(cores.max(1)) / f64::from(threads.max(1))).min(1.0)
}

/// Ends of a job's stages: its prompt's, and its passes', which are alike.
fn stages(shape: &Shape, prompt_share: f64, all: f64) -> Vec<f64> {
    let passes = shape.passes.min(64);
    let prompt = all * prompt_share;
    let pass = |number: u32| prompt + (all - prompt) * f64::from(number) / f64::from(passes);
    match passes {
        0 => vec![all],
        _ => (0..=passes).map(pass).collect(),
    }
}

//! Steps of the scheduler that can be checked by hand. Every token takes a millisecond.

mod admission;
mod batches;
mod ends;
mod learning;

use palmette_serve_schedule::{
    Action, BatchJob, Class, Config, CostModel, Event, Job, Jobs, Margin, Micros, Refusal,
    Scheduler, Shape, StopReason,
};

const COSTS: CostModel = CostModel { c0: 0.0, c1: 1000.0, c2: 0.0, r0: 0.0, r1: 0.0, r2: 0.0 };

/// A scheduler, and the time in milliseconds.
struct Bench {
    scheduler: Scheduler,
    now: Micros,
}

/// Streams of one thread, exact promises, nothing joins.
fn plain(streams: u32) -> Config {
    let margin = Margin::Fixed(1.0);
    Config { streams, threads: streams, margin, join_idle: false, ..Config::default() }
}

fn tokens(prompt_tokens: u32) -> Shape {
    Shape { prompt_tokens, ..Shape::default() }
}

impl Bench {
    fn new(config: Config) -> Self {
        Self { scheduler: Scheduler::new(config, vec![COSTS]), now: Micros(0) }
    }

    /// Actions of a step; wake-ups are left out.
    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = self.all(event);
        actions.retain(|action| !matches!(action, Action::WakeAt(_)));
        actions
    }

    fn all(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.scheduler.step(self.now, event, &mut actions);
        actions
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Micros(ms * 1000);
        self
    }

    fn arrive(&mut self, id: u64, shape: Shape, within_ms: u64) -> Vec<Action> {
        self.arrive_as(id, Class::Interactive, shape, None, within_ms)
    }

    fn arrive_as(
        &mut self,
        id: u64,
        class: Class,
        shape: Shape,
        narrower: Option<Shape>,
        within_ms: u64,
    ) -> Vec<Action> {
        let deadline = self.now.plus(Micros(within_ms * 1000));
        self.step(Event::Arrive(Job { id, class, arrived: self.now, deadline, shape, narrower }))
    }

    fn ended(&mut self, stream: u32, worked_ms: u64) -> Vec<Action> {
        self.step(Event::Ended { stream, worked: Micros(worked_ms * 1000) })
    }
}

fn start(stream: u32, ids: &[u64], threads: u32) -> Action {
    let jobs = ids.iter().map(|&job| BatchJob { job, narrowed: false });
    Action::Start { stream, jobs: Jobs::from_iter(jobs), threads }
}

fn stop(job: u64, why: StopReason) -> Action {
    Action::Stop { job, why }
}

/// The only action: a refusal, with predicted end and time to wait in microseconds.
#[track_caller]
fn refused(actions: &[Action], job: u64, why: Refusal) -> (u64, u64) {
    match actions {
        [Action::Refuse { job: it, why: reason, finish, retry_after }] => {
            assert_eq!((*it, *reason), (job, why));
            (finish.0, retry_after.0)
        }
        _ => panic!("{actions:?}"),
    }
}

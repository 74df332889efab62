//! Once its buffers are as large as they get, a step allocates nothing.

use palmette_serve_schedule::{
    Action, Class, Config, CostModel, Event, Job, Micros, Scheduler, Shape,
};
use palmette_testkit::allocations::{Counting, allocations};

#[test]
fn steps_allocate_nothing_after_a_while() {
    let costs = CostModel { c1: 1000.0, ..CostModel::default() };
    for batch_jobs in [1, 8] {
        let config = Config { streams: 3, threads: 3, batch_jobs, ..Config::default() };
        let mut scheduler = Scheduler::new(config, vec![costs]);
        let mut actions = Vec::with_capacity(64);
        let mut running: [Option<(Micros, Micros)>; 3] = [None; 3];
        let mut counted = 0;
        let mut seen = [false; 3];
        for id in 0..6000u64 {
            let now = Micros(id * 3000);
            // Prompts of 1 to 64 tokens at three quarters of the arrivals that there is time for,
            // in waves.
            let prompt_tokens =
                1 + (id * 2_654_435_761 % 64) as u32 / if id % 512 < 256 { 2 } else { 12 };
            let shape = Shape { prompt_tokens, ..Shape::default() };
            let class = if id % 9 == 0 { Class::Bulk } else { Class::Interactive };
            let deadline = now.plus(Micros(60_000 + id % 7 * 20_000));
            let job = Job { id, class, arrived: now, deadline, shape, narrower: None };
            let mut due = vec![Event::Arrive(job)];
            if id % 11 == 0 {
                due.push(Event::Cancel { job: id.saturating_sub(2) });
            }
            for stream in 0..3 {
                if let Some((started, ends)) = running[stream]
                    && ends <= now
                {
                    running[stream] = None;
                    due.insert(
                        0,
                        Event::Ended { stream: stream as u32, worked: ends.since(started) },
                    );
                }
            }
            for event in due {
                actions.clear();
                let before = allocations();
                scheduler.step(now, event, &mut actions);
                let more = allocations() - before;
                if id >= 3000 {
                    counted += more;
                }
                for action in &actions {
                    match action {
                        Action::Start { stream, jobs, .. } => {
                            let ends = now.plus(Micros(9000 * jobs.len() as u64));
                            running[*stream as usize] = Some((now, ends));
                            seen[0] = true;
                        }
                        Action::Refuse { .. } => seen[1] = true,
                        Action::Stop { .. } => seen[2] = true,
                        Action::WakeAt(_) => {}
                    }
                }
            }
        }
        assert_eq!(counted, 0, "allocations with batches of {batch_jobs}");
        assert!(seen[0] && seen[2], "{seen:?}");
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

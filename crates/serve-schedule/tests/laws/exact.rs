//! Exact costs and a margin of 1: what was promised is kept.

use palmette_serve_schedule::{Class, StopReason};
use proptest::prelude::*;

use crate::cases;
use crate::ops::{arrivals, device, processor, with_cancels};
use crate::world::{State, World};

fn none_is_late(world: &World) {
    for known in world.jobs.values().filter(|known| known.job.class == Class::Interactive) {
        match known.state {
            State::Ended { was_stopped: Some(StopReason::Cancelled), .. } => {}
            State::Ended { at, was_stopped } => {
                assert!(at <= known.job.deadline && was_stopped.is_none(), "late: {known:?}");
            }
            State::Stopped(why) => assert_eq!(why, StopReason::Cancelled, "promised: {known:?}"),
            State::Refused(_) => {}
            State::Queued | State::Running { .. } => panic!("no end: {known:?}"),
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_admitted_job_is_late_on_a_processor(config in processor(), ops in with_cancels()) {
        none_is_late(&World::run(config, true, &ops));
    }

    #[test]
    fn no_admitted_job_is_late_on_a_device(config in device(), ops in arrivals()) {
        none_is_late(&World::run(config, true, &ops));
    }
}

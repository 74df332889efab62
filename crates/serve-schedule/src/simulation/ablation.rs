//! Policies that are compared: the scheduler with parts of it turned off, and queues that predict
//! nothing.

use crate::config::{Config, Order};
use crate::cost::CostModel;
use crate::scheduler::Scheduler;
use crate::simulation::fifo::Fifo;
use crate::simulation::run::Policy;

/// Policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// First come, first served, without a limit.
    Fifo,
    /// [`Fifo`](Self::Fifo), which drops what is past its deadline when its turn comes.
    FifoDropsLate,
    /// The scheduler's queue in order of arrival: what would be late when its turn comes is
    /// dropped.
    DropsAtDequeue,
    /// [`DropsAtDequeue`](Self::DropsAtDequeue), which refuses on arrival what would be late.
    Admission,
    /// [`Admission`](Self::Admission), with the earliest deadline first.
    Deadlines,
    /// [`Deadlines`](Self::Deadlines), where idle cores join a job behind which nobody waits. The
    /// scheduler as it is.
    Joining,
    /// The scheduler on one stream, which has all threads.
    OneStream,
}

impl Ablation {
    /// Every ablation, each with one thing more than the one before; and the last, another use of
    /// the cores.
    pub const ALL: [Self; 7] = [
        Self::Fifo,
        Self::FifoDropsLate,
        Self::DropsAtDequeue,
        Self::Admission,
        Self::Deadlines,
        Self::Joining,
        Self::OneStream,
    ];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO, no limit",
            Self::FifoDropsLate => "FIFO, drop what is late",
            Self::DropsAtDequeue => "FIFO, drop what would be late",
            Self::Admission => "FIFO, admission at arrival",
            Self::Deadlines => "admission, earliest deadline first",
            Self::Joining => "the same, idle cores join",
            Self::OneStream => "the same, one stream of all threads",
        }
    }

    /// The configuration, from one of the whole scheduler.
    #[must_use]
    pub fn config(self, whole: Config) -> Config {
        let by_arrival = Config { order: Order::Arrival, join_idle: false, ..whole };
        match self {
            Self::Fifo | Self::FifoDropsLate | Self::DropsAtDequeue => {
                Config { admission: false, ..by_arrival }
            }
            Self::Admission => by_arrival,
            Self::Deadlines => Config { join_idle: false, ..whole },
            Self::Joining => whole,
            Self::OneStream => Config { streams: 1, ..whole },
        }
    }

    /// The policy, ready to start.
    #[must_use]
    pub fn policy(self, whole: Config, costs: CostModel) -> Box<dyn Policy> {
        let config = self.config(whole);
        match self {
            Self::Fifo | Self::FifoDropsLate => {
                let drops_late = self == Self::FifoDropsLate;
                Box::new(Fifo::new(config.streams, config.threads, drops_late))
            }
            _ => Box::new(Scheduler::new(config, vec![costs])),
        }
    }
}

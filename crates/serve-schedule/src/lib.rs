//! Deadline scheduler of requests: a state machine whose caller gives it the time.
//!
//! [`Scheduler::step`] takes an [`Event`] with its time and gives [`Action`]s. There is no clock,
//! no thread, no I/O and no randomness, so a server and the [`simulation`] drive the same code, and
//! a recorded log of events gives the same actions again.
//!
//! # Life of a job
//!
//! ```text
//! Arrive ─► refused                       memory; it or another would be late; draining
//!        └► queued ─► stopped             cancelled, deadline, drained
//!                  └► running ─► ended    answered; or asked to stop (cancelled, deadline, drained) before
//! ```
//!
//! # Laws
//!
//! Held by property tests over random sequences of events (`tests/laws`):
//! - every job has exactly one end, and after a drain all have one;
//! - a stream has one batch at a time, and a stream whose threads are lent has none;
//! - batches keep to their jobs, tokens and rows, running jobs to the memory;
//! - with exact costs and a margin of 1 no admitted job is late. For single jobs this holds
//!   whatever is cancelled meanwhile: jobs start in the queue's order and none overtakes, so
//!   whatever ends earlier makes nothing later. Batches are formed by what is there, so there it
//!   holds as long as nothing is cancelled and streams stay as they are;
//! - a refused job was infeasible: on one stream earliest deadline first finds every feasible
//!   order; on several it is an approximation, which is counted;
//! - jobs of equal deadline start in the order of arrival;
//! - equal events give equal actions.
//!
//! # Invariants
//! - `palmette-serve-schedule` is told the time and everything else: no clock, thread, I/O or
//!   randomness of its own decides anything, so that a server and the simulation drive the same
//!   code, and a recording gives the same actions again.
#![forbid(unsafe_code)]

mod admission;
mod batch;
mod config;
mod correction;
mod cost;
mod event;
mod job;
mod queue;
mod scheduler;
pub mod simulation;

pub use config::{Config, Margin, Order};
pub use cost::{CostModel, Work};
pub use event::{Action, BatchJob, Event, Jobs, Record, Refusal, StopReason};
pub use job::{Class, Job, Micros, Shape};
pub use scheduler::{Scheduler, Status};

/// The README's example, run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

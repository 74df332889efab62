//! Discrete-event simulation: requests, cores and a virtual clock around the same
//! [`Scheduler`](crate::Scheduler) that serves.
//!
//! [`Traffic`] draws [`Arrival`]s, or a trace brings them; a [`Machine`] says how long work really
//! takes; [`simulate`] runs a [`Policy`] over both and tells the [`Outcome`]. [`Ablation`] names
//! the policies that are compared: four are the scheduler with parts of it turned off, two are
//! queues as one would otherwise write them ([`Fifo`]). All of them meet the same requests with the
//! same noise.
//!
//! Everything is drawn from one seed, so a run is repeated exactly; on another platform logarithms
//! may have other last bits.

mod ablation;
mod arrivals;
mod fifo;
mod machine;
mod outcome;
mod run;

pub use ablation::Ablation;
pub use arrivals::{Arrival, Bursts, Traffic, draw_noise};
pub use fifo::Fifo;
pub use machine::{Machine, Service};
pub use outcome::Outcome;
pub use run::{Policy, simulate};

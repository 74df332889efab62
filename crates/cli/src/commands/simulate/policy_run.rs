//! Run of a policy at a load, with its outcome.

use palmette_serve_schedule::simulation::Outcome;

/// The run of a policy at a load.
pub(super) struct Run {
    pub(super) policy: String,
    pub(super) load: f64,
    pub(super) outcome: Outcome,
}

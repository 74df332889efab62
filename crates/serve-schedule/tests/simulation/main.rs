//! Simulations: policies against each other, and against what theory and earlier simulations say.

mod clock;
mod device;
mod policies;

use palmette_serve_schedule::CostModel;

/// A recommendation of beam 128 over three levels with a model of 10 million parameters, as
/// measured: 0.6 ms + 0.162 ms a token, then 41 ms + 0.0285 ms a token.
const COSTS: CostModel =
    CostModel { c0: 600.0, c1: 162.0, c2: 0.0, r0: 0.0, r1: 41_000.0 / 256.0, r2: 28.5 / 256.0 };

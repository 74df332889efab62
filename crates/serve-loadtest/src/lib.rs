//! Open-loop load generator for the recommending API of a Palmette server.
//!
//! - [`Endpoint`]: the address, `http://host:port`.
//! - [`Requests`]: bodies made before the clock starts, one a history; request `i` asks about
//!   history `i mod n`.
//! - [`Driver`]: sends them. [`Driver::check`] asks once and says what is wrong with the address,
//!   the key or the request; [`Driver::run`] offers one [`Load`], [`Driver::run_one_at_a_time`]
//!   waits for each answer.
//! - [`RateReport`]: what became of them.
//! - [`Saved`], [`AnswerWriter`], [`Comparison`]: answers in a file, and whether those of another
//!   run are the same bytes.
//! - [`plot()`]: goodput and p99 over the rate offered, as SVG.
//!
//! **Open loop**: requests arrive as those of many independent people do, at the times of a Poisson
//! process drawn from a seed ([`Arrivals`]), and latency counts from the drawn time. A client that
//! sends the next request when the last one is answered slows down with the server, so that the
//! requests that would have suffered are never sent; that omission makes an overloaded server look
//! fine. A request that finds all connections busy waits for one, and that is part of its latency
//! too; [`DriverReport`] counts these apart, since more connections would have sent them in time.
//!
//! **Bounds**: arrivals are drawn one after the other, never stored. Those that wait are a time and
//! a count, no queue: the next to be sent is the one after the last that was. A request that has no
//! connection by its drawn time plus [`Settings::timeout`] is given up, and so is one without an
//! answer that long after it was sent: a run ends by its last arrival plus twice that. Latencies
//! are counted in histograms of fixed size (HdrHistogram, three significant digits), an answer's
//! body is read up to [`MAX_ANSWER_BYTES`].
//!
//! Times: the thread that calls [`Driver::run`] sleeps until each arrival, since the timer of the
//! tokio runtime rounds up to whole milliseconds. The runtime, one thread unless told otherwise,
//! does the rest.
#![forbid(unsafe_code)]

mod answer;
mod arrivals;
mod compare;
mod connection;
mod driver;
mod endpoint;
mod plot;
mod pool;
mod processor_time;
mod recorder;
mod report;
mod requests;

pub use answer::{Answer, MAX_ANSWER_BYTES};
pub use arrivals::{Arrivals, MAX_RATE, RateError};
pub use compare::{AnswerWriter, Comparison, Difference, Saved, SavedError};
pub use driver::{CheckError, Driver, Load, Observer, Progress, Settings, SettingsError, Stop};
pub use endpoint::{Endpoint, UrlError};
pub use plot::{Curve, Point, plot};
pub use report::{DriverReport, NamedError, Percentiles, RateReport};
pub use requests::{Body, KeyError, Requests};

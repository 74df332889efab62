//! Finding out masks ahead of time: choices and report of several commands.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use palmette_grammar::{GrammarConstraint, PrecomputeLimits, PrecomputeStop, Precomputed};
use serde::Serialize;

use crate::output::{bytes, grouped};

/// Options of going ahead: for how long, and how far.
#[derive(Debug, Args)]
pub(crate) struct AheadArgs {
    /// Find out masks of the positions that texts come by, likeliest first, for at most this long
    /// [default without a number: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "60",
        value_parser = seconds
    )]
    ahead: Option<Duration>,
    /// Memory at which going ahead ends, in MiB: of the grammar, its lexer and what is to be done,
    /// and not of the nodes and masks alone
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "ahead")]
    ahead_mib: usize,
}

/// Outcome of going ahead.
#[derive(Debug, Serialize)]
pub(crate) struct Ahead {
    /// Lexemes in progress and positions that were visited: their masks are known.
    positions: usize,
    /// Lexemes and positions that were found and not visited.
    open: usize,
    /// Reason why it ended early: time or memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'static str>,
    /// True when no text has a mask that is not among them.
    is_complete: bool,
    nodes: usize,
    masks: usize,
    bytes: usize,
    seconds: f64,
}

impl AheadArgs {
    /// True if that was asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.ahead.is_some()
    }

    /// Goes ahead, if that was asked for.
    pub(crate) fn run(&self, constraint: &GrammarConstraint) -> anyhow::Result<Option<Ahead>> {
        let Some(at_most) = self.ahead else { return Ok(None) };
        let began = Instant::now();
        let bytes = self.ahead_mib.saturating_mul(1 << 20);
        let limits = PrecomputeLimits { steps: u64::MAX, bytes, ..PrecomputeLimits::default() };
        let running = constraint.precompute_in_background(limits)?;
        if !running.wait(at_most) {
            running.stop();
        }
        let Precomputed { visited, open, stopped, is_complete } =
            running.join().context("while masks were found out ahead of time")?;
        let (nodes, masks, bytes) = match constraint.automaton() {
            Some(found) => (found.nodes, found.masks, found.bytes),
            None => (0, 0, 0),
        };
        Ok(Some(Ahead {
            positions: visited,
            open,
            is_complete,
            stopped: stopped.map(|why| match why {
                PrecomputeStop::Bytes => "memory",
                PrecomputeStop::Steps | PrecomputeStop::Cancelled => "time",
            }),
            nodes,
            masks,
            bytes,
            seconds: began.elapsed().as_secs_f64(),
        }))
    }
}

impl Ahead {
    /// A line for people.
    pub(crate) fn text(&self) -> String {
        let count = |count: usize| grouped(count as u64);
        let end = match self.stopped {
            None if self.is_complete => "all there are".to_owned(),
            None => "all that were found".to_owned(),
            Some(why) if self.open == 0 => format!("some stacks left open when {why} ran out"),
            Some(why) => format!("{} left open when {why} ran out", count(self.open)),
        };
        format!(
            "ahead: {} positions, {end}; {} nodes, {} masks, {}, in {:.1} s\n",
            count(self.positions),
            count(self.nodes),
            count(self.masks),
            bytes(self.bytes),
            self.seconds
        )
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number of seconds"))?;
    let rule = |_| format!("{text} seconds are too many, or none; give a number from 0 on");
    Duration::try_from_secs_f64(seconds).map_err(rule)
}

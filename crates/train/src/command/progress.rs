//! Progress that a person sees during a run.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on a terminal, plain lines elsewhere, nothing when only JSON is wanted.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    is_quiet: bool,
}

impl Progress {
    /// At `done` of `steps`, `elapsed` after the run began.
    pub(crate) fn new(is_quiet: bool, done: u64, steps: u64, elapsed: Duration) -> Self {
        if is_quiet || !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), is_quiet };
        }
        let bar = ProgressBar::new(steps).with_position(done).with_elapsed(elapsed);
        let style = "{bar:30} {pos}/{len} steps  {msg}  {elapsed} gone, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
        bar.enable_steady_tick(Duration::from_millis(500));
        // The speed is that of the steps to come, not of those that an earlier process took.
        bar.reset_eta();
        Self { bar, is_quiet }
    }

    pub(crate) fn step(&self, done: u64, mean_loss: f64) {
        self.bar.set_position(done);
        self.bar.set_message(format!("loss {mean_loss:.3}"));
    }

    /// Shown beside the bar until the next step.
    pub(crate) fn doing(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        if self.is_quiet {
            return;
        }
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl Drop for Progress {
    /// An error message that follows begins on a line of its own.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

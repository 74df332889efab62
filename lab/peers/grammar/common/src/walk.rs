//! Walking an engine over a case, timed.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cases::Case;
use crate::engine::Engine;

#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    name: String,
    compiled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    compile_ms: f64,
    texts: Vec<TextOutcome>,
    /// Each step of the first walks, and the fastest of all walks.
    mask_us_cold: Vec<f64>,
    mask_us: Vec<f64>,
    commit_us: Vec<f64>,
    /// Mask and commit of one step, the fastest of all walks.
    step_us: Vec<f64>,
    /// By how much the process has grown from before the compilation to after the walks. What an
    /// earlier case left free is used again, so this may be too little.
    bytes: usize,
}

#[derive(Debug, Serialize)]
pub struct TextOutcome {
    valid: bool,
    accepted: bool,
    steps: usize,
}

/// How texts are walked.
#[derive(Clone, Copy, Debug)]
pub struct Walks {
    pub times: usize,
    /// Time to sleep before the first walk.
    pub ahead: Duration,
    /// Time to sleep before each mask of the first walk.
    pub pace: Duration,
}

pub fn walk(engine: &dyn Engine, case: &Case, walks: Walks) -> Outcome {
    let mut outcome = Outcome { name: case.name.clone(), ..Outcome::default() };
    let resident = resident_bytes();
    let began = Instant::now();
    let compiled = engine.compile(case.kind, &case.grammar);
    outcome.compile_ms = began.elapsed().as_secs_f64() * 1e3;
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            outcome.error = Some(format!("{error:#}").chars().take(300).collect());
            return outcome;
        }
    };
    outcome.compiled = true;
    std::thread::sleep(walks.ahead);
    let end = engine.end();
    for text in &case.texts {
        let (first, mut accepted) = (outcome.mask_us.len(), true);
        for nth in 0..walks.times {
            let mut walk = compiled.start();
            accepted = true;
            for (step, &token) in text.tokens.iter().chain([&end]).enumerate() {
                if nth == 0 && !walks.pace.is_zero() {
                    std::thread::sleep(walks.pace);
                }
                let began = Instant::now();
                let allowed = walk.allows(token);
                let mask_us = began.elapsed().as_secs_f64() * 1e6;
                if !allowed {
                    accepted = false;
                }
                let began = Instant::now();
                let committed = allowed && token != end && walk.commit(token);
                let commit_us = began.elapsed().as_secs_f64() * 1e6;
                let step_us = mask_us + commit_us;
                if nth == 0 {
                    outcome.mask_us_cold.push(mask_us);
                    outcome.mask_us.push(mask_us);
                    outcome.commit_us.push(commit_us);
                    outcome.step_us.push(step_us);
                } else {
                    let at = first + step;
                    outcome.mask_us[at] = outcome.mask_us[at].min(mask_us);
                    outcome.commit_us[at] = outcome.commit_us[at].min(commit_us);
                    outcome.step_us[at] = outcome.step_us[at].min(step_us);
                }
                if !committed {
                    accepted &= token == end;
                    break;
                }
            }
        }
        let steps = outcome.mask_us.len() - first;
        outcome.texts.push(TextOutcome { valid: text.valid, accepted, steps });
    }
    outcome.bytes = resident_bytes().saturating_sub(resident);
    outcome
}

/// The process's resident memory; 0 where the system does not tell.
fn resident_bytes() -> usize {
    const PAGE: usize = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).map_or(0, |pages| pages * PAGE)
}

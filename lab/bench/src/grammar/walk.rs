//! Compiling a case and following its texts, timed.

use std::time::{Duration, Instant};

use palmette_core::{Constraint, TokenId, mask};
use serde::{Deserialize, Serialize};

use super::GrammarCase;

/// Makes a case's grammar ready; the error is the reason why it cannot be.
pub trait Compile {
    /// Constraint that it makes.
    type Constraint: Constraint;
    /// Work that continues while texts are followed.
    type Running: Default;

    /// Compiles a case. What is shared by all grammars over a vocabulary is made before, not here.
    ///
    /// # Errors
    /// When the grammar is not supported or not one.
    fn compile(&self, case: &GrammarCase) -> Result<Self::Constraint, String>;

    /// Finds masks out before the first text of a case comes, which took so long to compile, as a
    /// server may while a prompt is read, and perhaps goes on with it. Does nothing by default.
    ///
    /// # Errors
    /// When the grammar turns out not to be usable.
    fn ahead(
        &self,
        _case: &GrammarCase,
        _constraint: &Self::Constraint,
        _compiling: Duration,
    ) -> Result<Self::Running, String> {
        Ok(Self::Running::default())
    }

    /// Ends what went on while texts were followed. Does nothing by default.
    ///
    /// # Errors
    /// When that failed.
    fn stop(&self, _running: Self::Running) -> Result<(), String> {
        Ok(())
    }

    /// Memory of a grammar now, without what all grammars over a vocabulary share.
    fn bytes(&self, constraint: &Self::Constraint) -> usize;

    /// Number of masks until now that were found by walking the vocabulary, of all grammars over
    /// it; `None` where that is not known, by default.
    fn walked(&self, _constraint: &Self::Constraint) -> Option<u64> {
        None
    }

    /// Rows of a mask store now; `None` where masks come from elsewhere, by default.
    fn rows(&self, _constraint: &Self::Constraint) -> Option<usize> {
        None
    }

    /// The token that ends a text.
    fn end(&self) -> TokenId;
}

/// Outcome of a case. Times are those of single steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseOutcome {
    /// The case's name.
    pub name: String,
    /// True if the grammar could be made ready.
    pub compiled: bool,
    /// The refusal of the grammar, or the limit that a text exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration of that; the fastest of all times.
    pub compile_ms: f64,
    /// Duration of [`ahead`](Compile::ahead).
    pub ahead_ms: f64,
    /// Outcomes of the texts, in order.
    pub texts: Vec<TextOutcome>,
    /// Masks of the first walk, when nothing was visited yet but what was found out ahead.
    pub mask_us_cold: Vec<f64>,
    /// Masks; the fastest of all walks.
    pub mask_us: Vec<f64>,
    /// Commits; the fastest of all walks.
    pub commit_us: Vec<f64>,
    /// Mask and commit together; the fastest of all walks.
    pub step_us: Vec<f64>,
    /// Memory after all walks.
    pub bytes: usize,
    /// Masks of the first walk that were found by walking the vocabulary, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walked: Option<u64>,
    /// Rows of a mask store after all walks, where masks come from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// Outcome of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextOutcome {
    /// True if it is in the language.
    pub valid: bool,
    /// True if every token and the end were allowed.
    pub accepted: bool,
    /// Masks made, up to the first that refuses.
    pub steps: usize,
}

/// Manner of following texts: how often, and at what pace.
#[derive(Clone, Copy, Debug)]
pub struct Walks {
    /// Times each text is; at least 1.
    pub times: usize,
    /// Time before each mask of the first walk, in which the thread sleeps, as it does while a
    /// model computes.
    pub pace: Duration,
}

/// Compiles a case and follows its texts.
pub fn walk<C: Compile>(compile: &C, case: &GrammarCase, walks: Walks) -> CaseOutcome {
    let mut outcome = CaseOutcome { name: case.name.clone(), ..CaseOutcome::default() };
    let began = Instant::now();
    let constraint = compile.compile(case);
    let compiling = began.elapsed();
    outcome.compile_ms = compiling.as_secs_f64() * 1e3;
    let began = Instant::now();
    let constraint = constraint.and_then(|made| {
        let running = compile.ahead(case, &made, compiling)?;
        Ok((made, running))
    });
    outcome.ahead_ms = began.elapsed().as_secs_f64() * 1e3;
    let (constraint, running) = match constraint {
        Ok(made) => made,
        Err(error) => {
            outcome.error = Some(error);
            return outcome;
        }
    };
    outcome.compiled = true;
    let mut scratch = Default::default();
    // Written before, as a server's rows are: its first pages are no part of a mask.
    let mut row = vec![u32::MAX; mask::num_words(constraint.num_tokens())];
    // A limit that a text exceeds: the text is refused, and the case says why.
    let mut failed = None;
    for text in &case.texts {
        let first = outcome.mask_us.len();
        let mut accepted = true;
        for nth in 0..walks.times.max(1) {
            let walked_before = compile.walked(&constraint);
            let mut state = constraint.start();
            accepted = true;
            let tokens = text.tokens.iter().map(|&token| TokenId(token));
            for (step, token) in tokens.chain([compile.end()]).enumerate() {
                if nth == 0 && !walks.pace.is_zero() {
                    std::thread::sleep(walks.pace);
                }
                let began = Instant::now();
                let filled = constraint.fill_mask(&state, &mut scratch, &mut row);
                let mask_us = began.elapsed().as_secs_f64() * 1e6;
                if let Err(error) = &filled {
                    failed.get_or_insert_with(|| error.to_string());
                }
                accepted = filled.is_ok() && mask::contains(&row, token);
                let began = Instant::now();
                let committed =
                    accepted && constraint.commit(&mut state, token, &mut scratch).is_ok();
                let commit_us = began.elapsed().as_secs_f64() * 1e6;
                outcome.record(nth, first + step, mask_us, commit_us);
                if !committed {
                    accepted = false;
                    break;
                }
            }
            if let (0, Some(before), Some(now)) = (nth, walked_before, compile.walked(&constraint))
            {
                *outcome.walked.get_or_insert(0) += now - before;
            }
        }
        let steps = outcome.mask_us.len() - first;
        outcome.texts.push(TextOutcome { valid: text.valid, accepted, steps });
    }
    outcome.error = compile.stop(running).err().or(failed);
    outcome.bytes = compile.bytes(&constraint);
    outcome.rows = compile.rows(&constraint);
    outcome
}

impl CaseOutcome {
    fn record(&mut self, nth: usize, at: usize, mask_us: f64, commit_us: f64) {
        let step_us = mask_us + commit_us;
        if nth == 0 {
            self.mask_us_cold.push(mask_us);
            self.mask_us.push(mask_us);
            self.commit_us.push(commit_us);
            self.step_us.push(step_us);
        } else {
            self.mask_us[at] = self.mask_us[at].min(mask_us);
            self.commit_us[at] = self.commit_us[at].min(commit_us);
            self.step_us[at] = self.step_us[at].min(step_us);
        }
    }
}

//! Cost model: the time of a batch from the sizes of its jobs.

use serde::{Deserialize, Serialize};

use crate::job::{Micros, Shape};

/// Time of a batch on one thread, in microseconds, linear in six sums over its jobs ([`Work`]).
///
/// For one job of `T` prompt tokens, of which the first `F` are known from earlier prompts:
/// `c0 + c1·(T − F) + c2·(T² − F²) + r0·passes + r1·rows + r2·rows·T`. What is known is not
/// computed, and rows look at it all the same. Jobs of a batch share `c0` and, as far as their
/// passes are common, `r0`: what a batch gains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostModel {
    /// A batch.
    pub c0: f64,
    /// A prompt token that is computed.
    pub c1: f64,
    /// A pair of a prompt's tokens, one of them computed.
    pub c2: f64,
    /// A decode pass.
    pub r0: f64,
    /// A decode row.
    pub r1: f64,
    /// A decode row and prompt token.
    pub r2: f64,
}

impl CostModel {
    /// Predicted time of a job by itself, in microseconds; never negative, and 0 where the model is
    /// not finite.
    #[must_use]
    pub fn predict(&self, shape: &Shape) -> f64 {
        self.of(&Work::of(shape))
    }

    /// Predicted time of a batch, as [`predict`](Self::predict).
    #[must_use]
    pub fn of(&self, work: &Work) -> f64 {
        let micros: f64 =
            self.terms().iter().zip(work.terms()).map(|(cost, count)| cost * count).sum();
        match micros.is_finite() {
            true => micros.max(0.0),
            false => 0.0,
        }
    }

    /// Non-negative least squares over measured batches, by relative errors.
    ///
    /// Every set of terms is tried, 64 in all, and the best whose coefficients are not negative is
    /// taken: the definition, at a size where it is quick. Batches that took no time are left out;
    /// without any the model is zero. Terms that they cannot tell apart are given to the
    /// earlier one.
    #[must_use]
    pub fn fit(measured: &[(Work, Micros)]) -> Self {
        let rows: Vec<[f64; TERMS]> = measured
            .iter()
            .filter(|(_, took)| took.0 > 0)
            .map(|(work, took)| work.terms().map(|count| count / took.0 as f64))
            .collect();
        // Columns of length 1, so that one limit says what is singular.
        let length = |term: usize| rows.iter().map(|row| row[term] * row[term]).sum::<f64>().sqrt();
        let lengths: [f64; TERMS] = std::array::from_fn(length);
        let scaled = |row: &[f64; TERMS], term: usize| match lengths[term] > 0.0 {
            true => row[term] / lengths[term],
            false => 0.0,
        };
        let product = |f: &dyn Fn(&[f64; TERMS]) -> f64| rows.iter().map(f).sum::<f64>();
        let gram: [[f64; TERMS]; TERMS] = std::array::from_fn(|i| {
            std::array::from_fn(|j| product(&|row| scaled(row, i) * scaled(row, j)))
        });
        let target: [f64; TERMS] = std::array::from_fn(|i| product(&|row| scaled(row, i)));
        let mut best = (0.0, [0.0; TERMS]);
        for set in 1u32..1 << TERMS {
            let terms: Vec<usize> = (0..TERMS).filter(|term| set & (1 << term) != 0).collect();
            let Some(solved) = solve(&gram, &target, &terms) else { continue };
            if solved.iter().any(|&coefficient| coefficient < 0.0) {
                continue;
            }
            // |Ax − 1|² less |1|², at the minimum of the normal equations.
            let error = -terms.iter().zip(&solved).map(|(&term, x)| target[term] * x).sum::<f64>();
            if error < best.0 - 1e-12 {
                let mut coefficients = [0.0; TERMS];
                terms
                    .iter()
                    .zip(&solved)
                    .for_each(|(&term, x)| coefficients[term] = x / lengths[term]);
                best = (error, coefficients);
            }
        }
        let [c0, c1, c2, r0, r1, r2] = best.1;
        Self { c0, c1, c2, r0, r1, r2 }
    }

    fn terms(&self) -> [f64; TERMS] {
        [self.c0, self.c1, self.c2, self.r0, self.r1, self.r2]
    }
}

const TERMS: usize = 6;

/// Sums over the jobs of a batch that its time depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    jobs: u64,
    tokens: u64,
    token_squares: u64,
    passes: u64,
    rows: u64,
    row_tokens: u64,
}

impl Work {
    /// The sums of one job.
    #[must_use]
    pub fn of(shape: &Shape) -> Self {
        let mut work = Self::default();
        work.add(shape);
        work
    }

    /// Adds a job. Passes are the longest job's, everything else is added.
    pub fn add(&mut self, shape: &Shape) {
        let [tokens, rows] = [shape.prompt_tokens, shape.rows].map(u64::from);
        let computed = u64::from(shape.computed_tokens());
        let known = tokens - computed;
        self.jobs += 1;
        self.tokens += computed;
        let squares = tokens * tokens - known * known;
        self.token_squares = self.token_squares.saturating_add(squares);
        self.passes = self.passes.max(shape.passes.into());
        self.rows += rows;
        self.row_tokens = self.row_tokens.saturating_add(rows * tokens);
    }

    /// The number of jobs.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Prompt tokens of all jobs that are computed.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    fn terms(&self) -> [f64; TERMS] {
        let Self { jobs, tokens, token_squares, passes, rows, row_tokens } = *self;
        [jobs.min(1), tokens, token_squares, passes, rows, row_tokens].map(|count| count as f64)
    }
}

/// Solves the normal equations of some terms by elimination with pivots; `None` where they are
/// singular.
fn solve(gram: &[[f64; TERMS]; TERMS], target: &[f64; TERMS], terms: &[usize]) -> Option<Vec<f64>> {
    let n = terms.len();
    let mut rows: Vec<Vec<f64>> = terms
        .iter()
        .map(|&i| terms.iter().map(|&j| gram[i][j]).chain([target[i]]).collect())
        .collect();
    for column in 0..n {
        let pivot =
            (column..n).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        // Columns have length 1: what is left of one that the others span is rounding.
        if rows[column][column].abs() <= 1e-9 {
            return None;
        }
        for row in column + 1..n {
            let factor = rows[row][column] / rows[column][column];
            for place in column..=n {
                rows[row][place] -= factor * rows[column][place];
            }
        }
    }
    let mut solved = vec![0.0; n];
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|place| rows[row][place] * solved[place]).sum();
        solved[row] = (rows[row][n] - known) / rows[row][row];
    }
    Some(solved)
}

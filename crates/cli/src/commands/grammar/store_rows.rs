//! Rows of a mask store after each step that makes them fewer, for `palmette grammar stats --store`.

#[cfg(feature = "bench")]
pub(super) use counting::StoreRows;
#[cfg(not(feature = "bench"))]
pub(super) use left_out::StoreRows;

#[cfg(feature = "bench")]
mod counting {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use palmette_core::Constraint;
    use palmette_grammar::{GrammarConstraint, GrammarScratch, GrammarState, PreparedVocabulary};
    use palmette_mask_store::RowCounts;
    use serde::Serialize;

    use crate::output::{grouped, table};

    /// Rows at some states of a lexer.
    #[derive(Debug, Serialize)]
    pub(crate) struct StoreRows {
        states: usize,
        steps: Vec<StepRows>,
    }

    /// Rows after so many of the first steps.
    #[derive(Debug, Serialize)]
    struct StepRows {
        steps: usize,
        rows: usize,
        /// Rows that differ in their terminals or their tokens.
        distinct: usize,
        /// Rows of a state: the median, the mean and the most.
        p50: usize,
        mean: f64,
        max: usize,
    }

    impl StoreRows {
        /// The error of a build that has no mask store.
        pub(crate) fn check_build() -> anyhow::Result<()> {
            Ok(())
        }

        /// Rows at the states that texts visit, byte by byte, up to where a text no longer fits.
        pub(crate) fn along(
            constraint: &GrammarConstraint,
            vocabulary: &Arc<PreparedVocabulary>,
            texts: &[Vec<u8>],
        ) -> anyhow::Result<Self> {
            let mut scratch = GrammarScratch::default();
            let mut states = BTreeSet::new();
            let mut visit = |state: &GrammarState| {
                let branches = state.position().into_iter().flat_map(|at| at.branches());
                states.extend(branches.map(|branch| branch.lexer));
            };
            for text in texts.iter().map(Vec::as_slice).chain([&[][..]]) {
                let mut state = constraint.start();
                visit(&state);
                for byte in text {
                    if constraint.commit_bytes(&mut state, &[*byte], &mut scratch).is_err() {
                        break;
                    }
                    visit(&state);
                }
            }
            let counts = RowCounts::by_step(constraint.recognizer(), vocabulary, &states)?;
            let of_step = |(steps, counts): (usize, &RowCounts)| StepRows {
                steps,
                rows: counts.rows,
                distinct: counts.distinct,
                p50: counts.p50(),
                mean: counts.mean(),
                max: counts.max(),
            };
            let steps = counts.iter().enumerate().map(of_step).collect();
            Ok(Self { states: states.len(), steps })
        }

        /// Lines of the report.
        pub(crate) fn text(&self) -> String {
            let count = |count: usize| grouped(count as u64);
            let row = |of: &StepRows| {
                let sizes = [of.steps, of.rows, of.distinct, of.p50].map(count);
                [&sizes[..], &[format!("{:.1}", of.mean), count(of.max)]].concat()
            };
            let rows: Vec<Vec<String>> = self.steps.iter().map(row).collect();
            let heads = ["steps", " rows", " distinct", " p50", " mean", " max"];
            let states = count(self.states);
            format!("mask store: {states} states of the lexer\n{}", table(&heads, &rows))
        }
    }
}

/// Stand-in of a build without a mask store: there are no rows, and asking for them is refused.
#[cfg(not(feature = "bench"))]
mod left_out {
    use std::sync::Arc;

    use palmette_grammar::{GrammarConstraint, PreparedVocabulary};
    use serde::Serialize;

    use crate::features::left_out;

    /// Rows that are never counted.
    #[derive(Debug, Serialize)]
    pub(crate) enum StoreRows {}

    impl StoreRows {
        pub(crate) fn check_build() -> anyhow::Result<()> {
            Err(left_out("has no mask store", "bench"))
        }

        pub(crate) fn along(
            _constraint: &GrammarConstraint,
            _vocabulary: &Arc<PreparedVocabulary>,
            _texts: &[Vec<u8>],
        ) -> anyhow::Result<Self> {
            Err(left_out("has no mask store", "bench"))
        }

        pub(crate) fn text(&self) -> String {
            match *self {}
        }
    }
}

//! Mask stores beside the automaton, one for each number of steps.

use std::str::FromStr;
use std::sync::Arc;

use palmette_bench::grammar::{Compile, GrammarCase, GrammarReport};
use palmette_core::TokenId;
use palmette_mask_store::{Steps, StoreConstraint};
use serde::Serialize;

use super::Compiler;

/// Numbers of steps, from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepRange {
    first: usize,
    last: usize,
}

impl Default for StepRange {
    fn default() -> Self {
        Self { first: 0, last: Steps::NUM_PUBLISHED }
    }
}

impl StepRange {
    pub(super) fn numbers(&self) -> Vec<usize> {
        (self.first..=self.last).collect()
    }
}

impl FromStr for StepRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let most = Steps::MAX;
        let number = |text: &str| {
            let number = text.parse().ok().filter(|&number| number <= most);
            number.ok_or_else(|| {
                format!(
                    "`{text}` is no number of steps; they are 0 to {most}, or a range such as 0..4"
                )
            })
        };
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{first} is more than {last}; a range goes up, as in 0..4"));
        }
        Ok(Self { first, last })
    }
}

/// Name of a store among engines.
pub(super) fn name(steps: usize) -> String {
    format!("store-{steps}")
}

/// Report of a store.
#[derive(Debug, Serialize)]
pub(super) struct StoreReport {
    pub(super) steps: usize,
    #[serde(flatten)]
    pub(super) report: GrammarReport,
}

/// Compiler of the same grammars to stores whose rows are streamlined by the first so many steps.
/// Nothing is found out ahead.
pub(super) struct StoreCompiler<'a> {
    pub(super) compiler: &'a Compiler,
    pub(super) steps: usize,
}

impl Compile for StoreCompiler<'_> {
    type Constraint = StoreConstraint;
    type Running = ();

    fn compile(&self, case: &GrammarCase) -> Result<StoreConstraint, String> {
        let recognizer = self.compiler.recognizer(case)?;
        let vocabulary = Arc::clone(&self.compiler.vocabulary);
        let made = StoreConstraint::new(recognizer, vocabulary, Steps::first(self.steps));
        made.map_err(|refusal| refusal.to_string())
    }

    fn bytes(&self, constraint: &StoreConstraint) -> usize {
        constraint.bytes()
    }

    fn rows(&self, constraint: &StoreConstraint) -> Option<usize> {
        Some(constraint.store().statistics().rows)
    }

    fn walked(&self, _constraint: &StoreConstraint) -> Option<u64> {
        Some(0)
    }

    fn end(&self) -> TokenId {
        self.compiler.end
    }
}

//! Passes of a search as they were made: rows of each, and the beams kept where a request asks to
//! see them.

use palmette_catalog::CodeTokens;
use palmette_decode::Pass;

/// A hypothesis that a search kept after a level.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedBeam {
    /// Codes so far. The hypothesis that it extends is the one of all but the last, in the level
    /// before.
    pub codes: Vec<u32>,
    /// Sum of the codes' log-probabilities.
    pub score: f32,
}

/// Log of a request's passes.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Rows of logits in each pass.
    pub(crate) rows: Vec<usize>,
    /// True where `levels` is kept.
    pub(crate) traces: bool,
    /// Beams after each level but the last, best first, of the latest search.
    pub(crate) levels: Vec<Vec<TracedBeam>>,
}

impl Passes {
    /// Begins a request's log.
    pub(crate) fn begin(&mut self, traces: bool) {
        self.rows.clear();
        self.levels.clear();
        self.traces = traces;
    }

    /// Notes the beams that a pass continues with. A search that begins again, as after a narrow
    /// one, takes the place of the one before.
    pub(crate) fn trace(&mut self, pass: &Pass<'_>, tokens: &CodeTokens) {
        if !self.traces {
            return;
        }
        if pass.index == 0 {
            self.levels.clear();
            return;
        }
        // Of what ends an item there are no codes.
        if pass.index >= tokens.levels().len() {
            return;
        }
        let codes = |row| {
            let spelled = pass.sequence(row).iter().enumerate();
            spelled.filter_map(|(level, &token)| tokens.code(level, token)).collect()
        };
        let beam = |row| TracedBeam { codes: codes(row), score: pass.scores[row] };
        self.levels.push((0..pass.rows()).map(beam).collect());
    }
}

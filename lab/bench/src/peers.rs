//! Measurement of the other engines, as of the index.

use crate::bench::gigabytes;
use crate::engines::{
    CsrTrie, Engine, HashBitmap, HashTrie, IndexEngine, MixedRadixSet, PpvExact, PpvTop50,
    Unconstrained,
};
use crate::machine::available_memory;
use crate::measure::count_bits;
use crate::report::PeerReport;
use crate::steps::{Steps, cold, hot};
use crate::timed_build::build;

impl Steps<'_> {
    /// One engine after the other, so that only one is in memory beside the index.
    ///
    /// # Errors
    /// When an engine loses an item, or an exact one's masks are not the index's.
    pub(crate) fn peers(&mut self, index: &IndexEngine) -> Result<Vec<PeerReport>, String> {
        Ok(vec![
            self.peer::<CsrTrie>(index)?,
            self.peer::<HashTrie>(index)?,
            self.peer::<PpvExact>(index)?,
            self.peer::<PpvTop50>(index)?,
            self.peer::<HashBitmap>(index)?,
            self.peer::<MixedRadixSet>(index)?,
            self.peer::<Unconstrained>(index)?,
        ])
    }

    /// Builds, checks and measures another engine, or says why not.
    fn peer<E>(&mut self, index: &IndexEngine) -> Result<PeerReport, String>
    where
        E: Engine + Send,
        E::Builder: Send,
    {
        let (name, items) = (E::NAME.to_owned(), &self.bench.items);
        let obstacle = E::obstacle(items.shape()).or_else(|| {
            let (needed, available) = (E::peak_bytes(items.shape()), available_memory()?);
            let words = || {
                let (needed, available) = (gigabytes(needed), gigabytes(available));
                format!("needs about {needed}, {available} are available")
            };
            (needed > available).then(words)
        });
        if let Some(skipped) = obstacle {
            return Ok(PeerReport::Skipped { name, skipped });
        }
        let builder = E::builder(items.shape());
        let built = build::<E>(items, builder, None, self.progress)?;
        let errors = self.errors_of(&built.engine, index)?;
        let (times, _) = self.masks(&built.engine)?;
        Ok(PeerReport::Measured {
            name,
            bytes_per_item: built.engine.bytes() as f64 / items.shape().items as f64,
            build_cpu_s: built.cpu_s,
            step_us: cold(&times),
            step_hot_us: hot(&times),
            samples: self.samples,
            exact: E::EXACT,
            false_positive_rate: (!E::EXACT).then_some(errors.false_positive_rate()),
            false_negative_rate: (!E::EXACT).then_some(errors.false_negative_rate()),
        })
    }

    /// Compares an engine's masks with the index's, a step a level.
    ///
    /// # Errors
    /// When an exact engine's differ.
    fn errors_of<E: Engine>(&self, engine: &E, index: &IndexEngine) -> Result<Errors, String> {
        // The same seed twice draws the same beams twice.
        let (mut beams, mut same_beams) = (self.beams(), self.beams());
        let (words_per_row, mut masks) = self.mask_rows();
        let mut right = masks.clone();
        let mut errors = Errors::default();
        for level in self.levels() {
            engine.fill_masks(&beams.draw(engine, level)?, words_per_row, &mut masks);
            index.fill_masks(&same_beams.draw(index, level)?, words_per_row, &mut right);
            if E::EXACT && masks != right {
                return Err(format!(
                    "the masks of {} and the index differ at level {level}",
                    E::NAME
                ));
            }
            let codes = (self.bench.beams * self.bench.items.shape().vocab as usize) as u64;
            errors.add(&masks, &right, codes);
        }
        Ok(errors)
    }
}

/// Codes over all compared masks.
#[derive(Default)]
struct Errors {
    valid: u64,
    invalid: u64,
    forbidden_valid: u64,
    allowed_invalid: u64,
}

impl Errors {
    fn add(&mut self, masks: &[u32], right: &[u32], codes: u64) {
        let valid = count_bits(right);
        let both: u64 = masks.iter().zip(right).map(|(a, b)| u64::from((a & b).count_ones())).sum();
        self.valid += valid;
        self.invalid += codes - valid;
        self.forbidden_valid += valid - both;
        self.allowed_invalid += count_bits(masks) - both;
    }

    fn false_positive_rate(&self) -> f64 {
        self.allowed_invalid as f64 / self.invalid.max(1) as f64
    }

    fn false_negative_rate(&self) -> f64 {
        self.forbidden_valid as f64 / self.valid.max(1) as f64
    }
}

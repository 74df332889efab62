//! Rotary wavelengths: the base, and how they are stretched for positions beyond those of the first
//! training.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::allocation::zeroed;
use crate::config::ModelConfig;
use crate::kernels::RopeTable;

/// The frequencies by which the pairs of a head turn.
///
/// Pair `i` of a head of C values turns by `frequency(i)` a position, in plain positions
/// `theta^(−2i/C)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rope {
    /// Base of the wavelengths, above 1 where they are stretched by YaRN.
    pub theta: f64,
    /// The stretching.
    #[serde(default)]
    pub scaling: RopeScaling,
}

/// A stretching of rotary wavelengths: `rope_type` of a configuration, with its numbers.
///
/// Every kind gives frequencies that do not depend on the length of the sequence, so that what was
/// cached stays right when it grows. `dynamic` and `longrope` lack that, and are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// `default`: not at all.
    #[default]
    None,
    /// `linear`: all frequencies divided by the factor, as if positions were.
    Linear {
        /// At least 1 in practice; above 0.
        factor: f64,
    },
    /// `llama3`: long wavelengths stretched by the factor, short ones not, those between in part.
    Llama3 {
        /// Above 0.
        factor: f64,
        /// Wavelengths above `original_positions / low_frequency_factor` are stretched whole.
        low_frequency_factor: f64,
        /// Wavelengths below `original_positions / high_frequency_factor` are not; above the low
        /// one.
        high_frequency_factor: f64,
        /// Positions of the first training.
        original_positions: usize,
    },
    /// `yarn`: the same by pairs rather than wavelengths, with cosines and sines multiplied by a
    /// factor. Source: YaRN, arXiv 2309.00071, §3.
    Yarn {
        /// Above 0.
        factor: f64,
        /// Factor of cosines and sines.
        attention_factor: f64,
        /// Pairs that turn more often than this over the original positions are not stretched.
        beta_fast: f64,
        /// Pairs that turn less often are stretched whole.
        beta_slow: f64,
        /// Positions of the first training.
        original_positions: usize,
        /// Widens the two bounds to whole pairs.
        truncate: bool,
    },
}

impl ModelConfig {
    /// Rotary angles of the layers without a window, for positions below `num_positions`; `None`
    /// where there is not the memory for them.
    pub fn rope_table(&self, num_positions: usize) -> Option<RopeTable> {
        let scaling = self.architecture.rope_scaling.clone();
        Rope { theta: self.rope_theta, scaling }.table(self.head_dim, num_positions)
    }
}

impl Rope {
    pub(crate) fn table(&self, head_dim: usize, num_positions: usize) -> Option<RopeTable> {
        let half = head_dim / 2;
        let (cos, sin) = (zeroed(num_positions * half)?, zeroed(num_positions * half)?);
        let frequency = |i| self.frequency(i, head_dim);
        Some(RopeTable::fill(cos, sin, half, frequency, self.factor()))
    }

    /// Radians a position for pair `i` of a head of `head_dim` values.
    pub(crate) fn frequency(&self, i: usize, head_dim: usize) -> f64 {
        let plain = self.theta.powf(-((2 * i) as f64) / head_dim as f64);
        // The share of the plain frequency; the rest is of the stretched one.
        let (factor, share) = match self.scaling {
            RopeScaling::None => return plain,
            RopeScaling::Linear { factor } => (factor, 0.0),
            RopeScaling::Llama3 {
                factor,
                low_frequency_factor: low,
                high_frequency_factor: high,
                original_positions,
            } => {
                let turns = original_positions as f64 * plain / (2.0 * PI);
                (factor, ((turns - low) / (high - low)).clamp(0.0, 1.0))
            }
            RopeScaling::Yarn { factor, .. } => (factor, 1.0 - self.yarn_ramp(i, head_dim)),
        };
        plain / factor * (1.0 - share) + plain * share
    }

    /// 0 for pairs that are not stretched, 1 for those that are, and a ramp between.
    fn yarn_ramp(&self, i: usize, head_dim: usize) -> f64 {
        let RopeScaling::Yarn { beta_fast, beta_slow, original_positions, truncate, .. } =
            self.scaling
        else {
            return 0.0;
        };
        let width = head_dim as f64;
        // The pair that turns so often over the original positions.
        let positions = original_positions as f64;
        let pair =
            |turns: f64| width * (positions / (turns * 2.0 * PI)).ln() / (2.0 * self.theta.ln());
        let (mut low, mut high) = (pair(beta_fast), pair(beta_slow));
        if truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        let (low, mut high) = (low.max(0.0), high.min(width - 1.0));
        if low == high {
            high += 0.001;
        }
        ((i as f64 - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Factor of cosines and sines.
    pub(crate) fn factor(&self) -> f64 {
        match self.scaling {
            RopeScaling::Yarn { attention_factor, .. } => attention_factor,
            _ => 1.0,
        }
    }

    /// Checks that every number is one that frequencies can be made of.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let positive = |field: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(format!("`{field}` is {value}; it must be positive"))
        };
        positive(name, self.theta)?;
        match self.scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => positive("factor", factor),
            RopeScaling::Llama3 {
                factor,
                low_frequency_factor: low,
                high_frequency_factor: high,
                original_positions,
            } => {
                positive("factor", factor)?;
                positive("low_freq_factor", low)?;
                positive("high_freq_factor", high)?;
                positive("original_max_position_embeddings", original_positions as f64)?;
                if low < high {
                    return Ok(());
                }
                Err(format!(
                    "`low_freq_factor` is {low}; it must be below `high_freq_factor`, {high}"
                ))
            }
            RopeScaling::Yarn {
                factor,
                attention_factor,
                beta_fast,
                beta_slow,
                original_positions,
                ..
            } => {
                positive("factor", factor)?;
                positive("attention_factor", attention_factor)?;
                positive("beta_fast", beta_fast)?;
                positive("beta_slow", beta_slow)?;
                positive("original_max_position_embeddings", original_positions as f64)?;
                if beta_fast < beta_slow {
                    return Err(format!(
                        "`beta_fast` is {beta_fast}; it must be at least `beta_slow`, {beta_slow}"
                    ));
                }
                if self.theta > 1.0 {
                    return Ok(());
                }
                Err(format!("`{name}` is {}; yarn positions need it above 1", self.theta))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_DIM: usize = 32;

    fn frequencies(theta: f64, scaling: RopeScaling) -> Vec<f64> {
        let rope = Rope { theta, scaling };
        (0..HEAD_DIM / 2).map(|i| rope.frequency(i, HEAD_DIM)).collect()
    }

    fn plain(i: usize) -> f64 {
        1e4_f64.powf(-((2 * i) as f64) / HEAD_DIM as f64)
    }

    #[test]
    fn linear_divides_every_frequency() {
        for (i, got) in
            frequencies(1e4, RopeScaling::Linear { factor: 4.0 }).into_iter().enumerate()
        {
            assert!((got / plain(i) - 0.25).abs() < 1e-12, "pair {i}");
        }
    }

    /// The published piecewise definition, by wavelengths.
    #[test]
    fn llama3_is_its_definition() {
        let (factor, low, high, original) = (8.0, 1.0, 4.0, 256);
        let scaling = RopeScaling::Llama3 {
            factor,
            low_frequency_factor: low,
            high_frequency_factor: high,
            original_positions: original,
        };
        let (mut kept, mut between, mut stretched) = (0, 0, 0);
        for (i, got) in frequencies(1e4, scaling).into_iter().enumerate() {
            let wavelength = 2.0 * PI / plain(i);
            let original = original as f64;
            let want = if wavelength < original / high {
                kept += 1;
                plain(i)
            } else if wavelength > original / low {
                stretched += 1;
                plain(i) / factor
            } else {
                between += 1;
                let smooth = (original / wavelength - low) / (high - low);
                (1.0 - smooth) * plain(i) / factor + smooth * plain(i)
            };
            assert!((got / want - 1.0).abs() < 1e-12, "pair {i}: {got} for {want}");
        }
        assert!(kept > 0 && between > 0 && stretched > 0, "{kept}, {between}, {stretched}");
    }

    #[test]
    fn yarn_keeps_fast_pairs_and_stretches_slow_ones() {
        let yarn = |factor, truncate| RopeScaling::Yarn {
            factor,
            attention_factor: 1.1,
            beta_fast: 32.0,
            beta_slow: 1.0,
            original_positions: 4096,
            truncate,
        };
        for truncate in [true, false] {
            let got = frequencies(1e4, yarn(4.0, truncate));
            let shares: Vec<f64> = got.iter().enumerate().map(|(i, f)| f / plain(i)).collect();
            assert_eq!((shares[0], shares[HEAD_DIM / 2 - 1]), (1.0, 0.25));
            assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
            assert!(shares.iter().any(|share| (0.3..0.9).contains(share)), "{shares:?}");
            // A factor of 1 stretches nothing.
            let same = frequencies(1e4, yarn(1.0, truncate));
            assert!(same.iter().enumerate().all(|(i, f)| (f / plain(i) - 1.0).abs() < 1e-12));
        }
        assert_eq!(Rope { theta: 1e4, scaling: yarn(4.0, true) }.factor(), 1.1);
        let rope = Rope { theta: 1.0, scaling: yarn(4.0, true) };
        assert!(rope.check("rope_theta").unwrap_err().contains("above 1"));
    }
}

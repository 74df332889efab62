//! Options of training: every number besides the data and the model's shape.

use serde::{Deserialize, Serialize};

use crate::error::{TrainError, TrainErrorKind};

/// Duration of training, over which the learning rate's schedule is stretched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duration {
    /// Passes over the data.
    Epochs(u64),
    /// Updates of the weights.
    Steps(u64),
}

/// Options of training.
///
/// All but [`TrainOptions::threads`] influence the result, and a checkpoint is resumed only with
/// the same values of those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainOptions {
    /// Duration of training.
    pub duration: Duration,
    /// Sequences per step.
    pub batch_size: usize,
    /// The highest learning rate, reached after the warm-up.
    pub learning_rate: f32,
    /// The learning rate at the end, as a share of the highest.
    pub final_learning_rate_share: f32,
    /// Steps over which the learning rate rises linearly.
    pub warmup_steps: u64,
    /// AdamW's decoupled decay per step, times the learning rate. Norms never decay.
    pub weight_decay: f32,
    /// True if the token embedding decays too.
    pub decay_embeddings: bool,
    /// AdamW's memory of the gradient.
    pub beta1: f32,
    /// AdamW's memory of the squared gradient.
    pub beta2: f32,
    /// Added to AdamW's denominator.
    pub adam_epsilon: f32,
    /// Gradients whose norm is larger are scaled down to it; 0 turns clipping off.
    pub clip_norm: f32,
    /// The share of values dropped.
    pub dropout: f32,
    /// The share of the wanted distribution that is spread over the whole vocabulary.
    pub label_smoothing: f32,
    /// Weight of the next tokens' loss beside that of a draft head's codes. The latter counts 1;
    /// without a draft head it is a factor of all that is minimised.
    pub next_token_weight: f32,
    /// The memory of the weights' moving average; 0 turns the average off.
    pub average_decay: f32,
    /// Decides the initial weights, the order of examples, and what dropout drops.
    pub seed: u64,
    /// Parts of a batch whose gradients are computed apart; also the most threads that can help.
    pub shards: usize,
    /// Worker threads; 0 means one per core. No influence on the result.
    pub threads: usize,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            duration: Duration::Epochs(10),
            batch_size: 64,
            learning_rate: 1e-3,
            final_learning_rate_share: 0.1,
            warmup_steps: 100,
            weight_decay: 0.05,
            decay_embeddings: false,
            beta1: 0.9,
            beta2: 0.99,
            adam_epsilon: 1e-8,
            clip_norm: 1.0,
            dropout: 0.1,
            label_smoothing: 0.0,
            next_token_weight: 1.0,
            average_decay: 0.0,
            seed: 0,
            shards: 4,
            threads: 0,
        }
    }
}

impl TrainOptions {
    /// Checks every field's range.
    ///
    /// # Errors
    /// Naming the first field outside its range.
    pub fn check(&self) -> Result<(), TrainError> {
        fn rule(
            holds: bool,
            field: &'static str,
            value: impl ToString,
            rule: &'static str,
        ) -> Result<(), TrainError> {
            let value = value.to_string();
            if holds { Ok(()) } else { Err(TrainErrorKind::Option { field, value, rule }.into()) }
        }
        const SHARE: &str = "it must be at least 0 and below 1";
        const NOT_NEGATIVE: &str = "it must be a finite number, 0 or larger";
        let share = |field, value: f32| rule((0.0..1.0).contains(&value), field, value, SHARE);
        let not_negative =
            |field, value: f32| rule(value.is_finite() && value >= 0.0, field, value, NOT_NEGATIVE);
        let (Duration::Epochs(length) | Duration::Steps(length)) = self.duration;
        rule(length > 0, "duration", length, "train for at least one epoch or step")?;
        rule(self.batch_size > 0, "batch_size", 0, "a step needs at least one sequence")?;
        rule(
            self.learning_rate.is_finite() && self.learning_rate > 0.0,
            "learning_rate",
            self.learning_rate,
            "it must be a finite number larger than 0; 0.001 is usual for small models",
        )?;
        rule(
            (0.0..=1.0).contains(&self.final_learning_rate_share),
            "final_learning_rate_share",
            self.final_learning_rate_share,
            "it must lie between 0 and 1",
        )?;
        not_negative("weight_decay", self.weight_decay)?;
        share("beta1", self.beta1)?;
        share("beta2", self.beta2)?;
        rule(
            self.adam_epsilon.is_finite() && self.adam_epsilon > 0.0,
            "adam_epsilon",
            self.adam_epsilon,
            "it must be a finite number larger than 0; 1e-8 is usual",
        )?;
        not_negative("clip_norm", self.clip_norm)?;
        share("dropout", self.dropout)?;
        share("label_smoothing", self.label_smoothing)?;
        not_negative("next_token_weight", self.next_token_weight)?;
        share("average_decay", self.average_decay)?;
        rule(self.shards > 0, "shards", 0, "a batch has at least one shard; 4 is usual")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_outside_its_range_is_named() {
        let good = TrainOptions::default;
        for (bad, field) in [
            (TrainOptions { duration: Duration::Steps(0), ..good() }, "duration"),
            (TrainOptions { batch_size: 0, ..good() }, "batch_size"),
            (TrainOptions { learning_rate: f32::NAN, ..good() }, "learning_rate"),
            (TrainOptions { learning_rate: f32::INFINITY, ..good() }, "learning_rate"),
            (TrainOptions { weight_decay: -0.1, ..good() }, "weight_decay"),
            (TrainOptions { beta2: 1.0, ..good() }, "beta2"),
            (TrainOptions { adam_epsilon: 0.0, ..good() }, "adam_epsilon"),
            (TrainOptions { clip_norm: f32::NAN, ..good() }, "clip_norm"),
            (TrainOptions { dropout: 1.0, ..good() }, "dropout"),
            (TrainOptions { label_smoothing: -0.1, ..good() }, "label_smoothing"),
            (TrainOptions { next_token_weight: -1.0, ..good() }, "next_token_weight"),
            (TrainOptions { average_decay: 1.0, ..good() }, "average_decay"),
            (TrainOptions { shards: 0, ..good() }, "shards"),
        ] {
            let message = bad.check().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{field}` is ")), "{message}");
        }
        good().check().unwrap();
    }

    #[test]
    fn missing_fields_take_their_defaults() {
        let read: TrainOptions = serde_json::from_str(r#"{"duration": {"steps": 7}}"#).unwrap();
        let wanted = TrainOptions { duration: Duration::Steps(7), ..TrainOptions::default() };
        assert_eq!(read, wanted);
        assert!(serde_json::from_str::<TrainOptions>(r#"{"droput": 0.1}"#).is_err());
    }
}

//! `training.json`: what was done and how it went.

use std::path::Path;

use anyhow::{Context, ensure};
use palmette_eval::HoldOut;
use palmette_model::ModelConfig;
use palmette_train::{ExportDtype, TrainOptions, replace_text};
use serde::{Deserialize, Serialize};

use super::args::TrainArgs;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Log {
    pub(crate) options: TrainOptions,
    pub(crate) model: ModelConfig,
    pub(crate) command: CommandOptions,
    /// Of the catalog and the histories.
    pub(crate) fingerprint: String,
    pub(crate) parameters: usize,
    pub(crate) training_histories: usize,
    pub(crate) training_items: usize,
    /// The newest items, which are kept from training.
    #[serde(default)]
    pub(crate) cold_items: usize,
    pub(crate) epochs: Vec<EpochLog>,
    /// The first of the validations with the highest NDCG; what OUT holds. Follows from `epochs`, as
    /// does the next.
    pub(crate) best: Option<Validation>,
    pub(crate) validations_since_best: u64,
    /// Time spent, validation included.
    pub(crate) seconds: f64,
}

/// What a run depends on that its checkpoint does not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandOptions {
    hold_out: HoldOut,
    #[serde(default)]
    cold_start: Option<f64>,
    crop: f32,
    drop_items: f32,
    dtype: ExportDtype,
    validate_every: u64,
    validation_users: usize,
    validation_beam_width: usize,
    /// May differ when a run is resumed: it only says when to stop.
    patience: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EpochLog {
    /// From 1.
    pub(crate) epoch: u64,
    /// Mean over the epoch's steps.
    pub(crate) loss: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) validation: Option<Validation>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Validation {
    pub(crate) epoch: u64,
    pub(crate) users: usize,
    pub(crate) hit_rate_at_10: f64,
    pub(crate) ndcg_at_10: f64,
}

impl Log {
    /// In the model's directory.
    pub(crate) const FILE_NAME: &str = "training.json";

    pub(crate) fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(Self::FILE_NAME);
        let name = path.display();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{name}: a run cannot go on without its log"))?;
        serde_json::from_str(&text).with_context(|| format!("{name} is not a training log"))
    }

    pub(crate) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(replace_text(&dir.join(Self::FILE_NAME), &(text + "\n"))?)
    }

    /// Notes the next epoch.
    pub(crate) fn push(&mut self, entry: EpochLog) {
        if let Some(validation) = &entry.validation {
            if self.is_better(validation) {
                self.best = Some(validation.clone());
                self.validations_since_best = 0;
            } else {
                self.validations_since_best += 1;
            }
        }
        self.epochs.push(entry);
    }

    pub(crate) fn is_better(&self, validation: &Validation) -> bool {
        self.best.as_ref().is_none_or(|best| validation.ndcg_at_10 > best.ndcg_at_10)
    }

    /// Forgets what came after `epoch`: a log is written before its checkpoint, so it may be ahead.
    ///
    /// # Errors
    /// When the log is behind: the two are of different runs.
    pub(crate) fn go_back_to(&mut self, epoch: u64) -> anyhow::Result<()> {
        let known = self.epochs.len() as u64;
        ensure!(
            known >= epoch,
            "{} tells of {known} epochs, but the checkpoint has {epoch}: they are of different runs",
            Self::FILE_NAME
        );
        let mut epochs = std::mem::take(&mut self.epochs);
        epochs.truncate(epoch as usize);
        self.best = None;
        self.validations_since_best = 0;
        epochs.into_iter().for_each(|entry| self.push(entry));
        Ok(())
    }
}

impl CommandOptions {
    pub(crate) fn new(args: &TrainArgs) -> Self {
        let augmentation = args.augmentation();
        Self {
            hold_out: args.hold_out(),
            cold_start: args.cold_start,
            crop: augmentation.crop,
            drop_items: augmentation.drop_items,
            dtype: args.dtype(),
            validate_every: args.validate_every,
            validation_users: args.validation_users,
            validation_beam_width: args.validation_beam_width,
            patience: args.patience,
        }
    }

    /// # Errors
    /// Naming the first option in which a run that is resumed differs.
    pub(crate) fn check_agrees(&self, now: &Self) -> anyhow::Result<()> {
        let shown =
            |share: Option<f64>| share.map_or_else(|| "absent".to_owned(), |s| s.to_string());
        for (option, before, now) in [
            ("hold-out", self.hold_out.name().to_owned(), now.hold_out.name().to_owned()),
            ("cold-start", shown(self.cold_start), shown(now.cold_start)),
            ("crop", self.crop.to_string(), now.crop.to_string()),
            ("drop-items", self.drop_items.to_string(), now.drop_items.to_string()),
            ("dtype", self.dtype.name().into(), now.dtype.name().into()),
            ("validate-every", self.validate_every.to_string(), now.validate_every.to_string()),
            (
                "validation-users",
                self.validation_users.to_string(),
                now.validation_users.to_string(),
            ),
            (
                "validation-beam-width",
                self.validation_beam_width.to_string(),
                now.validation_beam_width.to_string(),
            ),
        ] {
            ensure!(
                before == now,
                "--{option} was {before} before and is {now} now; resume with the value from \
                 before, or start a new run"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use palmette_train::Duration;

    use super::*;

    fn log() -> Log {
        Log {
            options: TrainOptions { duration: Duration::Epochs(9), ..TrainOptions::default() },
            model: ModelConfig {
                vocab_size: 8,
                hidden_size: 16,
                intermediate_size: 32,
                num_hidden_layers: 1,
                num_attention_heads: 2,
                num_key_value_heads: 1,
                head_dim: 8,
                max_position_embeddings: 16,
                rms_norm_eps: 1e-6,
                rope_theta: 10_000.0,
                tie_word_embeddings: true,
            },
            command: CommandOptions {
                hold_out: HoldOut::Both,
                cold_start: None,
                crop: 0.3,
                drop_items: 0.1,
                dtype: ExportDtype::Float32,
                validate_every: 1,
                validation_users: 5,
                validation_beam_width: 4,
                patience: 2,
            },
            fingerprint: String::new(),
            parameters: 1,
            training_histories: 2,
            training_items: 3,
            cold_items: 0,
            epochs: Vec::new(),
            best: None,
            validations_since_best: 0,
            seconds: 0.1,
        }
    }

    /// A log of validations with these NDCGs, one an epoch.
    fn validated(ndcgs: &[f64]) -> Log {
        let mut log = log();
        for (epoch, &ndcg_at_10) in (1..).zip(ndcgs) {
            let validation = Validation { epoch, users: 5, hit_rate_at_10: 0.5, ndcg_at_10 };
            log.push(EpochLog { epoch, loss: 1.0, validation: Some(validation) });
        }
        log
    }

    #[test]
    fn the_first_of_equal_validations_is_the_best() {
        let log = validated(&[0.1, 0.4, 0.4, 0.3]);
        assert_eq!(log.best.as_ref().unwrap().epoch, 2);
        assert_eq!(log.validations_since_best, 2);
    }

    #[test]
    fn going_back_forgets_later_epochs_and_their_best() {
        let mut log = validated(&[0.3, 0.2, 0.1, 0.4]);
        log.go_back_to(3).unwrap();
        assert_eq!((log.epochs.len(), log.best.as_ref().unwrap().epoch), (3, 1));
        assert_eq!(log.validations_since_best, 2);
        log.go_back_to(0).unwrap();
        assert_eq!((log.best.clone(), log.validations_since_best), (None, 0));
        assert!(log.go_back_to(1).unwrap_err().to_string().contains("0 epochs"));
    }

    #[test]
    fn every_bit_of_a_metric_survives_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let ndcgs: Vec<f64> = (1..2000).map(|i| f64::from(i).sqrt() / 97.0).collect();
        let log = validated(&ndcgs);
        log.write(dir.path()).unwrap();
        assert_eq!(Log::read(dir.path()).unwrap().epochs, log.epochs);
    }
}

//! Course of a run, epoch by epoch, and the best of its validations.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// A part of a run's log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Course {
    pub(crate) epochs: Vec<EpochLog>,
    /// The first of the validations with the highest NDCG; what OUT holds. Follows from `epochs`,
    /// as does the next.
    pub(crate) best: Option<Validation>,
    pub(crate) validations_since_best: u64,
    /// Time spent, validation included.
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EpochLog {
    /// From 1.
    pub(crate) epoch: u64,
    /// Loss that is minimised: the mean over the epoch's steps.
    pub(crate) loss: f64,
    /// Draft head's part of the loss: the mean over its codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draft_loss: Option<f64>,
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

impl Course {
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

    /// True if a validation is better than all before it.
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
            "the log tells of {known} epochs, but the checkpoint has {epoch}: they are of different runs"
        );
        let mut epochs = std::mem::take(&mut self.epochs);
        epochs.truncate(epoch as usize);
        self.best = None;
        self.validations_since_best = 0;
        epochs.into_iter().for_each(|entry| self.push(entry));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Validations with these NDCGs, one an epoch.
    fn validated(ndcgs: &[f64]) -> Course {
        let mut course = Course::default();
        for (epoch, &ndcg_at_10) in (1..).zip(ndcgs) {
            let validation = Validation { epoch, users: 5, hit_rate_at_10: 0.5, ndcg_at_10 };
            let (draft_loss, validation) = (Some(1.0 / 3.0), Some(validation));
            course.push(EpochLog { epoch, loss: 1.0, draft_loss, validation });
        }
        course
    }

    #[test]
    fn the_first_of_equal_validations_is_the_best() {
        let course = validated(&[0.1, 0.4, 0.4, 0.3]);
        assert_eq!(course.best.as_ref().unwrap().epoch, 2);
        assert_eq!(course.validations_since_best, 2);
    }

    #[test]
    fn going_back_forgets_later_epochs_and_their_best() {
        let mut course = validated(&[0.3, 0.2, 0.1, 0.4]);
        course.go_back_to(3).unwrap();
        assert_eq!((course.epochs.len(), course.best.as_ref().unwrap().epoch), (3, 1));
        assert_eq!(course.validations_since_best, 2);
        course.go_back_to(0).unwrap();
        assert_eq!((course.best.clone(), course.validations_since_best), (None, 0));
        assert!(course.go_back_to(1).unwrap_err().to_string().contains("0 epochs"));
    }

    #[test]
    fn every_bit_of_a_metric_survives_a_file() {
        #[derive(Serialize, Deserialize)]
        struct File {
            #[serde(flatten)]
            course: Course,
        }
        let ndcgs: Vec<f64> = (1..2000).map(|i| f64::from(i).sqrt() / 97.0).collect();
        let course = validated(&ndcgs);
        let text = serde_json::to_string(&File { course: course.clone() }).unwrap();
        assert_eq!(serde_json::from_str::<File>(&text).unwrap().course, course);
    }
}

//! Learners: a whole model, or a draft head alone.

use std::path::Path;

use palmette_train::{HeadTrainer, Params, StepReport, TrainError, Trainer};

use super::training_data::TrainingData;

pub(crate) enum Learner<'a> {
    /// A decoder, and its draft head if it has one.
    Model(Box<Trainer<TrainingData<'a>>>),
    /// A draft head after a decoder that stands still.
    Head(Box<HeadTrainer>),
}

impl Learner<'_> {
    pub(crate) fn step(&mut self) -> Result<StepReport, TrainError> {
        match self {
            Self::Model(trainer) => trainer.step(),
            Self::Head(trainer) => trainer.step(),
        }
    }

    /// Writes a checkpoint.
    pub(crate) fn save(&self, dir: &Path) -> Result<(), TrainError> {
        match self {
            Self::Model(trainer) => trainer.save(dir),
            Self::Head(trainer) => trainer.save(dir),
        }
    }

    /// The weights to validate and keep.
    pub(crate) fn averaged(&self) -> Params {
        match self {
            Self::Model(trainer) => trainer.averaged(),
            Self::Head(trainer) => trainer.params().clone(),
        }
    }

    pub(crate) fn num_parameters(&self) -> usize {
        match self {
            Self::Model(trainer) => trainer.params().values().len(),
            Self::Head(trainer) => trainer.params().values().len(),
        }
    }

    pub(crate) fn steps_taken(&self) -> u64 {
        match self {
            Self::Model(trainer) => trainer.steps_taken(),
            Self::Head(trainer) => trainer.steps_taken(),
        }
    }

    pub(crate) fn steps_per_epoch(&self) -> u64 {
        match self {
            Self::Model(trainer) => trainer.steps_per_epoch(),
            Self::Head(trainer) => trainer.steps_per_epoch(),
        }
    }

    pub(crate) fn total_steps(&self) -> u64 {
        match self {
            Self::Model(trainer) => trainer.total_steps(),
            Self::Head(trainer) => trainer.total_steps(),
        }
    }

    pub(crate) fn epochs_done(&self) -> u64 {
        self.steps_taken() / self.steps_per_epoch()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.steps_taken() >= self.total_steps()
    }
}

//! `palmette-train train` and `palmette-train draft`: data in, checkpoints on the way, a Hugging
//! Face directory out.
//!
//! [`TrainArgs`] and [`DraftArgs`] are the command lines, [`run`] is the loop of epochs and
//! validations that both share, [`log`] and [`course`] what is kept of a run, and [`publish`] how a
//! model gets to OUT. What a run leaves there, and in which order it is written, is described in
//! [`run`].

mod args;
mod companions;
mod course;
mod data;
mod draft;
mod draft_args;
mod fingerprint;
mod judge;
mod learner;
mod log;
mod outcome;
mod progress;
mod publish;
mod run;
mod run_args;
mod start;
mod train;
mod training_data;

pub(crate) use args::TrainArgs;
pub(crate) use draft::draft;
pub(crate) use draft_args::DraftArgs;
pub(crate) use train::train;

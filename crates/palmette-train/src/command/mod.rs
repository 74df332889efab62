//! `palmette-train train`: data in, checkpoints on the way, a Hugging Face directory out; and `palmette-train draft`, in
//! [`mod@draft`].
//!
//! [`TrainArgs`] is the command line, [`Run`](run::Run) the loop of epochs and validations,
//! [`Log`](log::Log) what `training.json` keeps of them, and [`publish`] how a model gets to OUT.
//! What a run leaves there, and in which order it is written, is described in [`run`].

mod args;
mod data;
mod draft;
mod draft_args;
mod log;
mod outcome;
mod progress;
mod publish;
mod run;

use std::sync::Arc;

pub(crate) use args::TrainArgs;
pub(crate) use draft::draft;
pub(crate) use draft_args::DraftArgs;
use palmette_catalog::Catalog;
use palmette_eval::Histories;

use outcome::Outcome;

pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    args.check()?;
    let catalog = Arc::new(Catalog::open(&args.catalog)?);
    let histories = Histories::read(&args.histories)?.bind(&args.histories, &catalog)?;
    let mut run = run::Run::begin(args, catalog, &histories)?;
    run.train()?;
    let log = run.log();
    Outcome {
        out: &args.out,
        parameters: log.parameters,
        epochs: &log.epochs,
        best: log.best.as_ref(),
        seconds: log.seconds,
        made: "the model is",
        latest: "model",
    }
    .report(args.json)
}

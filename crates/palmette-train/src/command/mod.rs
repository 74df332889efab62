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
mod progress;
mod publish;
mod run;

use std::io::Write;
use std::sync::Arc;

pub(crate) use args::TrainArgs;
pub(crate) use draft::draft;
pub(crate) use draft_args::DraftArgs;
use palmette_catalog::Catalog;
use palmette_eval::Histories;

pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    args.check()?;
    let catalog = Arc::new(Catalog::open(&args.catalog)?);
    let histories = Histories::read(&args.histories)?.bind(&args.histories, &catalog)?;
    let mut run = run::Run::begin(args, catalog, &histories)?;
    run.train()?;
    report(args, run.log())
}

fn report(args: &TrainArgs, log: &log::Log) -> anyhow::Result<()> {
    let out = args.out.display();
    let mut stdout = std::io::stdout().lock();
    if args.json {
        let document = serde_json::json!({
            "out": out.to_string(),
            "parameters": log.parameters,
            "epochs": log.epochs,
            "best": log.best,
            "seconds": log.seconds,
        });
        writeln!(stdout, "{document}")?;
        return Ok(());
    }
    writeln!(stdout, "{:.0} s; the model is in {out}", log.seconds)?;
    match &log.best {
        Some(best) => writeln!(
            stdout,
            "best validation at epoch {}: HR@10 {:.4}, NDCG@10 {:.4}, {} users",
            best.epoch, best.hit_rate_at_10, best.ndcg_at_10, best.users
        )?,
        None => writeln!(stdout, "no user was asked at validation: it is the last epoch's model")?,
    }
    Ok(())
}

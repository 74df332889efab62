//! The loop of a run: epochs, validations, checkpoints.
//!
//! After an epoch comes, where it is due: the validation, which puts a better model in OUT; the log;
//! the checkpoint. A process may end between any two of these. What is ahead of the checkpoint is
//! then done again, with the same outcome: the log is cut back to the checkpoint's epoch, and a model
//! in OUT that is ahead is the one that the same epoch will put there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use palmette_catalog::Catalog;
use palmette_eval::{ColdStart, EvalOptions, Question, UserHistories, evaluate};
use palmette_model::Model;
use palmette_recommend::{PromptFormat, Recommender};
use palmette_train::{HistoryDataset, Trainer, remove_checkpoint};

use super::args::TrainArgs;
use super::data;
use super::log::{CommandOptions, EpochLog, Log, Validation};
use super::progress::Progress;
use super::publish::Candidate;

/// Longest time without a checkpoint, as far as epochs end. When one is written does not influence
/// the result.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
const VALIDATION_K: usize = 10;

/// A run and what surrounds it.
pub(crate) struct Run<'a> {
    args: &'a TrainArgs,
    catalog: Arc<Catalog>,
    format: PromptFormat,
    questions: Vec<Question<'a>>,
    trainer: Trainer<HistoryDataset>,
    log: Log,
    progress: Progress,
    /// When the run began, had it not been interrupted.
    seconds_before: f64,
    started: Instant,
    saved: Instant,
}

impl<'a> Run<'a> {
    /// Prepares a new run or goes on with one. OUT is touched only when all else has been checked.
    pub(crate) fn begin(
        args: &'a TrainArgs,
        catalog: Arc<Catalog>,
        histories: &'a UserHistories,
    ) -> anyhow::Result<Self> {
        let cold = match args.cold_start {
            Some(share) => Some(
                ColdStart::newest(histories, catalog.num_items(), share)
                    .with_context(|| format!("--cold-start with {}", args.histories.display()))?,
            ),
            None => None,
        };
        let hold_out = args.hold_out();
        let training = data::training_histories(&catalog, histories, hold_out, cold.as_ref());
        let training_items = training.iter().map(Vec::len).sum();
        ensure!(training_items > 0, "{}: no history to train on", args.histories.display());
        let training_histories = training.len();
        let format = PromptFormat::for_catalog(&catalog, args.max_history)?;
        let config = args.model_config(&format);
        let dataset = HistoryDataset::new(training, format.clone(), args.augmentation());
        let (options, checkpoint) = (args.train_options(), args.checkpoint());
        let trainer = match args.resume {
            true => Trainer::resume_expecting(&checkpoint, &config, options.clone(), dataset)?,
            false => Trainer::new(&config, options.clone(), dataset)?,
        };
        let mut log = Log {
            options,
            model: config,
            command: CommandOptions::new(args),
            fingerprint: data::fingerprint(&catalog, histories),
            parameters: trainer.params().values().len(),
            training_histories,
            cold_items: cold.as_ref().map_or(0, ColdStart::num_items),
            training_items,
            epochs: Vec::new(),
            best: None,
            validations_since_best: 0,
            seconds: 0.0,
        };
        if args.resume {
            go_on(&mut log, args, trainer.steps_taken() / trainer.steps_per_epoch())?;
        } else {
            std::fs::create_dir_all(&args.out)
                .with_context(|| format!("{}: cannot be made", args.out.display()))?;
            // Or else --resume could go on with the run that this one replaces.
            remove_checkpoint(&checkpoint)?;
        }
        Candidate::remove_leftover(&args.out)?;
        let elapsed = Duration::try_from_secs_f64(log.seconds).unwrap_or_default();
        let (done, steps) = (trainer.steps_taken(), trainer.total_steps());
        Ok(Self {
            args,
            questions: data::validation_questions(
                histories,
                hold_out,
                cold.as_ref(),
                args.validation_users,
            ),
            catalog,
            format,
            trainer,
            seconds_before: log.seconds,
            log,
            progress: Progress::new(args.json, done, steps, elapsed),
            started: Instant::now(),
            saved: Instant::now(),
        })
    }

    /// Trains until the planned duration is over or validation has stopped getting better.
    pub(crate) fn train(&mut self) -> anyhow::Result<()> {
        self.tell_beginning();
        while !self.trainer.is_finished() && !self.is_stuck() {
            let loss = self.train_epoch()?;
            let epoch = self.epochs_done();
            let is_due =
                epoch.is_multiple_of(self.args.validate_every) || self.trainer.is_finished();
            let validation = if is_due { self.validate(epoch)? } else { None };
            self.log.push(EpochLog { epoch, loss, validation });
            self.tell_epoch();
            if is_due || self.saved.elapsed() >= CHECKPOINT_INTERVAL {
                self.save()?;
            }
        }
        if self.is_stuck() {
            self.progress.say(&format!(
                "no better validation in {}: stopped early; --resume with another --patience goes on",
                self.args.patience
            ));
        }
        Ok(())
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Takes the steps of an epoch; returns their mean loss. Runs begin and end with whole epochs.
    fn train_epoch(&mut self) -> anyhow::Result<f64> {
        let steps = self.trainer.steps_per_epoch();
        let mut loss = 0.0;
        for count in 1..=steps {
            let report = self.trainer.step()?;
            loss += report.loss;
            self.progress.step(report.step, loss / count as f64);
        }
        Ok(loss / steps as f64)
    }

    /// Asks the model as it is for the validation items. The best so far goes to OUT; when there is
    /// nobody to ask, the latest.
    fn validate(&mut self, epoch: u64) -> anyhow::Result<Option<Validation>> {
        self.progress.doing("validation");
        let (args, params) = (self.args, self.trainer.averaged());
        let candidate = Candidate::write(&args.out, &params, args.dtype(), &self.format)?;
        let validation = match self.questions.is_empty() {
            true => None,
            false => Some(self.ask(Model::load(candidate.dir())?, epoch)?),
        };
        if validation.as_ref().is_none_or(|validation| self.log.is_better(validation)) {
            candidate.publish(&args.out)?;
        }
        Candidate::remove_leftover(&args.out)?;
        Ok(validation)
    }

    fn ask(&self, model: Model, epoch: u64) -> anyhow::Result<Validation> {
        let recommender = Recommender::new(model, Arc::clone(&self.catalog), self.format.clone())?;
        let options = EvalOptions {
            beam_width: self.args.validation_beam_width,
            k: VALIDATION_K,
            include_seen: false,
            unconstrained: false,
            threads: self.args.threads(),
        };
        let metrics = evaluate(&recommender, &self.questions, &options, |_| {})?.metrics;
        let at = metrics.at(VALIDATION_K);
        let (hit_rate_at_10, ndcg_at_10) = (at.hit_rate, at.ndcg);
        Ok(Validation { epoch, users: metrics.questions(), hit_rate_at_10, ndcg_at_10 })
    }

    /// The log goes first: it can be cut back to an older checkpoint, but not guessed.
    fn save(&mut self) -> anyhow::Result<()> {
        self.log.seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        self.log.write(&self.args.out)?;
        self.trainer.save(&self.args.checkpoint())?;
        self.saved = Instant::now();
        Ok(())
    }

    fn epochs_done(&self) -> u64 {
        self.trainer.steps_taken() / self.trainer.steps_per_epoch()
    }

    fn is_stuck(&self) -> bool {
        self.args.patience > 0 && self.log.validations_since_best >= self.args.patience
    }

    fn tell_beginning(&self) {
        let Log { parameters, training_histories, training_items, cold_items, .. } = &self.log;
        let steps = self.trainer.total_steps();
        let mut line = format!(
            "training {parameters} parameters on {training_items} items of {training_histories} \
             histories, {steps} steps"
        );
        if *cold_items > 0 {
            line += &format!(", the {cold_items} newest items held out");
        }
        if self.args.resume {
            line += &format!(", {} of them taken", self.trainer.steps_taken());
        }
        self.progress.say(&line);
    }

    fn tell_epoch(&self) {
        let Some(entry) = self.log.epochs.last() else { return };
        let mut line = format!("epoch {:>4}  loss {:.4}", entry.epoch, entry.loss);
        if let Some(validation) = &entry.validation {
            let is_best = self.log.best.as_ref().is_some_and(|best| best.epoch == entry.epoch);
            line += &format!(
                "  validation HR@10 {:.4}  NDCG@10 {:.4}{}",
                validation.hit_rate_at_10,
                validation.ndcg_at_10,
                if is_best { "  (best)" } else { "" }
            );
        }
        self.progress.say(&line);
    }
}

/// Takes over the log of the run in OUT, as it was after `epoch` epochs.
///
/// # Errors
/// When that run was another one in what its checkpoint does not tell.
fn go_on(log: &mut Log, args: &TrainArgs, epoch: u64) -> anyhow::Result<()> {
    let mut before = Log::read(&args.out)?;
    before.command.check_agrees(&log.command)?;
    ensure!(
        before.fingerprint == log.fingerprint,
        "{} or {} have changed since the run began; resume with what they were, or start a new run",
        args.histories.display(),
        args.catalog.display()
    );
    before.go_back_to(epoch)?;
    log.epochs = before.epochs;
    log.best = before.best;
    log.validations_since_best = before.validations_since_best;
    log.seconds = before.seconds;
    Ok(())
}

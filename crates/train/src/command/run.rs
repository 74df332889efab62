//! The loop of a run: epochs, validations, checkpoints.
//!
//! After an epoch comes, where it is due: the validation, which puts a better model in OUT; the
//! log; the checkpoint. A process may end between any two of these. What is ahead of the checkpoint
//! is then done again, with the same outcome: the log is cut back to the checkpoint's epoch, and a
//! model in OUT that is ahead is the one that the same epoch will put there.

use std::time::{Duration, Instant};

use anyhow::Context;
use palmette_train::{ExportDtype, remove_checkpoint};

use super::companions::Companions;
use super::course::{Course, EpochLog, Validation};
use super::judge::Judge;
use super::learner::Learner;
use super::log::{About, Log};
use super::progress::Progress;
use super::publish::Candidate;
use super::run_args::RunArgs;

/// Longest time without a checkpoint, as far as epochs end. When one is written does not influence
/// the result.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);

/// Setup of a run besides its arguments.
pub(crate) struct Setup<'a, A> {
    pub(crate) about: A,
    pub(crate) judge: Judge<'a>,
    /// Number format of stored weights.
    pub(crate) dtype: ExportDtype,
    /// Files that every model in OUT gets beside its weights.
    pub(crate) companions: Companions,
    /// Validations without a better one after which the run stops; 0 for never.
    pub(crate) patience: u64,
}

/// A run and what surrounds it.
pub(crate) struct Run<'a, A> {
    args: &'a RunArgs,
    judge: Judge<'a>,
    dtype: ExportDtype,
    companions: Companions,
    patience: u64,
    learner: Learner<'a>,
    log: Log<A>,
    progress: Progress,
    /// When the run began, had it not been interrupted.
    seconds_before: f64,
    started: Instant,
    saved: Instant,
}

impl<'a, A: About> Run<'a, A> {
    /// Prepares a new run or resumes one. OUT is touched only when all else has been checked.
    ///
    /// `learner` begins anew, or goes on from the run's checkpoint if that is what `args` say.
    pub(crate) fn begin(
        args: &'a RunArgs,
        setup: Setup<'a, A>,
        learner: impl FnOnce() -> anyhow::Result<Learner<'a>>,
    ) -> anyhow::Result<Self> {
        let Setup { about, judge, dtype, companions, patience } = setup;
        // Before the checkpoint is looked at, which tells less of what differs.
        let before = match args.resume {
            true => Some(Log::read_of(args, &about)?),
            false => None,
        };
        let learner = learner()?;
        let mut course = Course::default();
        if let Some(before) = before {
            course = before.course;
            course
                .go_back_to(learner.epochs_done())
                .with_context(|| args.out.join(A::FILE_NAME).display().to_string())?;
        } else {
            std::fs::create_dir_all(&args.out)
                .with_context(|| format!("{}: cannot be made", args.out.display()))?;
            // Or else --resume could go on with the run that this one replaces.
            remove_checkpoint(&args.checkpoint())?;
        }
        Candidate::remove_leftover(&args.out)?;
        let elapsed = Duration::try_from_secs_f64(course.seconds).unwrap_or_default();
        let (done, steps) = (learner.steps_taken(), learner.total_steps());
        Ok(Self {
            args,
            judge,
            dtype,
            companions,
            patience,
            seconds_before: course.seconds,
            log: Log { about, parameters: learner.num_parameters(), course },
            learner,
            progress: Progress::new(args.json, done, steps, elapsed),
            started: Instant::now(),
            saved: Instant::now(),
        })
    }

    pub(crate) fn log(&self) -> &Log<A> {
        &self.log
    }

    pub(crate) fn learner(&self) -> &Learner<'a> {
        &self.learner
    }

    /// Trains until the planned duration is over or validation has stopped getting better. `what`
    /// is told first.
    pub(crate) fn train(&mut self, what: &str) -> anyhow::Result<()> {
        self.tell_beginning(what);
        while !self.learner.is_finished() && !self.is_stuck() {
            let mut entry = self.train_epoch()?;
            let is_due =
                entry.epoch.is_multiple_of(self.args.validate_every) || self.learner.is_finished();
            entry.validation = if is_due { self.validate(entry.epoch)? } else { None };
            self.tell_epoch(&entry);
            self.log.course.push(entry);
            if is_due || self.saved.elapsed() >= CHECKPOINT_INTERVAL {
                self.save()?;
            }
        }
        if self.is_stuck() {
            self.progress.say(&format!(
                "no better validation in {}: stopped early; --resume with another --patience goes on",
                self.patience
            ));
        }
        Ok(())
    }

    /// Takes the steps of an epoch. Runs begin and end with whole epochs.
    fn train_epoch(&mut self) -> anyhow::Result<EpochLog> {
        let steps = self.learner.steps_per_epoch();
        let (mut loss, mut draft_loss) = (0.0, 0.0);
        for count in 1..=steps {
            let report = self.learner.step()?;
            loss += report.loss;
            draft_loss += report.draft_loss;
            self.progress.step(report.step, loss / count as f64);
        }
        let mean = |sum: f64| sum / steps as f64;
        let draft_loss = self.judge.asks_head().then(|| mean(draft_loss));
        let epoch = self.learner.epochs_done();
        Ok(EpochLog { epoch, loss: mean(loss), draft_loss, validation: None })
    }

    /// Asks the model as it is for the validation items. The best so far goes to OUT; when there is
    /// nobody to ask, the latest.
    fn validate(&mut self, epoch: u64) -> anyhow::Result<Option<Validation>> {
        self.progress.doing("validation");
        let (out, params) = (&self.args.out, self.learner.averaged());
        let (format, companions) = (self.judge.format(), &self.companions);
        let candidate = Candidate::write(out, &params, self.dtype, format, companions)?;
        let validation = self.judge.ask(candidate.dir(), epoch)?;
        if validation.as_ref().is_none_or(|validation| self.log.course.is_better(validation)) {
            candidate.publish(out)?;
        }
        Candidate::remove_leftover(out)?;
        Ok(validation)
    }

    /// The log goes first: it can be cut back to an older checkpoint, but not guessed.
    fn save(&mut self) -> anyhow::Result<()> {
        self.log.course.seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        self.log.write(&self.args.out)?;
        self.learner.save(&self.args.checkpoint())?;
        self.saved = Instant::now();
        Ok(())
    }

    fn is_stuck(&self) -> bool {
        self.patience > 0 && self.log.course.validations_since_best >= self.patience
    }

    fn tell_beginning(&self, what: &str) {
        let mut line = format!("training {what}, {} steps", self.learner.total_steps());
        if self.args.resume {
            line += &format!(", {} of them taken", self.learner.steps_taken());
        }
        self.progress.say(&line);
    }

    fn tell_epoch(&self, entry: &EpochLog) {
        let EpochLog { epoch, loss, draft_loss, validation } = entry;
        let mut line = format!("epoch {epoch:>4}  loss {loss:.4}");
        if let Some(draft_loss) = draft_loss {
            line += &format!("  of the head {draft_loss:.4}");
        }
        if let Some(validation) = validation {
            let Validation { hit_rate_at_10, ndcg_at_10, .. } = validation;
            line += &format!("  validation HR@10 {hit_rate_at_10:.4}  NDCG@10 {ndcg_at_10:.4}");
            if self.log.course.is_better(validation) {
                line += "  (best)";
            }
        }
        self.progress.say(&line);
    }
}

//! `palmette-train draft`: a trained model in, the same with a draft head out.
//!
//! After every few epochs the head is asked for the validation items, and OUT holds the best so far.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use palmette_catalog::Catalog;
use palmette_eval::{EvalOptions, Histories, Question, evaluate};
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_recommend::{Mode, PromptFormat, Recommender, Verification};
use palmette_train::{
    ExportDtype, HeadTrainer, HistoryDataset, Params, StepReport, TrainError, TrainOptions,
    Trainer, replace_text,
};
use serde::Serialize;

use super::data;
use super::draft_args::DraftArgs;
use super::log::Validation;
use super::outcome::Outcome;
use super::progress::Progress;
use super::publish::Candidate;

const VALIDATION_K: usize = 10;

/// `draft.json`: what was done and how it went.
#[derive(Debug, Serialize)]
struct DraftLog {
    options: TrainOptions,
    form: DraftForm,
    head_only: bool,
    /// Of the catalog and the histories.
    fingerprint: String,
    /// Those of the decoder and the head.
    parameters: usize,
    epochs: Vec<DraftEpoch>,
    /// The first of the validations with the highest NDCG.
    best: Option<Validation>,
    seconds: f64,
}

/// Means over an epoch's steps.
#[derive(Clone, Debug, Serialize)]
struct DraftEpoch {
    /// From 1.
    epoch: u64,
    /// What is minimised.
    loss: f64,
    /// Of that, the head's part: the mean over its codes.
    draft_loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
}

pub(crate) fn draft(args: &DraftArgs) -> anyhow::Result<()> {
    args.check()?;
    let started = Instant::now();
    let catalog = Arc::new(Catalog::open(&args.catalog)?);
    let histories = Histories::read(&args.histories)?.bind(&args.histories, &catalog)?;
    let format = PromptFormat::read(&args.model)?;
    // Finds out whether model and catalog fit together.
    Recommender::new(Model::load(&args.model)?, Arc::clone(&catalog), format.clone())
        .with_context(|| format!("{} with {}", args.model.display(), args.catalog.display()))?;
    let decoder = Params::load(&args.model)?;
    ensure!(
        catalog.num_levels() == format.levels.len(),
        "{}: the catalog has semantic IDs of {} codes, the model spells {}; a draft head says all of them",
        args.catalog.display(),
        catalog.num_levels(),
        format.levels.len()
    );
    let (form, shape) = (args.form(), format.draft_shape());
    let params = Params::with_draft(&decoder, form, &shape, args.train_options().seed);
    let mut log = DraftLog {
        options: args.train_options(),
        form,
        head_only: args.head_only,
        fingerprint: data::fingerprint(&catalog, &histories),
        parameters: params.values().len(),
        epochs: Vec::new(),
        best: None,
        seconds: 0.0,
    };
    let training = data::training_histories(&catalog, &histories, args.hold_out(), None);
    let uneven = training.iter().flatten().find(|codes| codes.len() != format.levels.len());
    if let Some(codes) = uneven {
        anyhow::bail!(
            "{}: an item's semantic ID has {} codes, the model spells {}; a draft head says all of them",
            args.catalog.display(),
            codes.len(),
            format.levels.len()
        );
    }
    let dataset =
        HistoryDataset::new(training, format.clone(), args.augmentation()).with_branches();
    let mut run = Run::begin(args, params, dataset)?;
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("{}: cannot be made", args.out.display()))?;
    Candidate::remove_leftover(&args.out)?;
    let questions =
        data::validation_questions(&histories, args.hold_out(), None, args.validation_users);
    let progress = Progress::new(args.json, 0, run.total_steps(), Duration::ZERO);
    progress.say(&run.beginning(&decoder));
    let judge = Judge { args, catalog: &catalog, format: &format, questions: &questions };
    let per_epoch = run.steps_per_epoch();
    for epoch in 1..=run.total_steps() / per_epoch {
        let (mut loss, mut draft_loss) = (0.0, 0.0);
        for count in 1..=per_epoch {
            let report = run.step()?;
            loss += report.loss;
            draft_loss += report.draft_loss;
            progress.step(report.step, draft_loss / count as f64);
        }
        let is_last = epoch == run.total_steps() / per_epoch;
        let validation = match epoch.is_multiple_of(args.validate_every) || is_last {
            true => {
                progress.doing("validation");
                judge.validate(run.params(), epoch, &log)?
            }
            false => None,
        };
        let (loss, draft_loss) = (loss / per_epoch as f64, draft_loss / per_epoch as f64);
        let mut line = format!("epoch {epoch:>4}  loss {loss:.4}  of the head {draft_loss:.4}");
        if let Some(validation) = &validation {
            let Validation { hit_rate_at_10, ndcg_at_10, .. } = validation;
            line += &format!("  validation HR@10 {hit_rate_at_10:.4}  NDCG@10 {ndcg_at_10:.4}");
            if is_better(&log, validation) {
                line += "  (best)";
                log.best = Some(validation.clone());
            }
        }
        progress.say(&line);
        log.epochs.push(DraftEpoch { epoch, loss, draft_loss, validation });
        log.seconds = started.elapsed().as_secs_f64();
        write_log(&log, &args.out)?;
    }
    drop(progress);
    Outcome {
        out: &args.out,
        parameters: log.parameters,
        epochs: &log.epochs,
        best: log.best.as_ref(),
        seconds: log.seconds,
        made: "the model and its draft head are",
        latest: "head",
    }
    .report(args.json)
}

/// Training together, or of the head alone.
enum Run {
    Joint(Box<Trainer<HistoryDataset>>),
    Head(Box<HeadTrainer>),
}

impl Run {
    fn begin(args: &DraftArgs, params: Params, data: HistoryDataset) -> anyhow::Result<Self> {
        let options = args.train_options();
        if !args.head_only {
            return Ok(Self::Joint(Box::new(Trainer::from_params(params, options, data)?)));
        }
        let progress = Progress::new(args.json, 0, 0, Duration::ZERO);
        progress.doing("hidden states");
        let trainer = HeadTrainer::new(params, options, &data, |_| {})?;
        Ok(Self::Head(Box::new(trainer)))
    }

    fn step(&mut self) -> Result<StepReport, TrainError> {
        match self {
            Self::Joint(trainer) => trainer.step(),
            Self::Head(trainer) => trainer.step(),
        }
    }

    fn params(&self) -> &Params {
        match self {
            Self::Joint(trainer) => trainer.params(),
            Self::Head(trainer) => trainer.params(),
        }
    }

    fn steps_per_epoch(&self) -> u64 {
        match self {
            Self::Joint(trainer) => trainer.steps_per_epoch(),
            Self::Head(trainer) => trainer.steps_per_epoch(),
        }
    }

    fn total_steps(&self) -> u64 {
        match self {
            Self::Joint(trainer) => trainer.total_steps(),
            Self::Head(trainer) => trainer.total_steps(),
        }
    }

    fn beginning(&self, decoder: &Params) -> String {
        let (all, decoder) = (self.params().values().len(), decoder.values().len());
        let (head, steps) = (all - decoder, self.total_steps());
        match self {
            Self::Joint(_) => {
                format!(
                    "training a head of {head} parameters and the decoder's {decoder}, {steps} steps"
                )
            }
            Self::Head(trainer) => {
                let branches = trainer.num_branches();
                format!(
                    "training a head of {head} parameters on {branches} items, {steps} steps; the decoder's {decoder} stay"
                )
            }
        }
    }
}

/// Who asks at validation.
struct Judge<'a> {
    args: &'a DraftArgs,
    catalog: &'a Arc<Catalog>,
    format: &'a PromptFormat,
    questions: &'a [Question<'a>],
}

impl Judge<'_> {
    /// Asks the head as it is for the validation items. The best so far goes to OUT; when there is nobody to ask, the
    /// latest.
    fn validate(
        &self,
        params: &Params,
        epoch: u64,
        log: &DraftLog,
    ) -> anyhow::Result<Option<Validation>> {
        let out = &self.args.out;
        let candidate = Candidate::write(out, params, ExportDtype::Float32, self.format)?;
        let validation = match self.questions.is_empty() {
            true => None,
            false => Some(self.ask(candidate.dir(), epoch)?),
        };
        if validation.as_ref().is_none_or(|validation| is_better(log, validation)) {
            candidate.publish(out)?;
        }
        Candidate::remove_leftover(out)?;
        Ok(validation)
    }

    fn ask(&self, dir: &Path, epoch: u64) -> anyhow::Result<Validation> {
        let model = Model::load(dir)?;
        let head = DraftHead::load(dir, &model, self.format.draft_shape())?;
        let recommender = Recommender::new(model, Arc::clone(self.catalog), self.format.clone())?
            .with_draft_head(head)?;
        let options = EvalOptions {
            mode: Mode::Draft(Verification::Masks),
            beam_width: self.args.validation_beam_width,
            k: VALIDATION_K,
            include_seen: false,
            unconstrained: false,
            threads: self.args.threads(),
        };
        let metrics = evaluate(&recommender, self.questions, &options, |_| {})?.metrics;
        let at = metrics.at(VALIDATION_K);
        let (hit_rate_at_10, ndcg_at_10) = (at.hit_rate, at.ndcg);
        Ok(Validation { epoch, users: metrics.questions(), hit_rate_at_10, ndcg_at_10 })
    }
}

fn is_better(log: &DraftLog, validation: &Validation) -> bool {
    log.best.as_ref().is_none_or(|best| validation.ndcg_at_10 > best.ndcg_at_10)
}

fn write_log(log: &DraftLog, out: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(log)?;
    Ok(replace_text(&out.join("draft.json"), &(text + "\n"))?)
}

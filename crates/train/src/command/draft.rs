//! `palmette-train draft`: a trained model in, the same with a draft head out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use palmette_catalog::Catalog;
use palmette_catalog_live::CatalogView;
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftShape};
use palmette_recommend::{Mode, Prompts, Recommender, Verification};
use palmette_recommend_eval::ColdStart;
use palmette_train::{ExportDtype, HeadTrainer, Layout, Params, TrainOptions, Trainer};
use serde::{Deserialize, Serialize};

use super::companions::Companions;
use super::draft_args::DraftArgs;
use super::judge::Judge;
use super::learner::Learner;
use super::log::{About, LOGS, RunOptions, Setting, settings_of};
use super::outcome::Outcome;
use super::progress::Progress;
use super::run::{Run, Setup};
use super::run_args::RunArgs;
use super::training_data::TrainingData;
use super::{data, fingerprint};

/// Contents of `draft.json` besides the run's course.
#[derive(Debug, Serialize, Deserialize)]
struct Drafting {
    options: TrainOptions,
    form: DraftForm,
    head_only: bool,
    command: RunOptions,
    /// Fingerprint of the catalog and the histories.
    fingerprint: String,
    /// Fingerprint of the model that the run began with.
    model_fingerprint: String,
    /// Fingerprint of that model's other files, its template among them.
    #[serde(default)]
    files_fingerprint: String,
    /// The newest items, which are kept from training.
    cold_items: usize,
}

impl About for Drafting {
    const FILE_NAME: &str = LOGS[1];

    fn settings(&self) -> Vec<Setting> {
        let mut settings = vec![
            Setting::flag("head-only", self.head_only),
            Setting::new("input", self.form.input.name()),
            Setting::new("transition", self.form.transition.name()),
        ];
        settings.extend(settings_of(&self.options));
        settings.extend(self.command.settings());
        settings
    }

    fn files(&self, args: &RunArgs) -> Vec<(String, &str)> {
        let data = format!("{} or {} have", args.histories.display(), args.catalog.display());
        let beside = "files beside the weights of --model have".to_owned();
        vec![
            (data, &self.fingerprint),
            ("--model has".to_owned(), &self.model_fingerprint),
            (beside, &self.files_fingerprint),
        ]
    }
}

pub(crate) fn draft(args: &DraftArgs) -> anyhow::Result<()> {
    args.run.check()?;
    let run_args = &args.run;
    let catalog = Arc::new(Catalog::open(&run_args.catalog)?);
    let view = CatalogView::from(Arc::clone(&catalog));
    let prompts = Prompts::read(&args.model, Some(&view))?;
    let decoder = Params::load(&args.model)?;
    let histories = data::histories(run_args, &view, &prompts)?;
    // Finds out whether model and catalog fit together.
    let both = || format!("{} with {}", args.model.display(), run_args.catalog.display());
    Recommender::new(Model::load(&args.model)?, Arc::clone(&catalog), prompts.clone())
        .and_then(|_| prompts.format().check_shop(&view))
        .with_context(both)?;
    let shape = prompts.format().draft_shape().with_context(both)?;
    let cold = data::cold_start(run_args, &catalog, &histories)?;
    let training = data::training_histories(&histories, run_args.hold_out(), cold.as_ref());
    check_lengths(args, &view, shape.levels.len())?;
    let companions = Companions::read(&args.model)?;
    let about = Drafting {
        options: args.train_options(),
        form: args.form(),
        head_only: args.head_only,
        command: RunOptions::new(run_args),
        fingerprint: fingerprint::of_data(&catalog, &histories),
        model_fingerprint: fingerprint::of_weights(&decoder),
        files_fingerprint: fingerprint::of_files(&companions),
        cold_items: cold.as_ref().map_or(0, ColdStart::num_items),
    };
    let positions = decoder.config().max_position_embeddings;
    let data = TrainingData::new(training, &prompts, &view, positions, args.augmentation(), true)?;
    let mode = Mode::Draft(Verification::Masks);
    let judge = Judge::new(run_args, catalog, prompts, &histories, cold.as_ref(), mode);
    let setup = Setup { about, judge, dtype: ExportDtype::Float32, companions, patience: 0 };
    let mut run = Run::begin(run_args, setup, || learner(args, &decoder, &shape, data))?;
    let decoder = decoder.values().len();
    let head = run.log().parameters - decoder;
    let what = match run.learner() {
        Learner::Model(_) => {
            format!("a head of {head} parameters and the decoder's {decoder}")
        }
        Learner::Head(trainer) => format!(
            "a head of {head} parameters on {} items, the decoder's {decoder} staying as they are",
            trainer.num_branches()
        ),
    };
    run.train(&what)?;
    let log = run.log();
    Outcome {
        out: &run_args.out,
        parameters: log.parameters,
        course: &log.course,
        made: "the model and its draft head are",
        latest: "head",
    }
    .report(run_args.json)
}

/// # Errors
/// When the semantic ID of an item has another length than the model's prompts are made of.
fn check_lengths(args: &DraftArgs, view: &CatalogView, levels: usize) -> anyhow::Result<()> {
    let codes = match view.shorter_item(levels) {
        Some(item) => view.codes(item).len(),
        None => view.num_levels(),
    };
    ensure!(
        codes == levels,
        "{}: an item's semantic ID has {codes} codes, the model spells {levels}; a draft head says all of them",
        args.run.catalog.display()
    );
    Ok(())
}

/// Begins from the decoder, or resumes the checkpoint.
fn learner<'a>(
    args: &DraftArgs,
    decoder: &Params,
    shape: &DraftShape,
    data: TrainingData<'a>,
) -> anyhow::Result<Learner<'a>> {
    let (form, options, checkpoint) = (args.form(), args.train_options(), args.run.checkpoint());
    let seed = options.seed;
    let new = || Params::with_draft(decoder, form, shape, seed);
    let layout = || Layout::with_draft(decoder.config(), form, shape);
    if !args.head_only {
        let trainer = match args.run.resume {
            false => Trainer::from_params(new(), options, data)?,
            true => Trainer::resume_expecting(&checkpoint, &layout(), options, data)?,
        };
        return Ok(Learner::Model(Box::new(trainer)));
    }
    let progress = Progress::new(args.run.json, 0, 0, Duration::ZERO);
    progress.doing("hidden states");
    let trainer = match args.run.resume {
        false => HeadTrainer::new(new(), options, &data, |_| {})?,
        true => HeadTrainer::resume_expecting(&checkpoint, &layout(), options, &data, |_| {})?,
    };
    Ok(Learner::Head(Box::new(trainer)))
}

//! `palmette-train draft`: a trained model in, the same with a draft head out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use palmette_catalog::Catalog;
use palmette_catalog_live::CatalogView;
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftShape};
use palmette_recommend::{Mode, PromptFormat, Recommender, TemplateFile, Verification};
use palmette_recommend_eval::ColdStart;
use palmette_train::{
    ExportDtype, HeadTrainer, HistoryDataset, Layout, Params, TrainOptions, Trainer,
};
use serde::{Deserialize, Serialize};

use super::draft_args::DraftArgs;
use super::judge::Judge;
use super::learner::Learner;
use super::log::{About, RunOptions, Setting, settings_of};
use super::outcome::Outcome;
use super::progress::Progress;
use super::run::{Run, Setup};
use super::run_args::RunArgs;
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
    /// The newest items, which are kept from training.
    cold_items: usize,
}

impl About for Drafting {
    const FILE_NAME: &str = "draft.json";

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
        vec![(data, &self.fingerprint), ("--model has".to_owned(), &self.model_fingerprint)]
    }
}

pub(crate) fn draft(args: &DraftArgs) -> anyhow::Result<()> {
    args.run.check()?;
    let run_args = &args.run;
    check_prompts(args)?;
    let catalog = Arc::new(Catalog::open(&run_args.catalog)?);
    let histories = data::histories(run_args, &catalog)?;
    let format = PromptFormat::read(&args.model)?;
    // Finds out whether model and catalog fit together.
    let both = || format!("{} with {}", args.model.display(), run_args.catalog.display());
    let view = CatalogView::from(Arc::clone(&catalog));
    Recommender::new(Model::load(&args.model)?, Arc::clone(&catalog), format.clone())
        .and_then(|_| format.check_shop(&view))
        .with_context(both)?;
    let decoder = Params::load(&args.model)?;
    let cold = data::cold_start(run_args, &catalog, &histories)?;
    let hold_out = run_args.hold_out();
    let training = data::training_histories(&catalog, &histories, hold_out, cold.as_ref());
    check_lengths(args, &catalog, &training, format.levels.len())?;
    let about = Drafting {
        options: args.train_options(),
        form: args.form(),
        head_only: args.head_only,
        command: RunOptions::new(run_args),
        fingerprint: fingerprint::of_data(&catalog, &histories),
        model_fingerprint: fingerprint::of_weights(&decoder),
        cold_items: cold.as_ref().map_or(0, ColdStart::num_items),
    };
    let mode = Mode::Draft(Verification::Masks);
    let judge = Judge::new(run_args, catalog, format.clone(), &histories, cold.as_ref(), mode);
    let setup = Setup { about, judge, dtype: ExportDtype::Float32, patience: 0 };
    let shape = format.draft_shape()?;
    let dataset = HistoryDataset::new(training, format, args.augmentation()).with_branches();
    let mut run = Run::begin(run_args, setup, || learner(args, &decoder, &shape, dataset))?;
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
/// When the model reads prompts of text, which a head is not trained after: what OUT got would have
/// neither the template nor the tokenizer, and answer prompts of codes.
fn check_prompts(args: &DraftArgs) -> anyhow::Result<()> {
    let template = args.model.join(TemplateFile::FILE_NAME);
    ensure!(
        !template.exists(),
        "{}: the model reads prompts of text, and draft heads are trained for prompts of codes alone; serve it without one, by --mode beam",
        template.display()
    );
    Ok(())
}

/// # Errors
/// When a semantic ID has another length than the model's prompts are made of.
fn check_lengths(
    args: &DraftArgs,
    catalog: &Catalog,
    training: &[Vec<Vec<u32>>],
    levels: usize,
) -> anyhow::Result<()> {
    let mut lengths = training.iter().flatten().map(Vec::len).chain([catalog.num_levels()]);
    match lengths.find(|&codes| codes != levels) {
        None => Ok(()),
        Some(codes) => bail!(
            "{}: an item's semantic ID has {codes} codes, the model spells {levels}; a draft head says all of them",
            args.run.catalog.display()
        ),
    }
}

/// Begins from the decoder, or resumes the checkpoint.
fn learner(
    args: &DraftArgs,
    decoder: &Params,
    shape: &DraftShape,
    data: HistoryDataset,
) -> anyhow::Result<Learner> {
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

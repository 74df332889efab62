//! `palmette-train train`: data in, a next-item model out.

use std::sync::Arc;

use anyhow::{Context, ensure};
use palmette_catalog::Catalog;
use palmette_catalog_live::CatalogView;
use palmette_model::ModelConfig;
use palmette_recommend::{Mode, PromptFormat};
use palmette_recommend_eval::ColdStart;
use palmette_train::{ExportDtype, Layout, TrainOptions, Trainer};
use serde::{Deserialize, Serialize};

use super::args::{Dtype, TrainArgs};
use super::companions::Companions;
use super::judge::Judge;
use super::learner::Learner;
use super::log::{About, LOGS, RunOptions, Setting, settings_of};
use super::outcome::Outcome;
use super::run::{Run, Setup};
use super::run_args::RunArgs;
use super::start::Start;
use super::training_data::TrainingData;
use super::{data, fingerprint};

/// Contents of `training.json` besides the run's course.
#[derive(Debug, Serialize, Deserialize)]
struct Training {
    options: TrainOptions,
    model: ModelConfig,
    command: CommandOptions,
    /// Fingerprint of the catalog and the histories.
    fingerprint: String,
    training_histories: usize,
    training_items: usize,
    /// The newest items, which are kept from training.
    #[serde(default)]
    cold_items: usize,
    /// Fingerprint of the weights that it began with, where they are a checkpoint's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began_with: Option<String>,
    /// Fingerprint of that checkpoint's other files, its template among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<String>,
}

/// Options that a run depends on and its checkpoint does not hold.
#[derive(Debug, Serialize, Deserialize)]
struct CommandOptions {
    #[serde(flatten)]
    run: RunOptions,
    dtype: ExportDtype,
    /// May differ when a run is resumed: it only says when to stop.
    patience: u64,
}

impl About for Training {
    const FILE_NAME: &str = LOGS[0];

    fn settings(&self) -> Vec<Setting> {
        let mut settings = settings_of(&self.options);
        settings.extend(self.command.run.settings());
        settings.push(Setting::new("dtype", Dtype::from(self.command.dtype).name()));
        settings
    }

    fn files(&self, args: &RunArgs) -> Vec<(String, &str)> {
        let data = format!("{} or {} have", args.histories.display(), args.catalog.display());
        let start = self.began_with.as_deref();
        let start = start.map(|of| ("the checkpoint that it began with has".to_owned(), of));
        let files = self.files.as_deref();
        let files = files.map(|of| ("files beside that checkpoint's weights have".to_owned(), of));
        [(data, &*self.fingerprint)].into_iter().chain(start).chain(files).collect()
    }
}

pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    args.check()?;
    let TrainArgs { run: run_args, dtype, patience, .. } = args;
    let catalog = Arc::new(Catalog::open(&run_args.catalog)?);
    let view = CatalogView::from(Arc::clone(&catalog));
    let start = args.from.as_deref().map(|from| {
        Start::prepare(from, args.template.as_deref(), &view, &run_args.out, run_args.seed)
    });
    let start = start.transpose()?;
    let prompts = match &start {
        Some(start) => start.prompts.clone().with_witnesses_of(&view),
        None => PromptFormat::for_catalog(&catalog, args.max_history)?.into(),
    };
    let histories = data::histories(run_args, &view, &prompts)?;
    let cold = data::cold_start(run_args, &catalog, &histories)?;
    let training = data::training_histories(&histories, run_args.hold_out(), cold.as_ref());
    let training_items = training.iter().map(|history| history.items.len()).sum();
    ensure!(training_items > 0, "{}: no history to train on", run_args.histories.display());
    let config = match &start {
        Some(start) => start.params.config().clone(),
        None => args.model_config(prompts.format()),
    };
    let options = args.train_options();
    let dtype = ExportDtype::from(*dtype);
    let companions = start.as_ref().map_or_else(Companions::default, |of| of.companions.clone());
    let about = Training {
        options: options.clone(),
        model: config.clone(),
        command: CommandOptions { run: RunOptions::new(run_args), dtype, patience: *patience },
        fingerprint: fingerprint::of_data(&catalog, &histories),
        training_histories: training.len(),
        training_items,
        cold_items: cold.as_ref().map_or(0, ColdStart::num_items),
        began_with: start.as_ref().map(|start| fingerprint::of_weights(&start.params)),
        files: start.as_ref().map(|start| fingerprint::of_files(&start.companions)),
    };
    let mut what = format!("on {training_items} items of {} histories", training.len());
    if about.cold_items > 0 {
        what += &format!(", the {} newest items held out", about.cold_items);
    }
    if let Some(start) = &start {
        what += &format!(", {} tokens added", start.new_tokens);
    }
    let (positions, augmentation) = (config.max_position_embeddings, run_args.augmentation());
    let data = TrainingData::new(training, &prompts, &view, positions, augmentation, false)?;
    let judge = Judge::new(run_args, catalog, prompts, &histories, cold.as_ref(), Mode::Beam);
    let setup = Setup { about, judge, dtype, companions, patience: *patience };
    let mut run = Run::begin(run_args, setup, || {
        let trainer = match (run_args.resume, start) {
            (false, None) => Trainer::new(&config, options, data)?,
            (false, Some(start)) => Trainer::from_params(start.params, options, data)?,
            (true, _) => {
                config.check().map_err(anyhow::Error::msg).context("the model's shape")?;
                let layout = Layout::new(&config);
                Trainer::resume_expecting(&run_args.checkpoint(), &layout, options, data)?
            }
        };
        Ok(Learner::Model(Box::new(trainer)))
    })?;
    run.train(&format!("{} parameters {what}", run.log().parameters))?;
    let log = run.log();
    Outcome {
        out: &run_args.out,
        parameters: log.parameters,
        course: &log.course,
        made: "the model is",
        latest: "model",
    }
    .report(run_args.json)
}

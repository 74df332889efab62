//! `palmette-train train`: data in, checkpoints on the way, a Hugging Face directory out.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration as WallTime, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use palmette_catalog::Catalog;
use palmette_eval::{EvalOptions, Histories, Question, Split, UserHistories, evaluate};
use palmette_model::{Model, ModelConfig};
use palmette_recommend::{PromptFormat, Recommender};
use palmette_train::{
    Augmentation, Duration, ExportDtype, HistoryDataset, TrainOptions, Trainer, export,
};
use serde::{Deserialize, Serialize};

/// Train a next-item model on user histories.
///
/// The last item of each history is the test and the one before it validation; neither is trained
/// on. After every few epochs the model is asked for the validation items, and OUT always holds the
/// best model so far: config.json, model.safetensors, generation_config.json, semantic_ids.json and
/// a log, training.json. Hugging Face transformers load the same directory.
///
/// An interrupted run goes on where its last checkpoint was with --resume, to the same bits.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Catalog of the items, made by `palmette catalog build`
    #[arg(long, value_name = "FILE")]
    catalog: PathBuf,
    /// Histories: {user: [item, …]} as JSON, oldest item first, or JSON lines
    #[arg(long, value_name = "FILE")]
    histories: PathBuf,
    /// Directory of the trained model
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Go on from the checkpoint in OUT
    #[arg(long)]
    resume: bool,
    /// Replace the model in OUT
    #[arg(long, conflicts_with = "resume")]
    overwrite: bool,

    /// Passes over the histories
    #[arg(long, default_value_t = 60, help_heading = "Training")]
    epochs: u64,
    /// Histories per step
    #[arg(long, default_value_t = 64, help_heading = "Training")]
    batch_size: usize,
    /// Highest learning rate
    #[arg(long, default_value_t = 2e-3, help_heading = "Training")]
    learning_rate: f32,
    /// Steps over which the learning rate rises
    #[arg(long, default_value_t = 200, help_heading = "Training")]
    warmup_steps: u64,
    /// AdamW's weight decay
    #[arg(long, default_value_t = 0.1, help_heading = "Training")]
    weight_decay: f32,
    /// Share of activations dropped
    #[arg(long, default_value_t = 0.2, help_heading = "Training")]
    dropout: f32,
    /// Share of the wanted distribution spread over the whole vocabulary
    #[arg(long, default_value_t = 0.1, help_heading = "Training")]
    label_smoothing: f32,
    /// Memory of the weights' moving average; 0 turns it off
    #[arg(long, default_value_t = 0.0, help_heading = "Training")]
    average_decay: f32,
    /// Share of examples that begin at a random item
    #[arg(long, default_value_t = 0.3, help_heading = "Training")]
    crop: f32,
    /// Share of items left out of an example
    #[arg(long, default_value_t = 0.1, help_heading = "Training")]
    drop_items: f32,
    /// Decides everything random
    #[arg(long, default_value_t = 0, help_heading = "Training")]
    seed: u64,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Training")]
    threads: Option<usize>,

    /// Decoder layers
    #[arg(long, default_value_t = 4, help_heading = "Model")]
    layers: usize,
    /// Width of the residual stream
    #[arg(long, default_value_t = 128, help_heading = "Model")]
    hidden: usize,
    /// Width of the feed-forward layers
    #[arg(long, default_value_t = 384, help_heading = "Model")]
    intermediate: usize,
    /// Query heads
    #[arg(long, default_value_t = 4, help_heading = "Model")]
    heads: usize,
    /// Key/value heads
    #[arg(long, default_value_t = 4, help_heading = "Model")]
    kv_heads: usize,
    /// Width of a head
    #[arg(long, default_value_t = 32, help_heading = "Model")]
    head_dim: usize,
    /// Most recent items that a prompt holds
    #[arg(long, default_value_t = 50, help_heading = "Model")]
    max_history: usize,
    /// How weights are stored
    #[arg(long, value_enum, default_value_t = Dtype::F32, help_heading = "Model")]
    dtype: Dtype,

    /// Epochs from one validation to the next
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Validation")]
    validate_every: u64,
    /// Users asked at each validation, evenly spread over the file
    #[arg(long, default_value_t = 2000, value_name = "N", help_heading = "Validation")]
    validation_users: usize,
    /// Beam width of validation
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Validation")]
    validation_beam_width: usize,
    /// Stop after this many validations without a better one; 0 never stops early
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Validation")]
    patience: u64,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dtype {
    F32,
    Bf16,
    F16,
}

/// `training.json`: what was done and how it went.
#[derive(Debug, Serialize, Deserialize)]
struct Log {
    options: TrainOptions,
    parameters: usize,
    training_histories: usize,
    training_items: usize,
    epochs: Vec<EpochLog>,
    best: Option<Validation>,
    validations_since_best: u64,
    seconds: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct EpochLog {
    epoch: u64,
    loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Validation {
    epoch: u64,
    users: usize,
    hit_rate_at_10: f64,
    ndcg_at_10: f64,
}

const VALIDATION_K: usize = 10;

pub(crate) fn train(args: &TrainArgs) -> anyhow::Result<()> {
    check(args)?;
    let catalog = Arc::new(Catalog::open(&args.catalog)?);
    let histories = Histories::read(&args.histories)?.bind(&args.histories, &catalog)?;
    let format = PromptFormat::for_catalog(&catalog, args.max_history);
    let mut run = Run::begin(args, catalog, &histories, format)?;
    run.train()?;
    run.report()
}

/// A run and what surrounds it.
struct Run<'a> {
    args: &'a TrainArgs,
    catalog: Arc<Catalog>,
    format: PromptFormat,
    questions: Vec<Question<'a>>,
    trainer: Trainer<HistoryDataset>,
    log: Log,
    progress: ProgressBar,
    /// Seconds of earlier parts of a resumed run.
    seconds_before: f64,
    started: Instant,
}

impl<'a> Run<'a> {
    fn begin(
        args: &'a TrainArgs,
        catalog: Arc<Catalog>,
        histories: &'a UserHistories,
        format: PromptFormat,
    ) -> anyhow::Result<Self> {
        let config = model_config(args, &format);
        let codes = |history: &Vec<u32>| -> Vec<Vec<u32>> {
            Split::training(history).iter().map(|&rank| catalog.codes(rank)).collect()
        };
        let training: Vec<Vec<Vec<u32>>> = histories.items.iter().map(codes).collect();
        let training_items = training.iter().map(Vec::len).sum();
        ensure!(training_items > 0, "{}: no history to train on", args.histories.display());
        let augmentation = Augmentation { crop: args.crop, drop_items: args.drop_items };
        let data = HistoryDataset::new(training, format.clone(), augmentation);

        let options = train_options(args);
        let checkpoint = args.out.join("checkpoint");
        let trainer = match args.resume {
            true => Trainer::resume_expecting(&checkpoint, &config, options.clone(), data)?,
            false => Trainer::new(&config, options.clone(), data)?,
        };
        std::fs::create_dir_all(&args.out)
            .with_context(|| format!("{}: cannot be made", args.out.display()))?;
        let log = match args.resume {
            true => read_log(&args.out)?,
            false => Log {
                options,
                parameters: trainer.params().values().len(),
                training_histories: histories.items.len(),
                training_items,
                epochs: Vec::new(),
                best: None,
                validations_since_best: 0,
                seconds: 0.0,
            },
        };
        let asked = histories.items.iter().filter_map(|h| Split::Validation.question(h));
        let progress = progress_bar(args, &trainer);
        Ok(Self {
            args,
            questions: evenly_spread(asked.collect(), args.validation_users),
            catalog,
            format,
            trainer,
            seconds_before: log.seconds,
            log,
            progress,
            started: Instant::now(),
        })
    }

    fn train(&mut self) -> anyhow::Result<()> {
        if !self.args.json {
            let Log { parameters, training_histories, training_items, .. } = &self.log;
            eprintln!(
                "training {parameters} parameters on {training_items} items of \
                 {training_histories} histories, {} steps",
                self.trainer.total_steps()
            );
        }
        let steps_per_epoch = self.trainer.steps_per_epoch();
        while !self.trainer.is_finished() {
            let (mut loss, mut steps) = (0.0, 0);
            loop {
                let report = self.trainer.step()?;
                loss += report.loss;
                steps += 1;
                self.progress.set_position(report.step);
                self.progress.set_message(format!("loss {:.3}", loss / f64::from(steps)));
                if report.step % steps_per_epoch == 0 {
                    break;
                }
            }
            let epoch = self.trainer.steps_taken() / steps_per_epoch;
            let mut entry = EpochLog { epoch, loss: loss / f64::from(steps), validation: None };
            let due = epoch.is_multiple_of(self.args.validate_every.max(1));
            if due || self.trainer.is_finished() {
                entry.validation = Some(self.validate(epoch)?);
            }
            self.tell(&entry);
            self.log.epochs.push(entry);
            let patience = self.args.patience;
            let is_stuck = patience > 0 && self.log.validations_since_best >= patience;
            if due || is_stuck || self.trainer.is_finished() {
                self.save()?;
            }
            if is_stuck {
                self.progress
                    .println(format!("no better validation in {patience}: stopping early"));
                break;
            }
        }
        self.progress.finish_and_clear();
        Ok(())
    }

    /// Asks the weights as they are for the validation items; the best so far go to OUT.
    fn validate(&mut self, epoch: u64) -> anyhow::Result<Validation> {
        let candidate = self.args.out.join("candidate");
        let dtype = match self.args.dtype {
            Dtype::F32 => ExportDtype::Float32,
            Dtype::Bf16 => ExportDtype::Bfloat16,
            Dtype::F16 => ExportDtype::Float16,
        };
        export(&candidate, &self.trainer.averaged(), dtype)?;
        std::fs::write(candidate.join(PromptFormat::FILE_NAME), self.format.to_json())?;
        let model = Model::load(&candidate)?;
        let recommender = Recommender::new(model, Arc::clone(&self.catalog), self.format.clone())?;
        let options = EvalOptions {
            beam_width: self.args.validation_beam_width,
            k: VALIDATION_K,
            include_seen: false,
            unconstrained: false,
            threads: threads(self.args),
        };
        let metrics = evaluate(&recommender, &self.questions, &options, |_| {})?.metrics;
        let at = metrics.at(VALIDATION_K);
        let validation = Validation {
            epoch,
            users: metrics.questions(),
            hit_rate_at_10: at.hit_rate,
            ndcg_at_10: at.ndcg,
        };
        // Without users to ask, the latest weights are the best.
        let is_best = metrics.questions() == 0
            || self.log.best.as_ref().is_none_or(|best| validation.ndcg_at_10 > best.ndcg_at_10);
        if is_best {
            for name in [
                "model.safetensors",
                "config.json",
                "generation_config.json",
                PromptFormat::FILE_NAME,
            ] {
                std::fs::rename(candidate.join(name), self.args.out.join(name))
                    .with_context(|| format!("moving {name} to {}", self.args.out.display()))?;
            }
            self.log.best = Some(validation.clone());
            self.log.validations_since_best = 0;
        } else {
            self.log.validations_since_best += 1;
        }
        std::fs::remove_dir_all(&candidate)
            .with_context(|| format!("removing {}", candidate.display()))?;
        Ok(validation)
    }

    fn save(&mut self) -> anyhow::Result<()> {
        self.log.seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        self.trainer.save(&self.args.out.join("checkpoint"))?;
        let text = serde_json::to_string_pretty(&self.log)?;
        let path = self.args.out.join("training.json");
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn tell(&self, entry: &EpochLog) {
        if self.args.json {
            return;
        }
        let mut line = format!("epoch {:>4}  loss {:.4}", entry.epoch, entry.loss);
        if let Some(validation) = &entry.validation {
            let is_best = self.log.best.as_ref().is_some_and(|b| b.epoch == entry.epoch);
            line += &format!(
                "  validation HR@10 {:.4}  NDCG@10 {:.4}{}",
                validation.hit_rate_at_10,
                validation.ndcg_at_10,
                if is_best { "  (best)" } else { "" }
            );
        }
        if self.progress.is_hidden() {
            eprintln!("{line}");
        } else {
            self.progress.println(line);
        }
    }

    fn report(&self) -> anyhow::Result<()> {
        let out = self.args.out.display();
        if self.args.json {
            let document = serde_json::json!({
                "out": out.to_string(),
                "parameters": self.log.parameters,
                "epochs": self.log.epochs,
                "best": self.log.best,
                "seconds": self.log.seconds,
            });
            return print(&serde_json::to_string(&document)?);
        }
        let mut text = format!("{:.0} s; the model is in {out}", self.log.seconds);
        if let Some(best) = &self.log.best {
            text += &format!(
                "\nbest validation at epoch {}: HR@10 {:.4}, NDCG@10 {:.4}, {} users",
                best.epoch, best.hit_rate_at_10, best.ndcg_at_10, best.users
            );
        }
        print(&text)
    }
}

fn check(args: &TrainArgs) -> anyhow::Result<()> {
    let has_model = args.out.join("model.safetensors").exists();
    if has_model && !args.resume && !args.overwrite {
        let out = args.out.display();
        bail!(
            "{out} already holds a model: go on with --resume, replace it with --overwrite, or choose another --out"
        );
    }
    for (name, share) in [("crop", args.crop), ("drop-items", args.drop_items)] {
        ensure!(
            (0.0..1.0).contains(&share),
            "--{name} is {share}; it must be at least 0 and below 1"
        );
    }
    ensure!(args.max_history > 0, "--max-history is 0; a prompt needs room for at least 1 item");
    ensure!(args.validation_beam_width > 0, "--validation-beam-width is 0; at least 1 is needed");
    Ok(())
}

fn threads(args: &TrainArgs) -> usize {
    args.threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
        .max(1)
}

fn train_options(args: &TrainArgs) -> TrainOptions {
    TrainOptions {
        duration: Duration::Epochs(args.epochs),
        batch_size: args.batch_size,
        learning_rate: args.learning_rate,
        warmup_steps: args.warmup_steps,
        weight_decay: args.weight_decay,
        dropout: args.dropout,
        label_smoothing: args.label_smoothing,
        average_decay: args.average_decay,
        seed: args.seed,
        threads: threads(args),
        ..TrainOptions::default()
    }
}

fn model_config(args: &TrainArgs, format: &PromptFormat) -> ModelConfig {
    ModelConfig {
        vocab_size: format.vocab_size(),
        hidden_size: args.hidden,
        intermediate_size: args.intermediate,
        num_hidden_layers: args.layers,
        num_attention_heads: args.heads,
        num_key_value_heads: args.kv_heads,
        head_dim: args.head_dim,
        max_position_embeddings: format.max_prompt_tokens() + format.levels.len(),
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        tie_word_embeddings: true,
    }
}

fn read_log(out: &Path) -> anyhow::Result<Log> {
    let path = out.join("training.json");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a training log", path.display()))
}

/// At most `count` of the questions, evenly spread, so that the choice needs no randomness.
fn evenly_spread<T: Copy>(all: Vec<T>, count: usize) -> Vec<T> {
    if all.len() <= count {
        return all;
    }
    (0..count).map(|i| all[i * all.len() / count]).collect()
}

fn progress_bar(args: &TrainArgs, trainer: &Trainer<HistoryDataset>) -> ProgressBar {
    if args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(trainer.total_steps()).with_position(trainer.steps_taken());
    let style = "{bar:30} {pos}/{len} steps  {msg}  {elapsed} gone, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
    bar.enable_steady_tick(WallTime::from_millis(500));
    bar
}

#[allow(clippy::print_stdout)]
fn print(text: &str) -> anyhow::Result<()> {
    println!("{text}");
    Ok(())
}

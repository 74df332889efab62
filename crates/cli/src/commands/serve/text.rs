//! Text models of a server: directories, room, limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_grammar::{CacheLimits, MaskBudget};
use palmette_model::DeviceName;
use palmette_serve::{Server, TextOptions};
use palmette_text::engine::EngineOptions;
use palmette_text::sources::JsonForm;
use palmette_text::{TextModel, TextModelOptions, ToolFormat};

use super::names::NamedPath;
use super::options::MOST;
use crate::commands::devices::DeviceChoice;
use crate::commands::loading::WeightsArg;

/// Text models.
#[derive(Clone, Debug, Args)]
pub(crate) struct TextArgs {
    /// Directory of a text model as Hugging Face has it, named by its last part unless NAME is
    /// given; may be given several times
    #[arg(long, value_name = "[NAME=]DIR")]
    text: Vec<NamedPath>,
    /// Device that computes text models, where it is another than --device says
    #[arg(long, value_name = "DEVICE")]
    text_device: Option<DeviceName>,
    /// Texts that a model writes at once, in one pass
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().max_texts)]
    text_places: usize,
    /// Tokens, prompts included, that all texts of a model have together; their keys and values are
    /// kept in memory
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().max_tokens)]
    text_tokens: usize,
    /// Requests that wait for a place; more are refused
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().max_waiting)]
    text_queue: usize,
    /// Tokens of prompts that are read in a pass while texts are written: more, and prompts are
    /// read faster and texts stall longer [default: 32; on a device 512]
    #[arg(long, value_name = "N")]
    text_prompt_rows: Option<usize>,
    /// Tokens that a pass reads of a text as a guess at what comes next, at most: where its latest
    /// tokens stood before, or by a draft model. Texts are the same, and take fewer passes where
    /// guesses come true; 0 for none
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().draft_tokens)]
    text_draft_tokens: usize,
    /// Draft model of a text model: the directory of a smaller one with the same tokens, which
    /// guesses what comes next where the latest tokens did not stand before, under a grammar only
    /// what it allows. Texts are the same; may be given once for each text model
    #[arg(long, value_name = "MODEL=DIR")]
    text_draft_model: Vec<String>,
    /// Work that one mask of a grammar may take, in steps of some hundreds of nanoseconds; a
    /// request with a mask that takes more is refused
    #[arg(long, value_name = "N", default_value_t = MaskBudget::DEFAULT_STEPS)]
    text_mask_steps: u64,
    /// Memory of the compiled grammars that a text model keeps; those that were not asked for
    /// longest go
    #[arg(long, value_name = "MB", default_value_t = CacheLimits::default().max_bytes >> 20)]
    text_grammar_mb: usize,
    /// Folder through which the servers of this machine, and this one when it starts again, share
    /// what is known of masks: one finds those of a grammar, the others read its file. It is made
    /// for this user alone; whoever can write it decides what masks allow
    #[arg(long, value_name = "DIR")]
    text_grammar_folder: Option<PathBuf>,
    /// The longest time of a request for text
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    text_seconds: u64,
    /// After a signal to end, and --drain-delay: time for texts that are being written to end in.
    /// Then each ends with an error, a stream by its last event
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    text_drain_grace: u64,
    /// Way in which a text model calls tools, for those whose chat template does not show it: one
    /// of those of `grammar check --tools`
    #[arg(long, value_name = "MODEL=FORMAT")]
    tool_format: Vec<String>,
    /// Objects of a schema may have members that it does not declare, unless it forbids them; a
    /// request may say otherwise (json_form)
    #[arg(long)]
    text_open_objects: bool,
    /// Members of an object come in any order, and not as the schema declares them; a request may
    /// say otherwise (json_form)
    #[arg(long)]
    text_any_order: bool,
}

impl TextArgs {
    pub(crate) fn serves_some(&self) -> bool {
        !self.text.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.text.iter().map(|named| &named.name)
    }

    pub(crate) fn max_time(&self) -> anyhow::Result<Duration> {
        ensure!(self.text_seconds > 0, "--text-seconds is 0; nothing could be written");
        Ok(Duration::from_secs(self.text_seconds))
    }

    pub(crate) fn drain_grace(&self) -> anyhow::Result<Duration> {
        let seconds = self.text_drain_grace;
        ensure!(seconds <= MOST, "--text-drain-grace is {seconds}; it must be at most {MOST}");
        Ok(Duration::from_secs(seconds))
    }

    /// Loads the models into a server.
    pub(crate) fn load_into(
        &self,
        server: &Server,
        (device, weights): (DeviceChoice, WeightsArg),
        threads: usize,
    ) -> anyhow::Result<()> {
        let mut formats = Vec::new();
        for text in &self.tool_format {
            let (model, format) =
                self.of_model("--tool-format", text, "MODEL=FORMAT, such as smol=hermes")?;
            let format = ToolFormat::of_name(format)?;
            formats.push((model, format));
        }
        let draft_models = self.draft_models()?;
        if let Some(model) = draft_models.keys().next().filter(|_| self.text_draft_tokens == 0) {
            bail!(
                "--text-draft-tokens is 0, so that the draft model of {model} would guess nothing: make it 1 or more, or leave \
                 --text-draft-model out"
            );
        }
        let device = device.on(self.text_device.unwrap_or(device.device));
        let prompt_rows = self.text_prompt_rows.unwrap_or(match device.device {
            DeviceName::Cpu => EngineOptions::default().prompt_rows,
            DeviceName::Cuda(_) => EngineOptions::DEVICE_PROMPT_ROWS,
        });
        for (name, value) in [
            ("--text-places", self.text_places),
            ("--text-tokens", self.text_tokens),
            ("--text-queue", self.text_queue),
            ("--text-prompt-rows", prompt_rows),
            ("--text-grammar-mb", self.text_grammar_mb),
        ] {
            ensure!(value > 0, "{name} is 0; it must be at least 1");
        }
        let most = usize::try_from(MOST).unwrap_or(usize::MAX);
        ensure!(
            self.text_grammar_mb <= most,
            "--text-grammar-mb is {}, which is more than any machine has",
            self.text_grammar_mb
        );
        let engine = device.text_loader(weights, self.text_places, self.text_tokens)?;
        let grammars =
            CacheLimits { max_bytes: self.text_grammar_mb << 20, ..CacheLimits::default() };
        for NamedPath { name, path } in &self.text {
            let format = formats.iter().find(|(model, _)| model == name);
            let model = TextModelOptions {
                engine: engine.clone(),
                threads,
                mask_steps: self.text_mask_steps,
                grammars: grammars.clone(),
                grammar_folder: self.text_grammar_folder.clone(),
                ..TextModelOptions::default()
            };
            let draft_model = draft_models.get(&**name).map(|dir| {
                let opened = TextModel::open(dir, &model);
                opened.with_context(|| format!("--text-draft-model {name}={}", dir.display()))
            });
            let options = TextOptions {
                draft_model: draft_model.transpose()?,
                model,
                engine: EngineOptions {
                    max_texts: self.text_places,
                    max_tokens: self.text_tokens,
                    prompt_rows,
                    max_waiting: self.text_queue,
                    mask_threads: threads.div_ceil(8).max(1),
                    draft_tokens: self.text_draft_tokens,
                },
                tool_format: format.map(|(_, format)| *format),
                json: JsonForm {
                    closed_objects: !self.text_open_objects,
                    in_order: !self.text_any_order,
                    ..JsonForm::default()
                },
            };
            server.load_text(name, path, &options)?;
        }
        Ok(())
    }

    /// The name of a text model that there is, and what an option says of it.
    fn of_model<'t>(
        &self,
        option: &str,
        text: &'t str,
        form: &str,
    ) -> anyhow::Result<(&'t str, &'t str)> {
        let found =
            text.split_once('=').with_context(|| format!("{option} {text}: it is {form}"))?;
        ensure!(
            self.names().any(|name| name == found.0),
            "{option} {text}: there is no text model {:?}; give it by --text",
            found.0
        );
        Ok(found)
    }

    /// Directories of draft models by the names of their text models.
    fn draft_models(&self) -> anyhow::Result<BTreeMap<&str, &Path>> {
        let mut draft_models = BTreeMap::new();
        for text in &self.text_draft_model {
            let (model, dir) =
                self.of_model("--text-draft-model", text, "MODEL=DIR, such as smol=smaller")?;
            ensure!(
                draft_models.insert(model, Path::new(dir)).is_none(),
                "--text-draft-model gives {model:?} twice; a text model has one draft model"
            );
        }
        Ok(draft_models)
    }
}

//! Text models: loaded ones, each with an engine that writes its texts.

use std::path::Path;
use std::sync::Arc;

use palmette_text::engine::{Engine, EngineOptions, EngineStatistics};
use palmette_text::question::{NamedCatalogs, TextDefaults, TextLimits, TextSettings};
use palmette_text::sources::JsonForm;
use palmette_text::{TextModel, TextModelOptions, ToolFormat};

use super::code_tokens::KeptCodeTokens;
use super::load_error::LoadError;
use super::models::device_name;
use crate::problem::{Kind, Problem};
use crate::wall_clock::seconds_since_1970;

/// Form of a model's chats, where the files do not say it or say it otherwise.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Place of the weights, threads, tokens with a meaning, limits of grammars.
    pub model: TextModelOptions,
    /// Room of the engine.
    pub engine: EngineOptions,
    /// Draft model of the engine: a smaller model of the same tokens, which guesses what comes
    /// next.
    pub draft_model: Option<TextModel>,
    /// Way in which the model writes calls of tools; found in its chat template where there is
    /// none.
    pub tool_format: Option<&'static ToolFormat>,
    /// Form of JSON, where a request does not say.
    pub json: JsonForm,
}

/// A text model that is served.
#[derive(Debug)]
pub(crate) struct ServedText {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) tool_format: Option<ToolFormat>,
    pub(crate) json: JsonForm,
    /// The tokens by which it spells the codes of catalogs.
    pub(crate) codes: Arc<KeptCodeTokens>,
    /// Seconds since 1970 at which it was loaded.
    pub(crate) loaded: u64,
}

impl ServedText {
    /// Reads a model's directory and starts its engine.
    pub(crate) fn load(name: &str, dir: &Path, options: &TextOptions) -> Result<Self, LoadError> {
        let of = |error: &dyn std::fmt::Display| LoadError::Text(format!("{name}: {error}"));
        let model = TextModel::open(dir, &options.model).map_err(|error| of(&error))?;
        match model.chat_template() {
            Err(error) if !error.is_missing() => Err(of(&error)),
            _ => Self::start(name, model, Some(dir), options),
        }
    }

    /// Starts the engine of a model, which may be that of a folder.
    pub(crate) fn start(
        name: &str,
        model: TextModel,
        dir: Option<&Path>,
        options: &TextOptions,
    ) -> Result<Self, LoadError> {
        let draft_model = options.draft_model.clone();
        let engine = Engine::start_with_draft_model(model, draft_model, options.engine)
            .map_err(|error| LoadError::Text(format!("{name}: {error}")))?;
        if let Some(folder) = engine.model().grammars().folder() {
            let model = name.to_owned();
            folder.on_report(move |report| tracing::warn!(model, "{report}"));
        }
        let tool_format = options.tool_format.or(engine.model().tool_format());
        let tool_format = tool_format.map(|format| engine.model().spoken(format));
        tracing::info!(
            name,
            bytes = engine.planned_bytes(),
            weight_bytes = engine.model().engine().weight_bytes(),
            context = engine.max_positions(),
            chat_template = engine.model().chat_template().is_ok(),
            tool_format = tool_format.map(|format| format.name),
            draft_model = engine.draft_model().map(TextModel::name),
            "text model"
        );
        let loaded = seconds_since_1970() as u64;
        let num_tokens = engine.model().vocabulary().vocabulary().num_tokens();
        let codes = Arc::new(KeptCodeTokens::new(dir, num_tokens));
        let (name, json) = (name.to_owned(), options.json);
        Ok(Self { name, engine, tool_format, json, codes, loaded })
    }

    pub(crate) fn model(&self) -> &TextModel {
        self.engine.model()
    }

    /// Name of the device that computes it.
    pub(crate) fn device(&self) -> String {
        device_name(self.model().engine())
    }

    /// The settings by which a question is checked that comes now, with a seed of its own.
    pub(crate) fn settings(
        &self,
        catalogs: Arc<dyn NamedCatalogs>,
    ) -> Result<TextSettings, Problem> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| {
            Problem::new(Kind::Unavailable, format!("no random numbers: {error}"))
        })?;
        let max_positions = self.engine.max_positions();
        Ok(TextSettings {
            limits: TextLimits { max_positions, ..TextLimits::default() },
            defaults: TextDefaults {
                seed: u64::from_le_bytes(seed),
                json: self.json,
                ..TextDefaults::default()
            },
            tool_format: self.tool_format,
            now: Some(seconds_since_1970() as i64),
            catalogs: Some(catalogs),
        })
    }

    /// Brings the metrics of the model up to date.
    pub(crate) fn publish(&self) {
        let EngineStatistics {
            waiting,
            writing,
            parked,
            free_pages,
            refused,
            ended,
            cancelled,
            failed,
            preempted,
            prompt_tokens,
            shared_tokens,
            text_tokens,
            forced_tokens,
            drafted_tokens,
            draft_hits,
            draft_passes,
            draft_seconds,
            passes,
            rows,
            pass_seconds,
            mask_seconds,
            choose_seconds,
            stall_seconds,
            ..
        } = self.engine.statistics();
        let of_model = |more: Option<(&'static str, &'static str)>| {
            let more = more.map(|(label, value)| (label, value.to_owned()));
            [("model", self.name.clone())].into_iter().chain(more).collect::<Vec<_>>()
        };
        for (state, count) in
            [("waiting", waiting), ("writing", writing - parked), ("parked", parked)]
        {
            let labels = of_model(Some(("state", state)));
            metrics::gauge!("palmette_text_requests", &labels).set(count as f64);
        }
        metrics::gauge!("palmette_text_free_pages", &of_model(None)).set(free_pages as f64);
        for (result, count) in
            [("ended", ended), ("cancelled", cancelled), ("failed", failed), ("refused", refused)]
        {
            let labels = of_model(Some(("result", result)));
            metrics::counter!("palmette_text_texts_total", &labels).absolute(count);
        }
        for (kind, count) in [
            ("prompt", prompt_tokens),
            ("shared", shared_tokens),
            ("text", text_tokens),
            ("forced", forced_tokens),
            ("drafted", drafted_tokens),
            ("draft_hit", draft_hits),
        ] {
            let labels = of_model(Some(("kind", kind)));
            metrics::counter!("palmette_text_tokens_total", &labels).absolute(count);
        }
        let labels = of_model(None);
        metrics::counter!("palmette_text_preempted_total", &labels).absolute(preempted);
        let walks = self.model().vocabulary().walks();
        metrics::counter!("palmette_text_mask_walks_total", &labels).absolute(walks);
        metrics::counter!("palmette_text_passes_total", &labels).absolute(passes);
        metrics::counter!("palmette_text_rows_total", &labels).absolute(rows);
        metrics::counter!("palmette_text_draft_passes_total", &labels).absolute(draft_passes);
        for (stage, seconds) in [
            ("pass", pass_seconds),
            ("draft", draft_seconds),
            ("mask", mask_seconds),
            ("choose", choose_seconds),
            ("stall", stall_seconds),
        ] {
            let labels = of_model(Some(("stage", stage)));
            metrics::gauge!("palmette_text_stage_seconds", &labels).set(seconds);
        }
    }
}

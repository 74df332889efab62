//! State of the server that handlers share, its readiness, and the gauges of what it has.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use metrics_exporter_prometheus::PrometheusHandle;
use palmette_catalog_live::CatalogSource;
use palmette_model::SharedEngine;
use palmette_text::GrammarCompiler;
use tokio::sync::watch;

use crate::config::ServeConfig;
use crate::domain::answers::Answers;
use crate::domain::claims::Claims;
use crate::domain::cluster::Cluster;
use crate::domain::data_dir::DataLock;
use crate::domain::keys::Keys;
use crate::domain::load_error::LoadError;
use crate::domain::operations::Operations;
use crate::domain::registry::Registry;
use crate::domain::upload_room::Room;
use crate::engine::Engine;
use crate::own_paths;
use crate::telemetry;

/// State that handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: ServeConfig,
    pub(crate) registry: Arc<Registry>,
    pub(crate) engine: Engine,
    pub(crate) answers: Answers,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) began: Instant,
    pub(crate) keys: Keys,
    pub(crate) room: Room,
    pub(crate) claims: Claims,
    pub(crate) operations: Operations,
    /// Grammars of places in texts that people write.
    pub(crate) place_grammars: GrammarCompiler,
    /// Maker of the OpenAPI document, which knows all routes.
    pub(crate) openapi: fn() -> utoipa::openapi::OpenApi,
    /// The shared log, where one is followed.
    pub(crate) cluster: OnceLock<Arc<Cluster>>,
    /// Held from when the data directory is loaded on.
    pub(crate) data_lock: OnceLock<DataLock>,
    /// Stage of the end of the server.
    pub(crate) drain: watch::Sender<Drain>,
}

/// Stages of the end of a server, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drain {
    No,
    /// Not ready any more; requests are still taken.
    Announced,
    /// Requests are no longer taken.
    Closed,
    /// The time of the texts is over.
    TextsOver,
}

impl Drain {
    /// Waits until the end has come so far.
    pub(crate) async fn reached(self, drain: &mut watch::Receiver<Self>) {
        // Without a server there is nobody who answers.
        _ = drain.wait_for(|now| *now >= self).await;
    }
}

/// The moment at which a request's headers had arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received(pub(crate) Instant);

impl App {
    /// The reasons for not being ready; none where requests are answered.
    pub(crate) fn reasons_not_ready(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if *self.drain.borrow() > Drain::No {
            reasons.push("draining".to_owned());
        }
        let table = self.registry.table();
        if table.targets.is_empty() && table.texts.is_empty() {
            reasons.push("no target is set".to_owned());
        }
        if let Some(cluster) = self.cluster() {
            reasons.extend(cluster.reasons(&self.registry, self.config.max_lag));
        }
        reasons.extend(self.device_failures());
        reasons
    }

    /// The shared log that this server follows.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.get()
    }

    /// Warnings of what cannot be written now. Requests are answered all the same.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, catalog) in &self.registry.table().catalogs {
            let Some(status) = catalog.status() else { continue };
            if let Some(error) = status.write_error {
                let error = own_paths::without(&error);
                warnings.push(format!("catalog {name}: cannot write: {error}"));
            }
            if let Some(error) = status.background_error {
                let what = match catalog.source {
                    CatalogSource::Reader(_) => "cannot follow its writer",
                    _ => "cannot write in the background",
                };
                let error = own_paths::without(&error);
                warnings.push(format!("catalog {name}: {what}: {error}"));
            }
        }
        warnings
    }

    /// Takes the data directory for this process alone.
    pub(crate) fn lock_data_dir(&self) -> Result<(), LoadError> {
        if let Some(data) = &self.config.data_dir
            && self.data_lock.get().is_none()
        {
            // Two threads do not load it at once.
            _ = self.data_lock.set(DataLock::take(data)?);
        }
        Ok(())
    }

    /// Receiver of the stage of the end, for those who wait for it.
    pub(crate) fn drain(&self) -> watch::Receiver<Drain> {
        self.drain.subscribe()
    }

    /// Brings the gauges of what is there up to date.
    pub(crate) fn publish(&self) {
        self.registry.table().texts.values().for_each(|served| served.publish());
        for (name, catalog) in &self.registry.table().catalogs {
            let labels = [("catalog", name.clone())];
            let Some(status) = catalog.status() else { continue };
            metrics::gauge!("palmette_catalog_generation", &labels).set(status.generation as f64);
            metrics::gauge!("palmette_catalog_items", &labels).set(status.num_items as f64);
            metrics::gauge!("palmette_catalog_segments", &labels).set(status.segments.len() as f64);
            metrics::gauge!("palmette_catalog_tombstones", &labels)
                .set(status.num_tombstones as f64);
            metrics::gauge!("palmette_catalog_wal_bytes", &labels).set(status.wal_bytes as f64);
            let failed = f64::from(u8::from(status.background_error.is_some()));
            let cannot_write = f64::from(u8::from(status.write_error.is_some()));
            metrics::gauge!("palmette_catalog_write_failed", &labels).set(cannot_write);
            metrics::gauge!("palmette_catalog_background_failed", &labels).set(failed);
            metrics::counter!("palmette_catalog_apply_waits_total", &labels).absolute(status.waits);
            let Some(replica) = &catalog.replica else { continue };
            let status = replica.status();
            let lag = status.lag.map_or(f64::INFINITY, |lag| lag.as_secs_f64());
            metrics::gauge!("palmette_log_lag_seconds", &labels).set(lag);
            metrics::gauge!("palmette_log_stopped", &labels)
                .set(f64::from(u8::from(status.is_stopped)));
            metrics::counter!("palmette_log_appends_total", &labels).absolute(status.appended);
            metrics::counter!("palmette_log_conflicts_total", &labels).absolute(status.conflicts);
        }
        self.publish_memory();
        self.publish_devices();
        self.publish_prompts();
        telemetry::keep_gauges();
        metrics_process::Collector::default().collect();
    }

    /// Failures after which a device computes nothing any more, by model.
    pub(crate) fn device_failures(&self) -> Vec<String> {
        let of = |(name, engine): (String, SharedEngine)| {
            engine.failure().map(|failure| format!("model {name}: {failure}"))
        };
        self.engines().into_iter().filter_map(of).collect()
    }

    /// Places where models are computed that are in memory, those of texts and their draft models
    /// too, by their names.
    fn engines(&self) -> Vec<(String, SharedEngine)> {
        let table = self.registry.table();
        let models = table.models.values().filter_map(|served| {
            let loaded = served.parts.loaded()?;
            Some((served.name.clone(), loaded.engine().clone()))
        });
        let texts = table.texts.values();
        let texts = texts.flat_map(|served| {
            let draft_model = served.engine.draft_model();
            let draft_model = draft_model
                .map(|model| (format!("{} draft model", served.name), model.engine().clone()));
            [(served.name.clone(), served.model().engine().clone())].into_iter().chain(draft_model)
        });
        models.chain(texts).collect()
    }

    fn publish_devices(&self) {
        for (name, engine) in self.engines() {
            let Some(used) = engine.device_use() else { continue };
            let labelled = |label: &'static str, value: &'static str| {
                [("model", name.clone()), (label, value.to_owned())]
            };
            let model = [("model", name.clone())];
            metrics::counter!("palmette_device_passes_total", &model).absolute(used.passes);
            for (kind, rows) in [("prompt", used.prompt_rows), ("beam", used.beam_rows)] {
                let labels = labelled("kind", kind);
                metrics::counter!("palmette_device_rows_total", &labels).absolute(rows);
            }
            let free = used.pages.saturating_sub(used.used_pages + used.kept_pages);
            for (state, pages) in
                [("used", used.used_pages), ("kept", used.kept_pages), ("free", free)]
            {
                let labels = labelled("state", state);
                metrics::gauge!("palmette_device_pages", &labels).set(pages as f64);
            }
            for (state, catalogs) in [("taken", used.catalogs), ("refused", used.refused_catalogs)]
            {
                let labels = labelled("state", state);
                metrics::gauge!("palmette_device_catalogs", &labels).set(catalogs as f64);
            }
            for (kind, bytes) in used.bytes {
                let labels = labelled("use", kind);
                metrics::gauge!("palmette_device_bytes", &labels).set(bytes as f64);
            }
        }
    }

    /// Publishes what engines keep of prompts, on this processor and on devices.
    fn publish_prompts(&self) {
        for (name, engine) in self.engines() {
            let Some(used) = engine.prompt_use() else { continue };
            let labelled = |label: &'static str, value: &'static str| {
                [("model", name.clone()), (label, value.to_owned())]
            };
            for (hit, tokens) in [("true", used.found_tokens), ("false", used.computed_tokens)] {
                let labels = labelled("hit", hit);
                metrics::counter!("palmette_prefix_tokens_total", &labels).absolute(tokens);
            }
            let free = used.pages.saturating_sub(used.kept_pages);
            for (state, pages) in [("kept", used.kept_pages), ("free", free)] {
                let labels = labelled("state", state);
                metrics::gauge!("palmette_prefix_pages", &labels).set(pages as f64);
            }
            let model = [("model", name.clone())];
            metrics::counter!("palmette_prefix_evicted_pages_total", &model)
                .absolute(used.evicted_pages);
        }
    }

    fn publish_memory(&self) {
        let table = self.registry.table();
        let statuses = table.catalogs.values().filter_map(|catalog| catalog.status());
        let segments = statuses.flat_map(|status| status.segments);
        let in_memory = segments.filter(|segment| !segment.is_written);
        let views = table.catalogs.values().map(|catalog| catalog.source.view());
        let filters: usize = views.map(|view| view.filter_bytes()).sum();
        let grammars = table.texts.values().map(|served| served.model().grammar_bytes());
        let here = |engine: &SharedEngine| engine.device_use().is_none();
        // Aliases of one pair share its recommender.
        let pages: BTreeMap<_, u64> = table
            .targets
            .values()
            .map(|target| &target.recommender)
            .map(|recommender| (Arc::as_ptr(recommender), recommender.page_bytes()))
            .collect();
        let engines: Vec<SharedEngine> =
            self.engines().into_iter().map(|(_, engine)| engine).collect();
        let prompts = engines.iter().filter_map(|engine| engine.prompt_use());
        let prompts = prompts.map(|used| used.bytes).sum();
        let weights = engines.into_iter().filter(here).map(|engine| engine.weight_bytes() as u64);
        for (kind, bytes) in [
            ("answers", self.answers.bytes()),
            ("filters", filters as u64),
            ("grammars", grammars.map(|bytes| bytes as u64).sum()),
            ("pages", pages.values().sum()),
            ("prompts", prompts),
            ("segments", in_memory.map(|segment| segment.bytes).sum()),
            ("weights", weights.sum()),
        ] {
            metrics::gauge!("palmette_memory_bytes", "kind" => kind).set(bytes as f64);
        }
    }
}

//! Metrics of the process: the recorder, the buckets of histograms, and the meaning of each name.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use tracing::Span;

use crate::audit;
use crate::domain::load_error::LoadError;

/// Upper ends of the histograms' buckets, in seconds.
const BUCKETS: [f64; 15] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0];
/// Upper ends for ratios of actual to predicted time.
const RATIOS: [f64; 12] = [0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0];

/// Upper ends for requests of a batch.
const REQUESTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Upper ends for tokens of a batch's prompts.
const TOKENS: [f64; 11] =
    [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];

const COUNTERS: [(&str, &str); 24] = [
    ("palmette_answer_cache_total", "Look-ups of kept answers, by result"),
    ("palmette_catalog_apply_waits_total", "Batches that waited for merges to make room"),
    ("palmette_device_passes_total", "Passes of a model on a device"),
    ("palmette_device_rows_total", "Rows of these passes, by kind: prompts' and beams'"),
    ("palmette_filter_cache_total", "Look-ups of compiled filters, by result; one a segment"),
    ("palmette_http_requests_total", "Requests, by route, method and status"),
    ("palmette_log_appends_total", "Frames that this process added to the shared log"),
    ("palmette_log_conflicts_total", "Frames that another process added first"),
    (
        "palmette_prefix_evicted_pages_total",
        "Pages of keys and values whose earlier prompts gave way to later ones",
    ),
    (
        "palmette_prefix_tokens_total",
        "Tokens of prompts where earlier ones are kept: found from them (hit), or computed",
    ),
    ("palmette_recommend_missed_deadline_total", "Requests that were admitted and not in time"),
    ("palmette_recommend_narrowed_total", "Requests whose beam was narrowed to be in time"),
    (
        "palmette_recommend_pages_total",
        "Pages after the first, by result: kept from the page before (hit), or searched for",
    ),
    ("palmette_recommend_shed_total", "Requests that were refused at arrival, by reason"),
    ("palmette_recommend_short_total", "Answers of fewer items than asked for, by reason"),
    (
        "palmette_recommend_stopped_total",
        "Requests that were broken off after admission, by reason",
    ),
    ("palmette_text_draft_passes_total", "Passes of a text model's draft model"),
    ("palmette_text_mask_walks_total", "Masks that were found by walking the vocabulary, by model"),
    ("palmette_text_members_total", "Members of catalogs that texts have, by model"),
    ("palmette_text_passes_total", "Passes of a text model"),
    ("palmette_text_preempted_total", "Times that a text gave up its keys and values for others"),
    ("palmette_text_rows_total", "Rows of the passes of a text model"),
    ("palmette_text_texts_total", "Texts that were asked for, by what became of them"),
    (
        "palmette_text_tokens_total",
        "Tokens of prompts that were read or shared, of texts, and those that were guessed",
    ),
];

const GAUGES: [(&str, &str); 21] = [
    ("palmette_build_info", "Version of the program; always 1"),
    ("palmette_catalog_background_failed", "1 where the last merge or checkpoint failed"),
    ("palmette_catalog_generation", "Newest generation"),
    ("palmette_catalog_items", "Items that are there"),
    ("palmette_catalog_segments", "Segments of the newest generation"),
    ("palmette_catalog_tombstones", "Items that are gone and still take room"),
    ("palmette_catalog_wal_bytes", "Bytes of the log that a restart replays"),
    ("palmette_catalog_write_failed", "1 where the last change could not be written"),
    ("palmette_device_bytes", "Memory of a model on a device, by use"),
    (
        "palmette_device_catalogs",
        "Catalogs that were searched last: taken by the device, or refused and searched level by level",
    ),
    (
        "palmette_device_pages",
        "Pages of keys and values on a device: used by requests, kept for later prompts, free",
    ),
    ("palmette_log_lag_seconds", "Time since a catalog had everything that its shared log has"),
    ("palmette_log_stopped", "1 where a catalog cannot apply what its shared log has"),
    (
        "palmette_memory_bytes",
        "Memory of what is kept, by kind: answers, compiled filters, grammars of texts, earlier prompts (all that they may take), segments of catalogs that are in no file, weights",
    ),
    (
        "palmette_prefix_pages",
        "Pages of keys and values where prompts are kept: kept of earlier ones and those being read, free",
    ),
    ("palmette_queue_requests", "Requests that were admitted and wait for a stream"),
    ("palmette_queue_work_seconds", "Predicted work of these requests, of one thread"),
    ("palmette_streams", "Streams, by state"),
    ("palmette_text_free_pages", "Pages of keys and values that no text has"),
    ("palmette_text_requests", "Texts that are asked for, by state"),
    (
        "palmette_text_stage_seconds",
        "Time of each stage of a text model so far; stall is time without a pass for want of masks",
    ),
];

/// Upper ends for times of texts, which take longer than anything else.
const TEXT_BUCKETS: [f64; 18] = [
    0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    180.0, 600.0,
];
/// Histograms of texts.
const OF_TEXTS: [&str; 4] = [
    "palmette_text_first_token_seconds",
    "palmette_text_queue_seconds",
    "palmette_text_seconds",
    "palmette_text_token_seconds",
];

const HISTOGRAMS: [(&str, &str); 12] = [
    ("palmette_batch_requests", "Requests of a batch that a stream was given"),
    ("palmette_batch_tokens", "Tokens of the prompts of such a batch"),
    ("palmette_catalog_apply_seconds", "Time to apply a batch, from its turn to its generation"),
    ("palmette_cost_ratio", "Actual over fitted time of requests of one thread"),
    ("palmette_http_request_duration_seconds", "Time from headers to answer, by route"),
    ("palmette_recommend_slack_seconds", "Time left to the deadline when an answer was ready"),
    ("palmette_recommend_stage_seconds", "Time of each stage of a request"),
    ("palmette_text_bind_seconds", "Time to give a grammar's names their catalogs"),
    (OF_TEXTS[0], "Time from the request for a text to its first piece"),
    (OF_TEXTS[1], "Time that a text waited for a place"),
    (OF_TEXTS[2], "Time from the request for a text to its end"),
    (OF_TEXTS[3], "Time between two tokens of a text"),
];

/// The span of a request, which its lines in the log are in; none where nobody follows it.
#[cfg(not(feature = "otel"))]
pub(crate) fn span(headers: &HeaderMap, _: &Method, _: &str, _: &str) -> Span {
    match audit::trace_id(headers) {
        Some(trace_id) => tracing::info_span!("request", trace_id),
        None => Span::none(),
    }
}

/// The span of a request, a part of the trace that its client began.
#[cfg(feature = "otel")]
pub(crate) fn span(headers: &HeaderMap, method: &Method, route: &str, id: &str) -> Span {
    use opentelemetry::propagation::TextMapPropagator;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    let span = tracing::info_span!(
        "request", trace_id = audit::trace_id(headers), request_id = id,
        otel.name = format!("{method} {route}"), otel.kind = "server", http.route = route, http.request.method = %method,
        http.response.status_code = tracing::field::Empty,
    );
    let propagator = opentelemetry_sdk::propagation::TraceContextPropagator::new();
    // Without a trace of the client's it begins one of its own.
    _ = span.set_parent(propagator.extract(&Headers(headers)));
    span
}

#[cfg(feature = "otel")]
struct Headers<'a>(&'a HeaderMap);

#[cfg(feature = "otel")]
impl opentelemetry::propagation::Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// The recorder of this process: one, however many servers there are.
///
/// # Errors
/// When the program has a recorder of its own.
pub(crate) fn recorder() -> Result<PrometheusHandle, LoadError> {
    static RECORDER: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();
    RECORDER
        .get_or_init(install)
        .clone()
        .map_err(|error| LoadError::System(format!("metrics: {error}")))
}

/// Pause between two moves of recorded values into the buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// Moves recorded values into the buckets of their histograms, for as long as it is polled.
///
/// The recorder keeps each value by itself until someone reads the metrics: where nobody does they
/// would be kept for ever.
pub(crate) async fn upkeep(metrics: &PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}

/// Time after which the gauges of a catalog or model that is gone are not shown any more. Those of
/// what is there are set before each look at them ([`App::publish`](crate::app::App::publish)).
const GONE_AFTER: Duration = Duration::from_secs(2);

/// Marks gauges as present that are set when something happens, not before each look at them.
pub(crate) fn keep_gauges() {
    metrics::gauge!("palmette_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    metrics::gauge!("palmette_queue_requests").increment(0.0);
    metrics::gauge!("palmette_queue_work_seconds").increment(0.0);
    for state in ["busy", "idle"] {
        metrics::gauge!("palmette_streams", "state" => state).increment(0.0);
    }
}

fn install() -> Result<PrometheusHandle, String> {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let full = |name: &str| Matcher::Full(name.to_owned());
    let mut builder = PrometheusBuilder::new();
    for name in OF_TEXTS {
        builder = builder
            .set_buckets_for_metric(full(name), &TEXT_BUCKETS)
            .map_err(|error| error.to_string())?;
    }
    let recorder = builder
        .idle_timeout(MetricKindMask::GAUGE, Some(GONE_AFTER))
        .set_buckets_for_metric(seconds, &BUCKETS)
        .and_then(|builder| builder.set_buckets_for_metric(full("palmette_cost_ratio"), &RATIOS))
        .and_then(|builder| {
            builder.set_buckets_for_metric(full("palmette_batch_requests"), &REQUESTS)
        })
        .and_then(|builder| builder.set_buckets_for_metric(full("palmette_batch_tokens"), &TOKENS))
        .map_err(|error| error.to_string())?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
    metrics_process::Collector::default().describe();
    COUNTERS.iter().for_each(|&(name, text)| metrics::describe_counter!(name, text));
    GAUGES.iter().for_each(|&(name, text)| metrics::describe_gauge!(name, text));
    HISTOGRAMS.iter().for_each(|&(name, text)| metrics::describe_histogram!(name, text));
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names of metrics in a text, histograms by their own name.
    fn names(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named = words.filter(|word| word.starts_with("palmette_"));
        let of_histogram = |name: &&str| HISTOGRAMS.iter().any(|(histogram, _)| histogram == name);
        let base = |name| {
            let suffixes = ["_bucket", "_sum", "_count"].into_iter();
            suffixes
                .filter_map(|suffix| str::strip_suffix(name, suffix))
                .find(of_histogram)
                .unwrap_or(name)
        };
        named.map(base).collect()
    }

    #[test]
    fn boards_and_alerts_ask_for_metrics_that_there_are() {
        let known = [&COUNTERS[..], &GAUGES, &HISTOGRAMS].concat();
        let known: BTreeSet<&str> = known.iter().map(|(name, _)| *name).collect();
        let board = include_str!("../../../deploy/grafana.json");
        for (file, text) in [
            ("grafana.json", board),
            ("alerts.yaml", include_str!("../../../deploy/alerts.yaml")),
            ("autoscaler.yaml", include_str!("../../../deploy/autoscaler.yaml")),
        ] {
            let asked = names(text);
            assert!(!asked.is_empty(), "{file}");
            let unknown: Vec<_> = asked.difference(&known).collect();
            assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
        }
        // What is measured is shown.
        let shown = names(board);
        let hidden: Vec<_> = known.difference(&shown).collect();
        assert!(hidden.is_empty(), "grafana.json shows nothing of {hidden:?}");
        let document: serde_json::Value = serde_json::from_str(board).unwrap();
        let mut ids = BTreeSet::new();
        for panel in document["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64()), "two panels have the id {}", panel["id"]);
        }
        for (name, _) in HISTOGRAMS {
            let bare = board.split(&format!("{name}_bucket")).count();
            assert_eq!(
                bare,
                board.split(name).count(),
                "{name} is shown otherwise than by its buckets"
            );
        }
    }

    #[test]
    fn each_metric_is_described_once() {
        let mut names: Vec<&str> =
            [&COUNTERS[..], &GAUGES, &HISTOGRAMS].concat().iter().map(|(name, _)| *name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}

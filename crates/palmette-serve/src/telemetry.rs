//! Metrics of the process: the recorder, the buckets of histograms, and the meaning of each name.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::registry::LoadError;

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

const COUNTERS: [(&str, &str); 14] = [
    ("palmette_answer_cache_total", "Look-ups of kept answers, by result"),
    ("palmette_catalog_apply_waits_total", "Batches that waited for merges to make room"),
    ("palmette_filter_cache_total", "Look-ups of compiled filters, by result; one a segment"),
    ("palmette_http_requests_total", "Requests, by route, method and status"),
    ("palmette_recommend_missed_deadline_total", "Requests that were admitted and not in time"),
    ("palmette_recommend_narrowed_total", "Requests whose beam was narrowed to be in time"),
    ("palmette_recommend_shed_total", "Requests that were refused at arrival, by reason"),
    ("palmette_recommend_short_total", "Answers of fewer items than asked for, by reason"),
    (
        "palmette_recommend_stopped_total",
        "Requests that were broken off after admission, by reason",
    ),
    ("palmette_text_passes_total", "Passes of a text model"),
    ("palmette_text_preempted_total", "Times that a text gave up its keys and values for others"),
    ("palmette_text_rows_total", "Rows of the passes of a text model"),
    ("palmette_text_texts_total", "Texts that were asked for, by what became of them"),
    ("palmette_text_tokens_total", "Tokens of prompts that were read or shared, and of texts"),
];

const GAUGES: [(&str, &str); 13] = [
    ("palmette_build_info", "Version of the program; always 1"),
    ("palmette_catalog_background_failed", "1 where the last merge or checkpoint failed"),
    ("palmette_catalog_generation", "Newest generation"),
    ("palmette_catalog_items", "Items that are there"),
    ("palmette_catalog_segments", "Segments of the newest generation"),
    ("palmette_catalog_tombstones", "Items that are gone and still take room"),
    ("palmette_catalog_wal_bytes", "Bytes of the log that a restart replays"),
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

const HISTOGRAMS: [(&str, &str); 7] = [
    ("palmette_batch_requests", "Requests of a batch that a stream was given"),
    ("palmette_batch_tokens", "Tokens of the prompts of such a batch"),
    ("palmette_catalog_apply_seconds", "Time to apply a batch, from its turn to its generation"),
    ("palmette_cost_ratio", "Actual over fitted time of requests of one thread"),
    ("palmette_http_request_duration_seconds", "Time from headers to answer, by route"),
    ("palmette_recommend_slack_seconds", "Time left to the deadline when an answer was ready"),
    ("palmette_recommend_stage_seconds", "Time of each stage of a request"),
];

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

fn install() -> Result<PrometheusHandle, String> {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let full = |name: &str| Matcher::Full(name.to_owned());
    let recorder = PrometheusBuilder::new()
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
    metrics::gauge!("palmette_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}

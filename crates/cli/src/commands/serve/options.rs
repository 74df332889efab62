//! Options of a server: address, promises, limits and room.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use palmette_recommend::QuestionLimits;
use palmette_serve::{ANY_ORIGIN, Schedule, ServeConfig};

use crate::commands::loading::set_threads;

/// The largest value of a number that has no limit of its own.
pub(crate) const MOST: u64 = 1 << 32;

/// The address.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenOptions {
    /// Address and port; port 0 takes a free one, which is printed. Other machines reach 0.0.0.0,
    /// so give --keys with it. A name in place of the address is looked up, and is one by which
    /// requests without keys may call the server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: ListenAddress,
    /// Print the address as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Address to listen at, and the name that it was given by.
#[derive(Clone, Debug)]
pub(crate) struct ListenAddress {
    pub(crate) name: Option<String>,
    pub(crate) address: SocketAddr,
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self { name: None, address }
    }
}

/// Promises, limits and room.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeOptions {
    /// Requests that are answered side by side, each by one thread where all are busy; on a device,
    /// batches [default: one per core; on a device 2]
    #[arg(long, value_name = "N")]
    pub(crate) streams: Option<u32>,
    /// Threads of the models; idle ones join a lone request [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Deadline of requests that name none
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) deadline_ms: u64,
    /// The latest deadline that a request may name
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub(crate) max_deadline_ms: u64,
    /// Hypotheses kept at each level by requests that name no width
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) beam_width: usize,
    /// The widest beam of a request
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) max_beam_width: usize,
    /// The most items of an answer
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) max_k: usize,
    /// The most items of a history
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) max_history: usize,
    /// Memory for requests that are being answered; one that does not fit is refused [default:
    /// 4096; on a device what it has]
    #[arg(long, value_name = "MB")]
    pub(crate) memory_mb: Option<u64>,
    /// Memory for answers to equal requests; 0 for none
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) answer_cache_mb: usize,
    /// The most bytes of an upload
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) max_upload_mb: usize,
    /// The share of streams that bulk requests may take
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    pub(crate) bulk_share: f32,
    /// Status of refusals for want of time: 503 for balancers that ask another server only then
    #[arg(long, value_name = "429|503", default_value_t = 429, value_parser = overload_status)]
    pub(crate) overload_status: u16,
    /// An origin whose pages may ask from a browser (CORS), such as https://shop.example; may be
    /// given several times. * stands for all, with --keys
    #[arg(long = "cors", value_name = "ORIGIN", value_parser = origin)]
    pub(crate) origins: Vec<String>,
    /// A name by which requests without keys may call this server, beside addresses, localhost and
    /// that of --listen; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Vec<String>,
    /// Connections at once; more wait
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) connections: usize,
    /// Time for headers, and again for a body, to arrive in
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) read_timeout: u64,
    /// Time between two requests of a connection, after which it is closed. That of proxies before
    /// the server must be shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 75)]
    pub(crate) idle_timeout: u64,
    /// After a signal to end: time during which requests are still taken, for balancers to notice
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) drain_delay: u64,
    /// After that: time for what was admitted to be answered
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain_grace: u64,
    /// Log on standard error: text for people, or a JSON object a line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Events in the log: error, warn, info, debug (every request), or as the crate
    /// tracing-subscriber has it
    #[arg(long, value_name = "FILTER", env = "PALMETTE_LOG", default_value = "info")]
    pub(crate) log: String,
    /// Hand a trace of each request to the collector at this address, by OTLP over HTTP:
    /// http://127.0.0.1:4318. Clients' traceparent headers make them parts of their own. Needs a
    /// build with --features otel
    #[arg(long, value_name = "URL", env = "PALMETTE_OTLP")]
    pub(crate) otlp: Option<String>,
}

/// An address, or a name that means one: of several that are equally good none is chosen.
pub(crate) fn address(text: &str) -> Result<ListenAddress, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address.into());
    }
    let form =
        "it is an address and a port, such as 127.0.0.1:8080, [::1]:8080 or shop.internal:8080";
    let (name, port) = text.rsplit_once(':').ok_or(form)?;
    let port: u16 = port.parse().map_err(|_| form)?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    if !is_name(name) {
        return Err(form.to_owned());
    }
    let addresses = (name, port).to_socket_addrs();
    let mut addresses: Vec<_> =
        addresses.map_err(|error| format!("{name} cannot be looked up: {error}"))?.collect();
    // Hosts have an address of each family: the older one is reached by all.
    if addresses.iter().any(SocketAddr::is_ipv4) {
        addresses.retain(SocketAddr::is_ipv4);
    }
    addresses.sort_unstable();
    addresses.dedup();
    match addresses[..] {
        [address] => Ok(ListenAddress { name: Some(name.to_owned()), address }),
        [] => Err(format!("{name} has no address")),
        _ => {
            let all: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
            Err(format!(
                "{name} has several addresses, {}; give one, and the name as --server-name",
                all.join(", ")
            ))
        }
    }
}

fn origin(text: &str) -> Result<String, String> {
    let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_host =
        |rest: &str| !rest.is_empty() && !rest.contains(['/', '?', '#', '*', ',', ' ', '@']);
    match text == ANY_ORIGIN || rest.is_some_and(is_host) {
        true => Ok(text.to_owned()),
        false => Err("it is scheme, host and port, such as https://shop.example or http://localhost:3000, without a path; or *".to_owned()),
    }
}

fn overload_status(text: &str) -> Result<u16, String> {
    match text {
        "429" => Ok(429),
        "503" => Ok(503),
        _ => Err("it is 429, or 503 for balancers that ask another server only then".to_owned()),
    }
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Memory for requests where none is given, in MB.
const MEMORY_MB: u64 = 4096;
/// Batches that a device answers side by side: one is computed while what the other chose is
/// looked at.
const DEVICE_STREAMS: u32 = 2;

impl ServeOptions {
    /// Makes batches of requests, which share the passes of a device.
    pub(crate) fn use_device(&self, schedule: &mut Schedule, requests: u32) {
        schedule.streams = self.streams.unwrap_or(DEVICE_STREAMS).min(requests);
        schedule.batch_jobs = requests.div_ceil(schedule.streams);
        if self.memory_mb.is_none() {
            schedule.memory = u64::MAX;
        }
    }

    /// The library's configuration of these; sets the threads of the models.
    pub(crate) fn config(&self) -> anyhow::Result<ServeConfig> {
        let threads = set_threads(self.threads)?;
        let streams = self.streams.unwrap_or(threads as u32);
        ensure!((1..=1024).contains(&streams), "--streams is {streams}; it must be from 1 to 1024");
        ensure!(
            self.bulk_share.is_finite() && (0.0..=1.0).contains(&self.bulk_share),
            "--bulk-share is {}; it must be from 0 to 1",
            self.bulk_share
        );
        for (name, value) in [
            ("--deadline-ms", self.deadline_ms),
            ("--max-deadline-ms", self.max_deadline_ms),
            ("--beam-width", self.beam_width as u64),
            ("--max-beam-width", self.max_beam_width as u64),
            ("--max-k", self.max_k as u64),
            ("--memory-mb", self.memory_mb.unwrap_or(MEMORY_MB)),
            ("--max-upload-mb", self.max_upload_mb as u64),
            ("--connections", self.connections as u64),
            ("--read-timeout", self.read_timeout),
            ("--idle-timeout", self.idle_timeout),
        ] {
            ensure!(value > 0, "{name} is 0; nothing could be served");
            ensure!(value <= MOST, "{name} is {value}, which is more than any machine has");
        }
        for (name, value) in [
            ("--max-history", self.max_history as u64),
            ("--answer-cache-mb", self.answer_cache_mb as u64),
            ("--drain-delay", self.drain_delay),
            ("--drain-grace", self.drain_grace),
        ] {
            ensure!(value <= MOST, "{name} is {value}; it must be at most {MOST}");
        }
        ensure!(
            self.deadline_ms <= self.max_deadline_ms,
            "--deadline-ms {} is over --max-deadline-ms {}; lower the one or raise the other",
            self.deadline_ms,
            self.max_deadline_ms
        );
        ensure!(
            self.beam_width <= self.max_beam_width,
            "--beam-width {} is over --max-beam-width {}; lower the one or raise the other",
            self.beam_width,
            self.max_beam_width
        );
        let mut config = ServeConfig {
            default_deadline: Duration::from_millis(self.deadline_ms),
            max_deadline: Duration::from_millis(self.max_deadline_ms),
            questions: QuestionLimits {
                default_beam_width: self.beam_width,
                max_beam_width: self.max_beam_width,
                max_k: self.max_k,
                max_history: self.max_history,
                ..ServeConfig::default().questions
            },
            answer_cache: self.answer_cache_mb << 20,
            max_upload: self.max_upload_mb << 20,
            overload_status: self.overload_status,
            origins: self.origins.clone(),
            max_connections: self.connections,
            read_timeout: Duration::from_secs(self.read_timeout),
            idle_timeout: Duration::from_secs(self.idle_timeout),
            drain_delay: Duration::from_secs(self.drain_delay),
            drain_grace: Duration::from_secs(self.drain_grace),
            server_names: self.server_name.clone(),
            ..ServeConfig::default()
        };
        config.schedule.streams = streams;
        config.schedule.threads = threads as u32;
        config.schedule.memory = self.memory_mb.unwrap_or(MEMORY_MB) << 20;
        config.schedule.bulk_share = self.bulk_share;
        Ok(config)
    }
}

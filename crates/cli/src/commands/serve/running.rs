//! A server's process: its log, its sockets and its end.

use std::net::SocketAddr;

use anyhow::Context;
use palmette_serve::Server;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
#[cfg(feature = "otel")]
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

use super::options::{ListenOptions, LogFormat, ServeOptions};
#[cfg(feature = "otel")]
pub(crate) use super::traces::Traces;
use crate::output::{print, print_json};

/// A server that takes connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
}

/// Starts the log on standard error, and traces where they are asked for: they are handed on until
/// what is returned is dropped.
pub(crate) fn log(options: &ServeOptions) -> anyhow::Result<Option<Traces>> {
    let filter = EnvFilter::try_new(&options.log).with_context(|| {
        format!(
            "--log {}: a level is error, warn, info, debug or trace, such as info,palmette_serve=debug",
            options.log
        )
    })?;
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match options.log_format {
        LogFormat::Text => log.with_target(false).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let traces = options.otlp.as_deref().map(Traces::start).transpose()?;
    let layers = Registry::default().with(log.with_filter(filter));
    #[cfg(feature = "otel")]
    let layers = layers.with(traces.as_ref().map(|traces| {
        // Whatever the log has: a trace without its requests would be none.
        let requests = LevelFilter::INFO;
        tracing_opentelemetry::layer().with_tracer(traces.tracer()).with_filter(requests)
    }));
    // A log that was started before goes on.
    drop(layers.try_init());
    Ok(traces)
}

/// Traces in a build without them.
#[cfg(not(feature = "otel"))]
#[derive(Debug)]
pub(crate) enum Traces {}

#[cfg(not(feature = "otel"))]
impl Traces {
    fn start(_url: &str) -> anyhow::Result<Self> {
        Err(crate::features::left_out("hands no traces on", "otel"))
    }
}

/// Serves until a signal asks to end, then drains; `started` is called once connections are taken.
/// A second signal ends at once.
pub(crate) fn run_until_stopped(
    server: &Server,
    listen: &ListenOptions,
    started: impl FnOnce(Listening) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Models have the cores; sockets need little.
        .worker_threads((cores / 8).clamp(1, 4))
        .max_blocking_threads(16)
        .thread_name("sockets")
        .enable_all()
        .build()
        .context("threads for the sockets")?;
    runtime.block_on(async {
        // Before the address is known to anybody: whoever has it may send a signal.
        let on = |kind| signal(kind).context("a signal to end by, or to read keys again by");
        let [mut interrupt, mut terminate, mut hangup] =
            [on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?];
        let listener = TcpListener::bind(listen.listen.address).await.with_context(|| {
            format!(
                "cannot listen at {}; --listen 127.0.0.1:0 takes a free port",
                listen.listen.address
            )
        })?;
        let address = listener.local_addr()?;
        match listen.json {
            true => print_json(
                &json!({"listening": address.to_string(), "url": format!("http://{address}")}),
            )?,
            false => print(&format!("listening on http://{address}"))?,
        }
        started(Listening { address })?;
        let (first, asked) = tokio::sync::oneshot::channel::<()>();
        let serving = server.serve(listener, async {
            // The sender lives as long as this function.
            _ = asked.await;
        });
        let signals = async {
            let mut first = Some(first);
            loop {
                let ends = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => true,
                    // Without keys it means what it does elsewhere: the terminal is gone.
                    _ = hangup.recv() => !server.has_keys(),
                };
                match (ends, first.take()) {
                    (true, Some(first)) => _ = first.send(()),
                    (true, None) => return,
                    (false, none_yet) => {
                        first = none_yet;
                        reload_keys(server);
                    }
                }
            }
        };
        tokio::select! {
            served = serving => served.context("serving")?,
            () = signals => tracing::warn!("ended at once"),
            failure = server.device_failure() => anyhow::bail!("{failure}"),
        }
        anyhow::Ok(())
    })?;
    // What is still being answered has no connection any more.
    runtime.shutdown_background();
    Ok(())
}

fn reload_keys(server: &Server) {
    match server.reload_keys() {
        Ok(keys) => tracing::info!(keys, "keys were read again"),
        Err(error) => tracing::error!(%error, "keys are as they were"),
    }
}

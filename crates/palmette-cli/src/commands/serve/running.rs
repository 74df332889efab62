//! A server's process: its log, its sockets and its end.

use std::net::SocketAddr;

use anyhow::Context;
use palmette_serve::Server;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::options::{ListenOptions, LogFormat, ServeOptions};
use crate::output::{print, print_json};

/// A server that takes connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
}

/// Starts the log on standard error.
pub(crate) fn log(options: &ServeOptions) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&options.log).with_context(|| {
        format!(
            "--log {}: a level is error, warn, info, debug or trace, such as info,palmette_serve=debug",
            options.log
        )
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match options.log_format {
        LogFormat::Text => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    // A log that was started before goes on.
    drop(started);
    Ok(())
}

/// Serves until a signal asks to end, then drains; `started` is called once connections are taken. A second signal ends at once.
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
        let listener = TcpListener::bind(listen.listen).await.with_context(|| {
            format!("cannot listen at {}; --listen 127.0.0.1:0 takes a free port", listen.listen)
        })?;
        let address = listener.local_addr()?;
        match listen.json {
            true => print_json(
                &json!({"listening": address.to_string(), "url": format!("http://{address}")}),
            )?,
            false => print(&format!("listening on http://{address}"))?,
        }
        started(Listening { address })?;
        let mut ends = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let [interrupt, terminate] = &mut ends;
        let (Ok(interrupt), Ok(terminate)) = (interrupt, terminate) else {
            anyhow::bail!("this system has no signals to end by");
        };
        let mut stop = async || {
            tokio::select! {
                _ = interrupt.recv() => {},
                _ = terminate.recv() => {},
            }
        };
        let (first, asked) = tokio::sync::oneshot::channel::<()>();
        let serving = server.serve(listener, async {
            // The sender lives as long as this function.
            _ = asked.await;
        });
        let mut reload = signal(SignalKind::hangup()).context("a signal to read keys again by")?;
        let reloads = async {
            while reload.recv().await.is_some() {
                match server.reload_keys() {
                    Ok(keys) => tracing::info!(keys, "keys were read again"),
                    Err(error) => tracing::error!(%error, "keys are as they were"),
                }
            }
            std::future::pending::<()>().await;
        };
        let signals = async {
            stop().await;
            _ = first.send(());
            stop().await;
        };
        tokio::select! {
            served = serving => served.context("serving")?,
            () = signals => tracing::warn!("ended at once"),
            () = reloads => {}
        }
        anyhow::Ok(())
    })?;
    // What is still being answered has no connection any more.
    runtime.shutdown_background();
    Ok(())
}

//! The demonstration's shop as a live catalog behind HTTP, for the page and its tests.
//!
//! `cargo run -p palmette-serve --example shop [PORT [KEYS]]` prints the address that it listens
//! at, a free port where the given one is 0, and serves until it is interrupted; with a file of
//! keys, those who have one. The catalog is in a temporary directory and goes with the process.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palmette_catalog_live::{LiveCatalog, LiveOptions, Schema};
use palmette_demo::{Demo, Shop};
use palmette_serve::{ServeConfig, Server};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse::<u16>())?;
    let dir = tempfile::tempdir()?;
    let config = ServeConfig {
        // Builds without optimisation answer too.
        default_deadline: Duration::from_secs(10),
        drain_delay: Duration::ZERO,
        keys: std::env::args().nth(2).map(PathBuf::from),
        ..ServeConfig::default()
    };
    let server = Server::new(config)?;
    let demo = Demo::load()?;
    let recommender = demo.recommender();
    server.add_model("demo", recommender.engine().clone(), recommender.format().clone())?;
    let catalog = Shop::demo().catalog();
    let schema = Schema::of_catalog(&catalog);
    let live =
        LiveCatalog::create_with(dir.path(), Some(catalog), Some(schema), LiveOptions::default())?;
    server.add_catalog("shop", Arc::new(live), Some(dir.path()))?;
    server.set_target("shop", "demo", "shop")?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let interrupted = async { _ = tokio::signal::ctrl_c().await };
    server.serve(listener, interrupted).await?;
    Ok(())
}

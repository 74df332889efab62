//! A tiny text model of made-up weights behind HTTP, for the page and its tests: what it says means
//! nothing, and fits what was asked for.
//!
//! `cargo run -p palmette-serve --example tiny [PORT]` prints the address that it listens at, a
//! free port where the given one is 0, and serves until it is interrupted. There are no
//! recommendations.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use palmette_serve::{ServeConfig, Server, TextOptions};
use palmette_testkit::tiny_model;
use palmette_text::{TextModel, ToolFormat};
use palmette_vocabulary::{LoadOptions, load_bytes};
use tokio::net::TcpListener;

const TEMPLATE: &str = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}\
    {% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}";

fn model() -> Result<TextModel, Box<dyn Error>> {
    let pieces = tiny_model::pieces(&["\": \"", "\n", "true"]);
    let json = serde_json::to_string(&pieces)?;
    let vocabulary = load_bytes("characters", json.as_bytes(), &LoadOptions::default())?;
    let model = Arc::new(tiny_model::model(pieces.len(), 1000));
    let model = TextModel::from_parts("tiny", model, vocabulary, &Default::default())?;
    Ok(model.with_chat_template(TEMPLATE)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse::<u16>())?;
    let server =
        Server::new(ServeConfig { drain_delay: Duration::ZERO, ..ServeConfig::default() })?;
    let options =
        TextOptions { tool_format: ToolFormat::named("llama3"), ..TextOptions::default() };
    server.add_text("tiny", model()?, &options)?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    server.serve(listener, async { _ = tokio::signal::ctrl_c().await }).await?;
    Ok(())
}

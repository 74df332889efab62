//! A text model by OpenAI's interface, in a program of one's own.
//!
//! ```text
//! cargo run -p palmette-serve --example text -- DIR [TOOL_FORMAT]
//! ```
//!
//! DIR is a directory as Hugging Face has it, TOOL_FORMAT a format of calls such as hermes. The server listens at a free port of this machine and
//! says which.

use std::path::PathBuf;

use palmette_serve::{ServeConfig, Server, TextOptions};
use palmette_text::ToolFormat;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("the directory of a model is missing")?);
    let tool_format = arguments.next().map(|name| ToolFormat::of_name(&name)).transpose()?;
    let options = TextOptions { tool_format, ..TextOptions::default() };
    let server = Server::new(ServeConfig::default())?;
    server.load_text("smol", &dir, &options)?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("http://{}/v1", listener.local_addr()?);
    server.serve(listener, async { _ = tokio::signal::ctrl_c().await }).await?;
    Ok(())
}

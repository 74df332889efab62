//! `palmette key`: keys of clients of a server.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use palmette_serve::{NewKey, Scope};
use serde_json::json;

use crate::output::{print, print_json};

/// Make a key for a client of `palmette serve --keys FILE`
///
/// The key is printed once and kept nowhere; the file has its SHA-256. A running server reads the
/// file again on SIGHUP.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct KeyArgs {
    /// Name of the client, for the file
    name: String,
    /// Permissions: recommend (ask), items (read and change items), admin (catalogs, generations,
    /// targets, models), text (ask text models)
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "recommend")]
    scopes: Vec<Scope>,
    /// Catalogs and text models it is for; * for all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*")]
    catalogs: Vec<String>,
    /// Add the line to this file, which is made where there is none. Keys of one name rotate: add a
    /// second, let the client take it, delete the first line
    #[arg(long, value_name = "FILE")]
    add_to: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  palmette key web --add-to keys
  palmette key stock --scopes items --catalogs shop --add-to keys
  palmette key chat --scopes text --catalogs smol --add-to keys
  palmette serve … --keys keys
  curl -H \"Authorization: Bearer $KEY\" …";

pub(crate) fn run(args: &KeyArgs) -> anyhow::Result<()> {
    let made = NewKey::make(&args.name, &args.scopes, &args.catalogs)?;
    if let Some(path) = &args.add_to {
        made.add_to(path).context("no key was added")?;
    }
    if args.json {
        return print_json(&json!({"key": made.key, "line": made.line}));
    }
    let text = match &args.add_to {
        Some(path) => format!("{}\nits line was added to {}", made.key, path.display()),
        None => format!("{}\nthe line for the file of keys:\n{}", made.key, made.line),
    };
    print(&text)
}

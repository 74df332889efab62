//! `palmette catalog verify`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use palmette_catalog::Catalog;
use palmette_catalog_live::VerifiedFile;
use serde_json::json;

use crate::output::{bytes, print, print_json, table, visible};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Catalog, made by `palmette catalog build`, or directory of a live one, which others may be
    /// writing
    catalog: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let files = match args.catalog.is_dir() {
        true => palmette_catalog_live::verify(&args.catalog)?,
        false => vec![verify_file(args)?],
    };
    let num_damaged = files.iter().filter(|file| file.problem.is_some()).count();
    if args.json {
        print_json(&json!({"files": files, "damaged": num_damaged}))?;
    } else {
        let row = |file: &VerifiedFile| {
            let state = file.problem.as_deref().unwrap_or("sound");
            vec![visible(&file.file), bytes(file.bytes as usize), visible(state)]
        };
        let rows: Vec<Vec<String>> = files.iter().map(row).collect();
        print(table(&["file", " bytes", "state"], &rows).trim_end())?;
    }
    ensure!(num_damaged == 0, "{num_damaged} of {} files are damaged", files.len());
    Ok(())
}

fn verify_file(args: &VerifyArgs) -> anyhow::Result<VerifiedFile> {
    let path = &args.catalog;
    let problem = match Catalog::open(path) {
        Err(e) if e.is_missing() => return Err(e.into()),
        opened => opened.err().map(|e| e.to_string()),
    };
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    Ok(VerifiedFile { file: path.display().to_string(), bytes, problem })
}

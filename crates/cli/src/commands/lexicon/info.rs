//! `palmette lexicon info`.

use std::path::PathBuf;

use clap::Args;
use palmette_lexicon::{Check, Lexicon};
use serde_json::json;

use crate::output::{bytes, grouped, print, print_json, visible};

/// Show what is in a lexicon: how many values, their bytes, the first and the last
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Lexicon, made by `palmette lexicon build`
    lexicon: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 100;

pub(super) fn run(args: &InfoArgs) -> anyhow::Result<()> {
    let lexicon = Lexicon::open_with(&args.lexicon, Check::Sums)?;
    let (num_values, text_bytes) = (lexicon.len() as u64, lexicon.text_bytes());
    let file_bytes = lexicon.file_bytes();
    let value = |rank: usize| String::from_utf8_lossy(&lexicon.text(rank)).into_owned();
    let ends = (num_values > 0).then(|| (value(0), value(lexicon.len() - 1)));
    let is_text = lexicon.first_not_utf8().is_none();
    if args.json {
        let (first, last) = ends.unzip();
        return print_json(&json!({
            "values": num_values,
            "text_bytes": text_bytes,
            "file_bytes": file_bytes,
            "is_utf8": is_text,
            "first": first,
            "last": last,
        }));
    }
    let each = |all: u64| format!("{:.1} bytes a value", all as f64 / num_values.max(1) as f64);
    let mut text = format!(
        "values  {}\ntext    {}, {}\nfile    {}, {}\n",
        grouped(num_values),
        bytes(text_bytes as usize),
        each(text_bytes),
        bytes(file_bytes as usize),
        each(file_bytes),
    );
    if let Some((first, last)) = ends {
        let shown = |value: String| visible(&value).chars().take(MAX_SHOWN).collect::<String>();
        text += &format!("first   {}\nlast    {}\n", shown(first), shown(last));
    }
    if !is_text {
        text += "some values are not UTF-8, and cannot be written in JSON\n";
    }
    print(text.trim_end())
}

//! `palmette lexicon check`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use palmette_catalog_members::{CatalogFields, ID_FIELD};
use palmette_core::MemberSpelling;
use palmette_lexicon::Lexicon;
use serde_json::json;

use crate::output::{Reported, grouped, print, print_json, visible};

const AFTER_HELP: &str = "\
Examples:
  palmette lexicon check companies.palm
  palmette lexicon check companies.palm --value 'Acme Tools' --value Zeta
  palmette lexicon check companies.palm --prefix 'Acme '";

/// Read a lexicon whole and check it, and ask whether values are in it
///
/// Ends with an error when the file is damaged, or a value is not in it; those that are near are
/// named then.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CheckArgs {
    /// Lexicon, made by `palmette lexicon build`
    lexicon: PathBuf,
    /// A value that should be there, repeatable
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    value: Vec<String>,
    /// Count the values that begin so, and show the first, repeatable
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prefix: Vec<String>,
    /// The most values shown of a prefix
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const NUM_NEAREST: usize = 3;

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let lexicon = Arc::new(Lexicon::open(&args.lexicon)?);
    let fields = CatalogFields::from_lexicon(Arc::clone(&lexicon));
    let set = fields.set(ID_FIELD, None, MemberSpelling::Raw)?;
    let mut text = format!(
        "{}: sound, {} values\n",
        visible(&args.lexicon.display().to_string()),
        grouped(lexicon.len() as u64)
    );
    let (mut values, mut prefixes, mut num_missing) = (Vec::new(), Vec::new(), 0);
    for value in &args.value {
        let found = set.find(value).and_then(|member| set.item(member));
        let nearest = if found.is_some() { Vec::new() } else { set.nearest(value, NUM_NEAREST) };
        num_missing += usize::from(found.is_none());
        text += &visible(&match (found, &*nearest) {
            (Some(_), _) => format!("{value:?} is a value"),
            (None, []) => format!("{value:?} is no value"),
            (None, [one]) => format!("{value:?} is no value; the nearest is {one:?}"),
            (None, all) => format!("{value:?} is no value; the nearest are {}", listed(all)),
        });
        text.push('\n');
        values.push(json!({"value": value, "rank": found, "nearest": nearest}));
    }
    for prefix in &args.prefix {
        let ranks = lexicon.range(prefix.as_bytes());
        let shown = ranks.clone().take(args.limit);
        let first: Vec<String> =
            shown.map(|rank| String::from_utf8_lossy(&lexicon.text(rank)).into_owned()).collect();
        let more = if ranks.len() > first.len() { ", …" } else { "" };
        let number = grouped(ranks.len() as u64);
        let first_shown =
            if first.is_empty() { String::new() } else { format!(": {}", listed(&first)) };
        text += &visible(&format!("{prefix:?} begins {number} values{first_shown}{more}"));
        text.push('\n');
        prefixes.push(json!({"prefix": prefix, "values": ranks.len(), "first": first}));
    }
    if args.json {
        print_json(&json!({"values": lexicon.len(), "asked": values, "prefixes": prefixes}))?;
    } else {
        print(text.trim_end())?;
    }
    match num_missing {
        0 => Ok(()),
        missing => {
            let all = args.value.len();
            Err(Reported(format!("{missing} of {all} values are not in the lexicon")).into())
        }
    }
}

fn listed(values: &[String]) -> String {
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
}

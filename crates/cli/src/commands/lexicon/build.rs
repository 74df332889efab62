//! `palmette lexicon build`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use palmette_lexicon::BuildStage;
use serde_json::json;

use super::ListedValues;
use crate::commands::loading::set_threads;
use crate::memory::peak_resident_bytes;
use crate::output::{bytes, grouped, is_same_file, make_parent, print, print_json, reading_bar};

const AFTER_HELP: &str = "\
Examples:
  palmette lexicon build companies.txt --out companies.palm
  palmette lexicon build items.jsonl.gz --field title --out titles.palm
  cut -f 2 icd10.tsv | palmette lexicon build - --out icd10.palm";

/// Build a lexicon from lists of values, one in each line
///
/// A value is a line as it stands, without its end: blanks at its ends and case count. Empty lines
/// are left out, and a value that comes again is there once. Files are text in UTF-8, also
/// compressed by gzip; their order makes no difference. A value has 65,536 bytes at most. A bad
/// line is an error that names it; nothing is dropped.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BuildArgs {
    /// Files of values; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Lexicon to write, such as companies.palm; a file of that name is replaced
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Lines are JSON objects, and the values stand in this member of theirs: texts, numbers, or
    /// lists of these
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Threads that sort; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Replace a file that is there even where there are no values
    #[arg(long)]
    allow_empty: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &BuildArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    set_threads(args.threads)?;
    for source in &args.files {
        ensure!(
            !is_same_file(source, &args.out),
            "--out {} is the file {}, which would be lost; name another file",
            args.out.display(),
            source.display()
        );
    }
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let bar = reading_bar(args.files.iter().map(size).sum(), args.json);
    bar.set_message("reading values");
    let ListedValues { builder, num_lines, num_without } =
        ListedValues::read(&args.files, args.field.as_deref(), &bar)?;
    if let Some(field) = args.field.as_ref().filter(|_| builder.is_empty() && num_lines > 0) {
        anyhow::bail!("no line has a value in {field:?}; --field names another");
    }
    ensure!(
        !builder.is_empty() || args.allow_empty || !args.out.exists(),
        "there are no values, and {} would be replaced; --allow-empty asks for that",
        args.out.display()
    );
    let num_given = builder.len() as u64;
    let lexicon = builder.finish_while(|stage| {
        bar.set_message(match stage {
            BuildStage::Sorting => "sorting",
            BuildStage::Indexing => "indexing",
        });
        true
    });
    let lexicon = lexicon.expect("nothing calls it off");
    bar.set_message("writing");
    make_parent(&args.out)?;
    lexicon.write(&args.out)?;
    bar.finish_and_clear();

    let num_values = lexicon.len() as u64;
    let file_bytes = lexicon.file_bytes();
    let seconds = start.elapsed().as_secs_f64();
    let peak = peak_resident_bytes();
    if args.json {
        return print_json(&json!({
            "out": args.out,
            "values": num_values,
            "repeated": num_given - num_values,
            "lines": num_lines,
            "lines_without": num_without,
            "text_bytes": lexicon.text_bytes(),
            "file_bytes": file_bytes,
            "seconds": seconds,
            "peak_bytes": peak,
        }));
    }
    let mut text = format!("{} values", grouped(num_values));
    if num_given > num_values {
        text += &format!("; {} came again", grouped(num_given - num_values));
    }
    if num_without > 0 {
        text += &format!("; {} lines have none", grouped(num_without));
    }
    let memory = peak
        .map_or_else(String::new, |peak| format!(", at most {} of memory", bytes(peak as usize)));
    let (size, out) = (bytes(file_bytes as usize), args.out.display());
    let of = bytes(lexicon.text_bytes() as usize);
    print(&format!("{text}\n{out}: {size} for {of} of text, in {seconds:.1} s{memory}"))
}

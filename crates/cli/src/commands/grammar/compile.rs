//! `palmette grammar compile`: a grammar over a vocabulary as a file that opens fast.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_grammar::PreparedVocabulary;
use serde::Serialize;

use super::ahead::{Ahead, AheadArgs};
use super::loading::{GrammarFileArgs, Warning};
use crate::commands::vocabulary::{Description, VocabularyOptions};
use crate::output::{bytes, is_same_file, print, print_json};

/// Compile a grammar for a vocabulary and write it to a file, with masks found out ahead of time
///
/// `check`, `mask` and `stats` take the file in place of a grammar. It is for one vocabulary, whose
/// contents are checked.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    /// Vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "o200k_base")]
    vocab: String,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// File to write it to; name it .pmg
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    ahead: AheadArgs,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    vocabulary: Description,
    file_bytes: u64,
    compile_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

pub(crate) fn run(args: &CompileArgs) -> anyhow::Result<()> {
    for read in [args.grammar.file.as_path(), Path::new(&args.vocab)] {
        ensure!(
            !is_same_file(read, &args.output),
            "--output {} is a file that is read, which would be lost; name another file",
            args.output.display()
        );
    }
    let loaded = args.vocabulary.load(&args.vocab, args.json)?;
    let described = Description::of(&loaded);
    let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
    let began = Instant::now();
    let (constraint, source, warnings) = args.grammar.constraint(&vocabulary)?;
    args.grammar.show(&warnings, args.json);
    let compile_ms = began.elapsed().as_secs_f64() * 1e3;
    let ahead = args.ahead.run(&constraint)?;
    let named = || args.output.display().to_string();
    constraint.save(&source, &args.output).with_context(named)?;
    let file_bytes = std::fs::metadata(&args.output).with_context(named)?.len();
    let report = Report { warnings, vocabulary: described, file_bytes, compile_ms, ahead };
    if args.json {
        return print_json(&report);
    }
    let ahead = report.ahead.as_ref().map_or(String::new(), Ahead::text);
    let size = bytes(report.file_bytes as usize);
    print(&format!("{ahead}{}: {size}, compiled in {:.2} ms", named(), report.compile_ms))
}

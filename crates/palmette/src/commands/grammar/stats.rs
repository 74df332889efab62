//! `palmette grammar stats`: how large a grammar's tables are.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use palmette_grammar::analysis::analyse;
use palmette_grammar::recognizer::RecognizerScratch;
use serde::Serialize;

use super::loading::GrammarFileArgs;
use crate::output::{bytes, grouped, print, print_json};

/// Show how large a grammar's lexer and parser are
///
/// The lexer is built as it is used: with --text, it is what reading these texts takes.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    /// Texts to read first
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    terminals: usize,
    nonterminals: usize,
    rules: usize,
    parser_states: usize,
    conflicts: usize,
    lexer_states: usize,
    lexer_transitions: usize,
    lexer_expressions: usize,
    bytes: usize,
    parse_ms: f64,
    compile_ms: f64,
}

pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<()> {
    let began = Instant::now();
    let grammar = args.grammar.parse()?;
    let parse_ms = began.elapsed().as_secs_f64() * 1e3;
    let limits = palmette_grammar::ParserLimits::default();
    let analysis = analyse(&grammar, &limits.tables, &mut args.grammar.budget());
    let began = Instant::now();
    let recognizer = args.grammar.compile(grammar)?;
    let compile_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut scratch = RecognizerScratch::default();
    for path in &args.text {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        if let Some(start) = recognizer.start() {
            recognizer.advance_all(start, &text, &mut scratch)?;
        }
    }
    let lexer = recognizer.lexer().statistics();
    let report = Report {
        terminals: recognizer.grammar().terminals().len(),
        nonterminals: recognizer.grammar().nonterminals().len(),
        rules: recognizer.grammar().rules().len(),
        parser_states: recognizer.parser().tables().num_states(),
        conflicts: analysis.conflicts.len(),
        lexer_states: lexer.states,
        lexer_transitions: lexer.transitions,
        lexer_expressions: lexer.expressions,
        bytes: recognizer.bytes(),
        parse_ms,
        compile_ms,
    };
    if args.json { print_json(&report) } else { print(&text(&report)) }
}

fn text(report: &Report) -> String {
    let count = |count: usize| grouped(count as u64);
    format!(
        "grammar: {} terminals, {} nonterminals, {} rules\n\
         parser: {} states, {} conflicts\n\
         lexer: {} states, {} transitions, {} expressions\n\
         memory: {}\n\
         read in {:.2} ms, compiled in {:.2} ms",
        count(report.terminals),
        count(report.nonterminals),
        count(report.rules),
        count(report.parser_states),
        count(report.conflicts),
        count(report.lexer_states),
        count(report.lexer_transitions),
        count(report.lexer_expressions),
        bytes(report.bytes),
        report.parse_ms,
        report.compile_ms
    )
}

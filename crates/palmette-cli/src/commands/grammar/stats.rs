//! `palmette grammar stats`: how large a grammar's tables are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use palmette_core::{Constraint, Vocabulary, mask};
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerScratch, analyse,
    engine::store::{MaskStore, Steps},
};
use serde::Serialize;

use super::ahead::{Ahead, AheadArgs};
use super::loading::{GrammarFileArgs, Warning};
use crate::commands::vocabulary::{Description, VocabularyOptions};
use crate::output::{bytes, grouped, print, print_json};

/// Show how large a grammar's lexer and parser are
///
/// The lexer is built as it is used: with --text, it is what reading these texts takes. With --vocab also the mask store: its
/// rows, terminal sequences that tokens spell, for the lexer states that the texts come through byte by byte.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    /// Texts to read first
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,
    /// Count the rows of a mask store over this vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE")]
    vocab: Option<String>,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// Streamlining steps of the store, 0 to 2
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=2), requires = "vocab")]
    steps: u8,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    vocabulary: Option<Description>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Store>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

#[derive(Debug, Serialize)]
struct Store {
    steps: u8,
    lexer_states: usize,
    rows: usize,
    bytes: usize,
}

pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<()> {
    let named = args.vocab.is_some() || !args.ahead.is_wanted();
    ensure!(named, "--ahead finds out masks over a vocabulary: add --vocab");
    let began = Instant::now();
    let (grammar, warnings) = args.grammar.parse()?;
    args.grammar.show(&warnings, args.json);
    let parse_ms = began.elapsed().as_secs_f64() * 1e3;
    let limits = palmette_grammar::ParserLimits::default();
    let analysis = analyse(&grammar, &limits.tables, &mut args.grammar.budget());
    let began = Instant::now();
    let recognizer = Arc::new(args.grammar.compile(grammar.without_tokens())?);
    let compile_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut scratch = RecognizerScratch::default();
    let mut texts = Vec::new();
    for path in &args.text {
        texts.push(crate::input::read(path)?);
    }
    for text in &texts {
        if let Some(start) = recognizer.start() {
            recognizer.advance_all(start, text, &mut scratch)?;
        }
    }
    let (mut described, mut store_found, mut ahead) = (None, None, None);
    if let Some(vocab) = &args.vocab {
        let loaded = args.vocabulary.load(vocab, args.json)?;
        described = Some(Description::of(&loaded));
        let vocabulary = loaded.vocabulary;
        store_found = Some(store(&recognizer, Arc::clone(&vocabulary), args.steps, &texts)?);
        let slices = Arc::new(PreparedVocabulary::new(vocabulary));
        ahead = args.ahead.run(&GrammarConstraint::new(Arc::clone(&recognizer), slices))?;
    }
    let lexer = recognizer.lexer().statistics();
    let report = Report {
        warnings,
        vocabulary: described,
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
        store: store_found,
        ahead,
    };
    if args.json { print_json(&report) } else { print(&text(&report)) }
}

/// The mask store after the masks at each character of the texts.
fn store(
    recognizer: &Arc<Recognizer>,
    vocabulary: Arc<Vocabulary>,
    steps: u8,
    texts: &[Vec<u8>],
) -> anyhow::Result<Store> {
    ensure!(
        MaskStore::reads(recognizer),
        "the lexemes of this grammar depend on the parser, which the mask store cannot follow; leave out --vocab"
    );
    let slices = Arc::new(PreparedVocabulary::new(vocabulary));
    let which = Steps::first(usize::from(steps));
    let store = MaskStore::new(Arc::clone(recognizer), Arc::clone(&slices), which, usize::MAX);
    let store = Arc::new(store);
    let constraint = GrammarConstraint::by_walking(Arc::clone(recognizer), slices)
        .with_store(Arc::clone(&store));
    let mut scratch = GrammarScratch::default();
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    for text in texts.iter().map(Vec::as_slice).chain([&[][..]]) {
        let mut state = constraint.start();
        constraint.fill_mask(&state, &mut scratch, &mut row)?;
        for byte in text {
            if constraint.commit_bytes(&mut state, &[*byte], &mut scratch).is_err() {
                break;
            }
            constraint.fill_mask(&state, &mut scratch, &mut row)?;
        }
    }
    let found = store.statistics();
    Ok(Store { steps, lexer_states: found.states, rows: found.rows, bytes: found.bytes })
}

fn text(report: &Report) -> String {
    let count = |count: usize| grouped(count as u64);
    let store = report.store.as_ref().map_or(String::new(), |store| {
        format!(
            "mask store: {} rows of {} lexer states after {} steps, {}\n",
            count(store.rows),
            count(store.lexer_states),
            store.steps,
            bytes(store.bytes)
        )
    });
    let ahead = report.ahead.as_ref().map_or(String::new(), Ahead::text);
    format!(
        "grammar: {} terminals, {} nonterminals, {} rules\n\
         parser: {} states, {} conflicts\n\
         lexer: {} states, {} transitions, {} expressions\n\
         memory: {}\n\
         {store}{ahead}read in {:.2} ms, compiled in {:.2} ms",
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

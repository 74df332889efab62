//! `palmette grammar stats`: how large a grammar's tables are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_core::{Constraint, mask};
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, PreparedVocabulary, RecognizerScratch, analyse,
};
use serde::Serialize;

use super::ahead::{Ahead, AheadArgs};
use super::drawing::dot;
use super::loading::{GrammarFileArgs, Warning};
use super::store_rows::StoreRows;
use crate::commands::vocabulary::{Description, VocabularyOptions};
use crate::output::{bytes, grouped, print, print_json};

/// Show how large a grammar's lexer and parser are
///
/// The lexer is built as it is used: with --text, it is what reading these texts takes. With --vocab
/// also the masks at each byte of the texts.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    /// Texts to read first
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,
    /// Count the masks over this vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE")]
    vocab: Option<String>,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    #[command(flatten)]
    ahead: AheadArgs,
    /// With --vocab: write the automaton of masks as far as the texts read it, for Graphviz
    /// (`dot -Tsvg`). A box is a lexeme in progress, an edge a state of the parser with the symbol
    /// that leads to it, an ellipse the tokens that these states are sure of
    #[arg(long, value_name = "FILE", requires = "vocab")]
    dot: Option<PathBuf>,
    /// With --vocab: count the rows of a mask store at the states of the lexer that the texts
    /// visit, after each step that makes them fewer (in builds with `--features bench`)
    #[arg(long, requires = "vocab")]
    store: bool,
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
    masks: Option<Masks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreRows>,
}

/// Different masks along the texts, and what was found out for them.
#[derive(Debug, Serialize)]
struct Masks {
    masks: usize,
    /// Nodes of the automaton that reads the parser's stack.
    nodes: usize,
    /// States of a stack that were read for any of them, at most.
    deepest: usize,
    /// Masks that were found by walking the vocabulary.
    walked: u64,
    /// Memory of all of it.
    bytes: usize,
}

pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<()> {
    let named = args.vocab.is_some() || !args.ahead.is_wanted();
    ensure!(named, "--ahead finds out masks over a vocabulary: add --vocab");
    if args.store {
        StoreRows::check_build()?;
    }
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
    let (mut described, mut masks, mut ahead, mut store) = (None, None, None, None);
    if let Some(vocab) = &args.vocab {
        let loaded = args.vocabulary.load(vocab, args.json)?;
        described = Some(Description::of(&loaded));
        let slices = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
        let constraint = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&slices));
        masks = Some(masks_along(&constraint, &texts)?);
        if let (Some(path), Some(graph)) = (&args.dot, constraint.automaton_graph()) {
            let drawn = dot(&recognizer, &graph);
            std::fs::write(path, drawn)
                .with_context(|| format!("--dot {}: cannot be written", path.display()))?;
        }
        if args.store {
            let constraint =
                GrammarConstraint::by_walking(Arc::clone(&recognizer), Arc::clone(&slices));
            store = Some(StoreRows::along(&constraint, &slices, &texts)?);
        }
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
        masks,
        ahead,
        store,
    };
    if args.json { print_json(&report) } else { print(&text(&report)) }
}

/// The masks at each byte of the texts.
fn masks_along(constraint: &GrammarConstraint, texts: &[Vec<u8>]) -> anyhow::Result<Masks> {
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
    let found = constraint.automaton();
    Ok(Masks {
        masks: found.map_or(0, |found| found.masks),
        nodes: found.map_or(0, |found| found.nodes),
        deepest: constraint.automaton_graph().map_or(0, |graph| graph.deepest()),
        walked: constraint.prepared_vocabulary().walks(),
        bytes: constraint.bytes() - constraint.recognizer().bytes(),
    })
}

fn text(report: &Report) -> String {
    let count = |count: usize| grouped(count as u64);
    let masks = report.masks.as_ref().map_or(String::new(), |found| {
        let walked = match found.walked {
            0 => String::new(),
            walked => format!(", {} by walking the vocabulary", grouped(walked)),
        };
        format!(
            "masks along the texts: {}{walked}, {} nodes that read {} states of a stack at most, {}\n",
            count(found.masks),
            count(found.nodes),
            count(found.deepest),
            bytes(found.bytes)
        )
    });
    let ahead = report.ahead.as_ref().map_or(String::new(), Ahead::text);
    let store = report.store.as_ref().map_or(String::new(), StoreRows::text);
    format!(
        "grammar: {} terminals, {} nonterminals, {} rules\n\
         parser: {} states, {} conflicts\n\
         lexer: {} states, {} transitions, {} expressions\n\
         memory: {}\n\
         {masks}{store}{ahead}read in {:.2} ms, compiled in {:.2} ms",
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

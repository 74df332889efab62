//! `palmette grammar mask`: which tokens may follow a text.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use palmette_core::{Constraint, Lengths, TokenId, Vocabulary, mask};
use palmette_grammar::{
    EndingError, GrammarConstraint, GrammarScratch, GrammarState, Interrupted, MaskBudget,
    PreparedVocabulary, RecognizerError, RecognizerScratch, TerminalSet,
};
use serde::Serialize;

use super::catalogs::CatalogArgs;
use super::loading::{GrammarFileArgs, Warning};
use crate::commands::vocabulary::{Description, VocabularyOptions};
use crate::output::{grouped, print, print_json, table, visible};

/// Show which tokens of a vocabulary may follow a text
#[derive(Debug, Args)]
pub(crate) struct MaskArgs {
    #[command(flatten)]
    grammar: GrammarFileArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    /// Vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "o200k_base")]
    vocab: String,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// The text so far
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        conflicts_with = "prefix_file",
        hide_default_value = true
    )]
    prefix: String,
    /// File with the text so far
    #[arg(long, value_name = "FILE")]
    prefix_file: Option<PathBuf>,
    /// Work that the mask may take, in steps of some hundreds of nanoseconds
    #[arg(long, value_name = "STEPS", default_value_t = MaskBudget::DEFAULT_STEPS)]
    mask_steps: u64,
    /// Show the tokens after which the text can end within N more, the next one among them, and the
    /// shortest way to the end
    #[arg(long, value_name = "N")]
    tokens_left: Option<usize>,
    /// Show the tokens after which the text can end with N more at least, the next one among them
    #[arg(long, value_name = "N")]
    tokens_needed: Option<usize>,
    /// Largest number of tokens to show, shortest first
    #[arg(long, value_name = "N", default_value_t = 40)]
    show: usize,
    /// Print one JSON document, with the ids of all allowed tokens, instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    vocabulary: Description,
    /// True if the text may end here.
    accepting: bool,
    /// Number of tokens that are allowed, end tokens included.
    allowed: usize,
    num_tokens: usize,
    /// Terminals that the lexeme in progress may become.
    in_progress: Vec<String>,
    /// Terminals that may come after it, if it may end here.
    next: Vec<String>,
    /// The bytes that must follow, shown as text; the first of them, where they are many.
    forced: String,
    /// The shortest way to the end that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<Way>,
    mask_us: f64,
    tokens: Vec<u32>,
}

/// Bytes that must follow of which so many are shown: where a text can be read in many ways each
/// takes longer than the one before.
const SHOWN_FORCED: usize = 256;

/// Characters of a way that are shown.
const SHOWN_WAY: usize = 200;

#[derive(Debug, Serialize)]
struct Way {
    text: String,
    tokens: Vec<u32>,
}

pub(crate) fn run(args: &MaskArgs) -> anyhow::Result<()> {
    let loaded = args.vocabulary.load(&args.vocab, args.json)?;
    let described = Description::of(&loaded);
    let vocabulary = loaded.vocabulary;
    let (constraint, _, warnings) =
        args.grammar.constraint(&Arc::new(PreparedVocabulary::new(vocabulary)))?;
    args.grammar.show(&warnings, args.json);
    let constraint = args.catalogs.bind(constraint)?;
    let mut scratch = GrammarScratch::default();
    let prefix = match &args.prefix_file {
        Some(path) => crate::input::read(path)?,
        None => args.prefix.clone().into_bytes(),
    };
    let mut state = constraint.start();
    constraint.commit_bytes(&mut state, &prefix, &mut scratch).context("the prefix")?;

    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let began = Instant::now();
    fill(&constraint, &state, &mut scratch, &mut row, args)?;
    let mask_us = began.elapsed().as_secs_f64() * 1e6;
    let forced = constraint.forced_bytes(&state, SHOWN_FORCED, &mut scratch)?;
    let way = match args.tokens_left {
        Some(_) => {
            let work = MaskBudget::of_steps(args.mask_steps, None);
            constraint.shortest_completion(&state, &mut scratch, &work)?
        }
        None => None,
    };
    let [in_progress, next] = terminals(&constraint, &state)?;
    let report = Report {
        warnings,
        vocabulary: described,
        accepting: args.tokens_needed.is_none_or(|needed| needed == 0)
            && constraint.is_accepting(&state, &mut scratch)?,
        allowed: mask::count(&row),
        num_tokens: constraint.num_tokens(),
        in_progress,
        next,
        forced: String::from_utf8_lossy(&forced).into_owned(),
        way: way.map(|way| Way {
            text: String::from_utf8_lossy(&way.bytes).into_owned(),
            tokens: way.tokens.iter().map(|token| token.0).collect(),
        }),
        mask_us,
        tokens: mask::iter(&row).map(|token| token.0).collect(),
    };
    if args.json { print_json(&report) } else { print(&text(&report, &constraint, args.show)) }
}

/// Fills a mask within a budget: one of an ambiguous grammar may take minutes and gigabytes.
fn fill(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    scratch: &mut GrammarScratch,
    row: &mut [u32],
    args: &MaskArgs,
) -> anyhow::Result<()> {
    let steps = args.mask_steps;
    let budget = MaskBudget::of_steps(steps, None);
    let filled = match Lengths::of(args.tokens_needed, args.tokens_left) {
        None => constraint.fill_mask_within(state, scratch, row, &budget).map_err(Into::into),
        Some(lengths) => constraint.fill_ending_mask_within(state, lengths, scratch, row, &budget),
    };
    filled.map_err(|error| match error {
        EndingError::Limit(RecognizerError::Interrupted(Interrupted::OutOfBudget { .. })) => {
            anyhow::anyhow!(
            "the mask takes more than its budget of {steps} steps: make the grammar simpler or less ambiguous (`palmette grammar check` names \
             its conflicts), or raise --mask-steps"
            )
        }
        other => other.into(),
    })
}

/// The names of the terminals in progress, and of those that may come next, in the order of the
/// grammar.
fn terminals(
    constraint: &GrammarConstraint,
    state: &GrammarState,
) -> anyhow::Result<[Vec<String>; 2]> {
    let Some(position) = state.position() else { return Ok([vec![], vec![]]) };
    let recognizer = constraint.recognizer();
    let expected = recognizer.expected(position, &mut RecognizerScratch::default())?;
    let names = |set: &TerminalSet| {
        let terminals = recognizer.grammar().terminals();
        // Terminals of one name differ in their priority or their place in the grammar.
        let mut names: Vec<String> = Vec::new();
        for terminal in set.iter() {
            let name = &terminals[terminal.index()].name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    };
    Ok([names(&expected.in_progress), names(&expected.next)])
}

fn text(report: &Report, constraint: &GrammarConstraint, show: usize) -> String {
    let vocabulary = constraint.vocabulary();
    let mut text = format!(
        "{} of {} tokens may follow; the text may {}end here\n",
        grouped(report.allowed as u64),
        grouped(report.num_tokens as u64),
        if report.accepting { "" } else { "not " }
    );
    for (what, names) in [("in progress", &report.in_progress), ("next", &report.next)] {
        if !names.is_empty() {
            text += &format!("{what}: {}\n", visible(&names.join("  ")));
        }
    }
    if !report.forced.is_empty() {
        text += &format!("must follow: {:?}\n", report.forced);
    }
    if let Some(Way { text: way, tokens }) = &report.way {
        let rest = way.chars().count().saturating_sub(SHOWN_WAY);
        let shown: String = way.chars().take(SHOWN_WAY).collect();
        text += &format!("shortest way to the end: {shown:?}");
        if rest > 0 {
            text += &format!(" and {} more characters", grouped(rest as u64));
        }
        text += &format!(", tokens: {}\n", tokens.len());
    }
    let mut tokens: Vec<_> = report.tokens.iter().map(|&token| TokenId(token)).collect();
    tokens.sort_by_key(|&token| (vocabulary.text(token).len(), vocabulary.text(token), token));
    let rows: Vec<_> = tokens
        .iter()
        .take(show)
        .map(|&token| vec![token.to_string(), spelled(vocabulary, token, report.accepting)])
        .collect();
    text += &format!("\n{}", table(&[" token", "text"], &rows));
    if tokens.len() > show {
        text += &format!("and {} more; --show shows them\n", grouped((tokens.len() - show) as u64));
    }
    text + &format!("mask made in {:.0} us", report.mask_us)
}

/// The text of a token; of one without text its name, unless it ends a text that may end.
fn spelled(vocabulary: &Vocabulary, token: TokenId, may_end: bool) -> String {
    let bytes = vocabulary.text(token);
    if bytes.is_empty() {
        let is_end = may_end && vocabulary.ends().contains(&token);
        let mut names = vocabulary.names();
        let name = names.find(|(_, named)| *named == token).filter(|_| !is_end);
        return name.map_or("(end)".to_owned(), |(name, _)| name.to_owned());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

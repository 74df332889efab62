//! The experiments of Tran-Thien (2025) on masks of Python: real files are followed token by token,
//! and texts are generated under the masks.
//!
//! ```text
//! cargo run --release -p palmette-mask-store --example follow_python -- python.lark mistral-7b-v0.1-vocab.json \
//!     --files files.txt --tokens 1000000 --compare 100000 --generate 400 --out generated/
//! ```
//!
//! Files are cut into tokens by the longest that fits; any way to cut them will do, since a mask
//! knows only texts.
#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
    engine::glr::ParserScratch,
    frontends::lark::{self, LarkOptions},
};
use palmette_mask_store::{MaskStore, Steps};

#[derive(Parser)]
struct Options {
    /// A grammar in the dialect of lark.
    grammar: PathBuf,
    /// The name of an encoding, or a file.
    vocabulary: String,
    #[arg(long, default_value = "file_input")]
    start: String,
    /// A file with the path of a text a line.
    #[arg(long)]
    files: PathBuf,
    /// Follow so many tokens of them.
    #[arg(long, default_value_t = 1_000_000)]
    tokens: usize,
    /// At the first so many, compare the masks of the store with the automaton's.
    #[arg(long, default_value_t = 100_000)]
    compare: usize,
    /// Stores that are compared: each streamlined by so many of the first steps.
    #[arg(long, value_delimiter = ',', default_values_t = [0, Steps::NUM_PUBLISHED])]
    steps: Vec<usize>,
    /// Generate so many texts.
    #[arg(long, default_value_t = 400)]
    generate: usize,
    /// At least so many bytes long, if they can then end.
    #[arg(long, default_value_t = 2_700)]
    length: usize,
    /// Where they go.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let source = std::fs::read_to_string(&options.grammar)
        .with_context(|| options.grammar.display().to_string())?;
    let grammar = Arc::new(lark::parse(&source, &LarkOptions::from_rule(&options.start))?);
    let vocabulary = palmette_vocabulary::load(&options.vocabulary)?.vocabulary;
    let limits = RecognizerLimits::default();
    let recognizer = Arc::new(Recognizer::new(grammar, &limits, &mut Budget::unlimited())?);
    let slices = Arc::new(PreparedVocabulary::new(vocabulary.clone()));
    let mut stores = Vec::new();
    for count in options.steps.iter().copied() {
        stores.push(MaskStore::new(recognizer.clone(), &slices, Steps::first(count))?);
    }
    let constraint = GrammarConstraint::new(recognizer, slices);
    follow(&options, &vocabulary, &stores, &constraint)?;
    generate(&options, &vocabulary, &constraint)
}

/// Experiments 1 and 3.
fn follow(
    options: &Options,
    vocabulary: &Vocabulary,
    stores: &[MaskStore],
    constraint: &GrammarConstraint,
) -> Result<()> {
    let list = std::fs::read_to_string(&options.files)?;
    let longest = vocabulary.texts().map(|(_, text)| text.len()).max().unwrap_or(0);
    let by_text: std::collections::HashMap<&[u8], TokenId> =
        vocabulary.texts().map(|(token, text)| (text, token)).collect();
    let mut scratch = GrammarScratch::default();
    let mut masks = [0; 2].map(|_| TokenMask::new(vocabulary.num_tokens()));
    let (mut followed, mut compared, mut files, mut refused) = (0, 0, 0, 0);
    let (begun, mut slowest) = (Instant::now(), 0.0_f64);
    'files: for path in list.lines() {
        if followed >= options.tokens {
            break;
        }
        let text = std::fs::read(path)?;
        let mut state = constraint.start();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let token = (1..=longest.min(rest.len()))
                .rev()
                .find_map(|length| by_text.get(&rest[..length]).copied())
                .with_context(|| format!("{path}: byte {at} is in no token"))?;
            let asked = Instant::now();
            constraint.fill_mask(&state, &mut scratch, masks[0].as_words_mut())?;
            slowest = slowest.max(asked.elapsed().as_secs_f64());
            if compared < options.compare
                && let Some(position) = state.position()
            {
                for store in stores {
                    let parser = &mut ParserScratch::default();
                    store.fill_mask(position, parser, masks[1].as_words_mut())?;
                    for &end in constraint.ends() {
                        if masks[0].contains(end) {
                            masks[1].insert(end);
                        }
                    }
                    ensure!(masks[0] == masks[1], "{path}: masks differ at byte {at}");
                }
                compared += 1;
            }
            let allowed = masks[0].contains(token);
            ensure!(
                allowed == constraint.commit(&mut state, token, &mut scratch).is_ok(),
                "{path}: mask and commit differ at byte {at}"
            );
            if !allowed {
                let line = text[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
                println!(
                    "refused: {path}:{line} before {:?}",
                    String::from_utf8_lossy(&rest[..rest.len().min(30)])
                );
                refused += 1;
                continue 'files;
            }
            followed += 1;
            at += vocabulary.text(token).len();
        }
        files += 1;
        if !constraint.is_accepting(&state, &mut scratch)? {
            println!("not complete: {path}");
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{followed} tokens of {files} files allowed, {refused} files refused, {compared} masks compared, \
         {seconds:.1} s, slowest mask {slowest:.4} s"
    );
    Ok(())
}

/// Experiment 2: random walks under the masks, that end as soon as they may once they are long
/// enough.
fn generate(
    options: &Options,
    vocabulary: &Vocabulary,
    constraint: &GrammarConstraint,
) -> Result<()> {
    let Some(out) = &options.out else { return Ok(()) };
    std::fs::create_dir_all(out)?;
    let mut scratch = GrammarScratch::default();
    let mut mask = TokenMask::new(vocabulary.num_tokens());
    let (mut random, mut total, mut complete) = (1_u64, 0, 0);
    for number in 0..options.generate {
        let (mut state, mut text) = (constraint.start(), Vec::new());
        while text.len() < 3 * options.length {
            if text.len() >= options.length && constraint.is_accepting(&state, &mut scratch)? {
                complete += 1;
                std::fs::write(out.join(format!("{number}.py")), &text)?;
                total += text.len();
                break;
            }
            constraint.fill_mask(&state, &mut scratch, mask.as_words_mut())?;
            // Tokens of the readable characters only, as published.
            let readable = |token: &TokenId| {
                let text = vocabulary.text(*token);
                !text.is_empty()
                    && text.iter().all(|&byte| byte == b'\n' || (32..=126).contains(&byte))
            };
            let allowed: Vec<_> = mask.iter().filter(readable).collect();
            ensure!(!allowed.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(&text));
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut token = allowed[(random >> 33) as usize % allowed.len()];
            if text.len() >= options.length {
                // Towards an end: close what is open.
                let ends = |token: &&TokenId| {
                    matches!(vocabulary.text(**token), [b')' | b']' | b'}' | b'\n' | b'"' | b'\''])
                };
                let closing: Vec<_> = allowed.iter().filter(ends).collect();
                if !closing.is_empty() {
                    token = *closing[(random >> 40) as usize % closing.len()];
                }
            }
            constraint.commit(&mut state, token, &mut scratch)?;
            text.extend_from_slice(vocabulary.text(token));
        }
    }
    println!("{complete} of {} texts generated, {total} bytes", options.generate);
    Ok(())
}

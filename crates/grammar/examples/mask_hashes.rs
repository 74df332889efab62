//! Hashes of masks along texts and random walks: two versions of the engine agree where their lines
//! do.
//!
//! ```text
//! mask_hashes [--vocab NAME|FILE] [--steps N] [--random N] [--engine automaton|walk] FILE...
//! ```
//!
//! A file is one of JSON Schemas with instances (`.jsonl`: {"name", "schema", "tests":
//! [{"data"}]}), a grammar of lark or GBNF, or one JSON Schema (`.json`). A grammar is followed
//! along its instances' tokens and along walks that choose among the allowed tokens by a hash of
//! the mask; the mask before each token goes into the grammar's hash, and a line has its name, the
//! number of its masks and that hash. `--random` adds so many small random grammars, each over a
//! vocabulary of its own.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer,
    RecognizerLimits,
    frontends::{gbnf, json_schema, lark},
    prepare_json,
};
use palmette_testkit::grammar::generate;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

#[derive(Debug, Parser)]
struct Arguments {
    files: Vec<PathBuf>,
    #[arg(long, default_value = "o200k_base")]
    vocab: String,
    /// A walk is followed for so many tokens.
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// So many walks for each grammar.
    #[arg(long, default_value_t = 2)]
    walks: u64,
    /// So many small random grammars.
    #[arg(long, default_value_t = 0)]
    random: usize,
    #[arg(long, value_enum, default_value_t = Engine::Automaton)]
    engine: Engine,
    /// Take every so manyth case of a file of several.
    #[arg(long, default_value_t = 1)]
    every: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Engine {
    /// Tokens that a constraint chooses.
    Automaton,
    /// Every token, by the definition.
    Walk,
}

/// Masks that went into a hash.
struct Hashed {
    hash: Xxh3,
    num_masks: usize,
    num_errors: usize,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut all = Xxh3::new();
    let mut total = 0;
    let mut report = |name: &str, hashed: &Hashed| {
        let digest = hashed.hash.digest();
        total += hashed.num_masks;
        all.update(&digest.to_le_bytes());
        println!("{digest:016x} {:5} masks {} errors  {name}", hashed.num_masks, hashed.num_errors);
    };
    if !arguments.files.is_empty() {
        let loaded = palmette_vocabulary::load(&arguments.vocab)?;
        let slices = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
        prepare_json(&slices);
        for file in &arguments.files {
            for (name, grammar, texts) in cases(file, arguments.every)? {
                let texts: Vec<Vec<TokenId>> = match &loaded.tokenizer {
                    Some(tokenizer) => {
                        texts.iter().map(|text| tokenizer.encode(text)).collect::<Result<_, _>>()?
                    }
                    None => Vec::new(),
                };
                match grammar {
                    Ok(grammar) => report(&name, &follow(&arguments, grammar, &slices, &texts)),
                    Err(why) => println!("refused {name}: {why}"),
                }
            }
        }
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..arguments.random {
        let (grammar, texts) = (generate::text_grammar(), generate::vocabulary())
            .new_tree(&mut runner)
            .map_err(|why| anyhow::anyhow!("{why}"))?
            .current();
        let end = TokenId(texts.len() as u32);
        let vocabulary = Vocabulary::new(texts.iter().map(Some).chain([None]), [end])?;
        let slices = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        let grammar = generate::over_alphabet(&grammar);
        report(&format!("random {number}"), &follow(&arguments, grammar, &slices, &[]));
    }
    println!("{:016x} {total} masks in all", all.digest());
    Ok(())
}

type Case = (String, Result<Grammar, String>, Vec<String>);

fn cases(file: &Path, every: usize) -> anyhow::Result<Vec<Case>> {
    let source = std::fs::read_to_string(file)?;
    let name = file.display().to_string();
    let schema = |source: &str| {
        let options = json_schema::JsonSchemaOptions::default();
        json_schema::parse(source, &options).map_err(|why| why.to_string())
    };
    Ok(match file.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => {
            let mut cases = Vec::new();
            for line in source.lines().step_by(every) {
                let case: Value = serde_json::from_str(line)?;
                let texts = case["tests"].as_array().into_iter().flatten();
                let texts = texts.map(|test| test["data"].to_string()).collect();
                let name = case["name"].as_str().unwrap_or_default().to_owned();
                cases.push((name, schema(&case["schema"].to_string()), texts));
            }
            cases
        }
        Some("lark") => {
            let mut made = Vec::new();
            for start in ["start", "file_input"] {
                let options = lark::LarkOptions::from_rule(start);
                if let Ok(grammar) = lark::parse(&source, &options) {
                    made.push((format!("{name} from {start}"), Ok(grammar), Vec::new()));
                }
            }
            made
        }
        Some("gbnf") => {
            let grammar = gbnf::parse(&source, &gbnf::GbnfOptions::default());
            vec![(name, grammar.map_err(|why| why.to_string()), Vec::new())]
        }
        _ => vec![(name, schema(&source), Vec::new())],
    })
}

fn follow(
    arguments: &Arguments,
    grammar: Grammar,
    slices: &Arc<PreparedVocabulary>,
    texts: &[Vec<TokenId>],
) -> Hashed {
    let mut hashed = Hashed { hash: Xxh3::new(), num_masks: 0, num_errors: 0 };
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::new(1 << 30));
    let Ok(recognizer) = recognizer else {
        hashed.num_errors += 1;
        return hashed;
    };
    let (recognizer, slices) = (Arc::new(recognizer), Arc::clone(slices));
    let constraint = match arguments.engine {
        Engine::Automaton => GrammarConstraint::new(recognizer, slices),
        Engine::Walk => GrammarConstraint::by_walking(recognizer, slices),
    };
    let mut scratch = GrammarScratch::default();
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    for text in texts {
        let mut state = constraint.start();
        for &token in text {
            if !hash_mask(&constraint, &state, &mut scratch, &mut row, &mut hashed)
                || !mask::contains(&row, token)
                || constraint.commit(&mut state, token, &mut scratch).is_err()
            {
                break;
            }
        }
        hash_mask(&constraint, &state, &mut scratch, &mut row, &mut hashed);
    }
    for walk in 0..arguments.walks {
        let mut state = constraint.start();
        for _ in 0..arguments.steps {
            if !hash_mask(&constraint, &state, &mut scratch, &mut row, &mut hashed) {
                break;
            }
            let count = mask::count(&row);
            if count == 0 {
                break;
            }
            // Different walks part at once; none depends on anything but masks.
            let choice = (hashed.hash.digest() ^ walk) as usize % count;
            let token = mask::iter(&row).nth(choice).expect("so many are allowed");
            if constraint.commit(&mut state, token, &mut scratch).is_err() {
                // The end, or a limit.
                break;
            }
        }
    }
    hashed
}

fn hash_mask(
    constraint: &GrammarConstraint,
    state: &<GrammarConstraint as Constraint>::State,
    scratch: &mut GrammarScratch,
    row: &mut [u32],
    hashed: &mut Hashed,
) -> bool {
    if constraint.fill_mask(state, scratch, row).is_err() {
        hashed.num_errors += 1;
        hashed.hash.update(b"error");
        return false;
    }
    hashed.num_masks += 1;
    row.iter().for_each(|word| hashed.hash.update(&word.to_le_bytes()));
    true
}

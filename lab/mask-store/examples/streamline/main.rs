//! How many rows a mask store has after each step of streamlining.
//!
//! ```text
//! cargo run --release -p palmette-mask-store --example streamline -- python.lark --start file_input \
//!     --vocabulary mistral-7b-v0.1-vocab.json --ascii --json rows.json
//! ```
//!
//! Steps 1 to 4 are those of V. Tran-Thien (2025), 5 and 6 what is left to future work there. With
//! `--contexts`, rows are also counted for each pair of a state and a terminal before its lexeme.
//!
//! `--form terminals`, the default, counts the rows of an automaton that has each terminal's states
//! side by side, as published by V. Tran-Thien (2025); `--form lexer` those of the positions of our
//! own lexer that are reachable by one token from a position already found.
#![expect(clippy::print_stdout, reason = "this is what the program is for")]

mod terminal_states;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use palmette_core::VocabularyTrie;
use palmette_grammar::{
    Grammar, LexerLimits, TerminalId, TerminalSet,
    engine::lexer::Lexer,
    frontends::lark::{self, LarkOptions},
};
use palmette_grammar_parser::ignored_terminals;
use palmette_mask_store::{
    Interchange, Legality, LexemeAutomaton, RowCounts, Speller, Spellings, Steps, Streamliner,
};
use serde_json::json;
use terminal_states::TerminalStates;

#[derive(Parser)]
struct Options {
    /// A grammar in the dialect of lark.
    grammar: PathBuf,
    /// Its start.
    #[arg(long, default_value = "start")]
    start: String,
    /// A vocabulary: the name of an encoding, or a file.
    #[arg(long)]
    vocabulary: String,
    /// Only tokens and transitions of the characters 32 to 126 and the line feed.
    #[arg(long)]
    ascii: bool,
    /// Leave ignored terminals in sequences, to count rows as they are published; the steps then
    /// are not sound.
    #[arg(long)]
    keep_ignored: bool,
    /// Keep line's ends that lead to different depths together, as published.
    #[arg(long)]
    plain: bool,
    #[arg(long, value_enum, default_value = "terminals")]
    form: Form,
    /// How many positions of the lexer are counted at most; more is an error.
    #[arg(long, default_value_t = 20_000)]
    max_positions: usize,
    /// Count rows by state and terminal before it too.
    #[arg(long)]
    contexts: bool,
    /// Where the numbers go as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Terminals,
    Lexer,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let source = std::fs::read_to_string(&options.grammar)
        .with_context(|| options.grammar.display().to_string())?;
    let grammar = lark::parse(&source, &LarkOptions::from_rule(&options.start))?;
    let loaded = palmette_vocabulary::load(&options.vocabulary)?;
    let readable = |byte: &u8| !options.ascii || (32..=126).contains(byte) || *byte == b'\n';
    let texts = loaded.vocabulary.texts().filter(|(_, text)| text.iter().all(readable));
    let tokens = VocabularyTrie::from_tokens(&loaded.vocabulary, texts.map(|(token, _)| token));
    let alphabet: Vec<u8> = (0..=u8::MAX).filter(readable).collect();
    let nothing = TerminalSet::new(grammar.terminals().len());
    let ignored = if options.keep_ignored { nothing } else { ignored_terminals(&grammar) };
    let speller = Speller {
        tokens: &tokens,
        ignored: &ignored,
        indentation: grammar.indentation().filter(|_| !options.plain),
    };
    println!("{} tokens", tokens.num_ranks());
    let begun = Instant::now();
    let stored = match options.form {
        Form::Terminals => {
            let automaton = TerminalStates::new(&grammar, &alphabet)?;
            println!("{} states", automaton.all().count());
            store(&speller, &automaton, automaton.all())?
        }
        Form::Lexer => {
            let lexer = Lexer::new(&grammar, &LexerLimits::default())?;
            let positions = positions(&lexer, &alphabet, options.max_positions)?;
            println!("{} positions", positions.len());
            store(&speller, &lexer, positions.into_iter())?
        }
    };
    println!("{} transitions, {:.2} s", stored.num_transitions, begun.elapsed().as_secs_f64());
    for set in Interchange::new(&grammar).sets() {
        let name = |terminal: &TerminalId| grammar.terminals()[terminal.index()].name.clone();
        println!("interchangeable: {}", set.iter().map(name).collect::<Vec<_>>().join(" "));
    }
    let mut steps = Vec::new();
    println!(
        "{:>5} {:>9} {:>9} {:>6} {:>8} {:>6} {:>8}",
        "step", "rows", "distinct", "p50", "mean", "max", "seconds"
    );
    for step in 0..=Steps::MAX {
        let begun = Instant::now();
        let streamliner = Streamliner::new(&grammar, Steps::first(step));
        let rows = stored.rows.iter().map(|rows| streamliner.streamline(rows.clone()));
        let rows: Vec<Spellings> = rows.collect();
        steps.push(report(step, &rows, begun.elapsed().as_secs_f64()));
    }
    let contexts = options.contexts.then(|| count_contexts(&grammar, &stored));
    if let Some(path) = options.json {
        let report = json!({
            "states": stored.rows.len(), "tokens": tokens.num_ranks(),
            "transitions": stored.num_transitions, "steps": steps, "contexts": contexts,
        });
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

struct Stored {
    rows: Vec<Spellings>,
    /// Terminals that the lexeme in progress can become, by state.
    possible: Vec<Vec<TerminalId>>,
    num_transitions: usize,
}

fn store<A: LexemeAutomaton>(
    speller: &Speller<'_>,
    automaton: &A,
    states: impl Iterator<Item = A::State>,
) -> Result<Stored> {
    let mut stored = Stored { rows: Vec::new(), possible: Vec::new(), num_transitions: 0 };
    for state in states {
        let (rows, num_transitions) = speller.spell(automaton, state)?;
        stored.rows.push(rows);
        stored.possible.push(automaton.viable_terminals(state).iter().collect());
        stored.num_transitions += num_transitions;
    }
    Ok(stored)
}

/// All positions of a lexer that some text leads to.
fn positions(
    lexer: &Lexer,
    alphabet: &[u8],
    max_positions: usize,
) -> Result<Vec<palmette_grammar::engine::lexer::LexerState>> {
    let mut seen = BTreeSet::from([lexer.start()]);
    let mut positions = vec![lexer.start()];
    let mut at = 0;
    while at < positions.len() {
        let state = positions[at];
        at += 1;
        let ends = lexer.ends(state)?.iter().map(|end| end.next);
        for from in [state].into_iter().chain(ends) {
            for &byte in alphabet {
                if let Some(next) = lexer.advance(from, byte)?
                    && seen.insert(next)
                {
                    positions.push(next);
                }
            }
        }
        anyhow::ensure!(
            positions.len() <= max_positions,
            "the lexer has more than {max_positions} positions (--max-positions)"
        );
    }
    Ok(positions)
}

fn report(step: usize, rows: &[Spellings], seconds: f64) -> serde_json::Value {
    let counts = RowCounts::new(rows);
    let (total, distinct) = (counts.rows, counts.distinct);
    let (p50, mean, max) = (counts.p50(), counts.mean(), counts.max());
    println!("{step:>5} {total:>9} {distinct:>9} {p50:>6} {mean:>8.1} {max:>6} {seconds:>8.2}");
    json!({
        "step": step, "rows": total, "distinct": distinct, "p50": p50, "mean": mean, "max": max,
        "seconds": seconds, "rows_per_state": counts.of_states,
    })
}

/// Rows of each pair of a state and a terminal that may come right before its lexeme: those of the
/// state after the published steps, and those that are left where the pair is the key of a store.
fn count_contexts(grammar: &Grammar, stored: &Stored) -> serde_json::Value {
    let [four, five] = [4, 5].map(|count| Streamliner::new(grammar, Steps::first(count)));
    let (legality, interchange) = (Legality::new(grammar), Interchange::new(grammar));
    // One of each set that may stand for one another: the others have the same rows.
    let terminals = (0..grammar.terminals().len() as u32).map(TerminalId);
    let terminals = terminals.filter(|&one| interchange.representative(one) == one);
    let terminals: Vec<TerminalId> = terminals.collect();
    let begun = Instant::now();
    let (mut alone, mut pairs) = (Vec::new(), Vec::new());
    for (possible, rows) in stored.possible.iter().zip(&stored.rows) {
        // Only the sequences are counted.
        let rows: Spellings = rows.keys().map(|letters| (letters.clone(), Vec::new())).collect();
        let of_state = four.streamline(rows.clone()).len();
        let may_follow = |before: TerminalId| {
            possible.iter().any(|&own| !legality.is_never_legal(&[before, own]))
        };
        for before in terminals.iter().copied().filter(|&before| may_follow(before)) {
            alone.push(of_state);
            pairs.push(five.streamline_after(Some(before), rows.clone()).len());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let line = |name: &str, mut counts: Vec<usize>| {
        counts.sort_unstable();
        let (keys, rows) = (counts.len(), counts.iter().sum::<usize>());
        let (p50, max) = (counts[keys / 2], counts[keys - 1]);
        let mean = rows as f64 / keys as f64;
        println!("{name}: {keys} keys, p50 {p50}, mean {mean:.1}, max {max} rows");
        json!({"keys": keys, "rows": rows, "p50": p50, "mean": mean, "max": max})
    };
    let alone = line("a state, for each terminal before it", alone);
    let pairs = line("a state and a terminal before it", pairs);
    println!("{seconds:.2} s");
    json!({"without": alone, "with": pairs, "seconds": seconds})
}

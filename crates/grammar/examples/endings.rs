//! Texts that end within their tokens, written by adversaries under real schemas and grammars.
//!
//! ```text
//! endings schemas FILE.jsonl [NAME]   one {"name", "schema"} a line
//! endings lark FILE…                  Lark grammars
//! endings small N                     N random small grammars over random small vocabularies: the tokens that are
//!                                     needed beside the fewest that there are, by breadth-first search over masks; and
//!                                     whether a text of 2 to 4 tokens more is known where there is one
//! endings random N                    texts of N such grammars: any, contextual and longest lexing, ambiguous ones
//!
//! --vocabulary NAME   a vocabulary to load [default: o200k_base]
//! --texts FILE        the texts, a JSON object {"name", "tokens", "text"} a line, for other validators
//! --steps N           as many tokens more than the shortest, in place of none and twice as many
//! --least N           texts that do not end before N tokens more than the shortest either: of exactly as many, and of
//!                     as many to N more
//! ```
//!
//! For each grammar: the shortest text that is known, then texts of that many tokens and of twice as
//! many, by samplers who draw at random, take what needs the most tokens of 16 that were drawn, or
//! the longest token, or what needs the fewest. Each is whole in time, or the program fails. Then times: of a mask, of the mask
//! that ends in time far from the end and near it, of both for the second time, and of the fewest
//! tokens.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail, ensure};
use palmette_core::{Constraint, Lengths, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, GrammarState, MaskBudget,
    PreparedVocabulary, Recognizer, RecognizerLimits,
};
use palmette_testkit::grammar::generate;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// A choice among allowed tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Adversary {
    Random,
    Needy,
    Longest,
    Hasty,
}

const ADVERSARIES: [Adversary; 3] = [Adversary::Random, Adversary::Needy, Adversary::Longest];

/// Adversaries of a text that must not end early.
const HASTY: [Adversary; 3] = [Adversary::Random, Adversary::Longest, Adversary::Hasty];

/// Units of a grammar's compilation.
const COMPILE_UNITS: u64 = 1 << 30;

fn main() -> anyhow::Result<()> {
    let (mut words, mut vocabulary, mut texts, mut more, mut least) =
        (Vec::new(), "o200k_base".to_owned(), None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match &*argument {
            "--vocabulary" => vocabulary = value()?,
            "--texts" => texts = Some(BufWriter::new(File::create(value()?)?)),
            "--steps" => more = Some(value()?.parse::<usize>()?),
            "--least" => least = Some(value()?.parse::<usize>()?),
            _ => words.push(argument),
        }
    }
    let loaded = palmette_vocabulary::load(&vocabulary)?;
    let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
    let mut run = Run { texts, more, least, ..Run::new(vocabulary) };
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["schemas", file, ref name @ ..] => {
            for line in fs::read_to_string(file)?.lines() {
                let case: Value = serde_json::from_str(line)?;
                let of = case["name"].as_str().unwrap_or_default();
                if name.first().is_none_or(|name| of.contains(name)) {
                    let schema = case["schema"].to_string();
                    let parsed = json_schema::parse(&schema, &JsonSchemaOptions::default());
                    run.grammar(of, parsed.map_err(anyhow::Error::from))?;
                }
            }
        }
        ["lark", ref files @ ..] if !files.is_empty() => {
            for file in files {
                let parsed = lark::parse(&fs::read_to_string(file)?, &LarkOptions::default());
                run.grammar(file, parsed.map_err(anyhow::Error::from))?;
            }
        }
        ["small", number] => return small(number.parse()?),
        ["random", number] => {
            for (place, (grammar, vocabulary)) in random(number.parse()?)?.into_iter().enumerate() {
                run.vocabulary = vocabulary;
                run.grammar(&format!("grammar {place}"), Ok(grammar))?;
            }
        }
        _ => bail!("schemas FILE.jsonl [NAME], lark FILE…, small N, or random N"),
    }
    run.report();
    Ok(())
}

/// Random small grammars, each with a random small vocabulary that has their bytes.
fn random(number: usize) -> anyhow::Result<Vec<(Grammar, Arc<PreparedVocabulary>)>> {
    let mut runner = TestRunner::deterministic();
    let strategy = (generate::text_grammar(), generate::vocabulary());
    let mut made = Vec::with_capacity(number);
    for _ in 0..number {
        let tree = strategy.new_tree(&mut runner).map_err(|why| anyhow!("{why}"))?;
        let (grammar, tokens) = tree.current();
        let bytes = generate::ALPHABET.iter().collect::<String>().into_bytes();
        let texts = tokens.into_iter().chain(bytes.into_iter().map(|byte| vec![byte]));
        let texts: Vec<_> = texts.map(Some).chain([None]).collect();
        let end = TokenId(texts.len() as u32 - 1);
        let vocabulary = PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end])?));
        made.push((generate::over_alphabet(&grammar), Arc::new(vocabulary)));
    }
    Ok(made)
}

/// Needed tokens beside the fewest by search, of random grammars.
fn small(number: usize) -> anyhow::Result<()> {
    let (mut equal, mut above, mut worst, mut skipped) = (0, 0, (1, 1), 0);
    let (mut known, mut there, mut untried) = (0, 0, 0);
    for (grammar, vocabulary) in random(number)? {
        let (limits, budget) = (RecognizerLimits::default(), &mut Budget::unlimited());
        let Ok(made) = Recognizer::new(Arc::new(grammar), &limits, budget) else { continue };
        let constraint = GrammarConstraint::new(Arc::new(made), vocabulary);
        let (start, mut scratch) = (constraint.start(), GrammarScratch::default());
        let needed = constraint.fewest_tokens(&start, &mut scratch)?;
        let fewest = fewest_by_search(&constraint, &start, &mut scratch)?;
        if let Some(needed) = needed {
            let lengths = Lengths { least: needed + 2, most: needed + 4 };
            match is_there(&constraint, &start, lengths, &mut scratch)? {
                Some(true) => {
                    there += 1;
                    known += usize::from(constraint.has_way(&start, lengths, &mut scratch)?);
                }
                Some(false) => {}
                None => untried += 1,
            }
        }
        match (needed, fewest) {
            (Some(needed), Some(fewest)) if needed == fewest => equal += 1,
            (Some(needed), Some(fewest)) => {
                above += 1;
                if needed * worst.1 > worst.0 * fewest {
                    worst = (needed, fewest);
                }
            }
            _ => skipped += 1,
        }
    }
    println!(
        "equal {equal}, above {above}, at worst {} in place of {}; {skipped} not found by search",
        worst.0, worst.1
    );
    println!("of 2 to 4 tokens more: known {known} of {there} that are there; {untried} not tried");
    Ok(())
}

/// Presence of a text of one of these lengths, by trying every token; `None` where there are more
/// than 200 states of one number of tokens.
fn is_there(
    constraint: &GrammarConstraint,
    from: &GrammarState,
    lengths: Lengths,
    scratch: &mut GrammarScratch,
) -> anyhow::Result<Option<bool>> {
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let mut level = vec![from.clone()];
    for tokens in 0..=lengths.most {
        let mut next = BTreeMap::new();
        for state in level {
            if lengths.contains(tokens) && constraint.is_accepting(&state, scratch)? {
                return Ok(Some(true));
            }
            constraint.fill_mask(&state, scratch, &mut row)?;
            for token in mask::iter(&row) {
                let mut after = state.clone();
                constraint.commit(&mut after, token, scratch)?;
                if !after.ended() {
                    next.insert(format!("{:?}", after.position()), after);
                }
            }
            if next.len() > 200 {
                return Ok(None);
            }
        }
        level = next.into_values().collect();
    }
    Ok(Some(false))
}

/// The fewest tokens to the end; `None` where more than a thousand states come before it.
fn fewest_by_search(
    constraint: &GrammarConstraint,
    from: &GrammarState,
    scratch: &mut GrammarScratch,
) -> anyhow::Result<Option<usize>> {
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let (mut level, mut seen) = (vec![from.clone()], HashSet::new());
    for tokens in 0.. {
        let mut next = Vec::new();
        for state in level {
            if constraint.is_accepting(&state, scratch)? {
                return Ok(Some(tokens));
            }
            constraint.fill_mask(&state, scratch, &mut row)?;
            for token in mask::iter(&row) {
                let mut after = state.clone();
                constraint.commit(&mut after, token, scratch)?;
                if seen.insert(format!("{:?}", after.position())) {
                    next.push(after);
                }
            }
        }
        if next.is_empty() || seen.len() > 1000 {
            return Ok(None);
        }
        level = next;
    }
    Ok(None)
}

struct Run {
    vocabulary: Arc<PreparedVocabulary>,
    scratch: GrammarScratch,
    texts: Option<BufWriter<File>>,
    more: Option<usize>,
    least: Option<usize>,
    random: u64,
    counts: BTreeMap<&'static str, usize>,
    times: BTreeMap<&'static str, Vec<u64>>,
}

impl Run {
    fn new(vocabulary: Arc<PreparedVocabulary>) -> Self {
        let (scratch, texts, more, least, counts, times) = Default::default();
        Self { vocabulary, scratch, texts, more, least, random: 1, counts, times }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// The result of some work, whose time is noted.
    fn timed<T>(&mut self, what: &'static str, work: impl FnOnce(&mut GrammarScratch) -> T) -> T {
        let begun = Instant::now();
        let result = work(&mut self.scratch);
        self.times.entry(what).or_default().push(begun.elapsed().as_nanos() as u64);
        result
    }

    fn draw(&mut self, below: usize) -> usize {
        // Xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn grammar(&mut self, name: &str, parsed: anyhow::Result<Grammar>) -> anyhow::Result<()> {
        self.count("grammars");
        let begun = Instant::now();
        let (limits, budget) = (RecognizerLimits::default(), &mut Budget::new(COMPILE_UNITS));
        let made =
            parsed.and_then(|grammar| Ok(Recognizer::new(Arc::new(grammar), &limits, budget)?));
        let Ok(made) = made else {
            self.count("not compiled");
            return Ok(());
        };
        let constraint = GrammarConstraint::new(Arc::new(made), Arc::clone(&self.vocabulary));
        let start = constraint.start();
        if start.position().is_none() {
            self.count("empty");
            return Ok(());
        }
        let way = self
            .timed("first way", |scratch| {
                constraint.shortest_completion(&start, scratch, &MaskBudget::unlimited())
            })
            .with_context(|| name.to_owned())?;
        let Some(way) = way else {
            self.count("no way known");
            println!("{name}: no way known");
            return Ok(());
        };
        let shortest = way.tokens.len();
        let (all, adversaries) = match (self.least, self.more) {
            (Some(least), _) => {
                let least = shortest + least;
                let more = 2 * least - shortest;
                (vec![Lengths { least, most: least }, Lengths { least, most: more }], HASTY)
            }
            (None, Some(more)) => (vec![Lengths::within(shortest + more)], ADVERSARIES),
            (None, None) => {
                (vec![Lengths::within(shortest), Lengths::within(2 * shortest)], ADVERSARIES)
            }
        };
        for lengths in all {
            let has_way =
                self.timed("has a way", |scratch| constraint.has_way(&start, lengths, scratch))?;
            if !has_way {
                self.count(if lengths.least == lengths.most {
                    "not exactly"
                } else {
                    "no such length"
                });
                continue;
            }
            for adversary in adversaries {
                let text = self
                    .write(&constraint, adversary, lengths)
                    .with_context(|| format!("{name}: {adversary:?} within {lengths:?}"))?;
                if let Some(texts) = &mut self.texts {
                    let (tokens, text) = (lengths.most, String::from_utf8_lossy(&text));
                    writeln!(texts, "{}", json!({"name": name, "tokens": tokens, "text": text}))?;
                }
            }
        }
        self.count("finished");
        if begun.elapsed().as_secs() >= 10 {
            println!("{name}: {} s", begun.elapsed().as_secs());
        }
        Ok(())
    }

    /// A text of one of these lengths.
    fn write(
        &mut self,
        constraint: &GrammarConstraint,
        adversary: Adversary,
        lengths: Lengths,
    ) -> anyhow::Result<Vec<u8>> {
        if lengths.least > 0 {
            return self.write_lasting(constraint, adversary, lengths);
        }
        let tokens = lengths.most;
        let mut row = vec![0; mask::num_words(constraint.num_tokens())];
        let (mut state, mut text) = (constraint.start(), Vec::new());
        let work = MaskBudget::unlimited();
        for left in (0..=tokens).rev() {
            constraint.fill_mask(&state, &mut self.scratch, &mut row)?;
            self.timed("mask", |scratch| constraint.fill_mask(&state, scratch, &mut row))?;
            self.timed("fewest", |scratch| constraint.fewest_tokens(&state, scratch))?;
            for (first, again, left) in
                [("near, first", "near, again", left), ("far, first", "far, again", 1 << 20)]
                    .into_iter()
                    .rev()
            {
                for what in [first, again] {
                    self.timed(what, |scratch| {
                        constraint.fill_ending_mask_within(
                            &state,
                            Lengths::within(left),
                            scratch,
                            &mut row,
                            &work,
                        )
                    })?;
                }
            }
            let ends = constraint.ends().to_vec();
            let allowed: Vec<TokenId> =
                mask::iter(&row).filter(|token| !ends.contains(token)).collect();
            if allowed.is_empty() {
                break;
            }
            let token = self.choose(constraint, &state, adversary, &allowed)?;
            text.extend_from_slice(constraint.vocabulary().text(token));
            constraint.commit(&mut state, token, &mut self.scratch)?;
        }
        ensure!(
            constraint.is_accepting(&state, &mut self.scratch)?,
            "it is not whole: {}",
            String::from_utf8_lossy(&text)
        );
        self.count("texts");
        Ok(text)
    }

    /// A text of one of these lengths, which ends as soon as it may where the adversary is hasty.
    fn write_lasting(
        &mut self,
        constraint: &GrammarConstraint,
        adversary: Adversary,
        lengths: Lengths,
    ) -> anyhow::Result<Vec<u8>> {
        let mut row = vec![0; mask::num_words(constraint.num_tokens())];
        let (mut state, mut text) = (constraint.start(), Vec::new());
        let work = MaskBudget::unlimited();
        let mut after = Some(lengths);
        let mut written = 0;
        while let Some(lengths) = after {
            if lengths.most == 0
                || adversary == Adversary::Hasty
                    && lengths.least == 0
                    && constraint.is_accepting(&state, &mut self.scratch)?
            {
                break;
            }
            let what = if lengths.least > 0 { "lasting" } else { "ending" };
            self.timed(what, |scratch| {
                constraint.fill_ending_mask_within(&state, lengths, scratch, &mut row, &work)
            })?;
            let ends = constraint.ends().to_vec();
            let is_text = |token: &TokenId| lengths.least > 0 || !ends.contains(token);
            let allowed: Vec<TokenId> = mask::iter(&row).filter(is_text).collect();
            if allowed.is_empty() {
                break;
            }
            let token = self.choose(constraint, &state, adversary, &allowed)?;
            text.extend_from_slice(constraint.vocabulary().text(token));
            constraint.commit(&mut state, token, &mut self.scratch)?;
            self.timed("of a token", |scratch| match lengths.after(1) {
                Some(lengths) => constraint.has_way(&state, lengths, scratch),
                None => Ok(false),
            })?;
            (after, written) = (lengths.after(1), written + 1);
        }
        ensure!(
            constraint.is_accepting(&state, &mut self.scratch)? && lengths.contains(written),
            "it is not whole, or of {written} tokens: {}",
            String::from_utf8_lossy(&text)
        );
        self.count("texts");
        Ok(text)
    }

    fn choose(
        &mut self,
        constraint: &GrammarConstraint,
        state: &GrammarState,
        adversary: Adversary,
        allowed: &[TokenId],
    ) -> anyhow::Result<TokenId> {
        let drawn: Vec<TokenId> = (0..16).map(|_| allowed[self.draw(allowed.len())]).collect();
        let length = |token: &TokenId| constraint.vocabulary().text(*token).len();
        match adversary {
            Adversary::Random => Ok(drawn[0]),
            Adversary::Longest => Ok(drawn.into_iter().max_by_key(length).expect("16")),
            Adversary::Hasty => {
                let mut least = (usize::MAX, drawn[0]);
                for token in drawn {
                    let mut after = state.clone();
                    constraint.commit(&mut after, token, &mut self.scratch)?;
                    let fewest = constraint.fewest_tokens(&after, &mut self.scratch)?;
                    least = least.min((fewest.unwrap_or(usize::MAX), token));
                }
                Ok(least.1)
            }
            Adversary::Needy => {
                let mut most = (None, drawn[0]);
                for token in drawn {
                    let mut after = state.clone();
                    constraint.commit(&mut after, token, &mut self.scratch)?;
                    let fewest = constraint.fewest_tokens(&after, &mut self.scratch)?;
                    most = most.max((fewest, token));
                }
                Ok(most.1)
            }
        }
    }

    fn report(&mut self) {
        for (what, count) in &self.counts {
            println!("{what:>14} {count}");
        }
        println!(
            "{:>14} {:>10} {:>10} {:>10} {:>10}",
            "microseconds", "times", "p50", "p99", "p99.9"
        );
        for (what, times) in &mut self.times {
            times.sort_unstable();
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
            println!(
                "{what:>14} {:>10} {:>10.2} {:>10.2} {:>10.2}",
                times.len(),
                at(0.5),
                at(0.99),
                at(0.999)
            );
        }
    }
}

//! Price of masks that hold a model to the tokenizer's own cut of a text.
//!
//! ```text
//! cargo run --release -p palmette-grammar --example proper_pairs -- python.lark --start file_input a.py b.py
//! ```
//!
//! Byte-pair merging leaves two tokens beside one another if and only if it would cut their bytes
//! into just these two, so a token is proper after the last one or it is not, whatever the text. A
//! mask of proper tokens is then the grammar's and a row of the last token's.
//!
//! Told are the time of one pair, of a row and of a mask with and without it, and how often the
//! pairs of real texts are refused: a tokenizer's pattern cuts a text before bytes are merged, and
//! pairs know nothing of it.
#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, PreparedVocabulary, Recognizer,
    frontends::json_schema::JsonSchemaOptions,
};

#[derive(Parser)]
struct Options {
    /// A grammar in the dialect of lark, or a JSON Schema (.json).
    grammar: PathBuf,
    /// Texts of it.
    texts: Vec<PathBuf>,
    #[arg(long, default_value = "start")]
    start: String,
    /// An encoding whose token numbers are its ranks.
    #[arg(long, default_value = "o200k_base")]
    vocab: String,
    /// Pairs that are compared with merging their bytes.
    #[arg(long, default_value_t = 200_000)]
    compare: usize,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let loaded = palmette_vocabulary::load(&options.vocab)?;
    let vocabulary = loaded.vocabulary;
    let begun = Instant::now();
    let pairs = Pairs::new(&vocabulary)?;
    println!(
        "{} tokens, merges found in {:.2} s",
        pairs.parts.len(),
        begun.elapsed().as_secs_f64()
    );
    pairs.compare(&vocabulary, options.compare)?;

    let source = std::fs::read_to_string(&options.grammar)
        .with_context(|| options.grammar.display().to_string())?;
    let source = match options.grammar.extension().is_some_and(|ending| ending == "json") {
        true => GrammarSource::JsonSchema { text: source, options: JsonSchemaOptions::default() },
        false => {
            GrammarSource::Lark { text: source, options: LarkOptions::from_rule(&options.start) }
        }
    };
    let (grammar, _) = source.parse()?;
    let recognizer =
        Recognizer::new(Arc::new(grammar), &Default::default(), &mut Budget::unlimited())?;
    let prepared = Arc::new(PreparedVocabulary::new(Arc::clone(&vocabulary)));
    let constraint = GrammarConstraint::new(Arc::new(recognizer), prepared);
    let tokenizer = loaded.tokenizer.context("the vocabulary does not say how text is cut")?;
    let mut figures = Figures::default();
    let mut rows = HashMap::new();
    for path in &options.texts {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let tokens = tokenizer.encode(&text)?;
        // Again where all rows and masks are known.
        for is_first in [true, false] {
            figures.follow(&constraint, &pairs, &tokens, is_first, &mut rows)?;
        }
    }
    figures.print();
    Ok(())
}

/// Merges of a byte-pair vocabulary whose token numbers are its ranks.
struct Pairs {
    /// The two tokens that each was merged of, itself twice for one of a byte.
    parts: Vec<[u32; 2]>,
    /// Tokens by the two that they were merged of.
    merged: HashMap<[u32; 2], u32>,
    /// Tokens by their bytes.
    by_text: HashMap<Vec<u8>, u32>,
}

impl Pairs {
    fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let by_text: HashMap<Vec<u8>, u32> =
            vocabulary.texts().map(|(token, text)| (text.to_vec(), token.0)).collect();
        let mut parts = vec![[u32::MAX; 2]; vocabulary.num_tokens()];
        let mut merged = HashMap::new();
        for (token, text) in vocabulary.texts() {
            if text.len() == 1 {
                parts[token.index()] = [token.0; 2];
                continue;
            }
            let cut = cut(text, &by_text, token.0);
            let &[left, right] = cut.as_slice() else {
                anyhow::bail!("token {token} is not merged of two, but of {cut:?}");
            };
            parts[token.index()] = [left, right];
            merged.insert([left, right], token.0);
        }
        Ok(Self { parts, merged, by_text })
    }

    /// True when merging leaves the two tokens as they are.
    ///
    /// The merges of both are taken back, the latest first, and at each step the symbols at the
    /// border are looked at: had they been merged before what was taken back last, the border would
    /// be gone.
    fn is_proper(&self, [mut left, mut right]: [u32; 2]) -> bool {
        // Merges of this rank and above came after what is looked at now.
        let mut limit = u32::MAX;
        loop {
            if self.merged.get(&[left, right]).is_some_and(|&merged| merged < limit) {
                return false;
            }
            let [of_left, of_right] = [self.parts[left as usize], self.parts[right as usize]];
            let [left_is_byte, right_is_byte] = [of_left[0] == left, of_right[0] == right];
            // Equal tokens: the left one is merged before the right one is.
            if !left_is_byte && (right_is_byte || left > right) {
                (limit, left) = (left, of_left[1]);
            } else if !right_is_byte {
                (limit, right) = (right + 1, of_right[0]);
            } else {
                return true;
            }
        }
    }

    /// The tokens with text that are proper after `last`.
    fn row(&self, last: u32, num_words: usize) -> Vec<u32> {
        let mut row = vec![0; num_words];
        for token in 0..self.parts.len() as u32 {
            if self.parts[token as usize][0] == u32::MAX || self.is_proper([last, token]) {
                mask::insert(&mut row, TokenId(token));
            }
        }
        row
    }

    /// Compares with the definition: cutting the bytes of both.
    fn compare(&self, vocabulary: &Vocabulary, count: usize) -> Result<()> {
        let texts: Vec<(TokenId, &[u8])> = vocabulary.texts().collect();
        let (mut random, mut proper) = (1_u64, 0);
        let mut draw = |most: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % most
        };
        for nth in 0..count {
            // Half of them of the first tokens, which are merged more.
            let most = if nth % 2 == 0 { texts.len() } else { texts.len().min(2_000) };
            let [(left, before), (right, after)] = [texts[draw(most)], texts[draw(most)]];
            let cut = cut(&[before, after].concat(), &self.by_text, u32::MAX);
            let is_proper = cut == [left.0, right.0];
            ensure!(self.is_proper([left.0, right.0]) == is_proper, "{left} and {right}: {cut:?}");
            proper += usize::from(is_proper);
        }
        println!("{count} pairs compared with merging their bytes, {proper} are proper");
        Ok(())
    }
}

/// Merges the bytes of a text, the lowest rank first and the leftmost of equal ones, by tokens
/// below `limit`.
fn cut(text: &[u8], by_text: &HashMap<Vec<u8>, u32>, limit: u32) -> Vec<u32> {
    let mut ends: Vec<usize> = (1..=text.len()).collect();
    let begin = |ends: &[usize], at: usize| if at == 0 { 0 } else { ends[at - 1] };
    loop {
        let ranked = (1..ends.len()).filter_map(|at| {
            let rank = *by_text.get(&text[begin(&ends, at - 1)..ends[at]])?;
            (rank < limit).then_some((rank, at))
        });
        let Some((_, at)) = ranked.min() else { break };
        ends.remove(at - 1);
    }
    (0..ends.len()).map(|at| by_text[&text[begin(&ends, at)..ends[at]]]).collect()
}

/// Times in nanoseconds, and counts.
#[derive(Default)]
struct Figures {
    first_masks: Vec<u64>,
    masks: Vec<u64>,
    first_rows: Vec<u64>,
    proper_masks: Vec<u64>,
    num_pairs: usize,
    refused: usize,
    allowed: usize,
    left: usize,
}

impl Figures {
    fn follow(
        &mut self,
        constraint: &GrammarConstraint,
        pairs: &Pairs,
        tokens: &[TokenId],
        is_first: bool,
        rows: &mut HashMap<TokenId, Vec<u32>>,
    ) -> Result<()> {
        let num_words = mask::num_words(constraint.num_tokens());
        let (mut words, mut scratch) = (vec![0; num_words], GrammarScratch::default());
        let (mut state, mut last) = (constraint.start(), None);
        for &token in tokens {
            let begun = Instant::now();
            constraint.fill_mask(&state, &mut scratch, &mut words)?;
            let time = begun.elapsed().as_nanos() as u64;
            if is_first { &mut self.first_masks } else { &mut self.masks }.push(time);
            ensure!(mask::contains(&words, token), "token {token} does not fit");
            if let Some(last) = last {
                let before = Instant::now();
                let is_known = rows.contains_key(&last);
                let row = rows.entry(last).or_insert_with(|| pairs.row(last.0, num_words));
                if !is_known {
                    self.first_rows.push(before.elapsed().as_nanos() as u64);
                }
                let allowed = mask::count(&words);
                let before = Instant::now();
                words.iter_mut().zip(&*row).for_each(|(word, &proper)| *word &= proper);
                let meeting = before.elapsed().as_nanos() as u64;
                std::hint::black_box(&mut words);
                if is_first {
                    self.num_pairs += 1;
                    self.refused += usize::from(!mask::contains(&words, token));
                    self.allowed += allowed;
                    self.left += mask::count(&words);
                } else {
                    self.proper_masks.push(time + meeting);
                }
            }
            constraint.commit(&mut state, token, &mut scratch)?;
            last = Some(token);
        }
        Ok(())
    }

    fn print(&mut self) {
        let percentiles = |times: &mut Vec<u64>| {
            times.sort_unstable();
            let at = |share: f64| {
                let nth = (share * times.len() as f64) as usize;
                times.get(nth.min(times.len().saturating_sub(1))).map_or(0.0, |&at| at as f64 / 1e3)
            };
            format!(
                "p50 {:.2}, p99 {:.2}, max {:.2} us, {}",
                at(0.5),
                at(0.99),
                at(1.0),
                times.len()
            )
        };
        println!("masks, first walk: {}", percentiles(&mut self.first_masks));
        println!("rows of proper tokens: {}", percentiles(&mut self.first_rows));
        println!("masks, second walk: {}", percentiles(&mut self.masks));
        println!("with the row, which is known: {}", percentiles(&mut self.proper_masks));
        println!(
            "{} of {} pairs of the texts refused; {:.1}% of the allowed tokens are proper",
            self.refused,
            self.num_pairs,
            100.0 * self.left as f64 / self.allowed.max(1) as f64
        );
    }
}

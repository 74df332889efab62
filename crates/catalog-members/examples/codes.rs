//! Bench of semantic IDs as members: what tokens do at every place of random IDs.
//!
//! ```text
//! cargo run --release -p palmette-catalog-members --example codes -- 1000000
//! ```
//!
//! Measured on one thread, in microseconds: the effect of all tokens of a vocabulary of 152,704,
//! whose last 1,024 spell four levels of 256 codes, and the step over a token; for all items, and
//! for one in a hundred, which a filter chooses. The items are made from a seed.
#![allow(clippy::print_stdout, reason = "a report")]

use std::sync::Arc;
use std::time::Instant;

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, CatalogBuilder, CodeTokens, Filter, LevelTokens};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::CatalogFields;
use palmette_core::{Budget, MemberSet, TokenId, VocabularyTrie, mask};
use serde_json::json;

const NUM_TOKENS: u32 = 152_704;
const FIRST_CODE: u32 = NUM_TOKENS - 1024;

fn main() {
    let num = std::env::args().nth(1).and_then(|number| number.parse().ok());
    let num: u64 = num.expect("argument: how many items");
    let mut builder = CatalogBuilder::new(BuildOptions::default()).expect("sound options");
    for item in 0..num {
        let random = item.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        // The first codes are common to many, as those of residual quantisation.
        let codes = [random % 64, random / 64 % 200, random / 12_800 % 256, random >> 40 & 255];
        let attributes = json!({"percent": random % 100}).as_object().expect("an object").clone();
        let codes = codes.map(|code| code as u32);
        builder.push(item + 1, format!("P{item}"), &codes, attributes).expect("sound");
    }
    let view = CatalogView::from(builder.finish(None, |_| ()).expect("sound items"));
    let numbers: Vec<[u8; 5]> = (0..NUM_TOKENS).map(|token| TokenId(token).to_spelling()).collect();
    let texts = numbers.iter().zip((0..).map(TokenId)).map(|(number, token)| (&number[..], token));
    let trie = VocabularyTrie::from_texts(texts);
    let level = |level: u32| LevelTokens { first_token: FIRST_CODE + 256 * level, num_codes: 256 };
    let tokens = CodeTokens::new((0..4).map(level).collect(), NUM_TOKENS as usize);
    let tokens = Arc::new(tokens.expect("tokens of the vocabulary"));
    let fields = CatalogFields::new(view.clone());
    for (name, filter) in [("all", "{}"), ("1%", r#"{"match": {"percent": 7}}"#)] {
        let filter = Filter::parse(filter).expect("a filter");
        let items = view.filter(&filter).expect("a filter of the catalog");
        let began = Instant::now();
        let set = fields.codes(Some(&filter), &tokens).expect("codes with tokens");
        let made = began.elapsed().as_secs_f64() * 1e3;
        let (mut effects, mut steps) = (Vec::new(), Vec::new());
        let mut row = vec![0; mask::num_words(NUM_TOKENS as usize)];
        let matching: Vec<u64> = view.numbers_in(&items).collect();
        for item in (0..20_000).map(|at| matching[at * 7919 % matching.len()]) {
            let mut at = set.start().expect("members");
            for (level, &code) in view.codes(item).iter().enumerate() {
                row.fill(0);
                let budget = &mut Budget::unlimited();
                let began = Instant::now();
                let done = set.effect(&at, &trie, 0, &mut row, &mut Vec::new(), budget);
                effects.push(began.elapsed());
                done.expect("an unlimited budget");
                let token = tokens.token(level, code).expect("a token");
                assert!(mask::contains(&row, token));
                let began = Instant::now();
                for byte in token.to_spelling() {
                    at = set.advance(&at, byte).expect("an item");
                }
                steps.push(began.elapsed());
            }
        }
        for (what, times) in [("effect", &mut effects), ("step", &mut steps)] {
            times.sort_unstable();
            let micros =
                |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(micros);
            println!(
                "{name} {what}: p50 {p50:.2}, p99 {p99:.2}, p99.9 {p999:.2}; set {made:.3} ms"
            );
        }
    }
}

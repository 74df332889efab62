//! Bench of whole masks: JSON whose strings are members of a set of a million.
//!
//! ```text
//! cargo run --release -p palmette-bindings --example whole_masks -- titles 1000000
//! ```
//!
//! A list of objects with a title of the set and a free text of limited length is followed token by
//! token: most of the time the longest token that fits, sometimes another. Measured in processor
//! time of one thread: masks, by where they are, the first time and again; commits; binding under a
//! filter that was not met before. The same schema with a plain string in the set's place is
//! followed beside it: what a set costs is the difference.
#![allow(clippy::print_stdout, reason = "a report")]

use std::sync::Arc;

use palmette_bindings::Bindings;
use palmette_catalog::Filter;
use palmette_core::{Constraint, VocabularyTrie, mask};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use palmette_lexicon::{Lexicon, LexiconBuilder, MemberSpelling};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

#[path = "../../lexicon/examples/members/strings.rs"]
mod strings;
use strings::{Kind, Random};

const NUM_TEXTS: usize = 2_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "arguments: titles, skus or urls, and how many";
    let kind = arguments.next().and_then(|name| Kind::from_name(&name)).expect(usage);
    let num: usize = arguments.next().and_then(|number| number.parse().ok()).expect(usage);
    let vocabulary = palmette_vocabulary::load("o200k_base").expect("it is built in").vocabulary;
    let lexicon = Arc::new(built(kind, num, &strings::words(&vocabulary)));
    let prepared = Arc::new(PreparedVocabulary::new(vocabulary));
    prepared.trie().child_lists();
    let budget = &mut Budget::unlimited();
    let json = MemberSpelling::JsonString;
    lexicon.prepare_tables(prepared.trie(), 0, json, 1 << 16, budget).expect("no limit");

    let plain = compile(r#"{"type": "string"}"#, &prepared);
    let named = compile(r#"{"type": "string", "x-catalog": "shop"}"#, &prepared);
    let all = Bindings::new().lexicon("shop", Arc::clone(&lexicon));
    let percent = filtered(&all, &lexicon, 7);
    let bound = |bindings: &Bindings| bindings.bind(&named).expect("it fits").constraint().clone();
    let texts = texts(&lexicon, None);
    println!("{} strings, {NUM_TEXTS} texts", lexicon.len());
    for run in ["first", "again"] {
        follow(&format!("plain string, {run}"), &plain, &texts, prepared.trie());
    }
    let of_all = bound(&all);
    for run in ["first", "again"] {
        follow(&format!("members, {run}"), &of_all, &texts, prepared.trie());
    }
    let of_percent = bound(&percent.0);
    let texts_of_percent = self::texts(&lexicon, Some(&percent.1));
    for run in ["first", "again"] {
        let what = format!("members of 1%, {run}");
        follow(&what, &of_percent, &texts_of_percent, prepared.trie());
    }
    let new: Vec<Bindings> = (0..20).map(|seed| filtered(&all, &lexicon, 100 + seed).0).collect();
    report("bind under a new filter", new.iter().map(|new| timed(|| bound(new)).1).collect());
}

fn built(kind: Kind, num: usize, words: &[String]) -> Lexicon {
    let (mut builder, mut random, mut text) = (LexiconBuilder::new(), Random(1), String::new());
    for _ in 0..num {
        text.clear();
        kind.append(&mut random, words, &mut text);
        builder.push(text.as_bytes()).expect("short");
    }
    builder.finish()
}

/// The bindings with a random 1% of the strings, at most 10,000, and these.
fn filtered(all: &Bindings, lexicon: &Lexicon, seed: u64) -> (Bindings, Vec<usize>) {
    let mut random = Random(seed);
    let num = (lexicon.len() / 100).min(10_000);
    let ranks: Vec<usize> = (0..num).map(|_| random.below(lexicon.len())).collect();
    let text = |&rank: &usize| String::from_utf8(lexicon.text(rank)).expect("UTF-8");
    let ids: Vec<String> = ranks.iter().map(text).collect();
    let filter = Filter::from_value(&json!({"ids": ids})).expect("few ids");
    (all.clone().matching("shop", &filter).expect("it is bound"), ranks)
}

fn compile(string: &str, vocabulary: &Arc<PreparedVocabulary>) -> GrammarConstraint {
    let schema = format!(
        r#"{{"type": "array", "items": {{"type": "object", "required": ["title", "why"], "additionalProperties": false,
            "properties": {{"title": {string}, "why": {{"type": "string", "maxLength": 60}}}}}}}}"#
    );
    let grammar = json_schema::parse(&schema, &JsonSchemaOptions::default()).expect("sound");
    let limits = RecognizerLimits::default();
    let ready = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    GrammarConstraint::new(Arc::new(ready.expect("small")), Arc::clone(vocabulary))
}

/// Texts of the schema with random members.
fn texts(lexicon: &Lexicon, of: Option<&[usize]>) -> Vec<String> {
    let mut random = Random(3);
    let mut member = || {
        let rank = match of {
            None => random.below(lexicon.len()),
            Some(ranks) => ranks[random.below(ranks.len())],
        };
        String::from_utf8(lexicon.text(rank)).expect("UTF-8")
    };
    let mut item = |why: &str| json!({"title": member(), "why": why});
    let text = |_| json!([item("it is quiet, and 30 % off"), item("")]).to_string();
    (0..NUM_TEXTS).map(text).collect()
}

fn follow(what: &str, constraint: &GrammarConstraint, texts: &[String], trie: &VocabularyTrie) {
    let (mut random, scratch) = (Random(9), &mut GrammarScratch::default());
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let (mut within, mut between, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for text in texts {
        let (mut state, mut rest) = (constraint.start(), text.as_bytes());
        while !rest.is_empty() {
            let (filled, ns) = timed(|| constraint.fill_mask(&state, scratch, &mut row));
            filled.expect("no limit");
            let is_within = state
                .position()
                .is_some_and(|at| at.branches().iter().all(|branch| branch.member.is_some()));
            if is_within {
                within.push(ns)
            } else {
                between.push(ns)
            }
            let tokens: Vec<_> = prefixes(trie, rest).collect();
            let longest = *tokens.last().expect("bytes are tokens");
            let (token, len) = match random.below(4) {
                0 => tokens[random.below(tokens.len())],
                _ => longest,
            };
            assert!(
                mask::contains(&row, token),
                "{token:?} before {}",
                String::from_utf8_lossy(rest)
            );
            let (committed, ns) = timed(|| constraint.commit(&mut state, token, scratch));
            committed.expect("it is allowed");
            commits.push(ns);
            rest = &rest[len..];
        }
        assert!(constraint.is_accepting(&state, scratch).expect("no limit"));
    }
    println!("{what}");
    report("masks within members", within);
    report("other masks", between);
    report("commits", commits);
}

/// Tokens that a text begins with, the shortest first, and their lengths.
fn prefixes(
    trie: &VocabularyTrie,
    text: &[u8],
) -> impl Iterator<Item = (palmette_core::TokenId, usize)> {
    let mut node = Some(0);
    (1..=text.len())
        .map_while(move |len| {
            node = node.and_then(|node| trie.child(node, text[len - 1]));
            node.map(|node| (len, node))
        })
        .filter_map(|(len, node)| Some((*trie.tokens_in(trie.own_ranks(node)).first()?, len)))
}

/// A value with the nanoseconds that this thread took for it.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = nanoseconds();
    let value = work();
    (value, nanoseconds() - before)
}

fn nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn report(what: &str, mut ns: Vec<f64>) {
    if ns.is_empty() {
        return;
    }
    ns.sort_by(f64::total_cmp);
    let us = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize] / 1e3;
    println!(
        "  {what:24} {:7}  p50 {:7.2}  p90 {:7.2}  p99 {:8.2}  p99.9 {:8.2}  max {:9.2} us",
        ns.len(),
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        us(1.0)
    );
}

//! What does a set of ten million strings cost: to build, to keep, and in each mask?
//!
//! ```text
//! cargo run --release -p palmette-lexicon --example members -- titles 1000000
//! cargo run --release -p palmette-lexicon --example members -- skus 10000000
//! ```
//!
//! Measured, in processor time: building from strings in random order; bytes of the lexicon and of
//! its strings; checking a file of it; and along the tokens of random members, as JSON strings,
//! under `o200k_base`: the mask of each place, cleared and filled, of all strings and of a random
//! 1% of them; the cursor after a token; forced bytes. Then the root's mask under a set that was
//! not seen before, and the making of tables.
//!
//! ```text
//! cargo run --release -p palmette-lexicon --example members -- documents 100000
//! ```
//! The same of the substrings of a document of so many bytes, by each unit ([`documents`]).
//!
//! Data: strings made from a seed ([`strings`]): titles of products of 60 bytes, stock-keeping
//! units of 10, addresses of 95.
#![allow(clippy::print_stdout, reason = "a report")]

mod documents;
mod measure;
mod strings;

use std::sync::Arc;
use std::time::Instant;

use palmette_core::{Budget, MemberSet, Vocabulary, VocabularyTrie, mask};
use palmette_lexicon::{
    Check, Lexicon, LexiconBuilder, LexiconSet, MemberSpelling, RankSet, Selection,
};

use measure::{fill, prefixes, processor_seconds, report, timed};
use strings::{Kind, Random};

/// Random members whose tokens are gone along.
const NUM_WALKS: usize = 20_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "arguments: titles, skus or urls, and how many; or documents, and how many bytes";
    let name = arguments.next().expect(usage);
    let num: usize = arguments.next().and_then(|number| number.parse().ok()).expect(usage);
    let vocabulary = palmette_vocabulary::load("o200k_base").expect("it is built in").vocabulary;
    let trie = VocabularyTrie::new(&vocabulary);
    let words = strings::words(&vocabulary);
    if name == "documents" {
        return documents::measure(num, &words, &trie, &vocabulary);
    }
    let kind = Kind::from_name(&name).expect(usage);
    let lexicon = Arc::new(built(kind, num, &words));
    filed(&lexicon);
    let all = LexiconSet::new(lexicon.clone(), Selection::All, MemberSpelling::JsonString)
        .expect("UTF-8");
    let start = all.start().expect("there are members");
    let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
    // What is made once for a vocabulary.
    trie.child_lists();
    let first = timed(|| fill(&all, &start, &trie, &mut row));
    println!("first visit of the root: {:.2} ms, {} tokens", first.1 / 1e6, mask::count(&row));
    let prepare = || {
        let budget = &mut Budget::unlimited();
        lexicon
            .prepare_tables(&trie, 0, MemberSpelling::JsonString, 1 << 16, budget)
            .expect("no limit");
    };
    let prepared = timed(prepare).1 / 1e6;
    let mb = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "tables of 65,536 strings and more: {prepared:.0} ms, {:.1} MB",
        mb(lexicon.table_bytes())
    );

    let clock: Vec<f64> = (0..1000).map(|_| timed(|| ()).1).collect();
    report("(the clock itself)", clock);
    let mut random = Random(11);
    let percent = |random: &mut Random| {
        let chosen = (0..lexicon.len() as u64).filter(|_| random.below(100) == 0);
        Arc::new(RankSet::from_ranks(lexicon.len() as u64, chosen.collect::<Vec<_>>()))
    };
    for run in ["all", "all, again", "1%", "1%, again"] {
        let ranks = run.starts_with('1').then(|| percent(&mut Random(5)));
        let selection = ranks.clone().map_or(Selection::All, Selection::Ranks);
        let set =
            LexiconSet::new(lexicon.clone(), selection, MemberSpelling::JsonString).expect("UTF-8");
        println!("{run}: {} strings", set.len());
        let member = |random: &mut Random| loop {
            let rank = random.below(lexicon.len());
            match &ranks {
                None => break rank,
                Some(ranks) => {
                    if let Some(rank) = ranks.next_in(rank as u64..lexicon.len() as u64) {
                        break rank as usize;
                    }
                }
            }
        };
        walks(&set, &trie, &vocabulary, || member(&mut random));
        println!("  tables {:.1} MB", mb(lexicon.table_bytes()));
    }
    let roots = (0..20).map(|_| {
        let ranks = Selection::Ranks(percent(&mut random));
        let set =
            LexiconSet::new(lexicon.clone(), ranks, MemberSpelling::JsonString).expect("UTF-8");
        timed(|| fill(&set, &start, &trie, &mut row)).1
    });
    report("root under a new 1%", roots.collect());
    let texts = (0..1000).map(|_| {
        let rank = random.below(lexicon.len());
        timed(|| lexicon.text(rank)).1
    });
    report("a string by its rank", texts.collect());
}

fn built(kind: Kind, num: usize, words: &[String]) -> Lexicon {
    let mut builder = LexiconBuilder::new();
    let mut random = Random(1);
    let mut text = String::new();
    for _ in 0..num {
        text.clear();
        kind.append(&mut random, words, &mut text);
        builder.push(text.as_bytes()).expect("short");
    }
    let (wall, before) = (Instant::now(), processor_seconds());
    let mut stages = Vec::new();
    let lexicon = builder.finish_while(|_| {
        stages.push(processor_seconds());
        true
    });
    let lexicon = lexicon.expect("nothing calls it off");
    let (wall, after) = (wall.elapsed().as_secs_f64(), processor_seconds());
    let (sort, index) = (stages[1] - stages[0], after - stages[1]);
    println!("built: {:.2} CPU s (sort {sort:.2}, arrays {index:.2}), {wall:.2} s", after - before);
    let raw = lexicon.text_bytes() as f64;
    println!(
        "{} strings of {:.1} bytes, {:.0} MB; lexicon {:.0} MB, {:.3} of that",
        lexicon.len(),
        raw / lexicon.len() as f64,
        raw / 1e6,
        lexicon.bytes() as f64 / 1e6,
        lexicon.bytes() as f64 / raw
    );
    lexicon
}

fn filed(lexicon: &Lexicon) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    lexicon.write(file.path()).expect("a folder to write to");
    for check in [Check::Frame, Check::Sums, Check::Whole] {
        let before = processor_seconds();
        let opened = Lexicon::open_with(file.path(), check).expect("its own file");
        let seconds = processor_seconds() - before;
        println!("opened, {check:?}: {:.2} CPU ms, {} strings", seconds * 1e3, opened.len());
    }
}

/// Masks along the tokens of members: mostly the longest that fits, sometimes another.
fn walks(
    set: &LexiconSet,
    trie: &VocabularyTrie,
    vocabulary: &Vocabulary,
    mut member: impl FnMut() -> usize,
) {
    let mut random = Random(3);
    let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
    let (mut roots, mut masks) = (Vec::new(), Vec::new());
    let (mut commits, mut forced) = (Vec::new(), Vec::new());
    for _ in 0..NUM_WALKS {
        let mut spelled = Vec::new();
        MemberSpelling::JsonString.append(&set.lexicon().text(member()), &mut spelled);
        let (mut at, mut read) = (set.start().expect("members"), 0);
        loop {
            let ns = timed(|| fill(set, &at, trie, &mut row)).1;
            if read == 0 {
                roots.push(ns)
            } else {
                masks.push(ns)
            }
            forced.push(timed(|| set.forced(&at, &mut Vec::new())).1);
            let tokens: Vec<usize> = prefixes(trie, &spelled[read..]).collect();
            let Some(&longest) = tokens.last() else { break };
            let len =
                if random.below(4) > 0 { longest } else { tokens[random.below(tokens.len())] };
            let token = &spelled[read..read + len];
            let (next, ns) =
                timed(|| token.iter().try_fold(at.clone(), |at, &byte| set.advance(&at, byte)));
            commits.push(ns);
            at = next.expect("a member goes on");
            read += len;
        }
    }
    report("mask of the root", roots);
    report("mask after tokens", masks);
    report("cursor after a token", commits);
    report("forced bytes", forced);
}

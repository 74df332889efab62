//! What it costs to have a vocabulary ready: loading `o200k_base` (200 thousand tokens), its trie, and its classes
//! under a small automaton.
//!
//! `cargo bench -p palmette-grammar --bench vocabulary`

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use palmette_core::Vocabulary;
use palmette_grammar::engine::vocabulary::{Descend, Refinement, VocabularyTrie};

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| (*loaded().vocabulary).clone());
static TRIE: LazyLock<VocabularyTrie> = LazyLock::new(|| VocabularyTrie::new(&VOCABULARY));

fn loaded() -> palmette_vocabulary::LoadedVocabulary {
    palmette_vocabulary::load("o200k_base").expect("it is carried in the program")
}

#[allow(clippy::print_stdout, reason = "sizes belong beside the times")]
fn main() {
    let start = Instant::now();
    let loaded = loaded();
    let load = start.elapsed();
    let trie = VocabularyTrie::new(&loaded.vocabulary);
    println!("first load {load:.1?}, with the trie {:.1?}", start.elapsed());
    println!("{} nodes, {} B", trie.num_nodes(), trie.memory_bytes());
    let classes = strings();
    println!("{} classes of strings, {} B", classes.num_classes(), classes.memory_bytes());
    divan::main();
}

/// Loads after the first of a process: the tokenizer's tables are kept.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn load_again() -> palmette_vocabulary::LoadedVocabulary {
    loaded()
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn build_trie(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&VOCABULARY);
    bencher.bench(|| VocabularyTrie::new(&VOCABULARY));
}

/// Every node, nothing done.
#[divan::bench]
fn walk_all(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TRIE);
    bencher.bench(|| {
        let mut depths = 0;
        TRIE.walk(0, |node| {
            depths += node.depth;
            Descend::Into
        });
        black_box(depths)
    });
}

/// Classes under the strings of JSON, begun at each of the places in one.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn classes_of_strings(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TRIE);
    bencher.bench(strings);
}

fn strings() -> palmette_grammar::engine::vocabulary::TokenClasses {
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    enum Place {
        Before,
        Inside,
        Escape,
        Hex(u8),
        After,
    }
    use Place::{After, Before, Escape, Hex, Inside};
    let step = |&place: &Place, byte: u8| {
        Ok::<_, Infallible>(match (place, byte) {
            (Before, b'"') => Some(Inside),
            (Inside, b'"') => Some(After),
            (Inside, b'\\') => Some(Escape),
            (Inside, b' '..) => Some(Inside),
            (Escape, b'u') => Some(Hex(4)),
            (Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(Inside),
            (Hex(1), byte) if byte.is_ascii_hexdigit() => Some(Inside),
            (Hex(left), byte) if byte.is_ascii_hexdigit() => Some(Hex(left - 1)),
            _ => None,
        })
    };
    let mut refinement = Refinement::new(&TRIE, VOCABULARY.num_tokens());
    for place in [Before, Inside, Escape, Hex(4), Hex(3), Hex(2), Hex(1), After] {
        let Ok(()) = refinement.split_by_run(place, step);
    }
    refinement.finish()
}

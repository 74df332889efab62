//! Time to make a vocabulary ready: loading `o200k_base` (200 thousand tokens) and building its
//! trie.
//!
//! `cargo bench -p palmette-grammar --bench vocabulary`

use std::sync::LazyLock;
use std::time::Instant;

use palmette_core::{Vocabulary, VocabularyTrie};

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| (*loaded().vocabulary).clone());

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

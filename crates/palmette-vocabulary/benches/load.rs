//! How long loading a vocabulary takes.
//!
//! `cargo bench -p palmette-vocabulary --bench load`

fn main() {
    divan::main();
}

/// The second and later loads of an encoding in a process: its tokenizer's tables are kept.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn o200k_base_again(bencher: divan::Bencher<'_, '_>) {
    palmette_vocabulary::load("o200k_base").expect("it is carried in the program");
    bencher.bench(|| palmette_vocabulary::load("o200k_base"));
}

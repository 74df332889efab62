//! Models of the emulation by themselves: known results under many seeds, and misuses that are faults.

use palmette_cuda::Architecture;
use palmette_cuda_emulator::{Emulator, trial};

#[test]
fn copies_phases_and_products_have_known_results_under_every_seed() {
    if Emulator::new(Architecture::Hopper, 1).is_none() {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
        return;
    }
    for name in [
        "boxes",
        "phases",
        "products of 64 columns",
        "products of 128 columns",
        "products of 256 columns",
        "products of registers and 64 columns",
        "products of registers and 128 columns",
    ] {
        for seed in 1..=5 {
            assert_eq!(trial(name, seed), Ok(()), "{name}, seed {seed}");
        }
    }
}

#[test]
fn misuses_are_faults_with_their_reason() {
    if Emulator::new(Architecture::Hopper, 1).is_none() {
        return;
    }
    for (name, words) in [
        ("no fence", "a product without a fence before it"),
        ("no wait", "ended with products that nobody waited for"),
        ("threads that are not alike", "threads of a warpgroup disagree about a product"),
        ("a box that is not aligned", "does not begin at a multiple of 1024 bytes"),
        ("no barrier", "a barrier that nobody made"),
        ("a barrier that is not seen", "a copy before a fence of the barriers"),
        ("no map", "a copy by what is no map of tiles"),
        ("nobody waits", "the block ended with copies of tiles in flight"),
        ("too many arrive", "an arrival more than a phase has"),
        ("a phase that never ends", "deadlock: waits for a phase of a barrier"),
        ("a load that is not aligned", "an access that is not aligned"),
    ] {
        for seed in 1..=5 {
            let message = trial(name, seed).unwrap_err();
            assert!(message.contains(words), "{name}, seed {seed}: {message}");
        }
    }
}

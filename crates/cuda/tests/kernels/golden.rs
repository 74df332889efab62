//! Golden bits: hashes of results by kernel, case and architecture (`kernels/golden.toml`).
//!
//! A device must have them too. `PALMETTE_GOLDEN=write cargo test -p palmette-cuda --test kernels
//! golden` writes the file anew, after a change that is meant to change bits.

use std::fmt::Write;
use std::path::Path;

use palmette_cuda::Architecture;
use sha2::{Digest, Sha256};

use crate::support::device;
use crate::{attention, product, rows, select};

#[test]
fn results_have_the_golden_bits() {
    let mut text =
        "# Hashes of results by architecture, kernel and case: see tests/kernels/golden.rs.\n"
            .to_owned();
    for (name, architecture) in [("ampere", Architecture::Ampere), ("hopper", Architecture::Hopper)]
    {
        let Some(device) = device(architecture, 1) else { return };
        writeln!(text, "\n[{name}]").unwrap();
        let golden = [product::golden, rows::golden, attention::golden, select::golden];
        for (case, bytes) in golden.into_iter().flat_map(|golden| golden(&device)) {
            let hash = Sha256::digest(&bytes);
            let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "\"{case}\" = \"{hash}\"").unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/golden.toml");
    if std::env::var("PALMETTE_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (got, want) in text.lines().zip(golden.lines()) {
        assert_eq!(got, want, "PALMETTE_GOLDEN=write writes {}", path.display());
    }
    assert_eq!(text.len(), golden.len());
}

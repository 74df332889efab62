//! Golden bits: hashes of results by kernel, case and architecture (`kernels/golden.toml`).
//!
//! A device must have them too. `PALMETTE_GOLDEN=write cargo test -p palmette-cuda --test kernels
//! golden` writes the file anew, after a change that is meant to change bits.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_cuda::{Architecture, DeviceError, Driver};
use sha2::{Digest, Sha256};

use crate::support::{Device, device};
use crate::{attention, callers, draft, int8, masks, product, rows, select};

/// Cases of some kernels, by name: their results on a device.
pub(crate) type Cases = fn(&Device) -> Vec<(String, Vec<u8>)>;

/// Cases of all kernels.
pub(crate) const CASES: [Cases; 8] = [
    product::golden,
    int8::golden,
    rows::golden,
    attention::golden,
    select::golden,
    masks::golden,
    callers::golden,
    draft::golden,
];

pub(crate) fn section(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Ampere => "[ampere]",
        Architecture::Hopper => "[hopper]",
    }
}

/// The line of a case.
pub(crate) fn line(case: &str, bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{case}\" = \"{hash}\"")
}

/// The lines of an architecture, as a device has them.
fn lines(architecture: Architecture, device: &Device) -> String {
    let mut text = format!("\n{}\n", section(architecture));
    for (case, bytes) in CASES.into_iter().flat_map(|cases| cases(device)) {
        writeln!(text, "{}", line(&case, &bytes)).unwrap();
    }
    text
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/golden.toml")
}

#[test]
fn results_have_the_golden_bits() {
    let mut text =
        "# Hashes of results by architecture, kernel and case: see tests/kernels/golden.rs.\n"
            .to_owned();
    for architecture in [Architecture::Ampere, Architecture::Hopper] {
        let Some(device) = device(architecture, 1) else { return };
        text += &lines(architecture, &device);
    }
    if std::env::var("PALMETTE_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(path(), &text).unwrap();
    }
    let golden = std::fs::read_to_string(path()).unwrap_or_default();
    for (got, want) in text.lines().zip(golden.lines()) {
        assert_eq!(got, want, "PALMETTE_GOLDEN=write writes {}", path().display());
    }
    assert_eq!(text.len(), golden.len());
}

#[test]
fn a_machine_without_a_driver_is_told_so() {
    match palmette_cuda::Device::open(0) {
        Err(error @ DeviceError::NoDriver) => {
            assert!(error.to_string().contains("libcuda.so.1 is missing"), "{error}");
        }
        Err(error) => eprintln!("{error}"),
        Ok(device) => eprintln!("{:?}", device.describe()),
    }
}

#[test]
#[ignore = "needs an NVIDIA device: cargo test -p palmette-cuda -- --ignored golden"]
fn a_device_has_the_golden_bits() {
    let driver = Arc::new(palmette_cuda::Device::open(0).unwrap());
    let capability = driver.describe().capability;
    let architecture = Architecture::from_capability(capability).unwrap();
    let got = lines(architecture, &Device::from_driver(driver));
    let golden = std::fs::read_to_string(path()).unwrap();
    // Within the section of its architecture, which the others' lines must not stand in for.
    let header = got.lines().find(|line| line.starts_with('[')).unwrap();
    let section = golden.lines().skip_while(|line| *line != header).skip(1);
    let section: Vec<&str> = section.take_while(|line| !line.starts_with('[')).collect();
    let lines = got.lines().filter(|line| !line.is_empty() && *line != header);
    let missing: Vec<&str> = lines.filter(|line| !section.contains(line)).collect();
    assert!(
        missing.is_empty(),
        "of {} lines these differ:\n{}",
        got.lines().count(),
        missing.join("\n")
    );
}

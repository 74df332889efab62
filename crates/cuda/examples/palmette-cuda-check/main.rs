//! Check of a device, from its arithmetic to its times; ends at the first law that does not hold.
//!
//! ```text
//! palmette-cuda-check [--device cuda:0|emulated] [--smallest] [steps|golden|laws|kernels|cells …]
//! ```
//!
//! - `steps`: a million steps of the matrix units against the published formula. Where they differ,
//!   nothing after them can hold: mend the model first.
//! - `golden`: every case of the tests against `kernels/golden.toml`.
//! - `laws`: a small model against its emulation and against the processor; then a model of the
//!   shape of Qwen3-1.7B, alone and among others, with both sets of kernels.
//! - `kernels`: times, as medians of replays over operands that no cache holds.
//! - `cells`: whole recommendations, one and several at a time, by a model of that shape.
//!
//! Without a name all of them, in this order. `--smallest` takes the smallest sizes, and is what an
//! emulated device can do. `python/bench/gpu.sh` runs it, and needs nothing else built.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

#[path = "../../tests/kernels/arithmetic.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod arithmetic;
#[path = "../../tests/kernels/attention.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod attention;
#[path = "../../tests/kernels/callers.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod callers;
mod cells;
#[path = "../../tests/kernels/draft.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod draft;
#[path = "../../tests/kernels/golden.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod golden;
#[path = "../../tests/kernels/int8.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod int8;
mod laws;
#[path = "../../tests/kernels/masks.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod masks;
#[path = "../../tests/engine/model.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod model;
#[path = "../../tests/kernels/product.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod product;
mod results;
#[path = "../../tests/kernels/rows.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod rows;
#[path = "../../tests/kernels/select.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod select;
mod steps;
#[path = "../../tests/kernels/support.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are not compiled here")]
mod support;
mod times;

use std::process::ExitCode;
use std::sync::Arc;

use palmette_cuda::{Architecture, Driver};

use crate::support::Device;

/// Device of a check, and how much of it is checked.
pub(crate) struct Check {
    pub(crate) device: Device,
    pub(crate) architecture: Architecture,
    pub(crate) is_emulated: bool,
    pub(crate) smallest: bool,
}

/// A part of the check; the error says what does not hold.
type Part = fn(&Check) -> Result<(), String>;

const PARTS: [(&str, Part); 5] = [
    ("steps", steps::check),
    ("golden", results::check),
    ("laws", laws::check),
    ("kernels", times::measure),
    ("cells", cells::measure),
];

/// Seed of the emulated device.
pub(crate) const SEED: u64 = 1;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("palmette-cuda-check: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut device, mut smallest) = ("cuda:0".to_owned(), false);
    let mut parts = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--device" => {
                device = arguments.next().ok_or("--device needs a value")?;
            }
            "--smallest" => smallest = true,
            name => parts.push(part(name)?),
        }
    }
    if parts.is_empty() {
        parts = PARTS.to_vec();
    }
    let check = open(&device, smallest)?;
    let info = check.device.driver.describe();
    println!(
        "card      {}, compute capability {}.{}, {} multiprocessors, {} MiB",
        info.name,
        info.capability.0,
        info.capability.1,
        info.multiprocessors,
        info.bytes >> 20
    );
    for (name, part) in parts {
        part(&check).map_err(|message| format!("{name}: {message}"))?;
    }
    Ok(())
}

fn part(name: &str) -> Result<(&'static str, Part), String> {
    let part = PARTS.into_iter().find(|(of, _)| *of == name);
    part.ok_or_else(|| {
        format!("{name:?} is no part; there are {}", PARTS.map(|(name, _)| name).join(", "))
    })
}

fn open(name: &str, smallest: bool) -> Result<Check, String> {
    if name == "emulated" {
        let device = support::device(Architecture::Hopper, SEED);
        let device = device.ok_or("this program was built without the emulation")?;
        let architecture = Architecture::Hopper;
        return Ok(Check { device, architecture, is_emulated: true, smallest: true });
    }
    let index = name.strip_prefix("cuda:").and_then(|index| index.parse().ok());
    let index = index.ok_or(format!("{name:?} is no device: cuda:0, cuda:1 …, or emulated"))?;
    let driver = palmette_cuda::Device::open(index).map_err(|error| error.to_string())?;
    let capability = driver.describe().capability;
    let architecture =
        Architecture::from_capability(capability).ok_or("an unknown architecture")?;
    let device = Device::from_driver(Arc::new(driver));
    Ok(Check { device, architecture, is_emulated: false, smallest })
}

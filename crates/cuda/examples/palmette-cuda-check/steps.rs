//! Steps of the matrix units: a product of 64 columns is four of them, one after another.

use palmette_cuda::{Architecture, Kernel};

use crate::Check;
use crate::arithmetic::published;
use crate::product::{Case, SUMS};
use crate::support::{Random, Set};

/// Values whose exponents are spread, so that sums are cut: of 40 binades at most, so that no
/// product is out of range.
fn spread(random: &mut Random, len: usize) -> Vec<u16> {
    let mut number = |at: usize| {
        let spread = 1 + at / 64 % 20;
        let exponent = (127 - spread / 2 + random.below(spread)) as u16;
        ((random.next() % 2) as u16) << 15 | exponent << 7 | (random.next() % 128) as u16
    };
    (0..len).map(&mut number).collect()
}

/// Sum that the units make of a row and a column, by the published formula.
fn expected(x: &[u16], w: &[u16], architecture: Architecture) -> f32 {
    x.chunks(16).zip(w.chunks(16)).fold(0.0, |sum, (x, w)| match architecture {
        Architecture::Hopper => published(sum, x, w, 25),
        Architecture::Ampere => {
            let half = published(sum, &x[..8], &w[..8], 24);
            published(half, &x[8..], &w[8..], 24)
        }
    })
}

pub(crate) fn check(check: &Check) -> Result<(), String> {
    // 512 x 512 elements of four steps: a million.
    let size = if check.smallest { 24 } else { 512 };
    let mut case = Case::unasked(size, size, 64, 1);
    let mut random = Random(0x5eed);
    (case.x, case.w) = (spread(&mut random, size * 64), spread(&mut random, size * 64));
    let element = |at: usize| {
        let (row, column) = (at / size * 64, at % size * 64);
        (&case.x[row..row + 64], &case.w[column..column + 64])
    };
    let steps = size * size * 4;
    for set in check.device.sets() {
        let unit = if set == Set::Hopper { "wgmma" } else { "mma.sync" };
        let out = check.device.empty(size * size * 4);
        case.run(&check.device, SUMS, set, check.blocks(), &out, |_| {});
        let got: Vec<f32> = check.device.get(&out);
        for (at, got) in got.iter().enumerate() {
            let (x, w) = element(at);
            let want = expected(x, w, check.architecture);
            if got.to_bits() != want.to_bits() {
                return Err(format!(
                    "{unit}: row {}, column {}: {got:e} ({:08x}), and by the formula {want:e} \
                     ({:08x}); operands {x:04x?} and {w:04x?}",
                    at / size,
                    at % size,
                    got.to_bits(),
                    want.to_bits()
                ));
            }
        }
        println!("steps     {unit} {steps} equal");
    }
    debug_assert_eq!(SUMS.0, Kernel::ProductSums);
    Ok(())
}

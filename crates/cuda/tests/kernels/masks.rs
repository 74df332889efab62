//! Masks of grammars over logits.

use palmette_cuda::arguments::BitMask;
use palmette_cuda::{Architecture, Kernel};

use crate::support::{Device, NULL, Random, bits, bytes_of, devices};

const ROWS: usize = 5;
const COLUMNS: usize = 333;
const WORDS: usize = 10;

struct Case {
    logits: Vec<f32>,
    masks: Vec<u32>,
    /// By row: its mask, or none.
    masks_of: [i32; ROWS],
    /// True where the kernel is told them; otherwise each row has its own.
    is_listed: bool,
}

impl Case {
    fn new(is_listed: bool) -> Self {
        let mut random = Random(5);
        let logits = random.floats(ROWS * COLUMNS, 3.0);
        let masks = (0..ROWS * WORDS).map(|_| random.next() as u32).collect();
        let masks_of = if is_listed { [3, -1, 0, 0, 4] } else { [0, 1, 2, 3, 4] };
        Self { logits, masks, masks_of, is_listed }
    }

    fn run(&self, device: &Device) -> Vec<f32> {
        let there = (device.put(&[ROWS as i32]), device.put(&self.masks), device.put(&self.logits));
        let list = device.put(&self.masks_of);
        let arguments = BitMask {
            rows: there.0.address(),
            masks_of: if self.is_listed { list.address() } else { NULL },
            masks: there.1.address(),
            logits: there.2.address(),
            columns: COLUMNS as i32,
            words: WORDS as i32,
        };
        device.run(Kernel::ApplyBitmask, [2, 3, 1], &arguments);
        device.get(&there.2)
    }
}

#[test]
fn what_a_mask_forbids_is_minus_infinity_and_the_rest_stays() {
    for (is_listed, device) in [false, true, true].into_iter().zip(devices(Architecture::Hopper)) {
        let case = Case::new(is_listed);
        let want: Vec<f32> = (0..ROWS * COLUMNS)
            .map(|at| {
                let (mask, column) = (case.masks_of[at / COLUMNS], at % COLUMNS);
                let is_free = mask < 0
                    || column >= WORDS * 32
                    || case.masks[mask as usize * WORDS + column / 32] >> (column % 32) & 1 == 1;
                if is_free { case.logits[at] } else { f32::NEG_INFINITY }
            })
            .collect();
        assert_eq!(bits(&case.run(&device)), bits(&want));
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    vec![("apply_bitmask".to_owned(), bytes_of(&Case::new(true).run(device)))]
}

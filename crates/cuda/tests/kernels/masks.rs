//! Masks of grammars over logits.

use palmette_cuda::arguments::BitMask;
use palmette_cuda::{Architecture, Kernel};

use crate::support::{NULL, Random, bits, devices};

#[test]
fn what_a_mask_forbids_is_minus_infinity_and_the_rest_stays() {
    let (rows, columns, words) = (5, 333, 10);
    for (listed, device) in [false, true, true].into_iter().zip(devices(Architecture::Hopper)) {
        let mut random = Random(5);
        let logits = random.floats(rows * columns, 3.0);
        let masks: Vec<u32> = (0..rows * words).map(|_| random.next() as u32).collect();
        let masks_of: Vec<i32> = (0..rows as i32)
            .map(|row| if listed { [3, -1, 0, 0, 4][row as usize] } else { row })
            .collect();
        let there = (device.put(&[rows as i32]), device.put(&masks), device.put(&logits));
        let list = device.put(&masks_of);
        let arguments = BitMask {
            rows: there.0.address(),
            masks_of: if listed { list.address() } else { NULL },
            masks: there.1.address(),
            logits: there.2.address(),
            columns: columns as i32,
            words: words as i32,
        };
        device.run(Kernel::ApplyBitmask, [2, 3, 1], &arguments);
        let want: Vec<f32> = (0..rows * columns)
            .map(|at| {
                let (mask, column) = (masks_of[at / columns], at % columns);
                let is_free = mask < 0
                    || column >= words * 32
                    || masks[mask as usize * words + column / 32] >> (column % 32) & 1 == 1;
                if is_free { logits[at] } else { f32::NEG_INFINITY }
            })
            .collect();
        assert_eq!(bits(&device.get(&there.2)), bits(&want));
    }
}

//! Masks of grammars over logits.

use palmette_cuda::arguments::BitMask;
use palmette_cuda::masks::{DeviceMatrix, LogitType, MaskError, MaskedLogits};
use palmette_cuda::{Architecture, CallerStream, Kernel, Region};

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

/// Logits of a caller, of which only some columns are masked, and masks that stand apart too.
#[derive(Clone, Copy)]
struct CallerCase {
    logit_type: LogitType,
    columns: usize,
    /// Elements before the first logit, from row to row, and from mask to mask.
    places: (usize, usize, usize),
    rows: Option<[i32; 6]>,
    masks_of: Option<[i32; 6]>,
}

/// Rows twice, outside of the logits, and in another order.
const LISTED: [i32; 6] = [4, 0, -1, 2, 5, 4];
/// Masks twice, none, and past the last one.
const CHOSEN: [i32; 6] = [1, -1, 2, 7, 0, 1];

impl CallerCase {
    const MASKS: usize = 5;

    fn all() -> impl Iterator<Item = Self> {
        let types = [LogitType::F32, LogitType::F16, LogitType::Bf16];
        let layouts = [
            (333, (0, 333, WORDS)),
            (320, (0, 320, WORDS)),
            (1, (3, 1, WORDS + 3)),
            // Rows of which every other one is not aligned, and which end before the words.
            (62, (2, 66, WORDS)),
            // Rows longer than a block looks at in one go, and than the words.
            (2061, (1, 2064, WORDS + 1)),
        ];
        let choices = [(None, None), (Some(LISTED), None), (None, Some(CHOSEN))];
        let choices = [choices.to_vec(), vec![(Some(LISTED), Some(CHOSEN))]].concat();
        types.into_iter().flat_map(move |logit_type| {
            let choices = choices.clone();
            layouts.into_iter().flat_map(move |(columns, places)| {
                let choices = choices.clone().into_iter();
                choices.map(move |(rows, masks_of)| Self {
                    logit_type,
                    columns,
                    places,
                    rows,
                    masks_of,
                })
            })
        })
    }

    fn words(&self) -> Vec<u32> {
        let mut random = Random(9);
        let word = |at: usize| match at % 5 {
            0 => 0,
            1 => u32::MAX,
            _ => random.next() as u32,
        };
        (0..Self::MASKS * self.places.2).map(word).collect()
    }

    fn element_bytes(&self) -> usize {
        if self.logit_type == LogitType::F32 { 4 } else { 2 }
    }

    /// Bytes of all logits, those between rows included.
    fn logits(&self) -> Vec<u8> {
        let mut random = Random(3);
        let (first, stride, _) = self.places;
        (0..(first + ROWS * stride) * self.element_bytes()).map(|_| random.next() as u8).collect()
    }

    fn infinity(&self) -> &'static [u8] {
        match self.logit_type {
            LogitType::F32 => &[0, 0, 0x80, 0xff],
            LogitType::F16 => &[0, 0xfc],
            LogitType::Bf16 => &[0x80, 0xff],
        }
    }

    /// The plain definition.
    fn want(&self) -> Vec<u8> {
        let (words, mut logits) = (self.words(), self.logits());
        let (first, stride, mask_stride) = self.places;
        let count = if self.rows.or(self.masks_of).is_some() { 6 } else { 5 };
        for at in 0..count {
            let row = self.rows.map_or(at as i32, |rows| rows[at]);
            let mask = self.masks_of.map_or(row, |masks_of| masks_of[at]);
            if !(0..ROWS as i32).contains(&row) || mask < 0 {
                continue;
            }
            for column in 0..self.columns {
                let word = (mask < Self::MASKS as i32 && column / 32 < WORDS)
                    .then(|| words[mask as usize * mask_stride + column / 32]);
                if word.is_none_or(|word| word >> (column % 32) & 1 == 0) {
                    let place = first + row as usize * stride + column;
                    let bytes = self.element_bytes();
                    logits[place * bytes..][..bytes].copy_from_slice(self.infinity());
                }
            }
        }
        logits
    }

    fn masked(&self, logits: &Region, words: &Region, lists: [&Region; 2]) -> MaskedLogits {
        let (first, stride, mask_stride) = self.places;
        MaskedLogits {
            logits: DeviceMatrix {
                address: logits.address_at(first * self.element_bytes()),
                rows: ROWS,
                columns: self.columns,
                stride,
            },
            logit_type: self.logit_type,
            masks: DeviceMatrix {
                address: words.address(),
                rows: Self::MASKS,
                columns: WORDS,
                stride: mask_stride,
            },
            count: if self.rows.or(self.masks_of).is_some() { 6 } else { 5 },
            rows: self.rows.map(|_| lists[0].address()),
            masks_of: self.masks_of.map(|_| lists[1].address()),
        }
    }

    fn run(&self, device: &Device) -> Vec<u8> {
        let (logits, words) = (device.put(&self.logits()), device.put(&self.words()));
        let lists = [LISTED, CHOSEN].map(|list| device.put(&list));
        let masked = self.masked(&logits, &words, lists.each_ref());
        let (kernel, grid, arguments) = masked.launch().unwrap();
        device.run(kernel, grid, &arguments);
        device.get(&logits)
    }
}

#[test]
fn logits_of_callers_are_masked_where_they_lie() {
    for device in devices(Architecture::Hopper) {
        for case in CallerCase::all() {
            let CallerCase { logit_type, columns, rows, masks_of, .. } = case;
            assert!(
                case.run(&device) == case.want(),
                "{logit_type:?} {columns} columns, rows {rows:?}, masks {masks_of:?}"
            );
        }
    }
}

#[test]
fn nothing_is_launched_for_no_rows_and_too_many_are_refused() {
    let Some(device) = devices(Architecture::Hopper).pop() else { return };
    let Some(case) = CallerCase::all().next() else { return };
    let (logits, words) = (device.put(&case.logits()), device.put(&case.words()));
    let masked = case.masked(&logits, &words, [&words, &words]);
    let apply = |masked: MaskedLogits| masked.apply(&*device.driver, CallerStream::default());
    apply(MaskedLogits { count: 0, ..masked }).unwrap();
    assert!(device.get::<u8>(&logits) == case.logits());
    apply(masked).unwrap();
    assert!(device.get::<u8>(&logits) == case.want(), "on a stream of the caller's");
    let logits = device.put(&case.logits());
    let masked = case.masked(&logits, &words, [&words, &words]);
    let huge = DeviceMatrix { columns: (1 << 29) + 1, ..masked.logits };
    let error = apply(MaskedLogits { logits: huge, ..masked }).unwrap_err();
    assert!(matches!(error, MaskError::Size(_)));
    assert_eq!(error.to_string(), "536870913 logits of a row; kernels of masks take up to 2^29");
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let mut cases = vec![("apply_bitmask".to_owned(), bytes_of(&Case::new(true).run(device)))];
    let of_callers =
        CallerCase::all().filter(|case| case.columns == 2061 && case.masks_of.is_some());
    cases.extend(of_callers.map(|case| {
        let listed = if case.rows.is_some() { ", rows listed" } else { "" };
        let name = format!("mask_rows {:?} {}{listed}", case.logit_type, case.columns);
        (name, case.run(device))
    }));
    cases
}

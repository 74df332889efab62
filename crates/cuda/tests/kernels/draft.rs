//! States of a draft head's beams.

use palmette_cuda::arguments::{DraftStates, Extension};
use palmette_cuda::{Architecture, Kernel};
use palmette_cuda_emulator::exp2;

use crate::support::{Device, NULL, Random, bytes_of, devices, to_bf16, to_f64};

/// Rows before, rows, codes.
const BEFORE: usize = 5;
const ROWS: usize = 11;
const CODES: usize = 7;

/// A level of one of the forms of a head.
#[derive(Clone, Copy, Debug)]
struct Case {
    width: usize,
    /// Parts of the sums of moved states; none where states are only added to, or there are none.
    parts: usize,
    has_states: bool,
    is_first: bool,
    has_hidden: bool,
}

const CASES: [Case; 5] = {
    let both = Case { width: 192, parts: 2, has_states: true, is_first: false, has_hidden: true };
    [
        both,
        Case { width: 64, parts: 1, has_hidden: false, ..both },
        Case { parts: 0, ..both },
        Case { width: 64, parts: 0, is_first: true, ..both },
        Case { parts: 0, has_states: false, is_first: true, ..both },
    ]
};

/// 1 − 2 / (e^2x + 1), as the kernel has it.
fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp2(((x + x) * std::f32::consts::LOG2_E).min(126.0)) + 1.0)
}

struct Level {
    of: Case,
    extensions: Vec<Extension>,
    /// `[parts, BEFORE + 1, width]`
    sums: Vec<f32>,
    before: Vec<u16>,
    codes: Vec<u16>,
    hidden: Vec<u16>,
}

impl Level {
    fn new(of: Case) -> Self {
        let (mut random, width) = (Random(of.width as u64 + of.parts as u64), of.width);
        let extension = |_| Extension {
            score: f32::NAN,
            parent: random.below(BEFORE) as u32,
            code: random.below(CODES) as u32,
        };
        let extensions = (0..ROWS).map(extension).collect();
        let mut sums = random.floats(of.parts * (BEFORE + 1) * width, 3.0);
        // Far out on both sides.
        sums.iter_mut().step_by(37).for_each(|sum| *sum *= 100.0);
        let [before, codes, hidden] = [BEFORE, CODES, 1].map(|rows| random.bf16(rows * width, 2.0));
        Self { of, extensions, sums, before, codes, hidden }
    }

    /// States and inputs.
    fn run(&self, device: &Device, grid: u32) -> (Vec<u16>, Vec<u16>) {
        let Case { width, parts, has_states, is_first, has_hidden } = self.of;
        let rows = self.rows();
        let count = device.put(&[rows as i32]);
        let extensions = device.put_structs(&self.extensions);
        let sums = device.put(&self.sums);
        let [before, codes, hidden] =
            [&self.before, &self.codes, &self.hidden].map(|of| device.put(of));
        let [states, inputs] = [(); 2].map(|()| device.empty(ROWS * width * 2));
        let given = |is: bool, address| if is { address } else { NULL };
        let arguments = DraftStates {
            rows: count.address(),
            extensions: given(!is_first, extensions.address()),
            sums: given(parts > 0, sums.address()),
            before: given(has_states && parts == 0, before.address()),
            codes: given(!is_first, codes.address()),
            hidden: given(has_hidden, hidden.address()),
            states: given(has_states, states.address()),
            inputs: inputs.address(),
            width: width as i32,
            parts: parts as i32,
            part_rows: BEFORE as i32 + 1,
            squashes: i32::from(parts > 0),
        };
        device.run(Kernel::DraftStates, [grid, 1, 1], &arguments);
        let of_rows = |all: Vec<u16>| all[..rows * width].to_vec();
        (of_rows(device.get(&states)), of_rows(device.get(&inputs)))
    }

    fn rows(&self) -> usize {
        if self.of.is_first { BEFORE } else { ROWS }
    }

    /// The same, an element after the other.
    fn expected(&self) -> (Vec<u16>, Vec<u16>) {
        let Case { width, parts, has_states, is_first, has_hidden } = self.of;
        let (mut states, mut inputs) = (Vec::new(), Vec::new());
        for at in 0..self.rows() * width {
            let (row, i) = (at / width, at % width);
            let Extension { parent, code, .. } = self.extensions[row];
            let (parent, code) = (if is_first { row } else { parent as usize }, code as usize);
            let part = |part: usize| self.sums[(part * (BEFORE + 1) + parent) * width + i];
            let mut state = match has_states {
                true if parts > 0 => (1..parts).fold(part(0), |sum, of| sum + part(of)),
                true => to_f64(self.before[parent * width + i]) as f32,
                false => 0.0,
            };
            if !is_first {
                state += to_f64(self.codes[code * width + i]) as f32;
            }
            if parts > 0 {
                state = tanh(state);
            }
            states.push(to_bf16(state));
            let hidden = if has_hidden { to_f64(self.hidden[i]) as f32 } else { 0.0 };
            inputs.push(to_bf16(hidden + state));
        }
        (if has_states { states } else { Vec::new() }, inputs)
    }
}

#[test]
fn states_and_inputs_are_their_equations() {
    for case in CASES {
        let level = Level::new(case);
        let (states, inputs) = level.expected();
        for (grid, device) in (1..).zip(devices(Architecture::Hopper)) {
            let got = level.run(&device, grid);
            if case.has_states {
                assert_eq!(got.0, states, "{case:?}");
            }
            assert_eq!(got.1, inputs, "{case:?}");
        }
    }
}

#[test]
fn squashed_values_are_the_hyperbolic_tangent() {
    if devices(Architecture::Hopper).is_empty() {
        return;
    }
    for x in (-4000..4000).map(|x| x as f32 / 200.0).chain([1e30, -1e30, f32::INFINITY]) {
        let error = (f64::from(tanh(x)) - f64::from(x).tanh()).abs();
        assert!(error < 2e-7, "{x}: {error}");
    }
}

pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let of = |case: Case| {
        let (states, inputs) = Level::new(case).run(device, 2);
        let states = if case.has_states { bytes_of(&states) } else { Vec::new() };
        let Case { width, parts, is_first, .. } = case;
        let first = if is_first { "first, " } else { "" };
        let name = format!("draft_states {first}{width} in {parts}");
        (name, [states, bytes_of(&inputs)].concat())
    };
    CASES.map(of).into()
}

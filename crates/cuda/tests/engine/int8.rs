//! Models whose layers are kept in 8 bits, against the processor's in 8 bits.

use std::sync::Arc;

use palmette_cuda::{Architecture, CudaEngine, DeviceLimits, DeviceWeights};
use palmette_model::{Engine, Family, Model, ModelConfig, ReadingShape, WeightFormat};

use crate::model::{LIMITS, config, emulated, emulated_within, here, weights};
use crate::reading::{SHAPE, bits, logits, open, relative_error, tokens};

const INT8: DeviceLimits = DeviceLimits { weights: DeviceWeights::Int8, ..LIMITS };

fn emulated_int8(
    config: &ModelConfig,
    architecture: Architecture,
    seed: u64,
) -> Option<Arc<CudaEngine>> {
    emulated_within(config, architecture, seed, &INT8)
}

fn here_int8(config: &ModelConfig) -> Arc<Model> {
    let model = Model::from_bytes(config.clone(), weights(config)).expect("a sound model");
    Arc::new(model.with_weights(WeightFormat::Int8))
}

/// What is rounded to bfloat16 there and not here falls to another of two neighbouring integers,
/// which is about as much as rounding to 8 bits changes at all. So the device differs from the
/// processor's 8 bits as much as these from f32; from f32 it differs by 2.3 to 3.6%, and they by
/// 2.2 to 3.4%.
#[test]
fn logits_are_those_of_the_processor_in_8_bits() {
    for (family, head_dim, architecture, lengths) in [
        (Family::Qwen3, 64, Architecture::Hopper, &[1, 70, 560][..]),
        (Family::Qwen2, 64, Architecture::Ampere, &[64]),
        (Family::Llama, 128, Architecture::Hopper, &[77]),
    ] {
        let config = config(family, head_dim);
        let Some(device) = emulated_int8(&config, architecture, 1) else { return };
        let shape = ReadingShape { max_prompt_tokens: 560, ..SHAPE };
        let mut there = open(&device, &shape);
        let (mut rounded, mut full) =
            (open(&here_int8(&config), &shape), open(&here(&config), &shape));
        for &len in lengths {
            let prompt = tokens(len, len as u32);
            let [got, rounded, full] =
                [&mut there, &mut rounded, &mut full].map(|of| logits(&mut **of, &prompt));
            let rounding = relative_error(&rounded, &full);
            let errors = [relative_error(&got, &rounded), relative_error(&got, &full)];
            assert!(rounding > 0.01, "nothing is rounded: {rounding}");
            assert!(errors[0] < 1.4 * rounding, "{errors:?}, {rounding}");
            assert!(errors[1] < 1.2 * rounding, "{errors:?}, {rounding}");
        }
    }
}

/// Of seeds, of what is computed beside it, and of the parts that a prompt is read in.
#[test]
fn bits_depend_on_the_row_alone() {
    let config = config(Family::Qwen3, 64);
    let Some(device) = emulated_int8(&config, Architecture::Hopper, 1) else { return };
    let prompt = tokens(150, 5);
    let mut reading = open(&device, &SHAPE);
    let want = bits(&logits(&mut *reading, &prompt));
    for seed in [2, 3] {
        let Some(other) = emulated_int8(&config, Architecture::Ampere, seed) else { return };
        let Some(same) = emulated_int8(&config, Architecture::Hopper, seed) else { return };
        assert_eq!(bits(&logits(&mut *open(&same, &SHAPE), &prompt)), want, "seed {seed}");
        assert_ne!(bits(&logits(&mut *open(&other, &SHAPE), &prompt)), want, "attention differs");
    }
    // Many rows, whose sums are not shared among blocks.
    let mut beside = open(&device, &ReadingShape { max_prompt_tokens: 640, ..SHAPE });
    beside.set_prompt(&tokens(600, 2)).unwrap();
    reading.set_prompt(&prompt).unwrap();
    beside.begin_prompt(0..200).unwrap();
    reading.begin_prompt(0..200).unwrap();
    assert_eq!(bits(reading.logits().unwrap()), want[..200], "among others");
    beside.logits().unwrap();
    for cut in [1, 64, 90] {
        reading.set_prompt(&prompt[..cut]).unwrap();
        reading.prompt_logits().unwrap();
        let grown = bits(reading.append(&prompt[cut..]).unwrap());
        assert_eq!(grown, want[..200], "after {cut} tokens");
    }
}

#[test]
fn layers_take_half_the_bytes() {
    let config = config(Family::Llama, 128);
    let Some(device) = emulated_int8(&config, Architecture::Hopper, 1) else { return };
    let Some(full) = emulated(&config, Architecture::Hopper, 1) else { return };
    let c = &config;
    let (queries, keys) = (c.num_attention_heads * 128, c.num_key_value_heads * 128);
    let (d, f) = (c.hidden_size, c.intermediate_size);
    // Columns of each matrix, and values.
    let columns = queries + 2 * keys + d + 2 * f + d;
    let values = (queries + 2 * keys) * d + d * queries + 3 * d * f;
    let saved = full.weight_bytes() - device.weight_bytes();
    let want = c.num_hidden_layers * (values - 4 * columns);
    // Tensors begin at multiples of 256 bytes.
    assert!(saved.abs_diff(want) < 256 * 8 * c.num_hidden_layers, "{saved}, not {want}");
    assert_eq!(device.num_parameters(), full.num_parameters());
}

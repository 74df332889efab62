//! Models whose layers are kept in 8 bits, against the processor's in 8 bits.

use std::sync::Arc;

use palmette_cuda::{Architecture, DeviceWeights};
use palmette_model::{Engine, Family, Model, ModelConfig, ReadingShape, WeightFormat};

use crate::model::{config, emulated, emulated_of, here, weights};
use crate::reading::{SHAPE, logits, open, relative_error, tokens};

fn here_int8(config: &ModelConfig) -> Arc<Model> {
    let model = Model::from_bytes(config.clone(), weights(config)).expect("a sound model");
    Arc::new(model.with_weights(WeightFormat::Int8))
}

/// Logits of 8 bits on both: what the device rounds to bfloat16 falls to another of two integers,
/// which is about as much as rounding to 8 bits changes at all. So the device differs from the
/// processor's 8 bits by 2.3 to 3.3%, as much as these from f32, 2.2 to 3.4%; from f32 it differs
/// by 2.2 to 3.7%.
#[test]
fn logits_are_those_of_the_processor_in_8_bits() {
    for (family, head_dim, architecture, lengths) in [
        (Family::Qwen3, 64, Architecture::Hopper, &[1, 70, 560][..]),
        (Family::Qwen2, 64, Architecture::Ampere, &[64]),
        (Family::Llama, 128, Architecture::Hopper, &[77]),
    ] {
        let config = config(family, head_dim);
        let device = emulated_of(DeviceWeights::Int8, &config, architecture, 1);
        let Some(device) = device else { return };
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

#[test]
fn layers_take_half_the_bytes() {
    let config = config(Family::Llama, 128);
    let device = emulated_of(DeviceWeights::Int8, &config, Architecture::Hopper, 1);
    let Some(device) = device else { return };
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

//! A row's bits depend on nothing but the row: not on its neighbours, the threads, or which logits
//! are asked for. And requests allocate nothing. All of it with weights in full, as bfloat16, and
//! rounded to 8 bits, and with attention in bfloat16.

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::kernels::Int8Kernel;
use palmette_model::{
    Architecture, Family, Model, ModelConfig, Session, SessionError, SessionOptions, WeightFormat,
};
use palmette_testkit::allocations::{Counting, allocations};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BEAMS: usize = 130;

/// Large enough that passes are worth several threads; with weights of each format.
fn models() -> [Arc<Model>; 4] {
    let config = ModelConfig {
        vocab_size: 200,
        hidden_size: 128,
        intermediate_size: 200,
        num_hidden_layers: 2,
        num_attention_heads: 6,
        num_key_value_heads: 2,
        head_dim: 24,
        max_position_embeddings: 200,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    let model = Model::random(config, 5).unwrap();
    [WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Int8, WeightFormat::Int8Bf16]
        .map(|format| Arc::new(model.clone().with_weights(format)))
}

fn session(model: &Arc<Model>, threads: usize) -> Session {
    let options =
        SessionOptions { max_prompt_tokens: 180, max_beams: BEAMS, max_decode_passes: 2, threads };
    Session::new(model, options).unwrap()
}

fn prompt(tokens: usize) -> Vec<TokenId> {
    (0..tokens as u32).map(|i| TokenId(i * 37 % 200)).collect()
}

/// Parents and tokens of two passes.
fn passes() -> [(Vec<u32>, Vec<TokenId>); 2] {
    let tokens = |step: usize| (0..BEAMS).map(|b| TokenId((b * step % 200) as u32)).collect();
    [
        (vec![0; BEAMS], tokens(3)),
        ((0..BEAMS).map(|b| (b * 17 % BEAMS) as u32).collect(), tokens(7)),
    ]
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// The prompt's row, then those of both passes.
fn whole(session: &mut Session, tokens: usize) -> Vec<Vec<u32>> {
    session.set_prompt(&prompt(tokens)).unwrap();
    let first = bits(session.prompt_logits().unwrap());
    let rest = passes().map(|(parents, next)| bits(session.next_logits(&parents, &next).unwrap()));
    [vec![first], rest.to_vec()].concat()
}

#[test]
fn threads_and_what_was_before_change_no_bit() {
    for model in models() {
        let mut reused = session(&model, 1);
        for tokens in [180, 1, 95, 96, 97] {
            let want = whole(&mut reused, tokens);
            for threads in [1, 2, 3, 7] {
                assert_eq!(whole(&mut session(&model, threads), tokens), want, "{threads} threads");
            }
        }
    }
}

/// Every set of instructions that this processor has for 8 bits gives the same ones.
#[test]
fn instructions_change_no_bit() {
    let [.., model] = models();
    let mut all = Int8Kernel::all_here().map(|kernel| {
        let model = Arc::new(Model::clone(&model).with_int8_kernel(kernel));
        let of = |threads| [1, 100, 180].map(|tokens| whole(&mut session(&model, threads), tokens));
        assert!(of(1) == of(3), "{}", kernel.name());
        (kernel.name(), of(1))
    });
    let (_, want) = all.next().unwrap();
    for (name, got) in all {
        assert!(got == want, "{name}");
    }
}

/// Attention in bfloat16 changes logits, and by less than weights in 8 bits do.
#[test]
fn attention_in_bf16_is_near_that_in_f32() {
    let [full, _, int8, both] = models().map(|model| {
        let rows = whole(&mut session(&model, 1), 180).into_iter().flatten();
        rows.map(f32::from_bits).collect::<Vec<f32>>()
    });
    let off = |one: &[f32], other: &[f32]| -> f64 {
        let squares = one.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2));
        (squares.sum::<f64>() / one.len() as f64).sqrt()
    };
    let (by_attention, by_weights) = (off(&both, &int8), off(&int8, &full));
    assert!(by_attention > 0.0 && by_attention < by_weights, "{by_attention} and {by_weights}");
}

#[test]
fn a_beam_alone_has_the_bits_it_has_among_others() {
    for model in models() {
        let mut together = session(&model, 1);
        let want = whole(&mut together, 70);
        let ([(_, first), (parents, second)], mut alone) = (passes(), session(&model, 1));
        for beam in [0, 1, 11, 12, 64, 129] {
            alone.set_prompt(&prompt(70)).unwrap();
            alone.prompt_logits().unwrap();
            alone.next_logits(&[0], &[first[parents[beam] as usize]]).unwrap();
            let row = bits(alone.next_logits(&[0], &[second[beam]]).unwrap());
            assert_eq!(row, want[2][beam * 200..][..200], "beam {beam}");
        }
    }
}

#[test]
fn the_last_row_alone_has_the_bits_it_has_among_all() {
    for model in models() {
        let mut session = session(&model, 2);
        for tokens in [1, 50, 131] {
            session.set_prompt(&prompt(tokens)).unwrap();
            let all = session.all_prompt_logits().unwrap();
            let last = bits(session.prompt_logits().unwrap());
            assert_eq!(last, bits(&all[(tokens - 1) * 200..]), "{tokens} tokens");
        }
    }
}

#[test]
fn some_columns_are_those_of_the_whole() {
    for model in models() {
        let mut session = session(&model, 1);
        let want = whole(&mut session, 40);
        for columns in [0..200, 2..66, 66..130, 7..8, 32..48] {
            let of = |rows: &[u32]| -> Vec<u32> {
                rows.chunks_exact(200).flat_map(|row| row[columns.clone()].to_vec()).collect()
            };
            session.set_prompt(&prompt(40)).unwrap();
            let got = bits(session.prompt_logits_of(columns.clone()).unwrap());
            assert_eq!(got, of(&want[0]));
            for ((parents, next), want) in passes().iter().zip(&want[1..]) {
                let got = session.next_logits_of(parents, next, columns.clone()).unwrap();
                assert_eq!(bits(got), of(want), "{columns:?}");
            }
        }
        for (start, end) in [(100, 201), (5, 5)] {
            let error = session.prompt_logits_of(start..end).unwrap_err();
            assert_eq!(error, SessionError::UnknownColumns { start, end, vocab_size: 200 });
        }
    }
}

/// Text grows by one token or by several at a time; what is read is the same to the bit as all at
/// once.
#[test]
fn appended_tokens_are_read_as_if_they_had_been_in_the_prompt() {
    for model in models() {
        let text = prompt(150);
        for (threads, stretches) in [(1, &[1, 1, 15, 2, 30][..]), (3, &[17, 3, 1])] {
            let mut grown = session(&model, threads);
            assert_eq!(grown.append(&text[..1]).unwrap_err(), SessionError::NoPass);
            grown.set_prompt(&text[..20]).unwrap();
            let mut read = 20;
            grown.prompt_logits().unwrap();
            for &stretch in stretches {
                let logits = bits(grown.append(&text[read..read + stretch]).unwrap());
                read += stretch;
                let mut whole = session(&model, threads);
                whole.set_prompt(&text[..read]).unwrap();
                assert_eq!(logits, bits(whole.prompt_logits().unwrap()), "{read} tokens");
            }
            // Beams go on from there, and from then on one token is a pass.
            let passes = [TokenId(5), TokenId(6)];
            let mut whole = session(&model, threads);
            whole.set_prompt(&text[..read]).unwrap();
            whole.prompt_logits().unwrap();
            let want = bits(whole.append(&[passes[0], passes[1], TokenId(7)]).unwrap());
            let fork = bits(grown.next_logits(&[0, 0], &passes).unwrap());
            assert_eq!(fork.len(), 2 * model.config().vocab_size);
            let mut longer = session(&model, threads);
            let all = [&text[..read], &passes, &[TokenId(7)]].concat();
            longer.set_prompt(&all).unwrap();
            assert_eq!(bits(longer.prompt_logits().unwrap()), want);
            let error = grown.append(&[TokenId(1); 3]).unwrap_err();
            assert_eq!(error, SessionError::TooManyPasses { pass: 3, max: 2 });
        }
        let mut full = session(&model, 1);
        full.set_prompt(&prompt(179)).unwrap();
        full.prompt_logits().unwrap();
        let (tokens, max) = (181, 180);
        let error = SessionError::PromptTooLong { tokens, max };
        assert_eq!(full.append(&[TokenId(1); 2]).unwrap_err(), error);
        let unknown = SessionError::UnknownToken { token: TokenId(200), vocab_size: 200 };
        assert_eq!(full.append(&[TokenId(200)]).unwrap_err(), unknown);
        full.append(&[TokenId(1)]).unwrap();
    }
}

/// Rounding moves logits a little, and something.
#[test]
fn rounded_weights_give_logits_near_those_in_full() {
    let [full, narrow, rounded, _] = models();
    let logits = |model: &Arc<Model>| -> Vec<f32> {
        let rows = whole(&mut session(model, 1), 90);
        rows.into_iter().flatten().map(f32::from_bits).collect()
    };
    let size = |values: &mut dyn Iterator<Item = f32>| -> f32 {
        values.map(|v| v * v).sum::<f32>().sqrt()
    };
    let want = logits(&full);
    // Bytes of one format for 20 of the other: 4 become 1 or 2; norms and scales stay, and the head
    // in 8 bits.
    for (model, most, bytes) in [(narrow, 0.02, 11), (rounded, 0.05, 8)] {
        let got = logits(&model);
        let off =
            size(&mut want.iter().zip(&got).map(|(a, b)| a - b)) / size(&mut want.iter().copied());
        assert!(0.0 < off && off < most, "{off} of the logits' size");
        assert!(
            model.weight_bytes() * 20 < full.weight_bytes() * bytes,
            "{}",
            model.weight_bytes()
        );
        assert_eq!(model.num_parameters(), full.num_parameters());
    }
}

#[test]
fn requests_on_one_thread_allocate_nothing() {
    let [plain, ..] = models();
    let architecture = Architecture::of(Family::Umt5, plain.config().hidden_size);
    let config = ModelConfig { architecture, ..plain.config().clone() };
    let encoder_decoder = Arc::new(Model::random(config, 1).unwrap());
    for model in models().into_iter().chain([encoder_decoder]) {
        let mut session = session(&model, 1);
        let (tokens, passes) = (prompt(150), passes());
        let before = allocations();
        session.set_prompt(&tokens).unwrap();
        session.prompt_logits().unwrap();
        for (parents, next) in &passes {
            session.next_logits(parents, next).unwrap();
        }
        assert_eq!(allocations() - before, 0);
    }
}

//! Plans of sessions against what they take, and prompts that begin alike.

use std::path::Path;

use super::*;
use crate::architecture::{Architecture, Family, SlidingWindow, WindowLayers};
use crate::rotary::{Rope, RopeScaling};

/// The formulas of [`PlannedBytes`] against what is allocated.
#[test]
fn planned_bytes_are_those_taken() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tied_f32");
    let model = Arc::new(Model::load(&dir).unwrap());
    let plans = [(64, 8, 4, 1), (3, 40, 1, 2), (1, 1, 0, 9), (100, 0, 0, 3), (0, 5, 2, 0)];
    for (prompt, beams, passes, threads) in plans {
        let options = SessionOptions {
            max_prompt_tokens: prompt,
            max_beams: beams,
            max_decode_passes: passes,
            threads,
        };
        let planned = Session::planned_bytes(&model.config, &options).unwrap();
        check_planned(planned, &Session::new(&model, options).unwrap());
    }
    // With a second table of angles.
    let mut config = model.config.clone();
    config.architecture = Architecture::of(Family::Gemma3, config.hidden_size);
    config.architecture.window = Some(SlidingWindow {
        positions: 3,
        layers: WindowLayers::From(1),
        rope: Some(Rope { theta: 10.0, scaling: RopeScaling::None }),
    });
    let two_tables = Arc::new(Model::random(config, 1).unwrap());
    let options =
        SessionOptions { max_prompt_tokens: 40, max_beams: 3, max_decode_passes: 2, threads: 2 };
    let planned = Session::planned_bytes(&two_tables.config, &options).unwrap();
    check_planned(planned, &Session::new(&two_tables, options).unwrap());
    let one_table = Session::planned_bytes(&model.config, &options).unwrap();
    let angles = 4 * model.config.head_dim * 42;
    assert_eq!(planned.positions, one_table.positions + angles);

    // With an encoder, whose biases are of the first layer or of each.
    for family in [Family::T5, Family::Umt5] {
        let mut config = model.config.clone();
        config.architecture = Architecture::of(family, config.hidden_size);
        let model = Arc::new(Model::random(config, 1).unwrap());
        for (prompt, beams, passes, threads) in plans {
            let options = SessionOptions {
                max_prompt_tokens: prompt,
                max_beams: beams,
                max_decode_passes: passes,
                threads,
            };
            let planned = Session::planned_bytes(&model.config, &options).unwrap();
            check_planned(planned, &Session::new(&model, options).unwrap());
        }
    }

    let schedules: [(usize, &[usize], usize); 4] =
        [(64, &[8, 2, 5], 1), (3, &[40], 2), (9, &[1, 30, 1], 3), (5, &[], 1)];
    for (prompt, beams, threads) in schedules {
        let planned =
            Session::planned_bytes_of_passes(&model.config, prompt, beams, threads).unwrap();
        let session = Session::of_passes(&model, prompt, beams, threads).unwrap();
        check_planned(planned, &session);
        let slots: usize = beams.iter().sum();
        let own_values = slots * session.beams.slot_width() * size_of::<f32>();
        let lists = beams.len() * session.options.max_beams * 8 + (beams.len() + 1) * 8;
        assert_eq!(planned.beam_cache, own_values + lists);
    }
}

#[test]
fn a_prompt_that_begins_like_the_one_before_gives_the_same_bits() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tied_f32");
    let model = Arc::new(Model::load(&dir).unwrap());
    let options =
        SessionOptions { max_prompt_tokens: 40, max_beams: 0, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(&model, options).unwrap();
    let tokens = |len: u32, from: u32| (from..from + len).map(|t| TokenId(t * 7 % 97));
    let first: Vec<TokenId> = tokens(30, 1).collect();
    // Shorter, longer, the same, another from the middle on, another from the first on, and
    // what was read after one.
    let prompts = [
        first[..20].to_vec(),
        first.clone(),
        first.clone(),
        first[..15].iter().copied().chain(tokens(20, 60)).collect(),
        tokens(9, 50).collect(),
        first[..1].to_vec(),
        first.iter().copied().chain(tokens(10, 2)).collect(),
    ];
    for prompt in prompts {
        let logits = session.prompt_logits_after(&prompt).unwrap().to_vec();
        let mut fresh = Session::new(&model, options).unwrap();
        fresh.set_prompt(&prompt).unwrap();
        assert_eq!(logits, fresh.prompt_logits().unwrap(), "{prompt:?}");
        assert_eq!(session.prompt, prompt);
        if prompt.len() < 39 {
            let more = [TokenId(5), TokenId(6)];
            let next = session.append(&more).unwrap().to_vec();
            assert_eq!(next, fresh.append(&more).unwrap());
        }
    }
    let long: Vec<TokenId> = tokens(41, 1).collect();
    assert!(session.prompt_logits_after(&long).is_err());
    assert_eq!(session.prompt_logits_after(&[]), Err(SessionError::EmptyPrompt));
    let unknown = [first[0], TokenId(97)];
    assert!(session.prompt_logits_after(&unknown).is_err());
    assert!(session.prompt_logits_after(&first).is_ok());
}

#[track_caller]
fn check_planned(planned: PlannedBytes, session: &Session) {
    let prompt_tokens = session.prompt.capacity() * size_of::<TokenId>()
        + session.store_pages.capacity() * size_of::<u32>();
    let (activations, scores): (Vec<usize>, Vec<usize>) =
        session.workspaces.iter().map(Workspace::bytes).unzip();
    let (read_tokens, read_rows) = session.encoder.as_ref().map_or((0, 0), EncoderRun::bytes);
    let taken = PlannedBytes {
        prompt_cache: session.cache_bytes().0,
        beam_cache: session.cache_bytes().1,
        activations: size_of_val(&*session.hidden)
            + size_of_val(&*session.after_prompt)
            + read_rows
            + activations.iter().sum::<usize>(),
        scores: scores.iter().sum(),
        logits: size_of_val(&*session.logits),
        positions: prompt_tokens + session.ropes.bytes() + read_tokens,
    };
    assert_eq!(planned, taken, "{:?}", session.options);
}

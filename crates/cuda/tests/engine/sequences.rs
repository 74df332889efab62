//! Sequences of one device: the bits of each alone, whatever is beside it, and those of a reading.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_cuda::{Architecture, CudaEngine, DeviceLimits, DeviceWeights};
use palmette_model::{
    Engine, ReadingShape, SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch,
};

use crate::meeting::small;
use crate::model::{LIMITS, emulated_within};
use crate::reading::{bits, tokens};

const OPTIONS: SequencesOptions =
    SequencesOptions { max_sequences: 6, max_tokens: 2048, max_rows: 700, threads: 1 };

fn open(engine: &Arc<CudaEngine>, options: SequencesOptions) -> Box<dyn SequenceStore> {
    Arc::clone(engine).open_sequences(options).unwrap()
}

/// Logits after a text by a reading of it whole.
fn alone(engine: &Arc<CudaEngine>, text: &[TokenId]) -> Vec<u32> {
    let shape = ReadingShape::new(text.len(), &[], 1);
    let mut reading = Arc::clone(engine).open(&shape, 1).unwrap();
    reading.set_prompt(text).unwrap();
    bits(reading.prompt_logits().unwrap())
}

/// Random texts, grown together in parts of any size, forked and removed; each has the bits of a
/// reading of the whole.
#[test]
fn sequences_have_the_bits_of_each_alone() {
    let config = small();
    let one = DeviceLimits { requests: 1, ..LIMITS };
    let Some(one) = emulated_within(&config, Architecture::Hopper, 1, &one) else { return };
    let many = DeviceLimits { requests: 8, beams: 0, ..LIMITS };
    // The second has passes of fewer rows and requests than there are sequences.
    let few = DeviceLimits { requests: 2, batch_rows: 128, keeps_prefixes: false, ..many.clone() };
    for (seed, limits) in [many, few].iter().enumerate() {
        let seed = seed as u64 + 2;
        let Some(engine) = emulated_within(&config, Architecture::Hopper, seed, limits) else {
            return;
        };
        let mut store = open(&engine, OPTIONS);
        let mut kept: Vec<(SequenceId, Vec<TokenId>)> = Vec::new();
        let mut state = 5 + seed as u32;
        let mut next = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for step in 0..16 {
            match next(4) {
                0 if kept.len() == 6 => {
                    let (id, _) = kept.swap_remove(next(6));
                    store.remove(id).unwrap();
                }
                0 | 1 if kept.len() < 6 && !kept.is_empty() => {
                    let (of, text) = &kept[next(kept.len())];
                    let count = next(text.len() + 1);
                    let fork = store.fork(*of, count).unwrap();
                    let text = text[..count].to_vec();
                    kept.push((fork, text));
                }
                2 if kept.len() < 6 => kept.push((store.add().unwrap(), Vec::new())),
                _ => {}
            }
            let mut grown: Vec<(usize, Vec<TokenId>, bool)> = Vec::new();
            for (place, (_, text)) in kept.iter().enumerate() {
                let long = [1, 1, 70, if text.is_empty() && step > 9 { 530 } else { 3 }];
                let count = [0, long[next(4)]][usize::from(next(5) > 0)];
                if count > 0 && text.len() + count < 640 {
                    grown.push((place, tokens(count, next(3) as u32), next(4) > 0));
                }
            }
            let stretches: Vec<Stretch<'_>> = grown
                .iter()
                .map(|(place, tokens, wants_logits)| Stretch {
                    sequence: kept[*place].0,
                    tokens,
                    wants_logits: *wants_logits,
                })
                .collect();
            store.pass(&stretches).unwrap();
            for (row, (place, tokens, wants_logits)) in grown.iter().enumerate() {
                let text = &mut kept[*place].1;
                text.extend(tokens);
                let got = store.logits(row).map(bits);
                let want = wants_logits.then(|| alone(&one, text));
                assert_eq!(got, want, "step {step}, {} tokens", text.len());
            }
        }
        let (free, all) = (store.free_pages(), OPTIONS.max_tokens / 64);
        let held: usize = kept.iter().map(|(_, text)| text.len().div_ceil(64)).sum();
        assert!(free < all && free >= all - held, "{free} of {all} are free beside {held}");
        kept.drain(..).for_each(|(id, _)| store.remove(id).unwrap());
        assert_eq!(store.free_pages(), all);
        drop(store);
        assert_eq!(engine.device_use().unwrap().used_pages, 0);
    }
}

#[test]
fn rows_of_a_prompt_have_the_bits_of_its_beginnings() {
    let config = small();
    let weights = DeviceWeights::Int8;
    let limits = DeviceLimits { requests: 2, beams: 0, weights, ..LIMITS };
    let Some(engine) = emulated_within(&config, Architecture::Ampere, 3, &limits) else { return };
    let mut store = open(&engine, OPTIONS);
    let prompt = tokens(600, 1);
    let [first, other] = [(); 2].map(|()| store.add().unwrap());
    let stretch = |sequence, tokens| Stretch { sequence, tokens, wants_logits: true };
    store.pass(&[stretch(other, &prompt[..70]), stretch(first, &prompt[..520])]).unwrap();
    let of_last = bits(store.logits(1).unwrap());
    for rows in [0..2, 63..65, 510..514] {
        let got = bits(store.logits_of_rows(1, rows.clone()).unwrap().unwrap());
        for (got, row) in got.chunks_exact(200).zip(rows) {
            assert_eq!(got, alone(&engine, &prompt[..=row]), "row {row}");
        }
        assert_eq!(store.logits(0), None);
    }
    assert_eq!(store.logits_of_rows(1, 0..7).unwrap(), None);
    assert_eq!(store.logits_of_rows(1, 518..521).unwrap(), None);
    assert_eq!(of_last, alone(&engine, &prompt[..520]));
    // It grows as if nothing had been read again.
    store.pass(&[stretch(first, &prompt[520..])]).unwrap();
    assert_eq!(bits(store.logits(0).unwrap()), alone(&engine, &prompt));
}

#[test]
fn a_prompt_is_read_where_an_earlier_one_was() {
    let config = small();
    let limits = DeviceLimits { requests: 2, beams: 0, ..LIMITS };
    let Some(engine) = emulated_within(&config, Architecture::Hopper, 3, &limits) else { return };
    let prompt = tokens(200, 1);
    let found = || engine.device_use().unwrap().found_tokens;
    let read = |engine: &Arc<CudaEngine>| {
        let mut store = open(engine, OPTIONS);
        let sequence = store.add().unwrap();
        store.pass(&[Stretch { sequence, tokens: &prompt, wants_logits: true }]).unwrap();
        bits(store.logits(0).unwrap())
    };
    let first = read(&engine);
    assert_eq!(found(), 0);
    assert_eq!((read(&engine), found()), (first, 192));
}

#[test]
fn what_breaks_a_rule_is_refused_by_name() {
    let config = small();
    let limits = DeviceLimits { requests: 2, prompt_tokens: Some(640), beams: 0, ..LIMITS };
    let Some(engine) = emulated_within(&config, Architecture::Hopper, 1, &limits) else { return };
    let options = SequencesOptions { max_sequences: 2, max_tokens: 128, ..OPTIONS };
    let mut store = open(&engine, options);
    let planned = engine.planned_sequence_bytes(&options).unwrap();
    assert!(planned > 2 * 200 * 4, "{planned}");
    assert_eq!((store.max_positions(), store.free_pages()), (128, 2));
    let [a, b] = [(); 2].map(|()| store.add().unwrap());
    assert_eq!(store.add(), Err(SequencesError::TooManySequences { max: 2 }));
    let text = tokens(130, 1);
    let stretch =
        |sequence, count| Stretch { sequence, tokens: &text[..count], wants_logits: true };
    store.pass(&[stretch(a, 70)]).unwrap();
    let unknown = [TokenId(200)];
    for (stretches, want) in [
        (vec![stretch(a, 1), stretch(a, 1)], SequencesError::NamedTwice(a)),
        (vec![stretch(b, 1)], SequencesError::NoRoom { needed: 1, free: 0 }),
        (vec![stretch(a, 59)], SequencesError::TooManyPositions { tokens: 129, max: 128 }),
        (
            vec![Stretch { sequence: b, tokens: &unknown, wants_logits: false }],
            SequencesError::UnknownToken { token: TokenId(200), vocab_size: 200 },
        ),
    ] {
        assert_eq!(store.pass(&stretches), Err(want));
        assert_eq!((store.num_tokens(a), store.num_tokens(b)), (Ok(70), Ok(0)));
    }
    let many = SequencesOptions { max_tokens: 1 << 24, ..OPTIONS };
    let error = Arc::clone(&engine).open_sequences(many).unwrap_err().to_string();
    let all = engine.device_use().unwrap().pages;
    let left = all - 2;
    let want = format!(
        "texts of 16777216 tokens together need 262144 pages of 64 tokens, and {left} of {all} are left"
    );
    assert!(error.starts_with(&want), "{error}");
}

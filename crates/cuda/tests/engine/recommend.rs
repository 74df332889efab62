//! Recommendations by a model on a device: the items of the processor's, in their order.

use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_cuda::Architecture;
use palmette_decode::run_on;
use palmette_model::{Family, SharedEngine};
use palmette_recommend::{
    History, LevelFormat, Mode, Normaliser, PromptFormat, Recommender, Request, Worker,
};

use crate::model::{config, emulated, here};

const CODES: u32 = 60;
/// Scores nearer than this may change places: the device computes in bfloat16.
const TOLERANCE: f32 = 0.15;

fn catalog() -> Catalog {
    let item = |n: u32| {
        let codes = vec![n % 11, n * 13 % CODES, n * 29 % CODES];
        Item { id: format!("i{n}"), codes, attributes: Default::default() }
    };
    let items: Vec<Item> = (0..300).map(item).collect();
    let codes_per_level = Some(vec![CODES; 3]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    Catalog::build(items.into(), &options).expect("sound items")
}

/// Prompts of items of three codes, each level's tokens behind those of the one before.
pub(crate) fn format(codes: u32) -> PromptFormat {
    let level = |l: u32| LevelFormat::run("x", 2 + l * codes, codes);
    PromptFormat {
        bos_token: Some(1),
        pad_token: Some(0),
        levels: (0..3).map(level).collect(),
        end_tokens: Vec::new(),
        max_history_items: 30,
        history_step: None,
        witnesses: Vec::new(),
    }
}

fn worker(engine: impl Into<SharedEngine>, normaliser: Normaliser) -> Worker {
    let recommender = Recommender::new(engine, Arc::new(catalog()), format(CODES)).unwrap();
    Worker::new(Arc::new(recommender.with_normaliser(normaliser).unwrap()), 1)
}

#[test]
fn items_are_those_of_the_processor_where_scores_are_apart() {
    let config = config(Family::Qwen3, 64);
    for (normaliser, architecture) in
        [(Normaliser::Vocabulary, Architecture::Hopper), (Normaliser::Level, Architecture::Ampere)]
    {
        let Some(device) = emulated(&config, architecture, 1) else { return };
        let (mut there, mut here) = (worker(device, normaliser), worker(here(&config), normaliser));
        for (history, mode) in [
            (&[3_u64, 77, 204][..], Mode::Beam),
            (&[9; 25], Mode::Beam),
            (&[1], Mode::Probed(8.try_into().unwrap())),
        ] {
            let asked =
                Request { beam_width: 20, mode, ..Request::new(History::Numbers(history), 6) };
            let got = there.recommend(&asked, &mut run_on).unwrap();
            let want = here.recommend(&asked, &mut run_on).unwrap();
            assert_eq!(got.items.len(), 6);
            assert_eq!((got.eligible, got.history_used), (want.eligible, want.history_used));
            for (place, (got, want)) in got.items.iter().zip(&want.items).enumerate() {
                assert!((got.score - want.score).abs() < TOLERANCE, "{place}: {got:?}, {want:?}");
            }
            for (place, pair) in want.items.windows(2).enumerate() {
                if pair[0].score - pair[1].score > 2.0 * TOLERANCE {
                    let before = |of: &[palmette_recommend::Recommended]| {
                        let mut numbers: Vec<u64> =
                            of[..=place].iter().map(|item| item.number).collect();
                        numbers.sort_unstable();
                        numbers
                    };
                    assert_eq!(before(&got.items), before(&want.items), "the first {}", place + 1);
                }
            }
        }
    }
}

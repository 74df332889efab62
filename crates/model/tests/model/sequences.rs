//! Several sequences in one pass against a session for each alone: the same logits, to the bit.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{
    Architecture, Family, Model, ModelConfig, Rope, RopeScaling, SequenceId, SequenceStore,
    Sequences, SequencesError, SequencesOptions, Session, SessionOptions, SlidingWindow, Stretch,
    WeightFormat, WindowLayers,
};
use palmette_testkit::allocations::allocations;
use proptest::prelude::*;

const VOCAB: usize = 90;
/// Not a multiple of a page, and pages are filled and begun within few tokens.
const POSITIONS: usize = 150;

fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: VOCAB,
        hidden_size: 24,
        intermediate_size: 40,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 10,
        max_position_embeddings: POSITIONS,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    }
}

/// Plain; rounded; with sliding windows.
fn models() -> [Arc<Model>; 3] {
    let plain = Model::random(config(), 5).unwrap();
    let mut windows = config();
    windows.architecture = Architecture::of(Family::Gemma3, windows.hidden_size);
    windows.architecture.window = Some(SlidingWindow {
        positions: 21,
        layers: WindowLayers::From(1),
        rope: Some(Rope { theta: 10.0, scaling: RopeScaling::None }),
    });
    let windows = Model::random(windows, 6).unwrap();
    [plain.clone(), plain.with_weights(WeightFormat::Int8), windows].map(Arc::new)
}

/// One worth several threads.
fn large() -> Arc<Model> {
    let config = ModelConfig { hidden_size: 160, intermediate_size: 400, ..config() };
    Arc::new(Model::random(config, 7).unwrap())
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// The oracle: a session that reads the whole sequence at once.
struct Alone(Session);

impl Alone {
    fn new(model: &Arc<Model>) -> Self {
        let options = SessionOptions {
            max_prompt_tokens: POSITIONS,
            max_beams: 0,
            max_decode_passes: 0,
            threads: 1,
        };
        Self(Session::new(model, options).unwrap())
    }

    fn logits(&mut self, tokens: &[TokenId]) -> Vec<u32> {
        self.0.set_prompt(tokens).unwrap();
        bits(self.0.prompt_logits().unwrap())
    }
}

/// Events of sequences.
#[derive(Clone, Debug)]
enum Op {
    Add,
    /// Of some sequence, so many hundredths of its tokens.
    Fork(prop::sample::Index, usize),
    /// Cut of the last tokens of some sequence, and their number.
    Truncate(prop::sample::Index, usize),
    Remove(prop::sample::Index),
    /// Of each sequence: how many tokens it grows by, from which token on, and whether its logits
    /// are wanted.
    Pass(Vec<(usize, u32, bool)>),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let grow = prop_oneof![Just(0_usize), Just(1), 1..5_usize, 1..80_usize];
    let pass = prop::collection::vec((grow, 0..VOCAB as u32, prop::bool::weighted(0.8)), 5);
    let op = prop_oneof![
        2 => Just(Op::Add),
        1 => (any::<prop::sample::Index>(), prop_oneof![Just(100), 0..=100_usize]).prop_map(|(of, share)| Op::Fork(of, share)),
        1 => (any::<prop::sample::Index>(), 0..90_usize).prop_map(|(of, cut)| Op::Truncate(of, cut)),
        1 => any::<prop::sample::Index>().prop_map(Op::Remove),
        5 => pass.prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..25)
}

/// Does it all, with every sequence's tokens kept beside; every refusal must be one by the rules,
/// and change nothing.
fn check(model: &Arc<Model>, options: SequencesOptions, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut sequences = Sequences::new(model, options).unwrap();
    let mut alone = Alone::new(model);
    let mut kept: Vec<(SequenceId, Vec<TokenId>)> = Vec::new();
    let pages = options.max_tokens.div_ceil(SequencesOptions::PAGE_TOKENS);
    for op in ops {
        match op {
            Op::Add => match sequences.add() {
                Ok(id) => kept.push((id, Vec::new())),
                Err(error) => {
                    let max = options.max_sequences;
                    prop_assert_eq!(error, SequencesError::TooManySequences { max });
                    prop_assert_eq!(kept.len(), max);
                }
            },
            Op::Fork(index, share) if !kept.is_empty() => {
                let (of, tokens) = kept[index.index(kept.len())].clone();
                let count = tokens.len() * share / 100;
                match sequences.fork(of, count) {
                    Ok(id) => kept.push((id, tokens[..count].to_vec())),
                    Err(SequencesError::TooManySequences { max }) => {
                        prop_assert_eq!(kept.len(), max);
                    }
                    Err(error) => {
                        prop_assert_eq!(error, SequencesError::NoRoom { needed: 1, free: 0 });
                    }
                }
            }
            Op::Truncate(index, cut) if !kept.is_empty() => {
                let place = index.index(kept.len());
                let (of, tokens) = &mut kept[place];
                let count = tokens.len().saturating_sub(*cut);
                match sequences.truncate(*of, count) {
                    Ok(id) => {
                        *of = id;
                        tokens.truncate(count);
                    }
                    // An open page that a fork has is copied.
                    Err(SequencesError::TooManySequences { max }) => {
                        prop_assert!(
                            kept.len() == max && count % SequencesOptions::PAGE_TOKENS > 0
                        );
                    }
                    Err(error) => {
                        prop_assert_eq!(error, SequencesError::NoRoom { needed: 1, free: 0 });
                    }
                }
                let (of, tokens) = &kept[place];
                prop_assert_eq!(sequences.num_tokens(*of), Ok(tokens.len()));
                let more = tokens.len() + 1;
                prop_assert!(sequences.truncate(*of, more).is_err());
            }
            Op::Remove(index) if !kept.is_empty() => {
                let (id, _) = kept.swap_remove(index.index(kept.len()));
                sequences.remove(id).unwrap();
                let gone = SequencesError::UnknownSequence(id);
                prop_assert_eq!(sequences.remove(id).unwrap_err(), gone);
            }
            Op::Pass(growths) => {
                let grown: Vec<Vec<TokenId>> = growths
                    .iter()
                    .map(|&(count, first, _)| {
                        let token = |i| TokenId((first + i * 7) % VOCAB as u32);
                        (0..count as u32).map(token).collect()
                    })
                    .collect();
                let mut places = Vec::new();
                let mut stretches = Vec::new();
                for (place, (tokens, &(_, _, wants_logits))) in
                    grown.iter().zip(growths).enumerate().take(kept.len())
                {
                    if !tokens.is_empty() {
                        places.push(place);
                        stretches.push(Stretch { sequence: kept[place].0, tokens, wants_logits });
                    }
                }
                let free = sequences.free_pages();
                match sequences.pass(&stretches) {
                    Ok(()) => {}
                    Err(SequencesError::TooManyRows { rows, max }) => {
                        prop_assert!(rows > max);
                        continue;
                    }
                    Err(SequencesError::TooManyPositions { tokens, max }) => {
                        prop_assert!(tokens > max);
                        continue;
                    }
                    Err(SequencesError::NoRoom { needed, free: told }) => {
                        prop_assert_eq!(told, free);
                        prop_assert!(needed > free && sequences.free_pages() == free);
                        continue;
                    }
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                }
                for (row, &place) in places.iter().enumerate() {
                    let (id, tokens) = &mut kept[place];
                    tokens.extend(&grown[place]);
                    prop_assert_eq!(sequences.num_tokens(*id), Ok(tokens.len()));
                    let logits = sequences.logits(row).map(bits);
                    prop_assert_eq!(logits.is_some(), growths[place].2);
                    if let Some(logits) = logits {
                        prop_assert_eq!(logits, alone.logits(tokens), "{} tokens", tokens.len());
                    }
                }
                prop_assert_eq!(sequences.logits(places.len()), None);
            }
            _ => {}
        }
    }
    for (id, _) in kept {
        sequences.remove(id).unwrap();
    }
    prop_assert_eq!(sequences.free_pages(), pages);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sequences_together_have_the_bits_of_each_alone(
        ops in ops(), max_sequences in 1_usize..6, max_tokens in 64_usize..600, max_rows in 5_usize..260,
        model in 0_usize..3,
    ) {
        let options = SequencesOptions { max_sequences, max_tokens, max_rows, threads: 1 };
        check(&models()[model], options, &ops)?;
    }
}

/// Blocks of several threads cut stretches anywhere.
#[test]
fn threads_change_no_bit() {
    let model = large();
    let tokens: Vec<TokenId> = (0..POSITIONS as u32).map(|i| TokenId(i * 11 % 90)).collect();
    let mut alone = Alone::new(&model);
    for threads in [1, 2, 3] {
        let options =
            SequencesOptions { max_sequences: 4, max_tokens: 800, max_rows: 420, threads };
        let mut sequences = Sequences::new(&model, options).unwrap();
        let ids: Vec<SequenceId> = (0..4).map(|_| sequences.add().unwrap()).collect();
        let cuts = [(0, 140), (0, 3), (0, 90), (0, 149)];
        for cuts in [cuts, [(140, 141), (3, 150), (90, 91), (149, 150)]] {
            let stretches: Vec<Stretch<'_>> = ids
                .iter()
                .zip(cuts)
                .map(|(&sequence, (from, to))| Stretch {
                    sequence,
                    tokens: &tokens[from..to],
                    wants_logits: true,
                })
                .collect();
            sequences.pass(&stretches).unwrap();
            for (row, (_, to)) in cuts.into_iter().enumerate() {
                let got = bits(sequences.logits(row).unwrap());
                assert_eq!(got, alone.logits(&tokens[..to]), "{threads} threads, {to} tokens");
            }
        }
    }
}

#[test]
fn what_breaks_a_rule_is_refused_and_changes_nothing() {
    let model = &models()[0];
    let options = SequencesOptions { max_sequences: 2, max_tokens: 128, max_rows: 100, threads: 1 };
    let mut sequences = Sequences::new(model, options).unwrap();
    let (a, b) = (sequences.add().unwrap(), sequences.add().unwrap());
    let tokens: Vec<TokenId> = (0..130).map(|i| TokenId(i % 90)).collect();
    let of =
        |sequence, count: usize| Stretch { sequence, tokens: &tokens[..count], wants_logits: true };
    let unknown = [TokenId(3), TokenId(90)];
    let with_unknown = Stretch { sequence: b, tokens: &unknown, wants_logits: false };
    sequences.pass(&[of(a, 70)]).unwrap();
    let cases: [(&[Stretch<'_>], SequencesError); 6] = [
        (&[of(a, 1), of(a, 2)], SequencesError::NamedTwice(a)),
        (&[of(b, 0)], SequencesError::NoTokens(b)),
        (&[of(a, 1), of(b, 100)], SequencesError::TooManyRows { rows: 101, max: 100 }),
        (&[of(a, 59)], SequencesError::TooManyPositions { tokens: 129, max: 128 }),
        (&[of(b, 1)], SequencesError::NoRoom { needed: 1, free: 0 }),
        (&[with_unknown], SequencesError::UnknownToken { token: TokenId(90), vocab_size: 90 }),
    ];
    for (stretches, want) in cases {
        assert_eq!(sequences.pass(stretches).unwrap_err(), want);
        assert_eq!((sequences.num_tokens(a), sequences.num_tokens(b)), (Ok(70), Ok(0)));
    }
    let error = sequences.fork(a, 71).unwrap_err();
    assert_eq!(error, SequencesError::FewerTokens { tokens: 71, has: 70 });
    // The page of one that is gone is another's, and its name is no more.
    sequences.remove(a).unwrap();
    let again = sequences.add().unwrap();
    assert_ne!(again, a);
    let gone = SequencesError::UnknownSequence(a);
    assert_eq!(sequences.pass(&[of(a, 1)]).unwrap_err(), gone);
    sequences.pass(&[of(b, 1), of(again, 64)]).unwrap();
    assert_eq!(bits(sequences.logits(0).unwrap()), Alone::new(model).logits(&tokens[..1]));
    assert_eq!(sequences.pages_for(again, 1), Ok(1));
    sequences.pass(&[]).unwrap();
}

#[test]
fn passes_on_one_thread_allocate_nothing() {
    for model in models() {
        let options =
            SequencesOptions { max_sequences: 3, max_tokens: 600, max_rows: 200, threads: 1 };
        let mut sequences = Sequences::new(&model, options).unwrap();
        let tokens: Vec<TokenId> = (0..130).map(|i| TokenId(i % 90)).collect();
        let before = allocations();
        let (a, b) = (sequences.add().unwrap(), sequences.add().unwrap());
        let first = Stretch { sequence: a, tokens: &tokens, wants_logits: true };
        sequences.pass(&[first]).unwrap();
        let c = sequences.fork(a, 130).unwrap();
        for _ in 0..10 {
            let of = |sequence, count: usize| Stretch {
                sequence,
                tokens: &tokens[..count],
                wants_logits: count < 5,
            };
            sequences.pass(&[of(a, 1), of(b, 7), of(c, 2)]).unwrap();
        }
        sequences.remove(b).unwrap();
        assert_eq!(allocations() - before, 0);
    }
}

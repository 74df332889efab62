//! Samplers and generation against their definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use palmette_core::{Constraint, TokenId, TokenMask, Unconstrained};
use palmette_decode::{
    DecodeError, Finish, GenerateOptions, Generator, LogitsSource, NewToken, SampleError, Sampler,
    SamplerOptions,
};
use palmette_testkit::logits::TableLogits;
use palmette_testkit::{SequenceSet, generate};
use proptest::prelude::*;

fn options() -> impl Strategy<Value = SamplerOptions> {
    let penalty = prop_oneof![Just(1.0_f32), 0.5_f32..3.0];
    let temperature = prop_oneof![Just(0.0_f32), 0.05_f32..3.0];
    let top_k = prop::option::of((1_usize..30).prop_map(|k| NonZeroUsize::new(k).unwrap()));
    let top_p = prop_oneof![Just(1.0_f32), 0.01_f32..1.0];
    let min_p = prop_oneof![Just(0.0_f32), 0.0_f32..1.0];
    let taken = || prop_oneof![Just(0.0_f32), -1.0_f32..2.0];
    let all = (penalty, taken(), taken(), temperature, top_k, top_p, min_p, any::<u64>());
    all.prop_map(|(penalty, presence, frequency, temperature, top_k, top_p, min_p, seed)| {
        SamplerOptions {
            repetition_penalty: penalty,
            presence_penalty: presence,
            frequency_penalty: frequency,
            temperature,
            top_k,
            top_p,
            min_p,
            seed,
        }
    })
}

/// Distribution of the drawn token by the words of [`SamplerOptions`]: sort, cut, divide.
///
/// Tokens whose place in a cut rounding decides are told apart from those that are surely in or
/// out: `None` then.
fn definition(
    options: &SamplerOptions,
    logits: &[f32],
    allowed: &TokenMask,
    bias: &BTreeMap<TokenId, f32>,
    context: &[TokenId],
    generated: &[TokenId],
) -> Option<BTreeMap<TokenId, f64>> {
    let penalty = f64::from(options.repetition_penalty);
    let mut rows: Vec<(f64, TokenId)> = allowed
        .iter()
        .map(|token| {
            let biased = logits[token.index()] + bias.get(&token).copied().unwrap_or(0.0);
            let logit = f64::from(biased);
            let times = generated.iter().filter(|&&other| other == token).count();
            let repeated = match times > 0 || context.contains(&token) {
                true if logit > 0.0 => logit / penalty,
                true => logit * penalty,
                false => logit,
            };
            let presence = if times > 0 { f64::from(options.presence_penalty) } else { 0.0 };
            (repeated - presence - times as f64 * f64::from(options.frequency_penalty), token)
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let close = |a: f64, b: f64| (a - b).abs() < 1e-5 * a.abs().max(b.abs()).max(1e-3);
    // Penalised logits that should be equal may differ by rounding, and the other way round.
    let changed = options.repetition_penalty != 1.0
        || options.presence_penalty != 0.0
        || options.frequency_penalty != 0.0
        || !bias.is_empty();
    if changed && rows.windows(2).any(|w| close(w[0].0, w[1].0)) {
        return None;
    }
    if options.temperature == 0.0 {
        return Some(BTreeMap::from([(rows[0].1, 1.0)]));
    }
    let max = rows[0].0;
    let weight = |logit: f64| ((logit - max) / f64::from(options.temperature)).exp();
    let mut kept: Vec<(f64, TokenId)> = rows.iter().map(|&(l, t)| (weight(l), t)).collect();
    kept.truncate(options.top_k.map_or(usize::MAX, NonZeroUsize::get));
    if options.top_p < 1.0 {
        let wanted = kept.iter().map(|k| k.0).sum::<f64>() * f64::from(options.top_p);
        let mut sum = 0.0;
        let mut until = kept.len();
        for (place, (weight, _)) in kept.iter().enumerate() {
            sum += weight;
            if close(sum, wanted) {
                return None;
            }
            if sum >= wanted {
                until = place + 1;
                break;
            }
        }
        kept.truncate(until);
    }
    let least = f64::from(options.min_p);
    if kept.iter().any(|k| close(k.0, least)) && least > 0.0 {
        return None;
    }
    kept.retain(|k| k.0 >= least && k.0 > 1e-38);
    let total: f64 = kept.iter().map(|k| k.0).sum();
    Some(kept.into_iter().map(|(weight, token)| (token, weight / total)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_drawn_is_what_the_definition_keeps(
        options in options(),
        seed: u64,
        num_tokens in prop_oneof![2_usize..40, 500_usize..700],
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        deny in 0_u32..4,
        context in prop::collection::vec(0_u32..40, 0..10),
        generated in prop::collection::vec(0_u32..40, 0..10),
        bias in prop::collection::btree_map((0_u32..40).prop_map(TokenId), -3.0_f32..3.0, 0..5),
    ) {
        let logits = TableLogits { seed, num_tokens, grades }.row(&[]);
        let mut allowed = TokenMask::new(num_tokens);
        let tokens = (0..num_tokens as u32).map(TokenId);
        tokens.filter(|t| t.0 == 1 || t.0 % 4 >= deny).for_each(|t| allowed.insert(t));
        let [context, generated] =
            [context, generated].map(|tokens| tokens.into_iter().map(TokenId).collect::<Vec<_>>());
        let new = || Sampler::new(options).unwrap().with_bias(bias.clone()).unwrap();
        let draw = |sampler: &mut Sampler| {
            sampler.sample_after(&logits, allowed.as_words(), &context, &generated)
        };
        let mut sampler = new();
        let drawn: Vec<TokenId> = (0..64).map(|_| draw(&mut sampler).unwrap()).collect();
        prop_assert!(drawn.iter().all(|&token| allowed.contains(token)));
        if let Some(kept) = definition(&options, &logits, &allowed, &bias, &context, &generated) {
            let found: BTreeSet<TokenId> = drawn.iter().copied().collect();
            prop_assert!(found.iter().all(|t| kept.contains_key(t)), "{found:?} of {kept:?}");
        }
        let mut again = new();
        for token in drawn {
            prop_assert_eq!(draw(&mut again), Ok(token));
        }
    }

    #[test]
    fn a_greedy_generation_follows_the_best_allowed_token(
        set in generate::sequence_sets(),
        seed: u64,
        max_tokens in 0_usize..8,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades: 1000 };
        let (mut expected, mut forced) = (Vec::new(), 0);
        let finish = loop {
            let allowed = set.allowed(&expected);
            if allowed.is_empty() {
                break Finish::Complete;
            }
            if expected.len() == max_tokens {
                break Finish::MaxTokens;
            }
            forced += usize::from(allowed.len() == 1);
            let row = logits.row(&expected);
            let better = |a: &TokenId, b: &TokenId| {
                row[a.index()].total_cmp(&row[b.index()]).then(b.cmp(a))
            };
            expected.push(allowed.into_iter().max_by(better).unwrap());
        };
        let mut generator = Generator::new(GenerateOptions::new(max_tokens));
        for _ in 0..2 {
            let mut heard = Vec::new();
            let mut source = logits.source();
            let on_token = &mut |new: NewToken<'_>| {
                assert_eq!(new.is_forced, new.logits.is_empty());
                heard.push((new.token, new.is_forced));
                ControlFlow::Continue(())
            };
            let done = generator.run(&set, &mut source, &mut Sampler::greedy(), on_token).unwrap();
            prop_assert_eq!(generator.tokens(), &expected);
            prop_assert_eq!((done.finish, done.forced), (finish, forced));
            prop_assert_eq!(done.is_accepting, set.sequences().any(|s| s == expected));
            prop_assert_eq!(heard.iter().map(|new| new.0).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(heard.iter().filter(|new| new.1).count(), forced);
        }
    }
}

#[test]
fn frequencies_are_probabilities() {
    let options = SamplerOptions {
        temperature: 0.7,
        top_k: NonZeroUsize::new(5),
        top_p: 0.95,
        seed: 11,
        ..SamplerOptions::default()
    };
    let logits = [0.3, 2.0, -1.0, 1.7, 0.9, 0.0, 1.2, -3.0];
    let mut allowed = TokenMask::new(8);
    [0, 1, 3, 4, 6, 7].into_iter().for_each(|token| allowed.insert(TokenId(token)));
    let kept = definition(&options, &logits, &allowed, &BTreeMap::new(), &[], &[])
        .expect("no cut is close");
    assert!(kept.len() > 2, "{kept:?}");
    let mut sampler = Sampler::new(options).unwrap();
    let draws = 100_000;
    let mut counts = BTreeMap::new();
    for _ in 0..draws {
        let token = sampler.sample(&logits, allowed.as_words(), &[]).unwrap();
        *counts.entry(token).or_insert(0_usize) += 1;
    }
    // Pearson's statistic; with at most four degrees of freedom it exceeds 28 once in 10^5.
    let terms = kept.iter().map(|(token, p)| {
        let expected = p * draws as f64;
        (counts.get(token).copied().unwrap_or(0) as f64 - expected).powi(2) / expected
    });
    assert!(terms.sum::<f64>() < 28.0, "{counts:?} for {kept:?}");
    assert!(counts.keys().all(|token| kept.contains_key(token)));
}

#[test]
fn rows_that_nothing_can_be_drawn_from_are_errors() {
    let mut allowed = TokenMask::new(3);
    let mut sampler = Sampler::greedy();
    let none = sampler.sample(&[0.0; 3], allowed.as_words(), &[]);
    assert_eq!(none, Err(SampleError::NothingAllowed));
    [0, 2].into_iter().for_each(|token| allowed.insert(TokenId(token)));
    for bad in [f32::NAN, f32::INFINITY] {
        let error = SampleError::BadLogit { token: TokenId(2) };
        assert_eq!(sampler.sample(&[0.0, 0.0, bad], allowed.as_words(), &[]), Err(error));
        // What is denied does not count.
        assert_eq!(sampler.sample(&[0.0, bad, -1.0], allowed.as_words(), &[]), Ok(TokenId(0)));
    }
    let low = f32::NEG_INFINITY;
    let error = Err(SampleError::NoProbability);
    assert_eq!(sampler.sample(&[low, 0.0, low], allowed.as_words(), &[]), error);
    assert_eq!(sampler.sample(&[low, 0.0, 1.0], allowed.as_words(), &[]), Ok(TokenId(2)));
    let error = SampleError::MissingLogit { token: TokenId(2), logits: 2 };
    assert_eq!(sampler.sample(&[0.0, 0.0], allowed.as_words(), &[]), Err(error));
}

#[test]
fn options_out_of_range_are_named() {
    let default = SamplerOptions::default();
    for (options, message) in [
        (SamplerOptions { temperature: -1.0, ..default }, "temperature is -1; it must be"),
        (SamplerOptions { temperature: f32::NAN, ..default }, "temperature is NaN"),
        (SamplerOptions { top_p: 0.0, ..default }, "top_p is 0; it must be above 0"),
        (SamplerOptions { top_p: 1.5, ..default }, "top_p is 1.5"),
        (SamplerOptions { min_p: -0.1, ..default }, "min_p is -0.1"),
        (SamplerOptions { repetition_penalty: 0.0, ..default }, "repetition_penalty is 0"),
        (SamplerOptions { presence_penalty: f32::NAN, ..default }, "presence_penalty is NaN"),
        (
            SamplerOptions { frequency_penalty: f32::INFINITY, ..default },
            "frequency_penalty is inf",
        ),
    ] {
        let error = Sampler::new(options).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    let error = Sampler::greedy().with_bias([(TokenId(3), f32::NAN)]).unwrap_err().to_string();
    assert!(error.starts_with("logit_bias is NaN"), "{error}");
}

/// A table that reads several tokens in one call, as a model does, and counts calls.
struct OnePass {
    table: TableLogits,
    read: Vec<TokenId>,
    row: Vec<f32>,
    calls: usize,
}

impl LogitsSource for OnePass {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.table.num_tokens
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        self.read.clear();
        self.append(&[])
    }

    fn next_logits(&mut self, _: &[u32], _: &[TokenId]) -> Result<&[f32], DecodeError> {
        unreachable!("generation reads tokens by `append`")
    }

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.row)
    }

    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.calls += 1;
        self.read.extend_from_slice(tokens);
        self.row = self.table.row(&self.read);
        Ok(&self.row)
    }
}

#[test]
fn forced_tokens_take_no_pass_of_their_own() {
    // A choice, four forced ones, a choice, two forced ones.
    let sequences = [[1, 5, 5, 5, 5, 2, 6, 6], [1, 5, 5, 5, 5, 3, 6, 6], [4, 5, 5, 5, 5, 3, 6, 6]];
    let set = SequenceSet::new(8, sequences);
    let table = TableLogits { seed: 2, num_tokens: 8, grades: 100 };
    let mut source = OnePass { table, read: Vec::new(), row: Vec::new(), calls: 0 };
    let mut generator = Generator::new(GenerateOptions::new(20));
    let on_token = &mut |_: NewToken<'_>| ControlFlow::Continue(());
    let done = generator.run(&set, &mut source, &mut Sampler::greedy(), on_token).unwrap();
    let chosen = sequences.iter().filter(|s| s[0] == generator.tokens()[0].0).count();
    let choices = if chosen == 2 { 2 } else { 1 };
    assert_eq!((done.finish, done.passes, source.calls), (Finish::Complete, choices, choices));
    assert_eq!(done.forced, 8 - choices);
    assert!(done.is_accepting);
}

#[test]
fn generation_ends_at_stop_tokens_and_when_the_caller_breaks_off() {
    let any = Unconstrained::new(5, 30);
    let table = TableLogits { seed: 8, num_tokens: 5, grades: 1000 };
    let options = SamplerOptions { temperature: 1.0, seed: 3, ..SamplerOptions::default() };
    let run = |generator: &mut Generator<Unconstrained>, most: usize| {
        let mut left = most;
        let on_token = &mut |_: NewToken<'_>| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut sampler = Sampler::new(options).unwrap();
        generator.run(&any, &mut table.source(), &mut sampler, on_token).unwrap().finish
    };
    let mut whole = Generator::new(GenerateOptions::new(100));
    assert_eq!(run(&mut whole, 100), Finish::Complete);
    let tokens = whole.tokens().to_vec();
    assert_eq!(tokens.len(), 30);

    let mut stopped = Generator::new(GenerateOptions::new(100));
    assert_eq!(run(&mut stopped, 7), Finish::Stopped);
    assert_eq!(stopped.tokens(), &tokens[..7]);

    let stop = tokens[9];
    let first = tokens.iter().position(|&token| token == stop).unwrap();
    let stop_tokens = vec![stop];
    let mut stopped = Generator::new(GenerateOptions { stop_tokens, ..GenerateOptions::new(100) });
    assert_eq!(run(&mut stopped, 100), Finish::StopToken(stop));
    assert_eq!(stopped.tokens(), &tokens[..=first]);
}

#[test]
fn stop_tokens_wait_for_the_least_length() {
    let table = TableLogits { seed: 8, num_tokens: 5, grades: 1000 };
    let run = |options: GenerateOptions, set: &SequenceSet| {
        let mut generator = Generator::new(options);
        let on_token = &mut |_: NewToken<'_>| ControlFlow::Continue(());
        let mut sampler = Sampler::greedy();
        let done = generator.run(set, &mut table.source(), &mut sampler, on_token).unwrap();
        (generator.tokens().to_vec(), done.finish)
    };
    // Greedy would stop at once, were it allowed to: all tokens stop but one.
    let sequences: Vec<Vec<u32>> =
        vec![vec![0, 0, 0, 1], vec![0, 0, 1], vec![0, 1], vec![1], vec![2]];
    let set = SequenceSet::new(5, sequences);
    let stop_tokens = vec![TokenId(1), TokenId(2)];
    for min_tokens in 0..6 {
        let options = GenerateOptions {
            min_tokens,
            stop_tokens: stop_tokens.clone(),
            ..GenerateOptions::new(9)
        };
        let (tokens, finish) = run(options, &set);
        // After three of the other there is nothing but a stop token.
        assert!(tokens.len() > min_tokens.min(3), "{tokens:?}");
        assert_eq!(finish, Finish::StopToken(*tokens.last().unwrap()));
    }
}

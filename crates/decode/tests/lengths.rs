//! Sequences that end within their tokens, against what the rules for lengths say.

use std::ops::ControlFlow;

use palmette_core::{Constraint, TokenId};
use palmette_decode::{
    DecodeError, Finish, GenerateOptions, Generated, Generator, LengthReport, LengthRule, NewToken,
    Sampler,
};
use palmette_testkit::logits::TableLogits;
use palmette_testkit::{SequenceSet, generate};
use proptest::prelude::*;

fn run(
    set: &SequenceSet,
    logits: &TableLogits,
    (min_tokens, max_tokens): (usize, usize),
    length: LengthRule,
) -> Result<(Vec<TokenId>, Generated), DecodeError> {
    let options = GenerateOptions { length, min_tokens, ..GenerateOptions::new(max_tokens) };
    let mut generator = Generator::new(options);
    let on_token = &mut |_: NewToken<'_>| ControlFlow::Continue(());
    let mut sampler = Sampler::greedy();
    let done = generator.run(set, &mut logits.source(), &mut sampler, on_token)?;
    assert_eq!(done.length, generator.length());
    Ok((generator.tokens().to_vec(), done))
}

/// The likeliest token; of equals, the lowest.
fn best(row: &[f32], tokens: impl Iterator<Item = TokenId>) -> TokenId {
    let better =
        |a: &TokenId, b: &TokenId| row[a.index()].total_cmp(&row[b.index()]).then(b.cmp(a));
    tokens.max_by(better).expect("a token")
}

/// Nats that a token loses which takes so many of the tokens that are left over, by the words of
/// the rule. Pairs are tokens left and needed.
fn nats(whole: (usize, usize), here: (usize, usize), taken: usize) -> f32 {
    let slack = |(left, needed): (usize, usize)| (left - needed) as f32;
    let proportion = (slack(whole) / whole.1.max(1) as f32).min(1.0);
    let reserve = (slack(whole) / 4.0).max(proportion * here.1 as f32);
    let lack = |slack: f32| if slack < reserve { reserve - slack } else { 0.0 };
    let (before, after) = (lack(slack(here)), lack(slack(here) - taken as f32));
    match slack(here) < 2.0 * reserve {
        true => 8.0 * (after * after - before * before) / (2.0 * reserve),
        false => 0.0,
    }
}

/// A sequence by the rules, in a set that is not empty, within tokens that are enough; true where it
/// was whole, and tokens that would have made it longer than it may be were left out.
fn definition(
    set: &SequenceSet,
    logits: &TableLogits,
    (min_tokens, max_tokens): (usize, usize),
    rule: LengthRule,
) -> (Vec<TokenId>, LengthReport, bool) {
    let needed = |tokens: &[TokenId]| set.fewest(tokens).expect("a prefix of the set");
    let mut report = LengthReport { rule, steered: 0, leaning: 0 };
    let (mut written, mut ends_whole) = (Vec::new(), false);
    while written.len() < max_tokens {
        let mut allowed = set.allowed(&written);
        let after = |token: TokenId| needed(&[written.as_slice(), &[token]].concat());
        let (left, here) = (max_tokens - written.len(), needed(&written));
        // Whether a sequence of such a length begins so.
        let is_kept = |token: TokenId| {
            let prefix = [written.as_slice(), &[token]].concat();
            let lengths = set.lengths(&prefix).map(|len| prefix.len() + len);
            lengths.into_iter().any(|len| (min_tokens..=max_tokens).contains(&len))
        };
        if here == 0 {
            let all = allowed.len();
            allowed.retain(|&token| is_kept(token));
            ends_whole |= allowed.len() < all;
        }
        let token = match allowed.len() {
            0 => break,
            1 => *allowed.first().unwrap(),
            _ => {
                let mut row = logits.row(&written);
                if rule == LengthRule::Gentle {
                    let mut leans = false;
                    for &token in &allowed {
                        let taken = (after(token) + 1).saturating_sub(here);
                        let lost = nats((max_tokens, needed(&[])), (left, here), taken);
                        leans |= lost > 0.0;
                        row[token.index()] -= lost;
                    }
                    report.leaning += usize::from(leans);
                }
                let drawn = best(&row, allowed.iter().copied());
                match is_kept(drawn) {
                    true => drawn,
                    false => {
                        report.steered += 1;
                        best(&row, allowed.into_iter().filter(|&token| is_kept(token)))
                    }
                }
            }
        };
        written.push(token);
    }
    (written, report, ends_whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn sequences_end_within_their_tokens(
        set in generate::sequence_sets(),
        seed: u64,
        (least, max_tokens) in (0_usize..9, 0_usize..9),
        rule in prop_oneof![Just(LengthRule::Promised), Just(LengthRule::Gentle)],
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades: 1000 };
        // Without a number that must be taken as often as with one.
        let min_tokens = if least < 5 { 0 } else { least - 4 };
        let ran = run(&set, &logits, (min_tokens, max_tokens), rule);
        let Some(needed) = set.fewest(&[]) else {
            // Nothing is in the set.
            let (tokens, done) = ran.unwrap();
            let rule = LengthRule::Cut;
            prop_assert!(tokens.is_empty());
            prop_assert_eq!(done.length, Some(LengthReport { rule, steered: 0, leaning: 0 }));
            return Ok(());
        };
        if needed > max_tokens {
            prop_assert_eq!(ran.err(), Some(DecodeError::TooFewTokens { needed, max_tokens }));
            return Ok(());
        }
        let has = |least: usize| set.lengths(&[]).any(|len| (least..=max_tokens).contains(&len));
        if !has(min_tokens) {
            let known = (0..min_tokens).rev().find(|&least| has(least)).expect("the shortest");
            let error = DecodeError::TooManyTokens { min_tokens, max_tokens, known };
            prop_assert_eq!(ran.err(), Some(error));
            return Ok(());
        }
        let (tokens, done) = ran.unwrap();
        let (expected, report, ends_whole) = definition(&set, &logits, (min_tokens, max_tokens), rule);
        prop_assert_eq!(&tokens, &expected);
        prop_assert_eq!(done.length, Some(report));
        let goes_on = tokens.len() == max_tokens && set.lengths(&tokens).any(|more| more > 0);
        let finish = if goes_on { Finish::MaxTokens } else { Finish::Complete };
        prop_assert_eq!(done.finish, finish);
        prop_assert!(done.is_accepting && (min_tokens..=max_tokens).contains(&tokens.len()));
        let (cut, other) = run(&set, &logits, (min_tokens, max_tokens), LengthRule::Cut).unwrap();
        prop_assert_eq!(other.length, None);
        if !ends_whole && (report.steered, report.leaning) == (0, 0) {
            prop_assert_eq!(cut, tokens);
        }
    }

    /// With tokens to spare a gentle sequence is the one without a rule.
    #[test]
    fn far_from_its_end_nothing_leans(set in generate::sequence_sets(), seed: u64) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades: 1000 };
        let max_tokens = 4 * set.max_len() + 4;
        let (gentle, done) = run(&set, &logits, (0, max_tokens), LengthRule::Gentle).unwrap();
        let (cut, _) = run(&set, &logits, (0, max_tokens), LengthRule::Cut).unwrap();
        prop_assert_eq!(gentle, cut);
        prop_assert_eq!(done.length.map(|length| (length.steered, length.leaning)), Some((0, 0)));
    }
}

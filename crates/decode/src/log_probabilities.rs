//! Log-probabilities of a choice among allowed tokens.

use palmette_core::{TokenId, mask};

use crate::exp::exp;

/// Log-probabilities at a choice, of those that the logits give the allowed tokens: they sum to 1
/// over these.
///
/// Bias, penalties, temperature and cuts of a [`Sampler`](crate::Sampler) are left out. Where
/// nothing constrains, they are the model's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogProbabilities {
    /// That of the token that was drawn.
    pub token: f32,
    /// The most likely tokens, best first, of equals the lowest.
    pub top: Vec<(TokenId, f32)>,
}

impl LogProbabilities {
    /// Log-probabilities of a token and of the `top` most likely ones. A forced token, which has no
    /// logits, has the log-probability 0.
    ///
    /// Cost: two passes over the allowed tokens.
    pub fn of(token: TokenId, logits: &[f32], allowed: &[u32], top: usize) -> Self {
        if logits.is_empty() {
            let top = if top == 0 { Vec::new() } else { vec![(token, 0.0)] };
            return Self { token: 0.0, top };
        }
        let all = || {
            let logit = |token: TokenId| Some((token, *logits.get(token.index())?));
            mask::iter(allowed).filter_map(logit)
        };
        let max = all().map(|(_, logit)| logit).fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = all().map(|(_, logit)| f64::from(exp(logit - max))).sum();
        let norm = f64::from(max) + sum.ln();
        let log_probability = |logit: f32| (f64::from(logit) - norm) as f32;
        let mut best = Vec::with_capacity(top + 1);
        likeliest(all(), top, &mut best);
        let own = logits.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY);
        let top = best.into_iter().map(|(token, logit)| (token, log_probability(logit))).collect();
        Self { token: log_probability(own), top }
    }
}

/// Writes the `top` tokens of the largest logits over `best`, best first, of equals the lowest
/// token.
///
/// Cost: one pass; nothing is allocated where `best` has room for one more.
pub fn likeliest(
    logits: impl Iterator<Item = (TokenId, f32)>,
    top: usize,
    best: &mut Vec<(TokenId, f32)>,
) {
    best.clear();
    let better = |a: &(TokenId, f32), b: &(TokenId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    for candidate in logits.filter(|_| top > 0) {
        if best.len() < top || best.last().is_some_and(|last| better(&candidate, last).is_lt()) {
            let place = best.partition_point(|kept| better(kept, &candidate).is_lt());
            best.insert(place, candidate);
            best.truncate(top);
        }
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::TokenMask;

    use super::*;

    #[test]
    fn they_are_normalised_over_the_allowed_tokens() {
        let logits = [1.0, 9.0, 0.0, 1.0, -2.0];
        let mut allowed = TokenMask::new(5);
        [0, 2, 3, 4].into_iter().for_each(|token| allowed.insert(TokenId(token)));
        let of = |top| LogProbabilities::of(TokenId(2), &logits, allowed.as_words(), top);
        let norm = [1.0_f64, 0.0, 1.0, -2.0].into_iter().map(f64::exp).sum::<f64>().ln();
        let close = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-6, "{a} {b}");
        close(of(0).token, -norm);
        let found = of(3);
        let tokens: Vec<u32> = found.top.iter().map(|(token, _)| token.0).collect();
        assert_eq!((tokens, of(0).top.len()), (vec![0, 3, 2], 0));
        found
            .top
            .iter()
            .zip([1.0, 1.0, 0.0])
            .for_each(|(&(_, log), logit)| close(log, logit - norm));
        let whole: f64 = of(9).top.iter().map(|&(_, log)| f64::from(log).exp()).sum();
        assert!((whole - 1.0).abs() < 1e-6, "{whole}");
    }

    #[test]
    fn a_forced_token_is_certain() {
        let found = LogProbabilities::of(TokenId(7), &[], &[1 << 7], 2);
        assert_eq!(found, LogProbabilities { token: 0.0, top: vec![(TokenId(7), 0.0)] });
    }
}

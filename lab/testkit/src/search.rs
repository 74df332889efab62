//! Searches as their definitions: exhaustive, and beam search by sorting everything.

use std::cmp::Ordering;

use palmette_core::TokenId;
use palmette_decode::log_sum_exp;

use crate::SequenceSet;
use crate::logits::TableLogits;

/// A sequence of the set with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// Sum of their log-probabilities.
    pub score: f32,
}

/// Scores every sequence of the set and sorts: by score, then the shorter, then by the place of
/// the parent prefix among equals (the same rule, one token shorter), then by the last token.
pub fn exhaustive(set: &SequenceSet, logits: &TableLogits) -> Vec<Scored> {
    let all = exhaustive_with_gains(set, logits, &|_| 0.0);
    all.into_iter().map(|(scored, _)| scored).collect()
}

/// [`exhaustive`] where sequences gain something besides their score: by the sum, which comes with
/// each. A parent's place is then that of its score and the largest gain of a sequence that begins
/// so.
pub fn exhaustive_with_gains(
    set: &SequenceSet,
    logits: &TableLogits,
    gain: &dyn Fn(&[TokenId]) -> f32,
) -> Vec<(Scored, f32)> {
    let bound = |prefix: &[TokenId]| {
        let begun = set.sequences().filter(|tokens| tokens.starts_with(prefix));
        begun.map(gain).fold(f32::NEG_INFINITY, f32::max)
    };
    let mut scored: Vec<(Scored, f32, Vec<f32>)> = set
        .sequences()
        .map(|tokens| {
            let scores = prefix_scores(tokens, logits);
            let score = scores.last().copied().unwrap_or(0.0);
            let totals = scores.iter().enumerate();
            let totals = totals.map(|(i, score)| score + bound(&tokens[..=i])).collect();
            (Scored { tokens: tokens.to_vec(), score }, score + gain(tokens), totals)
        })
        .collect();
    scored.sort_by(|(a, a_total, a_totals), (b, b_total, b_totals)| {
        b_total
            .total_cmp(a_total)
            .then(a.tokens.len().cmp(&b.tokens.len()))
            .then_with(|| compare_prefixes(a_totals, &a.tokens, b_totals, &b.tokens))
    });
    scored.into_iter().map(|(scored, total, _)| (scored, total)).collect()
}

/// Order of two prefixes of one length within a beam: total, parents' order, token.
fn compare_prefixes(a: &[f32], a_tokens: &[TokenId], b: &[f32], b_tokens: &[TokenId]) -> Ordering {
    let Some(last) = a.len().checked_sub(1) else { return Ordering::Equal };
    b[last]
        .total_cmp(&a[last])
        .then_with(|| {
            compare_prefixes(&a[..last], &a_tokens[..last], &b[..last], &b_tokens[..last])
        })
        .then(a_tokens[last].cmp(&b_tokens[last]))
}

fn prefix_scores(tokens: &[TokenId], logits: &TableLogits) -> Vec<f32> {
    let mut score = 0.0;
    (0..tokens.len())
        .map(|i| {
            let row = logits.row(&tokens[..i]);
            score = score + (row[tokens[i].index()] - log_sum_exp(&row)) + 0.0;
            score
        })
        .collect()
}

/// [`naive_scheduled_search`] as wide at every step.
pub fn naive_beam_search(set: &SequenceSet, logits: &TableLogits, width: usize) -> Vec<Scored> {
    naive_scheduled_search(set, logits, &vec![width; set.max_len().max(1)])
}

/// Beam search without any shortcut: lists every allowed extension of every live prefix, sorts them
/// all, keeps the step's width; runs until no prefix can be extended. The results are as many as
/// the last width.
///
/// # Panics
/// When there are fewer widths than tokens in a sequence, or none.
pub fn naive_scheduled_search(
    set: &SequenceSet,
    logits: &TableLogits,
    widths: &[usize],
) -> Vec<Scored> {
    naive_gaining_search(set, logits, widths, &|_| 0.0)
        .into_iter()
        .map(|(scored, _)| scored)
        .collect()
}

/// [`naive_scheduled_search`] where sequences gain something besides their score, which comes with
/// each result: prefixes are sorted by score plus the largest gain of a sequence that begins so,
/// results by score plus gain.
///
/// # Panics
/// As [`naive_scheduled_search`].
pub fn naive_gaining_search(
    set: &SequenceSet,
    logits: &TableLogits,
    widths: &[usize],
    gain: &dyn Fn(&[TokenId]) -> f32,
) -> Vec<(Scored, f32)> {
    let bound = |prefix: &[TokenId]| {
        let begun = set.sequences().filter(|tokens| tokens.starts_with(prefix));
        begun.map(gain).fold(f32::NEG_INFINITY, f32::max)
    };
    let mut step = 0;
    let is_result = |tokens: &[TokenId]| set.sequences().any(|s| s == tokens);
    let mut live = vec![Scored { tokens: Vec::new(), score: 0.0 }];
    let mut results: Vec<Scored> = live.iter().filter(|s| is_result(&s.tokens)).cloned().collect();
    while !live.is_empty() {
        let mut extensions = Vec::new();
        for (parent, hypothesis) in live.iter().enumerate() {
            let row = logits.row(&hypothesis.tokens);
            for token in set.allowed(&hypothesis.tokens) {
                let score = hypothesis.score + (row[token.index()] - log_sum_exp(&row)) + 0.0;
                let longer = [&hypothesis.tokens[..], &[token]].concat();
                extensions.push((score + bound(&longer), parent, token, score));
            }
        }
        extensions.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        if !extensions.is_empty() {
            extensions.truncate(widths[step]);
        }
        step += 1;
        live = extensions
            .into_iter()
            .map(|(_, parent, token, score)| {
                let tokens = [&live[parent].tokens[..], &[token]].concat();
                Scored { tokens, score }
            })
            .collect();
        results.extend(live.iter().filter(|s| is_result(&s.tokens)).cloned());
        // Ended prefixes do not count as parents: drop them as rows, keeping the others' order.
        live.retain(|s| !set.allowed(&s.tokens).is_empty());
    }
    // A stable sort keeps the order of discovery among equals.
    let mut results: Vec<(Scored, f32)> =
        results.into_iter().map(|scored| (scored.clone(), gain(&scored.tokens))).collect();
    results.sort_by(|a, b| (b.0.score + b.1).total_cmp(&(a.0.score + a.1)));
    results.truncate(widths[widths.len() - 1]);
    results
}

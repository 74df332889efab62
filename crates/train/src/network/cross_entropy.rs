//! Cross-entropy of a softmax against a target token, with label smoothing.

use palmette_model::kernels::{exp, max, sum};

/// Returns the loss of one row of logits, `[V]`, and replaces the row by `scale` times its
/// gradient.
///
/// The wanted distribution is `(1 − smoothing)` on `target` plus `smoothing / V` everywhere. With
/// p = softmax(logits), the gradient is p minus that distribution.
pub(crate) fn forward_backward_row(
    logits: &mut [f32],
    target: u32,
    smoothing: f32,
    scale: f32,
) -> f64 {
    let vocab = logits.len() as f32;
    let target = target as usize;
    let max = max(logits);
    let target_logit = logits[target] - max;
    let mean_logit = if smoothing > 0.0 { sum(logits) / vocab - max } else { 0.0 };
    for logit in logits.iter_mut() {
        *logit = exp(*logit - max);
    }
    let sum = sum(logits);
    let (factor, offset) = (scale / sum, scale * smoothing / vocab);
    for value in logits.iter_mut() {
        *value = *value * factor - offset;
    }
    logits[target] -= scale * (1.0 - smoothing);
    let wanted = (1.0 - smoothing) * target_logit + smoothing * mean_logit;
    f64::from(sum).ln() - f64::from(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{check_gradient, floats, reference, to_f64};

    #[test]
    fn gradients_match_the_definition() {
        for smoothing in [0.0, 0.1, 0.7] {
            let logits: Vec<f32> = floats(37, 1).iter().map(|x| x * 5.0).collect();
            let mut d = logits.clone();
            let loss = forward_backward_row(&mut d, 5, smoothing, 0.25);
            let exact = |x: &[f64]| reference::cross_entropy(x, 5, f64::from(smoothing));
            let x = to_f64(&logits);
            assert!((loss - exact(&x)).abs() < 1e-6, "{loss} {}", exact(&x));
            check_gradient("d_logits", &d, &x, |x| 0.25 * exact(x));
        }
    }

    #[test]
    fn not_a_number_is_not_hidden() {
        for place in [0, 20, 36] {
            let mut logits = floats(37, 1);
            logits[place] = f32::NAN;
            assert!(forward_backward_row(&mut logits, 5, 0.0, 1.0).is_nan());
        }
    }
}

//! Maximal marginal relevance over found items.

use palmette_catalog_live::CatalogView;

use super::Diversity;
use crate::recommended::Recommended;

/// Ranks items again and keeps `k`; pinned items are always among them. Of equal values the one
/// that was found first is taken. Cost: a similarity for each of the items and each that is kept.
pub(crate) fn diversified(
    view: &CatalogView,
    items: Vec<Recommended>,
    k: usize,
    diversity: Diversity,
) -> Vec<Recommended> {
    let codes: Vec<Vec<u32>> = items.iter().map(|item| view.codes(item.number)).collect();
    let mut nearest = vec![0.0; items.len()];
    let mut left: Vec<usize> = (0..items.len()).collect();
    let mut kept = Vec::with_capacity(k.min(items.len()));
    while kept.len() < k && !left.is_empty() {
        let pins = left.iter().filter(|&&at| items[at].pinned).count();
        // The last places are for pinned items that have none yet.
        let only_pins = k - kept.len() <= pins;
        let candidates = left.iter().enumerate().filter(|&(_, &at)| !only_pins || items[at].pinned);
        let value = |at: usize| {
            diversity.lambda * f64::from(items[at].score) - (1.0 - diversity.lambda) * nearest[at]
        };
        let best = candidates.max_by(|(a_place, a), (b_place, b)| {
            value(**a).total_cmp(&value(**b)).then(b_place.cmp(a_place))
        });
        let Some((place, &chosen)) = best else { break };
        left.remove(place);
        kept.push(items[chosen]);
        for &at in &left {
            nearest[at] = f64::max(nearest[at], similarity(&codes[at], &codes[chosen]));
        }
    }
    kept
}

/// The shared prefix of two semantic IDs as a share of the longer.
fn similarity(a: &[u32], b: &[u32]) -> f64 {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    shared as f64 / a.len().max(b.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::similarity;

    #[test]
    fn similarity_is_the_shared_share() {
        assert_eq!(similarity(&[1, 2, 3], &[1, 2, 3]), 1.0);
        assert_eq!(similarity(&[1, 2, 3, 4], &[1, 2, 4, 4]), 0.5);
        assert_eq!(similarity(&[1, 2], &[1, 2, 3, 4]), 0.5);
        assert_eq!(similarity(&[1], &[2]), 0.0);
        assert_eq!(similarity(&[], &[]), 0.0);
    }
}

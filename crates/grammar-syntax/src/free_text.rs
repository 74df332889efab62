//! Free text up to the first of some texts that end it.

use crate::Regex;

/// Texts that hold none of `stops` and do not have one across their end, where one of `next`
/// follows.
///
/// A stop that begins with what another ends with could follow a text that ends so and yet stand
/// earlier; such ends are left out.
pub(super) fn without(stops: &[&str], next: &[&str]) -> Regex {
    if stops.is_empty() {
        return Regex::anything();
    }
    let holds = stops
        .iter()
        .map(|stop| Regex::concat([Regex::anything(), Regex::literal(stop), Regex::anything()]));
    let ends = next.iter().flat_map(|later| {
        let early = stops.iter().flat_map(|stop| overlaps(stop, later));
        early.map(|end| Regex::concat([Regex::anything(), Regex::literal(end)]))
    });
    Regex::complement(Regex::alternate(holds.chain(ends)))
}

/// The beginnings `p` of `stop`, not whole, such that `stop` stands in `p later` before `later`
/// does, and ends within it.
fn overlaps<'s>(stop: &'s str, later: &'s str) -> impl Iterator<Item = &'s str> {
    let cuts = stop.char_indices().map(|(at, _)| at).skip(1);
    cuts.filter(|&cut| later.starts_with(&stop[cut..])).map(|cut| &stop[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_ends_after_which_a_stop_would_stand_early() {
        let found = |stop, later| overlaps(stop, later).collect::<Vec<_>>();
        assert_eq!(found("aa", "aa"), ["a"]);
        assert_eq!(found("aba", "aba"), ["ab"]);
        assert_eq!(found("<f", "<f"), [""; 0]);
        assert_eq!(found("x<", "<f"), ["x"]);
    }
}

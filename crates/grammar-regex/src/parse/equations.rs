//! Systems of equations between sets of texts.

use crate::Regex;

/// The first unknown of the system `x[i] = ends[i] | ways[i][0] x[0] | ways[i][1] x[1] | …`.
pub(super) fn solve(mut ways: Vec<Vec<Regex>>, mut ends: Vec<Regex>) -> Regex {
    // From the last to the first: x = w x | e is w* e, which is put into those before.
    for at in (0..ends.len()).rev() {
        let again = match &ways[at][at] {
            Regex::Never | Regex::Empty => Regex::Empty,
            again => again.clone().repeat(0, None),
        };
        ends[at] = then(again.clone(), ends[at].clone());
        for to in 0..at {
            ways[at][to] = then(again.clone(), ways[at][to].clone());
        }
        for from in 0..at {
            let here = ways[from][at].clone();
            ends[from] = alternate([ends[from].clone(), then(here.clone(), ends[at].clone())]);
            for to in 0..at {
                let through = then(here.clone(), ways[at][to].clone());
                ways[from][to] = alternate([ways[from][to].clone(), through]);
            }
        }
    }
    ends.swap_remove(0)
}

/// The concatenation of two, without nesting where `rest` is a sequence.
pub(super) fn then(first: Regex, rest: Regex) -> Regex {
    match &rest {
        Regex::Concat(parts) => Regex::concat([first].into_iter().chain(parts.iter().cloned())),
        _ => Regex::concat([first, rest]),
    }
}

/// The union of options, each once.
pub(super) fn alternate(options: impl IntoIterator<Item = Regex>) -> Regex {
    let mut kept: Vec<Regex> = Vec::new();
    for option in options {
        // Comparing all would cost too much where there are many; none is lost.
        if !kept.iter().take(16).any(|known| *known == option) {
            kept.push(option);
        }
    }
    if kept.contains(&Regex::Empty) {
        // A lookaround matches the empty text at some places: it adds nothing.
        kept.retain(|option| !matches!(option, Regex::Look { .. }));
    }
    Regex::alternate(kept)
}

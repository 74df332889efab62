//! Ends of the lexemes of a regular expression.

use std::collections::BTreeSet;

use palmette_grammar_parser::Regex;

use crate::grammar::regex::ends;

/// Ends of lexemes that begin at `begin`, of a terminal with this regular expression. They are
/// those of the definition, or, with reluctant quantifiers, the one where a backtracking matcher
/// ends.
///
/// Cost: exponential.
pub fn lexeme_ends(regex: &Regex, text: &[char], begin: usize) -> BTreeSet<usize> {
    let tried = ends(regex, text, begin).into_iter();
    if is_reluctant(regex) { tried.take(1).collect() } else { tried.collect() }
}

fn is_reluctant(regex: &Regex) -> bool {
    match regex {
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Tokens(_) => false,
        Regex::Look { .. } | Regex::Whole(_) => false,
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(is_reluctant)
        }
        Regex::Repeat { inner, reluctant, .. } => *reluctant || is_reluctant(inner),
        Regex::Not(inner) => is_reluctant(inner),
    }
}

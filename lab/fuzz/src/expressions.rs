//! Simple questions to regular expressions, answered by the definition.

use palmette_grammar::Regex;

/// True if the empty text is matched, as far as no lookaround decides it.
pub fn matches_empty(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Literal(_) | Regex::Class(_) | Regex::Tokens(_) => false,
        Regex::Multiple(of) => of.may_end(),
        Regex::Empty | Regex::Look { .. } => true,
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(matches_empty),
        Regex::Alternate(options) => options.iter().any(matches_empty),
        Regex::Repeat { inner, min, .. } => *min == 0 || matches_empty(inner),
        Regex::Not(inner) => !matches_empty(inner),
        Regex::Whole(inner) => matches_empty_alone(inner),
    }
}

/// True if the empty text is matched where nothing is beside it.
fn matches_empty_alone(regex: &Regex) -> bool {
    match regex {
        Regex::Look { inner, negated, .. } => matches_empty_alone(inner) != *negated,
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(matches_empty_alone),
        Regex::Alternate(options) => options.iter().any(matches_empty_alone),
        Regex::Repeat { inner, min, .. } => *min == 0 || matches_empty_alone(inner),
        Regex::Not(inner) => !matches_empty_alone(inner),
        _ => matches_empty(regex),
    }
}

/// True if a lookaround is left anywhere but in a text by itself.
pub fn has_look(regex: &Regex) -> bool {
    match regex {
        Regex::Look { .. } => true,
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Whole(_)
        | Regex::Tokens(_) => false,
        Regex::Repeat { inner, .. } | Regex::Not(inner) => has_look(inner),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(has_look)
        }
    }
}

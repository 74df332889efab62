//! Splits the empty text off a terminal.

use palmette_grammar_regex::parse::restrict::is_nullable;

use crate::{CharClass, Regex};

/// True when a regular expression matches the empty text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Emptiness {
    Never,
    /// Match where what follows (or precedes) allows it.
    Sometimes,
    Always,
}

/// True when the empty text is matched.
pub(super) fn emptiness(regex: &Regex) -> Emptiness {
    let all = |parts: &[Regex]| parts.iter().map(emptiness).min().unwrap_or(Emptiness::Always);
    match regex {
        Regex::Never | Regex::Literal(_) | Regex::Class(_) | Regex::Tokens(_) => Emptiness::Never,
        Regex::Empty => Emptiness::Always,
        Regex::Multiple(of) if of.may_end() => Emptiness::Always,
        Regex::Multiple(_) => Emptiness::Never,
        Regex::Look { .. } => Emptiness::Sometimes,
        Regex::Concat(parts) | Regex::And(parts) => all(parts),
        Regex::Alternate(options) => {
            options.iter().map(emptiness).max().unwrap_or(Emptiness::Never)
        }
        Regex::Repeat { min: 0, .. } => Emptiness::Always,
        Regex::Repeat { inner, .. } => emptiness(inner),
        Regex::Whole(_) if is_nullable(regex) => Emptiness::Always,
        Regex::Whole(_) => Emptiness::Never,
        Regex::Not(inner) => match emptiness(inner) {
            Emptiness::Never => Emptiness::Always,
            Emptiness::Sometimes => Emptiness::Sometimes,
            Emptiness::Always => Emptiness::Never,
        },
    }
}

/// The texts that are not empty; [`Regex::Never`] if there seem to be none.
pub(super) fn non_empty(regex: &Regex) -> Regex {
    if emptiness(regex) == Emptiness::Never {
        return regex.clone();
    }
    match regex {
        Regex::Alternate(options) => Regex::alternate(options.iter().map(non_empty)),
        Regex::Repeat { inner, max, reluctant, .. } => {
            let mut repeat = non_empty(inner).repeat(1, *max);
            if let Regex::Repeat { reluctant: kept, .. } = &mut repeat
                && *max != Some(1)
            {
                *kept = *reluctant;
            }
            if matches!(&repeat, Regex::Repeat { inner, .. } if **inner == Regex::Never) {
                return Regex::Never;
            }
            repeat
        }
        Regex::Concat(parts) => {
            // By the first part that is not empty; conditions on places before it stay.
            let from = |first: usize| {
                let conditions =
                    parts[..first].iter().filter(|part| emptiness(part) == Emptiness::Sometimes);
                let rest = parts[first + 1..].iter().cloned();
                Regex::concat(conditions.cloned().chain([non_empty(&parts[first])]).chain(rest))
            };
            Regex::alternate((0..parts.len()).map(from))
        }
        Regex::And(_) | Regex::Not(_) | Regex::Whole(_) => {
            Regex::and([regex.clone(), Regex::Class(CharClass::any()).repeat(1, None)])
        }
        _ => Regex::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palmette_grammar_regex::parse::{Dialect, Flags, parse};

    fn read(pattern: &str) -> Regex {
        parse(pattern, Dialect::Python, Flags::default()).expect("a regular expression")
    }

    #[track_caller]
    fn check(pattern: &str, expected: &str) {
        assert_eq!(non_empty(&read(pattern)), read(expected), "{pattern}");
    }

    #[test]
    fn what_is_left_keeps_its_form() {
        check("x+", "x+");
        check("x*", "x+");
        check("x*?", "x+?");
        check("(x*){2,5}", "(x+){1,5}");
        check("a?b*", "ab*|b+");
        check("a|b*|", "a|b+");
        assert_eq!(non_empty(&read("()")), Regex::Never);
    }

    #[test]
    fn lookarounds_match_the_empty_text_at_times() {
        assert_eq!(emptiness(&read("(?=x)")), Emptiness::Sometimes);
        assert_eq!(emptiness(&read("(?=x)y*")), Emptiness::Sometimes);
        assert_eq!(emptiness(&read("(?=x)|y*")), Emptiness::Always);
        assert_eq!(emptiness(&read("(?=x)y")), Emptiness::Never);
        check("(?=xx)x*", "(?=xx)x+");
    }
}

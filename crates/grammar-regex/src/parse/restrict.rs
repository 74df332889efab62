//! Parts of a set of texts by their first and last character, for trees without lookarounds.

use super::syntax::class_regex;
use crate::{CharClass, Regex};

/// True when the empty text is matched.
pub fn is_nullable(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Literal(_) | Regex::Class(_) | Regex::Tokens(_) => false,
        Regex::Empty | Regex::Look { .. } => true,
        Regex::Multiple(of) => of.may_end(),
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(is_nullable),
        Regex::Alternate(options) => options.iter().any(is_nullable),
        Regex::Repeat { inner, min, .. } => *min == 0 || is_nullable(inner),
        Regex::Not(inner) => !is_nullable(inner),
        Regex::Whole(inner) => matches_nothing_alone(inner),
    }
}

/// True when the empty text is matched where nothing is beside it.
fn matches_nothing_alone(regex: &Regex) -> bool {
    match regex {
        Regex::Look { inner, negated, .. } => matches_nothing_alone(inner) != *negated,
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(matches_nothing_alone),
        Regex::Alternate(options) => options.iter().any(matches_nothing_alone),
        Regex::Repeat { inner, min, .. } => *min == 0 || matches_nothing_alone(inner),
        Regex::Not(inner) => !matches_nothing_alone(inner),
        _ => is_nullable(regex),
    }
}

/// The texts that are not empty.
pub fn non_empty(regex: &Regex) -> Regex {
    if !is_nullable(regex) {
        return regex.clone();
    }
    match regex {
        Regex::Alternate(options) => Regex::alternate(options.iter().map(non_empty)),
        Regex::Repeat { inner, max, .. } => non_empty(inner).repeat(1, *max),
        Regex::Concat(parts) => {
            // Every part may be empty: the first that is not.
            Regex::alternate((0..parts.len()).map(|first| {
                let rest = parts[first + 1..].iter().cloned();
                Regex::concat([non_empty(&parts[first])].into_iter().chain(rest))
            }))
        }
        Regex::And(_) | Regex::Not(_) | Regex::Multiple(_) | Regex::Whole(_) => {
            Regex::and([regex.clone(), Regex::Class(CharClass::any()).repeat(1, None)])
        }
        _ => Regex::Never,
    }
}

/// The texts that begin with a character of the class.
pub(super) fn with_first(regex: &Regex, class: &CharClass) -> Regex {
    let simple = |text: &str| text.chars().next().is_some_and(|first| class.contains(first));
    restrict(regex, class, &simple, false)
}

/// The texts that end with a character of the class.
pub(super) fn with_last(regex: &Regex, class: &CharClass) -> Regex {
    let simple = |text: &str| text.chars().next_back().is_some_and(|last| class.contains(last));
    restrict(regex, class, &simple, true)
}

fn restrict(
    regex: &Regex,
    class: &CharClass,
    text_is_kept: &dyn Fn(&str) -> bool,
    last: bool,
) -> Regex {
    let again = |inner: &Regex| restrict(inner, class, text_is_kept, last);
    // What is restricted and what stands beside it, in the order of the text.
    let beside = |restricted: Regex, others: Vec<Regex>| match last {
        false => Regex::concat([restricted].into_iter().chain(others)),
        true => Regex::concat(others.into_iter().chain([restricted])),
    };
    match regex {
        Regex::Never | Regex::Empty | Regex::Tokens(_) => Regex::Never,
        Regex::Literal(text) => {
            if text_is_kept(text) {
                regex.clone()
            } else {
                Regex::Never
            }
        }
        Regex::Class(chars) => class_regex(&chars.intersection(class)),
        Regex::Alternate(options) => Regex::alternate(options.iter().map(again)),
        Regex::Concat(parts) => {
            let mut options = Vec::new();
            // Parts beyond the first that cannot be empty are never at the end in question.
            for step in 0..parts.len() {
                let at = if last { parts.len() - 1 - step } else { step };
                let others = if last { &parts[..at] } else { &parts[at + 1..] };
                options.push(beside(again(&parts[at]), others.to_vec()));
                if !is_nullable(&parts[at]) {
                    break;
                }
            }
            Regex::alternate(options)
        }
        Regex::Repeat { inner, min, max, .. } => {
            // Where the repeated may be empty, all of the least number but one may be.
            let (unit, min) = match is_nullable(inner) {
                true => (non_empty(inner), 0),
                false => ((**inner).clone(), min.saturating_sub(1)),
            };
            let restricted = again(&unit);
            let max = max.map(|max| max.saturating_sub(1));
            beside(restricted, vec![unit.repeat(min, max)])
        }
        Regex::And(_)
        | Regex::Not(_)
        | Regex::Multiple(_)
        | Regex::Whole(_)
        | Regex::Look { .. } => {
            Regex::and([regex.clone(), beside(class_regex(class), vec![Regex::anything()])])
        }
    }
}

//! Texts in quotes and regular expressions.

use std::ops::Range;

use palmette_grammar_regex::parse::{Dialect, Flags, Note, Reading, RegexError, parse_noting};

use super::{error::Problems, syntax::Expr};
use crate::Regex;

/// `"text"` or `"text"i`.
pub(super) fn text(range: &Range<usize>, problems: &mut Problems<'_>) -> Option<Expr> {
    let (text, ignore_case) = unquoted(range, problems)?;
    if text.is_empty() {
        return Some(Expr::Sequence(Vec::new()));
    }
    let regex = if ignore_case {
        let ignore_case = Flags { ignore_case: true, ..Flags::default() };
        match read(&escaped(&text), ignore_case, problems)? {
            Ok((regex, _)) => regex,
            Err(error) => {
                problems.add(range, error.message);
                return None;
            }
        }
    } else {
        Regex::literal(&text)
    };
    Some(Expr::Literal { text, regex, ignore_case, range: range.clone() })
}

/// The one character of a range's end, `"a"`.
pub(super) fn character(range: &Range<usize>, problems: &mut Problems<'_>) -> Option<char> {
    let (text, ignore_case) = unquoted(range, problems)?;
    let mut chars = text.chars();
    match (chars.next(), chars.next(), ignore_case) {
        (Some(only), None, false) => Some(only),
        (_, _, true) => {
            problems.add(range, "a range cannot ignore case: write a regular expression, /[a-z]/i");
            None
        }
        _ => {
            problems.add(range, "each end of a range is one character");
            None
        }
    }
}

/// `/regex/flags`
pub(super) fn pattern(range: &Range<usize>, problems: &mut Problems<'_>) -> Option<Expr> {
    let source = &problems.source.text[range.clone()];
    let close = source.rfind('/').filter(|&close| close > 0)?;
    let (inner, letters) = (&source[1..close], &source[close + 1..]);
    let read = match Flags::from_letters(letters) {
        Ok(flags) => read(inner, flags, problems)?.map_err(|error| (1, error)),
        Err(error) => Err((close + 1, error)),
    };
    match read {
        Ok((regex, notes)) => {
            for note in notes {
                let at = (range.start + 1 + note.offset).min(range.end);
                problems.warn(
                    &(at..range.end),
                    format!("in this regular expression: {}", note.message),
                );
            }
            Some(Expr::Regex { regex, range: range.clone() })
        }
        Err((from, error)) => {
            let at = (range.start + from + error.offset).min(range.end);
            let end = problems.source.text[at..range.end].chars().next().map_or(0, char::len_utf8);
            problems.add(&(at..at + end), format!("in this regular expression: {}", error.message));
            None
        }
    }
}

/// A regular expression, and notes on it; `None` when the budget is used up.
fn read(
    source: &str,
    flags: Flags,
    problems: &mut Problems<'_>,
) -> Option<Result<(Regex, Vec<Note>), RegexError>> {
    let (dialect, mut notes) = (Dialect::Python, Vec::new());
    let into = (&mut problems.budget, &mut notes);
    let read = parse_noting(source, dialect, flags, Reading::Lexeme, into);
    if let Err(RegexError { interrupted: Some(why), .. }) = read {
        problems.interrupt(why);
        return None;
    }
    Some(read.map(|regex| (regex, notes)))
}

/// Meaning of a text in quotes, and whether `i` follows it.
///
/// `\n`, `\t`, `\r`, `\f`, `\xHH`, `\uHHHH` and `\UHHHHHHHH` are characters, `\"` and `\\` what
/// they hide; before anything else a backslash is a backslash.
fn unquoted(range: &Range<usize>, problems: &mut Problems<'_>) -> Option<(String, bool)> {
    let source = &problems.source.text[range.clone()];
    let ignore_case = source.ends_with("\"i") && source.len() > 2;
    let end = source.len() - usize::from(ignore_case);
    let inner = source.get(1..end.checked_sub(1)?)?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.char_indices();
    while let Some((at, c)) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let digits = match rest.next() {
            Some((_, 'n')) => {
                text.push('\n');
                continue;
            }
            Some((_, 't')) => {
                text.push('\t');
                continue;
            }
            Some((_, 'r')) => {
                text.push('\r');
                continue;
            }
            Some((_, 'f')) => {
                text.push('\u{C}');
                continue;
            }
            Some((_, hidden @ ('"' | '\\'))) => {
                text.push(hidden);
                continue;
            }
            Some((_, 'x')) => 2,
            Some((_, 'u')) => 4,
            Some((_, 'U')) => 8,
            Some((_, other)) => {
                text.extend(['\\', other]);
                continue;
            }
            None => return None,
        };
        let number = inner.get(at + 2..at + 2 + digits).filter(|hex| !hex.starts_with('+'));
        let named =
            number.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let Some(named) = named else {
            let from = range.start + 1 + at;
            problems.add(
                &(from..from + 2),
                format!(
                    "after this come {digits} hexadecimal digits that name a character of Unicode"
                ),
            );
            return None;
        };
        text.push(named);
        rest.nth(digits - 1);
    }
    Some((text, ignore_case))
}

/// The regular expression for just this text.
fn escaped(text: &str) -> String {
    let special = |c: char| c.is_ascii_punctuation();
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

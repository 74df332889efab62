//! Cuts a grammar's text into words.

use std::ops::Range;

use super::error::Problems;
use super::word_lengths::{
    digits, embedded_length, fits_on_lines, flags, line_length, number_length, quoted, word_length,
};
use crate::token_references;

/// Kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `lower_case`
    RuleName,
    /// `UPPER_CASE`
    TerminalName,
    /// `"text"`, with or without an `i` after it.
    Text,
    /// `/regex/flags`
    Pattern,
    /// `<|name|>`, `<[7]>`: tokens by name or number
    Tokens,
    /// `12`, `-3`
    Number,
    /// `%json {…}` and its like
    Embedded,
    /// `%word`
    Directive,
    /// Line breaks that may end a definition: those before a `|` are none.
    Newline,
    /// `->`
    Arrow,
    /// `..`
    DotDot,
    /// Any other mark, as it is.
    Mark(char),
    /// The end of the source.
    End,
}

/// A word of a grammar: `text[range]`.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// Cost of cutting a word off.
const UNITS_PER_WORD: usize = 8;

/// The words of a grammar, closed by [`Kind::End`]. What is none is reported and left out.
pub(super) fn cut(problems: &mut Problems<'_>) -> Vec<Word> {
    let text = problems.source.text;
    let mut words: Vec<Word> = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if problems.spend(UNITS_PER_WORD).is_none() {
            break;
        }
        let rest = &text[at..];
        let (kind, length) = match next {
            '\n' if words.last().is_some_and(|word| word.kind == Kind::Newline) => {
                at += 1;
                continue;
            }
            '\n' => (Kind::Newline, 1),
            _ if next.is_whitespace() || next == '\u{FEFF}' => {
                at += next.len_utf8();
                continue;
            }
            '#' => {
                at += line_length(rest);
                continue;
            }
            '/' if rest.starts_with("//") => {
                at += line_length(rest);
                continue;
            }
            '\\' => {
                let blanks = rest[1..].bytes().take_while(|byte| matches!(byte, b' ' | b'\r'));
                let end = 1 + blanks.count();
                if !rest[end..].starts_with('\n') {
                    problems.add(&(at..at + 1), "a backslash may only end a line");
                }
                // The line goes on: the line break is no word.
                at += end + usize::from(rest[end..].starts_with('\n'));
                continue;
            }
            '|' => {
                words.pop_if(|word| word.kind == Kind::Newline);
                (Kind::Mark('|'), 1)
            }
            '"' => match quoted(rest, '"') {
                Some(end) if !rest[..end].contains('\n') => {
                    (Kind::Text, end + usize::from(rest[end..].starts_with('i')))
                }
                _ => {
                    let end = line_length(rest);
                    problems.add(
                        &(at..at + end),
                        "a text in quotes that does not end on its line: close it with `\"` (a quote inside \
                         is `\\\"`, a backslash `\\\\`, a line break `\\n`)",
                    );
                    (Kind::Text, end)
                }
            },
            '/' => match quoted(rest, '/') {
                Some(end) if fits_on_lines(rest, end) => (Kind::Pattern, end + flags(rest, end)),
                _ => {
                    let end = line_length(rest);
                    problems.add(
                        &(at..at + end),
                        "a regular expression that does not end on its line: close it with `/` (a slash inside is \
                         `\\/`); only one with the flag `x` may have several lines",
                    );
                    (Kind::Pattern, end)
                }
            },
            '<' => match token_references::read(rest) {
                Ok((_, length)) => (Kind::Tokens, length),
                Err(rule) => {
                    let end = line_length(rest);
                    problems.add(&(at..at + end), rule);
                    at += end;
                    continue;
                }
            },
            '%' if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic()) => {
                match embedded_length(rest) {
                    None => (Kind::Directive, 1 + word_length(&rest[1..])),
                    Some(Ok(length)) => (Kind::Embedded, length),
                    Some(Err(rule)) => {
                        problems.add(&(at..at + 1 + word_length(&rest[1..])), rule);
                        break;
                    }
                }
            }
            '-' if rest.starts_with("->") => (Kind::Arrow, 2),
            '.' if rest.starts_with("..") => (Kind::DotDot, 2),
            '0'..='9' => (Kind::Number, number_length(rest)),
            '+' | '-' if digits(&rest[1..]) > 0 => (Kind::Number, 1 + digits(&rest[1..])),
            // The number of a parametric rule.
            '_' if word_length(rest) == 1 => (Kind::Mark('_'), 1),
            '_' | 'a'..='z' | 'A'..='Z' => {
                let length = word_length(rest);
                (name_kind(&rest[..length], at, problems), length)
            }
            ':' | ',' | '.' | '~' | '(' | ')' | '[' | ']' | '{' | '}' | '?' | '*' | '+' | '!'
            | '&' | '=' => (Kind::Mark(next), 1),
            _ => {
                let message = match next {
                    '@' => "`@` (a grammar of another name) is not supported: put its rules into this one".to_owned(),
                    '\'' => "texts are written in double quotes: \"…\"".to_owned(),
                    _ => format!("{next:?} has no meaning here: put text in double quotes"),
                };
                problems.add(&(at..at + next.len_utf8()), message);
                at += next.len_utf8();
                continue;
            }
        };
        words.push(Word { kind, range: at..at + length });
        at += length;
    }
    words.push(Word { kind: Kind::End, range: text.len()..text.len() });
    words
}

fn name_kind(name: &str, at: usize, problems: &mut Problems<'_>) -> Kind {
    let bare = name.strip_prefix('_').unwrap_or(name);
    let lower = bare.starts_with(|c: char| c.is_ascii_lowercase());
    let upper = bare.starts_with(|c: char| c.is_ascii_uppercase());
    let mixed = |is: fn(&u8) -> bool| bare.as_bytes().iter().any(is);
    let fine = if lower {
        !mixed(u8::is_ascii_uppercase)
    } else {
        upper && !mixed(u8::is_ascii_lowercase)
    };
    if !fine {
        problems.add(
            &(at..at + name.len()),
            format!(
                "`{name}` is neither a rule (lower_case) nor a terminal (UPPER_CASE); at most one `_` may come first"
            ),
        );
    }
    if lower { Kind::RuleName } else { Kind::TerminalName }
}

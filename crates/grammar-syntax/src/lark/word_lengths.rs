//! Lengths of the words that a text begins with.

use crate::Budget;
use crate::json_schema::JsonSchemaLimits;
use crate::json_schema::source::value_length;

/// The length of the word that begins with a directive and has a grammar in braces after it; `None`
/// for other directives.
///
/// # Errors
/// The rule that it breaks.
pub(super) fn embedded_length(source: &str) -> Option<Result<usize, String>> {
    let (directive, rest) =
        source.split_at(source[1..].find(|c: char| !c.is_ascii_alphabetic())? + 1);
    let blanks = rest.len() - rest.trim_start().len();
    let inside = &rest[blanks..];
    if !inside.starts_with('{') {
        return None;
    }
    let before = directive.len() + blanks;
    match directive {
        "%json" | "%regex" | "%catalog" | "%substring" => {
            Some(json_length(inside).map(|length| before + length))
        }
        "%lark" => Some(match braces_length(inside) {
            Some(length) => Ok(before + length),
            None => Err("a grammar in braces, `%lark {…}`, that is not closed by `}`".to_owned()),
        }),
        _ => None,
    }
}

fn json_length(source: &str) -> Result<usize, String> {
    let depth = JsonSchemaLimits::default().max_depth;
    value_length(source, depth, &mut Budget::unlimited())
        .map_err(|error| format!("after this comes a JSON object, and it is none: {error}"))
}

/// The length of a text in braces; those in quotes, regular expressions and comments do not count.
fn braces_length(source: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(next) = source[at..].chars().next() {
        let rest = &source[at..];
        at += match next {
            '"' => quoted(rest, '"')?,
            '#' => line_length(rest),
            '/' if rest.starts_with("//") => line_length(rest),
            '/' => quoted(rest, '/')?,
            '{' => {
                depth += 1;
                1
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
                1
            }
            other => other.len_utf8(),
        };
    }
    None
}

/// Length of what `delimiter` opens, both delimiters counted; a backslash takes the next character
/// along.
pub(super) fn quoted(rest: &str, delimiter: char) -> Option<usize> {
    let mut inner = rest.char_indices().skip(1);
    while let Some((at, c)) = inner.next() {
        if c == '\\' {
            inner.next();
        } else if c == delimiter {
            return Some(at + 1);
        }
    }
    None
}

/// True when the regular expression in `rest[..end]` has one line, or the flag that lets it have
/// more.
pub(super) fn fits_on_lines(rest: &str, end: usize) -> bool {
    !rest[..end].contains('\n') || rest[end..end + flags(rest, end)].contains('x')
}

/// The length of the flags after a regular expression.
pub(super) fn flags(rest: &str, end: usize) -> usize {
    rest[end..].bytes().take_while(|byte| b"imslux".contains(byte)).count()
}

/// The length up to the line's end.
pub(super) fn line_length(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// The length of a name: letters, digits and underscores, with hyphens between them.
pub(super) fn word_length(rest: &str) -> usize {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = rest.as_bytes();
    let goes_on = |&(at, &byte): &(usize, &u8)| {
        is_word(byte) || byte == b'-' && bytes.get(at + 1).is_some_and(|&next| is_word(next))
    };
    bytes.iter().enumerate().take_while(goes_on).count()
}

/// The length of a number, decimal or after `0x` hexadecimal.
pub(super) fn number_length(rest: &str) -> usize {
    let hex = rest
        .strip_prefix("0x")
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
    if hex > 0 { 2 + hex } else { digits(rest) }
}

/// The length of decimal digits.
pub(super) fn digits(rest: &str) -> usize {
    rest.bytes().take_while(u8::is_ascii_digit).count()
}

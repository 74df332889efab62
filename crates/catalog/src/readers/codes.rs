//! The text of codes and semantic IDs, before anything is known about other items.

use super::error::shorten;
use crate::index::MAX_CODE;

/// Reads the codes of a semantic ID, or of a prefix of one, that stand alone: `<a_1><b_2>`, `1 2`,
/// `1-2` or `1,2`. Blank text has none. The letters of `<a_1>` are read over.
///
/// ```
/// use palmette_catalog::readers::parse_codes;
///
/// assert_eq!(parse_codes("12-1-26")?, [12, 1, 26]);
/// assert_eq!(parse_codes("<a_12><b_1>")?, [12, 1]);
/// assert!(parse_codes("12-x").unwrap_err().to_string().starts_with("\"x\" is no code"));
/// # Ok::<(), palmette_catalog::readers::CodesError>(())
/// ```
///
/// # Errors
///
/// For the first piece that is no code.
pub fn parse_codes(text: &str) -> Result<Vec<u32>, CodesError> {
    let code = |piece: &str| match parse_code(piece) {
        Ok(code) => Ok(code.value),
        Err(reason) => Err(CodesError { piece: shorten(piece), reason }),
    };
    split_codes(text).into_iter().map(code).collect()
}

/// A text in which something is no code; the message names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{piece} is no code: {}; write codes as in 183,7 or 183-7 or <a_183><b_7>",
    match .reason {
        BadCode::NotACode => format!("expected a whole number from 0 to {MAX_CODE}"),
        BadCode::LeadingZero => "a code has no leading zeros".to_owned(),
    }
)]
pub struct CodesError {
    piece: String,
    reason: BadCode,
}

/// A code and, where it is spelled `<a_12>`, its prefix.
#[derive(Debug, PartialEq)]
pub(super) struct Code<'a> {
    pub(super) prefix: Option<&'a str>,
    pub(super) value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadCode {
    NotACode,
    /// `007` and `7` would be one code with two spellings, of which only one could be written back.
    LeadingZero,
}

/// Reads `12` or `<a_12>`. A prefix is an ASCII letter, then letters, digits and underscores.
pub(super) fn parse_code(text: &str) -> Result<Code<'_>, BadCode> {
    let Some(inner) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
        return Ok(Code { prefix: None, value: parse_number(text)? });
    };
    let (prefix, number) = inner.rsplit_once('_').ok_or(BadCode::NotACode)?;
    let is_prefix = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_prefix {
        return Err(BadCode::NotACode);
    }
    Ok(Code { prefix: Some(prefix), value: parse_number(number)? })
}

fn parse_number(text: &str) -> Result<u32, BadCode> {
    // `u32::from_str` would take a plus sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadCode::NotACode);
    }
    let value = text.parse().ok().and_then(code_in_range).ok_or(BadCode::NotACode)?;
    if text.len() > 1 && text.starts_with('0') {
        return Err(BadCode::LeadingZero);
    }
    Ok(value)
}

/// Replaces `codes` by those of `text` where it is plain numbers with one space, or one minus sign,
/// between them. `false` where it is anything else, right or wrong.
///
/// PERF: the short way past [`split_codes`] and [`parse_code`] for the usual spelling.
pub(super) fn read_plain_codes(text: &str, codes: &mut Vec<u32>) -> bool {
    codes.clear();
    let bytes = text.as_bytes();
    let separator = *bytes.iter().find(|byte| !byte.is_ascii_digit()).unwrap_or(&b' ');
    if !matches!(separator, b' ' | b'-') {
        return false;
    }
    bytes.split(|&byte| byte == separator).all(|digits| {
        // Ten digits fit 64 bits.
        let is_number = matches!(digits, [b'0'] | [b'1'..=b'9', ..])
            && digits.len() <= 10
            && digits.iter().all(u8::is_ascii_digit);
        if !is_number {
            return false;
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        let code = code_in_range(value);
        codes.extend(code);
        code.is_some()
    })
}

/// The number as a code, if it is no larger than codes are.
pub(super) fn code_in_range(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&code| code <= MAX_CODE)
}

/// The pieces of a whole semantic ID that should each be a code: of `<a_1><b_2>`, `1 2`, `1-2` or
/// `1,2`, of a list as programs print it, `[1, 2]`, and of codes between marks,
/// `<|sid_begin|><a_1><b_2><|sid_end|>`.
pub(super) fn split_codes(text: &str) -> Vec<&str> {
    let text = without_brackets(without_marks(text.trim()));
    if text.contains(',') {
        text.split(',').map(|piece| without_quotes(piece.trim())).collect()
    } else if text.contains('<') {
        split_tags(text)
    } else if text.contains(char::is_whitespace) || text.starts_with('-') {
        // A leading minus is a negative number, better named whole in the error.
        text.split_whitespace().collect()
    } else if text.is_empty() {
        Vec::new()
    } else {
        text.split('-').collect()
    }
}

/// The text between a mark such as `<|sid_begin|>` at its start and one at its end.
fn without_marks(text: &str) -> &str {
    let is_mark = |name: &str| {
        let is_code = name.rsplit_once('_').is_some_and(|(_, number)| parse_number(number).is_ok());
        !is_code && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let after_first = || {
        let (name, rest) = text.strip_prefix("<|")?.split_once("|>")?;
        is_mark(name).then_some(rest.trim_start())
    };
    let text = after_first().unwrap_or(text);
    let before_last = || {
        let (rest, name) = text.strip_suffix("|>")?.rsplit_once("<|")?;
        is_mark(name).then_some(rest.trim_end())
    };
    before_last().unwrap_or(text)
}

/// The inside of `[1, 2]` or `(1, 2)`.
fn without_brackets(text: &str) -> &str {
    let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close).map(str::trim);
    inside('[', ']').or_else(|| inside('(', ')')).unwrap_or(text)
}

/// The inside of `'<a_1>'` or `"<a_1>"`.
fn without_quotes(piece: &str) -> &str {
    let inside = |quote| piece.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(piece)
}

fn split_tags(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.strip_prefix('<') {
            // The piece ends behind its `>`, or where another `<` shows that this one has none.
            Some(inner) => match inner.find(['<', '>']) {
                Some(at) if inner[at..].starts_with('>') => at + 2,
                Some(at) => at + 1,
                None => rest.len(),
            },
            None => rest.find('<').unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece.trim_end());
        rest = after.trim_start();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(Option<&str>, u32), BadCode>) {
        let code = parse_code(text).map(|code| (code.prefix, code.value));
        assert_eq!(code, expected, "{text:?}");
    }

    #[test]
    fn codes() {
        check("0", Ok((None, 0)));
        check("2147483647", Ok((None, MAX_CODE)));
        check("<a_12>", Ok((Some("a"), 12)));
        check("<item_B2_0>", Ok((Some("item_B2"), 0)));
        for bad in [
            "",
            "x9",
            "+1",
            "-1",
            "1.0",
            "2147483648",
            "18446744073709551616",
            " 1",
            "<a_>",
            "<_1>",
            "<a1>",
            "<a_1",
            "a_1>",
            "<1_1>",
            "<a_-1>",
            "<a_2147483648>",
            "<a_1><b_2>",
            "<>",
            "<",
            ">",
            "٣",
            "<é_1>",
        ] {
            check(bad, Err(BadCode::NotACode));
        }
        check("007", Err(BadCode::LeadingZero));
        check("<a_00>", Err(BadCode::LeadingZero));
    }

    #[test]
    fn codes_that_stand_alone() {
        for same in ["183,7", " 183, 7 ", "183-7", "183 7", "<a_183><b_7>", "<a_183>, <b_7>"] {
            assert_eq!(parse_codes(same), Ok(vec![183, 7]), "{same:?}");
        }
        assert_eq!(parse_codes(" "), Ok(vec![]));
        for (bad, piece) in [
            ("1,,2", ""),
            ("x", "x"),
            ("1-x", "x"),
            ("-1", "-1"),
            ("1,2-3", "2-3"),
            ("<a_1", "<a_1"),
        ] {
            let message = format!(
                "{piece:?} is no code: expected a whole number from 0 to 2147483647; write codes \
                 as in 183,7 or 183-7 or <a_183><b_7>"
            );
            assert_eq!(parse_codes(bad).unwrap_err().to_string(), message);
        }
        let zeros = parse_codes("1,007").unwrap_err().to_string();
        assert!(zeros.starts_with("\"007\" is no code: a code has no leading zeros"), "{zeros}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn short_way_is_the_long_way(
            text in prop_oneof!["[0-9 -]{0,9}", "[0-9]{9,12}( [1-9][0-9]?){0,2}", "[1-9](-[0-9a<]){0,4}"],
        ) {
            let mut codes = vec![7];
            let long: Result<Vec<u32>, BadCode> =
                split_codes(&text).into_iter().map(|piece| Ok(parse_code(piece)?.value)).collect();
            if read_plain_codes(&text, &mut codes) {
                prop_assert_eq!(long, Ok(codes));
            } else {
                let plain = long.is_ok_and(|codes| {
                    let spelled = |separator| {
                        codes.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
                    };
                    !codes.is_empty() && (spelled(" ") == text || spelled("-") == text)
                });
                prop_assert!(!plain, "the short way covers the usual spelling");
            }
        }
    }

    #[track_caller]
    fn check_split(text: &str, expected: &[&str]) {
        assert_eq!(split_codes(text), expected, "{text:?}");
    }

    #[test]
    fn pieces() {
        check_split("", &[]);
        check_split("  ", &[]);
        check_split("7", &["7"]);
        check_split(" 1  2\t3 ", &["1", "2", "3"]);
        check_split("1-2-3", &["1", "2", "3"]);
        check_split("1--3", &["1", "", "3"]);
        check_split("-1", &["-1"]);
        check_split("1 -2", &["1", "-2"]);
        check_split("<a_1><b_2>", &["<a_1>", "<b_2>"]);
        check_split(" <a_1> <b_2> ", &["<a_1>", "<b_2>"]);
        check_split("<a_1>x<b_2>", &["<a_1>", "x", "<b_2>"]);
        check_split("<a_1<b_2>>", &["<a_1", "<b_2>", ">"]);
        check_split("7, 8,9", &["7", "8", "9"]);
        check_split("[7, 8]", &["7", "8"]);
        check_split("[ 7  8]", &["7", "8"]);
        check_split("(7,)", &["7", ""]);
        check_split("['<a_7>', \"<b_8>\"]", &["<a_7>", "<b_8>"]);
        check_split("[7, [8]]", &["7", "[8]"]);
        check_split("<|start|> <a_7><b_8> <|end|>", &["<a_7>", "<b_8>"]);
        check_split("<|start|><a_7>", &["<a_7>"]);
        check_split("<a_7><|end|>", &["<a_7>"]);
        check_split("<|a_7|><|b_8|>", &["<|a_7|>", "<|b_8|>"]);
        check_split("<a_7><|sep|><b_8>", &["<a_7>", "<|sep|>", "<b_8>"]);
        check_split("<||>", &["<||>"]);
        check_split("é<", &["é", "<"]);
    }
}

//! The text of codes and semantic IDs, before anything is known about other items.

/// A code and, where it is spelled `<a_12>`, its prefix.
#[derive(Debug, PartialEq)]
pub(super) struct Code<'a> {
    pub(super) prefix: Option<&'a str>,
    pub(super) value: u32,
}

#[derive(Debug, PartialEq)]
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
    let value = text.parse().map_err(|_| BadCode::NotACode)?;
    if text.len() > 1 && text.starts_with('0') {
        return Err(BadCode::LeadingZero);
    }
    Ok(value)
}

/// The pieces of a whole semantic ID that should each be a code: of `<a_1><b_2>`, `1 2` or `1-2`.
pub(super) fn split_codes(text: &str) -> Vec<&str> {
    let text = text.trim();
    if text.contains('<') {
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

    #[track_caller]
    fn check(text: &str, expected: Result<(Option<&str>, u32), BadCode>) {
        let code = parse_code(text).map(|code| (code.prefix, code.value));
        assert_eq!(code, expected, "{text:?}");
    }

    #[test]
    fn codes() {
        check("0", Ok((None, 0)));
        check("4294967295", Ok((None, u32::MAX)));
        check("<a_12>", Ok((Some("a"), 12)));
        check("<item_B2_0>", Ok((Some("item_B2"), 0)));
        for bad in [
            "",
            "x9",
            "+1",
            "-1",
            "1.0",
            "4294967296",
            " 1",
            "<a_>",
            "<_1>",
            "<a1>",
            "<a_1",
            "a_1>",
            "<1_1>",
            "<a_-1>",
            "<a_4294967296>",
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
        check_split("é<", &["é", "<"]);
    }
}

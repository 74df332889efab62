//! References to tokens by name and number, as Lark and GBNF grammars write them.
//!
//! ```text
//! <|tool_call|>  <think>      the token of this name, brackets included
//! <"[TOOL_CALLS]">            the token of a name in quotes, whatever its characters
//! <[128010]>  <[3-7,12]>      tokens by number
//! <[^128010]>  <[*]>          all others; all
//! ```

use crate::{TokenPart, TokenPattern};

/// The reference at the front of `source`, which begins with `<`, and its length.
///
/// # Errors
/// The rule that it breaks.
pub(super) fn read(source: &str) -> Result<(TokenPattern, usize), String> {
    let line = source.lines().next().unwrap_or_default();
    if let Some(quoted) = line.strip_prefix("<\"") {
        let Some(length) = quoted.find("\">").filter(|&length| length > 0) else {
            return Err("a token's name in quotes is closed by `\">`, and is not empty".to_owned());
        };
        return Ok((TokenPattern::named(&quoted[..length]), length + "<\"\">".len()));
    }
    if let Some(inside) = line.strip_prefix("<[") {
        let Some(length) = inside.find("]>") else {
            return Err("tokens by number are written `<[7]>`, `<[3-7,12]>`, `<[^7]>` or `<[*]>`"
                .to_owned());
        };
        return Ok((numbers(&inside[..length])?, length + "<[]>".len()));
    }
    let end = line.find('>').map(|at| at + 1);
    let name = end.map_or(line, |end| &line[..end]);
    if end.is_none() || name.len() <= "<>".len() || name.contains(char::is_whitespace) {
        return Err(
            "a token is written `<name>`, as the vocabulary calls it, brackets included (`<|end|>`), or by number, `<[7]>`; \
             text is put in quotes"
                .to_owned(),
        );
    }
    Ok((TokenPattern::named(name), name.len()))
}

fn numbers(written: &str) -> Result<TokenPattern, String> {
    let (negated, listed) = match written.strip_prefix('^') {
        Some(listed) => (true, listed),
        None => (false, written),
    };
    if written == "*" {
        return Ok(TokenPattern { parts: [].into(), negated: true });
    }
    let parts = listed.split(',').map(|part| number_or_range(part.trim()));
    Ok(TokenPattern { parts: parts.collect::<Result<_, _>>()?, negated })
}

fn number_or_range(written: &str) -> Result<TokenPart, String> {
    let number = |digits: &str| {
        digits.trim().parse::<u32>().map_err(|_| {
            format!(
                "`{written}` is no token number, from 0 to {}, nor a range of two such as 3-7",
                u32::MAX
            )
        })
    };
    let (low, high) = written.split_once('-').unwrap_or((written, written));
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err(format!("the range {low}-{high} has no numbers; write the smaller one first"));
    }
    Ok(TokenPart::Numbers(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_as_they_are_read() {
        for (source, length) in [
            ("<|tool_call|> rest", 13),
            ("<think>", 7),
            ("<[128010]>*", 10),
            ("<[3-7,12]>", 10),
            ("<[^7]>", 6),
        ] {
            let (tokens, found) = read(source).unwrap();
            assert_eq!((tokens.to_string().as_str(), found), (&source[..length], length));
        }
        let (named, length) = read("<\"[TOOL_CALLS]\">{").unwrap();
        assert_eq!((named, length), (TokenPattern::named("[TOOL_CALLS]"), 16));
        let (all, length) = read("<[*]>").unwrap();
        assert_eq!((all.ranges(), length), (Ok(vec![(0, u32::MAX)]), 5));
    }

    #[test]
    fn what_is_none_says_the_rule() {
        for (source, rule) in [
            ("<", "`<name>`"),
            ("<>", "`<name>`"),
            ("< a>", "`<name>`"),
            ("<a\n>", "`<name>`"),
            ("<[7", "`<[7]>`"),
            ("<[]>", "no token number"),
            ("<[7-3]>", "has no numbers"),
            ("<[4294967296]>", "no token number"),
            ("<\"\">", "not empty"),
        ] {
            let error = read(source).unwrap_err();
            assert!(error.contains(rule), "{source}: {error}");
        }
    }
}

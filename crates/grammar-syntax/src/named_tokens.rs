//! Names of special tokens within fixed texts: `<tool_call>`, `[TOOL_CALLS]`, `｜DSML｜`.

/// A part of a fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPart<'t> {
    /// Characters.
    Text(&'t str),
    /// Name that a special token may have; it may be written by its characters as well.
    Name(&'t str),
}

/// The parts of a text, in their order; none is empty.
pub(crate) fn pieces(text: &str) -> Vec<TextPart<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (start, end) = name(rest).unwrap_or((rest.len(), rest.len()));
        if start > 0 {
            pieces.push(TextPart::Text(&rest[..start]));
        }
        if start < end {
            pieces.push(TextPart::Name(&rest[start..end]));
        }
        rest = &rest[end..];
    }
    pieces
}

/// The first part that is written as special tokens are: `<…>` without blanks, capitals or
/// `unused` and a number in brackets, between wide bars, or between MiniMax's brackets.
fn name(text: &str) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(start, first)| {
        if let Some(inside) = text[start..].strip_prefix("]<]") {
            let length = inside.find("[>[")?;
            return Some((start, start + "]<][>[".len() + length));
        }
        let close = match first {
            '<' => '>',
            '[' => ']',
            BAR => BAR,
            _ => return None,
        };
        let inside = &text[start + first.len_utf8()..];
        let length = inside.find(close)?;
        let inside = &inside[..length];
        let is_name = match first {
            // `</｜DSML｜parameter>` is a name among characters.
            '<' => {
                !inside.contains(|c: char| c.is_whitespace() || c == '<')
                    && (!inside.contains(BAR) || inside.starts_with(BAR) && inside.ends_with(BAR))
            }
            '[' => match inside.strip_prefix("unused") {
                Some(number) => number.bytes().all(|digit| digit.is_ascii_digit()),
                None => inside.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '/'),
            },
            _ => inside.chars().all(|c| c.is_alphanumeric() || c == '▁'),
        };
        let end = start + first.len_utf8() + length + close.len_utf8();
        (length > 0 && is_name).then_some((start, end))
    })
}

/// The bar in names of DeepSeek's tokens.
const BAR: char = '｜';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_among_characters() {
        use TextPart::{Name, Text};
        for (text, expected) in [
            ("<tool_call>\n{", vec![Name("<tool_call>"), Text("\n{")]),
            ("a < b>[x][TOOL_CALLS]", vec![Text("a < b>[x]"), Name("[TOOL_CALLS]")]),
            ("]<]minimax[>[<a>", vec![Name("]<]minimax[>["), Name("<a>")]),
            ("[unused11][unusedx]", vec![Name("[unused11]"), Text("[unusedx]")]),
            ("<｜tool▁sep｜>", vec![Name("<｜tool▁sep｜>")]),
            ("</｜DSML｜parameter>", vec![Text("</"), Name("｜DSML｜"), Text("parameter>")]),
            ("<p name=\"", vec![Text("<p name=\"")]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}

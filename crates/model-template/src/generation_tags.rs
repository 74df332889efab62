//! The tags `generation` and `endgeneration`, which mark for training what an assistant said, as
//! blocks that change nothing.

/// A template without these tags: `{% if true %}` and `{% endif %}` stand in their places, with the
/// tags' signs for white space.
pub(crate) fn without(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out += before;
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(end + 2);
        let inner = &tag[2..tag.len() - 2];
        let word = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match word {
            "generation" => out += &tag.replacen(word, "if true", 1),
            "endgeneration" => out += &tag.replacen(word, "endif", 1),
            _ => out += tag,
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn only_these_tags_change() {
        assert_eq!(
            without(
                "a{%- generation %}b{{ generation }}{% endgeneration -%}c{% if generation %}d{% x"
            ),
            "a{%- if true %}b{{ generation }}{% endif -%}c{% if generation %}d{% x"
        );
    }
}

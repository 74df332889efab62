//! URI references, as far as `$id` and `$ref` need them (RFC 3986, section 5).

/// `reference` as seen from `base`.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let base = base.split_once('#').map_or(base, |(base, _)| base);
    if reference.is_empty() || reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    let after_scheme = scheme(base).map_or(0, |scheme| scheme.len() + 1);
    if reference.starts_with("//") {
        return format!("{}{reference}", &base[..after_scheme]);
    }
    let authority_end = match base[after_scheme..].strip_prefix("//") {
        Some(rest) => base.len() - rest.len() + rest.find(['/', '?']).unwrap_or(rest.len()),
        None => after_scheme,
    };
    let (before, path) = base.split_at(authority_end);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if reference.starts_with('?') {
        return format!("{before}{path}{reference}");
    }
    let (target, tail) = reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()));
    let joined = if target.starts_with('/') {
        target.to_owned()
    } else if path.is_empty() && authority_end > after_scheme {
        format!("/{target}")
    } else {
        format!("{}{target}", &path[..path.rfind('/').map_or(0, |at| at + 1)])
    };
    format!("{before}{}{tail}", without_dots(&joined))
}

/// The part before the fragment, and the fragment (empty when there is none).
pub(super) fn split_fragment(uri: &str) -> (&str, &str) {
    uri.split_once('#').unwrap_or((uri, ""))
}

/// `text` with `%41` read as `A`; as it is, where that gives no text.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut bytes = scheme.bytes();
    let first = bytes.next()?.is_ascii_alphabetic();
    let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (first && rest).then_some(scheme)
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." && kept.len() > usize::from(path.starts_with('/')) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_the_standard() {
        // RFC 3986, section 5.4.1, those without parameters.
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), expected, "{reference}");
        }
        assert_eq!(resolve("urn:x:y", "#a"), "urn:x:y#a");
        assert_eq!(resolve("", "item.json#/a"), "item.json#/a");
    }
}

//! Faults of a document: each a place and a sentence that names the value, the rule and the way
//! out.

use std::fmt;

/// A place in a document that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer (RFC 6901) into the document.
    pub pointer: String,
    /// The value, the rule and the way out.
    pub detail: String,
}

impl Fault {
    /// A fault at a place.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// All faults of a document, in the order of its checks; at least one where it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Adds a fault.
    pub fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Adds the fault of a check that failed; gives what it found where it did not.
    pub fn take<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }

    /// The value where there is no fault, else the faults.
    ///
    /// # Errors
    /// When there is a fault.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl Faults {
    /// The faults with a surface's own names for members in their sentences, as
    /// [`respelled`] has them.
    #[must_use]
    pub fn respelled(self, names: &[(&str, &str)]) -> Self {
        let one = |fault: Fault| Fault { detail: respelled(&fault.detail, names), ..fault };
        Self(self.0.into_iter().map(one).collect())
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The details one after the other: they name their places themselves.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details: Vec<&str> = self.0.iter().map(|fault| fault.detail.as_str()).collect();
        f.write_str(&details.join("; "))
    }
}

impl std::error::Error for Faults {}

/// A sentence about members in which each that `names` has stands by its other name: what a
/// document calls `max_tokens` is an option, or another interface's member, to who wrote it.
///
/// Whole words count, and none between double quotes, where values stand.
pub fn respelled(sentence: &str, names: &[(&str, &str)]) -> String {
    let is_in_word = |c: char| c.is_alphanumeric() || "_-.\\".contains(c);
    let mut named = String::with_capacity(sentence.len());
    for (number, part) in sentence.split('"').enumerate() {
        if number > 0 {
            named.push('"');
        }
        let mut rest = if number % 2 == 0 { part } else { "" };
        if rest.is_empty() {
            named.push_str(part);
        }
        while let Some(first) = rest.chars().next() {
            let end = match is_in_word(first) {
                true => rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()),
                false => rest.find(is_in_word).unwrap_or(rest.len()),
            };
            let (word, after) = rest.split_at(end);
            let known = names.iter().find(|(name, _)| *name == word);
            named.push_str(known.map_or(word, |(_, other)| other));
            rest = after;
        }
    }
    named
}

/// A JSON pointer as people name places: `/messages/0/content` is `messages[0].content`.
pub fn place(pointer: &str) -> String {
    let mut named = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty() {
            true => named.extend(["[", &part, "]"]),
            false if named.is_empty() => named = part,
            false => named.extend([".", &part]),
        }
    }
    match named.is_empty() {
        true => "the body".to_owned(),
        false => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_as_people_name_them() {
        for (pointer, named) in [
            ("", "the body"),
            ("/k", "k"),
            ("/messages/0/content", "messages[0].content"),
            ("/user/a~1b~0c", "user.a/b~c"),
        ] {
            assert_eq!(place(pointer), named);
        }
    }

    #[test]
    fn members_have_the_names_of_who_wrote_them() {
        let names = [("max_tokens", "--max-tokens"), ("n", "-n")];
        for (sentence, named) in [
            ("max_tokens is 0; it must be at least 1", "--max-tokens is 0; it must be at least 1"),
            ("n is 3, more than the 2 of max_tokens", "-n is 3, more than the 2 of --max-tokens"),
            (
                "no max_tokens_at, n_max or x.n (n: \"n\")",
                "no max_tokens_at, n_max or x.n (-n: \"n\")",
            ),
            ("max_tokens", "--max-tokens"),
            ("", ""),
        ] {
            assert_eq!(respelled(sentence, &names), named);
        }
        let faults = Faults::from(Fault::new("/n", "n is 0")).respelled(&names);
        assert_eq!(faults, Fault::new("/n", "-n is 0").into());
    }

    #[test]
    fn faults_are_collected() {
        let mut faults = Faults::default();
        assert_eq!(faults.take(Ok(1)), Some(1));
        assert_eq!(faults.clone().or(2), Ok(2));
        assert_eq!(faults.take::<u8>(Err(Fault::new("/k", "k is 0"))), None);
        faults.push(Fault::new("", "no"));
        assert_eq!(faults.or(3).unwrap_err().to_string(), "k is 0; no");
    }
}

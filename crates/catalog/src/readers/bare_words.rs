//! Words that are no JSON and that programs write nevertheless, read as null where they mean that.

use std::io::{self, BufRead, Read};

use super::buffered::read_buffered;

/// Words that Python and JavaScript write for numbers that JSON does not have.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// JSON in which some bare words became null; strings are left as they are.
pub(super) struct BareWords<R> {
    inner: R,
    words: Vec<&'static str>,
    /// Output so far; from `start` on it is not passed on yet.
    out: Vec<u8>,
    start: usize,
    /// Letters and signs at the end of what was read, which may go on.
    word: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
}

impl<R: BufRead> BareWords<R> {
    /// Makes null of those of the `nulls` that are such words.
    pub(super) fn new(inner: R, nulls: &[String]) -> BareWords<R> {
        let is_null = |word: &str| nulls.iter().any(|null| null == word);
        let is_named = |word: &&'static str| is_null(word) || is_null(word.trim_start_matches('-'));
        let words = WORDS.into_iter().filter(is_named).collect();
        let (out, word) = (Vec::new(), Vec::new());
        BareWords { inner, words, out, start: 0, word, in_string: false, is_escaped: false }
    }

    /// Reads some of the input; nothing is left to pass on only at its end.
    fn refill(&mut self) -> io::Result<()> {
        self.out.clear();
        self.start = 0;
        while self.out.is_empty() {
            let bytes = self.inner.fill_buf()?;
            let count = bytes.len();
            if count == 0 {
                end_word(&mut self.word, &self.words, &mut self.out);
                return Ok(());
            }
            if self.words.is_empty() {
                self.out.extend_from_slice(bytes);
            } else {
                for &byte in bytes {
                    let is_of_word = byte.is_ascii_alphabetic() || byte == b'-';
                    if !self.in_string && is_of_word {
                        self.word.push(byte);
                        continue;
                    }
                    end_word(&mut self.word, &self.words, &mut self.out);
                    self.out.push(byte);
                    match byte {
                        _ if self.is_escaped => self.is_escaped = false,
                        b'\\' if self.in_string => self.is_escaped = true,
                        b'"' => self.in_string = !self.in_string,
                        _ => {}
                    }
                }
            }
            self.inner.consume(count);
        }
        Ok(())
    }
}

fn end_word(word: &mut Vec<u8>, words: &[&str], out: &mut Vec<u8>) {
    match words.iter().any(|null| null.as_bytes() == word.as_slice()) {
        true => out.extend_from_slice(b"null"),
        false => out.extend_from_slice(word),
    }
    word.clear();
}

impl<R: BufRead> Read for BareWords<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, target)
    }
}

impl<R: BufRead> BufRead for BareWords<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.out.len() {
            self.refill()?;
        }
        Ok(&self.out[self.start..])
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.out.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nulls: &[&str], text: &str, expected: &str) {
        let nulls: Vec<String> = nulls.iter().map(|&null| null.to_owned()).collect();
        for size in [1, 3, 1000] {
            let input = io::BufReader::with_capacity(size, text.as_bytes());
            let mut found = String::new();
            BareWords::new(input, &nulls).read_to_string(&mut found).unwrap();
            assert_eq!(found, expected, "by {size}");
        }
    }

    #[test]
    fn bare_words_become_null_and_strings_stay() {
        let text =
            r#"{"a": NaN, "NaN": "NaN \" NaN \\", "b": [-Infinity, -1e5, NaNs, Infinity]}NaN"#;
        check(&[], text, text);
        check(&["NA"], text, text);
        let expected =
            r#"{"a": null, "NaN": "NaN \" NaN \\", "b": [-Infinity, -1e5, NaNs, Infinity]}null"#;
        check(&["NaN", "NA"], text, expected);
        let expected = r#"{"a": NaN, "NaN": "NaN \" NaN \\", "b": [null, -1e5, NaNs, null]}NaN"#;
        check(&["Infinity"], text, expected);
    }
}

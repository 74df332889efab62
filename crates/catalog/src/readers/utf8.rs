//! Lets only UTF-8 through, with lines that end in a line feed, so that the parsers behind it need
//! not ask.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::buffered::read_buffered;
use super::encoding::Encoding;

const BUFFER_BYTES: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Enough to tell what an input is that is no text; below the buffer's size.
const HEAD_BYTES: usize = 16;

/// Passes `inner` on without a leading byte order mark; at the first byte that is not UTF-8, after
/// all bytes before it have been passed on, fails with a [`NotUtf8`]. Where the first line ends in
/// a carriage return alone, as old programs of the Macintosh and some exports end them, line feeds
/// take the place of all carriage returns.
pub(super) struct Utf8Reader<R> {
    inner: R,
    /// `buffer[start..valid_end]` is to be passed on; `buffer[valid_end..end]` is the beginning of
    /// a character whose rest has not been read, or begins with the byte that is not UTF-8.
    buffer: Box<[u8]>,
    start: usize,
    valid_end: usize,
    end: usize,
    /// Line ends in everything up to `valid_end`.
    newlines: u64,
    past_mark: bool,
    line_ends: LineEnds,
}

/// Ends of the lines of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    /// No line has ended yet.
    Unknown,
    /// Line feeds, with carriage returns before them or without.
    Feeds,
    /// Carriage returns alone.
    Returns,
}

impl LineEnds {
    /// Learns from the next bytes how lines end, and makes line feeds of carriage returns that end
    /// one.
    fn pass(&mut self, bytes: &mut [u8]) {
        if *self == Self::Unknown
            && let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'))
        {
            let is_alone = bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            *self = if is_alone { Self::Returns } else { Self::Feeds };
        }
        if *self == Self::Returns {
            bytes.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
        }
    }
}

impl<R: Read> Utf8Reader<R> {
    pub(super) fn new(inner: R) -> Utf8Reader<R> {
        Utf8Reader {
            inner,
            buffer: vec![0; BUFFER_BYTES].into(),
            start: 0,
            valid_end: 0,
            end: 0,
            newlines: 0,
            past_mark: false,
            line_ends: LineEnds::Unknown,
        }
    }

    /// Replaces the bytes passed on by the next ones; leaves none at the end of the input.
    fn refill(&mut self) -> io::Result<()> {
        loop {
            self.buffer.copy_within(self.valid_end..self.end, 0);
            self.end -= self.valid_end;
            (self.start, self.valid_end) = (0, 0);

            let count = self.inner.read(&mut self.buffer[self.end..])?;
            self.end += count;
            if !self.past_mark {
                let head = &self.buffer[..self.end];
                if count > 0 && head.len() < HEAD_BYTES {
                    continue;
                }
                self.past_mark = true;
                if let Some(found) = Encoding::of_head(head) {
                    return Err(NotUtf8 { line: 1, found }.into());
                }
                if head.starts_with(BYTE_ORDER_MARK) {
                    self.buffer.copy_within(BYTE_ORDER_MARK.len()..self.end, 0);
                    self.end -= BYTE_ORDER_MARK.len();
                }
            }
            let (mut valid_end, broken) = match std::str::from_utf8(&self.buffer[..self.end]) {
                Ok(_) => (self.end, false),
                // The end of the buffer may cut a character in two, the end of the input not.
                Err(error) => (error.valid_up_to(), error.error_len().is_some() || count == 0),
            };
            if valid_end == 0 && broken {
                let found = Encoding::of_broken(&self.buffer[..self.end]);
                return Err(NotUtf8 { line: self.newlines + 1, found }.into());
            }
            // What follows the first carriage return tells what it is, so that it waits for it.
            let is_first_return = || {
                let valid = &self.buffer[..valid_end];
                self.line_ends == LineEnds::Unknown
                    && valid.ends_with(b"\r")
                    && !valid[..valid_end - 1].iter().any(|byte| matches!(byte, b'\r' | b'\n'))
            };
            if count > 0 && !broken && valid_end == self.end && valid_end > 0 && is_first_return() {
                valid_end -= 1;
            }
            self.line_ends.pass(&mut self.buffer[..valid_end]);
            self.valid_end = valid_end;
            let newlines = self.buffer[..valid_end].iter().filter(|&&byte| byte == b'\n').count();
            self.newlines += newlines as u64;
            if valid_end > 0 || count == 0 {
                return Ok(());
            }
        }
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, target)
    }
}

impl<R: Read> BufRead for Utf8Reader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.valid_end {
            self.refill()?;
        }
        Ok(&self.buffer[self.start..self.valid_end])
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.valid_end);
    }
}

/// The line, from 1, of the first byte that is not UTF-8. Travels inside an [`io::Error`].
#[derive(Debug)]
pub(super) struct NotUtf8 {
    pub(super) line: u64,
    pub(super) found: Encoding,
}

impl From<NotUtf8> for io::Error {
    fn from(error: NotUtf8) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.found)
    }
}

impl std::error::Error for NotUtf8 {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out `chunk` bytes a call, so that characters and marks are cut anywhere.
    struct Chunks<'a> {
        rest: &'a [u8],
        chunk: usize,
    }

    impl Read for Chunks<'_> {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            let count = self.rest.len().min(target.len()).min(self.chunk);
            let (head, rest) = self.rest.split_at(count);
            target[..count].copy_from_slice(head);
            self.rest = rest;
            Ok(count)
        }
    }

    /// `expected`: the bytes passed on, and the line of the first that is not UTF-8.
    #[track_caller]
    fn check(input: &[u8], expected: (&[u8], Option<u64>)) {
        for chunk in [1, 2, 3, usize::MAX] {
            let mut passed = Vec::new();
            let result = Utf8Reader::new(Chunks { rest: input, chunk }).read_to_end(&mut passed);
            let line = result.err().map(|error| {
                error.get_ref().unwrap().downcast_ref::<NotUtf8>().expect("a NotUtf8").line
            });
            assert_eq!((passed.as_slice(), line), expected, "in chunks of {chunk}");
        }
    }

    #[test]
    fn only_utf8_passes() {
        check(b"", (b"", None));
        check(b"\xef\xbb\xbf", (b"", None));
        check(b"\xef\xbb\xbfa\n", (b"a\n", None));
        check("é\n€\n𝄞\u{feff}".as_bytes(), ("é\n€\n𝄞\u{feff}".as_bytes(), None));
        check(b"a\nb\n\xffc\n", (b"a\nb\n", Some(3)));
        check(b"\xe2\x82", (b"", Some(1)));
        check(b"\xef\xbb", (b"", Some(1)));
        check(b"a\n\xe2\x82\n", (b"a\n", Some(2)));
    }

    #[test]
    fn carriage_returns_alone_end_lines_where_the_first_does() {
        check(b"a\rb\r\rc", (b"a\nb\n\nc", None));
        check(b"a\r", (b"a\n", None));
        check(b"\r", (b"\n", None));
        check(b"a\rb\r\xffc", (b"a\nb\n", Some(3)));
        check(b"a\r\nb\rc\n", (b"a\r\nb\rc\n", None));
        check(b"a\nb\rc\r", (b"a\nb\rc\r", None));
        check("é\ré\r".as_bytes(), ("é\né\n".as_bytes(), None));
    }

    #[test]
    fn characters_across_the_buffer_end_stay_whole() {
        for shift in 0..4 {
            let text = "x".repeat(BUFFER_BYTES - 4 + shift) + "𝄞𝄞\n";
            let mut broken = text.clone().into_bytes();
            broken.push(0xff);
            check(text.as_bytes(), (text.as_bytes(), None));
            check(&broken, (text.as_bytes(), Some(2)));
        }
    }
}

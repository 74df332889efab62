//! Numbered lines of a bounded length.

use std::io::{self, BufRead, Read};

/// Limit on the bytes of a line. A longer one is refused, and the next is read.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The lines of a text, one in memory at a time.
pub(crate) struct Lines<R> {
    input: R,
    bytes: Vec<u8>,
    line: u64,
    read: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), line: 0, read: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// The next line without its end, or what is wrong with it, and its number from 1. A byte order
    /// mark is passed over.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<(u64, Result<&str, String>)>> {
        self.bytes.clear();
        let most = MAX_LINE_BYTES as u64 + 2;
        let count = self.input.by_ref().take(most).read_until(b'\n', &mut self.bytes)?;
        if count == 0 {
            return Ok(None);
        }
        self.line += 1;
        self.read += count as u64;
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        } else if count as u64 == most {
            self.skip_line()?;
        }
        if self.bytes.last() == Some(&b'\r') {
            self.bytes.pop();
        }
        if self.bytes.len() > MAX_LINE_BYTES {
            let reason = format!("the line is longer than {MAX_LINE_BYTES} bytes");
            return Ok(Some((self.line, Err(reason))));
        }
        let text = match self.line {
            1 => self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes),
            _ => &self.bytes,
        };
        let text = std::str::from_utf8(text);
        let not_utf8 = |e: std::str::Utf8Error| format!("byte {} is no UTF-8", e.valid_up_to() + 1);
        Ok(Some((self.line, text.map_err(not_utf8))))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let count = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(count);
            self.read += count as u64;
            if end.is_some() || count == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Lines::new(bytes);
        let mut all = Vec::new();
        while let Some((line, text)) = lines.next_line().unwrap() {
            all.push((line, text.map(str::to_owned)));
        }
        assert_eq!(lines.read(), bytes.len() as u64);
        all
    }

    #[test]
    fn ends_and_marks() {
        let text = |line, text: &str| (line, Ok(text.to_owned()));
        assert_eq!(all(b"\xef\xbb\xbfa\r\n\nb"), [text(1, "a"), text(2, ""), text(3, "b")]);
        assert_eq!(all(b""), []);
        assert_eq!(all(b"a\xff\nb\n")[0], (1, Err("byte 2 is no UTF-8".to_owned())));
    }

    #[test]
    fn a_long_line_is_refused_and_the_next_read() {
        for end in [&b"\n"[..], b"\r\n"] {
            let longest = [&vec![b'x'; MAX_LINE_BYTES][..], end, b"b"].concat();
            assert_eq!(all(&longest)[0].1.as_ref().map(String::len), Ok(MAX_LINE_BYTES));
            let longer = [&vec![b'x'; MAX_LINE_BYTES + 1][..], end, b"b\n"].concat();
            let read = all(&longer);
            assert!(read[0].1.as_ref().is_err_and(|reason| reason.contains("longer than")));
            assert_eq!(read[1], (2, Ok("b".to_owned())));
        }
    }
}

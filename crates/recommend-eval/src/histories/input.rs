//! Inputs as readers take them: decompressed, and with lines that end in a line feed.

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;

const GZIP: &[u8] = b"\x1f\x8b";
const BUFFER_BYTES: usize = 1 << 16;
/// Enough to tell what an input is.
const HEAD_BYTES: u64 = 16;

/// Input without its compression.
pub(crate) struct Decompressed<'r> {
    pub(crate) input: Box<dyn BufRead + 'r>,
    /// The first bytes, which show what is no text.
    pub(crate) head: Vec<u8>,
    pub(crate) is_gzip: bool,
}

/// The bytes of an input, decompressed where it is gzip.
pub(crate) fn decompressed<'r>(input: impl BufRead + 'r) -> io::Result<Decompressed<'r>> {
    let (head, input) = with_head(input)?;
    let is_gzip = head.starts_with(GZIP);
    let (head, input): (_, Box<dyn BufRead + 'r>) = match is_gzip {
        true => {
            let (head, input) = with_head(BufReader::new(MultiGzDecoder::new(input)))?;
            (head, Box::new(BufReader::with_capacity(BUFFER_BYTES, input)))
        }
        false => (head, Box::new(BufReader::with_capacity(BUFFER_BYTES, input))),
    };
    Ok(Decompressed { input, head, is_gzip })
}

/// The first bytes of an input, which may come one by one from a pipe, and all of it.
fn with_head(mut input: impl BufRead) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok((head.clone(), io::Cursor::new(head).chain(input)))
}

/// Text whose lines end in a line feed: where the first ends in a carriage return alone, as old
/// programs of the Macintosh end them, line feeds take the place of all carriage returns.
pub(crate) struct FedLines<R> {
    input: R,
    /// True if returns alone end lines; `None` before the first line's end.
    returns: Option<bool>,
}

impl<R: BufRead> FedLines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, returns: None }
    }
}

impl<R: BufRead> Read for FedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut most = buffer.len();
        if self.returns.is_none() && most > 0 {
            let available = self.input.fill_buf()?;
            let end = available.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            match end.map(|at| (at, available[at])) {
                None => {}
                Some((0, b'\r')) => {
                    // What follows tells what it is.
                    self.input.consume(1);
                    let is_alone = self.input.fill_buf()?.first() != Some(&b'\n');
                    self.returns = Some(is_alone);
                    buffer[0] = if is_alone { b'\n' } else { b'\r' };
                    return Ok(1);
                }
                Some((0, _)) => self.returns = Some(false),
                Some((at, _)) => most = most.min(at),
            }
        }
        let available = self.input.fill_buf()?;
        let count = available.len().min(most);
        buffer[..count].copy_from_slice(&available[..count]);
        self.input.consume(count);
        if self.returns == Some(true) {
            let returns = buffer[..count].iter_mut().filter(|byte| **byte == b'\r');
            returns.for_each(|byte| *byte = b'\n');
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Hands on a few bytes at a time.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn returns_alone_end_lines_where_the_first_does() {
        for (text, expected) in [
            ("a\rb\r\rc", "a\nb\n\nc"),
            ("a\r", "a\n"),
            ("\r", "\n"),
            ("a\r\nb\rc\n", "a\r\nb\rc\n"),
            ("a\nb\rc\r", "a\nb\rc\r"),
            ("a", "a"),
            ("", ""),
            ("\r\n\r", "\r\n\r"),
        ] {
            for drip in 1..5 {
                let mut read = String::new();
                let input = BufReader::new(Dripping(text.as_bytes(), drip));
                FedLines::new(input).read_to_string(&mut read).unwrap();
                assert_eq!(read, expected, "{text:?} by {drip}");
            }
        }
    }

    #[test]
    fn gzip_is_told_by_its_bytes() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"a\nb").unwrap();
        let members = [gzip.finish().unwrap(), Vec::new()].concat();
        let twice = [members.clone(), members].concat();
        for (bytes, expected, is_gzip) in [
            (&twice[..], "a\nba\nb", true),
            (b"a\nb", "a\nb", false),
            (b"\x1f", "\x1f", false),
            (b"", "", false),
        ] {
            let Decompressed { mut input, is_gzip: told, .. } = decompressed(bytes).unwrap();
            let mut text = String::new();
            input.read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), told), (expected, is_gzip));
        }
    }
}

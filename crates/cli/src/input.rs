//! Files that commands read, `-` being standard input.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::read::MultiGzDecoder;

/// First bytes that are looked at, enough for the first line of most files.
const HEAD_BYTES: u64 = 64 * 1024;
const GZIP: &[u8] = b"\x1f\x8b";

/// True if a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of a file, or of standard input to its end.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if !is_stdin(path) {
        return std::fs::read(path).with_context(|| path.display().to_string());
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("standard input")?;
    Ok(bytes)
}

/// The text of a file with a request, or a part of one.
pub(crate) fn read_request(path: &Path) -> anyhow::Result<String> {
    read_text(path, "a request")
}

/// The text of a file in UTF-8; or in UTF-16 where it begins with a byte order mark, as
/// PowerShell's `>` writes it.
///
/// `what` is what the file is, for messages.
pub(crate) fn read_text(path: &Path, what: &str) -> anyhow::Result<String> {
    let bytes = read(path)?;
    let word: fn([u8; 2]) -> u16 = match bytes.get(..2) {
        Some(b"\xff\xfe") => u16::from_le_bytes,
        Some(b"\xfe\xff") => u16::from_be_bytes,
        _ => {
            let named = || path.display().to_string();
            let text = String::from_utf8(bytes);
            return text.with_context(|| format!("{what} is text in UTF-8")).with_context(named);
        }
    };
    let is_whole = bytes.len() % 2 == 0;
    let words = bytes[2..].chunks_exact(2).map(|pair| word([pair[0], pair[1]]));
    let text = char::decode_utf16(words).collect::<Result<String, _>>().ok().filter(|_| is_whole);
    text.with_context(|| {
        format!("{}: it begins as UTF-16 and is none; save it as UTF-8", path.display())
    })
}

/// An input that is opened once and read from its first byte to its last, decompressed where it is
/// gzip. Pipes cannot be opened twice: the first bytes, which tell the format, are kept for the
/// reader.
pub(crate) struct Input {
    /// The path, or `standard input`.
    pub(crate) name: PathBuf,
    /// The first bytes.
    pub(crate) head: Vec<u8>,
    rest: Box<dyn Read + Send>,
    /// The file itself, where it is one that can be read anywhere and is not compressed.
    #[cfg_attr(not(feature = "tables"), expect(dead_code, reason = "tables are read anywhere"))]
    file: Option<File>,
}

impl Input {
    /// `watch` stands between the file and what reads it, for progress bars.
    pub(crate) fn open(
        path: &Path,
        watch: impl FnOnce(Box<dyn Read + Send>) -> Box<dyn Read + Send>,
    ) -> io::Result<Input> {
        let (name, source, file): (_, Box<dyn Read + Send>, _) = match is_stdin(path) {
            true => ("standard input".into(), Box::new(io::stdin()), None),
            false => {
                let file = File::open(path)?;
                let again = file.metadata()?.is_file().then(|| file.try_clone()).transpose()?;
                (path.to_owned(), Box::new(file), again)
            }
        };
        let (head, rest) = split_head(watch(source))?;
        if !head.starts_with(GZIP) {
            return Ok(Input { name, head, rest, file });
        }
        let compressed = BufReader::new(Cursor::new(head).chain(rest));
        let (head, rest) = split_head(Box::new(MultiGzDecoder::new(compressed)))?;
        Ok(Input { name, head, rest, file: None })
    }

    /// All bytes, the first ones included.
    pub(crate) fn reader(self) -> BufReader<impl Read + Send> {
        BufReader::with_capacity(1 << 20, Cursor::new(self.head).chain(self.rest))
    }

    /// All bytes as a file that can be read anywhere; those of a pipe are copied to a file that has
    /// no name and goes away with it.
    #[cfg(feature = "tables")]
    pub(crate) fn into_file(mut self) -> io::Result<File> {
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        let mut copy = tempfile::tempfile()?;
        io::copy(&mut self.reader(), &mut copy)?;
        Ok(copy)
    }

    /// The name without the ending of what is decompressed.
    pub(crate) fn plain_name(&self) -> PathBuf {
        match self.name.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("gz") => self.name.with_extension(""),
            _ => self.name.clone(),
        }
    }
}

fn split_head(mut source: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    source.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok((head, source))
}

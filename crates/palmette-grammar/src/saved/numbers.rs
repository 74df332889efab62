//! Numbers and texts, one after another.

/// Error in the contents of a file whose checksums are right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

impl Malformed {
    /// An error with this message.
    pub(crate) fn because<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self(message.into()))
    }
}

/// Writes numbers, little-endian.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
}

impl Out {
    pub(super) fn u32(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn all(&mut self, numbers: &[u32]) {
        numbers.iter().for_each(|&number| self.u32(number));
    }

    /// A count, place or length: files are far below 4 GiB of any.
    pub(super) fn len(&mut self, number: usize) {
        self.u32(u32::try_from(number).expect("below 2^32"));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.len(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Reads what [`Out`] wrote, or anything else.
#[derive(Debug)]
pub(super) struct In<'a> {
    rest: &'a [u8],
}

impl<'a> In<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let Some((number, rest)) = self.rest.split_first_chunk::<4>() else {
            return Malformed::because("its grammar ends in the middle");
        };
        self.rest = rest;
        Ok(u32::from_le_bytes(*number))
    }

    /// Length of a list whose entries are each at least four bytes long: as many as there is room for.
    pub(super) fn count(&mut self, what: &str) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count > self.rest.len() / 4 {
            return Malformed::because(format!("it says {count} {what}, more than it is long"));
        }
        Ok(count)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize, what: &str) -> Result<u32, Malformed> {
        let number = self.u32()?;
        if number as usize >= end {
            return Malformed::because(format!("it mentions {what} {number} of {end}"));
        }
        Ok(number)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = self.u32()? as usize;
        let Some((text, rest)) = self.rest.split_at_checked(len) else {
            return Malformed::because("a text of its grammar ends in the middle");
        };
        self.rest = rest;
        std::str::from_utf8(text).or_else(|_| Malformed::because("a text of it is not UTF-8"))
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        match self.rest.len() {
            0 => Ok(()),
            rest => Malformed::because(format!("{rest} bytes follow its grammar")),
        }
    }
}

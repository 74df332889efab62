//! Identities: random numbers that tell logs and attempts apart.

use std::fmt;
use std::str::FromStr;

use crate::error::{Kind, LogError};

/// A random number of 128 bits, written as 32 digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(pub(crate) [u8; 16]);

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random numbers to give.
    pub fn random() -> Result<Self, LogError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| Kind::System(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// Half of it, as a number.
    pub fn as_number(&self) -> u64 {
        let (first, _) = self.0.split_at(8);
        first.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Identity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no identity: 32 digits of 0-9 a-f");
        if text.len() != 32 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_from_its_text() {
        let one = Identity::random().unwrap();
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_ne!(one, Identity::random().unwrap());
        for wrong in ["", "00", &"g".repeat(32), &"A".repeat(32), &"é".repeat(16)] {
            assert!(wrong.parse::<Identity>().is_err(), "{wrong}");
        }
    }
}

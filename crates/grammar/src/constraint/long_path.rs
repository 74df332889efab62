//! Path over numbered positions by tokens of a byte each, found depth first.
//!
//! A path that comes round goes on for ever. The positions from which all was tried have a longest
//! path, so that none is tried twice in vain. What is found depends on where the path begins and on
//! nothing that was asked before.

use hashbrown::HashMap;

/// The bytes, those first after which much may follow: letters and digits in strings and numbers.
const BYTES: [u8; 256] = {
    let (mut bytes, mut len) = ([0; 256], 0);
    let mut pass = 0;
    while pass < 2 {
        let mut byte = 0;
        while byte < 256 {
            if (byte as u8).is_ascii_alphanumeric() == (pass == 0) {
                bytes[len] = byte as u8;
                len += 1;
            }
            byte += 1;
        }
        pass += 1;
    }
    bytes
};

/// Beginning of a way that is long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayStart {
    /// The first token of the shortest way.
    Shortest,
    /// A token of a byte, which leads to a numbered position.
    Byte(u32),
}

/// Path of tokens of a byte each, as a depth-first search makes it.
#[derive(Debug, Default)]
pub(super) struct LongPath {
    /// The positions of the path, once round where it comes round.
    path: Vec<u32>,
    /// The place that the last one goes on to, where the path comes round.
    round: Option<usize>,
    /// Bytes that were tried at each of them, and tokens of the longest path by these.
    tried: Vec<(usize, usize)>,
    /// Tokens of the longest path from a position from which all was tried; `None` for one that is
    /// on the path.
    longest: HashMap<u32, Option<usize>>,
}

impl LongPath {
    /// Begins at a position.
    pub(super) fn begin(&mut self, from: u32) {
        self.path.clear();
        self.round = None;
        self.tried.clear();
        self.longest.clear();
        self.push(from);
    }

    fn push(&mut self, at: u32) {
        self.path.push(at);
        self.tried.push((0, 0));
        self.longest.insert(at, None);
    }

    /// The last position; none once all was tried in vain.
    pub(super) fn last(&self) -> Option<u32> {
        self.path.last().copied()
    }

    /// Positions before any comes again.
    pub(super) fn len(&self) -> usize {
        self.path.len()
    }

    /// The position after so many tokens.
    pub(super) fn place(&self, tokens: usize) -> u32 {
        match self.round {
            Some(round) if tokens >= self.path.len() => {
                self.path[round + (tokens - round) % (self.path.len() - round)]
            }
            _ => self.path[tokens],
        }
    }

    /// The next byte to try at the last position; `None` after all of them.
    pub(super) fn next_byte(&mut self) -> Option<u8> {
        let (tried, _) = self.tried.last_mut()?;
        *tried += 1;
        BYTES.get(*tried - 1).copied()
    }

    /// Goes on to a position, unless paths from there are too short; true where that makes the path
    /// as long as it is to be, since it comes round.
    pub(super) fn enter(&mut self, next: u32, tokens: usize) -> bool {
        match self.longest.get(&next) {
            Some(&Some(longest)) if self.path.len() + longest < tokens => self.note(longest),
            // A path that is long enough is found from there again.
            None | Some(Some(_)) => self.push(next),
            Some(None) => {
                self.round = self.path.iter().rposition(|&at| at == next);
                return true;
            }
        }
        false
    }

    /// Leaves the last position, from which all was tried.
    pub(super) fn leave(&mut self) {
        if let (Some(at), Some((_, longest))) = (self.path.pop(), self.tried.pop()) {
            self.longest.insert(at, Some(longest));
            self.note(longest);
        }
    }

    /// Notes a path from the last position over one from which so many tokens go on.
    fn note(&mut self, after: usize) {
        if let Some((_, longest)) = self.tried.last_mut() {
            *longest = (*longest).max(after + 1);
        }
    }
}

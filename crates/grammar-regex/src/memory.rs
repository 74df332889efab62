//! The memory that expressions hold, each shared part once.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::Regex;

/// Counts of references, which lie before what they count.
const COUNTS: usize = 2 * size_of::<usize>();

/// Parts of expressions that were counted, by their addresses.
#[derive(Debug, Default)]
pub struct CountedParts(HashSet<usize>);

impl CountedParts {
    /// Memory that an expression holds elsewhere, without the parts that were counted before; it is
    /// among them afterwards.
    pub fn bytes_of(&mut self, regex: &Regex) -> usize {
        match regex {
            Regex::Never | Regex::Empty | Regex::Multiple(_) => 0,
            Regex::Literal(text) => self.first(text.as_ptr().addr(), text.len()),
            Regex::Class(class) => self.first_slice(class.ranges()),
            Regex::Tokens(tokens) => self.first_slice(&tokens.parts),
            Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
                match self.first_slice(parts) {
                    0 => 0,
                    own => own + parts.iter().map(|part| self.bytes_of(part)).sum::<usize>(),
                }
            }
            Regex::Repeat { inner, .. }
            | Regex::Not(inner)
            | Regex::Whole(inner)
            | Regex::Look { inner, .. } => {
                match self.first(Arc::as_ptr(inner).addr(), size_of::<Regex>()) {
                    0 => 0,
                    own => own + self.bytes_of(inner),
                }
            }
        }
    }

    fn first_slice<T>(&mut self, slice: &[T]) -> usize {
        self.first(slice.as_ptr().addr(), size_of_val(slice))
    }

    /// The size of a part with its counts, the first time that it is met; then 0.
    fn first(&mut self, address: usize, bytes: usize) -> usize {
        if self.0.insert(address) { COUNTS + bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_parts_are_counted_once() {
        let word = Regex::literal("some text");
        let twice = Regex::concat([word.clone(), Regex::Empty, word.clone().repeat(2, None)]);
        let mut counted = CountedParts::default();
        let alone = CountedParts::default().bytes_of(&word);
        assert_eq!(alone, 9 + COUNTS);
        let both = counted.bytes_of(&twice);
        assert_eq!(both, alone + 3 * size_of::<Regex>() + 2 * COUNTS);
        assert_eq!((counted.bytes_of(&twice), counted.bytes_of(&word)), (0, 0));
        assert_eq!(counted.bytes_of(&Regex::literal("some text")), alone);
    }
}

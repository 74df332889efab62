//! First bytes of an expression's texts, from its tree.

use crate::{ByteSet, Regex};

impl Regex {
    /// The bytes with which its texts begin, and perhaps some more: parts that are intersected,
    /// complemented or look around are not weighed against each other.
    ///
    /// Cost: one look at each node of the tree that may come first.
    pub fn first_bytes(&self) -> ByteSet {
        let mut found = ByteSet::default();
        self.add_first_bytes(&mut found);
        found
    }

    /// Adds the first bytes; false when no text is empty for sure.
    fn add_first_bytes(&self, found: &mut ByteSet) -> bool {
        match self {
            Self::Never => false,
            Self::Empty | Self::Look { .. } => true,
            Self::Literal(text) => {
                found.insert_all(text.bytes().take(1));
                text.is_empty()
            }
            Self::Class(class) => {
                for &(low, high) in class.ranges() {
                    // Of characters in order, the first bytes of their encodings are in order too.
                    let [low, high] = [low, high].map(|c| c.encode_utf8(&mut [0; 4]).as_bytes()[0]);
                    found.insert_all(low..=high);
                }
                false
            }
            Self::Concat(parts) => parts.iter().all(|part| part.add_first_bytes(found)),
            Self::Alternate(options) => {
                options.iter().fold(false, |empty, option| option.add_first_bytes(found) | empty)
            }
            Self::Whole(inner) => inner.add_first_bytes(found),
            Self::Repeat { inner, min, .. } => inner.add_first_bytes(found) | (*min == 0),
            Self::And(parts) => {
                let (mut empty, mut common) = (true, (0..=u8::MAX).collect::<ByteSet>());
                for part in &**parts {
                    let mut first = ByteSet::default();
                    empty &= part.add_first_bytes(&mut first);
                    common = common.iter().filter(|&byte| first.contains(byte)).collect();
                }
                found.unite(&common);
                empty
            }
            Self::Multiple(_) | Self::Not(_) | Self::Tokens(_) => {
                found.insert_all(0..=u8::MAX);
                true
            }
        }
    }
}

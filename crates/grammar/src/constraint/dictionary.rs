//! Dictionary of masks by number, each stored once.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use palmette_core::{TokenId, mask};
use palmette_grammar_masks::PoolId;

/// Masks of a dictionary take at most this much memory.
const MAX_BYTES: usize = 256 << 20;

/// The number of a mask in the dictionary of a [`GrammarConstraint`](super::GrammarConstraint) and
/// its clones.
///
/// Equal ids are equal masks, and equal masks have equal ids while the dictionary keeps them: it
/// drops everything when it has grown too large, and ids given out before are then
/// [unknown](super::GrammarConstraint::mask_of) and never given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaskId {
    generation: u32,
    index: u32,
}

impl MaskId {
    /// Number of times that the dictionary had been dropped before this id.
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// The place among the masks of its generation, counted from 0 as they were found: the row
    /// where a copy of the dictionary, on a GPU perhaps, keeps it.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// The tokens that may follow: a mask that is shared, not copied. It stays as it is, whatever
/// becomes of the dictionary.
#[derive(Clone, PartialEq, Eq)]
pub struct MaskRef {
    id: Option<MaskId>,
    words: Arc<[u32]>,
}

impl MaskRef {
    /// A mask that no dictionary keeps.
    pub(super) fn new(words: &[u32]) -> Self {
        Self { id: None, words: words.into() }
    }

    /// Number of the mask; `None` where the dictionary does not keep it, as with bound sets.
    pub fn id(&self) -> Option<MaskId> {
        self.id
    }

    /// Words of the mask: `[num_words]`, token `t` is bit `t % 32` of word `t / 32`, the layout of
    /// XGrammar, llguidance and vLLM.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// True for a token that may follow.
    pub fn contains(&self, token: TokenId) -> bool {
        mask::contains(&self.words, token)
    }

    /// Tokens that may follow, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> {
        mask::iter(&self.words)
    }

    /// Number of tokens that may follow.
    pub fn count(&self) -> usize {
        mask::count(&self.words)
    }
}

impl fmt::Debug for MaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} tokens", self.id, mask::count(&self.words))
    }
}

/// Contents of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryStatistics {
    /// Different masks.
    pub masks: usize,
    /// Their memory, and that of what leads to them.
    pub bytes: usize,
    /// Number of times that everything was dropped.
    pub generation: u32,
}

/// The masks that were asked for by reference.
#[derive(Debug, Default)]
pub(super) struct MaskDictionary {
    kept: RwLock<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    generation: u32,
    masks: Vec<Arc<[u32]>>,
    by_hash: HashMap<u64, Vec<u32>>,
    /// Entries by the masks of the automaton that are joined.
    by_parts: HashMap<Parts, u32>,
    bytes: usize,
}

/// Masks of which a mask is the union.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parts {
    /// Generation of the automaton's memo.
    pub(super) generation: u32,
    pub(super) parts: Box<[PoolId]>,
    /// The tokens that are taken out of it.
    pub(super) denied: Arc<[TokenId]>,
    pub(super) ends: bool,
}

impl MaskDictionary {
    pub(super) fn statistics(&self) -> DictionaryStatistics {
        let kept = self.read();
        let (masks, bytes, generation) = (kept.masks.len(), kept.bytes, kept.generation);
        DictionaryStatistics { masks, bytes, generation }
    }

    /// The mask of an id; `None` when it has been dropped since.
    pub(super) fn mask_of(&self, id: MaskId) -> Option<MaskRef> {
        let kept = self.read();
        let words = kept.masks.get(id.index()).filter(|_| kept.generation == id.generation)?;
        Some(MaskRef { id: Some(id), words: Arc::clone(words) })
    }

    /// All masks from the index `first` on.
    pub(super) fn masks(&self, first: usize) -> Vec<MaskRef> {
        let kept = self.read();
        let generation = kept.generation;
        let rest = kept.masks.iter().enumerate().skip(first);
        rest.map(|(index, words)| MaskRef {
            id: Some(MaskId { generation, index: index as u32 }),
            words: Arc::clone(words),
        })
        .collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Entries> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self, parts: &Parts) -> Option<MaskRef> {
        let kept = self.read();
        kept.by_parts.get(parts).map(|&index| kept.at(index))
    }

    pub(super) fn intern(&self, words: &[u32], parts: Option<Parts>) -> MaskRef {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes > MAX_BYTES {
            *kept = Entries { generation: kept.generation.wrapping_add(1), ..Entries::default() };
        }
        let hash = hash(words);
        let alike = kept.by_hash.get(&hash).map_or(&[][..], Vec::as_slice);
        let known = alike.iter().copied().find(|&index| *kept.masks[index as usize] == *words);
        let index = known.unwrap_or_else(|| {
            let index = kept.masks.len() as u32;
            kept.bytes += size_of_val(words) + 2 * size_of::<(u64, Arc<[u32]>)>();
            kept.masks.push(words.into());
            kept.by_hash.entry(hash).or_default().push(index);
            index
        });
        if let Some(parts) = parts {
            kept.bytes += size_of::<(Parts, u32)>()
                + size_of_val(&*parts.parts)
                + size_of_val(&*parts.denied);
            kept.by_parts.insert(parts, index);
        }
        kept.at(index)
    }
}

impl Entries {
    fn at(&self, index: u32) -> MaskRef {
        let id = MaskId { generation: self.generation, index };
        MaskRef { id: Some(id), words: Arc::clone(&self.masks[index as usize]) }
    }
}

/// A hash of a mask's words, eight bytes at a time.
fn hash(words: &[u32]) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let (pairs, rest) = words.as_chunks::<2>();
    let hash = pairs.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &[low, high]| {
        mix(hash, u64::from(low) | u64::from(high) << 32)
    });
    rest.iter().fold(hash, |hash, &word| mix(hash, word.into()))
}

//! Which bytes an expression does not tell apart.

use std::{collections::HashMap, sync::Arc};

/// A partition of the bytes into classes, numbered by their least byte.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByteClasses {
    class_of: [u8; 256],
    /// The least byte of each class, ascending.
    representatives: Box<[u8]>,
}

/// A partition's place in [`Partitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartitionId(u32);

/// Interned partitions and their joins.
#[derive(Debug)]
pub(crate) struct Partitions {
    partitions: Vec<Arc<ByteClasses>>,
    ids: HashMap<Arc<ByteClasses>, PartitionId>,
    joins: HashMap<(PartitionId, PartitionId), PartitionId>,
}

impl ByteClasses {
    /// Bytes are in one class where `label` gives them the same number.
    fn new(label: impl Fn(u8) -> u32) -> Self {
        let mut class_of = [0; 256];
        let mut numbers = HashMap::new();
        let mut representatives = Vec::new();
        for byte in 0..=u8::MAX {
            let class = *numbers.entry(label(byte)).or_insert_with(|| {
                representatives.push(byte);
                (representatives.len() - 1) as u8
            });
            class_of[byte as usize] = class;
        }
        Self { class_of, representatives: representatives.into() }
    }

    /// The class of a byte.
    pub(crate) fn class(&self, byte: u8) -> usize {
        self.class_of[byte as usize] as usize
    }

    /// A byte of each class.
    pub(crate) fn representatives(&self) -> &[u8] {
        &self.representatives
    }
}

impl PartitionId {
    /// All bytes in one class.
    pub(crate) const TRIVIAL: Self = Self(0);
}

impl Partitions {
    pub(crate) fn new() -> Self {
        let mut partitions =
            Self { partitions: Vec::new(), ids: HashMap::new(), joins: HashMap::new() };
        partitions.intern(|_| 0);
        partitions
    }

    pub(crate) fn get(&self, id: PartitionId) -> &Arc<ByteClasses> {
        &self.partitions[id.0 as usize]
    }

    /// The partition whose classes have the same `label`.
    pub(crate) fn intern(&mut self, label: impl Fn(u8) -> u32) -> PartitionId {
        let classes = Arc::new(ByteClasses::new(label));
        if let Some(&id) = self.ids.get(&classes) {
            return id;
        }
        let id = PartitionId(self.partitions.len() as u32);
        self.partitions.push(Arc::clone(&classes));
        self.ids.insert(classes, id);
        id
    }

    /// The coarsest partition that is as fine as both.
    pub(crate) fn join(&mut self, a: PartitionId, b: PartitionId) -> PartitionId {
        if a == b || b == PartitionId::TRIVIAL {
            return a;
        }
        if a == PartitionId::TRIVIAL {
            return b;
        }
        let pair = if a.0 < b.0 { (a, b) } else { (b, a) };
        if let Some(&joined) = self.joins.get(&pair) {
            return joined;
        }
        let (first, second) = (Arc::clone(self.get(a)), Arc::clone(self.get(b)));
        let joined = self.intern(|byte| (first.class(byte) << 8 | second.class(byte)) as u32);
        self.joins.insert(pair, joined);
        joined
    }
}

//! Byte classes: partitions of the bytes by the derivatives of an expression.

use std::sync::Arc;

use hashbrown::HashMap;

use super::Arm;

/// A partition of the bytes into classes, numbered by their least byte.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ByteClasses {
    class_of: [u8; 256],
    /// The least byte of each class, ascending.
    representatives: Box<[u8]>,
}

/// A partition's place in [`Partitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartitionId(u32);

/// Interned partitions and their joins.
#[derive(Debug)]
pub(super) struct Partitions {
    partitions: Vec<Arc<ByteClasses>>,
    ids: HashMap<Arc<ByteClasses>, PartitionId>,
    joins: HashMap<(PartitionId, PartitionId), PartitionId>,
    /// Partitions into a range of bytes, from one to another, and all others.
    ranges: HashMap<(u8, u8), PartitionId>,
    arms: HashMap<ArmShapes, PartitionId>,
    digits: Option<PartitionId>,
}

/// Several arms of a switch: from which byte to which, and the first arm that leads to the same.
type ArmShapes = Box<[(u8, u8, u8)]>;

impl ByteClasses {
    /// Bytes are in one class where `label` gives them the same number.
    fn new(label: impl Fn(u8) -> u32) -> Self {
        let mut class_of = [0; 256];
        let mut labels: Vec<u32> = Vec::new();
        let mut representatives = Vec::new();
        let mut last = 0;
        for byte in 0..=u8::MAX {
            let own = label(byte);
            // Neighbours mostly are of one class, and classes are few.
            if labels.get(last) != Some(&own) {
                last = labels.iter().position(|&known| known == own).unwrap_or(labels.len());
            }
            if last == labels.len() {
                labels.push(own);
                representatives.push(byte);
            }
            class_of[byte as usize] = last as u8;
        }
        Self { class_of, representatives: representatives.into() }
    }

    /// The class of a byte.
    #[inline]
    pub fn class(&self, byte: u8) -> usize {
        self.class_of[byte as usize] as usize
    }

    /// A byte of each class.
    #[inline]
    pub fn representatives(&self) -> &[u8] {
        &self.representatives
    }
}

impl PartitionId {
    /// All bytes in one class.
    pub(super) const TRIVIAL: Self = Self(0);
}

impl Partitions {
    pub(super) fn new() -> Self {
        let mut partitions = Self {
            partitions: Vec::new(),
            ids: HashMap::new(),
            joins: HashMap::new(),
            ranges: HashMap::new(),
            arms: HashMap::new(),
            digits: None,
        };
        partitions.intern(|_| 0);
        partitions
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        // Entries of tables take a byte more, and parts with counts two numbers.
        const PARTITION: usize = 2 * size_of::<usize>()
            + size_of::<ByteClasses>()
            + 2 * size_of::<Arc<ByteClasses>>()
            + size_of::<PartitionId>();
        const JOIN: usize = 3 * size_of::<PartitionId>() + 1;
        const ARMS: usize = size_of::<(ArmShapes, PartitionId)>() + 1;
        let classes = self.partitions.iter().map(|one| PARTITION + one.representatives.len());
        let arms = self.arms.keys().map(|shape| ARMS + size_of_val(&**shape));
        classes.chain(arms).sum::<usize>()
            + self.joins.capacity() * JOIN
            + self.ranges.capacity() * 2 * size_of::<PartitionId>()
    }

    pub(super) fn get(&self, id: PartitionId) -> &Arc<ByteClasses> {
        &self.partitions[id.0 as usize]
    }

    /// The partition whose classes have the same `label`.
    pub(super) fn intern(&mut self, label: impl Fn(u8) -> u32) -> PartitionId {
        let classes = Arc::new(ByteClasses::new(label));
        if let Some(&id) = self.ids.get(&classes) {
            return id;
        }
        let id = PartitionId(self.partitions.len() as u32);
        self.partitions.push(Arc::clone(&classes));
        self.ids.insert(classes, id);
        id
    }

    /// The partition that tells apart what comes after the bytes of a switch's arms, which are
    /// sorted and disjoint.
    pub(super) fn of_arms(&mut self, arms: &[Arm]) -> PartitionId {
        // Texts are made of these.
        if let [only] = arms {
            return self.of_range(only.low, only.high);
        }
        let first = |then| arms.iter().position(|arm| arm.then == then).unwrap_or(0) as u8;
        let shape: Box<[_]> = arms.iter().map(|arm| (arm.low, arm.high, first(arm.then))).collect();
        if let Some(&known) = self.arms.get(&shape) {
            return known;
        }
        let label = |byte: u8| {
            let at = shape.partition_point(|&(_, high, _)| high < byte);
            let arm = shape.get(at).filter(|&&(low, ..)| low <= byte);
            arm.map_or(0, |&(.., first)| u32::from(first) + 1)
        };
        let made = self.intern(label);
        self.arms.insert(shape, made);
        made
    }

    /// The partition that tells digits and the point apart.
    pub(super) fn of_digits(&mut self) -> PartitionId {
        let digits = self.digits.take().unwrap_or_else(|| {
            self.intern(|byte| match byte {
                b'0'..=b'9' | b'.' => u32::from(byte),
                _ => 0,
            })
        });
        *self.digits.insert(digits)
    }

    /// The partition into these bytes and all others.
    fn of_range(&mut self, low: u8, high: u8) -> PartitionId {
        if let Some(&known) = self.ranges.get(&(low, high)) {
            return known;
        }
        let made = self.intern(|byte| u32::from((low..=high).contains(&byte)));
        self.ranges.insert((low, high), made);
        made
    }

    /// The coarsest partition that is as fine as both.
    pub(super) fn join(&mut self, a: PartitionId, b: PartitionId) -> PartitionId {
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

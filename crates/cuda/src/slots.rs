//! Slots of beams' keys and values, in ranges side by side.

use std::sync::{Arc, Mutex};

/// Ranges of slots, taken and given back.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Ranges that are free: begin and end, in order, none beside another.
    free: Mutex<Vec<(usize, usize)>>,
}

/// A range of slots, which is given back with it.
#[derive(Debug)]
pub(crate) struct SlotRange {
    slots: Arc<Slots>,
    /// First slot.
    pub(crate) first: usize,
    len: usize,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(vec![(0, count)]) })
    }

    /// Takes so many slots side by side, the first that are; none if nowhere are so many.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Option<SlotRange> {
        if len == 0 {
            return Some(SlotRange { slots: Arc::clone(self), first: 0, len });
        }
        let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = free.iter().position(|(begin, end)| end - begin >= len)?;
        let first = free[at].0;
        free[at].0 += len;
        if free[at].0 == free[at].1 {
            free.remove(at);
        }
        Some(SlotRange { slots: Arc::clone(self), first, len })
    }
}

impl Drop for SlotRange {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        let mut free = self.slots.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = free.partition_point(|&(begin, _)| begin < self.first);
        free.insert(at, (self.first, self.first + self.len));
        if at + 1 < free.len() && free[at].1 == free[at + 1].0 {
            free[at].1 = free.remove(at + 1).1;
        }
        if at > 0 && free[at - 1].1 == free[at].0 {
            free[at - 1].1 = free.remove(at).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_slots_come_back_whole() {
        let slots = Slots::new(100);
        let ranges = [30, 40, 20].map(|len| slots.take(len).unwrap());
        assert_eq!(ranges.each_ref().map(|range| range.first), [0, 30, 70]);
        assert!(slots.take(11).is_none());
        let [first, second, third] = ranges;
        drop(first);
        drop(third);
        assert!(slots.take(31).is_none());
        assert_eq!(slots.take(30).unwrap().first, 0);
        drop(second);
        assert_eq!(slots.take(100).unwrap().first, 0);
        assert_eq!(slots.take(0).unwrap().first, 0);
    }
}

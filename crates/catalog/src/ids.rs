//! Item ids in rank order, and the way back from an id to its rank.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::index::{PackedInts, PackedIntsMeta, Packer, bits_for};

/// The ids of all items: their texts one after another, and a hash table of ranks.
///
/// Cost: a look-up by id reads one place of the table, then an id for each item whose hash falls on
/// the places after it, one or two. Memory: the text, and about 8 bytes an item at 20 million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    text: Array<u8>,
    /// Start of each id, and last the length of the text.
    starts: PackedInts,
    /// Place `p` holds one more than the rank of an item, or 0: open addressing, in order of ranks.
    places: PackedInts,
}

/// Serialised place of ids in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdsMeta {
    text: u32,
    text_bytes: u64,
    starts: PackedIntsMeta,
    places: PackedIntsMeta,
}

/// Ids in the order in which items arrive.
#[derive(Debug)]
pub(crate) struct IdsBuilder {
    text: Vec<u8>,
    ends: Packer,
}

/// Bits of a place in the text while it grows: a terabyte.
const TEXT_BITS: u32 = 40;

impl Default for IdsBuilder {
    fn default() -> Self {
        let mut ends = Packer::new(TEXT_BITS);
        ends.push(0);
        Self { text: Vec::new(), ends }
    }
}

impl IdsBuilder {
    /// Adds an id.
    ///
    /// # Errors
    /// When all ids together are longer than a terabyte: the rule, as the end of a sentence about
    /// the item.
    pub(crate) fn push(&mut self, id: &str) -> Result<(), String> {
        if (self.text.len() + id.len()) as u64 >> TEXT_BITS != 0 {
            return Err("makes the ids longer than a terabyte; use shorter ids".into());
        }
        self.text.extend_from_slice(id.as_bytes());
        self.ends.push(self.text.len() as u64);
        Ok(())
    }

    /// Ids in rank order: rank `r` is row `order[r]`. `Err` with the rows of two items that have
    /// one id, the earlier first, and the id.
    pub(crate) fn finish(self, order: &[u32]) -> Result<Ids, ((u32, u32), String)> {
        let (text, ends) = (self.text, self.ends.finish());
        let row_text = |row: u32| {
            let at = u64::from(row);
            &text[ends.get(at) as usize..ends.get(at + 1) as usize]
        };
        let mut sorted = Vec::with_capacity(text.len());
        let mut starts = Packer::with_capacity(bits_for(text.len() as u64), order.len() as u64 + 1);
        starts.push(0);
        for &row in order {
            sorted.extend_from_slice(row_text(row));
            starts.push(sorted.len() as u64);
        }
        let num_places = num_places(order.len() as u64);
        let mut places = vec![0_u32; num_places as usize];
        for (rank, &row) in order.iter().enumerate() {
            let id = row_text(row);
            let mut place = first_place(id, num_places);
            while places[place as usize] != 0 {
                let other = order[places[place as usize] as usize - 1];
                if row_text(other) == id {
                    let id = String::from_utf8_lossy(id).into_owned();
                    return Err(((row.min(other), row.max(other)), id));
                }
                place = (place + 1) % num_places;
            }
            places[place as usize] = rank as u32 + 1;
        }
        let bits = bits_for(order.len() as u64);
        Ok(Ids {
            text: sorted.into(),
            starts: starts.finish(),
            places: PackedInts::new(bits, places.into_iter().map(u64::from)),
        })
    }
}

impl Ids {
    pub(crate) fn len(&self) -> u64 {
        self.starts.len() - 1
    }

    /// The id of an item. Text of a damaged file that is not UTF-8 reads as the replacement
    /// character.
    pub(crate) fn get(&self, rank: u64) -> &str {
        std::str::from_utf8(self.get_bytes(rank)).unwrap_or("\u{fffd}")
    }

    fn get_bytes(&self, rank: u64) -> &[u8] {
        let range = self.starts.get(rank) as usize..self.starts.get(rank + 1) as usize;
        self.text.get(range).unwrap_or_default()
    }

    pub(crate) fn rank_of(&self, id: &str) -> Option<u64> {
        let num_places = self.places.len();
        let mut place = first_place(id.as_bytes(), num_places);
        for _ in 0..num_places {
            let rank = self.places.get(place).checked_sub(1)?;
            if rank < self.len() && self.get_bytes(rank) == id.as_bytes() {
                return Some(rank);
            }
            place = (place + 1) % num_places;
        }
        None
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.starts.bytes() + self.places.bytes()
    }

    /// Bytes for `num_items` ids with `text_bytes` bytes of text in all.
    pub(crate) fn bytes_for(num_items: u64, text_bytes: u64) -> u64 {
        let packed = |bits, len| PackedInts::bytes_for(bits, len).unwrap_or(u64::MAX / 8);
        text_bytes
            + packed(bits_for(text_bytes), num_items + 1)
            + packed(bits_for(num_items), num_places(num_items))
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> IdsMeta {
        IdsMeta {
            text: out.add_array(&self.text),
            text_bytes: self.text.len() as u64,
            starts: self.starts.save(out),
            places: self.places.save(out),
        }
    }

    pub(crate) fn load(
        meta: IdsMeta,
        num_items: u64,
        sections: &SectionsIn,
    ) -> Result<Self, String> {
        let IdsMeta { text, text_bytes, starts, places } = meta;
        let ids = Self {
            text: sections.array(text, text_bytes)?,
            starts: PackedInts::load(starts, sections)?,
            places: PackedInts::load(places, sections)?,
        };
        let sizes = ids.starts.len().checked_sub(1) == Some(num_items)
            && ids.places.len() == num_places(num_items);
        if !sizes {
            return Err("its ids have another number".into());
        }
        // Numbers of no bits take no memory: only the places make sure that a file is as large as
        // the number of items that it says.
        let bits = (ids.starts.bits(), ids.places.bits());
        if bits != (bits_for(text_bytes), bits_for(num_items)) {
            return Err("its ids are numbered in another number of bits".into());
        }
        Ok(ids)
    }

    /// Fails unless ids are UTF-8 and their places those of [`IdsBuilder::finish`].
    ///
    /// Looking each id up would not do: in a table without an empty place every search may go
    /// through all of it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ends = self.starts.get(0) == 0 && self.starts.get(self.len()) == self.text.len() as u64;
        if !ends || !self.starts.iter().is_sorted() {
            return Err("its ids are out of order".into());
        }
        let (places, num_places) = (self.places.reader(), self.places.len());
        let mut taken = vec![false; num_places as usize];
        for rank in 0..self.len() {
            let id = std::str::from_utf8(self.get_bytes(rank))
                .map_err(|_| format!("the id of rank {rank} is not UTF-8"))?;
            let mut place = first_place(id.as_bytes(), num_places);
            // What is taken holds an earlier rank.
            while taken[place as usize] {
                if self.get_bytes(places.get(place) - 1) == id.as_bytes() {
                    return Err(format!("item {id:?} stands twice"));
                }
                place = (place + 1) % num_places;
            }
            if places.get(place) != rank + 1 {
                return Err(format!("item {id:?} is not found by its id"));
            }
            taken[place as usize] = true;
        }
        match self.places.iter().zip(taken).all(|(rank, taken)| taken || rank == 0) {
            true => Ok(()),
            false => Err("more places are taken than it has ids".into()),
        }
    }
}

/// Four fifths of the places are taken at most.
fn num_places(num_items: u64) -> u64 {
    num_items + num_items / 4 + 1
}

/// First place that the search for an id looks at. Part of the file format: xxh3 of the id, scaled.
fn first_place(id: &[u8], num_places: u64) -> u64 {
    let hash = xxhash_rust::xxh3::xxh3_64(id);
    ((u128::from(hash) * u128::from(num_places)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_id_is_found(ids in prop::collection::btree_set(".{0,6}", 0..100), other in ".{0,6}") {
            let ids: Vec<String> = ids.into_iter().collect();
            let order: Vec<u32> = (0..ids.len() as u32).rev().collect();
            let mut builder = IdsBuilder::default();
            for id in &ids {
                builder.push(id).map_err(TestCaseError::fail)?;
            }
            let made = builder.finish(&order).expect("ids differ");
            prop_assert_eq!(made.bytes() as u64, Ids::bytes_for(made.len(), made.text.len() as u64));
            prop_assert_eq!(made.check(), Ok(()));
            for (rank, &row) in order.iter().enumerate() {
                prop_assert_eq!(made.get(rank as u64), &ids[row as usize]);
                prop_assert_eq!(made.rank_of(&ids[row as usize]), Some(rank as u64));
            }
            prop_assert_eq!(made.rank_of(&other).is_some(), ids.contains(&other));
        }
    }

    /// Each search would go through all of them.
    #[test]
    fn places_without_an_empty_one_are_found() {
        let mut builder = IdsBuilder::default();
        (0..100).for_each(|n| builder.push(&n.to_string()).expect("short"));
        let mut ids = builder.finish(&(0..100).collect::<Vec<u32>>()).expect("ids differ");
        let places: Vec<u64> = ids.places.iter().map(|rank| rank.max(1)).collect();
        ids.places = PackedInts::new(ids.places.bits(), places);
        assert!((0..100).all(|rank| ids.rank_of(&rank.to_string()) == Some(rank)));
        assert_eq!(ids.check(), Err("more places are taken than it has ids".to_owned()));
    }

    #[test]
    fn the_first_two_of_one_id_are_named() {
        let mut builder = IdsBuilder::default();
        ["a", "b", "a"].iter().for_each(|id| builder.push(id).expect("short"));
        assert_eq!(builder.finish(&[2, 1, 0]), Err(((0, 2), "a".to_owned())));
    }
}

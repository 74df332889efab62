//! Fields within the values of a column of JSON, each as a column of its own.
//!
//! A condition on `variants.color` asks what lies at that path in each distinct value of
//! `variants`. The values are parsed once for the path, side by side; what they hold there is kept,
//! so that every later condition compares numbers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::kind::is_large_integer;
use super::spans::{Spans, SpansBuilder};
use super::texts::Texts;
use crate::filter::{Number, Scalar, WHOLE_TEXT, has_leaf};

/// Fields of a column that are kept, and the bytes that they take together; the one asked for last
/// is kept whatever it takes.
const MAX_FIELDS: usize = 32;
const MAX_BYTES: usize = 256 << 20;
/// Values that are parsed in one piece.
const PIECE: usize = 4096;

/// Facts about what one value of the column holds at the path.
mod facts {
    /// A value, be it null.
    pub(super) const PRESENT: u8 = 1;
    /// A value besides null, in lists and objects too.
    pub(super) const LEAF: u8 = 2;
    /// A value that is neither null nor a list without elements.
    pub(super) const FILLED: u8 = 4;
    /// An object, itself or in a list.
    pub(super) const OBJECT: u8 = 8;
}

/// Values at a path within the distinct values of a column.
///
/// Entry 0 is that of a missing value, entry `c` that of code `c`.
#[derive(Debug)]
pub(crate) struct FieldColumn {
    /// Distinct texts, numbers and truth values, ascending.
    leaves: Vec<Scalar>,
    /// Numbers of the leaves of all entries.
    members: Vec<u32>,
    member_spans: Spans,
    /// Numbers of elements, for each list or other value that is not null.
    counts: Vec<u32>,
    count_spans: Spans,
    facts: Vec<u8>,
    is_present: bool,
    has_large_integers: bool,
}

impl FieldColumn {
    /// Parses the path out of every text.
    fn new(texts: &Texts, path: &[&str]) -> Self {
        let starts: Vec<usize> = (0..texts.len()).step_by(PIECE).collect();
        let piece = |&start: &usize| {
            let mut piece = Piece::default();
            for at in start..texts.len().min(start + PIECE) {
                piece.add(texts.get(at), path);
            }
            piece
        };
        let pieces: Vec<Piece> = starts.par_iter().map(piece).collect();
        Self::of_pieces(texts.len(), pieces)
    }

    fn of_pieces(len: usize, pieces: Vec<Piece>) -> Self {
        let mut leaves: Vec<Scalar> = pieces.iter().flat_map(Piece::leaves).collect();
        leaves.par_sort_unstable();
        leaves.dedup();
        let (mut members, mut counts) = (Vec::new(), Vec::new());
        let (mut member_spans, mut count_spans) =
            (SpansBuilder::default(), SpansBuilder::default());
        let mut all_facts = Vec::with_capacity(len + 1);
        // The missing value holds nothing.
        member_spans.push(0);
        count_spans.push(0);
        all_facts.push(0);
        let mut has_large_integers = false;
        for piece in pieces {
            let places: Vec<u32> = piece
                .leaves()
                .map(|leaf| leaves.binary_search(&leaf).expect("it was gathered") as u32)
                .collect();
            members.extend(piece.members.iter().map(|&member| places[member as usize]));
            piece.num_members.iter().for_each(|&len| member_spans.push(len));
            counts.extend_from_slice(&piece.counts);
            piece.num_counts.iter().for_each(|&len| count_spans.push(len));
            all_facts.extend_from_slice(&piece.facts);
            has_large_integers |= piece.has_large_integers;
        }
        Self {
            leaves,
            members,
            member_spans: member_spans.build(),
            counts,
            count_spans: count_spans.build(),
            is_present: all_facts.iter().any(|of| of & facts::PRESENT > 0),
            facts: all_facts,
            has_large_integers,
        }
    }

    /// Bytes in memory, about.
    fn bytes(&self) -> usize {
        let leaf = |leaf: &Scalar| match leaf {
            Scalar::Text(text) => text.len(),
            _ => 0,
        };
        let leaves = self.leaves.len() * size_of::<Scalar>();
        let texts: usize = self.leaves.iter().map(leaf).sum();
        let numbers = 4 * (self.members.len() + self.counts.len());
        let spans = self.member_spans.bytes() + self.count_spans.bytes();
        leaves + texts + numbers + spans + self.facts.len()
    }

    /// True if any value has the path.
    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }

    /// True if any value holds an integer there that is never compared.
    pub(crate) fn has_large_integers(&self) -> bool {
        self.has_large_integers
    }

    /// Distinct texts, numbers and truth values, ascending.
    pub(crate) fn leaves(&self) -> &[Scalar] {
        &self.leaves
    }

    /// Codes, ascending, 0 for a missing value among them.
    fn codes(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<u32> {
        (0..self.facts.len()).filter(|&code| is_wanted(code)).map(|code| code as u32).collect()
    }

    /// The codes of values with a leaf of which a predicate holds, by the leaf's number.
    pub(crate) fn with_leaf(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        self.codes(|code| self.members_of(code).iter().any(|&leaf| is_wanted(leaf)))
    }

    /// The codes of values with an element that is no leaf of which a predicate holds: another
    /// leaf, or an object.
    pub(crate) fn with_other_leaf(&self, is_unwanted: impl Fn(u32) -> bool) -> Vec<u32> {
        self.codes(|code| {
            self.facts[code] & facts::OBJECT > 0
                || self.members_of(code).iter().any(|&leaf| !is_unwanted(leaf))
        })
    }

    /// The codes of values with something besides null.
    pub(crate) fn filled(&self) -> Vec<u32> {
        self.codes(|code| self.facts[code] & facts::LEAF > 0)
    }

    /// The codes of values with nothing, null, or lists without elements.
    pub(crate) fn empty(&self) -> Vec<u32> {
        self.codes(|code| self.facts[code] & facts::FILLED == 0)
    }

    /// The codes of values that have the path.
    pub(crate) fn present(&self) -> Vec<u32> {
        self.codes(|code| self.facts[code] & facts::PRESENT > 0)
    }

    /// Codes of values whose number of elements is wanted. A value that is no list counts as one.
    pub(crate) fn with_count(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<u32> {
        let counts = |code: usize| self.counts.get(self.count_spans.get(code)).unwrap_or_default();
        self.codes(|code| counts(code).iter().any(|&count| is_wanted(count.into())))
    }

    fn members_of(&self, code: usize) -> &[u32] {
        self.members.get(self.member_spans.get(code)).unwrap_or_default()
    }
}

/// Parsed leaves of a part of the values, numbered as they come.
#[derive(Default)]
struct Piece {
    texts: HashMap<String, u32>,
    others: HashMap<Scalar, u32>,
    members: Vec<u32>,
    num_members: Vec<usize>,
    counts: Vec<u32>,
    num_counts: Vec<usize>,
    facts: Vec<u8>,
    has_large_integers: bool,
}

impl Piece {
    fn add(&mut self, text: &str, path: &[&str]) {
        let (first_member, first_count) = (self.members.len(), self.counts.len());
        let mut found = 0;
        // Only a damaged file holds text that is no JSON; what was read of it until then counts.
        _ = for_each_at(text, path, &mut |value| found |= self.add_value(value));
        self.members[first_member..].sort_unstable();
        self.facts.push(found);
        self.num_members.push(self.members.len() - first_member);
        self.num_counts.push(self.counts.len() - first_count);
    }

    /// Takes down one value at the path; returns the facts about it.
    fn add_value(&mut self, value: Value) -> u8 {
        let mut found = facts::PRESENT;
        let (count, is_filled) = match &value {
            Value::Null => return found,
            Value::Array(elements) => (elements.len(), !elements.is_empty()),
            _ => (1, true),
        };
        self.counts.push(u32::try_from(count).unwrap_or(u32::MAX));
        found |= if is_filled { facts::FILLED } else { 0 };
        found |= if has_leaf(&value) { facts::LEAF } else { 0 };
        found | self.add_elements(value)
    }

    fn add_elements(&mut self, value: Value) -> u8 {
        let number = match value {
            Value::Null => return 0,
            Value::Object(_) => return facts::OBJECT,
            Value::Array(elements) => {
                return elements
                    .into_iter()
                    .fold(0, |found, value| found | self.add_elements(value));
            }
            Value::String(text) => self.text_number(text),
            Value::Bool(value) => self.number(Scalar::Boolean(value)),
            Value::Number(number) if is_large_integer(&number) => {
                self.has_large_integers = true;
                return 0;
            }
            Value::Number(number) => match number.as_f64().and_then(Number::new) {
                Some(number) => self.number(Scalar::Number(number)),
                None => return 0,
            },
        };
        self.members.push(number);
        0
    }

    fn text_number(&mut self, text: String) -> u32 {
        let next = (self.texts.len() + self.others.len()) as u32;
        *self.texts.entry(text).or_insert(next)
    }

    fn number(&mut self, scalar: Scalar) -> u32 {
        let next = (self.texts.len() + self.others.len()) as u32;
        *self.others.entry(scalar).or_insert(next)
    }

    /// The leaves in the order of their numbers.
    fn leaves(&self) -> impl Iterator<Item = Scalar> + use<> {
        let mut leaves = vec![Scalar::Boolean(false); self.texts.len() + self.others.len()];
        for (text, &number) in &self.texts {
            leaves[number as usize] = Scalar::Text(text.clone());
        }
        for (scalar, &number) in &self.others {
            leaves[number as usize] = scalar.clone();
        }
        leaves.into_iter()
    }
}

/// Calls `visit` with every value at a path, as [`values_at`](crate::filter::values_at) finds them;
/// what lies elsewhere is passed over.
fn for_each_at(
    text: &str,
    path: &[&str],
    visit: &mut dyn FnMut(Value),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    AtPath { path, visit }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct AtPath<'a> {
    path: &'a [&'a str],
    visit: &'a mut dyn FnMut(Value),
}

impl<'de> DeserializeSeed<'de> for AtPath<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.path {
            [] => {
                (self.visit)(serde::Deserialize::deserialize(deserializer)?);
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for AtPath<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(is_field) = map.next_key_seed(IsKey(self.path[0]))? {
            match is_field {
                true => {
                    map.next_value_seed(AtPath { path: &self.path[1..], visit: &mut *self.visit })?;
                }
                false => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(AtPath { path: self.path, visit: &mut *self.visit })?.is_some()
        {
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.path == [WHOLE_TEXT] {
            (self.visit)(Value::from(text));
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Seed that reads a key and compares it with this one.
struct IsKey<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// The fields of a column that were asked for last; a copy of the column begins with the same.
#[derive(Default)]
pub(crate) struct FieldCache(Mutex<Vec<CacheEntry>>);

/// Field with its path and size; the one asked for last stands last.
#[derive(Clone)]
struct CacheEntry {
    path: String,
    bytes: usize,
    field: Arc<FieldColumn>,
}

impl FieldCache {
    /// The field at a path, from the cache or parsed now.
    pub(crate) fn get(&self, texts: &Texts, path: &[&str]) -> Arc<FieldColumn> {
        let name = path.join(".");
        if let Some(field) = self.find(&name) {
            return field;
        }
        // Parsed without the lock, so that others need not wait; two may parse the same.
        let field = Arc::new(FieldColumn::new(texts, path));
        let kept = CacheEntry { path: name, bytes: field.bytes(), field: field.clone() };
        let mut fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fields.retain(|other| other.path != kept.path);
        fields.push(kept);
        let mut bytes: usize = fields.iter().map(|kept| kept.bytes).sum();
        while fields.len() > MAX_FIELDS || bytes > MAX_BYTES && fields.len() > 1 {
            bytes -= fields.remove(0).bytes;
        }
        field
    }

    /// Finds a field and makes it the one that was used last.
    fn find(&self, path: &str) -> Option<Arc<FieldColumn>> {
        let mut fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = fields.iter().position(|kept| kept.path == path)?;
        let found = fields.remove(place);
        let field = found.field.clone();
        fields.push(found);
        Some(field)
    }
}

impl Clone for FieldCache {
    fn clone(&self) -> Self {
        let fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Mutex::new(fields.clone()))
    }
}

/// Caches are always equal: they say nothing about a column.
impl PartialEq for FieldCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for FieldCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldCache")
    }
}

//! One attribute of all items.

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::codes::{Codes, CodesMeta};
use super::dictionary::{Dictionary, DictionaryMeta};
use super::fields::FieldCache;
use super::kind::{ColumnKind, ValueKind};

/// One attribute of all items: a dictionary of its values and a code for each rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) dictionary: Dictionary,
    pub(crate) codes: Codes,
    pub(crate) num_missing: u64,
    /// The first two kinds of value that made this a column of JSON.
    pub(crate) clash: Option<(ValueKind, ValueKind)>,
    pub(crate) fields: FieldCache,
}

impl Column {
    pub(crate) fn bytes(&self) -> usize {
        self.dictionary.bytes() + self.codes.bytes() + self.name.len()
    }

    pub(crate) fn description(&self) -> ColumnDescription<'_> {
        ColumnDescription {
            name: &self.name,
            kind: self.dictionary.kind(),
            num_distinct: self.dictionary.len() as u64,
            num_missing: self.num_missing,
            bytes: self.bytes() as u64,
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> ColumnMeta {
        ColumnMeta {
            name: self.name.clone(),
            dictionary: self.dictionary.save(out),
            codes: self.codes.save(out),
            num_missing: self.num_missing,
            clash: self.clash,
        }
    }

    pub(crate) fn load(
        meta: &ColumnMeta,
        sections: &SectionsIn,
        num_ranks: u64,
    ) -> Result<Self, String> {
        let dictionary = Dictionary::load(&meta.dictionary, sections)?;
        if dictionary.len() as u64 > num_ranks {
            return Err(format!("{} values for {num_ranks} ranks", dictionary.len()));
        }
        Ok(Self {
            name: meta.name.clone(),
            codes: Codes::load(&meta.codes, sections, num_ranks, dictionary.len() as u64)?,
            dictionary,
            num_missing: meta.num_missing,
            clash: meta.clash,
            fields: FieldCache::default(),
        })
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.dictionary.check()?;
        self.codes.check(self.dictionary.len(), self.num_missing)
    }
}

/// Description of a column: its name, kind, counts and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDescription<'a> {
    /// The name of the attribute.
    pub name: &'a str,
    /// Kind of its values.
    pub kind: ColumnKind,
    /// Number of different values.
    pub num_distinct: u64,
    /// Number of items that have none.
    pub num_missing: u64,
    /// Bytes it takes, in memory and in a file.
    pub bytes: u64,
}

/// Serialised place of a column in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ColumnMeta {
    pub(crate) name: String,
    dictionary: DictionaryMeta,
    codes: CodesMeta,
    num_missing: u64,
    clash: Option<(ValueKind, ValueKind)>,
}

//! The distinct values of a column, in ascending order.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind::{ColumnKind, number_to_json};
use super::lists::{Lists, ListsMeta};
use super::texts::{Texts, TextsMeta};
use super::timestamp;

/// The distinct values of a column, in ascending order; code `c` stands for value `c - 1`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dictionary {
    Keyword(Texts),
    /// `spelled_as_floats`: whole numbers were given as `3.0`, not as `3`.
    Number {
        values: Array<f64>,
        spelled_as_floats: bool,
    },
    /// 0 and 1.
    Boolean(Array<u8>),
    /// Microseconds since 1970.
    Timestamp(Array<i64>),
    Keywords(Lists),
    /// JSON texts.
    Json(Texts),
}

impl Dictionary {
    pub(crate) fn kind(&self) -> ColumnKind {
        match self {
            Self::Keyword(_) => ColumnKind::Keyword,
            Self::Number { .. } => ColumnKind::Number,
            Self::Boolean(_) => ColumnKind::Boolean,
            Self::Timestamp(_) => ColumnKind::Timestamp,
            Self::Keywords(_) => ColumnKind::Keywords,
            Self::Json(_) => ColumnKind::Json,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Keyword(texts) | Self::Json(texts) => texts.len(),
            Self::Number { values, .. } => values.len(),
            Self::Boolean(values) => values.len(),
            Self::Timestamp(values) => values.len(),
            Self::Keywords(lists) => lists.len(),
        }
    }

    /// The value that `code` stands for; `None` for 0, and for what only a damaged file holds.
    pub(crate) fn value(&self, code: u32) -> Option<Value> {
        let at = (code as usize).checked_sub(1).filter(|&at| at < self.len())?;
        Some(match self {
            Self::Keyword(texts) => texts.get(at).into(),
            Self::Number { values, spelled_as_floats: true } => Value::from(values[at]),
            Self::Number { values, .. } => number_to_json(values[at]),
            Self::Boolean(values) => Value::from(values[at] != 0),
            Self::Timestamp(values) => timestamp::to_text(values[at])?.into(),
            Self::Keywords(lists) => lists.get(at).map(Value::from).collect(),
            Self::Json(texts) => serde_json::from_str(texts.get(at)).ok()?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Keyword(texts) | Self::Json(texts) => texts.bytes(),
            Self::Number { values, .. } => values.as_bytes().len(),
            Self::Boolean(values) => values.len(),
            Self::Timestamp(values) => values.as_bytes().len(),
            Self::Keywords(lists) => lists.bytes(),
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> DictionaryMeta {
        let len = self.len() as u64;
        match self {
            Self::Keyword(texts) => DictionaryMeta::Keyword(texts.save(out)),
            Self::Number { values, spelled_as_floats } => DictionaryMeta::Number {
                len,
                values: out.add_array(values),
                spelled_as_floats: *spelled_as_floats,
            },
            Self::Boolean(values) => DictionaryMeta::Boolean { len, values: out.add_array(values) },
            Self::Timestamp(values) => {
                DictionaryMeta::Timestamp { len, values: out.add_array(values) }
            }
            Self::Keywords(lists) => DictionaryMeta::Keywords(lists.save(out)),
            Self::Json(texts) => DictionaryMeta::Json(texts.save(out)),
        }
    }

    pub(crate) fn load(meta: &DictionaryMeta, sections: &SectionsIn) -> Result<Self, String> {
        Ok(match *meta {
            DictionaryMeta::Keyword(ref texts) => Self::Keyword(Texts::load(texts, sections)?),
            DictionaryMeta::Number { len, values, spelled_as_floats } => {
                Self::Number { values: sections.array(values, len)?, spelled_as_floats }
            }
            DictionaryMeta::Boolean { len, values } => Self::Boolean(sections.array(values, len)?),
            DictionaryMeta::Timestamp { len, values } => {
                Self::Timestamp(sections.array(values, len)?)
            }
            DictionaryMeta::Keywords(ref lists) => Self::Keywords(Lists::load(lists, sections)?),
            DictionaryMeta::Json(ref texts) => Self::Json(Texts::load(texts, sections)?),
        })
    }

    /// Fails unless the values are of their kind and strictly ascend.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sound = match self {
            Self::Keyword(texts) => return texts.check(),
            Self::Keywords(lists) => return lists.check(),
            Self::Json(texts) => {
                texts.check()?;
                let is_json =
                    |at| serde_json::from_str(texts.get(at)).is_ok_and(|v: Value| !v.is_null());
                (0..texts.len()).all(is_json)
            }
            Self::Number { values, .. } => {
                // Zero without a sign: with one it would not be found.
                let sound =
                    |value: &f64| value.is_finite() && value.to_bits() != (-0.0_f64).to_bits();
                values.iter().all(sound) && values.windows(2).all(|pair| pair[0] < pair[1])
            }
            Self::Boolean(values) => {
                values.iter().all(|&value| value <= 1) && values.is_sorted_by(|a, b| a < b)
            }
            Self::Timestamp(values) => {
                values.iter().all(|&value| timestamp::to_text(value).is_some())
                    && values.is_sorted_by(|a, b| a < b)
            }
        };
        let problem = || format!("values that are no {} or do not ascend", self.kind());
        if sound { Ok(()) } else { Err(problem()) }
    }
}

/// Serialised place of a [`Dictionary`] in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DictionaryMeta {
    Keyword(TextsMeta),
    Number { len: u64, values: u32, spelled_as_floats: bool },
    Boolean { len: u64, values: u32 },
    Timestamp { len: u64, values: u32 },
    Keywords(ListsMeta),
    Json(TextsMeta),
}

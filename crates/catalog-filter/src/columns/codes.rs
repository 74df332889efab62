//! One small number a rank.

use std::fmt::Debug;

use palmette_mapped::{Array, Pod, SectionsIn, SectionsOut};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// For each rank the place of its value in the dictionary, counted from 1; 0 where it has none.
/// As narrow as the dictionary's length allows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Codes {
    /// At most 255 values.
    U8(Array<u8>),
    /// At most 65,535 values.
    U16(Array<u16>),
    /// Codes of at most 2^32 − 1 values.
    U32(Array<u32>),
}

/// Runs the same code for whichever width the codes have.
macro_rules! for_each_width {
    ($codes:expr, $array:ident => $body:expr) => {
        match $codes {
            Codes::U8($array) => $body,
            Codes::U16($array) => $body,
            Codes::U32($array) => $body,
        }
    };
}
pub(crate) use for_each_width;

impl Codes {
    /// Codes below or equal to `num_values`, computed side by side.
    pub(crate) fn compute(
        num_ranks: usize,
        num_values: usize,
        code: impl Fn(usize) -> u32 + Sync + Send,
    ) -> Self {
        fn collect<T: Pod>(num_ranks: usize, code: impl Fn(usize) -> T + Sync + Send) -> Array<T> {
            (0..num_ranks).into_par_iter().map(code).collect::<Vec<T>>().into()
        }
        match Width::of(num_values as u64) {
            Width::U8 => Self::U8(collect(num_ranks, |rank| code(rank) as u8)),
            Width::U16 => Self::U16(collect(num_ranks, |rank| code(rank) as u16)),
            Width::U32 => Self::U32(collect(num_ranks, code)),
        }
    }

    /// The code of a rank; 0 past the last one.
    #[inline]
    pub(crate) fn get(&self, rank: u64) -> u32 {
        let Ok(rank) = usize::try_from(rank) else { return 0 };
        match self {
            Self::U8(codes) => codes.get(rank).copied().unwrap_or_default().into(),
            Self::U16(codes) => codes.get(rank).copied().unwrap_or_default().into(),
            Self::U32(codes) => codes.get(rank).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        for_each_width!(self, codes => codes.as_bytes().len())
    }

    /// Bytes a rank.
    pub(crate) fn width(&self) -> Width {
        match self {
            Self::U8(_) => Width::U8,
            Self::U16(_) => Width::U16,
            Self::U32(_) => Width::U32,
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> CodesMeta {
        let section = for_each_width!(self, codes => out.add_array(codes));
        CodesMeta { width: self.width(), section }
    }

    pub(crate) fn load(
        meta: &CodesMeta,
        sections: &SectionsIn,
        num_ranks: u64,
        num_values: u64,
    ) -> Result<Self, String> {
        if meta.width != Width::of(num_values) {
            return Err(format!("codes of {num_values} values in {:?}", meta.width));
        }
        Ok(match meta.width {
            Width::U8 => Self::U8(sections.array(meta.section, num_ranks)?),
            Width::U16 => Self::U16(sections.array(meta.section, num_ranks)?),
            Width::U32 => Self::U32(sections.array(meta.section, num_ranks)?),
        })
    }

    /// Fails unless the codes are those of `num_values`, each used, `num_missing` of them 0.
    pub(crate) fn check(&self, num_values: usize, num_missing: u64) -> Result<(), String> {
        let mut seen = vec![false; num_values + 1];
        let mut found_missing = 0;
        for_each_width!(self, codes => for &code in codes.as_slice() {
            let code = code as usize;
            let Some(seen) = seen.get_mut(code) else {
                return Err(format!("code {code} of {num_values}"));
            };
            *seen = true;
            found_missing += u64::from(code == 0);
        });
        if found_missing != num_missing {
            return Err(format!("{found_missing} values are missing, not {num_missing}"));
        }
        match seen[1..].iter().position(|&seen| !seen) {
            Some(value) => Err(format!("value {value} of the dictionary is nowhere")),
            None => Ok(()),
        }
    }
}

/// Bytes of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Width {
    U8,
    U16,
    U32,
}

impl Width {
    fn of(num_values: u64) -> Self {
        match num_values {
            0..0x100 => Self::U8,
            0x100..0x1_0000 => Self::U16,
            _ => Self::U32,
        }
    }
}

/// Serialised place of [`Codes`] in a file: their width and section.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CodesMeta {
    width: Width,
    section: u32,
}

/// Codes that grow in number and, when one does not fit, in width.
#[derive(Clone, Debug)]
pub(crate) enum GrowingCodes {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl GrowingCodes {
    /// Appends the code of `row`; rows between the last one and it get 0.
    pub(crate) fn push(&mut self, row: usize, code: u32) {
        match self {
            Self::U8(codes) => match u8::try_from(code) {
                Ok(code) => append(codes, row, code),
                Err(_) => {
                    *self = Self::U16(codes.iter().map(|&code| code.into()).collect());
                    self.push(row, code);
                }
            },
            Self::U16(codes) => match u16::try_from(code) {
                Ok(code) => append(codes, row, code),
                Err(_) => {
                    *self = Self::U32(codes.iter().map(|&code| code.into()).collect());
                    self.push(row, code);
                }
            },
            Self::U32(codes) => append(codes, row, code),
        }
    }

    /// The code of a row; 0 past the last one.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Self::U8(codes) => codes.get(row).copied().unwrap_or_default().into(),
            Self::U16(codes) => codes.get(row).copied().unwrap_or_default().into(),
            Self::U32(codes) => codes.get(row).copied().unwrap_or_default(),
        }
    }
}

fn append<T: Clone + Default>(codes: &mut Vec<T>, row: usize, code: T) {
    codes.resize(row, T::default());
    codes.push(code);
}

//! Tables of a segment: the codes of each level as kernels read them.

use palmette_catalog::index::Index;
use palmette_catalog::{Catalog, CatalogState};

use super::error::CatalogError;
use super::plan::{LevelForm, LevelPlan, TablePlan};
use crate::arguments::Level;
use crate::{Address, Driver, Region, RegionPlan};

/// A segment on a device. Frozen; snapshots share it.
#[derive(Debug)]
pub(crate) struct SegmentTables {
    pub(crate) levels: Vec<Level>,
    pub(crate) num_items: u32,
    region: Region,
}

impl SegmentTables {
    /// Makes and uploads the tables of a catalog whose items all have a code of each level, below
    /// its number of `codes`.
    ///
    /// Cost: a visit of every prefix; host memory for the tables until they are uploaded.
    pub(crate) fn upload(
        driver: &dyn Driver,
        catalog: &Catalog,
        codes: &[u32],
    ) -> Result<Self, CatalogError> {
        let plan = Self::plan(catalog, codes)?;
        let (index, num_items) = (catalog.index(), catalog.num_items());
        let image = Image::new(&plan, index, codes)?;
        let region_plan = RegionPlan { name: "tables of a catalog", bytes: plan.bytes().max(1) };
        let region = super::take(driver, region_plan)?;
        super::upload(driver, &region, &image.bytes)?;
        let level = |plan: &LevelPlan| {
            let at = |range: &std::ops::Range<usize>| match range.is_empty() {
                true => Address::NULL,
                false => region.address_at(range.start),
            };
            let is_masked = plan.form == LevelForm::Masked;
            Level {
                codes: if is_masked { Address::NULL } else { at(&plan.codes) },
                masks: if is_masked { at(&plan.codes) } else { Address::NULL },
                starts: at(&plan.starts),
                begin_bits: at(&plan.begin_bits),
                begin_counts: at(&plan.begin_counts),
                wide: i32::from(plan.code_bytes == 4),
            }
        };
        let levels = plan.levels.iter().map(level).collect();
        Ok(Self { levels, num_items: num_items as u32, region })
    }

    /// Plan of these tables.
    pub(crate) fn plan(catalog: &Catalog, codes: &[u32]) -> Result<TablePlan, CatalogError> {
        let (index, num_items) = (catalog.index(), catalog.num_items());
        if num_items > 0 {
            check_levels(catalog, codes.len())?;
        }
        let num_prefixes: Vec<u64> = match num_items {
            0 => vec![0; codes.len()],
            _ => (0..codes.len()).map(|level| index.num_prefixes(level)).collect(),
        };
        let too_large = CatalogError::TooLarge { items: num_items };
        TablePlan::new(num_items, codes, &num_prefixes).ok_or(too_large)
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// Fails unless every item has so many codes.
fn check_levels(catalog: &Catalog, levels: usize) -> Result<(), CatalogError> {
    let has = catalog.num_levels();
    if has > levels {
        return Err(CatalogError::OtherLevels { catalog: has, searched: levels });
    }
    let short =
        if has < levels { Some(0) } else { catalog.index().shorter_items().first().copied() };
    match short {
        Some(rank) => {
            let (id, codes) = (catalog.id(rank).to_owned(), catalog.codes(rank).len());
            Err(CatalogError::ShorterItem { id, codes, levels })
        }
        None => Ok(()),
    }
}

/// The bytes of a segment's tables, as they are filled.
struct Image<'a> {
    plan: &'a TablePlan,
    codes: &'a [u32],
    bytes: Vec<u8>,
    /// Entries of each level so far: starts of masks, or prefixes.
    filled: Vec<usize>,
    /// Items of the prefixes of each level so far.
    items: Vec<u64>,
}

/// Items whose prefixes are expanded together: it bounds what that takes.
const GROUP_ITEMS: u64 = 1 << 18;

impl<'a> Image<'a> {
    fn new(plan: &'a TablePlan, index: &Index, codes: &'a [u32]) -> Result<Self, CatalogError> {
        let levels = codes.len();
        let mut image = Self {
            plan,
            codes,
            bytes: vec![0; plan.bytes()],
            filled: vec![0; levels],
            items: vec![0; levels],
        };
        if index.num_items() > 0 {
            image.fill(index)?;
        }
        for level in 0..levels {
            image.finish(level, index.num_items())?;
        }
        Ok(image)
    }

    fn fill(&mut self, index: &Index) -> Result<(), CatalogError> {
        let (mut firsts, mut keys) = (Vec::new(), Vec::new());
        self.expand(index, 0, &[index.start()], &[0], &mut firsts, &mut keys)?;
        let (mut next, mut next_keys) = (Vec::new(), Vec::new());
        let mut begin = 0;
        while begin < firsts.len() {
            let mut items = 0;
            let is_full = firsts[begin..].iter().position(|state| {
                items += state.ranks().end - state.ranks().start;
                items >= GROUP_ITEMS
            });
            let end = is_full.map_or(firsts.len(), |last| begin + last + 1);
            let mut states = firsts[begin..end].to_vec();
            let mut state_keys = keys[begin..end].to_vec();
            for level in 1..self.codes.len() {
                next.clear();
                next_keys.clear();
                self.expand(index, level, &states, &state_keys, &mut next, &mut next_keys)?;
                std::mem::swap(&mut states, &mut next);
                std::mem::swap(&mut state_keys, &mut next_keys);
            }
            begin = end;
        }
        Ok(())
    }

    /// Fills a level with what follows some prefixes, in the order of ranks.
    fn expand(
        &mut self,
        index: &Index,
        level: usize,
        states: &[CatalogState],
        keys: &[u32],
        next: &mut Vec<CatalogState>,
        next_keys: &mut Vec<u32>,
    ) -> Result<(), CatalogError> {
        let mut result = Ok(());
        index.successors(states, None, |place, code, child| {
            if result.is_ok() {
                result = self.push(level, keys[place], code, child);
            }
            next.push(child);
            next_keys.push(keys[place].wrapping_mul(self.codes[level]).wrapping_add(code));
        });
        result
    }

    fn push(
        &mut self,
        level: usize,
        key: u32,
        code: u32,
        child: CatalogState,
    ) -> Result<(), CatalogError> {
        let codes = self.codes[level];
        if code >= codes {
            return Err(CatalogError::UnknownCode { level, code, codes });
        }
        let plan = &self.plan.levels[level];
        let (begin, end) = (child.ranks().start as usize, child.ranks().end as usize);
        self.items[level] += (end - begin) as u64;
        match plan.form {
            LevelForm::Masked => {
                let word = key as usize * codes.div_ceil(32) as usize + code as usize / 32;
                or_u32(&mut self.bytes[plan.codes.clone()], word, 1 << (code % 32))?;
                let entry = key as usize * codes as usize + code as usize;
                self.fill_starts(level, entry + 1, begin as u32)?;
            }
            LevelForm::ByRank => {
                for rank in begin..end {
                    write_code(&mut self.bytes[plan.codes.clone()], rank, code, plan.code_bytes)?;
                }
            }
            LevelForm::ByPrefix => {
                let place = self.filled[level];
                write_code(&mut self.bytes[plan.codes.clone()], place, code, plan.code_bytes)?;
                self.fill_starts(level, place + 1, begin as u32)?;
                let bits = &mut self.bytes[self.plan.levels[level].begin_bits.clone()];
                or_u32(bits, begin / 32, 1 << (begin % 32))?;
            }
        }
        Ok(())
    }

    /// Writes `start` over the entries of a level up to one.
    fn fill_starts(&mut self, level: usize, end: usize, start: u32) -> Result<(), CatalogError> {
        let starts = &mut self.bytes[self.plan.levels[level].starts.clone()];
        while self.filled[level] < end {
            write_u32(starts, self.filled[level], start)?;
            self.filled[level] += 1;
        }
        Ok(())
    }

    /// Writes what comes after the last prefix of a level, and checks that none is missing.
    fn finish(&mut self, level: usize, num_items: u64) -> Result<(), CatalogError> {
        if self.items[level] != num_items {
            return Err(CatalogError::Damaged);
        }
        let plan = &self.plan.levels[level];
        if plan.form == LevelForm::ByRank {
            return Ok(());
        }
        self.fill_starts(level, plan.starts.len() / 4, num_items as u32)?;
        let mut before = 0;
        let (bits, counts) = (plan.begin_bits.clone(), plan.begin_counts.clone());
        for word in 0..counts.len() / 4 {
            write_u32(&mut self.bytes[counts.clone()], word, before)?;
            if let Some(at) = bits.clone().nth(word * 4) {
                let word: [u8; 4] = self.bytes[at..at + 4].try_into().unwrap_or_default();
                before += u32::from_le_bytes(word).count_ones();
            }
        }
        Ok(())
    }
}

fn place(bytes: &mut [u8], at: usize, len: usize) -> Result<&mut [u8], CatalogError> {
    // Only a damaged index has more prefixes than it says, or other ranges.
    bytes.get_mut(at * len..(at + 1) * len).ok_or(CatalogError::Damaged)
}

fn write_u32(bytes: &mut [u8], at: usize, value: u32) -> Result<(), CatalogError> {
    place(bytes, at, 4)?.copy_from_slice(&value.to_le_bytes());
    Ok(())
}

fn write_code(bytes: &mut [u8], at: usize, code: u32, len: usize) -> Result<(), CatalogError> {
    place(bytes, at, len)?.copy_from_slice(&code.to_le_bytes()[..len]);
    Ok(())
}

fn or_u32(bytes: &mut [u8], at: usize, bits: u32) -> Result<(), CatalogError> {
    let word = place(bytes, at, 4)?;
    let old: [u8; 4] = (&*word).try_into().unwrap_or_default();
    word.copy_from_slice(&(u32::from_le_bytes(old) | bits).to_le_bytes());
    Ok(())
}

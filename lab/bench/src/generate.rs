//! Item sets made from a seed, any row of which can be had without the others.
//!
//! A row is a pure function of seed and row number, so a set of any size takes no memory: rows
//! can be read in order into an index and, later, drawn at random as beams.

use std::fmt;

use palmette_catalog::index::{MAX_CODE, MAX_ITEMS, MAX_LEVELS};

use crate::random::{Random, mix};

/// Shape of generated rows: their number, length and codebooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows; several may be equal.
    pub items: usize,
    /// Codes of every row.
    pub levels: usize,
    /// Size of every level's codebook: codes are below it.
    pub vocab: u32,
}

impl Shape {
    /// 32-bit words of a mask over one codebook.
    pub fn mask_words(&self) -> usize {
        self.vocab.div_ceil(32) as usize
    }
}

/// Distribution from which codes are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Every code as likely as any other. The least sharing of prefixes there can be.
    Uniform,
    /// The code in place r (from 0) of its parent's order is drawn with a probability of about
    /// 1 / (r + 1), and every parent orders the codebook differently: a few full branches and
    /// many thin ones at every level, as residual quantisers give.
    Power,
    /// Every prefix has the same small number of children, as few as hold all items and as many
    /// again: few distinct prefixes, shared deep into the levels.
    Clustered,
    /// Every prefix of all codes but the last has exactly `branching` last codes: what one row of
    /// the sparse levels costs, by its length.
    Comb {
        /// Children of each prefix of all codes but the last.
        branching: u32,
    },
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Power => "power",
            Self::Clustered => "clustered",
            Self::Comb { .. } => "comb",
        })
    }
}

/// A shape that no items have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(String);

/// A set of items as the rule that makes them.
#[derive(Clone, Debug)]
pub struct GeneratedItems {
    shape: Shape,
    distribution: Distribution,
    seed: u64,
    /// Children a prefix may have, where the distribution keeps them few.
    fanout: u32,
}

impl GeneratedItems {
    /// The items of a shape.
    ///
    /// # Errors
    /// For no items, levels or codes, for more than a catalog holds, and for a comb whose teeth do
    /// not fit the codebook or do not divide the items.
    pub fn new(shape: Shape, distribution: Distribution, seed: u64) -> Result<Self, ShapeError> {
        check(&shape).map_err(ShapeError)?;
        let fanout = match distribution {
            Distribution::Uniform | Distribution::Power => shape.vocab,
            Distribution::Clustered => {
                least_base(shape.levels, 2 * shape.items as u64).min(shape.vocab)
            }
            Distribution::Comb { branching } => {
                comb_fanout(&shape, branching).map_err(ShapeError)?
            }
        };
        Ok(Self { shape, distribution, seed, fanout })
    }

    /// Shape of the rows.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Distribution from which the codes were drawn.
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Writes the codes of one row.
    ///
    /// # Panics
    /// When `codes` has not one place a level.
    pub fn row(&self, index: usize, codes: &mut [u32]) {
        assert_eq!(codes.len(), self.shape.levels, "a row has one code a level");
        // Mixed, or rows of neighbouring seeds would be each other's, moved.
        let mut random = Random::new(mix(mix(self.seed) ^ index as u64));
        match self.distribution {
            Distribution::Uniform => {
                let vocab = u64::from(self.shape.vocab);
                codes.iter_mut().for_each(|code| *code = random.below(vocab) as u32);
            }
            Distribution::Power => {
                self.place(codes, |_| skewed(&mut random, self.shape.vocab));
            }
            Distribution::Clustered => {
                self.place(codes, |_| random.below(u64::from(self.fanout)) as u32);
            }
            Distribution::Comb { branching } => {
                let (mut prefix, tooth) = self.comb_place(index, branching);
                let last = codes.len() - 1;
                for digit in codes[..last].iter_mut().rev() {
                    *digit = (prefix % u64::from(self.fanout)) as u32;
                    prefix /= u64::from(self.fanout);
                }
                codes[last] = tooth;
                let digits: [u32; MAX_LEVELS] =
                    std::array::from_fn(|level| codes.get(level).copied().unwrap_or(0));
                self.place(codes, |level| digits[level]);
            }
        }
    }

    /// Passes all rows in blocks: `[rows, levels]` codes each.
    pub fn for_each_block(&self, mut visit: impl FnMut(&[u32])) {
        const BLOCK_ROWS: usize = 1 << 14;
        let levels = self.shape.levels;
        let mut block = vec![0; BLOCK_ROWS.min(self.shape.items) * levels];
        for first in (0..self.shape.items).step_by(BLOCK_ROWS) {
            let num_rows = BLOCK_ROWS.min(self.shape.items - first);
            let rows = &mut block[..num_rows * levels];
            for (offset, codes) in rows.chunks_exact_mut(levels).enumerate() {
                self.row(first + offset, codes);
            }
            visit(rows);
        }
    }

    /// Turns places in each parent's order of the codebook into codes.
    fn place(&self, codes: &mut [u32], mut place_at: impl FnMut(usize) -> u32) {
        // A prime above every codebook size, so that the step visits each code once.
        const STEP: u64 = 4_294_967_291;
        let vocab = u64::from(self.shape.vocab);
        let mut parent = mix(!self.seed);
        for (level, code) in codes.iter_mut().enumerate() {
            let first = parent >> 32;
            *code = ((u64::from(place_at(level)) * STEP + first) % vocab) as u32;
            parent = mix(parent ^ u64::from(*code));
        }
    }

    /// Number of the row's prefix, and of its last code within it. Rows that follow each other
    /// are far apart, so that sorting has its work to do.
    fn comb_place(&self, index: usize, branching: u32) -> (u64, u32) {
        // A prime above every number of items (2^61 - 1).
        const STEP: u128 = (1 << 61) - 1;
        let scattered = (index as u128 * STEP % self.shape.items as u128) as u64;
        (scattered / u64::from(branching), (scattered % u64::from(branching)) as u32)
    }
}

/// A place below `bound`, about as likely as 1 / (place + 1): first a power of two, each as likely
/// as the others, then a place below it and not below the one before. Integers only.
fn skewed(random: &mut Random, bound: u32) -> u32 {
    let octaves = u64::from(u32::BITS - (bound - 1).leading_zeros()) + 1;
    loop {
        let octave = random.below(octaves) as u32;
        let place = match octave {
            0 => 0,
            _ => (1 << (octave - 1)) + random.below(1 << (octave - 1)) as u32,
        };
        if place < bound {
            return place;
        }
    }
}

/// The least number whose power `digits` is not below `wanted`.
fn least_base(digits: usize, wanted: u64) -> u32 {
    let holds = |base: u128| {
        let mut product = 1_u128;
        (0..digits).any(|_| {
            product = product.saturating_mul(base);
            product >= u128::from(wanted)
        })
    };
    let (mut below, mut enough) = (0_u128, u128::from(u32::MAX));
    while below + 1 < enough {
        let middle = (below + enough) / 2;
        if holds(middle) { enough = middle } else { below = middle }
    }
    enough as u32
}

fn check(shape: &Shape) -> Result<(), String> {
    let Shape { items, levels, vocab } = *shape;
    if items == 0 {
        return Err("0 items: there is nothing to measure; at least 1 is needed".into());
    }
    if items > MAX_ITEMS {
        return Err(format!("{items} items: a catalog holds at most {MAX_ITEMS}"));
    }
    if !(1..=MAX_LEVELS).contains(&levels) {
        return Err(format!("{levels} levels: a semantic ID has 1 to {MAX_LEVELS} codes"));
    }
    if vocab == 0 || vocab > MAX_CODE + 1 {
        return Err(format!(
            "a vocabulary of {vocab} codes: it may have from 1 to {}",
            MAX_CODE + 1
        ));
    }
    Ok(())
}

fn comb_fanout(shape: &Shape, branching: u32) -> Result<u32, String> {
    let Shape { items, levels, vocab } = *shape;
    if levels < 2 {
        return Err("a comb needs at least 2 levels: prefixes, and last codes".into());
    }
    if branching == 0 || branching > vocab {
        return Err(format!(
            "a branching of {branching}: it goes from 1 to the vocabulary's {vocab} codes"
        ));
    }
    if !items.is_multiple_of(branching as usize) {
        let near = items.div_ceil(branching as usize) * branching as usize;
        return Err(format!(
            "{items} items cannot have {branching} last codes a prefix; {near} items can"
        ));
    }
    let prefixes = (items / branching as usize) as u64;
    let fanout = least_base(levels - 1, prefixes);
    if fanout > vocab {
        return Err(format!(
            "{prefixes} prefixes do not fit into {} levels of {vocab} codes; take more levels, \
             a larger vocabulary or fewer items",
            levels - 1
        ));
    }
    Ok(fanout)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn rows(shape: Shape, distribution: Distribution, seed: u64) -> Vec<Vec<u32>> {
        let items = GeneratedItems::new(shape, distribution, seed).expect("a sound shape");
        let mut rows = Vec::new();
        items.for_each_block(|block| {
            rows.extend(block.chunks_exact(shape.levels).map(<[u32]>::to_vec));
        });
        rows
    }

    const ALL: [Distribution; 4] = [
        Distribution::Uniform,
        Distribution::Power,
        Distribution::Clustered,
        Distribution::Comb { branching: 5 },
    ];

    #[test]
    fn rows_have_their_shape_and_depend_on_seed_and_number_alone() {
        let shape = Shape { items: 20_000, levels: 4, vocab: 50 };
        for distribution in ALL {
            let made = rows(shape, distribution, 7);
            assert_eq!(made.len(), shape.items);
            assert!(made.iter().flatten().all(|&code| code < shape.vocab), "{distribution}");
            assert_eq!(made, rows(shape, distribution, 7));
            assert_ne!(made, rows(shape, distribution, 8));
            let items = GeneratedItems::new(shape, distribution, 7).unwrap();
            for index in [0, 1, 16_383, 16_384, 19_999] {
                let mut codes = [0; 4];
                items.row(index, &mut codes);
                assert_eq!(codes.as_slice(), made[index]);
            }
        }
    }

    #[test]
    fn a_comb_has_its_teeth() {
        let shape = Shape { items: 3_000, levels: 3, vocab: 100 };
        let made = rows(shape, Distribution::Comb { branching: 60 }, 1);
        let mut teeth: BTreeMap<&[u32], BTreeSet<u32>> = BTreeMap::new();
        for row in &made {
            teeth.entry(&row[..2]).or_default().insert(row[2]);
        }
        assert_eq!(teeth.len(), 50);
        assert!(teeth.values().all(|codes| codes.len() == 60));
    }

    #[test]
    fn sharing_grows_from_uniform_over_power_to_clustered() {
        let shape = Shape { items: 20_000, levels: 6, vocab: 256 };
        let prefixes = |distribution| {
            let made = rows(shape, distribution, 3);
            made.iter().map(|row| row[..3].to_vec()).collect::<BTreeSet<_>>().len()
        };
        let [uniform, power, clustered, _] = ALL.map(prefixes);
        assert!(uniform > power && power > clustered, "{uniform} {power} {clustered}");
        assert!(clustered < 500, "{clustered}");
    }

    #[test]
    fn early_places_are_the_likely_ones() {
        let mut random = Random::new(1);
        let mut counts = [0; 100];
        (0..80_000).for_each(|_| counts[skewed(&mut random, 100) as usize] += 1);
        assert!(counts.iter().all(|&count| count > 0));
        // Octaves 0, 1, 2-3, …, 64-99: the first two places are as likely, the next two half that.
        assert!(counts[0] > 9_000 && counts[1] > 9_000 && (4_500..6_500).contains(&counts[2]));
        assert_eq!(skewed(&mut random, 1), 0);
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        let shape = |items, levels, vocab| Shape { items, levels, vocab };
        let comb = Distribution::Comb { branching: 8 };
        for (shape, distribution, word) in [
            (shape(0, 4, 8), Distribution::Uniform, "0 items"),
            (shape(usize::MAX, 4, 8), Distribution::Uniform, "at most"),
            (shape(9, 0, 8), Distribution::Uniform, "0 levels"),
            (shape(9, 65, 8), Distribution::Uniform, "65 levels"),
            (shape(9, 4, 0), Distribution::Uniform, "vocabulary of 0"),
            (shape(16, 4, 7), comb, "branching of 8"),
            (shape(17, 4, 9), comb, "24 items can"),
            (shape(800, 2, 9), comb, "100 prefixes"),
            (shape(8, 1, 9), comb, "2 levels"),
        ] {
            let error = GeneratedItems::new(shape, distribution, 1).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(
            [(3, 26), (3, 27), (3, 28), (1, 9)].map(|(d, n)| least_base(d, n)),
            [3, 3, 4, 9]
        );
    }
}

//! Catalogs of random items, emulated devices, and logits that lie there.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, CodeTokens, Item, LevelTokens};
use palmette_catalog_live::{
    CatalogView, LiveCatalog, LiveOptions, MergePolicy, SnapshotConstraint, SyncPolicy, Update,
    ViewItems,
};
use palmette_core::Constraint;
use palmette_cuda::catalog::{DeviceLogits, LevelRows, LogitsPlace};
use palmette_cuda::{Address, Architecture, DeviceError, Driver, Region, RegionPlan, Stream};
use palmette_cuda_emulator::Emulator;
use palmette_decode::{
    BeamSearch, DecodeError, Extension, Pass, Step, StepBackend, TopK, log_sum_exp,
};

/// Drivers under three seeds; none, and a loud word of it, where kernels cannot be emulated.
pub(crate) fn drivers() -> Vec<Arc<dyn Driver>> {
    let driver = |seed| Some(Arc::new(Emulator::new(Architecture::Hopper, seed)?));
    let drivers: Vec<_> = (1..=3).filter_map(driver).collect();
    if drivers.is_empty() {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
    }
    drivers.into_iter().map(|driver| driver as Arc<dyn Driver>).collect()
}

/// Random numbers by xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
}

pub(crate) fn item(number: usize, codes: &[u32]) -> Item {
    Item { id: format!("i{number}"), codes: codes.to_vec(), attributes: Default::default() }
}

/// Items with codes below `used` at each level; some share a semantic ID.
pub(crate) fn items(random: &mut Random, len: usize, used: &[u32]) -> Vec<Item> {
    (0..len)
        .map(|number| {
            let codes: Vec<u32> =
                used.iter().map(|&used| random.below(used as usize) as u32).collect();
            item(number, &codes)
        })
        .collect()
}

/// A catalog whose codebooks are as large as `codes`.
pub(crate) fn frozen(items: Vec<Item>, codes: &[u32]) -> CatalogView {
    let codes_per_level = Some(codes.to_vec());
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    Catalog::build(items.into(), &options).expect("sound items").into()
}

/// A live catalog with a segment for each batch, and the folder that it lies in.
pub(crate) fn live(batches: &[Vec<Update>]) -> (LiveCatalog, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = LiveOptions {
        merging: MergePolicy::Never,
        memory_items: 1,
        sync: SyncPolicy::Never,
        ..LiveOptions::default()
    };
    let live = LiveCatalog::create_with(folder.path(), None, None, options).unwrap();
    batches.iter().for_each(|batch| _ = live.apply(batch).unwrap());
    (live, folder)
}

/// Logits of each level, a table of rows whatever the row's prefix: rows are in an order, so that
/// what a search does at a level is felt at the next.
pub(crate) struct Tables {
    pub(crate) codes: Vec<u32>,
    /// Columns before a level's first code.
    pub(crate) margin: usize,
    pub(crate) values: Vec<Vec<f32>>,
    pub(crate) normalisers: Vec<Vec<f32>>,
}

impl Tables {
    /// For rows up to `rows`, of this many different values; 0: all differ.
    pub(crate) fn new(random: &mut Random, codes: &[u32], rows: usize, kinds: usize) -> Self {
        let margin = random.below(40);
        let mut values = Vec::new();
        for &codes in codes {
            let columns = margin + codes as usize;
            let mut value = || match kinds {
                0 => random.below(1 << 20) as f32 / 1e5,
                _ => random.below(kinds) as f32,
            };
            values.push((0..rows * columns).map(|_| value()).collect::<Vec<f32>>());
        }
        let normalisers = values
            .iter()
            .zip(codes)
            .map(|(values, &codes)| {
                values.chunks(margin + codes as usize).map(log_sum_exp).collect()
            })
            .collect();
        Self { codes: codes.to_vec(), margin, values, normalisers }
    }

    pub(crate) fn columns(&self, level: usize) -> usize {
        self.margin + self.codes[level] as usize
    }
}

/// [`Tables`] on a device.
pub(crate) struct LogitsThere {
    places: Vec<LogitsPlace>,
    _regions: Vec<Region>,
}

impl LogitsThere {
    pub(crate) fn new(driver: &dyn Driver, tables: &Tables) -> Self {
        let mut regions = Vec::new();
        let mut put = |values: &[f32]| -> Address {
            let plan = RegionPlan { name: "logits of a test", bytes: values.len() * 4 };
            let region = driver.regions(&[plan]).unwrap().pop().unwrap();
            let mut pinned = driver.pinned(values.len() * 4).unwrap();
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            pinned.bytes().unwrap().iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
            driver.write(Stream::Upload, &region, 0, &mut pinned, values.len() * 4).unwrap();
            driver.finish(&driver.record(Stream::Upload).unwrap()).unwrap();
            let address = region.address();
            regions.push(region);
            address
        };
        let place = |level: usize| LogitsPlace {
            address: put(&tables.values[level]),
            columns: tables.columns(level),
            first: tables.margin,
            // The processor's, so that scores are the same to the bit.
            normalisers: Some(put(&tables.normalisers[level])),
        };
        let places = (0..tables.codes.len()).map(place).collect();
        Self { places, _regions: regions }
    }
}

/// The logits of each request of a batch.
pub(crate) struct Batch<'a>(pub(crate) &'a [LogitsThere]);

impl DeviceLogits for Batch<'_> {
    fn place(&self, request: usize, level: usize) -> LogitsPlace {
        self.0[request].places[level]
    }

    fn compute(&mut self, _: usize, _: &[LevelRows]) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// [`Tables`] as a backend of the processor: token `first_tokens[level] + code`.
struct LogitsHere<'a> {
    tables: &'a Tables,
    num_tokens: usize,
    first_tokens: Vec<u32>,
    top_k: TopK,
}

impl StepBackend for LogitsHere<'_> {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn compute(&mut self, _: &Pass<'_>) -> Result<(), DecodeError> {
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), DecodeError> {
        let (level, margin) = (step.pass.index, self.tables.margin as u32);
        let columns = self.tables.columns(level);
        let first = (self.first_tokens[level] - margin) as usize;
        let logits = &self.tables.values[level][..step.rows() * columns];
        self.top_k.select(step, logits, first..first + columns, |_, _| true, best)
    }
}

/// A semantic ID that a search found: codes, bits of its score, and items in their order.
pub(crate) type FoundId = (Vec<u32>, u32, Vec<u64>);

/// Searches on the processor.
pub(crate) fn searched_here(
    view: &CatalogView,
    items: Option<ViewItems>,
    tables: &Tables,
    widths: &[usize],
    floor: f32,
) -> Vec<FoundId> {
    // Tokens of margins belong to no level.
    let mut first_tokens = Vec::new();
    let mut end = 0;
    for &codes in &tables.codes {
        first_tokens.push(end + tables.margin as u32);
        end += tables.margin as u32 + codes;
    }
    let levels = first_tokens.iter().zip(&tables.codes);
    let levels = levels.map(|(&first_token, &num_codes)| LevelTokens { first_token, num_codes });
    let tokens = Arc::new(CodeTokens::new(levels.collect(), end as usize).unwrap());
    let backend =
        LogitsHere { tables, num_tokens: end as usize, first_tokens, top_k: TopK::default() };
    match view {
        CatalogView::Frozen(filters) => {
            let catalog = Arc::clone(filters.catalog());
            let mut constraint = CatalogConstraint::new(catalog, tokens).unwrap();
            if let Some(ViewItems::Frozen(items)) = items {
                constraint = constraint.with_items(items);
            }
            let items_of = |state: &_| constraint.items_at(state).collect();
            run(&constraint, backend, widths, floor, items_of)
        }
        CatalogView::Snapshot(snapshot) => {
            let mut constraint = SnapshotConstraint::new(Arc::clone(snapshot), tokens).unwrap();
            if let Some(ViewItems::Snapshot(items)) = items {
                constraint = constraint.with_items(items);
            }
            let items_of =
                |state: &_| constraint.items_at(state).map(|at| view.number(at)).collect();
            run(&constraint, backend, widths, floor, items_of)
        }
    }
}

fn run<C: Constraint>(
    constraint: &C,
    mut backend: LogitsHere<'_>,
    widths: &[usize],
    floor: f32,
    items_of: impl Fn(&C::State) -> Vec<u64>,
) -> Vec<FoundId> {
    let widths: Vec<NonZeroUsize> =
        widths.iter().map(|&width| NonZeroUsize::new(width).unwrap()).collect();
    let first_tokens = backend.first_tokens.clone();
    let mut search = BeamSearch::with_widths(&widths);
    search.start_above(floor, constraint).unwrap();
    let mut best = Vec::new();
    while search.is_live() {
        let step = search.step();
        backend.compute(&step.pass).unwrap();
        backend.select(&step, &mut best).unwrap();
        search.expand(constraint, &best).unwrap();
    }
    let found = search.results().map(|of| {
        let codes = of.tokens.iter().zip(&first_tokens).map(|(token, first)| token.0 - first);
        (codes.collect(), of.score.to_bits(), items_of(of.state))
    });
    found.collect()
}

/// Numbers of a part of a view's items, in thousandths.
pub(crate) fn some(random: &mut Random, view: &CatalogView, thousandths: u64) -> Vec<u64> {
    view.numbers().filter(|_| random.next() % 1000 < thousandths).collect()
}

//! Levels over arrays of a caller: what a search of the device itself finds, to the bit.

use std::sync::Arc;

use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_cuda::catalog::{
    CallerArrays, CallerShape, CallerTables, DeviceCatalog, DeviceLogits, DeviceSearch, LevelRows,
    LogitsPlace,
};
use palmette_cuda::{Address, CallerStream, DeviceError, Driver, Region, RegionPlan, Stream};

use crate::searches::batches;
use crate::support::{Random, drivers, frozen, items, live, some};

/// Memory that begins as NaN.
fn memory(driver: &dyn Driver, bytes: usize) -> Region {
    let plan = RegionPlan { name: "memory of a test", bytes };
    driver.regions(&[plan]).unwrap().pop().unwrap()
}

fn put(driver: &dyn Driver, values: &[f32]) -> Region {
    let region = memory(driver, values.len() * 4);
    let mut pinned = driver.pinned(values.len() * 4).unwrap();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    pinned.bytes().unwrap().iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    driver.write(Stream::Upload, &region, 0, &mut pinned, values.len() * 4).unwrap();
    driver.finish(&driver.record(Stream::Upload).unwrap()).unwrap();
    region
}

fn get<const N: usize, T>(
    driver: &dyn Driver,
    region: &Region,
    number: impl Fn([u8; N]) -> T,
) -> Vec<T> {
    let mut pinned = driver.pinned(region.bytes()).unwrap();
    driver.read(Stream::Download, region, 0, &mut pinned, region.bytes()).unwrap();
    driver.finish(&driver.record(Stream::Download).unwrap()).unwrap();
    let bytes = pinned.bytes().unwrap().chunks_exact(N);
    bytes.map(|bytes| number(bytes.try_into().unwrap())).collect()
}

/// Logits of each level, `[requests, rows, columns]`.
struct Logits {
    regions: Vec<Region>,
    columns: usize,
    first: usize,
    rows: Vec<usize>,
}

impl DeviceLogits for Logits {
    fn place(&self, request: usize, level: usize) -> LogitsPlace {
        let at = request * self.rows[level] * self.columns * 4;
        let address = self.regions[level].address_at(at);
        LogitsPlace { address, columns: self.columns, first: self.first, normalisers: None }
    }

    fn compute(&mut self, _: usize, _: &[LevelRows]) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Tokens and bits of the score of each beam that was found, of each request.
type LevelBeams = Vec<Vec<(Vec<i64>, u32)>>;

fn searched_by_levels(
    driver: &dyn Driver,
    tables: &CallerTables,
    filters: &[Option<ViewItems>],
    logits: &Logits,
    (requests, widths): (usize, &[usize]),
) -> LevelBeams {
    let filters = tables.filters(filters).unwrap();
    let segments = tables.snapshot().num_segments();
    let mut before = None::<[Region; 4]>;
    for (level, &width) in widths.iter().enumerate() {
        let shape = CallerShape {
            level,
            requests,
            rows: logits.rows[level],
            columns: logits.columns,
            first: logits.first as u32,
            width,
        };
        let beams = requests * width;
        let next =
            [beams * 4, beams * segments * 12, requests * 16, beams * (level + 1) * 8, beams * 8];
        let [scores, positions, states, tokens, parents] = next.map(|bytes| memory(driver, bytes));
        let scratch = memory(driver, tables.scratch_bytes(&shape).unwrap());
        let of_before = |at: usize| {
            before.as_ref().map_or(Address::NULL, |before: &[Region; 4]| before[at].address())
        };
        let arrays = CallerArrays {
            logits: logits.regions[level].address(),
            is_normalised: false,
            scores: of_before(0),
            positions: of_before(1),
            states: of_before(2),
            tokens: of_before(3),
            scratch: scratch.address(),
            next_scores: scores.address(),
            next_positions: positions.address(),
            next_states: states.address(),
            next_tokens: tokens.address(),
            parents: parents.address(),
        };
        tables.select(CallerStream::default(), &filters, &shape, &arrays).unwrap();
        let parents = get(driver, &parents, i64::from_le_bytes);
        assert!(parents.iter().all(|parent| (0..logits.rows[level] as i64).contains(parent)));
        before = Some([scores, positions, states, tokens]);
    }
    let [scores, _, states, tokens] = before.unwrap();
    let scores = get(driver, &scores, f32::from_le_bytes);
    let states = get(driver, &states, u32::from_le_bytes);
    let tokens = get(driver, &tokens, i64::from_le_bytes);
    let width = widths[widths.len() - 1];
    let found = |request: usize| {
        let count = states[request * 4 + 2] as usize;
        let places = request * width..(request + 1) * width;
        let rest = &scores[places.start + count..places.end];
        assert!(rest.iter().all(|&score| score == f32::NEG_INFINITY));
        let tokens = tokens.chunks_exact(widths.len());
        let beams = tokens.zip(&scores).skip(places.start).take(count);
        beams.map(|(tokens, score)| (tokens.to_vec(), score.to_bits())).collect()
    };
    (0..requests).map(found).collect()
}

fn searched_at_once(
    driver: &Arc<dyn Driver>,
    tables: &CallerTables,
    filters: &[Option<ViewItems>],
    logits: &mut Logits,
    (requests, widths): (usize, &[usize]),
) -> LevelBeams {
    let mut search = DeviceSearch::new(Arc::clone(driver), Stream::Compute);
    let request = |number: usize| {
        let items = filters[number % filters.len()].as_ref();
        let (snapshot, widths) = (tables.snapshot(), widths.to_vec());
        tables.catalog().request(snapshot, items, [], widths, f32::MIN).unwrap()
    };
    let first = logits.first as i64;
    search.run((0..requests).map(request).collect(), logits).unwrap();
    let found = search.finish().unwrap().into_iter();
    let beams = found.map(|found| {
        let found = found.unwrap().into_iter();
        let tokens = |codes: Vec<u32>| codes.iter().map(|&code| first + i64::from(code)).collect();
        found.map(|beam| (tokens(beam.codes), beam.score.to_bits())).collect()
    });
    beams.collect()
}

fn check(driver: &Arc<dyn Driver>, codes: &[u32], view: &CatalogView, seed: u64) {
    let mut random = Random(seed);
    let catalog = Arc::new(DeviceCatalog::new(Arc::clone(driver), codes.to_vec(), 1 << 20));
    let snapshot = catalog.snapshot(view).unwrap();
    let tables = CallerTables::new(catalog, snapshot).unwrap();
    for (requests, width, kept, kinds) in [
        (1, 9, vec![None], 0),
        (2, 20, vec![None], 0),
        (3, 12, vec![Some(300)], 3),
        (2, 40, vec![Some(20), None], 2),
        (2, 7, vec![Some(0), Some(500)], 1),
    ] {
        let widths: Vec<usize> = (0..codes.len()).map(|level| width + level * 3).collect();
        let rows: Vec<usize> =
            (0..codes.len()).map(|level| if level == 0 { 1 } else { widths[level - 1] }).collect();
        let first = random.below(40);
        let columns =
            first + *codes.iter().max().unwrap() as usize + if first > 20 { 5 } else { 0 };
        let mut value = || match kinds {
            0 => random.below(1 << 20) as f32 / 1e5,
            _ => random.below(kinds) as f32,
        };
        let regions = rows.iter().map(|rows| {
            let values: Vec<f32> = (0..requests * rows * columns).map(|_| value()).collect();
            put(&**driver, &values)
        });
        let mut logits = Logits { regions: regions.collect(), columns, first, rows };
        let filters: Vec<Option<ViewItems>> = kept
            .into_iter()
            .map(|kept| kept.map(|kept| view.choose(some(&mut random, view, kept))))
            .collect();
        let shape = (requests, &widths[..]);
        let got = searched_by_levels(&**driver, &tables, &filters, &logits, shape);
        let want = searched_at_once(driver, &tables, &filters, &mut logits, shape);
        assert_eq!(got, want, "{requests} requests, width {width}, {kinds} kinds");
    }
}

#[test]
fn levels_of_a_caller_find_what_searches_of_the_device_do() {
    for (seed, driver) in (1..).zip(drivers()) {
        let mut random = Random(seed * 31);
        for (len, codes) in [(900, &[24, 40, 17][..]), (700, &[300, 300]), (3, &[40, 70_000])] {
            let view = frozen(items(&mut random, len, codes), codes);
            check(&driver, codes, &view, seed + len as u64);
        }
        let codes = [24, 24, 24];
        let (catalog, _folder) = live(&batches(&mut Random(seed * 5), &codes));
        check(&driver, &codes, &catalog.view(), seed);
    }
}

#[test]
fn shapes_that_kernels_do_not_search_are_refused_by_name() {
    let Some(driver) = drivers().pop() else { return };
    let codes = [8, 8];
    let view = frozen(items(&mut Random(3), 20, &codes), &codes);
    let catalog = Arc::new(DeviceCatalog::new(Arc::clone(&driver), codes.to_vec(), 1 << 20));
    let snapshot = catalog.snapshot(&view).unwrap();
    let tables = CallerTables::new(Arc::clone(&catalog), Arc::clone(&snapshot)).unwrap();
    let shape = CallerShape { level: 0, requests: 2, rows: 1, columns: 16, first: 8, width: 4 };
    let refused = |shape: CallerShape| tables.scratch_bytes(&shape).unwrap_err().to_string();
    assert!(tables.scratch_bytes(&shape).is_ok());
    assert!(refused(CallerShape { level: 2, ..shape }).starts_with("level: 2; the kernels search"));
    assert!(refused(CallerShape { rows: 2, ..shape }).starts_with("beams before the first level"));
    assert!(refused(CallerShape { width: 0, ..shape }).starts_with("beam width: 0"));
    assert!(refused(CallerShape { width: 4097, ..shape }).starts_with("beam width: 4097"));
    assert!(refused(CallerShape { first: 9, ..shape }).starts_with("columns of logits: 16"));
    assert!(refused(CallerShape { first: u32::MAX, ..shape }).starts_with("columns of logits: 16"));
    assert!(refused(CallerShape { requests: 65_536, ..shape }).starts_with("requests: 65536"));
    let none = Address::NULL;
    let arrays = CallerArrays {
        logits: none,
        is_normalised: false,
        scores: none,
        positions: none,
        states: none,
        tokens: none,
        scratch: none,
        next_scores: none,
        next_positions: none,
        next_states: none,
        next_tokens: none,
        parents: none,
    };
    let stream = CallerStream::default();
    let select = |filters: &_, arrays: &_, shape: &_| tables.select(stream, filters, shape, arrays);
    let three = tables.filters(&[None, None, None]).unwrap();
    let error = select(&three, &arrays, &shape).unwrap_err().to_string();
    assert_eq!(
        error,
        "filters: 3; the kernels search with one filter for all requests, or one a request"
    );
    let others = CallerTables::new(catalog, snapshot).unwrap().filters(&[None]).unwrap();
    assert!(select(&others, &arrays, &CallerShape { requests: 0, ..shape }).is_ok());
    let odd = CallerArrays { scratch: Address(8), ..arrays };
    let error = select(&others, &odd, &shape).unwrap_err().to_string();
    assert_eq!(error, "bytes past a multiple of 16: 8; the kernels search in aligned memory");
}

//! Rules against their definition: score every item, apply the rules, sort.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_filter::{ColumnKind, Filter};
use palmette_catalog_live::{
    CatalogSource, CatalogView, LiveCatalog, LiveOptions, MergePolicy, Update,
};
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_recommend::{
    Amount, AtMost, Boost, Candidates, Diversity, History, Mode, Moment, RecommendError,
    Recommended, Recommender, Request, Rules, SpelledView, TieBreak, Valid, Verification, Worker,
};
use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::shop::{format, model, named, recommend, text_format, worker};

const DAY: u64 = 86_400;
/// More than any catalog here has prefixes.
const AS_WIDE_AS_ANY: usize = 100;

/// Items of few values, some of which share a semantic ID.
fn item(random: &mut Random, id: u64) -> Item {
    let codes = vec![random.below(4) as u32, random.below(6) as u32 * 5, random.below(3) as u32];
    let mut attributes = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        value.map(|value| attributes.insert(name.into(), value));
    };
    put("brand", (!random.is(6)).then(|| json!(format!("b{}", random.below(4)))));
    put("price", (!random.is(4)).then(|| json!(random.below(12) as f64 / 2.0)));
    put("new", (!random.is(3)).then(|| json!(random.is(2))));
    let tags: Vec<String> = (0..random.below(3)).map(|_| format!("t{}", random.below(3))).collect();
    put("tags", (!random.is(4)).then(|| json!(tags)));
    put("from", random.some(2, |random| json!(random.below(10) * DAY)));
    put("to", random.some(2, |random| json!(random.below(10) * DAY)));
    Item { id: format!("i{id}"), codes, attributes }
}

fn build(items: Vec<Item>) -> Catalog {
    let columns = [
        ("from", ColumnKind::Timestamp),
        ("to", ColumnKind::Timestamp),
        ("brand", ColumnKind::Keyword),
        ("price", ColumnKind::Number),
        ("new", ColumnKind::Boolean),
        ("tags", ColumnKind::Keywords),
    ];
    let columns = columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    Catalog::build(items.into(), &BuildOptions { columns, ..BuildOptions::default() }).unwrap()
}

/// A catalog of several segments, some of whose items are gone.
fn live(dir: &Path, random: &mut Random) -> LiveCatalog {
    let first = build((0..30).map(|id| item(random, id)).collect());
    let options =
        LiveOptions { merging: MergePolicy::Never, memory_items: 6, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(&dir.join("live"), Some(first), None, options).unwrap();
    for _ in 0..8 {
        let update = |random: &mut Random| match random.is(4) {
            true => Update::Delete(format!("i{}", random.below(60))),
            false => {
                let id = random.below(60);
                Update::Upsert(item(random, id))
            }
        };
        let batch: Vec<Update> = (0..4).map(|_| update(random)).collect();
        live.apply(&batch).unwrap();
    }
    live
}

/// A shop with the scores of all its items after one history.
pub(crate) struct Shop {
    pub(crate) recommender: Arc<Recommender>,
    pub(crate) worker: Worker,
    pub(crate) view: Arc<SpelledView>,
    /// The mode of every request, where the recommender drafts.
    pub(crate) draft: Option<Mode>,
    pub(crate) history: Vec<u64>,
    /// Every item with its log-probability, in order of the search.
    pub(crate) scored: Vec<Recommended>,
    /// Place of each semantic ID in that order.
    places: HashMap<Vec<u32>, usize>,
}

impl Shop {
    fn new(
        (model, head): &(Arc<Model>, Option<Arc<DraftHead>>),
        source: impl Into<CatalogSource>,
        random: &mut Random,
    ) -> Self {
        // Those that draft spell codes as models of text do.
        let format = if head.is_some() { text_format() } else { format() };
        let mut recommender = Recommender::new(Arc::clone(model), source, format).unwrap();
        let draft = head.as_ref().map(|_| Mode::Draft(Verification::Masks));
        if let Some(head) = head {
            recommender = recommender.with_draft_head(Arc::clone(head)).unwrap();
        }
        let recommender = Arc::new(recommender);
        let view = recommender.view().unwrap();
        let numbers: Vec<u64> = view.view().numbers().collect();
        let history: Vec<u64> = (0..random.below(4))
            .map(|_| numbers[random.below(numbers.len() as u64) as usize])
            .collect();
        let all = Request {
            beam_width: 100,
            mode: draft.unwrap_or_default(),
            include_seen: true,
            view: Some(&view),
            ..Request::new(History::Numbers(&history), 100)
        };
        let mut worker = worker(&recommender);
        let scored = worker.recommend(&all, &mut run_on).unwrap().items;
        assert_eq!(scored.len(), numbers.len());
        let mut places = HashMap::new();
        for item in &scored {
            let next = places.len();
            places.entry(view.view().codes(item.number)).or_insert(next);
        }
        Self { recommender, worker, view, draft, history, scored, places }
    }

    fn view(&self) -> &CatalogView {
        self.view.view()
    }

    fn attribute(&self, number: u64, name: &str) -> Option<Value> {
        self.view().item(number).attributes.remove(name)
    }

    fn matches(&self, number: u64, filter: &Filter) -> bool {
        let item = self.view().item(number);
        filter.matches(&item.id, &item.attributes, &|name| self.view().kind_of(name).ok())
    }

    fn boost(&self, number: u64, rules: &Rules) -> f32 {
        let mut sum = 0.0;
        for boost in &rules.boosts {
            if boost.filter.as_ref().is_some_and(|filter| !self.matches(number, filter)) {
                continue;
            }
            sum += match &boost.amount {
                Amount::Add(amount) => *amount,
                Amount::Linear { attribute, weight, offset } => {
                    let value = self.attribute(number, attribute).and_then(|value| value.as_f64());
                    value.map_or(0.0, |value| weight * value + offset)
                }
            };
        }
        sum as f32
    }

    /// Seconds of a timestamp attribute.
    fn seconds(&self, number: u64, name: &str) -> Option<f64> {
        let text = self.attribute(number, name)?;
        let day: f64 = text.as_str()?[8..10].parse().ok()?;
        Some((day - 1.0) * DAY as f64)
    }

    fn is_valid(&self, number: u64, rules: &Rules) -> bool {
        let Some(valid) = &rules.valid else { return true };
        let Some(Moment::Seconds(now)) = valid.now else { panic!("drawn in seconds") };
        let of = |name: &Option<String>| self.seconds(number, name.as_deref()?);
        of(&valid.from).is_none_or(|from| from <= now) && of(&valid.to).is_none_or(|to| now < to)
    }

    /// Everything but the values that are sorted by.
    fn tie_key(&self, number: u64, rules: &Rules) -> (bool, i64, String) {
        let Some(TieBreak { attribute, descending }) = &rules.tie_break else {
            return Default::default();
        };
        let sign = if *descending { -1 } else { 1 };
        match self.attribute(number, attribute) {
            None => (true, 0, String::new()),
            Some(Value::Number(value)) => {
                (false, sign * (value.as_f64().unwrap() * 10.0) as i64, String::new())
            }
            Some(Value::Bool(value)) => (false, sign * i64::from(value), String::new()),
            Some(Value::String(text)) if attribute == "brand" => {
                (false, sign * i64::from(text.as_bytes()[1]), String::new())
            }
            Some(_) => {
                (false, sign * self.seconds(number, attribute).unwrap() as i64, String::new())
            }
        }
    }

    /// The answer by definition, over some items in order of the search; `None` where the rules
    /// contradict.
    pub(crate) fn expected(
        &self,
        asked: &OwnedRequest,
        found: &[Recommended],
    ) -> Option<Vec<Recommended>> {
        let OwnedRequest { rules, k, .. } = asked;
        let view = self.view();
        let mut boosted: Vec<Recommended> = found.to_vec();
        for item in &mut boosted {
            item.boost = self.boost(item.number, rules);
            item.score += item.boost;
        }
        let place = |item: &Recommended| self.places[&view.codes(item.number)];
        boosted.sort_by(|a, b| {
            let by_key = || self.tie_key(a.number, rules).cmp(&self.tie_key(b.number, rules));
            b.score
                .total_cmp(&a.score)
                .then(place(a).cmp(&place(b)))
                .then_with(by_key)
                .then(a.number.cmp(&b.number))
        });
        let is_pin =
            |item: &Recommended| rules.must_include.iter().any(|id| id == view.id(item.number));
        let (mut pins, mut others): (Vec<_>, Vec<_>) = boosted.into_iter().partition(is_pin);
        pins.iter_mut().for_each(|item| item.pinned = true);
        let known = |id: &String| view.find(id).is_some() && !rules.must_exclude.contains(id);
        let can = |number: u64| {
            self.allows(asked, number) && !asked.exclude.iter().any(|id| id == view.id(number))
        };
        if !rules.must_include.iter().all(known)
            || pins.len() > *k
            || !pins.iter().all(|pin| can(pin.number))
        {
            return None;
        }
        others.retain(|item| {
            let id = view.id(item.number);
            let is_denied =
                asked.exclude.iter().chain(&rules.must_exclude).any(|other| other == id);
            can(item.number)
                && !is_denied
                && (asked.include_seen || !self.history.contains(&item.number))
        });
        let mut counts = HashMap::new();
        let num_pins = pins.len();
        let wanted = match rules.diversity {
            Some(Diversity { pool, .. }) => pool.unwrap_or(4 * k).max(*k),
            None => *k,
        };
        let mut taken = Vec::new();
        for item in pins.into_iter().chain(others) {
            if taken.len() < wanted && self.count(item.number, rules, &mut counts) {
                taken.push(item);
            } else if item.pinned {
                return None;
            }
        }
        if num_pins > 0 {
            taken.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        Some(match rules.diversity {
            Some(Diversity { lambda, .. }) => self.by_relevance(taken, *k, lambda),
            None => taken,
        })
    }

    fn allows(&self, asked: &OwnedRequest, number: u64) -> bool {
        let filtered = asked.filter.as_ref().is_none_or(|filter| self.matches(number, filter));
        filtered && self.is_valid(number, &asked.rules)
    }

    /// Counts an item under every cap, unless one is reached.
    fn count(&self, number: u64, rules: &Rules, counts: &mut HashMap<String, usize>) -> bool {
        let mut keys = Vec::new();
        for AtMost { attribute, items } in &rules.at_most {
            let values = match self.attribute(number, attribute) {
                None => Vec::new(),
                Some(Value::Array(values)) => values,
                Some(value) => vec![value],
            };
            keys.extend(
                values.iter().map(|value| (format!("{attribute} {value} {items}"), *items)),
            );
        }
        if let Some(items) = rules.at_most_per_semantic_id {
            keys.push((format!("{:?}", self.view().codes(number)), items));
        }
        keys.sort();
        keys.dedup();
        if keys.iter().any(|(key, items)| counts.get(key).is_some_and(|count| count >= items)) {
            return false;
        }
        keys.into_iter().for_each(|(key, _)| *counts.entry(key).or_default() += 1);
        true
    }

    fn by_relevance(&self, mut left: Vec<Recommended>, k: usize, lambda: f64) -> Vec<Recommended> {
        let similarity = |a: &Recommended, b: &Recommended| {
            let (a, b) = (self.view().codes(a.number), self.view().codes(b.number));
            let shared = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            shared as f64 / a.len().max(b.len()) as f64
        };
        let mut kept: Vec<Recommended> = Vec::new();
        while kept.len() < k && !left.is_empty() {
            let pins = left.iter().filter(|item| item.pinned).count();
            let mut best: Option<(f64, usize)> = None;
            for (at, item) in left.iter().enumerate() {
                let near = kept.iter().map(|other| similarity(item, other)).fold(0.0, f64::max);
                let value = lambda * f64::from(item.score) - (1.0 - lambda) * near;
                let may = k - kept.len() > pins || item.pinned;
                if may && best.is_none_or(|(most, _)| value > most) {
                    best = Some((value, at));
                }
            }
            kept.push(left.remove(best.unwrap().1));
        }
        kept
    }

    fn ask(
        &mut self,
        asked: &OwnedRequest,
    ) -> Result<palmette_recommend::Recommendations, RecommendError> {
        let (history, view) = (self.history.clone(), Arc::clone(&self.view));
        asked.with(&history, &view, self.draft, |request| {
            self.worker.recommend(request, &mut run_on)
        })
    }

    /// The items of the semantic IDs that a search of this width finds over some items, with their
    /// scores.
    fn found_over(&mut self, asked: &OwnedRequest, numbers: &[u64], k: usize) -> Vec<Recommended> {
        let set = self.view().choose(numbers.iter().copied());
        let (history, view) = (self.history.clone(), Arc::clone(&self.view));
        let request = Request {
            beam_width: asked.beam_width,
            mode: self.draft.unwrap_or_default(),
            include_seen: true,
            items: Candidates::Set(&set),
            view: Some(&view),
            ..Request::new(History::Numbers(&history), k)
        };
        self.worker.recommend(&request, &mut run_on).unwrap();
        let tokens = self.view.tokens();
        let codes = |sequence: &[palmette_core::TokenId]| -> Vec<u32> {
            let codes = sequence.iter().enumerate();
            codes.map(|(level, &token)| tokens.code(level, token).unwrap()).collect()
        };
        let ids: Vec<Vec<u32>> = self.worker.generated().map(codes).collect();
        let has = |item: &&Recommended| {
            numbers.contains(&item.number) && ids.contains(&self.view().codes(item.number))
        };
        self.scored.iter().filter(has).copied().collect()
    }
}

/// A request that owns its parts.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRequest {
    pub(crate) k: usize,
    pub(crate) beam_width: usize,
    pub(crate) mode: Mode,
    pub(crate) filter: Option<Filter>,
    pub(crate) exclude: Vec<String>,
    pub(crate) include_seen: bool,
    pub(crate) rules: Rules,
}

const FILTERS: [&str; 4] = [
    r#"{"must": {"match": {"brand": ["b1", "b2"]}}}"#,
    r#"{"must": {"range": {"price": {"gte": 2}}}}"#,
    r#"{"must_not": {"match": {"tags": "t1"}}}"#,
    r#"{"must": {"match": {"new": true}}}"#,
];

impl OwnedRequest {
    pub(crate) fn drawn(random: &mut Random, beam_width: usize) -> Self {
        let filter =
            |random: &mut Random| Filter::parse(FILTERS[random.below(4) as usize]).unwrap();
        let id = |random: &mut Random| format!("i{}", random.below(40));
        let ids = |random: &mut Random, most: u64| -> Vec<String> {
            (0..random.below(most)).map(|_| id(random)).collect()
        };
        let cap = |random: &mut Random| {
            let attribute = ["brand", "tags", "price", "new", "from"][random.below(5) as usize];
            AtMost { attribute: attribute.into(), items: 1 + random.below(3) as usize }
        };
        let boost = |random: &mut Random| {
            let step = |random: &mut Random| (random.below(17) as f64 - 8.0) / 4.0;
            let amount = match random.is(2) {
                true => Amount::Add(step(random)),
                false => Amount::Linear {
                    attribute: "price".into(),
                    weight: step(random) / 4.0,
                    offset: step(random),
                },
            };
            Boost { filter: random.some(2, filter), amount }
        };
        let k = 1 + random.below(12) as usize;
        let rules = Rules {
            at_most: (0..random.below(3)).map(|_| cap(random)).collect(),
            at_most_per_semantic_id: random.some(3, |random| 1 + random.below(2) as usize),
            boosts: (0..random.below(4)).map(|_| boost(random)).collect(),
            tie_break: random.some(2, |random| TieBreak {
                attribute: ["brand", "price", "new", "to"][random.below(4) as usize].into(),
                descending: random.is(2),
            }),
            must_include: match random.is(3) {
                true => ids(random, 3),
                false => Vec::new(),
            },
            must_exclude: ids(random, 4),
            valid: random.some(4, |random| Valid {
                from: random.some(2, |_| "from".into()),
                to: Some("to".into()),
                now: Some(Moment::Seconds((random.below(10) * DAY) as f64)),
            }),
            diversity: random.some(4, |random| Diversity {
                lambda: random.below(5) as f64 / 4.0,
                pool: random.some(2, |random| k + random.below(10) as usize),
            }),
        };
        let probe = NonZeroUsize::new(1 + random.below(9) as usize).unwrap();
        Self {
            k,
            beam_width,
            mode: if random.is(3) { Mode::Probed(probe) } else { Mode::Beam },
            filter: random.some(4, filter),
            exclude: ids(random, 4),
            include_seen: random.is(3),
            rules,
        }
    }

    fn with<T>(
        &self,
        history: &[u64],
        view: &Arc<SpelledView>,
        draft: Option<Mode>,
        ask: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        ask(&Request {
            k: self.k,
            beam_width: self.beam_width,
            mode: draft.unwrap_or(self.mode),
            items: self.filter.as_ref().map_or(Candidates::All, Candidates::Filter),
            exclude: &exclude,
            include_seen: self.include_seen,
            rules: Some(&self.rules),
            view: Some(view),
            ..Request::new(History::Numbers(history), self.k)
        })
    }
}

/// Shops over frozen and live catalogs, two of which draft, and the folders of the latter.
pub(crate) fn shops(random: &mut Random) -> (Vec<Shop>, Vec<tempfile::TempDir>) {
    let model = Arc::new(model());
    let shape = text_format().draft_shape().unwrap();
    let head = DraftHead::random(DraftForm::default(), &model, shape, 9).unwrap();
    let head = Arc::new(head);
    let (mut shops, mut dirs) = (Vec::new(), Vec::new());
    for place in 0..4 {
        let model = (Arc::clone(&model), (place == 3).then(|| Arc::clone(&head)));
        let frozen = build((0..40).map(|id| item(random, id)).collect());
        shops.push(Shop::new(&model, frozen, random));
        let dir = tempfile::tempdir().unwrap();
        let live = live(dir.path(), random);
        shops.push(Shop::new(&model, live, random));
        dirs.push(dir);
    }
    (shops, dirs)
}

/// Number of random cases: more by an environment variable.
pub(crate) fn num_cases() -> u64 {
    let given = std::env::var("PALMETTE_RULE_CASES").ok();
    given.map_or(10_000, |cases| cases.parse().expect("PALMETTE_RULE_CASES is a number"))
}

pub(crate) fn bits(items: &[Recommended]) -> Vec<(u64, u32, u32, bool)> {
    items.iter().map(|i| (i.number, i.score.to_bits(), i.boost.to_bits(), i.pinned)).collect()
}

#[test]
fn any_rules_equal_scoring_every_item_and_sorting() {
    let mut random = Random(5);
    let (mut shops, _dirs) = shops(&mut random);
    let (mut refused, mut several, mut full) = (0, 0, 0);
    let cases = num_cases();
    for case in 0..cases {
        let shop = &mut shops[random.below(8) as usize];
        let asked = OwnedRequest::drawn(&mut random, 64);
        let expected = shop.expected(&asked, &shop.scored);
        match (shop.ask(&asked), expected) {
            (Ok(answer), Some(expected)) => {
                assert_eq!(bits(&answer.items), bits(&expected), "case {case}: {asked:?}");
                assert_eq!(answer.reranked.is_some(), asked.rules.diversity.is_some());
                several += u64::from(answer.searches > 1);
                full += u64::from(answer.items.len() == asked.k);
            }
            (Err(RecommendError::Rules(_)), None) => refused += 1,
            (got, expected) => panic!("case {case}: {got:?} for {expected:?}, {asked:?}"),
        }
    }
    assert!(
        refused > cases / 100 && several > cases / 20 && full > cases / 3,
        "{refused} {several} {full}"
    );
}

/// At any width, whatever the rules: a proven answer is the one by definition, and what another
/// misses is within its bound.
#[test]
fn an_answer_tells_what_it_may_miss() {
    let mut random = Random(31);
    let (mut shops, _dirs) = shops(&mut random);
    let (mut proven, mut narrow, mut missing) = (0, 0, 0);
    let (mut asked_for, mut proven_when_asked) = (0, 0);
    let cases = num_cases();
    for case in 0..cases {
        let shop = &mut shops[random.below(8) as usize];
        let width = [1, 2, 5, 5 + random.below(8) as usize][random.below(4) as usize];
        let mut asked = OwnedRequest::drawn(&mut random, width);
        let wider = [width + 1, 12, 30, AS_WIDE_AS_ANY][random.below(4) as usize];
        if random.is(2) {
            asked.mode = Mode::Proven(NonZeroUsize::new(wider).unwrap());
        }
        let Some(expected) = shop.expected(&asked, &shop.scored) else { continue };
        let answer = shop.ask(&asked).unwrap();
        if matches!(answer.mode, Mode::Proven(_)) {
            asked_for += 1;
            proven_when_asked += u64::from(answer.is_proven());
            assert!(answer.is_proven() || wider < AS_WIDE_AS_ANY, "case {case}: {asked:?}");
        }
        if answer.is_proven() {
            assert_eq!(bits(&answer.items), bits(&expected), "case {case}: {asked:?}");
            proven += 1;
            narrow += u64::from((answer.items.len() as u64) < answer.eligible);
            continue;
        }
        if asked.rules.diversity.is_some() {
            continue;
        }
        let bound = answer.missed_at_most.unwrap();
        let is_found = |item: &&Recommended| answer.items.iter().any(|i| i.number == item.number);
        let of_bound = |item: &Recommended| !item.pinned && item.score > bound;
        for item in expected.iter().filter(|item| !is_found(item)) {
            assert!(!of_bound(item), "case {case}: {item:?} above {bound}, {asked:?}");
            missing += 1;
        }
        // What is above the bound has its place.
        let certain = |items: &[Recommended]| {
            bits(&items.iter().filter(|&item| of_bound(item)).copied().collect::<Vec<_>>())
        };
        assert_eq!(certain(&answer.items), certain(&expected), "case {case}: {asked:?}");
    }
    assert!(
        narrow > cases / 10 && missing > cases / 10,
        "{proven} proven, {narrow} of a part of the catalog; {missing} missing of the others"
    );
    assert!(
        proven_when_asked > asked_for / 3 && proven_when_asked < asked_for,
        "{proven_when_asked} proven of {asked_for} that were to be"
    );
}

/// Broken off at any stage, a request has no answer yet, or that of its first search.
#[test]
fn a_proof_that_is_broken_off_leaves_the_answer() {
    let mut random = Random(3);
    let (shops, _dirs) = shops(&mut random);
    let recommender = Arc::clone(&shops[0].recommender);
    let mode = Mode::Proven(NonZeroUsize::new(AS_WIDE_AS_ANY).unwrap());
    let asked = Request { beam_width: 2, mode, ..Request::new(History::Numbers(&[1]), 2) };
    let first = recommend(&recommender, &Request { mode: Mode::Beam, ..asked });
    let whole = recommend(&recommender, &asked);
    assert!(!first.is_proven() && whole.is_proven());
    assert_eq!((first.beam_width, whole.beam_width), (2, AS_WIDE_AS_ANY));
    let mut worker = worker(&recommender);
    let (mut cancelled, mut cut) = (0, 0);
    for stages in 0.. {
        let mut left = stages;
        let answer = worker.recommend(&asked, &mut |_| match left {
            0 => ControlFlow::Break(()),
            _ => {
                left -= 1;
                ControlFlow::Continue(())
            }
        });
        match answer {
            Err(RecommendError::Cancelled) => {
                assert_eq!(cut, 0, "after an answer");
                cancelled += 1;
            }
            Err(error) => panic!("{error}"),
            Ok(answer) if answer.is_proven() => {
                assert_eq!(bits(&answer.items), bits(&whole.items));
                break;
            }
            Ok(answer) => {
                assert_eq!(bits(&answer.items), bits(&first.items));
                assert_eq!(answer.missed_at_most, first.missed_at_most);
                cut += 1;
            }
        }
    }
    assert!(cancelled > 5 && cut > 5, "{cancelled} {cut}");
}

/// At any width each round of the walk is over what the plain search of the items that are left
/// finds.
#[test]
fn caps_in_a_narrow_beam_equal_rounds_of_plain_searches() {
    let mut random = Random(11);
    let (mut shops, _dirs) = shops(&mut random);
    let (mut several, cases) = (0, num_cases() / 10);
    for case in 0..cases {
        let shop = &mut shops[random.below(8) as usize];
        let drawn = OwnedRequest::drawn(&mut random, 0);
        let rules = Rules {
            at_most: drawn.rules.at_most.clone(),
            at_most_per_semantic_id: drawn.rules.at_most_per_semantic_id,
            tie_break: drawn.rules.tie_break.clone(),
            ..Rules::default()
        };
        let asked = OwnedRequest { beam_width: 1 + random.below(12) as usize, rules, ..drawn };
        let answer = shop.ask(&asked).unwrap();
        let mut left: Vec<u64> = shop.view().numbers().collect();
        left.retain(|&number| {
            let seen = shop.history.contains(&number) && !asked.include_seen;
            shop.allows(&asked, number)
                && !seen
                && !asked.exclude.iter().any(|id| id == shop.view().id(number))
        });
        let no_cap = OwnedRequest {
            k: usize::MAX,
            filter: None,
            exclude: Vec::new(),
            include_seen: true,
            rules: Rules { tie_break: asked.rules.tie_break.clone(), ..Rules::default() },
            ..asked.clone()
        };
        let (mut taken, mut counts): (Vec<Recommended>, _) = (Vec::new(), HashMap::new());
        let mut searches = 0;
        while taken.len() < asked.k && (searches == 0 || !left.is_empty()) {
            let found = shop.found_over(&asked, &left, asked.k);
            searches += 1;
            for item in shop.expected(&no_cap, &found).unwrap() {
                if taken.len() < asked.k && shop.count(item.number, &asked.rules, &mut counts) {
                    taken.push(item);
                }
            }
            if asked.rules.at_most.is_empty() && asked.rules.at_most_per_semantic_id.is_none() {
                break;
            }
            left.retain(|&number| {
                let is_taken = taken.iter().any(|item| item.number == number);
                !is_taken && shop.count(number, &asked.rules, &mut counts.clone())
            });
        }
        taken.sort_by(|a, b| b.score.total_cmp(&a.score));
        assert_eq!(bits(&answer.items), bits(&taken), "case {case}: {asked:?}");
        assert_eq!(answer.searches, searches, "case {case}: {asked:?}");
        several += u64::from(searches > 1);
    }
    assert!(several > cases / 50, "{several}");
}

/// At any width: an item that may not be recommended bounds no prefix.
#[test]
fn boosts_over_a_set_equal_a_catalog_of_that_set() {
    let mut random = Random(23);
    let (shops, _dirs) = shops(&mut random);
    let model = Arc::new(model());
    for case in 0..200 {
        let shop = &shops[random.below(8) as usize];
        let view = shop.view();
        let drawn = OwnedRequest::drawn(&mut random, 0);
        let rules = Rules { boosts: drawn.rules.boosts, ..Rules::default() };
        let numbers: Vec<u64> = view.numbers().filter(|_| random.is(2)).collect();
        let own = build(numbers.iter().map(|&number| view.item(number)).collect());
        let format = shop.recommender.format().clone();
        let own = Arc::new(Recommender::new(Arc::clone(&model), own, format).unwrap());
        let set = view.choose(numbers.iter().copied());
        let request = Request {
            beam_width: 1 + random.below(10) as usize,
            rules: Some(&rules),
            ..Request::new(History::Numbers(&[]), drawn.k)
        };
        let of_set = Request { items: Candidates::Set(&set), view: Some(&shop.view), ..request };
        let (got, want) = (recommend(&shop.recommender, &of_set), recommend(&own, &request));
        assert_eq!(named(&got), named(&want), "case {case}: {rules:?}");
    }
}

/// A boost lifts an item that a narrow beam without it loses at the first level.
#[test]
fn a_boosted_item_is_found_in_a_beam_of_one() {
    let mut random = Random(2);
    let (mut shops, _dirs) = shops(&mut random);
    for shop in &mut shops {
        let last = shop.scored.last().unwrap().number;
        let id = shop.view().id(last).to_owned();
        let filter = Filter::from_value(&json!({"must": {"ids": [id]}})).unwrap();
        let boost = Boost { filter: Some(filter), amount: Amount::Add(1000.0) };
        let rules = Rules { boosts: vec![boost], ..Rules::default() };
        let asked = OwnedRequest {
            k: 1,
            beam_width: 1,
            mode: Mode::Beam,
            filter: None,
            exclude: Vec::new(),
            include_seen: true,
            rules,
        };
        let answer = shop.ask(&asked).unwrap();
        assert_eq!((answer.items[0].number, answer.items[0].boost), (last, 1000.0));
        assert!(
            shop.ask(&OwnedRequest { rules: Rules::default(), ..asked }).unwrap().items[0].number
                != last
        );
    }
}

#[track_caller]
fn refused(rules: &str, k: usize, message: &str) {
    let mut random = Random(9);
    let catalog = build((0..20).map(|id| item(&mut random, id)).collect());
    let recommender = Arc::new(Recommender::new(model(), catalog, format()).unwrap());
    let rules = Rules::parse(rules).unwrap();
    let filter = Filter::parse(r#"{"must_not": {"ids": ["i3"]}}"#).unwrap();
    let request = Request {
        rules: Some(&rules),
        items: Candidates::Filter(&filter),
        exclude: &["i4"],
        ..Request::new(History::Numbers(&[]), k)
    };
    let error = worker(&recommender).recommend(&request, &mut run_on).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn rules_that_cannot_be_kept_are_refused() {
    let cap =
        |attribute: &str| format!(r#"{{"at_most": [{{"attribute": "{attribute}", "items": 1}}]}}"#);
    refused(
        &cap("bramd"),
        3,
        r#"at_most: no item has the attribute "bramd" (did you mean "brand"?)"#,
    );
    refused(
        r#"{"tie_break": {"attribute": "tags"}}"#,
        3,
        r#"tie_break cannot use the attribute "tags", which is keywords: it takes a keyword"#,
    );
    let boost = r#"{"boosts": [{"add": 1}, {"attribute": "brand", "weight": 1}]}"#;
    refused(boost, 3, r#"boosts[1] cannot use the attribute "brand", which is keyword"#);
    let boost = r#"{"boosts": [{"filter": {"must": {"match": {"price": "x"}}}, "add": 1}]}"#;
    refused(boost, 3, r#"boosts[0].filter: match with "x" does not fit the attribute "price""#);
    refused(r#"{"boosts": [{"add": 1e300}]}"#, 3, "sum to 1");
    refused(
        r#"{"must_include": ["none"]}"#,
        3,
        r#"must_include names "none", and no item has this id"#,
    );
    refused(
        r#"{"must_include": ["i1"], "must_exclude": ["i1"]}"#,
        3,
        r#"which must_exclude refuses"#,
    );
    refused(r#"{"must_include": ["i3"]}"#, 3, r#""i3", which the filter refuses"#);
    refused(r#"{"must_include": ["i4"]}"#, 3, r#""i4", which the request's exclusion refuses"#);
    refused(r#"{"must_include": ["i1", "i2"]}"#, 1, "names 2 items, the answer has 1 places");
    refused(r#"{"valid": {"from": "from"}}"#, 3, "valid needs the moment of the request");
    refused(r#"{"valid": {"from": "price", "now": 1}}"#, 3, "it takes a timestamp attribute");
    refused(r#"{"valid": {"from": "from", "now": "noon"}}"#, 3, "valid: range");
    refused(r#"{"diversity": {"lambda": 1, "pool": 2}}"#, 3, "give a pool from 3 to 4096");
    refused(r#"{"diversity": {"lambda": 1}}"#, 5000, "ranks 5000 results for an answer of 5000");
}

#[test]
fn a_free_draft_keeps_no_rules() {
    let catalog = build(vec![item(&mut Random(1), 1)]);
    let recommender = Arc::new(Recommender::new(model(), catalog, format()).unwrap());
    let rules = Rules { at_most_per_semantic_id: Some(1), ..Rules::default() };
    let mode = Mode::Draft(Verification::Keys);
    let request = Request { mode, rules: Some(&rules), ..Request::new(History::Ids(&[]), 3) };
    let error = worker(&recommender).recommend(&request, &mut run_on).unwrap_err().to_string();
    assert!(error.contains("draft with --verify masks"), "{error}");
}

//! Pages of one question against one larger answer, kept and searched for anew.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use palmette_decode::run_on;
use palmette_document::{Faults, RawJson};
use palmette_recommend::{
    CheckedQuestion, Mode, NamedItem, QuestionLimits, RecommendQuestion, Recommended, Recommender,
};

use crate::random::Random;
use crate::rules::{OwnedRequest, Shop, bits, num_cases, shops};

/// The question of a request, whose first page this is.
fn question(shop: &Shop, asked: &OwnedRequest) -> RecommendQuestion {
    let view = shop.view.view();
    let history = shop.history.iter().map(|&number| NamedItem::Id(view.id(number).to_owned()));
    let mut question = RecommendQuestion::new(history);
    question.set_mode(shop.draft.unwrap_or(asked.mode));
    question.beam_width = Some(asked.beam_width);
    question.filter = asked.filter.as_ref().map(|filter| raw(&filter.to_string()));
    question.rules = Some(raw(&asked.rules.to_value().to_string()));
    question.exclude = asked.exclude.iter().map(|id| id.clone().into()).collect();
    question.exclude_seen = !asked.include_seen;
    question.paged = true;
    question
}

fn raw(text: &str) -> RawJson {
    RawJson::from_text(text).unwrap()
}

fn checked(
    recommender: &Recommender,
    question: &RecommendQuestion,
) -> Result<CheckedQuestion, Faults> {
    let view = recommender.view().unwrap();
    question.clone().check(recommender, &view, &QuestionLimits::default(), None)
}

/// Pages of a shop's question, each answered by what is kept and anew.
struct Listing<'s> {
    shop: &'s mut Shop,
    question: RecommendQuestion,
    /// Items of all pages.
    items: Vec<Recommended>,
    pages: usize,
    /// Pages that took no search.
    kept: usize,
    all_proven: bool,
    is_over: bool,
}

impl Listing<'_> {
    /// Reads the next page.
    fn next(&mut self, k: usize) -> Result<(), String> {
        let Shop { recommender, worker, .. } = self.shop;
        self.question.k = k;
        let question = checked(recommender, &self.question).map_err(|faults| faults.to_string())?;
        let page =
            worker.answer(&question, false, &mut run_on).map_err(|error| error.to_string())?;
        let anew =
            question.with_request(false, |request| worker.recommend(request, &mut run_on)).unwrap();
        assert_eq!(bits(&page.items), bits(&anew.items), "page {} kept", self.pages);
        assert_eq!((page.eligible, page.history_used), (anew.eligible, anew.history_used));
        let next = question.cursor_after(&page);
        assert_eq!(next, question.cursor_after(&anew));
        self.pages += 1;
        self.kept += usize::from(page.searches == 0);
        self.all_proven &= page.is_proven();
        self.items.extend(page.items);
        self.is_over = next.is_none();
        self.question.cursor = next.or(self.question.cursor.take());
        Ok(())
    }
}

/// With any rules and of any width: pages repeat nothing and end with all that there is; as long as
/// they are proven they are the parts of one larger answer; what was kept changes nothing.
#[test]
fn pages_are_the_parts_of_a_larger_answer() {
    let mut random = Random(17);
    let (mut shops, _dirs) = shops(&mut random);
    let (mut kept, mut proven, mut over) = (0, 0, 0);
    let cases = num_cases() / 10;
    for case in 0..cases {
        let shop = &mut shops[random.below(8) as usize];
        let width = [2, 6, 20, 64][random.below(4) as usize];
        let mut asked = OwnedRequest::drawn(&mut random, width);
        if random.is(2) {
            asked.rules.boosts.clear();
        }
        if !random.is(4) {
            asked.rules.diversity = None;
        }
        if random.is(4) {
            asked.mode = Mode::Proven(NonZeroUsize::new(100).unwrap());
        }
        if let Mode::Probed(probe) = asked.mode
            && probe.get() >= width
        {
            asked.mode = Mode::Auto;
        }
        let question = question(shop, &asked);
        let mut listing = Listing {
            shop,
            question,
            items: Vec::new(),
            pages: 0,
            kept: 0,
            all_proven: true,
            is_over: false,
        };
        let most = if random.is(4) { 60 } else { 1 + random.below(8) };
        let first = 1 + random.below(5) as usize;
        // A probe is to be as wide as an answer.
        let least = match asked.mode {
            Mode::Probed(probe) => probe.get().min(first),
            _ => first,
        };
        let mut failed = None;
        for page in 0..most {
            let k = match page {
                0 => least,
                _ => 1 + random.below(least as u64) as usize,
            };
            failed = listing.next(k).err();
            if failed.is_some() || listing.is_over {
                break;
            }
        }
        let Listing { items, kept: page_hits, all_proven, is_over, .. } = listing;
        if let Some(error) = failed {
            // Only the first page has what is pinned.
            let is_refused = error.contains("must_include") || error.contains("diversity");
            assert!(is_refused && items.is_empty(), "case {case}: {error}");
            continue;
        }
        let numbers: BTreeSet<u64> = items.iter().map(|item| item.number).collect();
        assert_eq!(numbers.len(), items.len(), "case {case}: an item twice, {asked:?}");
        kept += page_hits;
        if asked.rules.diversity.is_some() {
            continue;
        }
        let larger = |k: usize| {
            let asked = OwnedRequest { k, ..asked.clone() };
            shop.expected(&asked, &shop.scored).expect("the first page was answered")
        };
        let has_pins = !asked.rules.must_include.is_empty();
        if all_proven {
            proven += 1;
            let whole = larger(items.len().max(1));
            if has_pins {
                let of: BTreeSet<u64> = whole.iter().map(|item| item.number).collect();
                assert_eq!(numbers, of, "case {case}: {asked:?}");
            } else {
                assert_eq!(bits(&items), bits(&whole), "case {case}: {asked:?}");
            }
        }
        if is_over
            && asked.rules.at_most.is_empty()
            && asked.rules.at_most_per_semantic_id.is_none()
        {
            over += 1;
            assert_eq!(items.len(), larger(1000).len(), "case {case}: {asked:?}");
        }
    }
    assert!(
        kept > cases as usize / 20 && proven > cases / 3 && over > cases / 50,
        "{kept} kept, {proven} proven, {over} over of {cases}"
    );
}

//! Evaluation over a live catalog of several segments against the same over a catalog built of its
//! items.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update};
use palmette_model::WeightFormat;
use palmette_recommend::{NamedItem, PromptFields, Recommender, SpelledView};
use palmette_recommend_eval::{
    Answered, ColdStart, Evaluation, Floor, Histories, HistoryRecord, ItemItem, Overlap,
    Popularity, Question, Split, UnknownItems, UserHistories, cold_start_recall, evaluate,
    evaluate_floor, overlap,
};

use crate::evaluate::{format, model, options, uniform_ids};

/// Items of the shop; some of them go and some come back as others.
fn items() -> Vec<Item> {
    let item = |(n, codes): (usize, Vec<u32>)| Item {
        id: n.to_string(),
        codes,
        attributes: Default::default(),
    };
    uniform_ids().into_iter().enumerate().map(item).collect()
}

/// Items of 60 that no update takes away.
fn is_kept(id: u64) -> bool {
    !id.is_multiple_of(6)
}

/// A live catalog of several segments with tombstones in all.
fn live(dir: &Path) -> Arc<LiveCatalog> {
    let mut items = items();
    let later = items.split_off(20);
    let first = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    let options = LiveOptions {
        sync: SyncPolicy::Never,
        merging: MergePolicy::Never,
        memory_items: 12,
        ..LiveOptions::default()
    };
    let schema = palmette_catalog_live::Schema::default();
    let live =
        LiveCatalog::create_with(&dir.join("live"), Some(first), Some(schema), options).unwrap();
    for items in later.chunks(9) {
        let updates: Vec<Update> = items.iter().cloned().map(Update::Upsert).collect();
        live.apply(&updates).unwrap();
    }
    let gone = (0..60).filter(|&id| !is_kept(id));
    live.apply(&gone.map(|id: u64| Update::Delete(id.to_string())).collect::<Vec<_>>()).unwrap();
    // Two that share a semantic ID with an older one.
    let again = [("1", 10_usize), ("new", 11)].map(|(id, of)| {
        let codes = uniform_ids().swap_remove(of);
        Update::Upsert(Item { id: id.into(), codes, attributes: Default::default() })
    });
    live.apply(&again).unwrap();
    assert!(live.snapshot().segments().len() > 3, "{:?}", live.status());
    Arc::new(live)
}

/// A catalog to be evaluated over, and its histories.
struct Side {
    recommender: Arc<Recommender>,
    view: Arc<SpelledView>,
    histories: UserHistories,
}

impl Side {
    fn new(recommender: Recommender, histories: &[Vec<u64>]) -> Self {
        let view = recommender.view().unwrap();
        let users = histories.iter().enumerate();
        let mut read = Histories::default();
        for (user, history) in users {
            let items = history.iter().map(|item| NamedItem::Id(item.to_string())).collect();
            let record = HistoryRecord {
                user: Some(user.to_string()),
                items,
                target: None,
                fields: PromptFields::default(),
            };
            read.push(Ok(record)).unwrap();
        }
        let error = UnknownItems::Error;
        let histories = read.bind(Path::new("histories"), view.view(), error).unwrap();
        Self { recommender: Arc::new(recommender), view, histories }
    }

    fn questions(&self) -> Vec<Question<'_>> {
        self.histories.items.iter().filter_map(|items| Split::Test.question(items)).collect()
    }

    /// An evaluation, and its answers by id: numbers are those of one view.
    fn evaluate(&self, threads: usize) -> (Evaluation, Vec<Vec<&str>>) {
        let options = palmette_recommend_eval::EvalOptions { threads, ..options() };
        let evaluated =
            evaluate(&self.recommender, &self.view, &self.questions(), &options, |_| {});
        let mut evaluation = evaluated.unwrap();
        let answers = std::mem::take(&mut evaluation.answers).into_iter();
        let ids =
            |answer: Answered| answer.items.iter().map(|&at| self.view.view().id(at)).collect();
        (evaluation, answers.map(ids).collect())
    }

    fn overlap(&self) -> Overlap {
        let rounded = model().with_weights(WeightFormat::Int8);
        let source = self.recommender.source().clone();
        let rounded = Arc::new(Recommender::new(rounded, source, format()).unwrap());
        let questions = self.questions();
        overlap(&self.recommender, &rounded, &self.view, &questions, &options(), |_| {}).unwrap()
    }

    /// The ids of what a floor recommends after items with these ids.
    fn ids(&self, floor: &impl Floor, history: &[u64], k: usize) -> Vec<&str> {
        let view = self.view.view();
        let find = |id: &u64| view.find(&id.to_string()).unwrap();
        let history: Vec<u64> = history.iter().map(find).collect();
        let found = floor.recommend(&history, &[], k, false);
        found.into_iter().map(|number| view.id(number)).collect()
    }

    fn histories(&self) -> impl Iterator<Item = &[u64]> + Clone {
        self.histories.items.iter().map(Vec::as_slice)
    }
}

/// The live catalog, and one built of its items.
fn both(live: &Arc<LiveCatalog>, histories: &[Vec<u64>]) -> [Side; 2] {
    let rebuilt = live.snapshot().to_catalog(|| {}).unwrap();
    let over_live = Recommender::new(model(), Arc::clone(live), format()).unwrap();
    let over_rebuilt = Recommender::new(model(), rebuilt, format()).unwrap();
    [over_live, over_rebuilt].map(|recommender| Side::new(recommender, histories))
}

fn histories() -> Vec<Vec<u64>> {
    let kept: Vec<u64> = (0..60).filter(|&id| is_kept(id)).collect();
    let at = |place: usize| kept[place % kept.len()];
    (0..40).map(|user| (0..3 + user % 4).map(|n| at(user * 7 + n * n * 5 + n)).collect()).collect()
}

#[test]
fn a_live_catalog_is_evaluated_as_its_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(dir.path());
    let [found, rebuilt] = both(&live, &histories());
    assert!(found.view.view().num_numbers() > rebuilt.view.view().num_numbers(), "sparse numbers");
    let want = rebuilt.evaluate(1);
    assert!(want.0.metrics.at(5).hit_rate > 0.0, "a comparison of zeros shows nothing");
    assert_eq!(want.0.unconstrained.unwrap().generated, 40 * 5);
    assert_eq!(found.evaluate(1), want);
    assert_eq!(found.evaluate(3), want);
    let (agreement, of_rebuilt) = (found.overlap(), rebuilt.overlap());
    for k in 1..=5 {
        assert_eq!(agreement.at(k), of_rebuilt.at(k));
        assert_eq!(agreement.changed.at(k), of_rebuilt.changed.at(k));
    }

    // Whatever comes meanwhile, an evaluation is of the moment of its view.
    let all: Vec<Update> =
        (0..60).step_by(2).map(|id: u64| Update::Delete(id.to_string())).collect();
    live.apply(&all).unwrap();
    assert_eq!(found.evaluate(2), want);
}

#[test]
fn held_out_items_of_a_live_catalog_are_found_as_in_its_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let sides = both(&live(dir.path()), &histories());
    let [found, rebuilt] = sides.each_ref().map(|side| {
        let view = side.view.view();
        let cold = ColdStart::newest(&side.histories, view.num_numbers(), 0.4).unwrap();
        let mut ids: Vec<&str> = cold.items().map(|number| view.id(number)).collect();
        ids.sort_unstable();
        let questions = cold.questions(&side.histories, Split::Test);
        assert!(questions.len() > 5);
        let options = options();
        let (recommender, view) = (&side.recommender, &side.view);
        let recall = cold_start_recall(recommender, view, &cold, &questions, &options, |_| {});
        (ids, recall.unwrap())
    });
    assert!(found.1.constrained.at(5).hit_rate > 0.0);
    assert_eq!(found, rebuilt);
}

/// Histories in which no two items tie: ties go by number, and numbers differ.
#[test]
fn floors_know_the_items_of_the_view_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    // 1 four times, 2 three times, 3 and what comes with it less; 5 and 7 in one history.
    let histories = [&[1, 2, 3][..], &[1, 2], &[5, 7], &[1, 3, 2], &[1]].map(<[u64]>::to_vec);
    let sides = both(&live(dir.path()), &histories);
    for side in &sides {
        let view = side.view.view();
        let popularity = Popularity::fit(side.histories(), view.numbers());
        assert_eq!(side.ids(&popularity, &[], 3), ["1", "2", "3"]);
        let mut all = popularity.recommend(&[], &[], 1000, true);
        all.sort_unstable();
        assert!(
            all.into_iter().eq(view.numbers()),
            "every item of the view, and none that is gone"
        );
        let item_item = ItemItem::fit(side.histories(), view.num_numbers());
        assert_eq!(side.ids(&item_item, &[5, 1], 5), ["2", "3", "7"]);
        assert_eq!(side.ids(&item_item, &[1, 5], 5), ["7", "2", "3"]);
        let asked: Vec<_> =
            side.questions().into_iter().map(|question| (question, &[][..])).collect();
        let metrics = evaluate_floor(&item_item, &asked, 2, false, 2);
        assert_eq!((asked.len(), metrics.questions()), (2, 2));
        assert_eq!(metrics.at(2).hit_rate, 1.0);
    }
}

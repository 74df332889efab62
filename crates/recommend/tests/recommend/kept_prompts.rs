//! Answers where prompts are kept for later ones against answers where none are: the same items and
//! scores, to the bit, whatever is found and whatever gave way.

use std::sync::Arc;

use palmette_catalog_filter::Filter;
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftHead, DraftInput};
use palmette_recommend::{
    Candidates, KnownPrompt, Mode, PromptFormat, Recommender, Request, Verification, Worker,
};
use serde_json::json;

use crate::random::Random;
use crate::shop::{catalog, format, model, parts, request};

const NUM_ITEMS: u64 = 400;

/// Prompts of up to 1 + 3 · 36 tokens, whose windows move by four items.
fn recommender(model: Model) -> Arc<Recommender> {
    let format = PromptFormat { max_history_items: 36, history_step: Some(4), ..format() };
    let form = DraftForm { input: DraftInput::Placeholder, ..DraftForm::default() };
    let head = DraftHead::random(form, &model, format.draft_shape().unwrap(), 9).unwrap();
    let recommender = Recommender::new(model, catalog(NUM_ITEMS as u32), format).unwrap();
    Arc::new(recommender.with_draft_head(head).unwrap())
}

fn modes() -> [Mode; 4] {
    let probe = std::num::NonZeroUsize::new(4).unwrap();
    let draft = Mode::Draft;
    [Mode::Beam, Mode::Probed(probe), draft(Verification::Masks), draft(Verification::Keys)]
}

/// Users come back with one more event in any order, by two workers each, over stores that are
/// large, too small, and hardly there.
#[test]
fn answers_are_those_without() {
    let fresh = recommender(model());
    let mut alone = Worker::new(Arc::clone(&fresh), 2);
    let filter = Filter::parse(&json!({"ids": ["i3", "i77", "i200", "i333", "i8"]}).to_string());
    let filter = filter.ok();
    for bytes in [4 << 20, 130_000, 20_000] {
        let kept = recommender(model().with_prompt_memory(bytes).unwrap());
        let mut workers = [1, 2].map(|threads| Worker::new(Arc::clone(&kept), threads));
        let mut random = Random(bytes as u64);
        let mut users: Vec<Vec<u64>> = vec![Vec::new(); 5];
        for asked in 0..120 {
            let user = &mut users[random.below(5) as usize];
            user.push(random.below(NUM_ITEMS));
            let items = match &filter {
                Some(filter) if random.below(4) == 0 => Candidates::Filter(filter),
                _ => Candidates::All,
            };
            let plain = request(user, 5, 12);
            let mode = modes()[random.below(4) as usize];
            let remember = random.below(8) > 0;
            let of = Request { mode, items, remember, ..plain };
            let worker = &mut workers[random.below(2) as usize];
            let planned = kept.known_prompt(&of).unwrap();
            let used = || kept.engine().prompt_use().unwrap();
            let before = used();
            let answer = worker.recommend(&of, &mut run_on).unwrap();
            let want = alone.recommend(&of, &mut run_on).unwrap();
            assert_eq!(parts(&answer), parts(&want), "{bytes} bytes, request {asked}: {of:?}");
            // What was planned is what came: nobody else reads here.
            let found = used().found_tokens - before.found_tokens;
            match planned {
                Some(KnownPrompt { tokens, known }) => {
                    assert_eq!((tokens, known as u64), (worker.prompt().len(), found));
                }
                None => assert!(!remember && found == 0 && used().kept_pages == before.kept_pages),
            }
            assert!(used().kept_pages <= used().pages && used().bytes <= bytes as u64);
        }
        let used = kept.engine().prompt_use().unwrap();
        let is_large = used.evicted_pages == 0;
        assert_eq!(is_large, bytes == 4 << 20, "{used:?}");
        assert!(!is_large || used.found_tokens > used.computed_tokens, "{used:?}");
    }
    assert_eq!(fresh.known_prompt(&request(&[1, 2], 5, 12)).unwrap(), None);
}

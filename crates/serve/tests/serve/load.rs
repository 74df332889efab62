//! Requests together: answers do not depend on load, and what the scheduler did can be done again.

use std::sync::Arc;

use palmette_serve_schedule::{Action, Record, Scheduler};
use serde_json::{Value, json};

use crate::shop::{config, shopping};

fn question(n: u32) -> Value {
    let history: Vec<String> =
        (0..n % 6).map(|place| format!("P{:04}", 1 + n * 31 + place * 3)).collect();
    let mut question =
        json!({"target": "shop", "history": history, "k": 10, "beam_width": 8 << (n % 3)});
    if n.is_multiple_of(3) {
        question["filter"] = json!({"must": {"range": {"stock": {"gt": n % 40}}}});
    }
    question
}

/// Alone, side by side with an unbounded deadline, and under a load that refuses some: the same
/// items to the byte. The recorded events lead the scheduler to the recorded actions.
#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_depend_on_load_and_a_record_replays() {
    let record = tempfile::NamedTempFile::new().unwrap();
    let mut config = config();
    config.answer_cache = 0;
    config.record = Some(record.path().to_owned());
    let shop = Arc::new(shopping(config));
    let mut alone = Vec::new();
    for n in 0..60 {
        alone.push(shop.post("/v1/recommend", &question(n)).await.ok()["items"].to_string());
    }
    for deadline_ms in [20_000, 60] {
        let asked = (0..60).map(|n| {
            let shop = Arc::clone(&shop);
            let mut question = question(n);
            question["deadline_ms"] = json!(deadline_ms);
            tokio::spawn(async move { shop.post("/v1/recommend", &question).await })
        });
        let asked: Vec<_> = asked.collect();
        let mut answered = 0;
        for (n, asked) in asked.into_iter().enumerate() {
            let answer = asked.await.unwrap();
            match answer.status.as_u16() {
                200 => {
                    answered += 1;
                    assert_eq!(answer.body["items"].to_string(), alone[n], "question {n}");
                }
                status => {
                    assert!(deadline_ms == 60 && matches!(status, 429 | 504), "{}", answer.body);
                }
            }
        }
        assert!(deadline_ms == 60 || answered == 60);
    }
    // One whom nobody answers any more is stopped and gone: the next is answered.
    let vanished = {
        let shop = Arc::clone(&shop);
        let wide = json!({"target": "shop", "beam_width": 4096, "k": 10});
        tokio::spawn(async move { shop.post("/v1/recommend", &wide).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    vanished.abort();
    assert_eq!(shop.post("/v1/recommend", &question(7)).await.ok()["items"].to_string(), alone[7]);
    drop(shop);

    let text = std::fs::read_to_string(record.path()).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap());
    let Some(Record::Begin { config, costs }) = lines.next() else {
        panic!("a record begins with what there was")
    };
    let mut scheduler = Scheduler::new(config, costs);
    let (mut actions, mut ends, mut arrived) = (Vec::new(), 0, 0);
    for line in lines {
        match line {
            Record::Event { now, event } => {
                actions.clear();
                arrived += usize::from(matches!(event, palmette_serve_schedule::Event::Arrive(_)));
                scheduler.step(now, event, &mut actions);
            }
            Record::Actions { actions: recorded } => {
                assert_eq!(actions, recorded);
                ends += actions
                    .iter()
                    .filter(|action| matches!(action, Action::Refuse { .. } | Action::Start { .. }))
                    .count();
            }
            Record::Begin { .. } => panic!("a record begins once"),
        }
    }
    assert!(arrived >= 180 && ends >= 120, "{arrived} arrived, {ends} were started or refused");
    assert!(scheduler.status().is_empty());
}

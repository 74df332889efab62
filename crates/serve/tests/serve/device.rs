//! A model on an emulated device: requests that share its passes, its numbers and its failure.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use futures_util::future::join_all;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_cuda::{Architecture, DeviceLimits};
use palmette_cuda_emulator::{Emulator, decoder};
use palmette_decode::run_on;
use palmette_model::draft::{DraftForm, DraftTensors};
use palmette_model::{Family, SharedEngine};
use palmette_recommend::{
    History, LevelFormat, Mode, PromptFormat, Recommender, Request, Verification, Worker,
};
use palmette_serve::{ServeConfig, Server};
use palmette_text::engine::EngineOptions;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::shop::{Routed, config};
use crate::text::{TEMPLATE, model_of, pieces, writing_of};

const CODES: u32 = 64;
/// Bytes that a model takes of a device.
const MEMORY: u64 = 160 << 20;

/// Server with a model on a device, and what is behind it.
struct OnDevice {
    routed: Routed,
    driver: Arc<Emulator>,
    engine: SharedEngine,
    catalog: Arc<Catalog>,
}

fn format() -> PromptFormat {
    let level = |l: u32| LevelFormat::run("x", 2 + l * CODES, CODES);
    PromptFormat {
        bos_token: Some(1),
        pad_token: Some(0),
        levels: (0..3).map(level).collect(),
        end_tokens: Vec::new(),
        max_history_items: 30,
        history_step: None,
        witnesses: Vec::new(),
    }
}

/// A log that keeps warnings: level, fields and message of each.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    /// The process's log.
    fn log() -> Arc<Self> {
        static LOG: OnceLock<Arc<Warnings>> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Arc::new(Self::default());
            tracing::subscriber::set_global_default(Arc::clone(&log)).expect("the only log");
            log
        });
        Arc::clone(log)
    }

    fn with(&self, word: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|line| line.contains(word)).cloned().collect()
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.is_event() && *about.level() == Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                _ = fmt::Write::write_fmt(&mut self.0, format_args!("{field}={value:?} "));
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn served(serve: ServeConfig) -> Option<OnDevice> {
    served_on(serve, 4 << 30, "m", items())
}

fn items() -> Vec<Item> {
    let item = |n: u32| {
        let codes = vec![n % 11, n * 13 % CODES, n * 29 % CODES];
        Item { id: format!("i{n}"), codes, attributes: Default::default() }
    };
    (0..300).map(item).collect()
}

/// A device of so many bytes.
fn served_on(serve: ServeConfig, bytes: u64, name: &str, items: Vec<Item>) -> Option<OnDevice> {
    served_with(serve, bytes, name, items, None)
}

fn served_with(
    serve: ServeConfig,
    bytes: u64,
    name: &str,
    items: Vec<Item>,
    draft: Option<DraftTensors>,
) -> Option<OnDevice> {
    let Some(driver) = Emulator::with_bytes(Architecture::Hopper, 3, bytes) else {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
        return None;
    };
    let driver = Arc::new(driver);
    let model = decoder::config(Family::Qwen3, 64);
    let limits = DeviceLimits {
        requests: 16,
        prompt_tokens: Some(128),
        memory: Some(MEMORY),
        ..decoder::LIMITS
    };
    let engine = decoder::upload_with(Arc::clone(&driver), &model, draft, &limits).unwrap();
    let engine = SharedEngine::from(Arc::new(engine));
    let codes_per_level = Some(vec![CODES; 3]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let catalog = Arc::new(Catalog::build(items.into(), &options).unwrap());
    let server = Server::new(serve).unwrap();
    server.add_model(name, engine.clone(), format()).unwrap();
    server.add_catalog("items", Arc::clone(&catalog), None).unwrap();
    server.set_target("shop", name, "items").unwrap();
    Some(OnDevice { routed: Routed::new(server), driver, engine, catalog })
}

/// A draft head beside the model, on its device.
#[tokio::test(flavor = "multi_thread")]
async fn drafts_of_a_batch_have_the_answers_of_each_alone() {
    let model = decoder::config(Family::Qwen3, 64);
    let shape = format().draft_shape().unwrap();
    let head = DraftTensors::random(DraftForm::default(), &model, shape, 3).unwrap();
    let Some(shop) = served_with(batches(), 4 << 30, "m", items(), Some(head)) else { return };
    let catalog = Arc::clone(&shop.catalog);
    let alone = Recommender::new(shop.engine.clone(), catalog, format()).unwrap();
    let mut alone = Worker::new(Arc::new(alone), 1);
    let asked = (0..6).map(|user| {
        let body = json!({"history": history(user), "k": 5, "mode": "draft"});
        let shop = &shop.routed;
        async move { shop.post("/v1/recommend", &body).await.ok() }
    });
    for (user, answer) in join_all(asked).await.iter().enumerate() {
        let ids = history(user);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mode = Mode::Draft(Verification::Masks);
        let request = Request { beam_width: 16, mode, ..Request::new(History::Ids(&ids), 5) };
        let want = alone.recommend(&request, &mut run_on).unwrap();
        let want: Vec<&str> =
            want.items.iter().map(|item| want.view.view().id(item.number)).collect();
        let items = answer["items"].as_array().unwrap().iter();
        let got: Vec<&str> = items.map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!((&got, answer["mode"].as_str()), (&want, Some("draft")), "user {user}");
    }
    let models = shop.routed.get("/v1/models").await.ok();
    assert_eq!(models["models"][0]["has_draft_head"], true);
    let metrics = shop.routed.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    assert!(text.contains("palmette_device_bytes{model=\"m\",use=\"draft_head\"}"), "{text}");
}

/// One stream, whose batches are of several requests; deadlines that an emulation keeps.
fn batches() -> ServeConfig {
    let mut config = ServeConfig { answer_cache: 0, ..config() };
    config.schedule.streams = 1;
    config.schedule.threads = 1;
    config.schedule.batch_jobs = 8;
    config.schedule.admission = false;
    config.default_deadline = Duration::from_secs(300);
    config.max_deadline = Duration::from_secs(300);
    config.questions.default_beam_width = 16;
    config
}

fn history(user: usize) -> Vec<String> {
    (0..=user % 5 * 3).map(|step| format!("i{}", (user * 31 + step * 17) % 300)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_batch_share_passes_and_have_the_answers_of_each_alone() {
    let Some(shop) = served(batches()) else { return };
    let recommender = Recommender::new(shop.engine.clone(), shop.catalog.clone(), format());
    let mut alone = Worker::new(Arc::new(recommender.unwrap()), 1);
    let mut expected = |user: usize| -> Vec<Value> {
        let ids = history(user);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let request = Request { beam_width: 16, ..Request::new(History::Ids(&ids), 5) };
        let answer = alone.recommend(&request, &mut run_on).unwrap();
        let item = |item: &palmette_recommend::Recommended| {
            let score: Value = serde_json::from_str(&item.score.to_string()).unwrap();
            json!([answer.view.view().id(item.number), score])
        };
        answer.items.iter().map(item).collect()
    };
    let want: Vec<Vec<Value>> = (0..10).map(&mut expected).collect();

    let before = shop.engine.device_use().unwrap();
    let asked = (0..10).map(|user| {
        let (shop, body) = (&shop.routed, json!({"history": history(user), "k": 5}));
        async move { shop.post("/v1/recommend", &body).await.ok() }
    });
    for (user, (answer, want)) in join_all(asked).await.iter().zip(&want).enumerate() {
        let items = answer["items"].as_array().unwrap().iter();
        let got: Vec<Value> = items.map(|item| json!([item["id"], item["score"]])).collect();
        assert_eq!(&got, want, "user {user}");
    }
    let after = shop.engine.device_use().unwrap();
    let (passes, requests) = (after.passes - before.passes, after.requests - before.requests);
    assert_eq!(requests, 10 * 3, "a request reads its prompt and two levels");
    assert!(passes < requests * 2 / 3, "{passes} passes of {requests} requests");

    let models = shop.routed.get("/v1/models").await.ok();
    assert_eq!(models["models"][0]["device"], "emulated Hopper");
    let metrics = shop.routed.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    for line in [
        format!("palmette_device_passes_total{{model=\"m\"}} {}", after.passes),
        format!("palmette_device_rows_total{{model=\"m\",kind=\"beam\"}} {}", after.beam_rows),
        format!("palmette_prefix_tokens_total{{model=\"m\",hit=\"true\"}} {}", after.found_tokens),
        format!("palmette_device_pages{{model=\"m\",state=\"kept\"}} {}", after.kept_pages),
        "palmette_device_bytes{model=\"m\",use=\"weights\"}".to_owned(),
        "palmette_device_catalogs{model=\"m\",state=\"taken\"} 1".to_owned(),
        "palmette_device_catalogs{model=\"m\",state=\"refused\"} 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in:\n{text}");
    }
}

/// It is answered level by level, and once there is a line of the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_the_device_does_not_take_is_logged_and_counted() {
    let log = Warnings::log();
    let item = |n: u32| {
        let codes = vec![n / 4096, n / 64 % CODES, n % CODES];
        Item { id: format!("i{n}"), codes, attributes: Default::default() }
    };
    let items = (0..100_000).map(item).collect();
    let Some(shop) = served_on(batches(), MEMORY, "full", items) else { return };
    for history in [["i1"], ["i2"]] {
        let body = json!({"history": history, "k": 3});
        let answer = shop.routed.post("/v1/recommend", &body).await.ok();
        assert_eq!(answer["items"].as_array().unwrap().len(), 3);
    }
    let lines = log.with("model=\"full\"");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("a catalog of 100000 items is searched level by level"), "{line}");
    let metrics = shop.routed.get("/metrics").await;
    let refused = "palmette_device_catalogs{model=\"full\",state=\"refused\"} 1";
    assert!(metrics.body.as_str().unwrap().contains(refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_fails_ends_readiness_and_says_so() {
    let Some(shop) = served(batches()) else { return };
    shop.routed.get("/readyz").await.ok();
    shop.driver.fail("kernel 7 went out of its memory");
    let answer = shop.routed.post("/v1/recommend", &json!({"history": ["i1"], "k": 3})).await;
    let (detail, _) = answer.problem(503);
    assert!(detail.contains("kernel 7 went out of its memory"), "{detail}");
    let ready = shop.routed.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    let failure = shop.routed.server.device_failure().await;
    assert!(failure.contains("model m: a kernel failed: kernel 7"), "{failure}");
}

/// More readings than a device has room for: a refusal that says when to come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_without_room_asks_to_come_again() {
    let Some(shop) = served(batches()) else { return };
    let wide = [300; 3];
    let shape = palmette_model::ReadingShape::new(100, &wide, 300);
    let mut held = Vec::new();
    while let Ok(reading) = shop.engine.open(&shape, 1) {
        held.push(reading);
    }
    let body = json!({"history": ["i1"], "k": 3, "beam_width": 300});
    let answer = shop.routed.post("/v1/recommend", &body).await;
    assert!(answer.headers.contains_key("retry-after"), "{:?}", answer.body);
    let (detail, _) = answer.problem(503);
    assert!(detail.contains("other requests"), "{detail}");
    drop(held);
    shop.routed.post("/v1/recommend", &body).await.ok();
}

/// Texts by a model on a device: its numbers, and its failure.
#[tokio::test(flavor = "multi_thread")]
async fn texts_of_a_device_are_written_there_and_end_with_it() {
    let Some(driver) = Emulator::new(Architecture::Hopper, 5) else {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
        return;
    };
    let driver = Arc::new(driver);
    let mut model = decoder::config(Family::Qwen3, 64);
    (model.hidden_size, model.intermediate_size, model.vocab_size) = (64, 64, pieces().len());
    let limits = DeviceLimits { requests: 16, beams: 0, ..decoder::LIMITS };
    let engine = Arc::new(decoder::upload(Arc::clone(&driver), &model, &limits).unwrap());
    let there = SharedEngine::from(Arc::clone(&engine));
    let room = EngineOptions { max_texts: 4, max_tokens: 2400, ..EngineOptions::default() };
    let texts = writing_of(model_of(there.clone()), config(), room, TEMPLATE, "llama3");

    let asked = ["a", "b", "c"].map(|word| {
        let form = format!("{word}[0-9]{{3}} (true|false)");
        let texts = &texts;
        async move { texts.complete(json!({"guided_regex": form, "max_tokens": 20})).await.ok() }
    });
    for (answer, word) in join_all(asked).await.iter().zip(["a", "b", "c"]) {
        let text = answer["choices"][0]["text"].as_str().unwrap();
        let (number, whether) = text.strip_prefix(word).unwrap().split_once(' ').unwrap();
        assert!(number.len() == 3 && number.parse::<u32>().is_ok(), "{text}");
        assert!(["true", "false"].contains(&whether), "{text}");
    }
    let models: Value =
        serde_json::from_str(&texts.send(Method::GET, "/v1/models", "").await.text).unwrap();
    assert_eq!(models["data"][0]["device"], "emulated Hopper");
    let used = there.device_use().unwrap();
    assert!(used.passes > 0 && used.beam_rows == 0, "{used:?}");
    let metrics = texts.send(Method::GET, "/metrics", "").await.text;
    for line in [
        format!("palmette_device_passes_total{{model=\"tiny\"}} {}", used.passes),
        format!(
            "palmette_device_rows_total{{model=\"tiny\",kind=\"prompt\"}} {}",
            used.prompt_rows
        ),
        "palmette_device_bytes{model=\"tiny\",use=\"weights\"}".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in:\n{metrics}");
    }

    driver.fail("kernel 7 went out of its memory");
    let answer = texts.complete(json!({})).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    assert!(answer.text.contains("kernel 7 went out of its memory"), "{}", answer.text);
    let ready = texts.send(Method::GET, "/readyz", "").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    let failure = texts.server.device_failure().await;
    assert!(failure.contains("model tiny: a kernel failed: kernel 7"), "{failure}");
}

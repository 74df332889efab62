//! Models of texts: their tokens, lists, keys and draft models.

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use palmette_serve::{NewKey, Scope, Server, TextOptions};
use palmette_testkit::tiny_model;
use palmette_text::engine::EngineOptions;
use palmette_text::{TextModel, ToolFormat};
use palmette_vocabulary::{LoadOptions, load_bytes};
use serde_json::json;
use tower::ServiceExt;

use crate::shop::config;
use crate::text::{
    Answered, POSITIONS, TEMPLATE, chat, model, model_of, pieces, writing, writing_as, writing_with,
};

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_cut_and_put_together_and_a_model_is_told_of() {
    let writing = writing();
    let cut = json!({"model": "tiny", "prompt": "ab\n", "return_token_strs": true});
    let cut = writing.post("/tokenize", &cut).await.ok();
    assert_eq!(cut["tokens"], json!([65, 66, 96]));
    assert_eq!((&cut["count"], &cut["token_strs"]), (&json!(3), &json!(["a", "b", "\n"])));
    let text = writing.post("/detokenize", &json!({"tokens": cut["tokens"]})).await.ok();
    assert_eq!(text["prompt"], "ab\n");
    let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let chat = writing.post("/tokenize", &chat).await.ok();
    assert_eq!(chat["count"], "[user] Hello\n[assistant] ".len());
    let (_, at) =
        writing.post("/detokenize", &json!({"tokens": [1, 70000]})).await.error(400, "invalid");
    assert_eq!(at, "tokens[1]");
    writing.post("/tokenize", &json!({"prompt": "a", "messages": []})).await.error(400, "invalid");
    let get = async |path: &str| writing.send(Method::GET, path, Body::empty()).await;
    assert_eq!(get("/v1/models/tiny").await.ok()["id"], "tiny");
    get("/v1/models/other").await.error(404, "model_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_and_keys_permit_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let made = NewKey::make("a", &[Scope::Text], &["tiny".to_owned()]).unwrap();
    let other = NewKey::make("b", &[Scope::Text], &["else".to_owned()]).unwrap();
    let reads = NewKey::make("c", &[Scope::Recommend], &[]).unwrap();
    let lines = [&made, &other, &reads].map(|key| key.line.as_str()).join("\n");
    std::fs::write(file.path(), lines).unwrap();
    let mut config = config();
    config.keys = Some(file.path().to_owned());
    let writing = writing_with(config, EngineOptions::default());
    let send = async |path: &str, method: Method, key: &str, body: String| {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let Ok(response) =
            writing.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answered { status: parts.status, headers: parts.headers, text }
    };
    let body = || chat(json!({"max_tokens": 2})).to_string();
    let path = "/v1/chat/completions";
    send(path, Method::POST, &made.key, body()).await.ok();
    send(path, Method::POST, "", body()).await.error(401, "unauthorised");
    send(path, Method::POST, &reads.key, body()).await.error(403, "forbidden");
    let (message, _) = send(path, Method::POST, &other.key, body()).await.error(403, "forbidden");
    assert!(message.contains("tiny"), "{message}");
    let models = send("/v1/models", Method::GET, &made.key, String::new()).await.ok();
    assert_eq!(models["object"], "list");
    let model = &models["data"][0];
    assert_eq!((&model["id"], &model["object"]), (&json!("tiny"), &json!("model")));
    assert_eq!(
        (&model["max_model_len"], &model["tool_format"]),
        (&json!(POSITIONS), &json!("llama3"))
    );
    let none = send("/v1/models", Method::GET, &other.key, String::new()).await.ok();
    assert_eq!(none["data"], json!([]));
}

/// Answers with a draft model are those without, with log-probabilities, drawn and under grammars;
/// its passes and weights are counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_model_changes_no_answer() {
    let seeded = |seed| model_of(tiny_model::seeded(pieces().len(), POSITIONS, seed));
    let serving = |draft_model| {
        let engine = EngineOptions { max_texts: 4, max_tokens: 2400, ..EngineOptions::default() };
        let tool_format = ToolFormat::named("llama3");
        let options = TextOptions { engine, tool_format, draft_model, ..TextOptions::default() };
        writing_as(model(), config(), &options, TEMPLATE)
    };
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}}, "required": ["name"]});
    let asked = [
        json!({"temperature": 0.0, "logprobs": true, "top_logprobs": 2}),
        json!({"temperature": 1.0, "n": 3}),
        json!({"temperature": 0.5, "response_format": {"type": "json_schema", "json_schema": {"name": "one", "schema": schema}}}),
        json!({"temperature": 0.0, "guided_regex": "[a-z]{20}[A-Z]{20}[0-9]{9}", "logprobs": true}),
    ];
    let mut found = Vec::new();
    for draft_model in [None, Some(seeded(3)), Some(seeded(4))] {
        let has_draft_model = draft_model.is_some();
        let writing = serving(draft_model);
        let mut answers = Vec::new();
        for asked in &asked {
            let answer = writing.chat(asked.clone()).await.ok();
            answers.push((answer["choices"].clone(), answer["usage"]["completion_tokens"].clone()));
        }
        let metrics = writing.send(Method::GET, "/metrics", Body::empty()).await.text;
        let value = |name: &str| -> f64 {
            let line = metrics.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split(' ').next_back()?.parse().ok()).expect(name)
        };
        assert_eq!(
            value("palmette_text_draft_passes_total{model=\"tiny\"}") > 0.0,
            has_draft_model
        );
        let weights = value("palmette_memory_bytes{kind=\"weights\"}");
        found.push((answers, weights));
    }
    assert_eq!(found[0].0, found[1].0);
    assert_eq!(found[0].0, found[2].0);
    assert_eq!((2.0 * found[0].1, found[1].1), (found[1].1, found[2].1));
}

/// A draft model of other tokens, and one that would guess nothing, are refused when the model is
/// added.
#[tokio::test]
async fn draft_models_that_cannot_be_are_refused() {
    let json = serde_json::to_string(&tiny_model::pieces(&["\": \"", "\t", "true"])).unwrap();
    let vocabulary = load_bytes("characters", json.as_bytes(), &LoadOptions::default()).unwrap();
    let engine = tiny_model::model(pieces().len(), POSITIONS);
    let other = TextModel::from_parts("other", engine, vocabulary, &Default::default()).unwrap();
    let refused = |draft_model, draft_tokens| {
        let engine = EngineOptions { draft_tokens, ..EngineOptions::default() };
        let options =
            TextOptions { engine, draft_model: Some(draft_model), ..TextOptions::default() };
        let server = Server::new(config()).unwrap();
        server.add_text("tiny", model(), &options).unwrap_err().to_string()
    };
    let error = refused(other, 8);
    let words = r#"tiny: the draft model other has other tokens than tiny: token 96 is "\t" there and "\n" here"#;
    assert!(error.contains(words), "{error}");
    let error = refused(model(), 0);
    assert!(error.contains("draft_tokens is 0"), "{error}");
}

//! Texts over HTTP by a tiny model of made-up weights: a server of it, and what its answers have.
//! What the model says means nothing, and fits what was asked for.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use palmette_model::SharedEngine;
use palmette_serve::{ServeConfig, Server, TextOptions};
use palmette_testkit::tiny_model;
use palmette_text::engine::EngineOptions;
use palmette_text::{TextModel, ToolFormat};
use palmette_vocabulary::{LoadOptions, load_bytes};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::shop::{check_documented, config};

pub(crate) const POSITIONS: usize = 600;

pub(crate) fn pieces() -> Vec<String> {
    tiny_model::pieces(&["\": \"", "\n", "true"])
}

/// A model of texts over the pieces.
pub(crate) fn model_of(engine: impl Into<SharedEngine>) -> TextModel {
    let json = serde_json::to_string(&pieces()).unwrap();
    let vocabulary = load_bytes("characters", json.as_bytes(), &LoadOptions::default()).unwrap();
    TextModel::from_parts("tiny", engine, vocabulary, &Default::default()).unwrap()
}

pub(crate) fn model() -> TextModel {
    model_of(tiny_model::model(pieces().len(), POSITIONS))
}

pub(crate) const TEMPLATE: &str = "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}\
    [{{ m.role }}] {{ m.content }}\n{% endfor %}{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}\
    {% if add_generation_prompt %}[assistant] {% endif %}";

pub(crate) struct Writing {
    pub(crate) server: Server,
    pub(crate) router: Router,
}

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

pub(crate) fn writing_with(config: ServeConfig, engine: EngineOptions) -> Writing {
    writing_by(config, engine, TEMPLATE, "llama3")
}

/// A server of the model with a chat template and a way of calling tools.
pub(crate) fn writing_by(
    config: ServeConfig,
    engine: EngineOptions,
    template: &str,
    tool_format: &str,
) -> Writing {
    writing_of(model(), config, engine, template, tool_format)
}

/// A server of this model.
pub(crate) fn writing_of(
    model: TextModel,
    config: ServeConfig,
    engine: EngineOptions,
    template: &str,
    tool_format: &str,
) -> Writing {
    let tool_format = ToolFormat::named(tool_format);
    let options = TextOptions { engine, tool_format, ..TextOptions::default() };
    writing_as(model, config, &options, template)
}

pub(crate) fn writing_as(
    model: TextModel,
    config: ServeConfig,
    options: &TextOptions,
    template: &str,
) -> Writing {
    let server = Server::new(config).unwrap();
    let model = model.with_chat_template(template).unwrap();
    server.add_text("tiny", model, options).unwrap();
    Writing { router: server.router(), server }
}

pub(crate) fn writing() -> Writing {
    let engine = EngineOptions { max_texts: 4, max_tokens: 2400, ..EngineOptions::default() };
    writing_with(config(), engine)
}

impl Writing {
    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Answered {
        let request =
            Request::builder().method(method.clone()).uri(path).header("host", "localhost");
        let request = request.body(body.into()).unwrap();
        let Ok(response) = self.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        check_documented(&method, path, parts.status);
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answered { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(Method::POST, path, body.to_string()).await
    }

    pub(crate) async fn chat(&self, members: Value) -> Answered {
        self.post("/v1/chat/completions", &chat(members)).await
    }

    pub(crate) async fn complete(&self, members: Value) -> Answered {
        let mut body = json!({"model": "tiny", "prompt": "Once", "seed": 1});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.post("/v1/completions", &body).await
    }
}

pub(crate) fn chat(members: Value) -> Value {
    let mut body = json!({
        "model": "tiny", "messages": [{"role": "user", "content": "Hello"}], "seed": 1, "max_tokens": 100});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

impl Answered {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// Checks OpenAI's form of an error; its message and member.
    #[track_caller]
    pub(crate) fn error(self, status: u16, code: &str) -> (String, String) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/json");
        assert!(self.headers.contains_key("x-request-id"));
        let body: Value = serde_json::from_str(&self.text).expect("JSON");
        let error = &body["error"];
        assert_eq!(error["code"], code, "{body}");
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        assert_eq!(error["type"], kind, "{body}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&error["message"]), text(&error["param"]))
    }

    /// The events of a stream, which ends in `[DONE]`.
    #[track_caller]
    pub(crate) fn events(self) -> Vec<Value> {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        assert_eq!(self.headers["content-type"], "text/event-stream; charset=utf-8");
        let mut events: Vec<&str> = self.text.split_terminator("\n\n").collect();
        assert_eq!(events.pop(), Some("data: [DONE]"), "{}", self.text);
        let event = |event: &str| {
            let json = event.strip_prefix("data: ").expect("an event of one line");
            serde_json::from_str(json).expect("JSON")
        };
        events.into_iter().map(event).collect()
    }
}

pub(crate) fn schema() -> Value {
    json!({"type": "object", "properties": {"on": {"type": "boolean"}, "colour": {"enum": ["red", "green"]}},
        "required": ["on", "colour"], "additionalProperties": false})
}

pub(crate) fn format() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "lamp", "strict": true, "schema": schema()}})
}

#[track_caller]
pub(crate) fn check_lamp(text: &str) {
    let lamp: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(lamp.as_object().unwrap().len(), 2, "{lamp}");
    assert!(lamp["on"].is_boolean() && [json!("red"), json!("green")].contains(&lamp["colour"]));
}

/// The events of a response's stream, each by the name in its line and in itself.
#[track_caller]
pub(crate) fn named_events(answered: &Answered) -> Vec<Value> {
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    let events = answered.text.split_terminator("\n\n");
    let event = |(number, event): (usize, &str)| {
        let (name, data) = event.split_once('\n').expect("two lines");
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).expect("JSON");
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str(), "{event}");
        assert_eq!(data["sequence_number"], number, "{event}");
        data
    };
    events.enumerate().map(event).collect()
}

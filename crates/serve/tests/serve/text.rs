//! Texts over OpenAI's interface, by a tiny model of made-up weights: what it says means nothing,
//! and fits what was asked for.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use palmette_model::SharedEngine;
use palmette_serve::{NewKey, Scope, ServeConfig, Server, TextOptions};
use palmette_testkit::tiny_model;
use palmette_text::engine::EngineOptions;
use palmette_text::{TextModel, ToolFormat};
use palmette_vocabulary::{LoadOptions, load_bytes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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

fn writing_as(
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

fn chat(members: Value) -> Value {
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

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_fits_its_schema_whole_and_in_parts() {
    let writing = writing();
    let asked = json!({"response_format": format(), "temperature": 1.0, "n": 2, "user": "me", "store": false});
    let whole = writing.chat(asked.clone()).await.ok();
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!("tiny")));
    let choices = whole["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["role"]),
            (&json!("stop"), &json!("assistant"))
        );
        check_lamp(choice["message"]["content"].as_str().unwrap());
        assert_eq!(choice["finish"], json!({"rule": "promised", "steered": 0}), "{choice}");
    }
    let usage = &whole["usage"];
    let prompt = "[user] Hello\n[assistant] ".len();
    assert_eq!(usage["prompt_tokens"], prompt);
    let completion = usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], prompt as u64 + completion);

    // The same in parts, by the same seed.
    let mut streamed = asked;
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_usage": true});
    let events = writing.chat(streamed).await.events();
    let (last, parts) = events.split_last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), usage));
    let mut texts = [String::new(), String::new()];
    let mut ends = [0, 0];
    for (place, part) in parts.iter().enumerate() {
        assert_eq!((&part["object"], &part["id"]), (&json!("chat.completion.chunk"), &last["id"]));
        let choice = &part["choices"][0];
        let index = choice["index"].as_u64().unwrap() as usize;
        assert_eq!(choice["delta"]["role"].is_string(), place < 2, "{part}");
        texts[index] += choice["delta"]["content"].as_str().unwrap_or_default();
        ends[index] += usize::from(choice["finish_reason"] == "stop");
        assert_eq!(choice["finish"].is_object(), choice["finish_reason"].is_string(), "{part}");
    }
    assert_eq!(ends, [1, 1]);
    for (text, choice) in texts.iter().zip(choices) {
        assert_eq!(*text, choice["message"]["content"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_whole_and_in_parts() {
    let writing = writing();
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": schema()}});
    let asked = json!({"tools": [tool("switch"), tool("look")], "tool_choice": "required", "parallel_tool_calls": false});
    let whole = writing.chat(asked.clone()).await.ok();
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    assert_eq!(choice["message"]["content"], Value::Null);
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["type"]), (1, &json!("function")));
    assert!(["switch", "look"].contains(&calls[0]["function"]["name"].as_str().unwrap()));
    check_lamp(calls[0]["function"]["arguments"].as_str().unwrap());

    let mut streamed = asked.clone();
    streamed["stream"] = json!(true);
    let (mut name, mut arguments, mut ends) = (String::new(), String::new(), Vec::new());
    for event in writing.chat(streamed).await.events() {
        let choice = &event["choices"][0];
        ends.extend(choice["finish_reason"].as_str().map(str::to_owned));
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(call["index"], 0);
            assert_eq!(call["id"].is_string(), call["function"]["name"].is_string());
            name += call["function"]["name"].as_str().unwrap_or_default();
            arguments += call["function"]["arguments"].as_str().unwrap();
        }
    }
    assert_eq!(ends, ["tool_calls"]);
    assert_eq!(
        (&json!(name), &json!(arguments)),
        (&calls[0]["function"]["name"], &calls[0]["function"]["arguments"])
    );

    let mut named = asked.clone();
    named["tool_choice"] = json!({"type": "function", "function": {"name": "look"}});
    let answer = writing.chat(named).await.ok();
    assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "look");
    // Calls that are whole within the tokens are calls, though more of them might have followed.
    let mut several = asked.clone();
    several["parallel_tool_calls"] = json!(true);
    let mut first = None;
    for tokens in 1..200 {
        several["max_tokens"] = json!(tokens);
        let answer = writing.chat(several.clone()).await;
        if answer.status == StatusCode::OK {
            first = Some(answer.ok());
            break;
        }
    }
    let choice = &first.expect("a call within 200 tokens")["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    check_lamp(choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap());
    // Words beside calls are whole wherever they are cut off.
    let mut words = asked.clone();
    words.as_object_mut().unwrap().extend(
        [("tool_choice", json!("auto")), ("max_tokens", json!(5)), ("ignore_eos", json!(true))]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    let answer = writing.chat(words).await.ok();
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
    assert_eq!(answer["choices"][0]["finish"]["rule"], "promised", "{answer}");
    let mut none = asked;
    none["tool_choice"] = json!("none");
    none["max_tokens"] = json!(5);
    let answer = writing.chat(none).await.ok();
    assert_eq!(
        answer["usage"]["prompt_tokens"],
        "[user] Hello\n[assistant] ".len(),
        "no tools are shown"
    );
    assert!(answer["choices"][0]["message"].get("tool_calls").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_have_every_spelling() {
    let writing = writing();
    let text = |answer: Value| answer["choices"][0]["text"].as_str().unwrap().to_owned();
    for (members, allowed) in [
        (json!({"guided_choice": ["yes", "no"]}), vec!["yes", "no"]),
        (json!({"structured_outputs": {"choice": ["a.b", "(c)"]}}), vec!["a.b", "(c)"]),
        (json!({"guided_regex": "x{3}"}), vec!["xxx"]),
        (json!({"structured_outputs": {"regex": "[ab]"}}), vec!["a", "b"]),
        (json!({"guided_grammar": "start: \"p\" | \"q\""}), vec!["p", "q"]),
        (json!({"structured_outputs": {"grammar": "root ::= \"u\" | \"v\""}}), vec!["u", "v"]),
        (json!({"guided_json": {"enum": [true]}}), vec!["true"]),
        (json!({"guided_json": "{\"const\": null}"}), vec!["null"]),
    ] {
        let answer = text(writing.complete(members.clone()).await.ok());
        assert!(allowed.contains(&answer.as_str()), "{members}: {answer}");
    }
    let lamp = json!({"guided_json": schema(), "max_tokens": 90});
    check_lamp(&text(writing.complete(lamp).await.ok()));
    let object =
        json!({"response_format": {"type": "json_object"}, "max_tokens": 400, "temperature": 0.3});
    let answer = writing.complete(object).await.ok();
    if answer["choices"][0]["finish_reason"] == "stop" {
        let object: Value = serde_json::from_str(&text(answer)).unwrap();
        assert!(object.is_object());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_take_several_prompts_and_echo() {
    let writing = writing();
    let members = json!({"prompt": ["ab", "cd"], "n": 2, "echo": true, "max_tokens": 3, "min_tokens": 3, "temperature": 0});
    let answer = writing.complete(members.clone()).await.ok();
    assert_eq!(answer["object"], "text_completion");
    let texts: Vec<&str> =
        answer["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
    assert!(texts[0].starts_with("ab") && texts[1] == texts[0], "{texts:?}");
    assert!(texts[2].starts_with("cd") && texts[3] == texts[2] && texts[2].len() > 4, "{texts:?}");
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 4, "completion_tokens": 12, "total_tokens": 16})
    );
    assert_eq!(answer["choices"][3]["finish_reason"], "length");
    let mut streamed = members;
    streamed["stream"] = json!(true);
    let mut parts = vec![String::new(); 4];
    for event in writing.complete(streamed).await.events() {
        let choice = &event["choices"][0];
        parts[choice["index"].as_u64().unwrap() as usize] += choice["text"].as_str().unwrap();
    }
    assert_eq!(parts, texts);
    // Tokens instead of text, with log-probabilities.
    let tokens = json!({"prompt": [65, 66], "logprobs": 2, "max_tokens": 4, "min_tokens": 4});
    let answer = writing.complete(tokens).await.ok();
    let choice = &answer["choices"][0];
    let logprobs = &choice["logprobs"];
    let tokens: Vec<&str> =
        logprobs["tokens"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    assert_eq!(json!(tokens.concat()), choice["text"]);
    assert_eq!(logprobs["top_logprobs"][3].as_object().unwrap().len(), 2);
    assert!(logprobs["token_logprobs"][0].as_f64().unwrap() < 0.0);
    assert_eq!(logprobs["text_offset"][0], 0);
    // The same of a chat, and a text before which it ends.
    let members = json!({"logprobs": true, "top_logprobs": 3, "max_tokens": 6, "min_tokens": 6});
    let answer = writing.chat(members).await.ok();
    let content = answer["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert_eq!((content.len(), content[0]["top_logprobs"].as_array().unwrap().len()), (6, 3));
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let stop = text.chars().nth(3).unwrap().to_string();
    let answer = writing.chat(json!({"stop": stop, "max_tokens": 6, "min_tokens": 6})).await.ok();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["content"], text[..text.find(&stop).unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_is_refused_by_its_member() {
    let writing = writing();
    let deep = "[".repeat(5000);
    let mut wrong = Vec::new();
    for (members, param, words) in [
        (json!({"max_token": 5}), "max_token", "did you mean \"max_tokens\""),
        (json!({"best_of": 3}), "best_of", "only 1"),
        (json!({"n": 0}), "n", "at least 1"),
        (json!({"n": 1_000_000}), "n", "64 answers in all"),
        (json!({"temperature": -1}), "temperature", "at least 0"),
        (json!({"top_p": 0}), "top_p", "above 0"),
        (json!({"max_tokens": 0}), "max_tokens", "at least 1"),
        (json!({"min_tokens": 200}), "min_tokens", "more than"),
        (
            json!({"guided_regex": "[ab]{1,3}", "min_tokens": 4, "max_tokens": 9}),
            "min_tokens",
            "lower min_tokens to 3",
        ),
        (json!({"stop": [""]}), "stop[0]", "empty"),
        (json!({"stop": vec!["x"; 17]}), "stop", "16"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias", "ids of tokens"),
        (json!({"logit_bias": {"70000": 1}}), "logit_bias", "vocabulary"),
        (json!({"stop_token_ids": [70000]}), "stop_token_ids", "vocabulary"),
        (json!({"top_logprobs": 2}), "top_logprobs", "logprobs"),
        (json!({"logprobs": true, "top_logprobs": 50}), "top_logprobs", "20"),
        (json!({"messages": []}), "messages", "no messages"),
        (json!({"messages": [{"role": "robot", "content": ""}]}), "messages", "no robots"),
        (json!({"tool_choice": "required"}), "tool_choice", "no tools"),
        (json!({"deadline_ms": 0}), "deadline_ms", "takes 1 to"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type", "json_schema"),
        (json!({"guided_json": {"type": "thing"}}), "guided_json", "the types are"),
        (json!({"guided_regex": "("}), "guided_regex", ""),
        (json!({"guided_grammar": "start: missing"}), "guided_grammar", "missing"),
        (json!({"guided_json": deep}), "guided_json", ""),
        (json!({"structured_outputs": {"regex": "(?=a)b"}}), "structured_outputs.regex", "no text"),
        (json!({"guided_regex": "a\\bb"}), "guided_regex", "no text"),
        (json!({"guided_grammar": "start: x\nx: x"}), "guided_grammar", "no text"),
        (json!({"guided_grammar": "root ::= root \"a\""}), "guided_grammar", "no text"),
        (json!({"guided_json": false}), "guided_json", ""),
        (
            json!({"messages": [{"role": "clown", "content": "x"}]}),
            "messages[0].role",
            "is no role",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}),
            "messages[0].name",
            "does not read",
        ),
        (json!({"reasoning_effort": "much"}), "reasoning_effort", "there are none, minimal"),
        (json!({"json_form": {"order": "none"}}), "json_form.order", "one of schema, any"),
        (
            json!({"structured_outputs": {"regex": "a", "whitespace_pattern": " *"}}),
            "structured_outputs.whitespace_pattern",
            "json_form",
        ),
        (json!({"guided_json": {}, "guided_regex": "a"}), "guided_regex", "one grammar"),
    ] {
        let shown = members.to_string().chars().take(80).collect::<String>();
        let (message, at) = writing.chat(members).await.error(400, "invalid");
        if at != param || !message.contains(words) {
            wrong.push(format!("{shown}: {at}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for prompt in [json!([]), json!(""), json!([[]]), json!([70000])] {
        writing.complete(json!({"prompt": prompt})).await.error(400, "invalid");
    }
    let (message, at) = writing.chat(json!({"model": "other"})).await.error(404, "model_not_found");
    assert!(message.contains("tiny") && at == "model", "{message}");
    let path = "/v1/chat/completions";
    writing.send(Method::POST, path, "{").await.error(400, "not-json");
    writing.send(Method::POST, path, "[]").await.error(400, "invalid");
    writing.send(Method::GET, path, Body::empty()).await.error(405, "method-not-allowed");
    let large = format!("{{\"messages\": \"{}\"}}", "x".repeat(17 << 20));
    writing.send(Method::POST, path, large).await.error(413, "too-large");
    let (message, _) = writing
        .chat(json!({"deadline_ms": 1, "max_tokens": 500, "ignore_eos": true}))
        .await
        .error(504, "deadline-missed");
    assert!(message.contains("deadline_ms"), "{message}");
}

/// Clients cut conversations by this code.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_context_has_a_code() {
    let writing = writing();
    let long = json!([{"role": "user", "content": "x".repeat(700)}]);
    for members in
        [json!({"messages": long}), json!({"max_tokens": 5000}), json!({"max_tokens": 590})]
    {
        let (message, _) = writing.chat(members).await.error(400, "context_length_exceeded");
        assert!(message.contains("shorten") || message.contains("ask for"), "{message}");
    }
    writing
        .complete(json!({"prompt": "x".repeat(700)}))
        .await
        .error(400, "context_length_exceeded");
}

/// A schema as pydantic writes it: no members but those it declares, in its order, unless somebody
/// wants it otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_mean_what_people_mean() {
    let writing = writing();
    let plain = json!({"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"enum": [1, 2]}}, "required": ["z", "a"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": plain}});
    for seed in 0..8 {
        for members in [
            json!({"guided_json": plain, "seed": seed}),
            json!({"response_format": format, "seed": seed}),
            json!({"structured_outputs": {"json": plain}, "seed": seed}),
        ] {
            let answer = writing.chat(members.clone()).await.ok();
            let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(
                value.as_object().unwrap().keys().collect::<Vec<_>>(),
                ["z", "a"],
                "{members}"
            );
            assert!(!text.contains("  ") || text.contains('\n'), "{text:?}");
        }
        let tool = json!({"type": "function", "function": {"name": "f", "parameters": plain}});
        let members = json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false, "seed": seed});
        let answer = writing.chat(members).await.ok();
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        let value: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).expect("JSON");
        assert_eq!(value.as_object().unwrap().len(), 2, "{call}");
    }
    // The standard's reading is had: among some answers one begins with another member, or has
    // more.
    let mut others = 0;
    for seed in 0..12 {
        let form = json!({"closed_objects": false, "order": "any"});
        let members =
            json!({"guided_json": plain, "seed": seed, "json_form": form, "max_tokens": 60});
        let answer = writing.chat(members).await.ok();
        others += usize::from(
            !answer["choices"][0]["message"]["content"]
                .as_str()
                .unwrap()
                .trim_start_matches(['{', ' ', '\n'])
                .starts_with("\"z\""),
        );
    }
    assert!(others > 0, "no member came first but the schema's first");
}

/// Likelihoods of a prompt, as evaluations ask for them.
#[tokio::test(flavor = "multi_thread")]
async fn an_echoed_prompt_has_likelihoods() {
    let writing = writing();
    let prompts = json!(["Once upon", "a"]);
    let asked = json!({"prompt": prompts, "echo": true, "logprobs": 2, "max_tokens": 0});
    let answer = writing.complete(asked).await.ok();
    let scored = |choice: &Value| -> Vec<Option<f64>> {
        let found = choice["logprobs"]["token_logprobs"].as_array().unwrap();
        found.iter().map(Value::as_f64).collect()
    };
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["text"], &choice["finish_reason"]),
        (&json!("Once upon"), &json!("length"))
    );
    let all = scored(choice);
    assert_eq!(all.len(), 9);
    assert!(all[0].is_none() && all[1..].iter().all(|found| found.unwrap() < 0.0), "{all:?}");
    assert_eq!(choice["logprobs"]["top_logprobs"][1].as_object().unwrap().len(), 2);
    assert_eq!(choice["logprobs"]["text_offset"][4], 4);
    assert_eq!(scored(&answer["choices"][1]), [None]);
    assert_eq!(answer["usage"]["completion_tokens"], 0);
    // Token by token they are those that the tokens have as text.
    for end in 1..9 {
        let beginning = &"Once upon"[..end];
        let bias = json!({(u32::from("Once upon".as_bytes()[end]) - 32).to_string(): 100});
        let next = json!({"prompt": beginning, "logprobs": 0, "max_tokens": 1, "logit_bias": bias, "temperature": 0});
        let next = writing.complete(next).await.ok();
        let one = scored(&next["choices"][0])[0].unwrap();
        assert!((one - all[end].unwrap()).abs() < 1e-4, "{end}: {one} is not {:?}", all[end]);
    }
    // The same beside a text, and streamed.
    let asked = json!({"prompt": "Once upon", "echo": true, "logprobs": 0, "max_tokens": 2, "min_tokens": 2});
    let whole = writing.complete(asked.clone()).await.ok();
    let choice = &whole["choices"][0];
    assert_eq!(scored(choice)[..9], all[..]);
    assert_eq!((scored(choice).len(), &choice["logprobs"]["text_offset"][9]), (11, &json!(9)));
    let mut streamed = asked;
    streamed["stream"] = json!(true);
    let (mut text, mut found) = (String::new(), Vec::new());
    for event in writing.complete(streamed).await.events() {
        let choice = &event["choices"][0];
        text += choice["text"].as_str().unwrap();
        if choice["logprobs"].is_object() {
            found.extend(scored(choice));
        }
    }
    assert_eq!((&json!(text), found), (&choice["text"], scored(choice)));
}

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

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_chats_in_other_words() {
    let writing = writing();
    let ask = |members: Value| {
        let mut body =
            json!({"model": "tiny", "input": "Hello", "seed": 1, "max_output_tokens": 100});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        body
    };
    let respond = async |members: Value| writing.post("/v1/responses", &ask(members)).await;
    let form = json!({"format": {"type": "json_schema", "name": "lamp", "strict": true, "schema": schema()}});
    let whole = respond(json!({"text": form})).await.ok();
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")));
    let item = &whole["output"][0];
    assert_eq!(
        (&item["type"], &item["content"][0]["type"]),
        (&json!("message"), &json!("output_text"))
    );
    let text = item["content"][0]["text"].as_str().unwrap();
    check_lamp(text);
    assert_eq!(whole["text"], form);
    assert_eq!(whole["usage"]["input_tokens"], "[user] Hello\n[assistant] ".len());
    // The same as a chat.
    let chat = writing.chat(json!({"response_format": format()})).await.ok();
    assert_eq!(chat["choices"][0]["message"]["content"], text);

    // In parts.
    let events = named_events(&respond(json!({"text": form, "stream": true})).await);
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        names[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(
        names[names.len() - 4..],
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    let told: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(told, text);
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["output"][0]["content"], whole["output"][0]["content"]);
    assert_eq!(last["usage"], whole["usage"]);

    // Tools, flat, and what they gave.
    let tool = json!({"type": "function", "name": "switch", "parameters": schema()});
    let asked = json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false});
    let called = respond(asked.clone()).await.ok();
    let call = &called["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("switch")));
    check_lamp(call["arguments"].as_str().unwrap());
    let mut streamed = asked;
    streamed["stream"] = json!(true);
    let events = named_events(&respond(streamed).await);
    let deltas =
        events.iter().filter(|event| event["type"] == "response.function_call_arguments.delta");
    let told: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(json!(told), call["arguments"]);
    assert_eq!(
        events.last().unwrap()["response"]["output"][0]["call_id"].as_str().map(|id| &id[..5]),
        Some("call_")
    );
    let given = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "done"},
    ]);
    let answer = respond(json!({"input": given, "tools": [tool], "tool_choice": "none", "max_output_tokens": 3, "ignore_eos": true})).await.ok();
    assert_eq!(
        (&answer["status"], &answer["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );

    for (members, param) in [
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"input": 3}), "input"),
        (json!({"text": {"format": {"type": "xml"}}}), "text.format"),
        (json!({"tools": [{"type": "function"}]}), "tools"),
        (json!({"reasoning": {"effort": "much"}}), "reasoning.effort"),
        (
            json!({"tools": [{"type": "function", "name": "f", "parametrs": {}}]}),
            "tools[0].parametrs",
        ),
    ] {
        let (message, at) = respond(members.clone()).await.error(400, "invalid");
        assert!(at.starts_with(param), "{members}: {at}: {message}");
    }
    let flat = json!({"type": "function", "name": "f", "parameters": {"type": "objekt"}});
    let (message, _) = respond(json!({"tools": [flat]})).await.error(400, "invalid");
    assert!(message.contains("\"/tools/0/parameters/type\""), "{message}");
    let searched = respond(
        json!({"use_beam_search": true, "best_of": 2, "temperature": 0, "max_output_tokens": 4}),
    )
    .await
    .ok();
    assert!(searched["score"].as_f64().is_some_and(|score| score < 0.0), "{searched}");
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

/// Waits until the metrics have a line.
async fn metric(writing: &Writing, line: &str) {
    for _ in 0..1000 {
        let metrics = writing.send(Method::GET, "/metrics", Body::empty()).await.text;
        if metrics.contains(line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no {line} in the metrics");
}

fn endless() -> Value {
    chat(json!({"ignore_eos": true, "max_tokens": 500, "stream": true}))
}

/// A client that goes away in the middle of a stream frees its place, in which another is answered;
/// who finds no place waits, and is refused where too many do.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_free_their_places() {
    let engine = EngineOptions { max_texts: 1, max_waiting: 1, ..EngineOptions::default() };
    let mut config = config();
    config.drain_delay = Duration::from_millis(100);
    let writing = writing_with(config, engine);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = writing.server.clone();
    let served = tokio::spawn(async move {
        server.serve(listener, async { _ = stopped.await }).await.unwrap();
    });
    let ask = async || {
        let mut client = TcpStream::connect(address).await.unwrap();
        let body = endless().to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all((head + &body).as_bytes()).await.unwrap();
        client
    };
    for _ in 0..3 {
        let mut client = ask().await;
        let mut some = [0; 700];
        client.read_exact(&mut some).await.unwrap();
        assert!(some.starts_with(b"HTTP/1.1 200"));
        drop(client);
    }
    metric(&writing, "palmette_text_requests{model=\"tiny\",state=\"writing\"} 0").await;
    writing.chat(json!({"max_tokens": 3})).await.ok();
    // On a fast machine a text may be whole before the next client comes.
    let mut refused = None;
    for _ in 0..200 {
        let clients = [ask().await, ask().await, ask().await];
        tokio::time::sleep(Duration::from_millis(2)).await;
        let answer = writing.chat(json!({"max_tokens": 3})).await;
        drop(clients);
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a text that finds neither a place nor room to wait is refused");
    let retry = refused.headers.get("retry-after").cloned();
    let (message, _) = refused.error(429, "overloaded");
    assert!(message.contains("wait") && retry.is_some(), "{message}");
    stop.send(()).unwrap();
    served.await.unwrap();
    writing.chat(json!({})).await.error(503, "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_are_those_of_the_form_at_the_place() {
    let writing = writing();
    let mask = async |body: Value| writing.post("/v1/masks", &body).await;
    let texts = |answer: &Value| -> Vec<String> {
        let tokens = answer["tokens"].as_array().unwrap().iter();
        tokens.map(|token| token["text"].as_str().unwrap().to_owned()).collect()
    };
    // Each token of the model is tried: a text of four digits is whole, and one of fewer goes on
    // with a digit.
    let digits: Vec<String> = (0..10).map(|digit: u8| digit.to_string()).collect();
    for (text, wanted, may_end) in
        [("", &digits[..], false), ("19", &digits, false), ("1984", &["</s>".to_owned()], true)]
    {
        let answer = mask(json!({"guided_regex": "[0-9]{4}", "text": text})).await.ok();
        assert_eq!(
            (texts(&answer), &answer["may_end"]),
            (wanted.to_vec(), &json!(may_end)),
            "{text:?}"
        );
        assert_eq!(answer["allowed"], wanted.len(), "{text:?}");
    }
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false});
    let form = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let answer = mask(json!({"response_format": form, "text": "{\"na", "show": 3})).await.ok();
    assert!(answer["forced"].as_str().unwrap().starts_with("me\""), "{answer}");
    assert_eq!((texts(&answer), &answer["allowed"]), (vec!["m".to_owned()], &json!(1)));
    let tools = json!([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}}]);
    let answer = mask(json!({"tools": tools, "tool_choice": "required"})).await.ok();
    assert!(!answer["forced"].as_str().unwrap().is_empty(), "{answer}");
    for (body, param, word) in [
        (json!({"text": "x"}), "", "no member names a form"),
        (json!({"guided_regex": "[0-9]{4}", "text": "12a"}), "text", ""),
        (json!({"guided_regex": "("}), "guided_regex", ""),
        (json!({"guided_regex": "a", "show": 2000}), "show", "1000"),
        (json!({"guided_regex": "a", "text": "x".repeat(70_000)}), "text", "65536"),
        (json!({"guided_regex": "a", "txt": "x"}), "txt", "no member"),
    ] {
        let (message, at) = mask(body.clone()).await.error(400, "invalid");
        assert_eq!(at, param, "{message}");
        assert!(message.contains(word), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_texts_are_measured() {
    let writing = writing();
    writing.chat(json!({"max_tokens": 20, "guided_regex": "[a-z]{20}"})).await.ok();
    let metrics = writing.send(Method::GET, "/metrics", Body::empty()).await.text;
    for name in ["queue", "first_token", "token"] {
        let counted = format!("palmette_text_{name}_seconds_count{{model=\"tiny\"}}");
        assert!(metrics.contains(&counted), "{counted} in {metrics}");
    }
    assert!(
        metrics.contains("palmette_text_seconds_bucket{model=\"tiny\",le=\"600\"}"),
        "{metrics}"
    );
}

/// A text that is not whole when its time in a drain is over ends by an error: a stream's last
/// event, or the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_texts_by_an_error() {
    let engine = EngineOptions { max_texts: 1, ..EngineOptions::default() };
    let mut config = config();
    config.text_drain_grace = Duration::from_millis(100);
    let writing = writing_with(config, engine);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = writing.server.clone();
    let served = tokio::spawn(async move {
        server.serve(listener, async { _ = stopped.await }).await.unwrap();
    });
    let ask = async |streams: bool| {
        let mut client = TcpStream::connect(address).await.unwrap();
        let body = chat(json!({"ignore_eos": true, "max_tokens": 500, "n": 30, "stream": streams}));
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all((head + &body).as_bytes()).await.unwrap();
        client
    };
    let (mut stream, mut whole) = (ask(true).await, ask(false).await);
    let mut some = [0; 700];
    stream.read_exact(&mut some).await.unwrap();
    metric(&writing, "palmette_text_requests{model=\"tiny\",state=\"writing\"} 1").await;
    stop.send(()).unwrap();
    let mut end = String::new();
    stream.read_to_string(&mut end).await.unwrap();
    let last = end.rsplit("data: ").next().unwrap();
    assert!(last.contains("\"code\":\"unavailable\"") && last.ends_with("0\r\n\r\n"), "{last}");
    assert!(!end.contains("[DONE]"));
    end.clear();
    whole.read_to_string(&mut end).await.unwrap();
    assert!(end.starts_with("HTTP/1.1 503") && end.contains("\"unavailable\""), "{end}");
    served.await.unwrap();
}

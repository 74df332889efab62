//! Random documents over HTTP and by the library: the same answers, or the same faults.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use palmette_document::place;
use palmette_text::question::{ChatBody, CheckError, TextLimits, TextSettings};
use palmette_text::{TextEvent, TextModel, ToolFormat, generate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::text::{POSITIONS, TEMPLATE, model, schema, writing};

/// Members of a chat, each with values of which some break a rule.
fn members() -> Vec<(&'static str, Vec<Value>)> {
    let says = |role: &str, text: &str| json!({"role": role, "content": text});
    let tool = json!({"type": "function", "function": {"name": "switch", "parameters": schema()}});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "lamp", "schema": schema()}});
    vec![
        (
            "messages",
            vec![
                json!([says("user", "Hello")]),
                json!([
                    says("system", "Be kind."),
                    says("user", "a"),
                    says("assistant", "b"),
                    says("user", "c")
                ]),
                json!([]),
                json!([says("robot", "x")]),
                json!([{"role": "user", "content": 7}, says("user", "x")]),
                json!([says("user", &"x".repeat(700))]),
            ],
        ),
        ("temperature", vec![json!(0), json!(0.7), json!(-1), json!("hot")]),
        ("top_p", vec![json!(0.5), json!(0)]),
        ("top_k", vec![json!(2), json!(-1), json!(-2)]),
        ("min_p", vec![json!(0.1), json!(2)]),
        ("seed", vec![json!(3), json!(-4), Value::Null]),
        ("n", vec![json!(2), json!(0), json!(65)]),
        ("max_tokens", vec![json!(0), json!(3), json!(5000)]),
        ("max_completion_tokens", vec![json!(3), json!(4.0)]),
        ("min_tokens", vec![json!(2), json!(900)]),
        ("stop", vec![json!("e"), json!(["a", ""]), json!(vec!["x"; 17])]),
        ("stop_token_ids", vec![json!([1, 2]), json!([70_000])]),
        ("ignore_eos", vec![json!(true)]),
        ("presence_penalty", vec![json!(1)]),
        ("repetition_penalty", vec![json!(1.2), json!(0)]),
        ("logit_bias", vec![json!({"5": 3}), json!({"x": 1}), json!({"70000": 1})]),
        ("logprobs", vec![json!(true), json!(false)]),
        ("top_logprobs", vec![json!(1), json!(30)]),
        (
            "response_format",
            vec![
                format,
                json!({"type": "text"}),
                json!({"type": "xml"}),
                json!({"type": "json_schema"}),
            ],
        ),
        (
            "structured_outputs",
            vec![
                json!({"choice": ["on", "off"]}),
                json!({"json": {"type": "boolean"}, "disable_any_whitespace": true}),
                json!({}),
                json!({"regex": "a", "resources": {}}),
            ],
        ),
        ("guided_json", vec![json!({"const": 1, "constt": 2}), json!({"type": "thing"})]),
        ("guided_regex", vec![json!("[0-9]{2}"), json!("(")]),
        ("guided_choice", vec![json!(["yes", "no"]), json!([])]),
        ("guided_grammar", vec![json!("start: \"p\" | \"q\""), json!("start: missing")]),
        ("json_form", vec![json!({"whitespace": "compact"}), json!({"order": "none"})]),
        ("tools", vec![json!([tool]), json!([]), json!([{}])]),
        (
            "tool_choice",
            vec![
                json!("required"),
                json!("none"),
                json!({"type": "function", "function": {"name": "x"}}),
            ],
        ),
        ("parallel_tool_calls", vec![json!(false)]),
        ("lax_tools", vec![json!(true)]),
        ("reasoning_effort", vec![json!("low"), json!("much")]),
        ("verbosity", vec![json!("medium"), json!("high")]),
        ("thinking", vec![json!({"type": "enabled"}), json!({"type": "adaptive"})]),
        ("add_generation_prompt", vec![json!(false), json!(true)]),
        ("continue_final_message", vec![json!(true)]),
        ("chat_template_kwargs", vec![json!({"mood": "good"})]),
        ("user", vec![json!("me")]),
        ("best_of", vec![json!(1), json!(2)]),
        ("length_penalty", vec![json!(1), json!(2)]),
        ("use_beam_search", vec![json!(false), json!("wide")]),
        ("schema", vec![json!({})]),
        ("zz", vec![json!(1)]),
    ]
}

/// Answers in words, with the prompt's tokens and what is warned of; or the message of the faults
/// and the first member.
type Outcome = Result<(usize, Vec<Value>, Vec<String>), (String, Option<String>, &'static str)>;

fn by_library(model: &TextModel, body: &str) -> Outcome {
    let refused = |faults: &palmette_document::Faults, code| {
        let first = faults.iter().next().map(|fault| fault.pointer.clone()).unwrap_or_default();
        Err((faults.to_string(), (!first.is_empty()).then(|| place(&first)), code))
    };
    let body = match ChatBody::from_json(body.as_bytes()) {
        Ok(body) => body,
        Err(faults) => return refused(&faults, "invalid"),
    };
    let settings = TextSettings {
        limits: TextLimits { max_positions: POSITIONS, ..TextLimits::default() },
        tool_format: ToolFormat::named("llama3").map(|format| model.spoken(format)),
        ..TextSettings::default()
    };
    let checked = match body.question.check(model, &settings, &AtomicBool::new(false)) {
        Ok(checked) => checked,
        Err(CheckError::Faults(faults)) => return refused(&faults, "invalid"),
        Err(CheckError::TooLong(faults)) => return refused(&faults, "context_length_exceeded"),
        Err(other) => panic!("{other}"),
    };
    let text = |answer: usize| {
        let mut text = String::new();
        let ended = generate(model, &checked.request(answer), &mut |event| {
            if let TextEvent::Text(piece) = event {
                text += &piece.text;
            }
            ControlFlow::Continue(())
        });
        json!([ended.unwrap().usage.completion_tokens, text])
    };
    let texts = (0..checked.num_answers()).map(text).collect();
    Ok((checked.requests[0].prompt.len(), texts, checked.warnings))
}

#[tokio::test(flavor = "multi_thread")]
async fn http_and_the_library_are_one() {
    let writing = writing();
    let model = model().with_chat_template(TEMPLATE).unwrap();
    let pool = members();
    let mut runner = TestRunner::deterministic();
    let picks = vec(any::<(Index, Index)>(), 0..5);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..400 {
        let picks = picks.new_tree(&mut runner).unwrap().current();
        let mut body =
            json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "seed": 1});
        for (name, value) in picks {
            let (name, values) = &pool[name.index(pool.len())];
            body[*name] = values[value.index(values.len())].clone();
        }
        // Without a seed there would be another answer each time.
        if body["seed"].is_null() {
            body["temperature"] = json!(0);
        }
        let body = body.to_string();
        let sent =
            writing.send(axum::http::Method::POST, "/v1/chat/completions", body.clone()).await;
        match by_library(&model, &body) {
            Ok((prompt_tokens, texts, warnings)) => {
                answered += 1;
                let answer = sent.ok();
                assert_eq!(answer["usage"]["prompt_tokens"], prompt_tokens, "{body}");
                let tokens: u64 = texts.iter().map(|text| text[0].as_u64().unwrap()).sum();
                assert_eq!(answer["usage"]["completion_tokens"], tokens, "{body}");
                assert_eq!(
                    answer["warnings"].as_array().map_or(0, Vec::len),
                    warnings.len(),
                    "{body}"
                );
                for (choice, text) in answer["choices"].as_array().unwrap().iter().zip(&texts) {
                    // Calls are read out of the text.
                    if choice["message"].get("tool_calls").is_none() {
                        let words = choice["message"]["content"].as_str().unwrap();
                        assert!(text[1].as_str().unwrap().contains(words), "{body}: {choice}");
                    }
                }
            }
            Err((message, param, code)) => {
                refused += 1;
                assert_eq!(sent.status, StatusCode::BAD_REQUEST, "{body}: {message}");
                let error: Value = serde_json::from_str(&sent.text).unwrap();
                let error = &error["error"];
                assert_eq!(
                    (&error["message"], &error["code"]),
                    (&json!(message), &json!(code)),
                    "{body}"
                );
                assert_eq!(error["param"], json!(param), "{body}");
            }
        }
    }
    assert!(answered > 50 && refused > 50, "{answered} answered, {refused} refused");
}

//! Best texts of a beam search over OpenAI's interface.

use std::ops::ControlFlow;

use axum::http::StatusCode;
use palmette_text::question::{ChatBody, TextSettings};
use palmette_text::{TextBeams, TextEvent};
use serde_json::{Value, json};

use crate::text::{TEMPLATE, model, writing};

fn beams(members: Value) -> Value {
    let mut body = json!({"use_beam_search": true, "temperature": 0, "max_tokens": 8});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// Texts, scores and numbers of tokens of a search by the library, best first.
fn by_library(members: &Value) -> Vec<(String, f32)> {
    let model = model().with_chat_template(TEMPLATE).unwrap();
    let mut body = json!({"messages": [{"role": "user", "content": "Hello"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let body = ChatBody::from_json(body.to_string().as_bytes()).unwrap();
    let settings = TextSettings::default();
    let checked = body.question.check(&model, &settings, &Default::default()).unwrap();
    let beams: TextBeams = checked.beams.unwrap();
    let mut texts = vec![String::new(); checked.n];
    let found = beams.search(&model, &checked.requests[0], &mut |place, event| {
        if let TextEvent::Text(piece) = event {
            texts[place] += &piece.text;
        }
        ControlFlow::Continue(())
    });
    let scores = found.unwrap().into_iter().map(|ended| ended.score.unwrap());
    texts.into_iter().zip(scores).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_the_best_texts_with_their_scores() {
    let writing = writing();
    for members in [
        json!({"n": 3, "best_of": 4, "length_penalty": 0.5}),
        json!({"n": 2, "guided_choice": ["red", "green", "blue"]}),
        json!({"n": 2, "best_of": 4, "guided_regex": "[a-c]{2,}", "finish": "cut", "stop_token_ids": [65]}),
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1, 22, 333]}}}, "n": 3}),
    ] {
        let asked = beams(members);
        let answer = writing.chat(asked.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let answer: Value = serde_json::from_str(&answer.text).unwrap();
        let choices = answer["choices"].as_array().unwrap();
        let expected = by_library(&asked);
        assert_eq!(choices.len(), expected.len(), "{asked}");
        for (index, (choice, (text, score))) in choices.iter().zip(&expected).enumerate() {
            assert_eq!(choice["index"], json!(index));
            assert_eq!(choice["message"]["content"], json!(text));
            assert_eq!(choice["score"].as_f64().map(|score| score as f32), Some(*score));
        }
        assert!(expected.is_sorted_by(|a, b| a.1 >= b.1));
        // In parts the same, once all are found.
        let mut streamed = asked.clone();
        streamed["stream"] = json!(true);
        let parts = writing.chat(streamed).await.text;
        let mut texts = vec![(String::new(), None); expected.len()];
        let events = parts.lines().filter_map(|line| line.strip_prefix("data: "));
        for event in events.filter(|event| *event != "[DONE]") {
            let event: Value = serde_json::from_str(event).unwrap();
            for choice in event["choices"].as_array().unwrap() {
                let (text, told) = &mut texts[choice["index"].as_u64().unwrap() as usize];
                *text += choice["delta"]["content"].as_str().unwrap_or_default();
                if let Some(score) = choice["score"].as_f64() {
                    *told = Some(score as f32);
                }
            }
        }
        let expected: Vec<_> =
            expected.into_iter().map(|(text, score)| (text, Some(score))).collect();
        assert_eq!(texts, expected);
        assert!(parts.ends_with("data: [DONE]\n\n"), "{parts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_have_the_best_texts_of_each_prompt() {
    let writing = writing();
    let ask = beams(json!({"prompt": ["Once", "Twice"], "n": 3, "guided_choice": ["so", "be it"]}));
    let answer: Value = serde_json::from_str(&writing.complete(ask).await.text).unwrap();
    // Two texts exist, so the third of each prompt is none.
    let indices: Vec<&Value> =
        answer["choices"].as_array().unwrap().iter().map(|choice| &choice["index"]).collect();
    assert_eq!(indices, [0, 1, 3, 4]);
    for choice in answer["choices"].as_array().unwrap() {
        assert!(["so", "be it"].contains(&choice["text"].as_str().unwrap()), "{choice}");
        assert!(choice["score"].as_f64().unwrap() < 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_searched_too() {
    let writing = writing();
    let tool = json!({"type": "function", "function": {"name": "light", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}}});
    let ask = beams(
        json!({"n": 2, "best_of": 3, "tools": [tool], "tool_choice": "required", "max_tokens": 90}),
    );
    let answer = writing.chat(ask).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let answer: Value = serde_json::from_str(&answer.text).unwrap();
    for choice in answer["choices"].as_array().unwrap() {
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        assert_eq!(choice["finish"], json!({"rule": "promised"}), "no token was drawn");
        assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "light");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_cannot_have_beside_it_is_refused_by_its_member() {
    let writing = writing();
    for (members, param, words) in [
        (json!({"temperature": 0.7}), "temperature", "takes only 0 and 1:"),
        (json!({"top_p": 0.5}), "top_p", "takes only 1:"),
        (json!({"presence_penalty": 1}), "presence_penalty", "takes only 0:"),
        (json!({"logit_bias": {"65": 1}}), "logit_bias", "takes none:"),
        (json!({"stop": "x"}), "stop", "stop_token_ids"),
        (json!({"logprobs": true}), "logprobs", "takes none:"),
        (json!({"finish": "gentle", "guided_regex": "a+"}), "finish", "promised and cut"),
        (json!({"best_of": 100}), "best_of", "at most 64"),
        (json!({"n": 3, "best_of": 2}), "best_of", "as many beams as"),
        (json!({"length_penalty": 1e9}), "length_penalty", "from -10 to 10"),
        (json!({"guided_regex": "a{30}"}), "max_tokens", "30"),
        (json!({"n": 5}), "best_of", "4 texts at once"),
        (json!({"n": 4, "max_tokens": 570}), "max_tokens", "fewer tokens"),
        (json!({"max_tokens": 0}), "max_tokens", "at least 1"),
        (json!({"use_beam_search": false, "best_of": 2}), "best_of", "use_beam_search"),
        (
            json!({"use_beam_search": null, "length_penalty": 2}),
            "length_penalty",
            "use_beam_search",
        ),
    ] {
        let answer = writing.chat(beams(members.clone())).await;
        let body: Value = serde_json::from_str(&answer.text).unwrap();
        assert!(answer.status.is_client_error(), "{members}: {body}");
        assert_eq!(body["error"]["param"], param, "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{members}: {message}");
    }
}

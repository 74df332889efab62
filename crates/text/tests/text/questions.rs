//! Questions: documents of chats and completions, checked against a tiny model.

use std::sync::atomic::AtomicBool;

use palmette_core::TokenId;
use palmette_document::Faults;
use palmette_text::question::{
    ChatBody, CheckError, CheckedText, CompletionBody, TextDefaults, TextLimits, TextSettings,
};
use palmette_text::{Constrained, SamplerOptions, TextModel, ToolFormat};
use serde_json::{Value, json};

use crate::tiny::model;

const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}\
    {% for t in tools or [] %}{{ t.function.name }} {% endfor %}{{ verbosity }}{% if add_generation_prompt %}assistant: {% endif %}";

fn chatting() -> TextModel {
    model().with_chat_template(TEMPLATE).unwrap()
}

fn settings() -> TextSettings {
    let tool_format = ToolFormat::named("llama3").copied();
    let defaults = TextDefaults { seed: 9, ..TextDefaults::default() };
    TextSettings { tool_format, defaults, ..TextSettings::default() }
}

fn chat_with(settings: &TextSettings, members: Value) -> Result<CheckedText, CheckError> {
    let mut body = json!({"messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let body = ChatBody::from_json(body.to_string().as_bytes()).unwrap();
    body.question.check(&chatting(), settings, &AtomicBool::new(false))
}

fn chat(members: Value) -> Result<CheckedText, CheckError> {
    chat_with(&settings(), members)
}

fn complete(members: Value) -> Result<CheckedText, CheckError> {
    let body = CompletionBody::from_json(members.to_string().as_bytes()).unwrap();
    body.question.check(&chatting(), &settings(), &AtomicBool::new(false))
}

#[track_caller]
fn faults(checked: Result<CheckedText, CheckError>) -> Faults {
    let error = checked.unwrap_err();
    error.faults().unwrap_or_else(|| panic!("{error}")).clone()
}

#[track_caller]
fn pointers(checked: Result<CheckedText, CheckError>, wanted: &[&str]) {
    let faults = faults(checked);
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(pointers, wanted, "{faults}");
}

#[test]
fn what_is_left_open_has_its_default() {
    let checked = chat(json!({})).unwrap();
    let request = &checked.requests[0];
    assert_eq!((checked.n, checked.num_answers(), checked.warnings.len()), (1, 1, 0));
    let prompt = chatting().encode_prompt("user: hi assistant: ").unwrap();
    assert_eq!((&request.prompt, request.max_tokens), (&prompt, 160 - prompt.len()));
    let sampler = SamplerOptions { temperature: 1.0, seed: 9, ..SamplerOptions::default() };
    assert_eq!(request.sampler, sampler);
    assert!(matches!(request.constraint, Constrained::Nothing));
    assert_eq!(complete(json!({"prompt": "hi"})).unwrap().requests[0].max_tokens, 16);
    // Tokens that nobody asked for are as many as there is room for.
    let long = "a".repeat(150);
    assert_eq!(complete(json!({"prompt": long})).unwrap().requests[0].max_tokens, 10);
    let terminal = TextSettings { defaults: TextDefaults::terminal(), ..settings() };
    let request = &chat_with(&terminal, json!({})).unwrap().requests[0];
    assert_eq!((request.sampler.temperature, request.max_tokens), (0.0, 160 - prompt.len()));
}

#[test]
fn members_become_requests() {
    let checked = chat(json!({
        "temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "seed": -1, "n": 3, "max_completion_tokens": 7, "min_tokens": 2,
        "stop": "x", "stop_token_ids": [4], "presence_penalty": 1, "frequency_penalty": 2, "repetition_penalty": 1.5,
        "logit_bias": {"5": -1}, "logprobs": true, "top_logprobs": 2, "guided_choice": ["abc", "bcd"], "verbosity": "high",
    }));
    let checked = checked.unwrap();
    let request = &checked.requests[0];
    let sampler = request.sampler;
    assert_eq!((sampler.temperature, sampler.top_p, sampler.min_p), (0.5, 0.9, 0.1));
    assert_eq!((sampler.top_k.map(|k| k.get()), sampler.seed), (Some(3), u64::MAX));
    let penalties =
        (sampler.presence_penalty, sampler.frequency_penalty, sampler.repetition_penalty);
    assert_eq!(penalties, (1.0, 2.0, 1.5));
    assert_eq!((request.max_tokens, request.min_tokens, request.logprobs), (7, 2, Some(2)));
    assert_eq!(
        (&request.stop[..], &request.stop_tokens[..]),
        (&["x".to_owned()][..], &[TokenId(4)][..])
    );
    assert_eq!(request.logit_bias, [(TokenId(5), -1.0)]);
    assert!(matches!(request.constraint, Constrained::Grammar(_)));
    let prompt = chatting().encode_prompt("user: hi highassistant: ").unwrap();
    assert_eq!(request.prompt, prompt);
    // Seeds count up.
    let seeds: Vec<u64> = (0..3).map(|answer| checked.request(answer).sampler.seed).collect();
    assert_eq!(seeds, [u64::MAX, 0, 1]);

    let checked = complete(
        json!({"prompt": ["ab", "b"], "n": 2, "echo": true, "logprobs": 0, "max_tokens": 0}),
    );
    let checked = checked.unwrap();
    assert_eq!(
        (checked.num_answers(), &checked.echoes[..]),
        (4, &["ab".to_owned(), "b".to_owned()][..])
    );
    assert_eq!(checked.request(3).prompt, checked.requests[1].prompt);
    assert_eq!(checked.requests[0].prompt_logprobs, Some(0));
    let tool = json!({"type": "custom", "custom": {"name": "f"}});
    let calling = chat(json!({"tools": [tool]})).unwrap().calling.unwrap();
    assert_eq!((calling.format.name, &calling.customs[..]), ("llama3", &["f".to_owned()][..]));
}

#[test]
fn faults_that_do_not_hang_on_one_another_are_told_at_once() {
    pointers(
        chat(json!({
            "n": 0, "tool_choice": "required", "messages": [], "reasoning_effort": "much", "verbosity": "loud",
            "guided_regex": "(", "top_logprobs": 2, "max_tokens": 5, "max_completion_tokens": 6, "min_tokens": 8, "temperature": -1,
            "top_p": 0, "top_k": -7, "stop": ["", "x"], "logit_bias": {"a": 1, "900": 1}, "stop_token_ids": [900],
        })),
        &[
            "/n",
            "/tool_choice",
            "/reasoning_effort",
            "/verbosity",
            "/messages",
            "/guided_regex",
            "/top_logprobs",
            "/max_tokens",
            "/top_k",
            "/logit_bias",
            "/temperature",
            "/top_p",
            "/logit_bias",
            "/stop_token_ids",
            "/stop/0",
            "/min_tokens",
        ],
    );
    // A rule about a member is told once, whatever the number of prompts.
    let prompts = json!({"prompt": ["a", "", "é"], "temperature": -1, "max_tokens": 0});
    pointers(complete(prompts), &["/prompt/2", "/temperature", "/max_tokens", "/prompt/1"]);
    pointers(complete(json!({"prompt": []})), &["/prompt"]);
    let (tools, regex) = (json!([{"name": "f"}]), "a");
    pointers(chat(json!({"tools": tools, "guided_regex": regex})), &["/guided_regex"]);
}

#[test]
fn lengths_are_told_by_the_member_that_is_too_long() {
    let limits = TextLimits { max_positions: 100, ..TextLimits::default() };
    let served = TextSettings { limits, ..settings() };
    let says = |length: usize| json!([{"role": "user", "content": "a".repeat(length)}]);
    for (members, pointer, words) in [
        (json!({"messages": says(200)}), "/messages", "the model reads 160"),
        (json!({"messages": says(110)}), "/messages", "served with 100"),
        (json!({"max_tokens": 500}), "/max_tokens", "ask for at most"),
        (json!({"max_completion_tokens": 95}), "/max_completion_tokens", "there is room for"),
    ] {
        match chat_with(&served, members.clone()).unwrap_err() {
            CheckError::TooLong(faults) => {
                let fault = faults.iter().next().unwrap();
                assert_eq!(
                    (fault.pointer.as_str(), faults.iter().count()),
                    (pointer, 1),
                    "{faults}"
                );
                assert!(fault.detail.contains(words), "{members}: {faults}");
            }
            other => panic!("{members}: {other}"),
        }
    }
}

#[test]
fn limits_are_those_of_the_surface() {
    let members = json!({"n": 65, "stop": vec!["x"; 17], "logprobs": true, "top_logprobs": 21});
    pointers(chat(members.clone()), &["/n", "/top_logprobs", "/stop"]);
    let own = TextSettings { limits: TextLimits::OWN, ..settings() };
    assert_eq!(chat_with(&own, members).unwrap().num_answers(), 65);
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let checked =
        chat(json!({"reasoning_effort": "low", "guided_json": {"const": 1, "constt": 2}}));
    let warnings = checked.unwrap().warnings;
    assert!(warnings[0].starts_with("reasoning_effort is low"), "{warnings:?}");
    assert!(
        warnings[1].starts_with("guided_json: ") && warnings[1].contains("constt"),
        "{warnings:?}"
    );
}

/// An answer whose shortest form cannot be written is not promised to be whole, and says so.
#[test]
fn a_promise_that_cannot_be_made_is_a_warning() {
    // No token has the byte 1.
    for (finish, warned) in [("promised", 1), ("gentle", 1), ("cut", 0)] {
        let asked = json!({"guided_regex": "\\x01|[a-z]{3}", "finish": finish});
        let warnings = chat(asked).unwrap().warnings;
        assert_eq!(warnings.len(), warned, "{finish}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.starts_with("finish: ")), "{warnings:?}");
        let asked = json!({"guided_regex": "[a-z]{3}", "finish": finish});
        assert_eq!(chat(asked).unwrap().warnings, [""; 0]);
    }
}

#[test]
fn a_grammar_that_is_called_off_is_no_fault() {
    let body = json!({"prompt": "a", "guided_regex": "[a-z]{3}called off", "temperature": -1});
    let body = CompletionBody::from_json(body.to_string().as_bytes()).unwrap();
    let checked = body.question.check(&chatting(), &settings(), &AtomicBool::new(true));
    assert_eq!(checked.unwrap_err(), CheckError::Cancelled);
}

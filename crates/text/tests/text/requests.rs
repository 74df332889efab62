//! Requests that cannot be answered, and prompts.

use palmette_core::TokenId;
use palmette_decode::SamplerOptions;
use palmette_text::{Constrained, Conversation, TextModel, TextRequest, TextSession, sources};
use serde_json::json;

use crate::tiny::{model, model_with, token};

#[track_caller]
fn check(model: &TextModel, request: &TextRequest, words: &str) {
    let error = TextSession::new(model.clone())
        .generate(request, &mut |_| panic!("nothing is computed"))
        .unwrap_err();
    let checked = request.check(model).unwrap_err();
    assert_eq!(error.request().map(ToString::to_string), Some(checked.to_string()));
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_cannot_be_answered_is_said_before_anything_is_computed() {
    let model = model();
    let new = |tokens: usize, max| TextRequest::new(vec![TokenId(3); tokens], max);
    let fine = || new(4, 10);
    assert_eq!(fine().check(&model), Ok(()));
    assert_eq!(new(159, 1).check(&model), Ok(()));
    check(&model, &new(0, 5), "the prompt is empty");
    check(&model, &new(4, 0), "max_tokens is 0");
    check(&model, &new(160, 1), "the prompt has 160 tokens and the model reads 160");
    check(&model, &new(100, 61), "ask for at most 60");
    check(&model, &TextRequest { min_tokens: 11, ..fine() }, "min_tokens is 11, more than the 10");
    let stop = vec!["a".to_owned(), String::new()];
    check(&model, &TextRequest { stop, ..fine() }, "stop string 1 is empty");
    let sampler = SamplerOptions { top_p: 0.0, ..Default::default() };
    check(&model, &TextRequest { sampler, ..fine() }, "top_p is 0");
    let logit_bias = vec![(TokenId(1), f32::NAN)];
    check(&model, &TextRequest { logit_bias, ..fine() }, "logit_bias is NaN");
    let logit_bias = vec![(TokenId(5000), 1.0)];
    check(&model, &TextRequest { logit_bias, ..fine() }, "logit_bias names token 5000");
    let stop_tokens = vec![TokenId(103)];
    check(&model, &TextRequest { stop_tokens, ..fine() }, "stop_tokens names token 103");
    check(&model, &TextRequest::new(vec![TokenId(103)], 3), "the prompt names token 103");
    let other = palmette_core::Unconstrained::new(7, 3);
    let constraint = Constrained::By(std::sync::Arc::new(other));
    check(&model, &TextRequest { constraint, ..fine() }, "the grammar is over 7 tokens");
}

/// A token of the vocabulary for which the model has no embedding is an error of the pass, and no
/// panic.
#[test]
fn a_prompt_of_a_token_that_the_model_lacks_is_an_error() {
    let model = model_with(-2);
    let request = TextRequest::new(vec![TokenId(102)], 3);
    let mut session = TextSession::new(model);
    let error = session.generate(&request, &mut |_| std::ops::ControlFlow::Continue(()));
    assert!(error.unwrap_err().to_string().contains("token 102 is not in the model's vocabulary"));
}

#[test]
fn prompts_have_special_tokens_by_name() {
    let model = model();
    let call = token(&model, "<|call|>");
    let tokens = model.encode_prompt("ab<|call|>a").unwrap();
    assert_eq!(tokens, [token(&model, "ab"), call, token(&model, "a")]);
    assert_eq!(model.encode_text("ab").unwrap(), [token(&model, "ab")]);
    assert!(model.encode_prompt("é").unwrap_err().to_string().contains("no token"));
    assert_eq!(model.special_name(call), Some("<|call|>"));
}

#[test]
fn conversations_go_through_the_template_and_its_absence_is_named() {
    let model = model();
    let conversation = Conversation::new(vec![json!({"role": "user", "content": "hi"})]);
    let error = model.chat_prompt(&conversation, None).unwrap_err();
    assert!(error.is_of_model() && error.to_string().contains("chat template"), "{error}");
    let template = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|call|>{% endfor %}";
    let with = model.with_chat_template(template).unwrap();
    let prompt = with.chat_prompt(&conversation, None).unwrap();
    assert_eq!(prompt, "user: hi<|call|>");
    assert_eq!(with.encode_prompt(&prompt).unwrap().last(), Some(&token(&model, "<|call|>")));
    assert!(with.tool_format().is_none());
    assert!(model.with_chat_template("{% for %}").is_err());
    let hermes = model.with_chat_template("<tool_call> {{ arguments }}").unwrap();
    assert_eq!(hermes.tool_format().unwrap().name, "hermes");
}

#[test]
fn equal_grammars_are_compiled_once() {
    let model = model();
    let source = sources::json_schema(json!({"type": "boolean"}));
    let (one, two) = (model.compile(&source).unwrap(), model.clone().compile(&source).unwrap());
    assert!(std::sync::Arc::ptr_eq(&one, &two));
    let bad = sources::json_schema(json!({"type": "boole"}));
    assert!(model.compile(&bad).is_err());
}

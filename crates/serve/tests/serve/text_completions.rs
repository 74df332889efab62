//! Completions: several prompts, echoes, and likelihoods.

use serde_json::{Value, json};

use crate::text::writing;

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

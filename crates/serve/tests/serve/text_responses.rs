//! Responses: chats in the words of OpenAI's newer interface.

use serde_json::{Value, json};

use crate::text::{check_lamp, format, named_events, schema, writing};

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

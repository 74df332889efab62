//! Jinja templates of chats and prompts: what is read renders twice the same text within its steps,
//! or says why not.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palmette_model_template::{Chat, ChatTemplate, TextTemplate, Variables};
use serde_json::{Value, json};

static MESSAGES: LazyLock<Value> = LazyLock::new(|| {
    json!([
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Héllo <b>"}]},
        {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "now", "arguments": {"zone": "CET", "n": 1.5}}}
        ]},
        {"role": "tool", "content": "12:00"},
    ])
});
static TOOLS: LazyLock<Value> = LazyLock::new(
    || json!([{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]),
);

fuzz_target!(|source: &str| {
    match ChatTemplate::from_source(source) {
        Ok(template) => {
            let mut chat = Chat::new(&MESSAGES);
            for tools in [None, Some(&*TOOLS)] {
                chat =
                    Chat { tools, add_generation_prompt: true, now: Some(1_700_000_000), ..chat };
                let text = template.render(&chat).map_err(|error| error.to_string());
                let again = template.render(&chat).map_err(|error| error.to_string());
                assert_eq!(text, again);
                text.err().into_iter().for_each(|error| assert!(!error.is_empty()));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(template) = TextTemplate::from_source(source) {
        let mut variables = Variables::default();
        variables.set("history", ["<a_1><b_2>", "<a_3><b_4>"]);
        _ = template.render(&variables);
    }
});

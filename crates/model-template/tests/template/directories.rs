//! Templates and special tokens of a model's directory, and texts with placeholders.

use std::path::Path;

use palmette_model_template::{Chat, ChatTemplate, Printed, TextTemplate, Variables};
use serde_json::json;

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

#[test]
fn the_template_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert!(ChatTemplate::from_directory(dir).unwrap_err().is_missing());
    write(
        dir,
        "special_tokens_map.json",
        r#"{"bos_token": "<x>", "eos_token": {"content": "<e>"}}"#,
    );
    write(
        dir,
        "tokenizer_config.json",
        r#"{"bos_token": "<b>", "chat_template": [{"name": "tool_use", "template": "tools"},
            {"name": "default", "template": "{{ bos_token }}{{ messages | length }}{{ eos_token }}"}]}"#,
    );
    let messages = json!([{"role": "user", "content": "a"}]);
    let template = ChatTemplate::from_directory(dir).unwrap();
    assert_eq!(template.render(&Chat::new(&messages)).unwrap(), "<b>1<e>");
    let tools = json!([{"name": "f"}]);
    let chat = Chat { tools: Some(&tools), ..Chat::new(&messages) };
    assert_eq!(template.render(&chat).unwrap(), "tools");
    write(dir, "chat_template.jinja", "the file's own: {{ bos_token }}\n");
    let template = ChatTemplate::from_directory(dir).unwrap();
    assert_eq!(template.render(&chat).unwrap(), "the file's own: <b>");
    write(dir, "chat_template.jinja", "{% if");
    let error = ChatTemplate::from_directory(dir).unwrap_err();
    assert!(error.to_string().contains("chat_template.jinja"), "{error}");
}

#[test]
fn lists_without_a_default_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"chat_template": [{"name": "rag", "template": "a"}]}"#;
    write(dir.path(), "tokenizer_config.json", text);
    let error = ChatTemplate::from_directory(dir.path()).unwrap_err().to_string();
    assert!(error.contains("only rag"), "{error}");
}

#[test]
fn texts_keep_every_character() {
    let template = TextTemplate::from_source(
        "Seen: {{ history | join(', ') }}{% for item in history %}\n- {{ item.title }} ({{ item }}){% endfor %}\n\n### Age {{ user.age }}\n",
    )
    .unwrap();
    assert!(template.variables().iter().eq(["history", "user.age"]));
    let item = |text: &str, title: &str| Printed {
        text: text.into(),
        fields: [("title".to_owned(), json!(title))].into_iter().collect(),
    };
    let mut variables = Variables::default();
    variables.set_printed("history", vec![item("<a_1>", "Tent"), item("<a_2>", "Mat")]);
    variables.set("user", json!({"age": 30}));
    let text = template.render(&variables).unwrap();
    assert_eq!(text, "Seen: <a_1>, <a_2>\n- Tent (<a_1>)\n- Mat (<a_2>)\n\n### Age 30\n");
    variables.set("user", json!({}));
    assert!(template.render(&variables).is_err());
}

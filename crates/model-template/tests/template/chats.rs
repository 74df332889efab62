//! Chats whose texts transformers wrote: `lab/checks/models/prompts.py --fixtures` makes the file.

use palmette_model_template::{Chat, ChatTemplate};
use serde_json::Value;

const CHATS: &str = include_str!("fixtures/chats.json");

#[test]
fn chats_are_those_of_transformers() {
    let cases: Vec<Value> = serde_json::from_str(CHATS).unwrap();
    assert!(cases.len() > 10);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let template = ChatTemplate::from_source(case["template"].as_str().unwrap()).unwrap();
        let tokens = [("bos_token", "<s>"), ("eos_token", "</s>")];
        let tokens = tokens.map(|(name, token)| (name.to_owned(), token.to_owned()));
        let template = template.with_special_tokens(tokens);
        let options = &case["options"];
        let chat = Chat {
            tools: options.get("tools"),
            add_generation_prompt: options["add_generation_prompt"] == true,
            extra: options["extra"].as_object(),
            now: Some(1_764_000_000),
            ..Chat::new(&case["messages"])
        };
        let text = template.render(&chat);
        match (case["text"].as_str(), case["raised"].as_str()) {
            (Some(expected), _) => assert_eq!(text.unwrap(), expected, "{name}"),
            (None, raised) => assert_eq!(text.unwrap_err().raised(), raised, "{name}"),
        }
    }
}

#[test]
fn a_template_that_runs_on_is_stopped() {
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    let template = ChatTemplate::from_source(source).unwrap();
    let error = template.render(&Chat::new(&Value::Null)).unwrap_err();
    assert!(error.to_string().contains("fuel"), "{error}");
}

#[test]
fn templates_say_where_they_are_wrong() {
    let error = ChatTemplate::from_source("a\n{% for m in %}").unwrap_err().to_string();
    assert!(error.contains("no Jinja") && error.contains("default:2"), "{error}");
    let template = ChatTemplate::from_source("{{ strftime_now('%Y') }}").unwrap();
    let error = template.render(&Chat::new(&Value::Null)).unwrap_err().to_string();
    assert!(error.contains("no time was given"), "{error}");
}

//! A conversation as requests have it, made ready for a chat template.

mod messages;
mod template_probe;
mod tools;

use palmette_grammar::frontends::structural_tag::ToolFormat;
use palmette_model_template::{Chat, ChatTemplate, TemplateError};
use serde_json::{Map, Value};

use messages::MessageReader;
use tools::tool_for_template;

pub(crate) use template_probe::shows_tools;

/// Messages and tools, as OpenAI's interface has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// Objects with `role` and `content`.
    pub messages: Vec<Value>,
    /// The tools that the model may call, as OpenAI's, Anthropic's or MCP's interface defines them.
    pub tools: Vec<Value>,
    /// Further variables of the template, such as `enable_thinking`.
    pub extra: Map<String, Value>,
    /// The format in which the model writes calls. A template that shows no tools, or no calls of
    /// earlier turns, needs it: these are put into the prompt's words then.
    pub calls: Option<ToolFormat>,
    /// The end of the prompt.
    pub end: PromptEnd,
}

/// The place of a conversation up to which the prompt goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptEnd {
    /// The beginning of the assistant's answer.
    #[default]
    Answer,
    /// The end of the messages, with nothing of an answer.
    Messages,
    /// Within the last message, whose text the model continues.
    LastText,
}

/// A conversation that no prompt can be made of.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConversationError(#[from] Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("there are no messages; a conversation has at least one")]
    NoMessages,
    #[error("message {place}: {rule}")]
    Message { place: usize, at: String, rule: String },
    #[error("the last message has no text to go on with")]
    NothingToGoOn,
    #[error("tool {place}: {rule}")]
    Tool { place: usize, rule: &'static str },
    #[error(
        "the model's chat template shows no tools, and there is no format in which to put them into the prompt; give one (--tool-format)"
    )]
    UnseenTools,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{0}")]
    NoTemplate(String),
}

impl ConversationError {
    /// The model's template is missing or none.
    pub(crate) fn no_template(error: &TemplateError) -> Self {
        Kind::NoTemplate(error.to_string()).into()
    }

    /// True where the conversation is sound, and the model's folder has no template for it.
    pub fn is_of_model(&self) -> bool {
        matches!(self.0, Kind::NoTemplate(_))
    }

    /// The part of a request with these messages and tools, as a JSON pointer.
    pub fn pointer(&self) -> String {
        match &self.0 {
            Kind::Message { place, at, .. } => format!("/messages/{place}{at}"),
            Kind::Tool { place, .. } => format!("/tools/{place}"),
            Kind::UnseenTools => "/tools".to_owned(),
            Kind::NoTemplate(_) => "/model".to_owned(),
            Kind::NoMessages | Kind::NothingToGoOn | Kind::Template(_) => "/messages".to_owned(),
        }
    }

    /// The template's error, where it is one.
    pub fn template(&self) -> Option<&TemplateError> {
        match &self.0 {
            Kind::Template(error) => Some(error),
            _ => None,
        }
    }
}

impl Conversation {
    /// Messages alone.
    pub fn new(messages: Vec<Value>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// The prompt: the conversation up to its [`end`](Self::end). `now` is the time in seconds
    /// since 1970, for templates that print the date.
    ///
    /// Templates are written for what transformers hands them, which is not what interfaces take:
    /// parts of text become one text, arguments of calls become objects, and tools of any interface
    /// those of OpenAI's. A template passes over what it was not written for; here that is an
    /// error, or told in words.
    ///
    /// # Errors
    /// When there is no message, one has a part that is no text, or a role or member that the
    /// template does not know, the template refuses the conversation, or there is no text to go on
    /// with.
    pub fn prompt(
        &self,
        template: &ChatTemplate,
        now: Option<i64>,
    ) -> Result<String, ConversationError> {
        if self.messages.is_empty() {
            return Err(Kind::NoMessages.into());
        }
        let mut reader = MessageReader::new(template, self.calls.as_ref());
        let messages = self.messages.iter().enumerate().map(|(place, message)| {
            let refused = |(at, rule)| Kind::Message { place, at, rule };
            reader.read(message).map_err(refused)
        });
        let mut messages = messages.collect::<Result<Vec<_>, _>>()?;
        let tools = self.tools.iter().enumerate().map(|(place, tool)| {
            tool_for_template(tool).map_err(|rule| Kind::Tool { place, rule })
        });
        let tools: Vec<Value> = tools.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let are_shown = tools.is_empty() || shows_tools(template);
        if !are_shown {
            let format = self.calls.as_ref().ok_or(Kind::UnseenTools)?;
            tools::add_to_messages(&mut messages, &tools, format, template);
        }
        let (messages, tools) = (Value::Array(messages), Value::Array(tools));
        let chat = Chat {
            tools: (are_shown && !self.tools.is_empty()).then_some(&tools),
            add_generation_prompt: self.end == PromptEnd::Answer,
            extra: Some(&self.extra),
            now,
            ..Chat::new(&messages)
        };
        let mut text = template.render(&chat).map_err(Kind::Template)?;
        if self.end == PromptEnd::LastText {
            let last = messages.as_array().and_then(|all| all.last()?["content"].as_str());
            let last = last.map(str::trim).filter(|last| !last.is_empty());
            let end = last.and_then(|last| Some(text.rfind(last)? + last.len()));
            text.truncate(end.ok_or(Kind::NothingToGoOn)?);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = "{% for t in tools %}[{{ t.function.name }} {{ t.function.parameters | tojson }}]{% endfor %}\
        {% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}<{{ c.function.arguments.city }}>{% endfor %};{% endfor %}\
        {% if add_generation_prompt %}assistant:{{ mood }}{% endif %}";

    fn prompt(conversation: &Conversation) -> Result<String, String> {
        let template = ChatTemplate::from_source(TEMPLATE).unwrap();
        conversation.prompt(&template, None).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_become_what_templates_take() {
        let call = json!({"function": {"name": "f", "arguments": "{\"city\": \"Köln\"}"}});
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let conversation = Conversation {
            messages: vec![
                json!({"role": "user", "content": parts}),
                json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            ],
            tools: vec![
                json!({"name": "f", "input_schema": {"type": "object"}}),
                json!({"type": "function", "function": {"name": "g", "parameters": {}}}),
            ],
            extra: Map::from_iter([("mood".to_owned(), json!("!"))]),
            ..Conversation::default()
        };
        let expected = "[f {\"type\": \"object\"}][g {}]user: a\nb;assistant: <Köln>;assistant:!";
        assert_eq!(prompt(&conversation).unwrap(), expected);
        let messages = Conversation { end: PromptEnd::Messages, ..conversation.clone() };
        assert_eq!(prompt(&messages).unwrap(), expected.trim_end_matches("assistant:!"));
    }

    #[test]
    fn content_may_be_absent_and_arguments_no_object() {
        let template = ChatTemplate::from_source(TEMPLATE).unwrap();
        let empty = json!({"role": "user", "content": ""});
        for (given, want) in [
            (json!({"role": "user"}), empty.clone()),
            (json!({"role": "user", "content": null, "refusal": null, "tool_calls": []}), empty),
            (
                json!({"role": "user", "content": "", "tool_calls": [{"function": {"arguments": "no json"}}, 7]}),
                json!({"role": "user", "content": "", "tool_calls": [{"function": {"arguments": "no json"}}, 7]}),
            ),
        ] {
            assert_eq!(MessageReader::new(&template, None).read(&given).unwrap(), want);
        }
    }

    #[test]
    fn a_prompt_may_end_within_the_last_text() {
        let says = |text: &str| json!({"role": "user", "content": text});
        let goes_on = |text: &str| Conversation {
            end: PromptEnd::LastText,
            ..Conversation::new(vec![says("once"), says(text)])
        };
        assert_eq!(prompt(&goes_on("Once upon ")).unwrap(), "user: once;user: Once upon");
        assert!(prompt(&goes_on(" ")).unwrap_err().contains("no text to go on with"));
    }

    #[test]
    fn what_is_no_conversation_is_named() {
        let user = json!({"role": "user", "content": "a"});
        let image = json!({"role": "user", "content": [{"type": "image_url"}]});
        let template = ChatTemplate::from_source(TEMPLATE).unwrap();
        let check = |conversation: Conversation, words: &str, pointer: &str| {
            let error = conversation.prompt(&template, None).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.pointer(), pointer);
        };
        for (messages, words, pointer) in [
            (vec![], "no messages", "/messages"),
            (vec![user.clone(), json!("x")], "message 1: it is an object", "/messages/1"),
            (vec![json!({"content": "a"})], "\"role\" is missing", "/messages/0/role"),
            (vec![image], "part of type \"image_url\"", "/messages/0/content"),
            (vec![json!({"role": "user", "content": 7})], "neither a text", "/messages/0/content"),
            (
                vec![json!({"role": "robot", "content": "a"})],
                "\"robot\" is no role",
                "/messages/0/role",
            ),
            (
                vec![json!({"role": "user", "content": "a", "na/me": "b"})],
                "which the model's template does not read",
                "/messages/0/na~1me",
            ),
        ] {
            check(Conversation::new(messages), words, pointer);
        }
        let tools = Conversation { tools: vec![json!({})], ..Conversation::new(vec![user]) };
        check(tools, "tool 0: a tool has a \"name\"", "/tools/0");
    }
    const PLAIN: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";

    #[track_caller]
    fn check_plain(template: &str, conversation: &Conversation, want: Result<&str, &str>) {
        let template = ChatTemplate::from_source(template).unwrap();
        let got = conversation.prompt(&template, None).map_err(|error| error.to_string());
        match (got, want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got}"),
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    }

    #[test]
    fn roles_are_those_that_the_template_shows() {
        let says = |role: &str| {
            let messages = ["user", role].map(|role| json!({"role": role, "content": "a"}));
            Conversation::new(messages.to_vec())
        };
        check_plain(PLAIN, &says("developer"), Ok("<user>a<system>a"));
        check_plain(PLAIN, &says("function"), Ok("<user>a<function>a"));
        let own = "{% for m in messages %}{% if m.role == 'robot' %}R{% endif %}{{ m.content }}{% endfor %}";
        check_plain(own, &says("robot"), Ok("aRa"));
        let users = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
        check_plain(users, &says("system"), Err("shows no messages of role \"system\""));
        check_plain(users, &says("tool"), Ok("aa"));
    }

    #[test]
    fn tools_that_the_template_does_not_show_are_put_into_words() {
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}});
        let conversation = Conversation {
            messages: vec![
                json!({"role": "user", "content": "a"}),
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "content": "7", "tool_call_id": "c", "name": "f"}),
            ],
            tools: vec![json!({"name": "f"})],
            calls: ToolFormat::named("hermes").copied(),
            ..Conversation::default()
        };
        let template = ChatTemplate::from_source(PLAIN).unwrap();
        let prompt = conversation.prompt(&template, None).unwrap();
        for part in [
            "<system>You can call these tools",
            "{\"type\":\"function\",\"function\":{\"name\":\"f\",",
            "\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": ARGUMENTS}\n</tool_call><user>a",
            "<assistant><tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call><tool>7",
        ] {
            assert!(prompt.contains(part), "{part} is not in {prompt}");
        }
        check_plain(PLAIN, &Conversation { calls: None, ..conversation.clone() }, Err("calls"));
        let unseen = Conversation {
            calls: None,
            messages: vec![json!({"role": "user"})],
            ..conversation.clone()
        };
        check_plain(PLAIN, &unseen, Err("shows no tools"));
        // After words of the system, and before the user's where there is no system.
        let system = json!({"role": "system", "content": "Be kind."});
        let with = Conversation {
            messages: vec![system, json!({"role": "user", "content": "a"})],
            ..conversation
        };
        let prompt = with.prompt(&template, None).unwrap();
        assert!(prompt.starts_with("<system>Be kind.\n\nYou can call"), "{prompt}");
        let none = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}";
        let template = ChatTemplate::from_source(none).unwrap();
        let with = Conversation { messages: vec![json!({"role": "user", "content": "a"})], ..with };
        let prompt = with.prompt(&template, None).unwrap();
        assert!(prompt.starts_with("<user>You can call") && prompt.ends_with("\n\na"), "{prompt}");
    }
}

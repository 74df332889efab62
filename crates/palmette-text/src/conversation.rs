//! A conversation as requests have it, made ready for a chat template.

use palmette_template::{Chat, ChatTemplate, TemplateError};
use serde_json::{Map, Value, json};

/// Messages and tools, as OpenAI's interface has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// Objects with `role` and `content`.
    pub messages: Vec<Value>,
    /// The tools that the model may call, as OpenAI's, Anthropic's or MCP's interface defines them.
    pub tools: Vec<Value>,
    /// Further variables of the template, such as `enable_thinking`.
    pub extra: Map<String, Value>,
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
    /// Within the last message, whose text the model goes on with.
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
    Message { place: usize, at: &'static str, rule: String },
    #[error("the last message has no text to go on with")]
    NothingToGoOn,
    #[error("tool {place}: {rule}")]
    Tool { place: usize, rule: &'static str },
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

    /// The prompt: the conversation up to its [`end`](Self::end). `now` is the time in seconds since 1970, for templates that
    /// print the date.
    ///
    /// Templates are written for what transformers hands them, which is not what interfaces take: parts of text become one text, arguments of
    /// calls become objects, and tools of any interface those of OpenAI's.
    ///
    /// # Errors
    /// When there is no message, one has a part that is no text, the template refuses the conversation, or there is no text to go on with.
    pub fn prompt(
        &self,
        template: &ChatTemplate,
        now: Option<i64>,
    ) -> Result<String, ConversationError> {
        if self.messages.is_empty() {
            return Err(Kind::NoMessages.into());
        }
        let messages = self.messages.iter().enumerate().map(|(place, message)| {
            let refused = |(at, rule)| Kind::Message { place, at, rule };
            message_for_template(message).map_err(refused)
        });
        let messages = Value::Array(messages.collect::<Result<_, _>>()?);
        let tools = self.tools.iter().enumerate().map(|(place, tool)| {
            tool_for_template(tool).map_err(|rule| Kind::Tool { place, rule })
        });
        let tools = Value::Array(tools.collect::<Result<_, _>>()?);
        let chat = Chat {
            tools: (!self.tools.is_empty()).then_some(&tools),
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

/// A rule that a message breaks, and the member that does.
type Broken = (&'static str, String);

/// Content that is absent becomes the empty text: templates ask what is in it.
fn message_for_template(message: &Value) -> Result<Value, Broken> {
    let Some(object) = message.as_object() else {
        return Err(("", format!("it is an object with \"role\" and \"content\", not {message}")));
    };
    if !object.get("role").is_some_and(Value::is_string) {
        return Err(("/role", "its \"role\" is missing, or no text".to_owned()));
    }
    let mut message = object.clone();
    let text_of = |part: &Value| match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text.to_owned()),
        (kind, _) => {
            let kind = kind.unwrap_or("none");
            Err(format!("its content has a part of type {kind:?}; text is read alone"))
        }
    };
    let content = match message.get("content") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().map(text_of).collect::<Result<Vec<_>, _>>();
            texts.map(|texts| texts.join("\n"))
        }
        Some(_) => Err("its content is neither a text nor a list of parts".to_owned()),
    };
    let content = content.map_err(|rule| ("/content", rule))?;
    message.insert("content".to_owned(), Value::String(content));
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            let arguments = call.pointer_mut("/function/arguments");
            if let Some(arguments) = arguments
                && let Some(read @ Value::Object(_)) =
                    arguments.as_str().and_then(|text| serde_json::from_str(text).ok())
            {
                *arguments = read;
            }
        }
    }
    Ok(Value::Object(message))
}

fn tool_for_template(tool: &Value) -> Result<Value, &'static str> {
    if tool["function"].is_object() {
        return Ok(tool.clone());
    }
    if !tool["name"].is_string() {
        return Err("a tool has a \"name\" and a schema of its arguments");
    }
    let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| tool.get(key));
    let mut function = Map::new();
    for key in ["name", "description"] {
        function.extend(tool.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let none = json!({"type": "object", "properties": {}});
    function.insert("parameters".to_owned(), schema.unwrap_or(&none).clone());
    Ok(json!({"type": "function", "function": function}))
}

#[cfg(test)]
mod tests {
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
            end: PromptEnd::Answer,
        };
        let expected = "[f {\"type\": \"object\"}][g {}]user: a\nb;assistant: <Köln>;assistant:!";
        assert_eq!(prompt(&conversation).unwrap(), expected);
        let messages = Conversation { end: PromptEnd::Messages, ..conversation.clone() };
        assert_eq!(prompt(&messages).unwrap(), expected.trim_end_matches("assistant:!"));
    }

    #[test]
    fn content_may_be_absent_and_arguments_no_object() {
        for (given, want) in [
            (json!({"role": "a"}), json!({"role": "a", "content": ""})),
            (json!({"role": "a", "content": null}), json!({"role": "a", "content": ""})),
            (
                json!({"role": "a", "content": "", "tool_calls": [{"function": {"arguments": "no json"}}, 7]}),
                json!({"role": "a", "content": "", "tool_calls": [{"function": {"arguments": "no json"}}, 7]}),
            ),
        ] {
            assert_eq!(message_for_template(&given).unwrap(), want);
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
            (vec![json!({"role": "a", "content": 7})], "neither a text", "/messages/0/content"),
        ] {
            check(Conversation::new(messages), words, pointer);
        }
        let tools = Conversation { tools: vec![json!({})], ..Conversation::new(vec![user]) };
        check(tools, "tool 0: a tool has a \"name\"", "/tools/0");
    }
}

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
    Message { place: usize, rule: String },
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

    /// The prompt: the conversation, and the beginning of the assistant's answer. `now` is the time in seconds since 1970, for templates that
    /// print the date.
    ///
    /// Templates are written for what transformers hands them, which is not what interfaces take: parts of text become one text, arguments of
    /// calls become objects, and tools of any interface those of OpenAI's.
    ///
    /// # Errors
    /// When there is no message, one has a part that is no text, or the template refuses the conversation.
    pub fn prompt(
        &self,
        template: &ChatTemplate,
        now: Option<i64>,
    ) -> Result<String, ConversationError> {
        if self.messages.is_empty() {
            return Err(Kind::NoMessages.into());
        }
        let messages = self.messages.iter().enumerate().map(|(place, message)| {
            message_for_template(message).map_err(|rule| Kind::Message { place, rule })
        });
        let messages = Value::Array(messages.collect::<Result<_, _>>()?);
        let tools = self.tools.iter().enumerate().map(|(place, tool)| {
            tool_for_template(tool).map_err(|rule| Kind::Tool { place, rule })
        });
        let tools = Value::Array(tools.collect::<Result<_, _>>()?);
        let chat = Chat {
            tools: (!self.tools.is_empty()).then_some(&tools),
            add_generation_prompt: true,
            extra: Some(&self.extra),
            now,
            ..Chat::new(&messages)
        };
        template.render(&chat).map_err(|error| Kind::Template(error).into())
    }
}

fn message_for_template(message: &Value) -> Result<Value, String> {
    let Some(object) = message.as_object() else {
        return Err(format!("it is an object with \"role\" and \"content\", not {message}"));
    };
    if !object.get("role").is_some_and(Value::is_string) {
        return Err("its \"role\" is missing, or no text".to_owned());
    }
    let mut message = object.clone();
    if let Some(Value::Array(parts)) = message.get("content") {
        let text = |part: &Value| match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => Ok(text.to_owned()),
            (kind, _) => Err(format!(
                "its content has a part of type {:?}; text is read alone",
                kind.unwrap_or("none")
            )),
        };
        let texts = parts.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        message.insert("content".to_owned(), Value::String(texts.join("\n")));
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            let arguments = call.pointer_mut("/function/arguments");
            if let Some(arguments) = arguments
                && let Some(read) =
                    arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
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
        };
        let expected = "[f {\"type\": \"object\"}][g {}]user: a\nb;assistant: <Köln>;assistant:!";
        assert_eq!(prompt(&conversation).unwrap(), expected);
    }

    #[test]
    fn what_is_no_conversation_is_named() {
        let of = |messages: Vec<Value>| prompt(&Conversation::new(messages)).unwrap_err();
        assert!(of(vec![]).contains("no messages"));
        let user = json!({"role": "user", "content": "a"});
        assert!(of(vec![user.clone(), json!("x")]).starts_with("message 1: it is an object"));
        assert!(of(vec![json!({"content": "a"})]).contains("\"role\" is missing"));
        let image = json!({"role": "user", "content": [{"type": "image_url"}]});
        assert!(of(vec![image]).contains("part of type \"image_url\""));
        let tools = Conversation { tools: vec![json!({})], ..Conversation::new(vec![user]) };
        assert!(prompt(&tools).unwrap_err().starts_with("tool 0: a tool has a \"name\""));
    }
}

//! Envelope of a question: the model that is asked, by when and how it answers; and members that
//! other servers have.

use palmette_document::{DocumentError, Fault, Faults, Members, member_names};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{TextMembers, TextQuestion};

/// Members that one kind of question has, and others have not.
pub trait OwnMembers: DeserializeOwned {
    /// Name of the body in an OpenAPI document.
    const BODY: &'static str;
    /// The body in a sentence.
    const ABOUT: &'static str;
}

/// Members of a body that are no part of the question: they change who answers and when, not the
/// answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TextEnvelope {
    /// Name of a text model; may be left out where there is one.
    #[cfg_attr(feature = "schema", schema(example = "smol"))]
    pub model: Option<String>,
    /// Answer in parts as they are made, as server-sent events.
    pub stream: Option<bool>,
    /// Options of a stream.
    pub stream_options: Option<StreamOptions>,
    /// Milliseconds from receipt in which the answer is of use; what is not there by then is not
    /// made.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub deadline_ms: Option<u64>,
    /// Names of members that were taken and not looked at.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub without_meaning: Vec<String>,
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StreamOptions {
    /// Not looked at: parts are not padded here.
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub include_obfuscation: bool,
    /// A last part with the number of tokens.
    pub include_usage: bool,
    /// The number of tokens so far in every part.
    pub continuous_usage_stats: bool,
}

/// Body of a request: a question in its envelope, their members side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct TextBody<Own> {
    /// Model that is asked, and the deadline.
    pub envelope: TextEnvelope,
    /// The question.
    pub question: TextQuestion<Own>,
}

/// Names of members that change nothing in an answer: accounts, storage, routing, caches and
/// guesses that speed other servers up, and which engine compiles a grammar. They are taken and not
/// looked at.
const WITHOUT_MEANING: &[&str] = &[
    "cache_prompt",
    "guided_decoding_backend",
    "metadata",
    "prediction",
    "priority",
    "prompt_cache_key",
    "prompt_cache_retention",
    "request_id",
    "safety_identifier",
    "service_tier",
    "spaces_between_special_tokens",
    "store",
    "user",
];

/// Members that are not computed here, each with the one value that asks for nothing.
const NEUTRAL: &[(&str, &str)] = &[
    ("add_special_tokens", "false"),
    ("allowed_token_ids", "[]"),
    ("audio", "{}"),
    ("bad_words", "[]"),
    ("detokenize", "true"),
    ("documents", "[]"),
    ("echo", "false"),
    ("function_call", r#""none""#),
    ("functions", "[]"),
    ("include_reasoning", "true"),
    ("include_stop_str_in_output", "false"),
    ("logits_processors", "[]"),
    ("modalities", r#"["text"]"#),
    ("return_token_ids", "false"),
    ("return_tokens_as_token_ids", "false"),
    ("skip_special_tokens", "true"),
    ("suffix", r#""""#),
    ("thinking", r#"{"type":"disabled"}"#),
    ("truncation", r#""disabled""#),
    ("verbosity", r#""medium""#),
];

/// Names that other interfaces have, and the members to use instead.
const INSTEAD: &[(&str, &str)] = &[
    ("function_call", "tool_choice"),
    ("functions", "tools"),
    ("grammar", "structured_outputs.grammar"),
    ("regex", "structured_outputs.regex"),
    ("schema", "structured_outputs.json"),
    ("syntax", "structured_outputs.grammar, which tells Lark and GBNF apart"),
];

/// Characters of a value that a message has, at most.
const MOST_SHOWN: usize = 100;

impl<Own: OwnMembers> TextBody<Own> {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is no JSON, a member is unknown or stands twice, or its value is not one that it
    /// takes.
    pub fn from_json(text: &[u8]) -> Result<Self, Faults> {
        match palmette_document::read(text) {
            Ok(members) => Self::from_members(members),
            Err(DocumentError::Fault(fault)) => Err(fault.into()),
            Err(error @ DocumentError::NoJson(_)) => Err(Fault::new("", error.to_string()).into()),
        }
    }

    /// Parts the members of a body by their names.
    ///
    /// # Errors
    /// When a member is unknown, or its value is not one that it takes.
    pub fn from_members(mut members: Members) -> Result<Self, Faults> {
        let own = member_names::<Own>();
        let names = [own, member_names::<TextMembers>(), member_names::<TextEnvelope>()];
        let is_known = |name: &str| names.iter().any(|list| list.contains(&name));
        let mut faults = Faults::default();
        let mut without_meaning = Vec::new();
        for name in WITHOUT_MEANING.iter().filter(|name| !is_known(name)) {
            without_meaning.extend(members.remove(name).map(|_| (*name).to_owned()));
        }
        for (name, neutral) in NEUTRAL.iter().filter(|(name, _)| !is_known(name)) {
            let given = members.remove(name);
            if let Some(given) = given.filter(|given| !means(given.get(), neutral)) {
                faults.push(not_computed(name, &given, neutral));
            }
        }
        for (name, instead) in INSTEAD.iter().filter(|(name, _)| !is_known(name)) {
            if members.remove(name).is_some() {
                let detail = format!("there is no member {name:?} here; use {instead}");
                faults.push(Fault::new(format!("/{name}"), detail));
            }
        }
        if let Err(unknown) = members.check_known(&names) {
            faults.push(unknown);
        }
        let own = faults.take(members.take());
        let text = faults.take(members.take());
        let envelope = faults.take(members.take::<TextEnvelope>());
        match (own, text, envelope) {
            (Some(own), Some(text), Some(envelope)) => {
                let envelope = TextEnvelope { without_meaning, ..envelope };
                faults.or(Self { envelope, question: TextQuestion { own, text } })
            }
            _ => Err(faults),
        }
    }
}

fn not_computed(name: &str, given: &RawValue, neutral: &str) -> Fault {
    let instead = INSTEAD.iter().find(|(old, _)| *old == name);
    let way_out = instead.map_or("leave it out".to_owned(), |(_, new)| format!("use {new}"));
    let shown: String = given.get().chars().take(MOST_SHOWN).collect();
    let detail = format!(
        "{name} is {shown}; only {neutral} is computed here, and another value would give other answers: {way_out}"
    );
    Fault::new(format!("/{name}"), detail)
}

/// True for two texts of one value; 1 is 1.0.
fn means(text: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    match (read(text), read(other)) {
        (Some(one), Some(other)) => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{ChatMembers, CompletionMembers};
    use super::*;

    fn read(body: &Value) -> Result<TextBody<ChatMembers>, Faults> {
        TextBody::from_json(body.to_string().as_bytes())
    }

    #[test]
    fn members_are_told_apart() {
        let body = json!({
            "messages": [{"role": "user", "content": "x"}], "model": "m", "temperature": 0.5, "user": "u", "metadata": {},
            "best_of": 1, "stop": null, "logprobs": true, "length_penalty": 1, "stream_options": {"include_usage": true},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"properties": {"z": {}, "a": {}}}}},
        });
        let TextBody { envelope, question: TextQuestion { own, text } } = read(&body).unwrap();
        assert_eq!((own.messages.len(), own.logprobs), (1, Some(true)));
        assert_eq!((envelope.model.as_deref(), text.temperature), (Some("m"), Some(0.5)));
        assert!(envelope.stream_options.unwrap().include_usage);
        assert_eq!(envelope.without_meaning, ["metadata", "user"]);
        // The order of members is a schema's.
        let format = text.response_format.unwrap().to_string();
        assert!(format.contains(r#"{"z":{},"a":{}}"#), "{format}");
        // A name may be a chat's member, and of a completion one that is not computed.
        let thinking = json!({"prompt": "x", "thinking": {"type": "disabled"}}).to_string();
        let completion = TextBody::<CompletionMembers>::from_json(thinking.as_bytes()).unwrap();
        assert_eq!(completion.question.own, CompletionMembers::new("x"));
    }

    #[test]
    fn members_that_are_none_are_refused_all_at_once() {
        for (wrong, faults) in [
            (json!({"messages": [], "max_token": 5}), &[("/max_token", "did you mean")][..]),
            (json!({"messages": [], "suffix": "x"}), &[("/suffix", "is computed")]),
            (json!({"messages": [], "schema": {}}), &[("/schema", "use structured_outputs.json")]),
            (json!({"messages": [], "temperature": "hot"}), &[("/temperature", "a number")]),
            (
                json!({"messages": [], "stream_options": {"x": 1}}),
                &[("/stream_options/x", "no member \"x\"")],
            ),
            (json!({"messages": 7}), &[("/messages", "must be a list")]),
            (json!({}), &[("", "\"messages\" is missing")]),
            (
                json!({"functions": [{}], "syntax": "x", "zz": 1, "n": "many", "stream": 3}),
                &[
                    ("/functions", "use tools"),
                    ("/syntax", "Lark and GBNF"),
                    ("/zz", "no member"),
                    ("", "\"messages\" is missing"),
                    ("/n", "whole number"),
                    ("/stream", "true or false"),
                ],
            ),
        ] {
            let got = read(&wrong).unwrap_err();
            assert_eq!(got.iter().count(), faults.len(), "{wrong}: {got}");
            for (got, (pointer, words)) in got.iter().zip(faults) {
                assert_eq!(got.pointer, *pointer, "{wrong}: {}", got.detail);
                assert!(got.detail.contains(words), "{wrong}: {}", got.detail);
            }
        }
        let twice = br#"{"messages": [], "n": 1, "n": 2}"#;
        let twice = TextBody::<ChatMembers>::from_json(twice).unwrap_err();
        assert!(twice.to_string().contains("stands twice"), "{twice}");
        assert!(TextBody::<ChatMembers>::from_json(b"{").is_err());
    }
}

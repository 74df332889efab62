//! Bodies of text requests: the members of the route and those that both routes have, told apart by name.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::HeaderMap;
use palmette_document::Text;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::value::RawValue;
use utoipa::PartialSchema;

use crate::api::body;
use crate::problem::Problem;
use crate::server::App;
use crate::wire::{self, INSTEAD, NEUTRAL, TextMembers, WITHOUT_MEANING};

/// Members of a body by name, as they are written.
type Members = BTreeMap<String, Box<RawValue>>;

/// Reads a body: members of the route's own, and those of every text request.
pub(super) async fn read<Own: DeserializeOwned + PartialSchema>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Own, TextMembers), Problem> {
    split(body::object(app, headers, body).await?)
}

fn split<Own: DeserializeOwned + PartialSchema>(
    mut members: Members,
) -> Result<(Own, TextMembers), Problem> {
    let names = wire::members::<Own>();
    let has_meaning = |name: &str| names.contains(name) || !WITHOUT_MEANING.contains(&name);
    // What is null is not given: clients write out what they leave to the server.
    members.retain(|name, value| value.get() != "null" && has_meaning(name));
    for (name, neutral) in NEUTRAL.iter().filter(|(name, _)| !names.contains(*name)) {
        let Some(value) = members.get(*name) else { continue };
        if !means(value.get(), neutral) {
            let instead = INSTEAD.iter().find(|(old, _)| old == name);
            let way_out =
                instead.map_or("leave it out".to_owned(), |(_, new)| format!("use {new}"));
            let detail = format!(
                "{name} is {}; only {neutral} is computed here, and another value would give other answers: {way_out}",
                shown(value)
            );
            return Err(Problem::invalid(format!("/{name}"), detail));
        }
        members.remove(*name);
    }
    let (own, both): (Members, Members) =
        members.into_iter().partition(|(name, _)| names.contains(name));
    let names = wire::members::<TextMembers>();
    if let Some(unknown) = both.keys().find(|name| !names.contains(*name)) {
        let detail = format!(
            "{unknown:?} is no member that is known here, and what it means for the answer is not either; leave it out (/openapi.json has those there are)"
        );
        return Err(Problem::invalid(format!("/{}", escaped(unknown)), detail));
    }
    Ok((typed(&own)?, typed(&both)?))
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

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn shown(value: &RawValue) -> String {
    value.get().chars().take(100).collect()
}

fn typed<T: DeserializeOwned>(members: &Members) -> Result<T, Problem> {
    let entries = members.iter().map(|(name, value)| (name.as_str(), Text(value.get())));
    palmette_document::read_from(MapDeserializer::new(entries)).map_err(Problem::from)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::ChatMembers;

    fn read(body: &Value) -> Result<(ChatMembers, TextMembers), Problem> {
        split(serde_json::from_str(&body.to_string()).unwrap())
    }

    #[test]
    fn members_are_told_apart_and_unknown_ones_refused() {
        let body = json!({
            "messages": [{"role": "user", "content": "x"}], "model": "m", "temperature": 0.5, "user": "u", "metadata": {},
            "best_of": 1, "stop": null, "logprobs": true, "length_penalty": 1, "stream_options": {"include_usage": true},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"properties": {"z": {}, "a": {}}}}},
        });
        let (own, both) = read(&body).unwrap();
        assert_eq!((own.messages.len(), own.logprobs), (1, Some(true)));
        assert_eq!((both.model.as_deref(), both.temperature), (Some("m"), Some(0.5)));
        // The order of members is a schema's.
        let format = both.response_format.unwrap().to_string();
        assert!(format.contains(r#"{"z":{},"a":{}}"#), "{format}");
        for (wrong, pointer, words) in [
            (json!({"messages": [], "max_token": 5}), "/max_token", "no member that is known"),
            (json!({"messages": [], "best_of": 2}), "/best_of", "only 1 is computed"),
            (json!({"messages": [], "temperature": "hot"}), "/temperature", "must be a number"),
            (
                json!({"messages": [], "stream_options": {"x": 1}}),
                "/stream_options/x",
                "no member \"x\"",
            ),
            (json!({"messages": 7}), "/messages", "must be a list"),
            (json!({}), "", "\"messages\" is missing"),
        ] {
            let problem = read(&wrong).unwrap_err();
            assert_eq!(problem.errors[0].pointer, pointer, "{}", problem.detail);
            assert!(problem.detail.contains(words), "{}", problem.detail);
        }
    }
}

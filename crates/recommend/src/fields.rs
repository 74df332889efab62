//! Prompt fields of a request beside the history: a query, and fields of the user.

use serde_json::{Map, Value};

/// Values for the placeholders `{{ query }}` and `{{ user.… }}` of a
/// [template](crate::PromptTemplate).
///
/// They are text of a prompt and nothing else: one that holds the name of a special token is
/// refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptFields {
    /// Query of the user.
    pub query: Option<String>,
    /// Fields of the user, by name.
    pub user: Map<String, Value>,
}

impl PromptFields {
    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.query.is_none() && self.user.is_empty()
    }

    /// Names of the fields that there are: `query`, `user.age`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let query = self.query.as_ref().map(|_| "query".to_owned());
        query.into_iter().chain(self.user.keys().map(|name| format!("user.{name}")))
    }

    /// Keeps the fields whose names are good.
    pub(crate) fn retain(&mut self, mut is_good: impl FnMut(&str) -> bool) {
        self.query = self.query.take().filter(|_| is_good("query"));
        self.user.retain(|name, _| is_good(&format!("user.{name}")));
    }

    /// These fields, and of `others` those that there are not.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        self.query = self.query.or_else(|| others.query.clone());
        for (name, value) in &others.user {
            self.user.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// Every text of every field, with the field's name.
    pub(crate) fn texts(&self) -> Vec<(String, &str)> {
        let mut texts = Vec::new();
        texts.extend(self.query.iter().map(|query| ("query".to_owned(), query.as_str())));
        for (name, value) in &self.user {
            add_texts(&format!("user.{name}"), value, &mut texts);
        }
        texts
    }
}

fn add_texts<'v>(name: &str, value: &'v Value, texts: &mut Vec<(String, &'v str)>) {
    match value {
        Value::String(text) => texts.push((name.to_owned(), text)),
        Value::Array(list) => list.iter().for_each(|value| add_texts(name, value, texts)),
        Value::Object(object) => {
            for (key, value) in object {
                texts.push((name.to_owned(), key));
                add_texts(name, value, texts);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_a_row_go_before_those_of_all() {
        let fields = |query: Option<&str>, user: Value| PromptFields {
            query: query.map(str::to_owned),
            user: user.as_object().cloned().unwrap_or_default(),
        };
        let of_all = fields(Some("boots"), json!({"age": 31, "city": "Oslo"}));
        let row = fields(Some("tents"), json!({"age": 7}));
        assert_eq!(row.or(&of_all), fields(Some("tents"), json!({"age": 7, "city": "Oslo"})));
        assert_eq!(PromptFields::default().or(&of_all), of_all);
    }
}

//! Ledger of a conversation's calls: ids tell those that wait apart, each has one result at most.

use std::collections::HashMap;

use palmette_document::Fault;
use serde_json::Value;

/// Calls of a conversation so far, and which of them have a result.
///
/// Interfaces that have other words for messages tell it of each call and each result as they read
/// them, for the place of what is wrong; messages of a chat are read by
/// [`check`](Self::check). Calls and results without an id are told apart by their number alone.
/// Cost: a look-up for each call and result.
#[derive(Clone, Debug, Default)]
pub struct CallLedger {
    /// True where the call of an id has a result.
    has_result: HashMap<String, bool>,
    /// Calls without an id that no result is counted for.
    unnamed: usize,
    /// Calls that no result is counted for.
    waiting: usize,
}

/// A call or a result that cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Two calls of one id, neither of which has a result.
    #[error("two calls have the id {0:?}, and neither a result; each has its own")]
    Twice(String),
    /// A result of a call that is not there.
    #[error(
        "no call before it has the id {0:?}; give the assistant's message with the call too, or where earlier messages are cut off, \
         cut this result off with them"
    )]
    NoCall(String),
    /// A result without an id, where no call waits for one.
    #[error(
        "no call before it waits for a result; give the assistant's message with the call too, or where earlier messages are cut off, \
         cut this result off with them"
    )]
    NoneWaits,
    /// An id that is no text.
    #[error("the id {0} is no text; give it as the call has it, in quotes")]
    NoText(String),
    /// A second result of a call.
    #[error("the call {0:?} has a result already; leave one of them out")]
    HasResult(String),
}

impl CallLedger {
    /// Takes down a call.
    ///
    /// # Errors
    /// When another that waits for a result has its id. Models that count the calls of a turn
    /// begin again with the next.
    pub fn call(&mut self, id: Option<&str>) -> Result<(), CallError> {
        match id {
            Some(id) if self.has_result.get(id) == Some(&false) => {
                return Err(CallError::Twice(id.to_owned()));
            }
            Some(id) => drop(self.has_result.insert(id.to_owned(), false)),
            None => self.unnamed += 1,
        }
        self.waiting += 1;
        Ok(())
    }

    /// Takes down a result.
    ///
    /// # Errors
    /// When it is of no call, or of one that has a result.
    pub fn result(&mut self, id: Option<&str>) -> Result<(), CallError> {
        match id.map(|id| (id, self.has_result.get_mut(id))) {
            Some((id, Some(has_result))) if *has_result || self.waiting == 0 => {
                return Err(CallError::HasResult(id.to_owned()));
            }
            Some((_, Some(has_result))) => *has_result = true,
            // It may be that of a call that says no id.
            Some((id, None)) if self.unnamed == 0 || self.waiting == 0 => {
                return Err(CallError::NoCall(id.to_owned()));
            }
            Some((_, None)) => self.unnamed -= 1,
            None if self.waiting == 0 => return Err(CallError::NoneWaits),
            None => {}
        }
        self.waiting -= 1;
        Ok(())
    }

    /// Reads the messages of a chat, as OpenAI spells them.
    ///
    /// # Errors
    /// Names the first call or result that cannot stand where it does.
    pub fn check(messages: &[Value]) -> Result<(), Fault> {
        let mut ledger = Self::default();
        let named = |id: &Value| match id {
            Value::Null => Ok(None),
            Value::String(id) => Ok(Some(id.clone()).filter(|id| !id.is_empty())),
            other => Err(CallError::NoText(other.to_string())),
        };
        for (place, message) in messages.iter().enumerate() {
            let fault = |at: String, error: CallError| {
                Fault::new(format!("/messages/{place}/{at}"), format!("message {place}: {error}"))
            };
            // In messages of others templates show no calls.
            let calls = Some(&message["tool_calls"]).filter(|_| message["role"] == "assistant");
            let calls = calls.and_then(Value::as_array).into_iter().flatten();
            for (number, call) in calls.enumerate() {
                named(&call["id"])
                    .and_then(|id| ledger.call(id.as_deref()))
                    .map_err(|error| fault(format!("tool_calls/{number}/id"), error))?;
            }
            if message["role"] == "tool" {
                named(&message["tool_call_id"])
                    .and_then(|id| ledger.result(id.as_deref()))
                    .map_err(|error| fault("tool_call_id".to_owned(), error))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The member at fault and words of the rule; none where the messages are sound.
    #[track_caller]
    fn check(messages: Value, expected: Option<(&str, &str)>) {
        let found = CallLedger::check(messages.as_array().unwrap());
        match (found, expected) {
            (Ok(()), None) => {}
            (Err(Fault { pointer, detail }), Some((at, words))) => {
                assert!(pointer == at && detail.contains(words), "{pointer}: {detail}");
            }
            (found, _) => panic!("{messages}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn calls_that_wait_have_ids_of_their_own_and_one_result_at_most() {
        let calls = |ids: &[&str]| {
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}}))
                .collect();
            json!({"role": "assistant", "tool_calls": calls})
        };
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "7"});
        let user = json!({"role": "user", "content": "a"});
        check(
            json!([user, calls(&["a", "b"]), result("b"), result("a"), user, calls(&["c"])]),
            None,
        );
        check(
            json!([calls(&["a", "a"])]),
            Some(("/messages/0/tool_calls/1/id", "two calls have the id \"a\"")),
        );
        check(
            json!([calls(&["a"]), user, calls(&["a"])]),
            Some(("/messages/2/tool_calls/0/id", "each has its own")),
        );
        // Models that count the calls of a turn begin again.
        check(json!([calls(&["a"]), result("a"), calls(&["a"]), result("a")]), None);
        check(
            json!([calls(&["a"]), result("a"), calls(&["a"]), result("a"), result("a")]),
            Some(("/messages/4/tool_call_id", "has a result already")),
        );
        check(
            json!([calls(&["a"]), result("b")]),
            Some(("/messages/1/tool_call_id", "no call before it has the id \"b\"")),
        );
        check(
            json!([result("a"), user]),
            Some(("/messages/0/tool_call_id", "cut this result off with them")),
        );
        check(
            json!([calls(&["a"]), result("a"), result("a")]),
            Some(("/messages/2/tool_call_id", "the call \"a\" has a result already")),
        );
        check(
            json!([calls(&["a"]), {"role": "tool", "tool_call_id": 5, "content": "7"}]),
            Some(("/messages/1/tool_call_id", "the id 5 is no text")),
        );
        let of_user = json!({"role": "user", "content": "a", "tool_calls": [{"id": "a"}]});
        check(
            json!([of_user, result("a")]),
            Some(("/messages/1/tool_call_id", "no call before it has the id \"a\"")),
        );
        // Ids may be left out, where templates have no place for them.
        let (unnamed, given) = (
            json!({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}),
            json!({"role": "tool", "content": "7"}),
        );
        check(json!([user, unnamed, given]), None);
        check(json!([user, unnamed, result("a")]), None);
        check(json!([user, calls(&["a"]), given]), None);
        check(json!([user, given]), Some(("/messages/1/tool_call_id", "no call before it waits")));
        check(
            json!([user, unnamed, given, given]),
            Some(("/messages/3/tool_call_id", "no call before it waits")),
        );
        check(
            json!([user, unnamed, result("a"), result("b")]),
            Some(("/messages/3/tool_call_id", "the id \"b\"")),
        );
    }
}

//! Members of a document's objects: `null` is as if absent, and what is not read is said by name.

use std::cell::RefCell;

use super::error::StructuralTagError;
use crate::json_schema::source::{Json, JsonId, Source};
use crate::json_schema::{REPEATED, Warning};
pub(super) use crate::misspelling::meant;

pub(super) type Result<T> = std::result::Result<T, StructuralTagError>;

/// Reads members of a document's objects.
pub(super) struct Members<'s> {
    pub(super) json: &'s Source,
    warnings: RefCell<Vec<Warning>>,
}

impl<'s> Members<'s> {
    pub(super) fn new(json: &'s Source) -> Self {
        Self { json, warnings: RefCell::default() }
    }

    /// Warnings so far.
    pub(super) fn into_warnings(self) -> Vec<Warning> {
        self.warnings.into_inner()
    }

    /// A member that is not null.
    pub(super) fn get(&self, at: JsonId, name: &str) -> Option<JsonId> {
        let found = self.json.object(at)?.get(name)?;
        (!matches!(self.json.json(found), Json::Null)).then_some(found)
    }

    /// The member of a member, and so on.
    pub(super) fn follow(&self, from: JsonId, steps: &[&str]) -> Option<JsonId> {
        steps.iter().try_fold(from, |at, step| self.get(at, step))
    }

    /// The text at the end of such a path, where it is one.
    pub(super) fn text_at(&self, from: JsonId, steps: &[&str]) -> Option<&'s str> {
        self.json.string(self.follow(from, steps)?).map(|text| &**text)
    }

    pub(super) fn needed(&self, at: JsonId, name: &str) -> Result<JsonId> {
        self.get(at, name).ok_or_else(|| self.error(at, format!("{name:?} is missing here")))
    }

    pub(super) fn text(&self, at: JsonId, name: &str) -> Result<&'s str> {
        let id = self.needed(at, name)?;
        let text = self.json.string(id).map(|text| &**text);
        text.ok_or_else(|| self.error(id, format!("{name:?} must be a text")))
    }

    pub(super) fn optional_text(&self, at: JsonId, name: &str) -> Result<Option<&'s str>> {
        self.get(at, name).map(|_| self.text(at, name)).transpose()
    }

    pub(super) fn list(&self, at: JsonId, name: &str) -> Result<Vec<JsonId>> {
        let id = self.needed(at, name)?;
        match self.json.json(id) {
            Json::Array(items) => Ok(items.clone()),
            _ => Err(self.error(id, format!("{name:?} must be a list"))),
        }
    }

    pub(super) fn optional_list(&self, at: JsonId, name: &str) -> Result<Vec<JsonId>> {
        if self.get(at, name).is_some() { self.list(at, name) } else { Ok(Vec::new()) }
    }

    pub(super) fn texts(&self, at: JsonId, name: &str) -> Result<Vec<String>> {
        let text = |&id: &JsonId| match self.json.string(id) {
            Some(text) => Ok(text.to_string()),
            None => Err(self.error(id, format!("{name:?} must be a list of texts"))),
        };
        self.list(at, name)?.iter().map(text).collect()
    }

    pub(super) fn optional_texts(&self, at: JsonId, name: &str) -> Result<Vec<String>> {
        if self.get(at, name).is_some() { self.texts(at, name) } else { Ok(Vec::new()) }
    }

    pub(super) fn count(&self, at: JsonId, name: &str) -> Result<u64> {
        let id = self.needed(at, name)?;
        self.json
            .text(id)
            .parse()
            .map_err(|_| self.error(id, format!("{name:?} must be a whole number, not below zero")))
    }

    pub(super) fn optional_count(&self, at: JsonId, name: &str) -> Result<Option<u64>> {
        self.get(at, name).map(|_| self.count(at, name)).transpose()
    }

    pub(super) fn optional_flag(&self, at: JsonId, name: &str) -> Result<Option<bool>> {
        match self.get(at, name).map(|id| (id, self.json.json(id))) {
            None => Ok(None),
            Some((_, Json::Bool(flag))) => Ok(Some(*flag)),
            Some((id, _)) => Err(self.error(id, format!("{name:?} must be true or false"))),
        }
    }

    pub(super) fn flag(&self, at: JsonId, name: &str) -> Result<bool> {
        Ok(self.optional_flag(at, name)?.unwrap_or(false))
    }

    /// Says what members of the object `at` are not read: an error where one is misspelt, a warning
    /// about others.
    ///
    /// `known` are read, `silent` have no say in what texts are allowed.
    pub(super) fn only(
        &self,
        at: JsonId,
        what: &str,
        known: &[&str],
        silent: &[&str],
    ) -> Result<()> {
        let Some(object) = self.json.object(at) else { return Ok(()) };
        for &value in self.json.repeated() {
            if self.json.parent(value) == Some(at) {
                self.warn(value, REPEATED);
            }
        }
        for (name, value) in object.members() {
            let is_null = matches!(self.json.json(*value), Json::Null);
            if is_null || known.contains(&&**name) || silent.contains(&&**name) {
                continue;
            }
            if let Some(meant) = meant(name, known) {
                let message = format!("{what} has no member {name:?} (did you mean {meant:?}?)");
                return Err(self.error(*value, message));
            }
            let listed = known.join(", ");
            let message =
                format!("{name:?} has no effect: it is not read in {what}; read are {listed}");
            self.warn(*value, message);
        }
        Ok(())
    }

    pub(super) fn warn(&self, at: JsonId, message: impl Into<String>) {
        let (pointer, span) = (self.json.pointer(at), self.json.span(at));
        self.warnings.borrow_mut().push(Warning { pointer, span, message: message.into() });
    }

    pub(super) fn error(&self, at: JsonId, message: impl Into<String>) -> StructuralTagError {
        error(self.json, at, message)
    }
}

/// An error about a value of a document.
pub(super) fn error(json: &Source, at: JsonId, message: impl Into<String>) -> StructuralTagError {
    StructuralTagError {
        span: Some(json.span(at)),
        pointer: json.pointer(at),
        message: message.into(),
        interrupted: None,
    }
}

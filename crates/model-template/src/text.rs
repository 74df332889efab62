//! Texts with placeholders that say which variables they read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::value::{Enumerator, Object, Value};
use serde::Serialize;

use crate::environment::{Manner, environment};
use crate::error::TemplateError;

/// A text with placeholders, in Jinja: `The user bought {{ history | join(", ") }}.`
///
/// Every character counts, those beside blocks and the last line's end included; printing a
/// variable that there is not is an error.
pub struct TextTemplate {
    env: Environment<'static>,
    variables: BTreeSet<String>,
}

const NAME: &str = "template";

impl fmt::Debug for TextTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextTemplate").field("variables", &self.variables).finish_non_exhaustive()
    }
}

impl TextTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// When it is no Jinja; the message has the line.
    pub fn from_source(source: &str) -> Result<Self, TemplateError> {
        let mut env = environment(Manner::Exact);
        let added = env.add_template_owned(NAME, source.to_owned());
        added.map_err(|error| TemplateError::syntax(&error))?;
        let template = env.get_template(NAME).map_err(|error| TemplateError::syntax(&error))?;
        let globals: BTreeSet<&str> = env.globals().map(|(name, _)| name).collect();
        let read = template.undeclared_variables(true).into_iter();
        let is_own = |name: &String| !globals.contains(name.split('.').next().unwrap_or(name));
        let variables = read.filter(is_own).collect();
        Ok(Self { env, variables })
    }

    /// The variables that it may read, with their fields: `history`, `user.age`. Some may be read
    /// only on one way through.
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// The text for these variables.
    ///
    /// # Errors
    /// When a variable is printed that there is not, a function fails, or the template takes too
    /// many steps.
    pub fn render(&self, variables: &Variables) -> Result<String, TemplateError> {
        let template = self.env.get_template(NAME);
        let text = template.and_then(|template| template.render(&variables.0));
        text.map_err(|error| TemplateError::render(&error))
    }
}

/// The variables of a rendering, by name.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, Value>);

/// A value that prints as a text and has fields: an item of a history prints as its semantic ID and
/// has a title.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// Text as which it prints.
    pub text: String,
    /// Fields that a template can read of it.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

impl Variables {
    /// Sets a variable to plain data.
    pub fn set(&mut self, name: impl Into<String>, value: impl Serialize) {
        self.0.insert(name.into(), Value::from_serialize(value));
    }

    /// Sets a variable to a list of values that print as texts.
    pub fn set_printed(&mut self, name: impl Into<String>, values: Vec<Printed>) {
        let values = values.into_iter().map(Value::from_object);
        self.0.insert(name.into(), values.collect());
    }
}

impl Object for Printed {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.fields.get(key.as_str()?).map(Value::from_serialize)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.fields.keys().map(Value::from).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

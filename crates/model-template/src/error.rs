//! Errors of templates: files that cannot be read, texts that are no templates, and renderings that
//! fail.

use std::error::Error;
use std::path::{Path, PathBuf};

/// A template that cannot be had or rendered; the message names the file or the place in the
/// template, and the reason.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TemplateError(#[from] Kind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("{path}: {reason}", path = path.display())]
    File { path: PathBuf, reason: String },
    #[error(
        "{dir} has no chat template: neither chat_template.jinja nor `chat_template` in tokenizer_config.json; put the model's \
         template there as chat_template.jinja",
        dir = dir.display()
    )]
    Missing { dir: PathBuf },
    #[error("the template is no Jinja: {reason}")]
    Syntax { reason: String },
    #[error("the template refuses this: {message}")]
    Raised { message: String },
    #[error("the template cannot be rendered: {reason}")]
    Render { reason: String },
}

impl TemplateError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Kind::File { path: path.to_owned(), reason: reason.to_string() }.into()
    }

    pub(crate) fn missing(dir: &Path) -> Self {
        Kind::Missing { dir: dir.to_owned() }.into()
    }

    pub(crate) fn syntax(error: &minijinja::Error) -> Self {
        Kind::Syntax { reason: described(error) }.into()
    }

    pub(crate) fn render(error: &minijinja::Error) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(Raised(message)) = error.downcast_ref() {
                return Kind::Raised { message: message.clone() }.into();
            }
            next = error.source();
        }
        Kind::Render { reason: described(error) }.into()
    }

    /// True where the directory carries no chat template at all.
    pub fn is_missing(&self) -> bool {
        matches!(self.0, Kind::Missing { .. })
    }

    /// The template's own words where it called `raise_exception`, such as one that takes no system
    /// message.
    pub fn raised(&self) -> Option<&str> {
        match &self.0 {
            Kind::Raised { message } => Some(message),
            _ => None,
        }
    }
}

/// Message of a template's call of `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Raised(pub(crate) String);

/// An error with the line of the template, and those that it came from.
fn described(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text += &format!(": {error}");
        next = error.source();
    }
    text
}

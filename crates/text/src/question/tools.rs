//! Tools of a chat: those that may be called, and how calls are read from the answer.

use palmette_document::Fault;
use palmette_grammar::frontends::structural_tag::ToolFormat;
use serde_json::Value;

use super::{ChatMembers, TextSettings};
use crate::model::TextModel;
use crate::tool_calls::{ArgumentKinds, ToolCallReader};

/// Tools that a chat may call.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// Their definitions, as they were given.
    pub(super) list: Vec<Value>,
    /// True where those that say `"strict": false` take any object.
    pub(super) lax: bool,
    pub(super) format: ToolFormat,
}

/// Reading of calls from an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Calling {
    /// Format of the calls.
    pub format: ToolFormat,
    /// Names of the tools whose input is a text.
    pub customs: Vec<String>,
    /// Kinds of the parameters of all tools.
    pub kinds: ArgumentKinds,
}

impl Calling {
    /// A reader of an answer with such calls.
    pub fn reader(&self) -> ToolCallReader {
        ToolCallReader::new(self.format, self.kinds.clone())
    }
}

impl Tools {
    pub(super) fn calling(&self) -> Calling {
        let customs = self.list.iter().filter(|tool| tool["type"] == "custom");
        let name = |tool: &Value| {
            let inner = if tool["custom"].is_object() { &tool["custom"] } else { tool };
            inner["name"].as_str().map(str::to_owned)
        };
        let kinds = ArgumentKinds::of_tools(&self.list, self.lax);
        Calling { format: self.format, customs: customs.filter_map(name).collect(), kinds }
    }
}

impl ChatMembers {
    /// The tools that may be called; `None` where there are none, or none of them may be.
    pub(super) fn callable_tools(
        &self,
        model: &TextModel,
        settings: &TextSettings,
    ) -> Result<Option<Tools>, Fault> {
        let tools = self.tools.as_deref().unwrap_or_default();
        if tools.is_empty() {
            return match &self.tool_choice {
                Some(choice) if choice != "none" && choice != "auto" => {
                    let detail = format!(
                        "tool_choice is {choice}, and there are no tools; add some, or leave it out"
                    );
                    Err(Fault::new("/tool_choice", detail))
                }
                _ => Ok(None),
            };
        }
        if self.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
            return Ok(None);
        }
        let format = settings.tool_format(model).ok_or_else(|| {
            let names = ToolFormat::names();
            let detail = format!(
                "the model's chat template shows no format of tool calls that is known; give one by --tool-format (MODEL=FORMAT of a server): {names}"
            );
            Fault::new("/tools", detail)
        })?;
        let lax = self.lax_tools.unwrap_or(false);
        Ok(Some(Tools { list: tools.to_vec(), lax, format }))
    }
}

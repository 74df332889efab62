//! Prompts of questions: a chat by its model's template, texts and tokens as they are.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_document::Fault;
use palmette_vocabulary::TokenizeError;
use serde_json::{Map, Value};

use super::check::{Check, CheckError};
use super::tools::Tools;
use super::{
    CallLedger, ChatMembers, CompletionMembers, Prompts, TextSettings, Thinking, ThinkingKind,
};
use crate::conversation::{Conversation, PromptEnd};
use crate::detokenize::Detokenizer;
use crate::model::TextModel;

/// A prompt's tokens, and the member that it is from.
pub(super) struct Prompt {
    pub(super) tokens: Vec<TokenId>,
    /// JSON pointer.
    pub(super) pointer: String,
}

/// Efforts of reasoning that clients ask for.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
/// Lengths of answers that clients ask for.
const VERBOSITIES: [&str; 3] = ["low", "medium", "high"];
/// The variable by which templates switch reasoning on and off.
const SWITCH: &str = "enable_thinking";

impl ChatMembers {
    /// The tokens of the prompt alone.
    ///
    /// # Errors
    /// When no prompt can be made of the messages.
    pub fn prompt_tokens(
        &self,
        model: &TextModel,
        settings: &TextSettings,
    ) -> Result<Vec<TokenId>, CheckError> {
        let never = std::sync::atomic::AtomicBool::new(false);
        let mut check = Check::new(model, settings, &never);
        let tools = check.take(self.callable_tools(model, settings)).flatten();
        let prompt = check.chat_prompt(self, tools.as_ref());
        let tokens = prompt.and_then(|prompt| {
            let tokens = model.encode_prompt(&prompt);
            check.encoded(tokens, "/messages")
        });
        check.finish(tokens)?.ok_or(CheckError::Cancelled)
    }
}

impl Check<'_> {
    /// The text of a chat, by the model's template.
    pub(super) fn chat_prompt(
        &mut self,
        chat: &ChatMembers,
        tools: Option<&Tools>,
    ) -> Option<String> {
        let goes_on = chat.continue_final_message == Some(true);
        let end = match (chat.add_generation_prompt, goes_on) {
            (Some(true), true) => {
                let detail = "an answer goes on with the last message or begins a new one; leave one of add_generation_prompt and \
                              continue_final_message out";
                self.fault(Fault::new("/continue_final_message", detail));
                return None;
            }
            (Some(false) | None, true) => PromptEnd::LastText,
            (Some(false), false) => PromptEnd::Messages,
            (Some(true) | None, false) => PromptEnd::Answer,
        };
        self.take(CallLedger::check(&chat.messages))?;
        let conversation = Conversation {
            messages: chat.messages.clone(),
            tools: tools.map_or_else(Vec::new, |tools| tools.list.clone()),
            extra: self.template_variables(chat),
            calls: self.settings.tool_format(self.model),
            end,
        };
        let text = self.model.chat_prompt(&conversation, self.settings.now);
        let text = text.map_err(|error| {
            let way_out = "; or ask for a completion of a prompt (/v1/completions)";
            let way_out = if error.is_of_model() { way_out } else { "" };
            Fault::new(error.pointer(), format!("{error}{way_out}"))
        });
        self.take(text)
    }

    /// Variables of the chat template: those of the question, and what it says of reasoning and
    /// length by the names that templates have for it.
    ///
    /// One that the template does not read has no effect, which is a warning.
    fn template_variables(&mut self, chat: &ChatMembers) -> Map<String, Value> {
        let template = self.model.chat_template();
        let reads = |name: &str| template.as_ref().is_ok_and(|template| template.mentions(name));
        let unread = |member: &str, value: &str| {
            format!(
                "{member} is {value}, and the model's chat template does not read it: it has no effect"
            )
        };
        let mut variables = chat.chat_template_kwargs.clone().unwrap_or_default();
        for (name, value) in variables.iter().filter(|(name, _)| !reads(name)) {
            let member = format!("chat_template_kwargs.{name}");
            self.warnings.push(unread(&member, &value.to_string()));
        }
        for (name, given, known) in [
            ("reasoning_effort", &chat.reasoning_effort, &EFFORTS[..]),
            ("verbosity", &chat.verbosity, &VERBOSITIES),
        ] {
            let Some(given) = given.as_deref() else { continue };
            if !known.contains(&given) {
                let detail = format!("{name} is {given:?}; there are {}", known.join(", "));
                self.fault(Fault::new(format!("/{name}"), detail));
                continue;
            }
            variables.entry(name).or_insert_with(|| given.into());
            let is_switch = (name, given) == ("reasoning_effort", "none") && reads(SWITCH);
            if is_switch {
                variables.entry(SWITCH).or_insert(Value::Bool(false));
            }
            // What is usual asks for nothing.
            if !is_switch && given != "medium" && !reads(name) {
                self.warnings.push(unread(name, given));
            }
        }
        if let Some(Thinking { kind }) = chat.thinking {
            let is_enabled = kind == ThinkingKind::Enabled;
            variables.entry(SWITCH).or_insert(Value::Bool(is_enabled));
            if !reads(SWITCH) {
                let value = if is_enabled { "enabled" } else { "disabled" };
                self.warnings.push(unread("thinking.type", value));
            }
        }
        variables
    }

    /// The prompts of a completion, each with its text; `None` for one that is at fault.
    pub(super) fn prompts(
        &mut self,
        completion: &CompletionMembers,
    ) -> Vec<Option<(Prompt, String)>> {
        let begins = completion.add_special_tokens != Some(false);
        let (one, at) = ("/prompt".to_owned(), |place| format!("/prompt/{place}"));
        let prompts: Vec<Option<(Prompt, String)>> = match &completion.prompt {
            Prompts::Text(text) => vec![self.text_prompt(text, one, begins)],
            Prompts::Tokens(tokens) => vec![Some(self.token_prompt(tokens, one))],
            Prompts::Texts(texts) => {
                let texts = texts.iter().enumerate();
                texts.map(|(place, text)| self.text_prompt(text, at(place), begins)).collect()
            }
            Prompts::ManyTokens(lists) => {
                let lists = lists.iter().enumerate();
                lists.map(|(place, tokens)| Some(self.token_prompt(tokens, at(place)))).collect()
            }
        };
        if prompts.is_empty() {
            self.fault(Fault::new("/prompt", "there is no prompt; give one at least"));
        }
        prompts
    }

    /// The tokens of a text, after those that begin one where `begins` is true.
    fn text_prompt(
        &mut self,
        text: &str,
        pointer: String,
        begins: bool,
    ) -> Option<(Prompt, String)> {
        let tokens = match begins {
            true => self.model.encode_text(text),
            false => self.model.encode_prompt(text),
        };
        let tokens = self.encoded(tokens, &pointer)?;
        Some((Prompt { tokens, pointer }, text.to_owned()))
    }

    fn token_prompt(&self, tokens: &[u32], pointer: String) -> (Prompt, String) {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
        let vocabulary = Arc::clone(self.model.vocabulary().vocabulary());
        let mut detokenizer = Detokenizer::new(vocabulary, Vec::new());
        let mut text: String = tokens.iter().map(|&token| detokenizer.push(token).text).collect();
        text += &detokenizer.finish();
        (Prompt { tokens, pointer }, text)
    }

    /// Tokens, or the fault of the member that has the text; a tokenizer that cuts no text is not
    /// the question's.
    pub(super) fn encoded(
        &mut self,
        tokens: Result<Vec<TokenId>, TokenizeError>,
        pointer: &str,
    ) -> Option<Vec<TokenId>> {
        match tokens {
            Ok(tokens) => Some(tokens),
            Err(error @ (TokenizeError::LeftOut { .. } | TokenizeError::Unsupported { .. })) => {
                self.failure = Some(CheckError::Model(error));
                None
            }
            Err(
                error @ (TokenizeError::Changed { .. }
                | TokenizeError::NoToken { .. }
                | TokenizeError::SpaceRun { .. }
                | TokenizeError::Failed { .. }),
            ) => {
                self.fault(Fault::new(pointer, error.to_string()));
                None
            }
        }
    }
}

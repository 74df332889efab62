//! One question of the command: a document from options, a file or a line of a batch, made ready to
//! be written.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use palmette_document::Members;
use palmette_text::question::{
    Calling, ChatMembers, ChatQuestion, CheckError, CheckedText, CompletionMembers,
    CompletionQuestion, NamedCatalogs, OwnMembers, TextBody, TextDefaults, TextEnvelope,
    TextLimits, TextMembers, TextQuestion, TextSettings,
};
use palmette_text::{
    Constrained, SpecialText, TextBeams, TextEvent, TextModel, TextRequest, TextSession, sources,
};
use serde_json::Value;

use super::arguments::GenerateArgs;
use super::options::borrowed;
use super::shape::Shape;
use super::show::Show;
use super::written_text::{Clock, WrittenText};
use crate::commands::grammar::OpenCatalogs;
use crate::output::visible;

/// A question document, and what a server's body or a line of a batch says besides.
pub(super) struct Question {
    pub(super) id: Option<Value>,
    document: Document,
    /// Names of members that change nothing here.
    without_effect: Vec<String>,
}

enum Document {
    Chat(Box<ChatQuestion>),
    Completion(Box<CompletionQuestion>),
}

/// A question that the model can answer.
pub(super) struct Prepared {
    checked: CheckedText,
    /// Parts of the question without effect.
    pub(super) warnings: Vec<String>,
}

impl Question {
    /// A text to go on with.
    pub(super) fn from_prompt(prompt: String) -> Self {
        Document::Completion(Box::new(CompletionQuestion::new(prompt))).into()
    }

    /// A conversation of one message.
    pub(super) fn from_user(words: &str) -> Self {
        Document::Chat(Box::new(ChatQuestion::from_user(words))).into()
    }

    /// A list of messages, or a document as servers take it.
    pub(super) fn from_file(text: &str) -> anyhow::Result<Self> {
        match text.trim_start().chars().next() {
            Some('[') => {
                let messages = palmette_document::read(text.as_bytes())?;
                Ok(Document::Chat(Box::new(ChatQuestion::new(messages))).into())
            }
            Some('{') => Self::from_line(text),
            _ => bail!(
                "a conversation is a list of messages, or an object with \"messages\" or \"prompt\""
            ),
        }
    }

    /// A document as servers take it, which may have an `id`.
    pub(super) fn from_line(text: &str) -> anyhow::Result<Self> {
        let mut members: Members = palmette_document::read(text.as_bytes())?;
        let id = members.remove("id").map(|id| serde_json::from_str(id.get())).transpose()?;
        let has = |name: &str| members.names().any(|given| given == name);
        let question = match (has("prompt"), has("messages")) {
            (true, false) => read(members, Document::Completion)?,
            (false, true) => read(members, Document::Chat)?,
            (true, true) => bail!("there are both \"prompt\" and \"messages\"; give one"),
            (false, false) => {
                let names: Vec<&str> = members.names().collect();
                bail!(
                    "there is neither \"prompt\" nor \"messages\"; there are: {}",
                    names.join(", ")
                )
            }
        };
        Ok(Self { id, ..question })
    }

    /// Everything checked, compiled and cut into tokens. Members of the document go before options.
    pub(super) fn prepare(
        mut self,
        args: &GenerateArgs,
        model: &TextModel,
        (shape, catalogs): (Option<&Shape>, &Arc<OpenCatalogs>),
    ) -> anyhow::Result<Prepared> {
        let names = args.sampling.names(self.document.text());
        let shape = self.document.fill(args, shape)?;
        let defaults = TextDefaults {
            json: args.shape.form(),
            resources: args.shape.resources()?,
            ..TextDefaults::terminal()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let settings = TextSettings {
            limits: TextLimits::OWN,
            defaults,
            tool_format: args.shape.format()?.map(|format| model.spoken(format)),
            now: now.ok().and_then(|now| i64::try_from(now.as_secs()).ok()),
            catalogs: Some(Arc::clone(catalogs) as Arc<dyn NamedCatalogs>),
        };
        let never = AtomicBool::new(false);
        let checked = match &self.document {
            Document::Chat(chat) => chat.check(model, &settings, &never),
            Document::Completion(completion) => completion.check(model, &settings, &never),
        };
        let checked = checked.map_err(|error| error.respelled(&borrowed(&names)));
        let mut checked = match (checked, shape) {
            (Ok(checked), _) => checked,
            (Err(error), Some(shape)) if is_of_form(&error) => {
                return Err(error).context(shape.name().to_owned());
            }
            (Err(error), _) => return Err(error.into()),
        };
        let constraint = match shape {
            _ if args.no_mask => Some(Constrained::Nothing),
            Some(Shape::Compiled(saved, name)) => {
                Some(Shape::reopen(saved, model, catalogs).with_context(|| name.clone())?)
            }
            Some(Shape::Members(..)) | None => None,
        };
        for request in &mut checked.requests {
            if let Some(constraint) = &constraint {
                request.constraint = constraint.clone();
            }
            if args.special {
                request.special = SpecialText::All;
            }
        }
        let mut warnings = std::mem::take(&mut checked.warnings);
        if !self.without_effect.is_empty() {
            let names = self.without_effect.join(", ");
            warnings.push(format!("{names}: for servers, and without effect here"));
        }
        Ok(Prepared { checked, warnings })
    }
}

impl From<Document> for Question {
    fn from(document: Document) -> Self {
        Self { id: None, document, without_effect: Vec::new() }
    }
}

/// Reads a document of one kind.
fn read<Own: OwnMembers>(
    members: Members,
    into: impl FnOnce(Box<TextQuestion<Own>>) -> Document,
) -> anyhow::Result<Question> {
    let TextBody { envelope, question } = TextBody::from_members(members)?;
    let TextEnvelope { model, stream, stream_options, deadline_ms, without_meaning } = envelope;
    let mut without_effect = without_meaning;
    for (name, is_given) in [
        ("model", model.is_some()),
        ("stream", stream.is_some()),
        ("stream_options", stream_options.is_some()),
        ("deadline_ms", deadline_ms.is_some()),
    ] {
        without_effect.extend(is_given.then(|| name.to_owned()));
    }
    Ok(Question { id: None, document: into(Box::new(question)), without_effect })
}

/// True for faults of a member that the form of the options is filled into.
fn is_of_form(error: &CheckError) -> bool {
    let is_form = |pointer: &str| {
        ["/structured_outputs", "/response_format"].iter().any(|at| pointer.starts_with(at))
    };
    error.faults().is_some_and(|faults| faults.iter().any(|fault| is_form(&fault.pointer)))
}

impl Document {
    fn text(&mut self) -> &mut TextMembers {
        match self {
            Self::Chat(chat) => &mut chat.text,
            Self::Completion(completion) => &mut completion.text,
        }
    }

    /// Fills options in where the document says nothing; gives the form of the options where it is
    /// taken.
    fn fill<'s>(
        &mut self,
        args: &GenerateArgs,
        shape: Option<&'s Shape>,
    ) -> anyhow::Result<Option<&'s Shape>> {
        let has_tools = matches!(self, Self::Chat(chat) if chat.own.tools.is_some());
        let shape = shape.filter(|_| !has_tools && !self.text().has_form());
        if let Some(Shape::Members(form, _)) = shape {
            let text = self.text();
            text.response_format = form.response_format.clone();
            text.structured_outputs = form.structured_outputs.clone();
        }
        args.sampling.fill(self.text());
        let has_newer =
            matches!(self, Self::Chat(chat) if chat.own.max_completion_tokens.is_some());
        let max_tokens = args.sampling.max_tokens.filter(|_| !has_newer);
        self.text().max_tokens = self.text().max_tokens.or(max_tokens);
        match self {
            Self::Chat(chat) => {
                let TextQuestion { own, text } = &mut **chat;
                fill_chat(own, text, args)?;
            }
            Self::Completion(completion) => {
                fill_completion(&mut completion.own, args)?;
            }
        }
        if !self.text().has_form() {
            self.text().response_format = args.shape.response_format()?;
        }
        Ok(shape)
    }
}

fn fill_chat(
    chat: &mut ChatMembers,
    text: &mut TextMembers,
    args: &GenerateArgs,
) -> anyhow::Result<()> {
    if let Some(top) = args.sampling.logprobs.filter(|_| chat.logprobs.is_none()) {
        chat.logprobs = Some(true);
        chat.top_logprobs = chat.top_logprobs.or(Some(top));
    }
    let choice = || args.shape.tool_choice.as_deref().map(sources::tool_choice);
    chat.tool_choice = chat.tool_choice.take().or_else(choice);
    let one_call = args.shape.one_call.then_some(false);
    chat.parallel_tool_calls = chat.parallel_tool_calls.or(one_call);
    let Some(tools) = args.shape.tools()?.filter(|_| chat.tools.is_none()) else { return Ok(()) };
    let is_body = tools.get("tools").is_some();
    let given = |name: &str| is_body.then(|| tools[name].clone()).filter(|value| !value.is_null());
    chat.tools = Some(match given("tools").unwrap_or_else(|| tools.clone()) {
        Value::Array(list) => list,
        one @ Value::Object(_) => vec![one],
        _ => bail!("tools are a list, one definition, or the \"tools\" of a request"),
    });
    // The file may be a whole request, whose choices count where options make none.
    chat.tool_choice = chat.tool_choice.take().or_else(|| given("tool_choice"));
    let parallel = given("parallel_tool_calls").map(serde_json::from_value).transpose();
    let parallel = parallel.context("parallel_tool_calls of the tools' request")?;
    chat.parallel_tool_calls = chat.parallel_tool_calls.or(parallel);
    let lax = given("lax_tools").map(serde_json::from_value).transpose();
    chat.lax_tools = chat.lax_tools.or(lax.context("lax_tools of the tools' request")?);
    if !text.has_form() {
        text.response_format = given("response_format");
    }
    Ok(())
}

fn fill_completion(completion: &mut CompletionMembers, args: &GenerateArgs) -> anyhow::Result<()> {
    ensure!(
        args.shape.tools.is_none(),
        "tools are for conversations, whose chat template tells the model of them, and this is a prompt; give --ask or --chat, or \
         leave --tools out"
    );
    ensure!(
        completion.echo != Some(true),
        "echo is true; the command writes the answer alone: leave it out"
    );
    completion.logprobs = completion.logprobs.or(args.sampling.logprobs);
    Ok(())
}

impl Prepared {
    /// Search for the texts, where they are not drawn.
    pub(super) fn beams(&self) -> Option<&TextBeams> {
        self.checked.beams.as_ref()
    }

    /// Finds the texts of a search, best first for each prompt; `show` is asked by their numbers.
    pub(super) fn search(
        &self,
        model: &TextModel,
        beams: &TextBeams,
        show: &mut dyn FnMut(usize) -> Show,
    ) -> anyhow::Result<Vec<WrittenText>> {
        let mut written = Vec::new();
        for (number, request) in self.checked.requests.iter().enumerate() {
            // The work was on all of them.
            let mut first = Some(self.clock());
            let mut told: Vec<Vec<TextEvent>> = Vec::new();
            let found = beams.search(model, request, &mut |place, event| {
                if let (TextEvent::Stage(_), Some(clock)) = (&event, &mut first) {
                    return clock.hear(event, &mut Show::Nothing);
                }
                told.resize_with(told.len().max(place + 1), Vec::new);
                told[place].push(event);
                ControlFlow::Continue(())
            });
            for ((place, ended), events) in found?.into_iter().enumerate().zip(told) {
                let mut show = show(number * beams.texts + place);
                let mut clock = first.take().unwrap_or_else(|| self.clock());
                for event in events {
                    let _ = clock.hear(event, &mut show);
                }
                written.push(clock.end(ended, &mut show)?);
            }
        }
        Ok(written)
    }

    /// Number of the texts.
    pub(super) fn num_answers(&self) -> usize {
        self.checked.num_answers()
    }

    /// Tells people what has no effect.
    pub(super) fn warn(&self, quiet: bool) {
        for note in self.warnings.iter().filter(|_| !quiet) {
            eprintln!("warning: {}", visible(note));
        }
    }

    /// The request of a text by its number; its seed counts up with it.
    pub(super) fn request(&self, index: usize) -> TextRequest {
        self.checked.request(index)
    }

    /// A listener to a text.
    pub(super) fn clock(&self) -> Clock {
        let calling = self.checked.calling.as_ref();
        Clock::start(calling.map(Calling::reader))
    }

    /// Writes the text of a number.
    pub(super) fn write(
        &self,
        session: &mut TextSession,
        index: usize,
        show: &mut Show,
    ) -> anyhow::Result<WrittenText> {
        let mut clock = self.clock();
        let ended = session.generate(&self.request(index), &mut |event| clock.hear(event, show));
        let written = clock.end(ended?, show)?;
        Ok(written)
    }
}

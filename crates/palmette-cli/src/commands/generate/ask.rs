//! One prompt with what is asked of its text: from options, a request, or a line of a batch.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use palmette_core::TokenId;
use palmette_text::{
    Constrained, Conversation, SpecialText, TextModel, TextRequest, TextSession, ToolCallReader,
    ToolFormat,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::GenerateArgs;
use super::options::check_n;
use super::shape::{Shape, compile, source_of};
use super::show::Show;
use super::written::{Clock, Written};
use crate::commands::grammar::Syntax;
use crate::output::visible;

/// A prompt or a conversation, and values that go before the options of the command.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    pub(super) id: Option<Value>,
    prompt: Option<String>,
    messages: Option<Value>,
    tools: Option<Value>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<Value>,
    schema: Option<Value>,
    grammar: Option<String>,
    syntax: Option<String>,
    regex: Option<String>,
    chat_template_kwargs: Option<Map<String, Value>>,
    #[serde(alias = "max_completion_tokens")]
    max_tokens: Option<usize>,
    min_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    logit_bias: Option<Map<String, Value>>,
    seed: Option<u64>,
    stop: Option<Value>,
    n: Option<usize>,
    logprobs: Option<Value>,
    top_logprobs: Option<usize>,
    // Said in requests to servers, and without meaning here.
    #[serde(rename = "model")]
    _model: Option<IgnoredAny>,
    #[serde(rename = "stream")]
    _stream: Option<IgnoredAny>,
    #[serde(rename = "stream_options")]
    _stream_options: Option<IgnoredAny>,
    #[serde(rename = "user")]
    _user: Option<IgnoredAny>,
}

/// A request that the model can answer.
pub(super) struct Prepared {
    request: TextRequest,
    pub(super) n: usize,
    /// The format of calls, where there are tools.
    format: Option<ToolFormat>,
    /// Parts of a grammar without effect.
    notes: Vec<String>,
}

impl Ask {
    /// A text to go on with.
    pub(super) fn of_prompt(prompt: String) -> Self {
        Self { prompt: Some(prompt), ..Self::default() }
    }

    /// A conversation of one question.
    pub(super) fn of_question(question: &str) -> Self {
        let messages = json!([{"role": "user", "content": question}]);
        Self { messages: Some(messages), ..Self::default() }
    }

    /// A list of messages, or a request with them.
    pub(super) fn of_chat(text: &str) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_str(text).context("a conversation is JSON")?;
        match value {
            Value::Array(_) => Ok(Self { messages: Some(value), ..Self::default() }),
            Value::Object(_) => {
                let ask: Self = serde_json::from_value(value)?;
                ensure!(
                    ask.messages.is_some() || ask.prompt.is_some(),
                    "it has no \"messages\"; a conversation is a list of messages, or an object with them"
                );
                Ok(ask)
            }
            _ => bail!("a conversation is a list of messages, or an object with \"messages\""),
        }
    }

    /// Everything checked, compiled and cut into tokens.
    pub(super) fn prepare(
        &self,
        args: &GenerateArgs,
        model: &TextModel,
        shape: Option<&Arc<Shape>>,
    ) -> anyhow::Result<Prepared> {
        let tools = match &self.tools {
            Some(tools) => Some(tools.clone()),
            None => args.shape.tools()?,
        };
        let tool_request = match &tools {
            None => None,
            Some(tools) => Some(self.tool_request(args, tools)?),
        };
        let format = tool_request.as_ref().map(|_| args.shape.format_of(model)).transpose()?;
        let (tokens, format) = self.prompt_tokens(model, tool_request.as_ref(), format)?;
        let (constraint, notes) = match args.no_mask {
            true => (Constrained::Nothing, Vec::new()),
            false => self.constraint(args, model, shape, tool_request.as_ref(), format.as_ref())?,
        };
        let sampling = &args.sampling;
        let room = model.context_length().saturating_sub(tokens.len());
        let given = self.max_tokens.or(sampling.max_tokens);
        let mut request =
            TextRequest::new(tokens, given.unwrap_or(DEFAULT_MAX_TOKENS.min(room.max(1))));
        request.constraint = constraint;
        request.min_tokens = self.min_tokens.unwrap_or(sampling.min_tokens);
        request.sampler = sampling.sampler();
        let sampler = &mut request.sampler;
        for (value, place) in [
            (self.temperature, &mut sampler.temperature),
            (self.top_p, &mut sampler.top_p),
            (self.min_p, &mut sampler.min_p),
            (self.repetition_penalty, &mut sampler.repetition_penalty),
            (self.presence_penalty, &mut sampler.presence_penalty),
            (self.frequency_penalty, &mut sampler.frequency_penalty),
        ] {
            *place = value.unwrap_or(*place);
        }
        sampler.seed = self.seed.unwrap_or(sampler.seed);
        if let Some(top_k) = self.top_k {
            let top_k =
                NonZeroUsize::new(top_k).context("top_k is 0; leave it out for all tokens")?;
            sampler.top_k = Some(top_k);
        }
        request.logit_bias = self.bias(args)?;
        request.stop = self.stops()?.unwrap_or_else(|| sampling.stop.clone());
        request.logprobs = match &self.logprobs {
            None | Some(Value::Null) => sampling.logprobs,
            Some(Value::Bool(wanted)) => wanted.then(|| self.top_logprobs.unwrap_or(0)),
            Some(number) => {
                let top = number.as_u64().context("\"logprobs\" is true, false or a number")?;
                Some(usize::try_from(top)?)
            }
        };
        request.special = match (&format, args.special) {
            (_, true) => SpecialText::All,
            (Some(format), false) => ToolCallReader::special_text(format),
            (None, false) => SpecialText::Hidden,
        };
        request.check(model)?;
        let n = self.n.unwrap_or(sampling.n);
        check_n(n)?;
        Ok(Prepared { request, n, format, notes })
    }

    /// Tools as a request with all that counts for calls.
    fn tool_request(&self, args: &GenerateArgs, tools: &Value) -> anyhow::Result<Value> {
        let mut request = match tools {
            Value::Object(object) if object.contains_key("tools") => tools.clone(),
            Value::Array(_) => json!({"tools": tools}),
            Value::Object(_) => json!({"tools": [tools]}),
            _ => bail!("tools are a list, one definition, or the \"tools\" of a request"),
        };
        if let Some(choice) = &self.tool_choice {
            request["tool_choice"] = choice.clone();
        } else if let Some(choice) = &args.shape.tool_choice {
            request = palmette_text::sources::with_tool_choice(&request, choice);
        }
        let parallel = self.parallel_tool_calls.or(args.shape.one_call.then_some(false));
        if let Some(parallel) = parallel {
            request["parallel_tool_calls"] = json!(parallel);
        }
        let response_format = match &self.response_format {
            Some(format) => Some(format.clone()),
            None => args.shape.response_format()?,
        };
        if let Some(format) = response_format {
            request["response_format"] = format;
        }
        Ok(request)
    }

    /// The prompt, and the format of calls in an answer to it.
    fn prompt_tokens(
        &self,
        model: &TextModel,
        tool_request: Option<&Value>,
        format: Option<ToolFormat>,
    ) -> anyhow::Result<(Vec<TokenId>, Option<ToolFormat>)> {
        let messages = match (&self.prompt, &self.messages) {
            (Some(prompt), None) => return Ok((model.encode_text(prompt)?, format)),
            (None, Some(Value::Array(messages))) => messages.clone(),
            (None, Some(_)) => {
                bail!("\"messages\" is a list of objects with \"role\" and \"content\"")
            }
            (Some(_), Some(_)) => bail!("there are both \"prompt\" and \"messages\"; give one"),
            (None, None) => bail!("there is neither \"prompt\" nor \"messages\""),
        };
        let tools = tool_request.map(|request| request["tools"].as_array().cloned());
        let conversation = Conversation {
            messages,
            tools: tools.flatten().unwrap_or_default(),
            extra: self.chat_template_kwargs.clone().unwrap_or_default(),
            calls: format.or(model.tool_format().copied()),
            ..Conversation::default()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok());
        let prompt = model.chat_prompt(&conversation, now)?;
        let format = format.map(|format| format.after_prompt(&prompt));
        Ok((model.encode_prompt(&prompt)?, format))
    }

    fn constraint(
        &self,
        args: &GenerateArgs,
        model: &TextModel,
        shape: Option<&Arc<Shape>>,
        tool_request: Option<&Value>,
        format: Option<&ToolFormat>,
    ) -> anyhow::Result<super::shape::Compiled> {
        let shapes = [
            ("schema", self.schema.is_some()),
            ("grammar", self.grammar.is_some()),
            ("regex", self.regex.is_some()),
            ("tools", self.tools.is_some()),
            ("response_format", self.response_format.is_some() && tool_request.is_none()),
        ];
        let given: Vec<&str> = shapes.iter().filter(|shape| shape.1).map(|shape| shape.0).collect();
        ensure!(given.len() < 2, "there are {}; a text can be held to one", given.join(" and "));
        let source = |syntax, text| args.shape.source(syntax, text).map(Some);
        let source = match given.first() {
            Some(&"schema") => source(
                Syntax::JsonSchema,
                self.schema.as_ref().map(Value::to_string).unwrap_or_default(),
            )?,
            Some(&"regex") => source(Syntax::Regex, self.regex.clone().unwrap_or_default())?,
            Some(&"grammar") => {
                let syntax = match self.syntax.as_deref() {
                    None | Some("lark") => Syntax::Lark,
                    Some("gbnf") => Syntax::Gbnf,
                    Some(other) => bail!("\"syntax\" is {other:?}; it is lark or gbnf"),
                };
                source(syntax, self.grammar.clone().unwrap_or_default())?
            }
            // A grammar of the options goes before the tools of the options.
            None if shape.is_some() => None,
            _ => {
                let request = match tool_request {
                    Some(request) => request.clone(),
                    None => {
                        let format = match &self.response_format {
                            Some(format) => Some(format.clone()),
                            None => args.shape.response_format()?,
                        };
                        json!({"response_format": format})
                    }
                };
                match source_of(&request, format, args.shape.form())? {
                    Some(source) => Some(args.shape.with_options(source)?),
                    None => return Ok((Constrained::Nothing, Vec::new())),
                }
            }
        };
        match (source, shape) {
            (Some(source), _) => compile(model, &source),
            (None, Some(shape)) => shape.compile(model),
            (None, None) => Ok((Constrained::Nothing, Vec::new())),
        }
    }

    fn bias(&self, args: &GenerateArgs) -> anyhow::Result<Vec<(TokenId, f32)>> {
        let Some(bias) = &self.logit_bias else {
            let given = args.sampling.logit_bias.iter();
            return Ok(given.map(|&(token, value)| (TokenId(token), value)).collect());
        };
        let one = |(token, value): (&String, &Value)| -> anyhow::Result<(TokenId, f32)> {
            let id = token.parse();
            let id = id.with_context(|| format!("logit_bias: {token:?} is no token id"))?;
            let value =
                value.as_f64().with_context(|| format!("logit_bias: {value} is no number"))?;
            Ok((TokenId(id), value as f32))
        };
        bias.iter().map(one).collect()
    }

    fn stops(&self) -> anyhow::Result<Option<Vec<String>>> {
        let rule = "\"stop\" is a text or a list of texts";
        Ok(match &self.stop {
            None | Some(Value::Null) => None,
            Some(Value::String(stop)) => Some(vec![stop.clone()]),
            Some(Value::Array(stops)) => {
                let texts = stops.iter().map(|stop| stop.as_str().map(str::to_owned));
                Some(texts.collect::<Option<_>>().context(rule)?)
            }
            Some(_) => bail!(rule),
        })
    }
}

/// The most tokens of a text unless it is said: enough for an answer, and an end for a model that finds none.
const DEFAULT_MAX_TOKENS: usize = 512;

impl Prepared {
    /// Tells people what in a grammar has no effect.
    pub(super) fn warn(&self, quiet: bool) {
        for note in self.notes.iter().filter(|_| !quiet) {
            eprintln!("warning: {}", visible(note));
        }
    }

    /// The request of a text by its number; its seed counts up with it.
    pub(super) fn request(&self, index: usize) -> TextRequest {
        let mut request = self.request.clone();
        request.sampler.seed = request.sampler.seed.wrapping_add(index as u64);
        request
    }

    /// A listener to a text.
    pub(super) fn clock(&self) -> Clock {
        Clock::start(self.format.map(ToolCallReader::new))
    }

    /// Writes the text of a number.
    pub(super) fn write(
        &self,
        session: &mut TextSession,
        index: usize,
        show: &mut Show,
    ) -> anyhow::Result<Written> {
        let mut clock = self.clock();
        let ended = session.generate(&self.request(index), &mut |event| clock.hear(event, show));
        let written = clock.end(ended?, show)?;
        Ok(written)
    }
}

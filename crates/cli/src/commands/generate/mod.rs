//! `palmette generate`: text from a language model, free or under a grammar.

mod arguments;
mod batch;
mod options;
mod question;
mod shape;
mod show;
mod written_text;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use palmette_text::engine::VocabularyMismatch;
use palmette_text::{TextModel, TextModelOptions, TextSession};
use serde_json::{Value, json};

use super::devices::TEXT_TOKENS;
use super::grammar::OpenCatalogs;
use super::loading::set_threads;
use crate::input;
use crate::output::print_json;
use arguments::PromptArgs;
use question::Question;
use show::Show;

pub(crate) use arguments::GenerateArgs;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    // What costs nothing is checked before the model is read.
    args.sampling.check()?;
    let shape = args.shape.read()?;
    let questions = args.questions()?;
    let catalogs = Arc::new(args.catalogs.open()?.for_model(&args.model));
    let threads = set_threads(args.threads)?;
    let at_once = if args.prompt.batch.is_some() { args.at_once } else { 1 };
    let device = args.device.choice(at_once)?;
    let engine = device.text_loader(args.weights, at_once, TEXT_TOKENS)?;
    let options = TextModelOptions {
        engine,
        vocabulary: args.vocabulary.options(),
        mask_steps: args.mask_steps,
        threads,
        ..TextModelOptions::default()
    };
    let mut model = TextModel::open(&args.model, &options)?;
    let draft_model = args.draft_model.as_ref().map(|dir| {
        let named = || format!("--draft-model {}", dir.display());
        let draft_model = TextModel::open(dir, &options).with_context(named)?;
        VocabularyMismatch::check(&model, &draft_model)?;
        anyhow::Ok(draft_model)
    });
    let draft_model = draft_model.transpose()?;
    if let Some(path) = &args.chat_template {
        let template = String::from_utf8(input::read(path)?);
        let template = template.context("a template is text in UTF-8");
        let template = template.with_context(|| path.display().to_string())?;
        model = model.with_chat_template(&template).with_context(|| path.display().to_string())?;
    }
    match questions {
        Questions::One(question) => {
            answer(args, &mut TextSession::new(model), *question, (shape.as_ref(), &catalogs))
        }
        Questions::Batch(path) => {
            batch::run(args, (model, draft_model), (shape.as_ref(), &catalogs), &path)
        }
    }
}

/// One question, or a file of them.
enum Questions {
    One(Box<Question>),
    Batch(PathBuf),
}

impl GenerateArgs {
    fn questions(&self) -> anyhow::Result<Questions> {
        let PromptArgs { prompt, prompt_file, ask, chat, batch } = &self.prompt;
        let question = match (prompt, prompt_file, ask, chat, batch) {
            (Some(prompt), ..) => Question::from_prompt(prompt.clone()),
            (_, Some(file), ..) => Question::from_prompt(input::read_request(file)?),
            (_, _, Some(words), ..) => Question::from_user(words),
            (_, _, _, Some(file), _) => {
                let text = input::read_request(file)?;
                Question::from_file(&text).with_context(|| file.display().to_string())?
            }
            (_, _, _, _, Some(file)) => return Ok(Questions::Batch(file.clone())),
            _ => bail!("give --prompt, --prompt-file, --ask, --chat or --batch"),
        };
        Ok(Questions::One(Box::new(question)))
    }
}

fn answer(
    args: &GenerateArgs,
    session: &mut TextSession,
    question: Question,
    (shape, catalogs): (Option<&shape::Shape>, &Arc<OpenCatalogs>),
) -> anyhow::Result<()> {
    let model = session.model().clone();
    let prepared = question.prepare(args, &model, (shape, catalogs))?;
    if let Some(option) = catalogs.unnamed() {
        bail!("{option}: the text has no grammar that names it; leave it out");
    }
    prepared.warn(args.quiet || args.json);
    let is_terminal = std::io::stdout().is_terminal();
    let mut answers: Vec<Value> = Vec::new();
    let count = prepared.num_answers();
    let mut found = match prepared.beams() {
        Some(beams) => {
            let show = &mut |index| Show::new(args, is_terminal, count, index);
            Some(prepared.search(&model, beams, show)?.into_iter())
        }
        None => None,
    };
    for index in 0..count {
        let written = match &mut found {
            Some(found) => match found.next() {
                Some(written) => written,
                None => break,
            },
            None => {
                let mut show = Show::new(args, is_terminal, count, index);
                let written = prepared.write(session, index, &mut show)?;
                if show.is_gone() {
                    return Ok(());
                }
                written
            }
        };
        if args.json {
            answers.push(written.json(&model, None, &prepared.warnings));
            if args.stream {
                print_json(&answers[answers.len() - 1])?;
            }
        }
        if !args.quiet && !args.json {
            eprintln!("{}", written.summary(&model));
        }
    }
    match (args.json && !args.stream, answers.len()) {
        (false, _) => Ok(()),
        (true, 1) => print_json(&answers[0]),
        (true, _) => print_json(&json!({"answers": answers})),
    }
}

//! `palmette model inspect`: what was understood of a model's prompts and semantic IDs, token by
//! token.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use palmette_catalog_live::CatalogView;
use palmette_mapped::write_atomically;
use palmette_model::ModelConfig;
use palmette_recommend::{
    HistoryItem, NamedItem, PromptFormat, Prompts, SpellingSource, TemplateFile, Understanding,
    UnderstoodToken, WrittenPrompt,
};
use serde_json::json;

use super::super::loading::{FieldArgs, ViewArgs, named_items, open_view};
use crate::output::{grouped, print, print_json, table, visible};

/// Show what was understood of a model's directory: the tokens of each level, the prompts, and what
/// follows an item
///
/// Levels come from semantic_ids.json, or by the names of the tokens in tokenizer.json; the text of
/// prompts from prompt_template.json. Weights are not read. With --catalog the names are those of
/// its codes, and every code of every item is looked up.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Directory of the model
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// Catalog of the model's semantic IDs, made by `palmette catalog build`, or directory of a
    /// live one
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    view: ViewArgs,
    /// Show the prompt of a history, token by token; items as `palmette recommend --history` takes
    /// them
    #[arg(long, value_name = "ITEMS", requires = "catalog")]
    history: Option<String>,
    /// Write the prompt of each history of a file as a JSON line, {"texts": …, "tokens": …}; a JSON
    /// list of items a line, - for standard input
    #[arg(long, value_name = "FILE", requires = "catalog", conflicts_with_all = ["history", "json", "write"])]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    fields: FieldArgs,
    /// Take the template of a published model: lc-rec, minionerec, minionerec-sft, openonerec or
    /// tiger
    #[arg(long, value_name = "NAME", requires = "write")]
    preset: Option<String>,
    /// Write what was understood: semantic_ids.json with the tokens of each level and items to know
    /// the catalog by, and with --preset prompt_template.json; files that are there are kept
    #[arg(long, requires = "catalog")]
    write: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let view = args.catalog.as_deref().map(|path| open_view(path, &args.view)).transpose()?;
    let preset = args.preset.as_deref().map(TemplateFile::preset).transpose();
    let prompts = match preset.map_err(|error| anyhow!("--preset: {error}"))? {
        Some(template) => {
            check_new(&args.model.join(TemplateFile::FILE_NAME))?;
            let prompts = Prompts::read_with(&args.model, template.clone(), view.as_ref())?;
            write_new(&args.model.join(TemplateFile::FILE_NAME), &template.to_json())?;
            prompts
        }
        None => Prompts::read(&args.model, view.as_ref())?,
    };
    let prompts = match &view {
        Some(view) if args.write => {
            let prompts = prompts.with_witnesses_of(view);
            if matches!(prompts.spelling(), SpellingSource::Tokenizer(_)) {
                let path = args.model.join(PromptFormat::FILE_NAME);
                write_new(&path, &prompts.format().to_json())?;
            }
            prompts
        }
        _ => prompts,
    };
    if let (Some(path), Some(view)) = (&args.prompts, &view) {
        return write_prompts(args, &prompts, view, path);
    }
    let config = args.model.join("config.json");
    let vocab_size = match config.exists() {
        true => Some(ModelConfig::read(&config)?.vocab_size),
        false => None,
    };
    let needed = prompts.format().vocab_size();
    if let Some(vocab_size) = vocab_size {
        ensure!(
            needed <= vocab_size,
            "the tokens go up to {}, config.json has a vocabulary of {vocab_size}: the embeddings were not resized for them, or \
             tokenizer and model are not of one checkpoint",
            needed - 1
        );
    }
    let understood = prompts.understanding();
    let items = view.as_ref().map(|view| check_items(&prompts, view)).transpose()?;
    let example = match &view {
        Some(view) => view.numbers().next().map(|number| (view.id(number), view.codes(number))),
        None => None,
    };
    let example = match example {
        Some((id, codes)) => Some((id, prompts.spelled_item(&codes)?)),
        None => None,
    };
    let written = match (&args.history, &view) {
        (Some(history), Some(view)) => {
            let history = find_items(view, &named_items(history)?)?;
            Some(prompts.prompt(&history, view, &args.fields.fields()?, most(&prompts))?)
        }
        _ => None,
    };
    if args.json {
        let tokens = |prompt: &WrittenPrompt| -> Vec<UnderstoodToken> {
            prompt
                .tokens
                .iter()
                .map(|&token| prompts.named(palmette_core::TokenId(token)))
                .collect()
        };
        return print_json(&json!({
            "model": args.model,
            "vocab_size": vocab_size,
            "understood": understood,
            "items_checked": items,
            "example": example.map(|(id, tokens)| json!({"id": id, "tokens": tokens})),
            "prompt": written.as_ref().map(|prompt| json!({
                "texts": prompt.texts,
                "tokens": tokens(prompt),
                "history_used": prompt.history_used,
            })),
        }));
    }
    let mut text = understanding_text(&understood, vocab_size, items);
    if let Some((id, tokens)) = example {
        text += &format!("item {} is written {}\n", visible(id), tokens_text(&tokens));
    }
    if let Some(prompt) = written {
        text += &prompt_text(&prompts, &prompt);
    }
    print(&text)
}

fn check_new(path: &Path) -> anyhow::Result<()> {
    ensure!(!path.exists(), "{}: is there already; move it away to write it anew", path.display());
    Ok(())
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    check_new(path)?;
    write_atomically(path, |file| file.write_all(text.as_bytes()))
        .with_context(|| path.display().to_string())?;
    eprintln!("note: wrote {}", path.display());
    Ok(())
}

/// Looks up the tokens of every item; returns how many there are.
fn check_items(prompts: &Prompts, view: &CatalogView) -> anyhow::Result<u64> {
    let format = prompts.format();
    for number in view.numbers() {
        let (id, codes) = (view.id(number), view.codes(number));
        let (found, levels) = (codes.len(), format.levels.len());
        ensure!(found <= levels, "item {id:?} has {found} codes, the model spells {levels}");
        for (level, (&code, at)) in codes.iter().zip(&format.levels).enumerate() {
            ensure!(
                at.tokens.token(code).is_some(),
                "item {id:?} has code {code} at level {level}, for which the model has no token"
            );
        }
    }
    Ok(view.num_items())
}

fn find_items(view: &CatalogView, named: &[NamedItem]) -> anyhow::Result<Vec<HistoryItem>> {
    let item = |name: &NamedItem| match (name.number_in(view), name) {
        (Some(number), _) => Ok(HistoryItem::Number(number)),
        (None, NamedItem::Codes(codes)) => Ok(HistoryItem::Codes(codes.clone())),
        (None, NamedItem::Id(_)) => Err(anyhow!("item {name} is not in the catalog")),
    };
    named.iter().map(item).collect()
}

/// Limit on the tokens of a prompt, where the template gives one.
fn most(prompts: &Prompts) -> usize {
    let template = prompts.template();
    template.and_then(|template| template.file().max_prompt_tokens).unwrap_or(usize::MAX)
}

fn write_prompts(
    args: &InspectArgs,
    prompts: &Prompts,
    view: &CatalogView,
    path: &Path,
) -> anyhow::Result<()> {
    let (fields, name) = (args.fields.fields()?, path.display());
    let lines: Box<dyn BufRead> = match path.as_os_str() == "-" {
        true => Box::new(BufReader::new(std::io::stdin())),
        false => {
            let file = std::fs::File::open(path).with_context(|| name.to_string())?;
            Box::new(BufReader::new(file))
        }
    };
    for (number, line) in (1..).zip(lines.lines()) {
        let place = || format!("{name}, line {number}");
        let named: Vec<NamedItem> = serde_json::from_str(&line?).with_context(place)?;
        let history = find_items(view, &named).with_context(place)?;
        let prompt = prompts.prompt(&history, view, &fields, most(prompts)).with_context(place)?;
        print(&format!("{}\n", serde_json::to_string(&prompt)?))?;
    }
    Ok(())
}

fn understanding_text(of: &Understanding, vocab_size: Option<usize>, items: Option<u64>) -> String {
    let mut text = format!("levels by {}", of.levels_from);
    if let Some(vocab_size) = vocab_size {
        text += &format!("; vocabulary of {}", grouped(vocab_size as u64));
    }
    text += "\n";
    let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
    let row = |(place, level): (usize, &palmette_recommend::UnderstoodLevel)| {
        let order = match (level.is_run, level.moved) {
            (true, _) => "in the order of the codes".to_owned(),
            (false, moved) => format!("{} elsewhere", grouped(u64::from(moved))),
        };
        vec![
            place.to_string(),
            level.spelling.clone().unwrap_or_else(|| format!("<{}_{{}}>", level.prefix)),
            grouped(u64::from(level.num_codes)),
            grouped(u64::from(level.spelled)),
            number(level.first_token),
            number(level.last_token),
            order,
        ]
    };
    let rows: Vec<Vec<String>> = of.levels.iter().enumerate().map(row).collect();
    let head = ["level", "spelled", " codes", " with a token", " lowest", " highest", "tokens"];
    text += &table(&head, &rows);
    text += match of.template {
        true => "prompts are text: prompt_template.json",
        false => "prompts are codes alone",
    };
    text += &format!(", of up to {} items", grouped(of.max_history_items as u64));
    if !of.fields.is_empty() {
        text += &format!("; they take {}", of.fields.join(", "));
    }
    text += "\n";
    text += &match of.end.is_empty() {
        true => "nothing follows an item\n".to_owned(),
        false => format!("an item ends with {}\n", tokens_text(&of.end)),
    };
    if let Some(end) = &of.think_end {
        let end = tokens_text(std::slice::from_ref(end));
        text += &format!("reasoning before the item ends with {end}\n");
    }
    if !of.explain_ends.is_empty() {
        text += &format!("text after an item ends with {}\n", tokens_text(&of.explain_ends));
    }
    if let Some(items) = items {
        text += &format!("every code of {} items has a token\n", grouped(items));
    }
    text
}

/// `<a_12> 151677, "\n" 198`.
fn tokens_text(tokens: &[UnderstoodToken]) -> String {
    let one = |of: &UnderstoodToken| match &of.name {
        Some(name) => format!("{} {}", visible(name), of.token),
        None => of.token.to_string(),
    };
    tokens.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn prompt_text(prompts: &Prompts, prompt: &WrittenPrompt) -> String {
    let mut text = String::new();
    for part in &prompt.texts {
        text += &format!("text {part:?}\n");
    }
    let count = grouped(prompt.tokens.len() as u64);
    text += &format!("{count} tokens, {} items of the history\n", prompt.history_used);
    let rows: Vec<Vec<String>> = prompt
        .tokens
        .iter()
        .enumerate()
        .map(|(place, &token)| {
            let name = prompts.named(palmette_core::TokenId(token)).name.unwrap_or_default();
            vec![place.to_string(), token.to_string(), visible(&name)]
        })
        .collect();
    text + &table(&[" place", " token", "name"], &rows)
}

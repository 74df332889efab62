//! A run that begins with a Hugging Face checkpoint: its weights, its tokenizer with the catalog's
//! codes added, and prompts by a template.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use palmette_catalog_live::CatalogView;
use palmette_recommend::{CodeSpelling, HistoryItem, PromptFields, Prompts, TemplateFile};
use palmette_train::{Example, Params, replace_text};
use serde_json::{Value, json};

const TOKENIZER: &str = "tokenizer.json";
/// Files that are taken along as they are.
const BESIDE_THE_TOKENIZER: [&str; 3] =
    ["tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"];
/// Limit on the tokens of a prompt where the template gives none.
const DEFAULT_PROMPT_TOKENS: usize = 1024;

/// Weights and prompts that a run begins with.
pub(crate) struct Start {
    pub(crate) params: Params,
    pub(crate) prompts: Prompts,
    /// Codes that the tokenizer had no token for.
    pub(crate) new_tokens: usize,
    /// Directory of the tokenizer's files until the run has begun.
    dir: PathBuf,
}

impl Start {
    /// Reads `from`, adds the tokens of the catalog's codes that its tokenizer lacks, sorted by
    /// name, and resizes the embeddings: the rows of new tokens are the mean of those before, with
    /// a little noise.
    pub(crate) fn prepare(
        from: &Path,
        template: Option<&Path>,
        catalog: &CatalogView,
        out: &Path,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let dir = out.join("start");
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        let path = template.map_or_else(|| from.join(TemplateFile::FILE_NAME), Path::to_owned);
        let text = read(&path).context(
            "a run that begins with a checkpoint needs the text of its prompts: --template",
        )?;
        let file = TemplateFile::from_json(&text)
            .map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
        replace_text(&dir.join(TemplateFile::FILE_NAME), &text)?;
        for name in BESIDE_THE_TOKENIZER {
            if from.join(name).exists() {
                replace_text(&dir.join(name), &read(&from.join(name))?)?;
            }
        }
        let path = from.join(TOKENIZER);
        let mut tokenizer: Value =
            serde_json::from_str(&read(&path)?).with_context(|| path.display().to_string())?;
        let names = code_names(catalog, &file)?;
        let new = add_tokens(&mut tokenizer, &names).with_context(|| path.display().to_string())?;
        replace_text(&dir.join(TOKENIZER), &tokenizer.to_string())?;
        let prompts = Prompts::read(&dir, Some(catalog))?;
        let num_tokens = prompts.template().map_or(0, |of| of.tokenizer().num_tokens());
        let params = Params::load(from)?;
        let vocab_size = params.config().vocab_size.max(num_tokens);
        let params = params.with_vocabulary(vocab_size, &new, seed);
        Ok(Self { params, prompts, new_tokens: new.len(), dir })
    }

    /// The examples of histories, given as semantic IDs: a prompt of the items before each, and its
    /// tokens to predict.
    pub(crate) fn examples(
        &self,
        histories: &[Vec<Vec<u32>>],
        catalog: &CatalogView,
    ) -> anyhow::Result<Vec<Example>> {
        let template = self.prompts.template();
        let asked = template.and_then(|template| template.file().max_prompt_tokens);
        let positions = self.params.config().max_position_embeddings;
        let format = self.prompts.format();
        let after = format.levels.len() + format.end_tokens.len();
        let most = asked.unwrap_or(DEFAULT_PROMPT_TOKENS).min(positions.saturating_sub(after));
        let fields = PromptFields::default();
        let mut examples = Vec::new();
        for history in histories {
            let items: Vec<HistoryItem> =
                history.iter().map(|codes| HistoryItem::Codes(codes.clone())).collect();
            for (place, codes) in history.iter().enumerate().skip(usize::from(history.len() > 1)) {
                let prompt = self.prompts.prompt(&items[..place], catalog, &fields, most)?;
                let mut sequence = prompt.tokens;
                let from = sequence.len();
                sequence.extend(self.prompts.spelled_item(codes)?.iter().map(|of| of.token));
                let mut example = Example::default();
                example.set_next_token_from(&sequence, from);
                examples.push(example);
            }
        }
        Ok(examples)
    }

    /// Moves the tokenizer's files into OUT, beside the models that the run writes there.
    pub(crate) fn publish(&self, out: &Path) -> anyhow::Result<()> {
        for name in BESIDE_THE_TOKENIZER.iter().chain(&[TOKENIZER, TemplateFile::FILE_NAME]) {
            let path = self.dir.join(name);
            if path.exists() {
                std::fs::rename(&path, out.join(name)).with_context(|| format!("moving {name}"))?;
            }
        }
        std::fs::remove_dir_all(&self.dir).with_context(|| self.dir.display().to_string())
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The names of the tokens of every code that an item has.
fn code_names(catalog: &CatalogView, file: &TemplateFile) -> anyhow::Result<BTreeSet<String>> {
    let levels = catalog.num_levels();
    let spellings: Vec<String> = match (&file.codes, catalog.level_prefixes()) {
        (Some(codes), _) => codes.clone(),
        (None, Some(prefixes)) => {
            prefixes.iter().map(|prefix| format!("<{prefix}_{{}}>")).collect()
        }
        (None, None) => ('a'..='z').take(levels).map(|letter| format!("<{letter}_{{}}>")).collect(),
    };
    ensure!(
        spellings.len() >= levels,
        "the catalog's semantic IDs have {levels} levels, `codes` of the template spells {}",
        spellings.len()
    );
    let spellings = spellings.iter().map(|text| CodeSpelling::parse(text));
    let spellings = spellings.collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)?;
    let mut names = BTreeSet::new();
    for number in catalog.numbers() {
        let codes = catalog.codes(number);
        names.extend(spellings.iter().zip(codes).map(|(spelling, code)| spelling.name(code)));
    }
    Ok(names)
}

/// Adds the names that a tokenizer has no token for as added tokens, in their order; returns the
/// numbers of these.
fn add_tokens(tokenizer: &mut Value, names: &BTreeSet<String>) -> anyhow::Result<Vec<u32>> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut next = 0;
    match &tokenizer["model"]["vocab"] {
        Value::Object(vocab) => {
            known.extend(vocab.keys().cloned());
            next = vocab.values().filter_map(Value::as_u64).max().map_or(0, |id| id + 1);
        }
        Value::Array(vocab) => {
            known.extend(vocab.iter().filter_map(|entry| Some(entry[0].as_str()?.to_owned())));
            next = vocab.len() as u64;
        }
        _ => {}
    }
    if tokenizer["added_tokens"].is_null() {
        tokenizer["added_tokens"] = json!([]);
    }
    let added = tokenizer["added_tokens"].as_array_mut().context("`added_tokens` is no list")?;
    for token in added.iter() {
        known.extend(token["content"].as_str().map(str::to_owned));
        next = next.max(token["id"].as_u64().map_or(0, |id| id + 1));
    }
    let mut new = Vec::new();
    for name in names.iter().filter(|name| !known.contains(*name)) {
        let id = u32::try_from(next).context("a token's number passes 4294967295")?;
        added.push(json!({
            "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": false,
        }));
        new.push(id);
        next += 1;
    }
    Ok(new)
}

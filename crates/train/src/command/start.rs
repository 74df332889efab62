//! A run that begins with a Hugging Face checkpoint: its weights, its tokenizer with the catalog's
//! codes added, and prompts by a template.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, ensure};
use palmette_catalog_live::CatalogView;
use palmette_recommend::{CodeSpelling, Prompts, TemplateFile};
use palmette_train::Params;
use serde_json::{Value, json};

use super::companions::{Companions, TOKENIZER};

/// Weights and prompts that a run begins with.
pub(crate) struct Start {
    pub(crate) params: Params,
    pub(crate) prompts: Prompts,
    /// Files that go with them.
    pub(crate) companions: Companions,
    /// Codes that the tokenizer had no token for.
    pub(crate) new_tokens: usize,
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
        let params = Params::load(from)?;
        let mut companions = Companions::read(from)?;
        let path = template.map_or_else(|| from.join(TemplateFile::FILE_NAME), Path::to_owned);
        let text = read(&path).context(
            "a run that begins with a checkpoint needs the text of its prompts: --template",
        )?;
        let file = TemplateFile::from_json(&text)
            .map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
        companions.insert(TemplateFile::FILE_NAME, text);
        let path = from.join(TOKENIZER);
        let mut tokenizer: Value =
            serde_json::from_str(&read(&path)?).with_context(|| path.display().to_string())?;
        let names = code_names(catalog, &file)?;
        let new = add_tokens(&mut tokenizer, &names).with_context(|| path.display().to_string())?;
        if !new.is_empty() {
            companions.insert(TOKENIZER, tokenizer.to_string());
            companions.remove_other_vocabularies();
        }
        let prompts = prompts_of(&companions, catalog, out)?;
        let num_tokens = prompts.template().map_or(0, |of| of.tokenizer().num_tokens());
        let vocab_size = params.config().vocab_size.max(num_tokens);
        let params = params.with_vocabulary(vocab_size, &new, seed);
        Ok(Self { params, prompts, companions, new_tokens: new.len() })
    }
}

/// The prompts of a model with these files, which lie in OUT while they are read.
fn prompts_of(
    companions: &Companions,
    catalog: &CatalogView,
    out: &Path,
) -> anyhow::Result<Prompts> {
    let dir = out.join("start");
    let shown = || dir.display().to_string();
    std::fs::create_dir_all(&dir).with_context(shown)?;
    let prompts = companions.write(&dir).and_then(|()| Ok(Prompts::read(&dir, Some(catalog))?));
    std::fs::remove_dir_all(&dir).with_context(shown)?;
    // Only where it was made for this.
    _ = std::fs::remove_dir(out);
    prompts
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

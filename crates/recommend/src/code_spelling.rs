//! Spelling of codes as tokens of a tokenizer, found by the names of its tokens: `<a_12>`,
//! `<s_b_340>`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use palmette_catalog::{CodeTokens, LevelSpelling, TokenTable};
use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_vocabulary::PromptTokenizer;

use crate::error::FormatError;
use crate::prompt_format::{LevelFormat, PromptFormat, letters};
use crate::template::TemplateFile;

/// The name of a code's token: a text before its number and one after it. Written `<a_{}>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeSpelling {
    head: String,
    tail: String,
}

/// Limit on the codes of a level that are looked for.
const MAX_CODES: u32 = 1 << 20;

/// Names of tokens that other programs keep in reserve, which spell no codes.
const RESERVED: [&str; 4] = ["reserved", "unused", "extra_id", "placeholder"];

impl fmt::Display for CodeSpelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{}}{}", self.head, self.tail)
    }
}

impl CodeSpelling {
    /// Reads `<a_{}>`.
    ///
    /// # Errors
    /// A sentence where there is not one `{}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once("{}") {
            Some((head, tail)) if text.len() > 2 && !tail.contains("{}") => {
                Ok(Self { head: head.to_owned(), tail: tail.to_owned() })
            }
            _ => Err(format!(
                "{text:?} is no spelling of codes: it is a token's name with one {{}} for the number, such as <a_{{}}>"
            )),
        }
    }

    /// The spelling of a level whose codes a catalog writes `<a_12>`.
    fn of_prefix(prefix: &str) -> Self {
        Self { head: format!("<{prefix}_"), tail: ">".to_owned() }
    }

    /// The name of a code's token.
    pub fn name(&self, code: u32) -> String {
        format!("{}{code}{}", self.head, self.tail)
    }

    /// The spelling of a name that ends with a number, or has a last number before other
    /// characters, and that number.
    fn of_name(name: &str) -> Option<(Self, u32)> {
        let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
        let start = name[..end].rfind(|c: char| !c.is_ascii_digit());
        let start = start.map_or(0, |at| at + name[at..].chars().next().map_or(1, char::len_utf8));
        let digits = &name[start..end];
        // `<a_007>` would be another name of the code of `<a_7>`.
        let number = digits.parse().ok().filter(|_| digits == "0" || !digits.starts_with('0'))?;
        Some((Self { head: name[..start].to_owned(), tail: name[end..].to_owned() }, number))
    }

    /// The letters between the brackets and before the number: `s_a` of `<s_a_{}>`.
    fn letters(&self) -> &str {
        self.head.trim_start_matches(['<', '[', '|']).trim_end_matches('_')
    }
}

/// The spellings of a tokenizer's added tokens that have numbers, each with how many there are and
/// the largest number.
pub(crate) fn families(tokenizer: &PromptTokenizer) -> BTreeMap<CodeSpelling, (u32, u32)> {
    let mut families: BTreeMap<CodeSpelling, (u32, u32)> = BTreeMap::new();
    for (_, name) in tokenizer.added_tokens() {
        let Some((spelling, number)) = CodeSpelling::of_name(name) else { continue };
        if !RESERVED.iter().any(|word| spelling.head.contains(word)) {
            let (count, most) = families.entry(spelling).or_insert((0, 0));
            (*count, *most) = (*count + 1, (*most).max(number));
        }
    }
    families.retain(|_, &mut (count, most)| count > 1 && most < MAX_CODES);
    families
}

/// The levels of a catalog in the tokens of a tokenizer: by the spellings that are given, else by
/// the catalog's letters, else, where it has none or there is no catalog, by the tokenizer's only
/// names with numbers, in the order of their letters.
///
/// # Errors
/// A sentence that names the token that the tokenizer lacks, with the item that needs it, or the
/// names that it has.
pub(crate) fn levels(
    view: Option<&CatalogView>,
    tokenizer: &PromptTokenizer,
    given: Option<&[CodeSpelling]>,
) -> Result<Vec<(CodeSpelling, LevelFormat)>, String> {
    let prefixes = view.and_then(CatalogView::level_prefixes);
    let families = families(tokenizer);
    let spellings: Vec<CodeSpelling> = match (given, prefixes) {
        (Some(given), _) => given.to_vec(),
        (None, Some(prefixes)) => {
            prefixes.iter().map(|prefix| CodeSpelling::of_prefix(prefix)).collect()
        }
        (None, None) => families.keys().cloned().collect(),
    };
    let num_levels = view.map_or(spellings.len(), CatalogView::num_levels);
    let enough = match given.is_some() || prefixes.is_some() {
        true => spellings.len() >= num_levels,
        false => spellings.len() == num_levels,
    };
    if !enough || spellings.is_empty() {
        let levels = match view {
            Some(_) => format!("the catalog's semantic IDs have {num_levels} levels, "),
            None => String::new(),
        };
        let names = match given {
            Some(_) => format!("`codes` spells {}", spellings.len()),
            None => format!("the tokenizer {}", described(&families)),
        };
        return Err(format!(
            "{levels}{names}; say how each level is spelled, `\"codes\": [\"<a_{{}}>\", …]` in {}",
            TemplateFile::FILE_NAME
        ));
    }
    let mut levels = Vec::new();
    for (level, spelling) in spellings.into_iter().enumerate() {
        let codes = view.and_then(|view| largest_code(view, level));
        let codes = codes.map_or(0, |code| code.saturating_add(1));
        if codes > MAX_CODES {
            return Err(format!(
                "the catalog has code {} at level {level}; tokenizers are searched for codes below {MAX_CODES}",
                codes - 1
            ));
        }
        let known = families.get(&spelling).map_or(0, |&(_, most)| most + 1);
        let tokens = (0..codes.max(known)).map(|code| tokenizer.token(&spelling.name(code)));
        let tokens: Vec<Option<u32>> = tokens.map(|token| token.map(|TokenId(id)| id)).collect();
        if tokens.iter().all(Option::is_none) {
            return Err(format!(
                "the tokenizer has no token {:?}, nor another of level {level}; it {}: say how codes are spelled, \
                 `\"codes\": [\"<a_{{}}>\", …]` in {}",
                spelling.name(0),
                described(&families),
                TemplateFile::FILE_NAME
            ));
        }
        let unspelled = view.and_then(|view| unspelled(view, level, &tokens));
        if let Some((code, item)) = unspelled {
            return Err(format!(
                "the tokenizer has no token {:?}, which item {item:?} needs at level {level}: index and tokenizer are not of one \
                 model",
                spelling.name(code)
            ));
        }
        let prefix = match prefixes.and_then(|prefixes| prefixes.get(level)) {
            Some(prefix) => prefix.clone(),
            None if !spelling.letters().is_empty() => spelling.letters().to_owned(),
            None => letters(None, level),
        };
        let tokens: LevelSpelling = TokenTable::new(tokens).into();
        levels.push((spelling, LevelFormat { prefix, tokens }));
    }
    Ok(levels)
}

/// Spelling of codes as a model's folder says it, read once: of `semantic_ids.json`, else by the
/// names of the tokenizer's tokens.
///
/// No prompt need be known, so that any language model with such tokens may write items in its
/// texts.
#[derive(Debug)]
pub struct FolderSpelling {
    /// The file that says it, for errors.
    path: PathBuf,
    source: SpellingFile,
}

#[derive(Debug)]
enum SpellingFile {
    Format(Box<PromptFormat>),
    /// The names of tokens, with the spellings of `prompt_template.json` where it has some.
    Names(Box<PromptTokenizer>, Option<Vec<CodeSpelling>>),
}

impl FolderSpelling {
    /// Reads a model's folder.
    ///
    /// # Errors
    /// When there is no file that names tokens, or one is damaged.
    pub fn read(dir: &Path) -> Result<Self, FormatError> {
        let path = dir.join(PromptFormat::FILE_NAME);
        if path.exists() {
            let source = SpellingFile::Format(Box::new(PromptFormat::read(dir)?));
            return Ok(Self { path, source });
        }
        let path = dir.join(TemplateFile::FILE_NAME);
        let failed = |reason| FormatError { path: path.clone(), reason };
        let given = match path.exists() {
            true => {
                let text = std::fs::read_to_string(&path);
                let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
                TemplateFile::from_json(&text).and_then(|file| file.spellings()).map_err(failed)?
            }
            false => None,
        };
        let path = dir.join(PromptTokenizer::FILE_NAME);
        let tokenizer = PromptTokenizer::from_directory(dir)
            .map_err(|error| FormatError { path: path.clone(), reason: error.to_string() })?;
        Ok(Self { path, source: SpellingFile::Names(Box::new(tokenizer), given) })
    }

    /// The tokens of a catalog's codes, over a vocabulary of `num_tokens`.
    ///
    /// Cost: of names a look-up for each code, and a pass over the codes that the catalog has.
    ///
    /// # Errors
    /// When the model has no token for a code.
    pub fn code_tokens(
        &self,
        view: &CatalogView,
        num_tokens: usize,
    ) -> Result<CodeTokens, FormatError> {
        let failed = |reason: String| FormatError { path: self.path.clone(), reason };
        let tokens = match &self.source {
            SpellingFile::Format(format) => format.code_tokens(num_tokens),
            SpellingFile::Names(tokenizer, given) => {
                let levels = levels(Some(view), tokenizer, given.as_deref()).map_err(failed)?;
                let levels = levels.into_iter().map(|(_, level)| level.tokens).collect();
                CodeTokens::new(levels, num_tokens)
            }
        };
        tokens.map_err(|error| failed(error.to_string()))
    }
}

/// The tokens by which a model's folder spells the codes of a catalog, over a vocabulary of
/// `num_tokens`, as a [`FolderSpelling`] has them.
///
/// # Errors
/// When a file is damaged, or the model has no token for a code.
pub fn code_tokens(
    dir: &Path,
    view: &CatalogView,
    num_tokens: usize,
) -> Result<CodeTokens, FormatError> {
    FolderSpelling::read(dir)?.code_tokens(view, num_tokens)
}

fn described(families: &BTreeMap<CodeSpelling, (u32, u32)>) -> String {
    if families.is_empty() {
        return "has no added tokens with numbers".to_owned();
    }
    let one =
        |(spelling, (count, _)): (&CodeSpelling, &(u32, u32))| format!("{spelling} ({count})");
    let shown: Vec<String> = families.iter().take(8).map(one).collect();
    let more = if families.len() > shown.len() { ", …" } else { "" };
    format!("has {}{more}", shown.join(", "))
}

/// The largest code that an item has at a level.
fn largest_code(view: &CatalogView, level: usize) -> Option<u32> {
    let parts = view.parts().filter(|(catalog, _)| level < catalog.num_levels());
    parts.filter_map(|(catalog, _)| catalog.index().largest_code(level)).max()
}

/// A code without a token, and an item that has it.
fn unspelled(view: &CatalogView, level: usize, tokens: &[Option<u32>]) -> Option<(u32, String)> {
    let mut missing = None;
    for (catalog, _) in view.parts() {
        if level < catalog.num_levels() {
            catalog.index().for_each_code(level, |code| {
                if tokens.get(code as usize).copied().flatten().is_none() {
                    missing = Some(missing.map_or(code, |least: u32| least.min(code)));
                }
            });
        }
    }
    let code = missing?;
    // One that is no longer there may be left in a segment.
    let item = view.numbers().find(|&number| view.codes(number).get(level) == Some(&code))?;
    Some((code, view.id(item).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_names() {
        let of = |name| CodeSpelling::of_name(name).map(|(one, code)| (one.to_string(), code));
        assert_eq!(of("<a_12>"), Some(("<a_{}>".to_owned(), 12)));
        assert_eq!(of("<cb_2_0>"), Some(("<cb_2_{}>".to_owned(), 0)));
        assert_eq!(of("é7"), Some(("é{}".to_owned(), 7)));
        assert_eq!(of("42"), Some(("{}".to_owned(), 42)));
        for name in ["", "<a>", "<a_07>", "<a_99999999999>"] {
            assert_eq!(of(name), None, "{name}");
        }
        let one = CodeSpelling::parse("<s_a_{}>").unwrap();
        assert_eq!((one.name(340), one.letters()), ("<s_a_340>".to_owned(), "s_a"));
        for text in ["<a_>", "{}{}", "{}", ""] {
            assert!(CodeSpelling::parse(text).is_err(), "{text}");
        }
    }
}

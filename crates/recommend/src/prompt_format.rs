//! Spelling of semantic IDs and histories: `semantic_ids.json` in the model's directory.

use std::ops::Range;
use std::path::Path;

use palmette_catalog::{Catalog, CodeTokens, LevelSpelling, LevelTokens, TokenTable, TokensError};
use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_model::draft::DraftShape;
use serde::{Deserialize, Serialize};

use crate::error::{FormatError, RecommendError, TooManyTokens};

/// The tokens of a model that was trained on histories of semantic IDs.
///
/// Without a [template](crate::PromptTemplate) a prompt is `bos_token`, where there is one, then
/// the codes of up to `max_history_items` items, oldest first; the model continues it with the
/// codes of the next item, and `end_tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptFormat {
    /// First token of a prompt without a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos_token: Option<u32>,
    /// A token that is never spelled; it fills rows where other programs need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pad_token: Option<u32>,
    /// Each level's tokens.
    pub levels: Vec<LevelFormat>,
    /// Tokens that follow the last code of an item, in this order: their log-probabilities count in
    /// its score, and a semantic ID may then be a prefix of another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub end_tokens: Vec<u32>,
    /// The most recent items that a prompt holds.
    pub max_history_items: usize,
    /// Items by which the window of a longer history moves, at most `max_history_items`; 1 where it
    /// is left out. Of a history that grows, prompts then begin alike for as many items, so that
    /// what an engine keeps of one is of use to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_step: Option<usize>,
    /// Items with the semantic IDs that the model was trained on, by which a catalog of other IDs
    /// is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
}

/// An item with the semantic ID that a model knows it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The item's id.
    pub id: String,
    /// Codes of the item.
    pub codes: Vec<u32>,
}

/// The tokens of one level's codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LevelFile", into = "LevelFile")]
pub struct LevelFormat {
    /// The letters of the level in texts such as `<a_12>`.
    pub prefix: String,
    /// The token of each code: a run, or any others.
    pub tokens: LevelSpelling,
}

/// A level in the file: `first_token` and `num_codes` for a run, or `tokens`, a number for each
/// code and null for one without.
#[derive(Deserialize, Serialize)]
struct LevelFile {
    prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_token: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_codes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<Option<u32>>>,
}

impl TryFrom<LevelFile> for LevelFormat {
    type Error = String;

    fn try_from(file: LevelFile) -> Result<Self, String> {
        let prefix = file.prefix;
        match (file.first_token, file.num_codes, file.tokens) {
            (Some(first_token), Some(num_codes), None) => {
                Ok(Self::run(prefix, first_token, num_codes))
            }
            (None, None, Some(tokens)) => {
                Ok(Self { prefix, tokens: TokenTable::new(tokens).into() })
            }
            (None, None, None) => Err(format!(
                "level {prefix:?} has no tokens: give `first_token` and `num_codes`, or `tokens`"
            )),
            _ => Err(format!(
                "level {prefix:?} has one of `first_token`, `num_codes` and `tokens` too many or too few: give the first two \
                 for a run of tokens, or `tokens`, one for each code"
            )),
        }
    }
}

impl From<LevelFormat> for LevelFile {
    fn from(level: LevelFormat) -> Self {
        let prefix = level.prefix;
        match level.tokens {
            LevelSpelling::Run(LevelTokens { first_token, num_codes }) => Self {
                prefix,
                first_token: Some(first_token),
                num_codes: Some(num_codes),
                tokens: None,
            },
            LevelSpelling::Table(table) => Self {
                prefix,
                first_token: None,
                num_codes: None,
                tokens: Some(table.tokens().to_vec()),
            },
        }
    }
}

impl LevelFormat {
    /// A level whose code `c` is token `first_token + c`.
    pub fn run(prefix: impl Into<String>, first_token: u32, num_codes: u32) -> Self {
        Self { prefix: prefix.into(), tokens: LevelTokens { first_token, num_codes }.into() }
    }

    /// Size of the codebook.
    pub fn num_codes(&self) -> u32 {
        self.tokens.num_codes()
    }

    /// The tokens of its codes, with these.
    pub fn spelled(&self) -> impl Iterator<Item = (u32, TokenId)> + '_ {
        (0..self.num_codes()).filter_map(|code| Some((code, self.tokens.token(code)?)))
    }

    /// The tokens of its codes as a range, where they are all those of one, in any order.
    pub fn token_run(&self) -> Option<Range<usize>> {
        let range = self.tokens.token_range();
        // No two codes of a level have one token.
        (!range.is_empty() && range.len() == self.spelled().count()).then_some(range)
    }

    /// One more than its highest token.
    fn end(&self) -> u64 {
        match &self.tokens {
            LevelSpelling::Run(run) => u64::from(run.first_token) + u64::from(run.num_codes),
            LevelSpelling::Table(table) => {
                table.tokens().iter().flatten().max().map_or(0, |&token| u64::from(token) + 1)
            }
        }
    }
}

impl PromptFormat {
    /// Name in a model's directory.
    pub const FILE_NAME: &str = "semantic_ids.json";

    /// Limit on the items that a prompt may hold.
    pub const MAX_HISTORY_ITEMS: usize = 1 << 20;

    /// Limit on the tokens after the codes of an item.
    pub const MAX_END_TOKENS: usize = 16;

    /// Limit on the rows of a draft head for each code of a level: as many levels may have their
    /// tokens by turns.
    pub const MAX_DRAFT_ROWS: usize = 16;

    /// Items that a format takes along as witnesses.
    const NUM_WITNESSES: u64 = 64;

    const PAD: u32 = 0;
    const BOS: u32 = 1;
    const FIRST_CODE: u32 = 2;

    /// A format for a model that is to spell `catalog`: padding 0, beginning 1, then level after
    /// level.
    ///
    /// # Errors
    /// When the codebooks together need more tokens than a `u32` numbers.
    pub fn for_catalog(catalog: &Catalog, max_history_items: usize) -> Result<Self, TooManyTokens> {
        let sizes = catalog.codes_per_level();
        let tokens =
            sizes.iter().map(|&size| u64::from(size)).sum::<u64>() + u64::from(Self::FIRST_CODE);
        if tokens > u64::from(u32::MAX) {
            return Err(TooManyTokens { tokens });
        }
        let mut first_token = Self::FIRST_CODE;
        let mut next_level = |(level, &num_codes): (usize, &u32)| {
            let prefix = letters(catalog.level_prefixes(), level);
            let format = LevelFormat::run(prefix, first_token, num_codes);
            first_token += num_codes;
            format
        };
        let levels = sizes.iter().enumerate().map(&mut next_level).collect();
        let (bos_token, pad_token) = (Some(Self::BOS), Some(Self::PAD));
        let witnesses = witnesses(catalog);
        let end_tokens = Vec::new();
        let history_step = None;
        Ok(Self {
            bos_token,
            pad_token,
            levels,
            end_tokens,
            max_history_items,
            history_step,
            witnesses,
        })
    }

    /// Checks that a catalog has the semantic IDs that the model was trained on: most of the
    /// witnesses that it has must have the codes that the model knows. Some may have changed.
    pub(crate) fn check_witnesses(&self, view: &CatalogView) -> Result<(), RecommendError> {
        let (mut found, mut other, mut example) = (0, 0, None);
        for witness in &self.witnesses {
            let Some(number) = view.find(&witness.id) else { continue };
            found += 1;
            let codes = view.codes(number);
            if codes != witness.codes {
                other += 1;
                example = example.or(Some((witness, codes)));
            }
        }
        match example {
            Some((Witness { id, codes }, catalog)) if 2 * other > found => {
                let (id, model) = (id.clone(), codes.clone());
                Err(RecommendError::OtherIds { other, found, id, model, catalog })
            }
            _ => Ok(()),
        }
    }

    /// Checks that a catalog is of the shop that the model was trained on: it has one of the
    /// witnesses, or no items. A live catalog passes: it may begin with nothing, and all that it
    /// began with may be gone.
    ///
    /// Serving does not ask this: new items with codes of the model's codebooks may be all that a
    /// catalog has.
    ///
    /// # Errors
    /// When the catalog has none of the model's items.
    pub fn check_shop(&self, view: &CatalogView) -> Result<(), RecommendError> {
        let CatalogView::Frozen(_) = view else { return Ok(()) };
        let is_known = |witness: &Witness| view.find(&witness.id).is_some();
        match self.witnesses.first() {
            Some(first) if view.num_items() > 0 && !self.witnesses.iter().any(is_known) => {
                let (witnesses, id) = (self.witnesses.len(), first.id.clone());
                Err(RecommendError::OtherShop { witnesses, id })
            }
            _ => Ok(()),
        }
    }

    /// Takes items of a catalog as witnesses: of a live one, of those that are there.
    pub(crate) fn set_witnesses(&mut self, view: &CatalogView) {
        let (num_items, most) = (view.num_items(), Self::NUM_WITNESSES);
        let step = usize::try_from(num_items.div_ceil(most).max(1)).unwrap_or(usize::MAX);
        let witness =
            |number| Witness { id: view.id(number).to_owned(), codes: view.codes(number) };
        self.witnesses = view.numbers().step_by(step).map(witness).collect();
    }

    /// Tokens in the vocabulary that the format needs.
    pub fn vocab_size(&self) -> usize {
        let special = self.bos_token.iter().chain(&self.pad_token).chain(&self.end_tokens);
        let special = special.map(|&token| u64::from(token) + 1);
        special.chain(self.levels.iter().map(LevelFormat::end)).max().unwrap_or(0) as usize
    }

    /// Shape of draft heads for this format. A head has a row for each token from the first of a
    /// level to its last, in the order of the tokens, so that it is of no concern to it which code
    /// each spells; those that spell none are never said.
    ///
    /// # Errors
    /// When a level has no tokens, or more than [`MAX_DRAFT_ROWS`](Self::MAX_DRAFT_ROWS) rows a
    /// code.
    pub fn draft_shape(&self) -> Result<DraftShape, RecommendError> {
        let run = |(level, at): (usize, &LevelFormat)| {
            let (range, codes) = (at.tokens.token_range(), at.spelled().count());
            let (tokens, most) = (range.len(), Self::MAX_DRAFT_ROWS);
            match tokens > codes * most || tokens == 0 {
                true => Err(RecommendError::ScatteredLevel { level, tokens, codes, most }),
                false => Ok((range.start as u32, tokens as u32)),
            }
        };
        let levels = self.levels.iter().enumerate().map(run).collect::<Result<_, _>>()?;
        Ok(DraftShape { levels })
    }

    /// Largest number of tokens of a prompt without a template.
    pub fn max_prompt_tokens(&self) -> usize {
        self.max_history_items.saturating_mul(self.levels.len()).saturating_add(1)
    }

    /// The levels' tokens over a vocabulary of `num_tokens`.
    ///
    /// # Errors
    /// When a level reaches past the vocabulary, or two of its codes have one token.
    pub fn code_tokens(&self, num_tokens: usize) -> Result<CodeTokens, TokensError> {
        CodeTokens::new(self.levels.iter().map(|l| l.tokens.clone()).collect(), num_tokens)
    }

    /// Number of the most recent items of a history that a prompt holds where `most` fit: fewer,
    /// where its window moves by several.
    pub(crate) fn num_held(&self, history: usize, most: usize) -> usize {
        let over = history.saturating_sub(most);
        let dropped = over.next_multiple_of(self.history_step.unwrap_or(1));
        match history.checked_sub(dropped) {
            // Fewer fit than a step has.
            None | Some(0) => history.min(most),
            Some(held) => held,
        }
    }

    /// Writes the prompt for a history, given as semantic IDs, oldest first, over `prompt`, as it
    /// is without a template; returns how many of the most recent items it holds.
    ///
    /// # Panics
    /// When an ID has a level or code that the format has no token for; a
    /// [`Recommender`](crate::Recommender) has checked that its catalog has none such.
    pub fn write_prompt<C: AsRef<[u32]>>(&self, history: &[C], prompt: &mut Vec<TokenId>) -> usize {
        let used = self.num_held(history.len(), self.max_history_items);
        self.write_items(&history[history.len() - used..], prompt);
        used
    }

    /// Writes the prompt for these items, each of them.
    pub(crate) fn write_items<C: AsRef<[u32]>>(&self, items: &[C], prompt: &mut Vec<TokenId>) {
        prompt.clear();
        prompt.extend(self.bos_token.map(TokenId));
        items.iter().for_each(|codes| self.write_codes(codes.as_ref(), prompt));
    }

    /// Appends the tokens of a semantic ID.
    ///
    /// # Panics
    /// As [`write_prompt`](Self::write_prompt).
    pub fn write_codes(&self, codes: &[u32], prompt: &mut Vec<TokenId>) {
        for (level, &code) in codes.iter().enumerate() {
            let token = self.levels[level].tokens.token(code);
            prompt.push(token.unwrap_or_else(|| panic!("code {code} at level {level}")));
        }
    }

    /// Reads `semantic_ids.json` of a model's directory.
    ///
    /// # Errors
    /// When it is missing, not JSON, lacks a field, or its levels' tokens overlap.
    pub fn read(dir: &Path) -> Result<Self, FormatError> {
        let path = dir.join(Self::FILE_NAME);
        let error = |reason| FormatError { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|e| {
            error(format!("cannot be read: {e}; a model made by `palmette-train` has this file"))
        })?;
        Self::from_json(&text).map_err(error)
    }

    /// Reads the text of a `semantic_ids.json`.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let format: Self = serde_json::from_str(text).map_err(|e| format!("is not usable: {e}"))?;
        format.check()?;
        Ok(format)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.levels.is_empty() {
            return Err("has no levels".into());
        }
        if self.max_history_items == 0 {
            return Err("`max_history_items` is 0; a prompt needs room for at least 1".into());
        }
        if self.max_history_items > Self::MAX_HISTORY_ITEMS {
            let (asked, most) = (self.max_history_items, Self::MAX_HISTORY_ITEMS);
            return Err(format!("`max_history_items` is {asked}; at most {most} is possible"));
        }
        if let Some(step) = self.history_step
            && !(1..=self.max_history_items).contains(&step)
        {
            let most = self.max_history_items;
            return Err(format!(
                "`history_step` is {step}; it must be from 1 to `max_history_items`, {most}"
            ));
        }
        if self.end_tokens.len() > Self::MAX_END_TOKENS {
            let (given, most) = (self.end_tokens.len(), Self::MAX_END_TOKENS);
            return Err(format!("`end_tokens` has {given} tokens; at most {most} are possible"));
        }
        for (level, l) in self.levels.iter().enumerate() {
            if l.num_codes() == 0 {
                return Err(format!("level {level} has no codes"));
            }
            if l.end() > u64::from(u32::MAX) {
                return Err(format!("the tokens of level {level} pass {}", u32::MAX));
            }
        }
        let mut owners: Vec<(TokenRun, String)> = Vec::new();
        let special = [("bos_token", self.bos_token), ("pad_token", self.pad_token)];
        for (name, token) in special {
            let token = token.map(u64::from);
            owners.extend(token.map(|token| ((token, token + 1), format!("`{name}`"))));
        }
        for (level, l) in self.levels.iter().enumerate() {
            let runs = runs(&l.tokens).into_iter();
            owners.extend(runs.map(|run| (run, format!("level {level}"))));
        }
        owners.sort();
        if let Some(pair) = owners.windows(2).find(|pair| pair[1].0.0 < pair[0].0.1) {
            return Err(match pair[0].1 == pair[1].1 {
                true => format!("two codes of {} have the token {}", pair[0].1, pair[1].0.0),
                false => format!("the tokens of {} and {} overlap", pair[0].1, pair[1].1),
            });
        }
        // A code there and the end of an ID could not be told apart.
        for &token in &self.end_tokens {
            let level = self.levels.iter().position(|l| l.tokens.code(TokenId(token)).is_some());
            if let Some(level) = level {
                return Err(format!("end token {token} is a code's of level {level}"));
            }
        }
        Ok(())
    }

    /// The text of a `semantic_ids.json`.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("plain data can be written as JSON");
        let is_table = |level: &LevelFormat| matches!(level.tokens, LevelSpelling::Table(_));
        match self.levels.iter().any(is_table) {
            true => with_numbers_in_lines(&text),
            false => text,
        }
    }
}

/// Indented JSON with the numbers of a list in one line: a table of thousands of tokens is no
/// column.
fn with_numbers_in_lines(text: &str) -> String {
    let is_number = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        line == "null" || (!line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut out = String::with_capacity(text.len());
    let mut follows_number = false;
    for line in text.lines() {
        let (number, closes) = (is_number(line), follows_number && line.trim().starts_with(']'));
        match (out.ends_with('['), number, closes) {
            (true, true, _) | (_, _, true) => out += line.trim(),
            (false, true, _) if follows_number => out.extend([" ", line.trim()]),
            _ if out.is_empty() => out += line,
            _ => out.extend(["\n", line]),
        }
        follows_number = number;
    }
    out
}

/// First token and one past the last.
type TokenRun = (u64, u64);

/// The tokens of a level as runs, ascending; a table's as runs of one.
fn runs(spelling: &LevelSpelling) -> Vec<TokenRun> {
    match spelling {
        LevelSpelling::Run(run) => {
            let first = u64::from(run.first_token);
            vec![(first, first + u64::from(run.num_codes))]
        }
        LevelSpelling::Table(table) => {
            let tokens = table.tokens().iter().flatten().map(|&token| u64::from(token));
            tokens.map(|token| (token, token + 1)).collect()
        }
    }
}

/// The letters of a level: the catalog's, or letters of the alphabet.
pub(crate) fn letters(prefixes: Option<&[String]>, level: usize) -> String {
    match prefixes.and_then(|prefixes| prefixes.get(level)) {
        Some(prefix) => prefix.clone(),
        None => char::from(b'a' + (level % 26) as u8).to_string(),
    }
}

/// Items of a catalog that are spread evenly over its ranks.
fn witnesses(catalog: &Catalog) -> Vec<Witness> {
    let num_items = catalog.num_items();
    let num = num_items.min(PromptFormat::NUM_WITNESSES);
    let witness = |place: u64| {
        let rank = place * num_items / num;
        Witness { id: catalog.id(rank).to_owned(), codes: catalog.codes(rank) }
    };
    (0..num).map(witness).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format() -> PromptFormat {
        PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            levels: vec![LevelFormat::run("a", 2, 4), LevelFormat::run("a", 6, 4)],
            end_tokens: Vec::new(),
            max_history_items: 2,
            history_step: None,
            witnesses: vec![Witness { id: "P1".into(), codes: vec![3, 0] }],
        }
    }

    #[test]
    fn prompts_hold_the_most_recent_items() {
        let mut prompt = Vec::new();
        let used = format().write_prompt(&[[0, 0], [3, 1], [2, 2]], &mut prompt);
        assert_eq!(used, 2);
        assert_eq!(prompt, [1, 5, 7, 4, 8].map(TokenId));
        assert_eq!(format().write_prompt::<[u32; 2]>(&[], &mut prompt), 0);
        assert_eq!(prompt, [TokenId(1)]);
    }

    /// A longer history loses whole steps, so its prompts begin alike for as many items.
    #[test]
    fn windows_move_by_steps() {
        let held = |max_history_items, step| {
            let format = PromptFormat { max_history_items, history_step: step, ..format() };
            (0..14).map(|len| format.num_held(len, max_history_items)).collect::<Vec<_>>()
        };
        assert_eq!(held(4, None), [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(held(4, Some(3)), [0, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 3, 4]);
        assert_eq!(held(4, Some(4)), [0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1]);
        let format = PromptFormat { max_history_items: 4, history_step: Some(3), ..format() };
        let history: Vec<[u32; 2]> = (0..20).map(|n| [n % 4, n / 4 % 4]).collect();
        let prompts: Vec<Vec<TokenId>> = (0..=20)
            .map(|len| {
                let mut prompt = Vec::new();
                format.write_prompt(&history[..len], &mut prompt);
                prompt
            })
            .collect();
        let alike = prompts.windows(2).filter(|pair| pair[1].starts_with(&pair[0])).count();
        assert_eq!(alike, 4 + 2 * 16 / 3);
        // Fewer tokens may fit than a step has items.
        assert_eq!(format.num_held(10, 2), 1);
        assert_eq!(format.num_held(2, 1), 1);
    }

    #[test]
    fn written_format_reads_back() {
        assert_eq!(PromptFormat::from_json(&format().to_json()), Ok(format()));
        assert_eq!(format().vocab_size(), 10);
    }

    fn table(tokens: impl IntoIterator<Item = Option<u32>>) -> LevelFormat {
        LevelFormat { prefix: "a".into(), tokens: TokenTable::new(tokens).into() }
    }

    #[test]
    fn tokens_in_any_order_are_written_and_spelled() {
        let mut format = format();
        format.levels[1] = table([Some(30), None, Some(12)]);
        format.end_tokens = vec![31, 10];
        format.bos_token = None;
        assert_eq!(PromptFormat::from_json(&format.to_json()), Ok(format.clone()));
        assert!(format.to_json().contains("\"tokens\": [30, null, 12]\n"), "{}", format.to_json());
        assert_eq!(format.vocab_size(), 32);
        let mut prompt = Vec::new();
        format.write_prompt(&[[0, 2], [3, 0]], &mut prompt);
        assert_eq!(prompt, [2, 12, 5, 30].map(TokenId));
        // A draft head has rows for the tokens between, as far as these are few.
        assert_eq!(format.draft_shape().unwrap().levels[1], (12, 19));
        assert_eq!(format.levels[1].token_run(), None);
        format.levels[1] = table([Some(31), None, Some(30), Some(32)]);
        assert_eq!(format.levels[1].token_run(), Some(30..33));
        assert_eq!(format.draft_shape().unwrap().levels[1], (30, 3));
        format.levels[1] = table([Some(20), Some(51)]);
        assert_eq!(format.draft_shape().unwrap().levels[1], (20, 32));
        format.levels[1] = table([Some(20), Some(52)]);
        let error = format.draft_shape().unwrap_err();
        let scattered = RecommendError::ScatteredLevel { level: 1, tokens: 33, codes: 2, most: 16 };
        assert_eq!(error.to_string(), scattered.to_string());
        format.levels[1] = table([None, None]);
        assert_eq!(format.levels[1].token_run(), None);
        assert!(format.draft_shape().is_err());
        // Consecutive numbers are a run, however they were written.
        format.levels[1] = table([Some(6), Some(7)]);
        assert_eq!(format.levels[1], LevelFormat::run("a", 6, 2));
    }

    #[track_caller]
    fn check_refused(change: impl Fn(&mut PromptFormat), word: &str) {
        let mut format = format();
        change(&mut format);
        let reason = PromptFormat::from_json(&format.to_json()).unwrap_err();
        assert!(reason.contains(word), "{reason}");
    }

    #[test]
    fn what_cannot_be_spelled_is_refused() {
        let run = LevelFormat::run;
        check_refused(|f| f.levels[1] = run("a", 5, 4), "level 0 and level 1 overlap");
        check_refused(|f| f.bos_token = Some(7), "overlap");
        check_refused(|f| f.pad_token = Some(1), "overlap");
        check_refused(|f| f.levels.clear(), "no levels");
        check_refused(|f| f.levels[0] = run("a", 2, 0), "no codes");
        check_refused(|f| f.levels[0] = table([Some(4), None, Some(4)]), "have the token 4");
        check_refused(|f| f.levels[0] = table([Some(40), Some(8)]), "level 1 and level 0 overlap");
        check_refused(|f| f.end_tokens = vec![20, 9], "end token 9 is a code's of level 1");
        check_refused(|f| f.end_tokens = vec![20; 17], "at most 16");
        check_refused(|f| f.max_history_items = 0, "max_history_items");
        check_refused(|f| f.history_step = Some(0), "history_step");
        check_refused(|f| f.history_step = Some(3), "`max_history_items`, 2");
        check_refused(|f| f.max_history_items = 1 << 62, "max_history_items");
        check_refused(|f| f.levels[1] = run("a", u32::MAX, 4), "pass");
        assert!(PromptFormat::from_json("{}").unwrap_err().contains("levels"));
        let level = |level: &str| {
            let text = format!("{{\"levels\": [{level}], \"max_history_items\": 1}}");
            PromptFormat::from_json(&text)
        };
        assert!(level(r#"{"prefix": "a"}"#).unwrap_err().contains("has no tokens"));
        let both = r#"{"prefix": "a", "first_token": 1, "tokens": [1]}"#;
        assert!(level(both).unwrap_err().contains("too many or too few"));
    }
}

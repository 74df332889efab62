//! How a model spells semantic IDs and histories: `semantic_ids.json` in the model's directory.

use std::path::Path;

use palmette_catalog::{Catalog, CodeTokens, LevelTokens, TokensError};
use palmette_core::TokenId;
use palmette_live::CatalogView;
use palmette_model::draft::DraftShape;
use serde::{Deserialize, Serialize};

use crate::error::{FormatError, RecommendError, TooManyTokens};

/// The tokens of a model that was trained on histories of semantic IDs.
///
/// A prompt is `bos_token`, then the codes of up to `max_history_items` items, oldest first; the
/// model continues it with the codes of the next item. Code `c` at level `l` is token
/// `levels[l].first_token + c`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptFormat {
    /// First token of every prompt.
    pub bos_token: u32,
    /// A token that is never spelled; it fills rows where other programs need one.
    pub pad_token: u32,
    /// Each level's run of tokens.
    pub levels: Vec<LevelFormat>,
    /// The most recent items that a prompt holds.
    pub max_history_items: usize,
    /// Items with the semantic IDs that the model was trained on, by which a catalog of other IDs is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
}

/// An item with the semantic ID that a model knows it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The item's id.
    pub id: String,
    /// Its codes.
    pub codes: Vec<u32>,
}

/// One level's run of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelFormat {
    /// The letters of the level in texts such as `<a_12>`.
    pub prefix: String,
    /// The token of code 0.
    pub first_token: u32,
    /// Size of the codebook.
    pub num_codes: u32,
}

impl PromptFormat {
    /// Its name in a model's directory.
    pub const FILE_NAME: &str = "semantic_ids.json";

    /// Most items that a prompt may hold.
    pub const MAX_HISTORY_ITEMS: usize = 1 << 20;

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
        let letters = |level: usize| match catalog.level_prefixes().and_then(|p| p.get(level)) {
            Some(prefix) => prefix.clone(),
            None => char::from(b'a' + (level % 26) as u8).to_string(),
        };
        let sizes = catalog.codes_per_level();
        let tokens =
            sizes.iter().map(|&size| u64::from(size)).sum::<u64>() + u64::from(Self::FIRST_CODE);
        if tokens > u64::from(u32::MAX) {
            return Err(TooManyTokens { tokens });
        }
        let mut first_token = Self::FIRST_CODE;
        let mut next_level = |(level, &num_codes): (usize, &u32)| {
            let format = LevelFormat { prefix: letters(level), first_token, num_codes };
            first_token += num_codes;
            format
        };
        let levels = sizes.iter().enumerate().map(&mut next_level).collect();
        let (bos_token, pad_token) = (Self::BOS, Self::PAD);
        let witnesses = witnesses(catalog);
        Ok(Self { bos_token, pad_token, levels, max_history_items, witnesses })
    }

    /// Checks that a catalog has the semantic IDs that the model was trained on: most of the witnesses that it has must have the
    /// codes that the model knows. Some may have changed, and a catalog without any of them passes.
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

    /// Tokens in the vocabulary that the format needs.
    pub fn vocab_size(&self) -> usize {
        let ends = self.levels.iter().map(|l| u64::from(l.first_token) + u64::from(l.num_codes));
        let special = u64::from(self.bos_token.max(self.pad_token)) + 1;
        ends.fold(special, u64::max) as usize
    }

    /// What a draft head spells.
    pub fn draft_shape(&self) -> DraftShape {
        DraftShape { levels: self.levels.iter().map(|l| (l.first_token, l.num_codes)).collect() }
    }

    /// Most tokens of a prompt.
    pub fn max_prompt_tokens(&self) -> usize {
        self.max_history_items.saturating_mul(self.levels.len()).saturating_add(1)
    }

    /// The levels' tokens over a vocabulary of `num_tokens`.
    ///
    /// # Errors
    /// When a level reaches past the vocabulary.
    pub fn code_tokens(&self, num_tokens: usize) -> Result<CodeTokens, TokensError> {
        let tokens =
            |l: &LevelFormat| LevelTokens { first_token: l.first_token, num_codes: l.num_codes };
        CodeTokens::new(self.levels.iter().map(tokens).collect(), num_tokens)
    }

    /// Writes the prompt for a history, given as semantic IDs, oldest first, over `prompt`; returns
    /// how many of the most recent items it holds.
    ///
    /// # Panics
    /// When an ID has a level or code that the format has no token for; a
    /// [`Recommender`](crate::Recommender) has checked that its catalog has none such.
    pub fn write_prompt<C: AsRef<[u32]>>(&self, history: &[C], prompt: &mut Vec<TokenId>) -> usize {
        let used = history.len().min(self.max_history_items);
        prompt.clear();
        prompt.push(TokenId(self.bos_token));
        for codes in &history[history.len() - used..] {
            for (level, &code) in codes.as_ref().iter().enumerate() {
                let at = &self.levels[level];
                assert!(code < at.num_codes, "code {code} at level {level}");
                prompt.push(TokenId(at.first_token + code));
            }
        }
        used
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

    fn check(&self) -> Result<(), String> {
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
        let special = [("bos_token", self.bos_token), ("pad_token", self.pad_token)];
        let mut runs: Vec<(u64, u64, String)> = special
            .iter()
            .map(|&(name, token)| (u64::from(token), u64::from(token) + 1, format!("`{name}`")))
            .collect();
        for (level, l) in self.levels.iter().enumerate() {
            let (first, count) = (u64::from(l.first_token), u64::from(l.num_codes));
            if count == 0 {
                return Err(format!("level {level} has no codes"));
            }
            if first + count > u64::from(u32::MAX) {
                return Err(format!("the tokens of level {level} pass {}", u32::MAX));
            }
            runs.push((first, first + count, format!("level {level}")));
        }
        runs.sort();
        match runs.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(format!("the tokens of {} and {} overlap", pair[0].2, pair[1].2)),
            None => Ok(()),
        }
    }

    /// The text of a `semantic_ids.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data can be written as JSON")
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
        let level = |first_token| LevelFormat { prefix: "a".into(), first_token, num_codes: 4 };
        PromptFormat {
            bos_token: 1,
            pad_token: 0,
            levels: vec![level(2), level(6)],
            max_history_items: 2,
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

    #[test]
    fn written_format_reads_back() {
        assert_eq!(PromptFormat::from_json(&format().to_json()), Ok(format()));
        assert_eq!(format().vocab_size(), 10);
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
        check_refused(|f| f.levels[1].first_token = 5, "level 0 and level 1 overlap");
        check_refused(|f| f.bos_token = 7, "overlap");
        check_refused(|f| f.pad_token = 1, "overlap");
        check_refused(|f| f.levels.clear(), "no levels");
        check_refused(|f| f.levels[0].num_codes = 0, "no codes");
        check_refused(|f| f.max_history_items = 0, "max_history_items");
        check_refused(|f| f.max_history_items = 1 << 62, "max_history_items");
        check_refused(|f| f.levels[1].first_token = u32::MAX, "pass");
        assert!(PromptFormat::from_json("{}").unwrap_err().contains("bos_token"));
    }
}

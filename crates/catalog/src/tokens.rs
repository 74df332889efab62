//! Spelling of codes in a model's tokens: a run of tokens for each level, or a table.

use std::ops::Range;

use palmette_core::TokenId;

/// A run of tokens that spells the codes of one level: code `c` is token `first_token + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelTokens {
    /// The token of code 0.
    pub first_token: u32,
    /// Size of the level's codebook.
    pub num_codes: u32,
}

/// A table of the tokens that spell the codes of one level, in any order. Codes may be left without
/// a token.
///
/// Tokenizers that are given `<a_0>` to `<a_255>` as a sorted list of texts number `<a_10>` before
/// `<a_2>`, and skip the codes that no item has.
///
/// Cost: 16 bytes a code; a code's token is a read, a token's code a binary search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTable {
    /// Token of each code.
    tokens: Box<[Option<u32>]>,
    /// Token and code of each code that has one, ascending.
    by_token: Box<[(u32, u32)]>,
    /// True where tokens ascend with codes.
    ascends: bool,
}

/// Tokens that spell the codes of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelSpelling {
    /// Token `first_token + c` for code `c`: masks are copied, and successors come in the order of
    /// codes.
    Run(LevelTokens),
    /// A token of its own for each code: masks are set bit by bit, and successors sorted.
    Table(TokenTable),
}

impl From<LevelTokens> for LevelSpelling {
    fn from(run: LevelTokens) -> Self {
        Self::Run(run)
    }
}

/// A table whose tokens are a run becomes one.
impl From<TokenTable> for LevelSpelling {
    fn from(table: TokenTable) -> Self {
        let first_token = table.tokens.first().copied().flatten().unwrap_or(0);
        let is_run = (u64::from(first_token)..).zip(&table.tokens);
        let is_run =
            is_run.into_iter().all(|(expected, &token)| token.map(u64::from) == Some(expected));
        match is_run {
            true => Self::Run(LevelTokens { first_token, num_codes: table.tokens.len() as u32 }),
            false => Self::Table(table),
        }
    }
}

impl TokenTable {
    /// The token of each code from 0 on; `None` for a code without one.
    pub fn new(tokens: impl IntoIterator<Item = Option<u32>>) -> Self {
        let tokens: Box<[Option<u32>]> = tokens.into_iter().collect();
        let spelled = (0..).zip(&tokens).filter_map(|(code, &token)| Some((token?, code)));
        let mut by_token: Box<[(u32, u32)]> = spelled.collect();
        let ascends = by_token.is_sorted();
        by_token.sort_unstable();
        Self { tokens, by_token, ascends }
    }

    /// The token of each code.
    pub fn tokens(&self) -> &[Option<u32>] {
        &self.tokens
    }
}

impl LevelSpelling {
    /// The tokens from the first that spells a code to the last, whatever those between mean.
    pub fn token_range(&self) -> Range<usize> {
        match self {
            Self::Run(run) => {
                let first = run.first_token as usize;
                first..first + run.num_codes as usize
            }
            Self::Table(table) => match (table.by_token.first(), table.by_token.last()) {
                (Some(first), Some(last)) => first.0 as usize..last.0 as usize + 1,
                _ => 0..0,
            },
        }
    }

    /// Size of the codebook: codes from here on have no token.
    pub fn num_codes(&self) -> u32 {
        match self {
            Self::Run(run) => run.num_codes,
            Self::Table(table) => table.tokens.len() as u32,
        }
    }

    /// The token that spells `code`, if there is one.
    #[inline]
    pub fn token(&self, code: u32) -> Option<TokenId> {
        match self {
            Self::Run(run) => (code < run.num_codes).then(|| TokenId(run.first_token + code)),
            Self::Table(table) => table.tokens.get(code as usize).copied().flatten().map(TokenId),
        }
    }

    /// The code that `token` spells, if it is one of this level's.
    #[inline]
    pub fn code(&self, token: TokenId) -> Option<u32> {
        match self {
            Self::Run(run) => {
                token.0.checked_sub(run.first_token).filter(|&code| code < run.num_codes)
            }
            Self::Table(table) => {
                let found = table.by_token.binary_search_by_key(&token.0, |&(token, _)| token);
                found.ok().map(|at| table.by_token[at].1)
            }
        }
    }

    /// The least code below [`num_codes`](Self::num_codes) of some that has no token.
    pub fn unspelled(&self, codes: impl FnOnce(&mut dyn FnMut(u32))) -> Option<u32> {
        let Self::Table(table) = self else { return None };
        if table.by_token.len() == table.tokens.len() {
            return None;
        }
        let mut least = None;
        codes(&mut |code| {
            if table.tokens.get(code as usize) == Some(&None) {
                least = Some(least.map_or(code, |least: u32| least.min(code)));
            }
        });
        least
    }

    /// Hands children that come in the order of codes on to `visit` in the order of tokens. Codes
    /// without a token, which only a damaged catalog has, are left out.
    #[inline]
    pub fn in_order<S>(
        &self,
        for_each_child: impl FnOnce(&mut dyn FnMut(u32, S)),
        mut visit: impl FnMut(TokenId, S),
    ) {
        let is_sorted =
            matches!(self, Self::Run(_) | Self::Table(TokenTable { ascends: true, .. }));
        if is_sorted {
            return for_each_child(&mut |code, child| {
                if let Some(token) = self.token(code) {
                    visit(token, child);
                }
            });
        }
        let mut children = Vec::new();
        for_each_child(&mut |code, child| {
            if let Some(token) = self.token(code) {
                children.push((token, child));
            }
        });
        children.sort_unstable_by_key(|&(token, _)| token);
        children.into_iter().for_each(|(token, child)| visit(token, child));
    }
}

/// Tokens that spell semantic IDs: those of each level, over one vocabulary.
///
/// Within a level each code has a token of its own; levels may share tokens. What may follow a
/// prefix is ordered by token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTokens {
    levels: Vec<LevelSpelling>,
    num_tokens: usize,
    /// First token of each level.
    first_tokens: Box<[u32]>,
    has_tables: bool,
}

/// Tokens and catalog that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A level's tokens reach past the vocabulary.
    #[error(
        "level {level} needs tokens {first_token} to {last_token}, but the vocabulary has {num_tokens}"
    )]
    PastVocabulary {
        /// The level.
        level: usize,
        /// Token of its code 0.
        first_token: u32,
        /// Token of its last code.
        last_token: u64,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
    /// A code's token is not in the vocabulary.
    #[error(
        "code {code} of level {level} has token {token}, but the vocabulary has {num_tokens}: \
         its tokens are 0 to one less"
    )]
    TokenPastVocabulary {
        /// The level.
        level: usize,
        /// The code.
        code: u32,
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
    /// Two codes of a level have one token.
    #[error(
        "codes {first} and {second} of level {level} have the same token {token}; within a level each code needs its own"
    )]
    RepeatedToken {
        /// The level.
        level: usize,
        /// The lower code.
        first: u32,
        /// The higher code.
        second: u32,
        /// Token of both.
        token: u32,
    },
    /// The catalog's IDs are longer than the model spells.
    #[error("the catalog has semantic IDs of {catalog} codes, the model spells {model} levels")]
    TooManyLevels {
        /// Codes of the longest semantic ID.
        catalog: usize,
        /// Levels with tokens.
        model: usize,
    },
    /// The catalog uses a code past a level's codebook.
    #[error(
        "the catalog has code {code} at level {level} (item {item:?}), the model has tokens for codes below {num_codes}"
    )]
    CodeWithoutToken {
        /// The level.
        level: usize,
        /// The largest code there.
        code: u32,
        /// Codes that have a token.
        num_codes: u32,
        /// An item with that code.
        item: String,
    },
    /// The catalog uses a code that a level's table leaves without a token.
    #[error("the catalog has code {code} at level {level} (item {item:?}), which has no token")]
    UnspelledCode {
        /// The level.
        level: usize,
        /// The least such code.
        code: u32,
        /// An item with that code.
        item: String,
    },
}

impl CodeTokens {
    /// Levels over a vocabulary of `num_tokens`: [runs](LevelTokens), or [tables](LevelSpelling).
    ///
    /// # Errors
    /// When a token is not in the vocabulary, or two codes of a level have the same.
    pub fn new<S: Into<LevelSpelling>>(
        levels: Vec<S>,
        num_tokens: usize,
    ) -> Result<Self, TokensError> {
        let levels: Vec<LevelSpelling> = levels.into_iter().map(Into::into).collect();
        for (level, spelling) in levels.iter().enumerate() {
            match spelling {
                LevelSpelling::Run(run) => check_run(level, *run, num_tokens)?,
                LevelSpelling::Table(table) => check_table(level, table, num_tokens)?,
            }
        }
        let first = |level: &LevelSpelling| match level {
            LevelSpelling::Run(run) => run.first_token,
            LevelSpelling::Table(_) => 0,
        };
        let first_tokens = levels.iter().map(first).collect();
        let has_tables = levels.iter().any(|level| matches!(level, LevelSpelling::Table(_)));
        Ok(Self { levels, num_tokens, first_tokens, has_tables })
    }

    /// The levels' tokens.
    pub fn levels(&self) -> &[LevelSpelling] {
        &self.levels
    }

    /// The token of code 0 of each level that is a run, 0 of the others.
    pub fn first_tokens(&self) -> &[u32] {
        &self.first_tokens
    }

    /// True when any level is a table.
    pub fn has_tables(&self) -> bool {
        self.has_tables
    }

    /// Size of the vocabulary.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// The least run of tokens that has those of all these levels; levels that do not exist have
    /// none.
    pub fn token_range(&self, levels: impl IntoIterator<Item = usize>) -> Range<usize> {
        let ranges = levels.into_iter().filter_map(|level| self.levels.get(level));
        let ranges = ranges.map(LevelSpelling::token_range).filter(|range| !range.is_empty());
        ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    /// The token that spells `code` at `level`, if there is one.
    #[inline]
    pub fn token(&self, level: usize, code: u32) -> Option<TokenId> {
        self.levels.get(level)?.token(code)
    }

    /// The code that `token` spells at `level`, if it is one of that level's.
    #[inline]
    pub fn code(&self, level: usize, token: TokenId) -> Option<u32> {
        self.levels.get(level)?.code(token)
    }
}

fn check_run(level: usize, run: LevelTokens, num_tokens: usize) -> Result<(), TokensError> {
    let LevelTokens { first_token, num_codes } = run;
    let end = u64::from(first_token) + u64::from(num_codes);
    if end > num_tokens as u64 {
        let last_token = end - 1;
        return Err(TokensError::PastVocabulary { level, first_token, last_token, num_tokens });
    }
    Ok(())
}

fn check_table(level: usize, table: &TokenTable, num_tokens: usize) -> Result<(), TokensError> {
    if let Some(&(token, code)) = table.by_token.last().filter(|last| last.0 as usize >= num_tokens)
    {
        return Err(TokensError::TokenPastVocabulary { level, code, token, num_tokens });
    }
    match table.by_token.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(&[(token, first), (_, second)]) => {
            Err(TokensError::RepeatedToken { level, first, second, token })
        }
        _ => Ok(()),
    }
}

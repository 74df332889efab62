//! A vocabulary while it is read: texts by id, names of special tokens.

use std::collections::HashMap;

use palmette_core::TokenId;

use crate::error::{Kind, invalid};

/// More tokens than any vocabulary has; an id past it is taken for a damaged file, not for memory
/// to reserve.
pub(crate) const MAX_TOKENS: usize = 1 << 24;

/// Longer than any token: a walk over all tokens keeps a state for each byte of the longest.
const MAX_TOKEN_BYTES: usize = 1 << 20;

/// Tokens as a file describes them.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// `texts[t]`: the bytes of token `t`; `None` for special tokens and ids that nothing has.
    pub(crate) texts: Vec<Option<Vec<u8>>>,
    /// Special tokens that have a name, in no order.
    pub(crate) specials: Vec<(TokenId, String)>,
    /// Ids of pieces as the file spells them, special or not: configuration files name tokens so.
    ids: HashMap<String, TokenId>,
    /// Ids that have been given, as flags.
    taken: Vec<bool>,
}

impl Draft {
    /// Adds a token with text, spelled `piece` in the file.
    pub(crate) fn text(&mut self, id: u64, piece: &str, text: Vec<u8>) -> Result<(), Kind> {
        self.unnamed(id, text)?;
        self.name(TokenId(id as u32), piece);
        Ok(())
    }

    /// Adds a token with text that no configuration file would name.
    pub(crate) fn unnamed(&mut self, id: u64, text: Vec<u8>) -> Result<(), Kind> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(invalid(format!(
                "token {id} has {} bytes, more than the limit of {MAX_TOKEN_BYTES}; is this a vocabulary?",
                text.len()
            )));
        }
        let token = self.take(id)?;
        self.texts[token.index()] = Some(text);
        Ok(())
    }

    /// Adds a special token.
    pub(crate) fn special(&mut self, id: u64, name: &str) -> Result<(), Kind> {
        let token = self.take(id)?;
        self.specials.push((token, name.to_owned()));
        self.name(token, name);
        Ok(())
    }

    /// The vocabulary has at least `num_tokens` ids; those without a token are special.
    pub(crate) fn reserve(&mut self, num_tokens: u64) -> Result<(), Kind> {
        if num_tokens > MAX_TOKENS as u64 {
            let id = num_tokens - 1;
            return Err(invalid(format!(
                "token id {id} is past the limit of {MAX_TOKENS} tokens; is this a vocabulary?"
            )));
        }
        if num_tokens as usize > self.texts.len() {
            self.texts.resize(num_tokens as usize, None);
            self.taken.resize(num_tokens as usize, false);
        }
        Ok(())
    }

    /// Turns a token into a special one.
    pub(crate) fn make_special(&mut self, id: TokenId, name: &str) {
        self.texts[id.index()] = None;
        if !self.specials.iter().any(|(special, _)| *special == id) {
            self.specials.push((id, name.to_owned()));
        }
    }

    /// Turns a token into a special one of this name, whatever the file calls it.
    pub(crate) fn rename_special(&mut self, id: TokenId, name: &str) {
        self.texts[id.index()] = None;
        self.taken[id.index()] = true;
        self.specials.retain(|(special, _)| *special != id);
        self.ids.retain(|_, token| *token != id);
        self.specials.push((id, name.to_owned()));
        self.ids.insert(name.to_owned(), id);
    }

    /// The tokens with text, ascending.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        let tokens = self.texts.iter().zip(0..);
        tokens.filter_map(|(text, id)| Some((TokenId(id), text.as_deref()?)))
    }

    /// The token that the file spells `piece`.
    pub(crate) fn id_of(&self, piece: &str) -> Option<TokenId> {
        self.ids.get(piece).copied()
    }

    fn take(&mut self, id: u64) -> Result<TokenId, Kind> {
        self.reserve(id.saturating_add(1))?;
        let token = TokenId(id as u32);
        if std::mem::replace(&mut self.taken[token.index()], true) {
            return Err(invalid(format!(
                "token id {id} is given twice; each token needs an id of its own"
            )));
        }
        Ok(token)
    }

    /// Names a token by its piece; of pieces spelled alike the first is meant.
    fn name(&mut self, token: TokenId, piece: &str) {
        self.ids.entry(piece.to_owned()).or_insert(token);
    }
}

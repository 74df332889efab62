//! Token terminals: tokens asked for by name or number instead of by text.
//!
//! A token that is asked for so is spelled by a byte that no UTF-8 text holds and its number
//! ([`TokenId::to_spelling`]), so that lexer, parser and masks read it as they read text; the text
//! of a token never matches, and no text matches such a terminal.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary};

/// A set of tokens, by name and number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenPattern {
    /// Tokens that are in the set, or with [`negated`](Self::negated) are not.
    pub parts: Arc<[TokenPart]>,
    /// True when it is all other tokens that do not end the output.
    pub negated: bool,
}

/// Tokens of a [`TokenPattern`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenPart {
    /// The token of this name, which only a vocabulary knows.
    Named(Arc<str>),
    /// The special token of this name, if the vocabulary has one.
    Optional(Arc<str>),
    /// The tokens of these numbers, the last one included.
    Numbers(u32, u32),
}

/// A token that a grammar asks for and the vocabulary does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No token has this name.
    #[error("the grammar asks for token {name}, and the vocabulary has none of this name{nearest}")]
    Unknown {
        /// The name.
        name: Arc<str>,
        /// Names that are alike, in words.
        nearest: String,
    },
    /// No token has this number.
    #[error(
        "the grammar asks for token number {number}, and the vocabulary has tokens 0 to {last}"
    )]
    Outside {
        /// The number.
        number: u32,
        /// The greatest number there is.
        last: u32,
    },
    /// The shortest text of a terminal has more tokens than it may have.
    #[error(
        "the limit on the tokens of {name} is {most}, and {}",
        needed.map_or_else(
            || "the vocabulary does not spell its shortest text".to_owned(),
            |needed| format!("its shortest text takes {needed}; raise the limit to that at least"),
        )
    )]
    Limit {
        /// The terminal.
        name: Arc<str>,
        /// The most tokens of its texts.
        most: u32,
        /// Tokens of the shortest text; `None` where the vocabulary spells none.
        needed: Option<u32>,
    },
}

/// Names that a message lists.
const MAX_LISTED: usize = 8;

impl TokenPattern {
    /// One token by name.
    pub fn named(name: &str) -> Self {
        Self { parts: [TokenPart::Named(name.into())].into(), negated: false }
    }

    /// Tokens by number.
    pub fn numbers(numbers: RangeInclusive<u32>) -> Self {
        let part = TokenPart::Numbers(*numbers.start(), *numbers.end());
        Self { parts: [part].into(), negated: false }
    }

    /// Tokens by number alone, ranges ascending and apart. Tokens that end the output are in no set
    /// of all others: a model would end its text within it.
    ///
    /// # Errors
    /// When the vocabulary does not have a token.
    pub fn resolved(&self, vocabulary: &Vocabulary) -> Result<Self, TokenError> {
        let last = (vocabulary.num_tokens() as u32).saturating_sub(1);
        let mut ranges = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter() {
            let (low, high) = match part {
                TokenPart::Named(name) => {
                    let token = find(vocabulary, name)?;
                    (token.0, token.0)
                }
                TokenPart::Optional(name) => match vocabulary.named(name) {
                    Some(token) => (token.0, token.0),
                    None => continue,
                },
                TokenPart::Numbers(low, high) => (*low, *high),
            };
            if low > last || high > last {
                let number = if low > last { low } else { high };
                return Err(TokenError::Outside { number, last });
            }
            ranges.extend((low <= high).then_some((low, high)));
        }
        if self.negated {
            ranges.extend(vocabulary.ends().iter().map(|end| (end.0, end.0)));
        }
        let ranges = joined(ranges);
        let ranges = if self.negated { others(&ranges, last) } else { ranges };
        let parts = ranges.into_iter().map(|(low, high)| TokenPart::Numbers(low, high)).collect();
        Ok(Self { parts, negated: false })
    }

    /// Numbers of the tokens; an error with the name of one whose number is not known.
    pub fn ranges(&self) -> Result<Vec<(u32, u32)>, &str> {
        let ranges = self.parts.iter().map(|part| match part {
            TokenPart::Named(name) | TokenPart::Optional(name) => Err(&**name),
            TokenPart::Numbers(low, high) => Ok((*low, *high)),
        });
        let ranges = joined(ranges.collect::<Result<_, _>>()?);
        Ok(if self.negated { others(&ranges, u32::MAX) } else { ranges })
    }

    /// True when one of these tokens is in the set, where its numbers are known.
    pub fn contains_any(&self, mut tokens: impl Iterator<Item = TokenId>) -> bool {
        let ranges = self.ranges().unwrap_or_default();
        let contains = |token: TokenId| {
            let at = ranges.partition_point(|&(_, high)| high < token.0);
            ranges.get(at).is_some_and(|&(low, _)| low <= token.0)
        };
        tokens.any(contains)
    }
}

impl fmt::Display for TokenPattern {
    /// Notation of Lark grammars: `<|call|>`, `<[7-9,12]>`, `<[^7]>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TokenPart::{Named, Numbers, Optional};
        if let ([Named(name) | Optional(name)], false) = (&*self.parts, self.negated) {
            return f.write_str(name);
        }
        f.write_str(if self.negated { "<[^" } else { "<[" })?;
        for (at, part) in self.parts.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match part {
                Named(name) | Optional(name) => write!(f, "{comma}{name}")?,
                Numbers(low, high) if low == high => write!(f, "{comma}{low}")?,
                Numbers(low, high) => write!(f, "{comma}{low}-{high}")?,
            }
        }
        f.write_str("]>")
    }
}

/// A special token of the name, or the only token whose text it is.
fn find(vocabulary: &Vocabulary, name: &Arc<str>) -> Result<TokenId, TokenError> {
    let spelled = || vocabulary.texts().find(|(_, text)| *text == name.as_bytes());
    let found = vocabulary.named(name).or_else(|| spelled().map(|(token, _)| token));
    found.ok_or_else(|| TokenError::Unknown {
        name: Arc::clone(name),
        nearest: nearest(vocabulary, name),
    })
}

/// The vocabulary's names that share most of their beginning with one, in words.
fn nearest(vocabulary: &Vocabulary, name: &str) -> String {
    let shared = |other: &str| other.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let mut names: Vec<&str> = vocabulary.names().map(|(name, _)| name).collect();
    names.sort_by_key(|other| (std::cmp::Reverse(shared(other)), *other));
    let listed = names.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(" ");
    match names.len() {
        0 => ": none of its tokens has a name".to_owned(),
        len if len > MAX_LISTED => format!("; of its {len} names the nearest are {listed}"),
        _ => format!("; it has {listed}"),
    }
}

/// The ranges ascending, those that meet as one.
fn joined(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut joined = Vec::<(u32, u32)>::with_capacity(ranges.len());
    for (low, high) in ranges {
        match joined.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// Gaps between and beside ranges that ascend and are apart, up to `last`.
fn others(ranges: &[(u32, u32)], last: u32) -> Vec<(u32, u32)> {
    let (mut others, mut next) = (Vec::new(), Some(0));
    for &(low, high) in ranges {
        if let Some(next) = next.filter(|&next| next < low) {
            others.push((next, low - 1));
        }
        next = high.checked_add(1);
    }
    others.extend(next.filter(|&next| next <= last).map(|next| (next, last)));
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let tokens = [Some("a"), None, Some("<think>"), None, Some("b"), None];
        let names = [(1, "<call>"), (3, "<end>")].map(|(id, name)| (TokenId(id), name.to_owned()));
        Vocabulary::new(tokens, [TokenId(3)]).unwrap().with_names(names).unwrap()
    }

    fn resolved(parts: &[TokenPart], negated: bool) -> Result<Vec<(u32, u32)>, TokenError> {
        let pattern = TokenPattern { parts: parts.into(), negated };
        let found = pattern.resolved(&vocabulary())?;
        Ok(found.ranges().unwrap())
    }

    #[test]
    fn names_and_numbers_become_ranges() {
        use TokenPart::Numbers;
        let named = |name: &str| TokenPart::Named(name.into());
        assert_eq!(resolved(&[named("<call>")], false), Ok(vec![(1, 1)]));
        assert_eq!(resolved(&[named("<think>")], false), Ok(vec![(2, 2)]));
        assert_eq!(
            resolved(&[Numbers(4, 5), Numbers(0, 1), Numbers(2, 2)], false),
            Ok(vec![(0, 2), (4, 5)])
        );
        assert_eq!(
            resolved(&[Numbers(0, 0), named("<end>"), Numbers(5, 5)], true),
            Ok(vec![(1, 2), (4, 4)])
        );
        assert_eq!(resolved(&[], true), Ok(vec![(0, 2), (4, 5)]), "3 ends the output");
        assert_eq!(
            resolved(&[Numbers(6, 9)], false),
            Err(TokenError::Outside { number: 6, last: 5 })
        );
        let unknown = resolved(&[named("<calls>")], false).unwrap_err().to_string();
        assert!(unknown.ends_with("none of this name; it has <call> <end>"), "{unknown}");
    }

    #[test]
    fn a_name_is_no_number_before_there_is_a_vocabulary() {
        assert_eq!(TokenPattern::named("<call>").ranges(), Err("<call>"));
        let pattern = TokenPattern { parts: [TokenPart::Numbers(0, 6)].into(), negated: true };
        assert_eq!(pattern.ranges(), Ok(vec![(7, u32::MAX)]));
    }
}

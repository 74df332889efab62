//! Tokens in groups, by what is left of a text after each.

use palmette_core::{TokenId, mask};

/// Number where there is none.
pub(super) const NONE: u32 = u32::MAX;

/// The tokens after a position by a number of each: of tokens to the end, or of the position after
/// it.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// The greatest number first.
    pub(super) groups: Vec<Group>,
}

/// Tokens of one number.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) number: u32,
    pub(super) tokens: Tokens,
}

/// Set of tokens.
#[derive(Debug)]
pub(super) enum Tokens {
    Row(Box<[u32]>),
    List(Box<[TokenId]>),
}

/// Tokens by a number of each, as they are found.
#[derive(Default)]
pub(super) struct TokenGroups {
    pub(super) groups: Vec<(u32, Vec<TokenId>)>,
}

impl TokenGroups {
    /// The tokens of a number. Those found one after another mostly are alike, and the different
    /// numbers are few.
    pub(super) fn of(&mut self, number: u32) -> &mut Vec<TokenId> {
        let known = self.groups.iter().rposition(|&(of, _)| of == number);
        let at = known.unwrap_or_else(|| {
            self.groups.push((number, Vec::new()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    pub(super) fn into_profile(mut self, words: usize) -> Profile {
        self.groups.sort_unstable_by_key(|&(number, _)| std::cmp::Reverse(number));
        let group = |(number, list)| Group { number, tokens: Tokens::new(list, words) };
        Profile { groups: self.groups.into_iter().map(group).collect() }
    }
}

impl Tokens {
    /// The smaller form of two: a row of so many words, or a list.
    pub(super) fn new(list: Vec<TokenId>, words: usize) -> Self {
        if list.len() <= words {
            return Self::List(list.into());
        }
        let mut row = vec![0; words];
        list.iter().for_each(|&token| mask::insert(&mut row, token));
        Self::Row(row.into())
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Row(row) => size_of_val(&**row),
            Self::List(list) => size_of_val(&**list),
        }
    }

    /// Writes the mask of these tokens.
    pub(super) fn fill(&self, mask: &mut [u32]) {
        mask.fill(0);
        self.join(mask);
    }

    /// The lowest of them.
    pub(super) fn first(&self) -> Option<TokenId> {
        match self {
            Self::Row(row) => mask::iter(row).next(),
            Self::List(list) => list.iter().min().copied(),
        }
    }

    /// Adds these tokens to a mask.
    pub(super) fn join(&self, mask: &mut [u32]) {
        match self {
            Self::Row(row) => mask.iter_mut().zip(row).for_each(|(word, &own)| *word |= own),
            Self::List(list) => list.iter().for_each(|&token| mask::insert(mask, token)),
        }
    }
}

impl Profile {
    pub(super) fn bytes(&self) -> usize {
        self.groups.iter().map(|group| size_of::<Group>() + group.tokens.bytes()).sum()
    }

    /// Visits the tokens, with the tokens to the end after each where there is a way and the
    /// numbers are theirs.
    pub(super) fn visit(&self, mut visit: impl FnMut(TokenId, Option<usize>)) {
        for &Group { number, ref tokens } in &self.groups {
            let fewest = (number != NONE).then_some(number as usize);
            match tokens {
                Tokens::Row(row) => mask::iter(row).for_each(|token| visit(token, fewest)),
                Tokens::List(list) => list.iter().for_each(|&token| visit(token, fewest)),
            }
        }
    }

    /// Takes the tokens out of a mask after which more than `left` are needed.
    pub(super) fn keep(&self, left: usize, mask: &mut [u32]) {
        let too_long = |group: &&Group| group.number == NONE || group.number as usize > left;
        for group in self.groups.iter().take_while(too_long) {
            match &group.tokens {
                Tokens::Row(row) => mask.iter_mut().zip(row).for_each(|(word, &out)| *word &= !out),
                Tokens::List(list) => list.iter().for_each(|&token| mask::remove(mask, token)),
            }
        }
    }
}

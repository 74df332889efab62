//! Drafts by prompt look-up: tokens that followed the latest ones where these stood before.
//!
//! Answers quote: a name of the prompt, a member of the object before, the code that is to be
//! changed. A pass reads a guess behind the tokens that it has to read, and gives the logits after
//! each of them; what is then drawn is what would be drawn without, so that a guess saves passes
//! and changes no text. Cost: rows of passes, so guesses grow where they come true and pause where
//! they do not. Source: Leviathan, Kalman and Matias, arXiv 2211.17192, with the look-up in place
//! of a model; the tokens are verified by drawing them.

use palmette_core::TokenId;

/// The guesser of a draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Guesser {
    /// [`draft`], which costs nothing: it goes first.
    #[default]
    LookUp,
    /// A draft model, where look-up has no guess or pauses.
    Model,
}

/// Tokens that must be the same before a guess, at least, and those that are compared.
const LEAST_SAME: usize = 2;
const MOST_SAME: usize = 8;
/// Tokens before the latest ones in which they are looked for.
const LOOKED_AT: usize = 8192;
/// Tokens of the first guess.
const FIRST: usize = 3;
/// Passes without a guess after guesses that did not come true, at most.
const LONGEST_PAUSE: usize = 32;

/// Rule for the lengths of a text's drafts by one guesser, from those that came true.
#[derive(Clone, Debug)]
pub(super) struct DraftLengths {
    next: usize,
    /// Passes that are still made without one, and the next pause.
    waits: usize,
    pause: usize,
}

impl Default for DraftLengths {
    fn default() -> Self {
        Self { next: FIRST, waits: 0, pause: 1 }
    }
}

impl DraftLengths {
    /// Tokens of the draft of a pass; 0 for none.
    pub(super) fn next(&mut self, most: usize) -> usize {
        match self.waits {
            0 => self.next.min(most),
            _ => {
                self.waits -= 1;
                0
            }
        }
    }

    /// Takes account of a draft, of which the first tokens came true.
    pub(super) fn learn(&mut self, drafted: usize, came_true: usize) {
        match came_true {
            0 => {
                (self.waits, self.next) = (self.pause, FIRST);
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
            }
            _ => {
                self.pause = 1;
                self.next = if came_true == drafted { 2 * drafted } else { came_true + 1 };
            }
        }
    }
}

/// Tokens that followed the longest end of `tokens` that stands in it before, the latest place of
/// several; empty where no end of two does.
pub(super) fn draft(tokens: &[TokenId], most: usize) -> &[TokenId] {
    let len = tokens.len();
    let mut best = (LEAST_SAME - 1, len);
    for end in (len.saturating_sub(LOOKED_AT)..len).rev() {
        let pairs = tokens[..end].iter().rev().zip(tokens.iter().rev());
        let same = pairs.take(MOST_SAME).take_while(|(a, b)| a == b).count();
        if same > best.0 {
            best = (same, end);
            if same == MOST_SAME {
                break;
            }
        }
    }
    &tokens[best.1..len.min(best.1 + most)]
}

/// Logits after the tokens that a sequence has read, and after each of a draft that it read as
/// well.
#[derive(Debug)]
pub(super) struct Ahead {
    drafted: Vec<TokenId>,
    /// Rows of the logits, one more than drafted tokens.
    rows: Vec<f32>,
    /// Drafted tokens that came true.
    came_true: usize,
}

impl Ahead {
    pub(super) fn new(drafted: Vec<TokenId>, rows: Vec<f32>) -> Self {
        Self { drafted, rows, came_true: 0 }
    }

    /// The logits after the tokens that came true.
    pub(super) fn logits(&self) -> &[f32] {
        let width = self.rows.len() / (self.drafted.len() + 1);
        &self.rows[self.came_true * width..][..width]
    }

    /// Takes the tokens that follow as far as they were drafted; how many.
    pub(super) fn take(&mut self, tokens: &[TokenId]) -> usize {
        let left = &self.drafted[self.came_true..];
        let same = left.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        self.came_true += same;
        same
    }

    /// Drafted tokens, and those that came true.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.drafted.len(), self.came_true)
    }

    /// True where the sequence has read tokens that did not come true.
    pub(super) fn has_more(&self) -> bool {
        self.came_true < self.drafted.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<TokenId> {
        text.bytes().map(|byte| TokenId(byte.into())).collect()
    }

    #[test]
    fn the_longest_end_that_stands_before_is_continued() {
        for (text, most, expected) in [
            ("abcabd ab", 2, "d "),
            ("abcXabdYab", 9, "dYab"),
            ("1abc2bc3abc", 3, "2bc"),
            ("abab", 4, "ab"),
            ("aaaa", 4, "a"),
            ("abcdef", 4, ""),
            ("a", 4, ""),
            ("", 4, ""),
            ("abXab", 0, ""),
        ] {
            assert_eq!(draft(&tokens(text), most), tokens(expected), "{text}");
        }
    }

    #[test]
    fn lengths_grow_with_what_came_true_and_pause_without() {
        let mut lengths = DraftLengths::default();
        assert_eq!(lengths.next(8), 3);
        lengths.learn(3, 3);
        assert_eq!(lengths.next(8), 6);
        lengths.learn(6, 6);
        assert_eq!(lengths.next(8), 8);
        lengths.learn(8, 2);
        assert_eq!(lengths.next(8), 3);
        lengths.learn(3, 0);
        assert_eq!([lengths.next(8), lengths.next(8)], [0, 3]);
        lengths.learn(3, 0);
        assert_eq!([lengths.next(8), lengths.next(8), lengths.next(8)], [0, 0, 3]);
        assert_eq!(DraftLengths::default().next(0), 0);
    }

    #[test]
    fn logits_go_with_the_tokens_that_came_true() {
        let mut ahead = Ahead::new(tokens("ab"), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(ahead.logits(), [1.0, 2.0]);
        assert_eq!(ahead.take(&tokens("a")), 1);
        assert_eq!(ahead.logits(), [3.0, 4.0]);
        assert_eq!((ahead.take(&tokens("c")), ahead.has_more(), ahead.counts()), (0, true, (2, 1)));
        assert_eq!(ahead.take(&tokens("bc")), 1);
        assert_eq!((ahead.logits(), ahead.has_more()), (&[5.0, 6.0][..], false));
    }

    proptest! {
        /// The definition: of all places whose tokens before are the end's, the one with most of
        /// them the same, the latest of several.
        #[test]
        fn a_draft_is_that_of_its_definition(text in "[ab]{0,40}", most in 0_usize..6) {
            let tokens = tokens(&text);
            let same = |end: usize| {
                (0..=end.min(MOST_SAME)).rev().find(|&n| tokens[..end].ends_with(&tokens[tokens.len() - n..])).unwrap()
            };
            let places = (0..tokens.len()).filter(|&end| same(end) >= LEAST_SAME);
            let best = places.max_by_key(|&end| (same(end), end));
            let expected = best.map_or(&[][..], |end| &tokens[end..tokens.len().min(end + most)]);
            prop_assert_eq!(draft(&tokens, most), expected);
        }
    }
}

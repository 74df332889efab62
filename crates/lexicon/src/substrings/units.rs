//! Edges of units: where in a text substrings may begin, and where they may end.
//!
//! Whether one may end somewhere depends on what was read of it and the next character alone, or
//! that there is none: two places alike in these are both ends or neither. The index relies on it.

use palmette_core::SubstringUnit;
use regex_syntax::try_is_word_character;

/// Places in a text, a bit each.
#[derive(Debug)]
pub(super) struct Edges {
    /// First places of substrings.
    pub(super) begins: Vec<u64>,
    /// Places after the last of substrings.
    pub(super) ends: Vec<u64>,
}

impl Edges {
    /// No edges in a text of so many bytes.
    pub(super) fn new(len: usize) -> Self {
        let words = vec![0; len.div_ceil(64)];
        Self { begins: words.clone(), ends: words }
    }

    /// Adds the edges of a document that begins at a place of the text.
    pub(super) fn add(&mut self, document: &str, at: usize, unit: SubstringUnit) {
        match unit {
            SubstringUnit::Chars => self.add_chars(document, at),
            SubstringUnit::Words => self.add_words(document, at),
            SubstringUnit::Sentences => self.add_sentences(document, at),
        }
    }

    pub(super) fn is_begin(&self, at: usize) -> bool {
        self.begins[at / 64] >> (at % 64) & 1 == 1
    }

    pub(super) fn is_end(&self, at: usize) -> bool {
        self.ends[at / 64] >> (at % 64) & 1 == 1
    }

    fn add_chars(&mut self, document: &str, at: usize) {
        for (start, character) in document.char_indices() {
            set(&mut self.begins, at + start);
            set(&mut self.ends, at + start + character.len_utf8());
        }
    }

    /// Between two characters is an edge unless both are of a word; a blank is at neither side of a
    /// substring.
    fn add_words(&mut self, document: &str, at: usize) {
        let mut before = Kind::Blank;
        for (start, character) in document.char_indices() {
            let kind = Kind::from_char(character);
            if (before, kind) != (Kind::Word, Kind::Word) {
                self.add_edge(at + start, before, kind);
            }
            before = kind;
        }
        self.add_edge(at + document.len(), before, Kind::Blank);
    }

    fn add_edge(&mut self, at: usize, before: Kind, next: Kind) {
        if before != Kind::Blank {
            set(&mut self.ends, at);
        }
        if next != Kind::Blank {
            set(&mut self.begins, at);
        }
    }

    /// A sentence ends after `.`, `!`, `?` or `…`, and quotes or brackets that close, where a blank
    /// follows; after `。`, `！` or `？` and such wherever none of these follows; and with the last
    /// character of the document that is no blank. The next begins after the blanks.
    fn add_sentences(&mut self, document: &str, at: usize) {
        let document = document.trim_end();
        let (mut is_ended, mut is_blank_needed) = (false, true);
        let mut is_between = true;
        for (start, character) in document.char_indices() {
            let (is_mark, is_blank) = (is_mark(character), character.is_whitespace());
            let is_end =
                is_ended && (is_blank || !is_blank_needed && !is_mark && !is_closing(character));
            if is_end {
                set(&mut self.ends, at + start);
                is_between = true;
            }
            if is_between && !is_blank {
                set(&mut self.begins, at + start);
                is_between = false;
            }
            if is_mark {
                let is_wide = matches!(character, '。' | '！' | '？');
                is_blank_needed = (is_blank_needed || !is_ended) && !is_wide;
            }
            is_ended = is_mark || is_ended && is_closing(character);
        }
        if !document.is_empty() {
            set(&mut self.ends, at + document.len());
        }
    }
}

/// Characters by what they are to words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Word,
    Other,
}

impl Kind {
    fn from_char(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Self::Word,
            _ if character.is_whitespace() => Self::Blank,
            _ if character.is_ascii() => Self::Other,
            // The tables of word characters are among the features of this crate's dependency.
            _ if try_is_word_character(character).unwrap_or(true) => Self::Word,
            _ => Self::Other,
        }
    }
}

fn is_mark(character: char) -> bool {
    matches!(character, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}

fn is_closing(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | '”' | '’' | ')' | ']' | '}' | '»' | '›' | '」' | '』' | '）' | '】'
    )
}

fn set(words: &mut [u64], at: usize) {
    words[at / 64] |= 1 << (at % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of a document as a text with `[` before a begin and `]` after an end.
    #[track_caller]
    fn check(unit: SubstringUnit, document: &str, expected: &str) {
        let mut edges = Edges::new(document.len() + 8);
        edges.add(document, 7, unit);
        let mut shown = String::new();
        let mut place = 7;
        for character in document.chars().map(Some).chain([None]) {
            shown.extend(edges.is_end(place).then_some(']'));
            shown.extend(edges.is_begin(place).then_some('['));
            shown.extend(character);
            place += character.map_or(0, char::len_utf8);
        }
        assert_eq!(shown, expected);
        assert!((0..7).all(|at| !edges.is_begin(at) && !edges.is_end(at)));
    }

    #[test]
    fn words_are_runs_and_punctuation_stands_alone() {
        let check = |document, expected| check(SubstringUnit::Words, document, expected);
        check("", "");
        check(" \n", " \n");
        check("a", "[a]");
        check("the cat's hat. ", "[the] [cat]['][s] [hat][.] ");
        check("x_1 é\u{301}té -- 3.5", "[x_1] [é\u{301}té] [-][-] [3][.][5]");
        check("東京は、2つ", "[東京は][、][2つ]");
    }

    #[test]
    fn sentences_end_after_their_marks() {
        let check = |document, expected| check(SubstringUnit::Sentences, document, expected);
        check("  ", "  ");
        check("No mark ", "[No mark] ");
        check("One. Two!  Three?", "[One.] [Two!]  [Three?]");
        check("He said \"Go.\" Then 1.5 …\nso", "[He said \"Go.\"] [Then 1.5 …]\n[so]");
        check("a.b. c?! (d.) ", "[a.b.] [c?!] [(d.)] ");
        check("他说。「好！」我", "[他说。][「好！」][我]");
        check("。x.y", "[。][x.y]");
        check(". a. ", "[.] [a.] ");
    }

    #[test]
    fn characters_are_whole() {
        check(SubstringUnit::Chars, "aé \u{1F986}", "[a][é][ ][\u{1F986}]");
    }
}

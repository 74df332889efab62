//! Parts of rows that lexer states share, by the first byte of a token.
//!
//! What a token spells from a lexer state depends on where its first byte leads: on with the lexeme in progress, or into the next
//! one, where that has ended. After a name as after a bracket, the next lexeme is any of the grammar's, and after most beginnings
//! of a keyword most letters lead to the same name. So the vocabulary is spelled for each first byte and the state that it leads
//! to, once, and the rows of a state are put together from that.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use palmette_parser::blocks::{Letter, Line};
use palmette_parser::lexer::{Lexer, LexerError, LexerState};

use super::rows::Rows;
use super::spelling::Speller;
use super::streamline::Streamliner;
use super::tokens::Tokens;

/// Sequences with their tokens, ascending.
type Part = Arc<[(Box<[Letter]>, Tokens)]>;

/// Parts, found when they are first asked for. Grows until it is cleared; threads share it.
#[derive(Debug, Default)]
pub(super) struct Parts {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Parts by the first byte, and where it leads.
    by_first: HashMap<(u8, LexerState, Line), Part>,
    /// Parts of all first bytes together.
    whole: HashMap<Firsts, Part>,
    bytes: usize,
}

/// Targets of first bytes, ascending by byte; those that lead nowhere are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Firsts {
    states: Vec<(u8, LexerState)>,
    /// Line before them, as far as it is known.
    line: Line,
}

/// Ingredients of rows.
pub(super) struct PartMaker<'a> {
    pub(super) parts: &'a Parts,
    pub(super) speller: Speller<'a>,
    pub(super) lexer: &'a Lexer,
    pub(super) streamliner: &'a Streamliner,
    /// Words of a mask.
    pub(super) num_words: usize,
}

impl Parts {
    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.known.read().expect("no panic while held").bytes
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        *self.known.write().expect("no panic while held") = Known::default();
    }
}

impl PartMaker<'_> {
    /// The rows of a lexer state. Reports its steps to `spend`: those of the speller, and one for each row of a part.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded, and those of `spend`.
    pub(super) fn rows<E: From<LexerError>>(
        &self,
        state: LexerState,
        mut spend: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Rows, E> {
        let mut rows = Vec::new();
        let going_on = self.part(self.firsts(state, Line::UNKNOWN)?, &mut spend)?;
        self.add(&[], &going_on, &mut rows);
        for end in self.lexer.ends(state)? {
            let next = self.part(self.firsts(end.next, Line::OTHER)?, &mut spend)?;
            for terminal in end.terminals.iter() {
                spend(next.len() as u64)?;
                if self.speller.ignored.contains(terminal) {
                    self.add(&[], &next, &mut rows);
                    continue;
                }
                let newline = self.speller.indentation.map(|blocks| blocks.newline);
                let line = match newline == Some(terminal) {
                    true => Line::UNKNOWN.ended(),
                    false => Line::OTHER,
                };
                self.add(&[Letter { terminal, line }], &next, &mut rows);
            }
        }
        Ok(Rows::new(rows, self.num_words))
    }

    /// Adds those rows of a part, after what has ended, that are left of it.
    fn add(&self, ended: &[Letter], part: &Part, rows: &mut Vec<(Vec<Letter>, Tokens)>) {
        for (letters, tokens) in &**part {
            let mut letters = [ended, letters].concat();
            if self.streamliner.streamline_row(&mut letters) {
                rows.push((letters, tokens.clone()));
            }
        }
    }

    fn firsts(&self, state: LexerState, line: Line) -> Result<Firsts, LexerError> {
        let mut states = Vec::new();
        for byte in 0..=u8::MAX {
            states.extend(self.lexer.advance(state, byte)?.map(|next| (byte, next)));
        }
        // Without blocks nothing is known of any line.
        let line = if self.speller.indentation.is_some() { line } else { Line::OTHER };
        Ok(Firsts { states, line })
    }

    fn part<E: From<LexerError>>(
        &self,
        firsts: Firsts,
        spend: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Part, E> {
        let key = |&(byte, state)| (byte, state, firsts.line);
        let (mut parts, mut missing) = (Vec::new(), Vec::new());
        {
            let known = self.parts.known.read().expect("no panic while held");
            if let Some(whole) = known.whole.get(&firsts) {
                return Ok(whole.clone());
            }
            for first in &firsts.states {
                match known.by_first.get(&key(first)) {
                    Some(part) => parts.push(part.clone()),
                    None => missing.push(*first),
                }
            }
        }
        let mut found = Vec::new();
        if !missing.is_empty() {
            let spelled =
                self.speller.spell_by_first(self.lexer, &missing, firsts.line, &mut *spend)?;
            for (first, spelled) in missing.iter().zip(spelled) {
                let (mut rows, mut bytes) = (Vec::with_capacity(spelled.len()), 0);
                for (mut letters, tokens) in spelled {
                    if self.streamliner.streamline_row(&mut letters) {
                        let tokens = Tokens::new(tokens, self.num_words);
                        bytes += tokens.bytes();
                        rows.push((letters.into(), tokens));
                    }
                }
                let (part, own) = self.merged(&rows);
                parts.push(part.clone());
                found.push((key(first), part, bytes + own));
            }
        }
        let rows: Vec<_> = parts.iter().flat_map(|part| part.iter()).cloned().collect();
        spend(rows.len() as u64)?;
        let (whole, own) = self.merged(&rows);
        let mut known = self.parts.known.write().expect("no panic while held");
        // Another thread may have found the same meanwhile: what is kept counts once.
        for (key, part, bytes) in found {
            if known.by_first.insert(key, part).is_none() {
                known.bytes += bytes;
            }
        }
        let bytes = own + size_of_val(&*firsts.states);
        if known.whole.insert(firsts, whole.clone()).is_none() {
            known.bytes += bytes;
        }
        Ok(whole)
    }

    /// Rows in any order as a part, and how much memory that takes beside theirs.
    fn merged(&self, rows: &[(Box<[Letter]>, Tokens)]) -> (Part, usize) {
        let mut sorted: Vec<_> = rows.iter().collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut bytes = 0;
        let same = sorted.chunk_by(|(a, _), (b, _)| a == b);
        let part = same.map(|same| {
            let (tokens, own) =
                Tokens::union(same.iter().map(|(_, tokens)| tokens), self.num_words);
            bytes += own + size_of_val(&*same[0].0) + size_of::<(Box<[Letter]>, Tokens)>();
            (same[0].0.clone(), tokens)
        });
        let part = part.collect();
        (part, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use palmette_core::{Vocabulary, mask};

    use super::super::{Spellings, Steps};
    use super::*;
    use crate::vocabulary::{BytesBelow, VocabularyTrie};
    use palmette_frontends::lark::{self, LarkOptions};
    use palmette_parser::ignored_terminals;
    use palmette_parser::lexer::LexerLimits;

    const LETTERS: &[&str] =
        &["i", "f", "n", "1", ".", "=", " ", "\n", "(", ")", "\"", "/", "*", "é"];

    /// All texts of up to three of these, and some longer.
    fn vocabulary() -> Vocabulary {
        let mut texts = vec![String::new()];
        let mut from = 0;
        for _ in 0..3 {
            let until = texts.len();
            for at in from..until {
                let text = texts[at].clone();
                texts.extend(LETTERS.iter().map(|letter| format!("{text}{letter}")));
            }
            from = until;
        }
        texts.extend(["\n  if(", "iffin", "  \n  ", "/*i*/f", "\"in\"==1.1"].map(str::to_owned));
        Vocabulary::new(texts.iter().map(|text| Some(text.as_bytes())), []).expect("no end")
    }

    /// Compares the rows of each state that some bytes lead to with those of a walk of its own.
    fn check(grammar: &str, options: &LarkOptions) {
        let grammar = lark::parse(grammar, options).expect("a grammar");
        let lexer = Lexer::new(&grammar, &LexerLimits::default()).expect("a lexer");
        let vocabulary = vocabulary();
        let trie = VocabularyTrie::new(&vocabulary);
        let (below, ignored) = (BytesBelow::new(&trie), ignored_terminals(&grammar));
        let num_words = mask::num_words(vocabulary.num_tokens());
        let speller = Speller {
            tokens: &trie,
            below: &below,
            ignored: &ignored,
            indentation: grammar.indentation(),
        };
        let mut states = BTreeSet::from([lexer.start()]);
        for _ in 0..4 {
            for state in states.clone() {
                let ends = lexer.ends(state).expect("small").iter().map(|end| end.next);
                states.extend(ends);
                for byte in LETTERS.concat().bytes() {
                    states.extend(lexer.advance(state, byte).expect("small"));
                }
            }
        }
        assert!(states.len() > 10, "{} states", states.len());
        for steps in [Steps::NONE, Steps::first(1), Steps::ALL] {
            let (streamliner, parts) = (Streamliner::new(&grammar, steps), Parts::default());
            let maker = PartMaker {
                parts: &parts,
                speller,
                lexer: &lexer,
                streamliner: &streamliner,
                num_words,
            };
            for &state in &states {
                let rows = maker.rows(state, |_| Ok::<_, LexerError>(())).expect("small");
                let (spelled, _) = speller.spell(&lexer, state).expect("small");
                let spelled: Spellings = streamliner.streamline(spelled);
                assert_eq!(rows.spelled(num_words), spelled, "{state:?}, {steps:?}");
            }
        }
    }

    /// Keywords that names begin like, comments, and numbers that end before a dot or after it.
    const LANGUAGE: &str = r#"
        start: stmt*
        stmt: "if" "(" expr ")" stmt | NAME "=" expr | "fin"
        expr: NAME | NUMBER | STRING | "(" expr ")" | expr ("==" | "in" | "/" | "*" | "." NAME) expr
        NAME: /[a-zé][a-z0-9é]*/
        NUMBER: /[0-9]+(\.[0-9]+)?/
        STRING: /"[^"\n]*"/
        COMMENT: /\/\*(.|\n)*?\*\//
        %ignore COMMENT
        %ignore /[ \n]+/
    "#;

    #[test]
    fn rows_are_those_of_a_walk_of_their_own() {
        check(LANGUAGE, &LarkOptions::from_rule("start"));
    }

    #[test]
    fn rows_are_those_of_a_walk_where_depths_of_lines_matter() {
        let grammar = r#"
            start: (_NEWLINE | stmt)*
            stmt: "i" _NEWLINE | "if" "(" NAME ")" _NEWLINE _INDENT stmt+ _DEDENT
            NAME: /[finé]+/
            _NEWLINE: /(\n[\t ]*)+/
            %ignore /[\t ]+/
            %ignore /\/\*(.|\n)*?\*\//
            %declare _INDENT _DEDENT
        "#;
        check(grammar, &LarkOptions::from_rule("start").python_indentation());
    }
}

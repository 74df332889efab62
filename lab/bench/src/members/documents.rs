//! Substrings of a document made from a seed, by each unit.

use std::sync::Arc;

use palmette_core::{
    Cursor, MemberSet, SubstringRule, SubstringUnit, Vocabulary, VocabularyTrie, mask,
};
use palmette_lexicon::{MemberSpelling, SubstringSet, Substrings};
use serde::Serialize;

use super::strings::{skewed, words};
use super::{MembersError, TimedKind, Times, below, choose, fill, prefixes, timed};
use crate::machine::Machine;
use crate::random::Random;

/// Tokens of a substring that are followed, at most.
const NUM_STEPS: usize = 40;
/// Bytes of the shortest document: substrings begin 100 bytes before its end.
const MIN_BYTES: usize = 1_000;

/// Measurement of the substrings of a document.
#[derive(Clone, Debug)]
pub struct DocumentBench {
    /// Bytes of the document.
    pub bytes: usize,
    /// Random substrings whose tokens are followed.
    pub walks: usize,
    /// Seed of document and substrings.
    pub seed: u64,
}

/// Costs of the substrings of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DocumentReport {
    /// Bytes of the document.
    pub document_bytes: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Random substrings whose tokens were followed.
    pub walks: usize,
    /// Costs by unit.
    pub units: Vec<UnitReport>,
    /// Machine of the measurement.
    pub machine: Machine,
}

/// The substrings of one unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnitReport {
    /// The unit.
    pub unit: &'static str,
    /// Members.
    pub members: u64,
    /// Bytes of the index.
    pub bytes: usize,
    /// Bytes of the index for each of the document's.
    pub bytes_per_text_byte: f64,
    /// Bytes of its tables at the end.
    pub table_bytes: usize,
    /// Making the index, masks, cursors.
    pub times: Vec<TimedKind>,
}

impl DocumentBench {
    /// Measures; `stage` hears what is done next.
    ///
    /// # Errors
    /// When there is nothing to measure.
    pub fn run(
        &self,
        vocabulary: &Vocabulary,
        mut stage: impl FnMut(&str),
    ) -> Result<DocumentReport, MembersError> {
        let (bytes, walks, seed) = (self.bytes, self.walks, self.seed);
        if bytes < MIN_BYTES {
            return Err(MembersError(format!(
                "a document of {bytes} bytes is too short; measure at least {MIN_BYTES}"
            )));
        }
        if walks == 0 {
            return Err(MembersError("there are 0 walks; measure at least 1".to_owned()));
        }
        stage("making a document");
        let document = document(bytes, &words(vocabulary)?);
        let trie = VocabularyTrie::new(vocabulary);
        // What is made once for a vocabulary.
        trie.child_lists();
        let mut units = Vec::new();
        for unit in SubstringUnit::ALL {
            stage(&format!("substrings of {}", unit.name()));
            units.push(self.unit(unit, &document, &trie, vocabulary)?);
        }
        let machine = Machine::here();
        Ok(DocumentReport { document_bytes: document.len(), seed, walks, units, machine })
    }

    fn unit(
        &self,
        unit: SubstringUnit,
        document: &str,
        trie: &VocabularyTrie,
        vocabulary: &Vocabulary,
    ) -> Result<UnitReport, MembersError> {
        let make = || Substrings::new([document], SubstringRule::from(unit));
        let substrings = make().map_err(|error| MembersError(error.to_string()))?;
        let mut ready = Times::default();
        for _ in 0..9 {
            drop(ready.time(make));
        }
        let substrings = Arc::new(substrings);
        let set = SubstringSet::new(Arc::clone(&substrings), MemberSpelling::JsonString);
        let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
        let start = set.start().ok_or_else(|| {
            MembersError(format!("the document has no {}; choose more bytes", unit.name()))
        })?;
        let mut times: Vec<TimedKind> = ready.named("ready").into_iter().collect();
        let mut first = Times::default();
        first.time(|| fill(&set, &start, trie, &mut row));
        times.extend(first.named("first mask of the root"));
        for run in ["masks", "masks, again"] {
            times.extend(self.follow(run, &set, document, trie, &mut row));
        }
        Ok(UnitReport {
            unit: unit.name(),
            members: set.len(),
            bytes: substrings.bytes(),
            bytes_per_text_byte: substrings.bytes() as f64 / document.len() as f64,
            table_bytes: substrings.table_bytes(),
            times,
        })
    }

    /// Masks along the tokens of substrings.
    fn follow(
        &self,
        what: &str,
        set: &SubstringSet,
        document: &str,
        trie: &VocabularyTrie,
        row: &mut [u32],
    ) -> Vec<TimedKind> {
        let mut random = Random::new(self.seed ^ 3);
        let (mut masks, mut cursors) = (Times::default(), Times::default());
        let start = set.start().expect("there are members");
        let read_all = |at: &Cursor, bytes: &[u8]| {
            bytes.iter().try_fold(at.clone(), |at, &byte| set.advance(&at, byte))
        };
        for _ in 0..self.walks {
            // A place where a member begins.
            let mut rest = loop {
                let rest = &document.as_bytes()[below(&mut random, document.len() - 100)..];
                if read_all(&start, &rest[..20]).is_some() {
                    break rest;
                }
            };
            let mut at = start.clone();
            for _ in 0..NUM_STEPS {
                masks.time(|| fill(set, &at, trie, row));
                let tokens: Vec<_> = prefixes(trie, &rest[..rest.len().min(40)]).collect();
                let Some((len, _)) = choose(&mut random, &tokens) else { break };
                let (token, after) = rest.split_at(len);
                // Line breaks are escaped in JSON; the walk ends with its paragraph.
                let (next, us) = timed(|| read_all(&at, token));
                let Some(next) = next else { break };
                cursors.0.push(us);
                (at, rest) = (next, after);
            }
        }
        let kinds = [masks.named(what), cursors.named(&format!("cursors after tokens, {what}"))];
        kinds.into_iter().flatten().collect()
    }
}

/// Sentences of words as they are used, in paragraphs.
fn document(bytes: usize, words: &[String]) -> String {
    let mut random = Random::new(7);
    let mut text = String::new();
    while text.len() < bytes {
        for number in 0..5 + below(&mut random, 20) {
            let word = &words[skewed(&mut random, words.len())];
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            match number {
                0 => text.extend(first.chars().flat_map(char::to_uppercase)),
                _ => text.push_str(first),
            }
            text.push_str(rest);
            text.push_str(if below(&mut random, 12) == 0 { ", " } else { " " });
        }
        text.truncate(text.trim_end_matches([' ', ',']).len());
        text.push_str(if below(&mut random, 8) == 0 { ".\n\n" } else { ". " });
    }
    let cut = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(cut);
    text
}

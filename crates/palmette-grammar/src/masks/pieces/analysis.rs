//! One walk over the vocabulary for each piece.
//!
//! Some pieces are another but for a few lexemes ([`excepted`](super::excepted)). Where few tokens are left of a piece, its walk is
//! short. Others are mostly like one that is known already (its *model*, [`models`](super::models)). A string of at most forty more characters is like one of any length: it goes through the
//! vocabulary as that one sees it ([`merged`](super::merged)). A string in which a date is found is like any string: the walk
//! goes through both at once ([`compare`](super::compare)), and leaves out each part of the vocabulary where nothing can tell
//! them apart.

use hashbrown::HashMap;
use palmette_core::TokenId;
use std::ops::Range;
use std::sync::Arc;

use super::alike::Alike;
use super::compare::Comparison;
use super::steps::{Local, Steps};
use super::suffixes::SuffixId;
use super::token_set::TokenSet;
use super::{PieceId, Pieces, Unread};
use crate::byte_set::ByteSet;
use crate::regex::expressions::{Exceeded, ExprId};
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Interrupted};

/// What tokens do to a lexeme in progress.
#[derive(Debug)]
pub(super) struct Analysis {
    /// The tokens after which the lexeme goes on, or has just ended.
    pub(super) stay: TokenSet,
    /// What may be left of a token when the lexeme has ended within it, not at its front.
    pub(super) suffixes: Box<[Ended]>,
    /// The nodes of the vocabulary's trie where it may have, with more to come; ascending. Not told of guarded pieces, which are no models.
    pub(super) ends: Box<[u32]>,
}

/// Ends of a lexeme within tokens that ask the same of what follows.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) suffixes: SuffixId,
    /// Tokens that do not count.
    pub(super) except: Option<Arc<Except>>,
    pub(super) condition: ExprId,
    /// Whether tokens go on from there in many ways.
    pub(super) are_many: bool,
}

/// More tokens than this, counted for each of the ends that they go on from, are many.
const MANY: usize = if cfg!(test) { 40 } else { 4096 };

impl Analysis {
    /// The ends within some ranges of nodes, both ascending.
    pub(super) fn ends_in(&self, ranges: &[Range<u32>]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut ranges = ranges.iter().peekable();
        for &end in &*self.ends {
            while ranges.next_if(|range| range.end <= end).is_some() {}
            found.extend(ranges.peek().filter(|range| range.contains(&end)).map(|_| end));
        }
        found
    }
}

/// A walk is short while no more than one node of so many is left to it.
const SHORT: usize = 200;

/// Tokens of a trie of suffixes that do not count, each with the length of its suffix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Except {
    /// Ascending.
    pub(super) tokens: Box<[(TokenId, u32)]>,
}

/// More exceptions than this are not kept: the trie of suffixes is built without them.
const MAX_EXCEPTIONS: usize = 4096;

impl Except {
    /// Whether the token does not count where so many bytes are left of it.
    pub(super) fn contains(&self, token: TokenId, left: u32) -> bool {
        self.tokens.binary_search(&(token, left)).is_ok()
    }
}

impl Pieces {
    /// What tokens do to a piece, where `num_words` are those of a mask row.
    pub(super) fn analysis(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        piece: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<&Analysis, Unread> {
        let memo = &self.piece(piece).analysis;
        if let Some(known) = memo.get() {
            return Ok(known);
        }
        let mut at = Analysing::new(self, trie, num_words, budget);
        let found = at.find(piece)?;
        let except: usize = found
            .suffixes
            .iter()
            .flat_map(|ended| &ended.except)
            .map(|except| size_of_val(&*except.tokens))
            .sum();
        let bytes = found.stay.memory_bytes() + size_of_val(&*found.ends) + except;
        self.add_bytes(bytes);
        Ok(memo.get_or_init(|| Box::new(found)))
    }
}

/// A walk for one piece.
pub(super) struct Analysing<'a, 'b, 'c> {
    pub(super) pieces: &'a Pieces,
    pub(super) trie: &'a VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) steps: Steps<'a>,
    /// By condition, the bytes that it allows to come next.
    allowed: HashMap<ExprId, ByteSet>,
    pub(super) budget: &'b mut Budget<'c>,
}

impl<'a, 'b, 'c> Analysing<'a, 'b, 'c> {
    fn new(
        pieces: &'a Pieces,
        trie: &'a VocabularyTrie,
        num_words: usize,
        budget: &'b mut Budget<'c>,
    ) -> Self {
        let (steps, allowed) = (Steps::new(pieces), HashMap::new());
        Self { pieces, trie, num_words, steps, allowed, budget }
    }
}

impl Analysing<'_, '_, '_> {
    fn find(&mut self, piece: PieceId) -> Result<Analysis, Unread> {
        if self.pieces.is_guarded(piece) {
            return Ok(self.walk(piece, usize::MAX)?.expect("there are no more nodes"));
        }
        if let Some(found) = self.excepted(piece)? {
            return Ok(found);
        }
        let home = self.home(piece)?;
        let simpler = match home {
            None => self.simpler(piece)?,
            Some(_) => None,
        };
        let known = simpler.filter(|&simpler| self.pieces.piece(simpler).merged.get().is_some());
        // Once the vocabulary has been seen as a model sees it, going through that takes less than finding out that a walk
        // is not short.
        if let Some(simpler) = known
            && let Some(found) = self.by_merged(piece, simpler)?
        {
            return Ok(found);
        }
        // Where common bytes may come again and again, tokens are many.
        if home.is_none()
            && let Some(found) = self.walk(piece, self.few())?
        {
            return Ok(found);
        }
        match (home, simpler) {
            (Some(home), _) if home != piece => return self.like(piece, home),
            (None, Some(simpler)) => {
                if known.is_none()
                    && let Some(found) = self.by_merged(piece, simpler)?
                {
                    return Ok(found);
                }
                return self.like(piece, simpler);
            }
            _ => {}
        }
        let hub = self.hub(piece)?;
        if home == Some(piece) {
            self.pieces.add_hub(piece);
        }
        let found = match hub {
            Some((hub, alike)) => self.compare(piece, hub, &alike, usize::MAX)?,
            None => self.walk(piece, usize::MAX)?,
        };
        Ok(found.expect("there are no more nodes"))
    }

    /// With no more nodes left a walk is short.
    pub(super) fn few(&self) -> usize {
        self.trie.num_nodes() / SHORT
    }

    /// The piece without counts and exceptions, if that is another and no limit is in the way.
    fn simpler(&mut self, piece: PieceId) -> Result<Option<PieceId>, Interrupted> {
        match self.pieces.relaxed(piece, self.budget) {
            Err(Exceeded::Interrupted(why)) => Err(why),
            simpler => Ok(simpler.unwrap_or_default()),
        }
    }

    /// What tokens do to a piece that is like another.
    fn like(&mut self, piece: PieceId, model: PieceId) -> Result<Analysis, Unread> {
        if let Some(found) = self.compare(piece, model, &Alike::default(), self.few())? {
            return Ok(found);
        }
        let alike = self.alike(piece, model)?;
        let found = self.compare(piece, model, &alike, usize::MAX)?;
        Ok(found.expect("there are no more nodes"))
    }

    fn compare(
        &mut self,
        piece: PieceId,
        model: PieceId,
        alike: &Alike,
        most: usize,
    ) -> Result<Option<Analysis>, Unread> {
        let pair = (self.steps.number(piece)?, self.steps.number(model)?);
        let known = self.pieces.analysis(self.trie, self.num_words, model, self.budget)?;
        let found = Comparison::walk(self, pair, alike, known, most)?;
        Ok(found.map(|found| found.like(self, known)))
    }

    /// Walks all tokens through a piece; `None` where more than `most` nodes are left of them.
    fn walk(&mut self, piece: PieceId, most: usize) -> Result<Option<Analysis>, Unread> {
        let (mut stay, mut ends, mut guarded) = (Vec::new(), Vec::new(), Vec::new());
        let (trie, mut path) = (self.trie, vec![self.steps.number(piece)?]);
        let mut left = most;
        for first in 0..=u8::MAX {
            // Where few bytes go on at all, most of the time would go into coming by the root's other children.
            let Some(mut index) = trie.child(0, first) else { continue };
            if self.steps.advance(path[0], first, self.budget)?.is_none() {
                continue;
            }
            let end = trie.end(index);
            while index < end {
                self.budget.spend(1)?;
                let node = trie.node(index);
                path.truncate(node.depth);
                let from: Local = path[node.depth - 1];
                match self.steps.advance(from, node.byte, self.budget)? {
                    Some(next) => {
                        if left == 0 {
                            return Ok(None);
                        }
                        left -= 1;
                        stay.extend_from_slice(trie.tokens_in(trie.own_ranks(index)));
                        match self.steps.ends_if(next).filter(|_| trie.end(index) > index + 1) {
                            Some(ExprId::ALL) => ends.push(index as u32),
                            Some(condition) if self.goes_on_under(index, condition)? => {
                                guarded.push((condition, index as u32));
                            }
                            _ => {}
                        }
                        path.push(next);
                        index += 1;
                    }
                    None => index = trie.end(index),
                }
            }
        }
        guarded.sort_unstable();
        let guarded = guarded.chunk_by(|(one, _), (other, _)| one == other).flat_map(|ends| {
            let nodes: Vec<u32> = ends.iter().map(|&(_, node)| node).collect();
            self.suffixes(&nodes, ends[0].0)
        });
        let suffixes = self.suffixes(&ends, ExprId::ALL).into_iter().chain(guarded).collect();
        let stay = TokenSet::new(stay, self.num_words);
        Ok(Some(Analysis { stay, suffixes, ends: ends.into() }))
    }

    /// Whether some token goes on at a node as a condition allows, as far as the next byte tells.
    fn goes_on_under(&mut self, node: usize, condition: ExprId) -> Result<bool, Unread> {
        let allowed = match self.allowed.get(&condition) {
            Some(known) => *known,
            None => {
                let found = self.pieces.allowed_by(condition, self.budget)?;
                *self.allowed.entry(condition).or_insert(found)
            }
        };
        Ok(self.trie.children(node).any(|child| allowed.contains(child.byte)))
    }

    /// What follows these nodes.
    pub(super) fn suffixes(&self, ends: &[u32], condition: ExprId) -> Option<Ended> {
        let below = |&end: &u32| self.trie.ranks(end as usize).len();
        (!ends.is_empty()).then(|| Ended {
            suffixes: self.pieces.suffixes.of(self.trie, ends),
            except: None,
            condition,
            are_many: ends.iter().map(below).sum::<usize>() > MANY,
        })
    }

    /// What tokens do to a piece within which the tokens of `stay` stay, and which ends where its model does, but for
    /// `removed`, and at `added`. All are ascending.
    pub(super) fn like_model(
        &self,
        model: &Analysis,
        stay: TokenSet,
        removed: &[u32],
        added: &[u32],
    ) -> Analysis {
        let is_left = |end: &&u32| removed.binary_search(end).is_err();
        let mut ends: Vec<u32> = model.ends.iter().filter(is_left).copied().collect();
        let kept = !ends.is_empty() && model.suffixes.iter().all(|ended| ended.except.is_none());
        let except = if kept { self.exceptions(removed) } else { None };
        ends.extend_from_slice(added);
        ends.sort_unstable();
        let suffixes = match except {
            Some(except) => {
                let except = (!except.tokens.is_empty()).then(|| Arc::new(except));
                let same = model.suffixes.iter().map(|ended| Ended {
                    suffixes: ended.suffixes,
                    except: except.clone(),
                    condition: ended.condition,
                    are_many: ended.are_many,
                });
                same.chain(self.suffixes(added, ExprId::ALL)).collect()
            }
            None => self.suffixes(&ends, ExprId::ALL).into_iter().collect(),
        };
        Analysis { stay, suffixes, ends: ends.into() }
    }

    /// The tokens that go on after these nodes; `None` when they are many.
    fn exceptions(&self, removed: &[u32]) -> Option<Except> {
        let (trie, mut tokens) = (self.trie, Vec::new());
        for &node in removed {
            let (node, depth) = (node as usize, trie.node(node as usize).depth);
            let mut below = node + 1;
            while below < trie.end(node) {
                let left = (trie.node(below).depth - depth) as u32;
                let own = trie.tokens_in(trie.own_ranks(below));
                tokens.extend(own.iter().map(|&token| (token, left)));
                below += 1;
            }
            if tokens.len() > MAX_EXCEPTIONS {
                return None;
            }
        }
        tokens.sort_unstable();
        Some(Except { tokens: tokens.into() })
    }

    /// Where two pieces are alike.
    pub(super) fn alike(&mut self, piece: PieceId, model: PieceId) -> Result<Alike, Unread> {
        let pair = (self.steps.number(piece)?, self.steps.number(model)?);
        Alike::find(&mut self.steps, &self.pieces.shape, pair, self.budget)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use palmette_core::{Vocabulary, mask};
    use proptest::prelude::*;

    use super::*;
    use crate::Regex;
    use crate::regex::parse::{Dialect, Flags, parse_text};

    const LETTERS: &[&str] = &["a", "b", "e", "1", "\"", "\\", ",", "-", " ", "}", "é"];

    /// All texts of up to three characters and some that are longer, so that few tokens are a small part of them.
    static TRIE: LazyLock<VocabularyTrie> = LazyLock::new(|| {
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
        for part in ["a", "e", "1", "ab", "1,", "\\\"", "é"] {
            texts.extend([4, 8, 20].map(|times| part.repeat(times)));
            texts.extend([",", "\"e", "}b"].map(|end| part.repeat(5) + end));
        }
        let vocabulary = Vocabulary::new(texts.iter().map(|text| Some(text.as_bytes())), []);
        VocabularyTrie::new(&vocabulary.expect("no token ends a text"))
    });

    fn num_words() -> usize {
        mask::num_words(TRIE.num_ranks() + 1)
    }

    fn regex(pattern: &str) -> Regex {
        parse_text(pattern, Dialect::Rust, Flags::default()).expect(pattern)
    }

    /// The piece of all that an expression matches.
    fn piece(pieces: &Pieces, regex: &Regex) -> Option<PieceId> {
        let mut budget = Budget::unlimited();
        let mut growing = pieces.growing();
        let expr = growing.expressions.making(&mut budget).compile(regex).expect("small");
        pieces.intern(&mut growing, expr, &mut budget).expect("small")
    }

    /// Tokens with how much is left of them where the lexeme has ended.
    fn left_over(pieces: &Pieces, analysis: &Analysis) -> BTreeSet<(TokenId, u32)> {
        let mut found = BTreeSet::new();
        for Ended { suffixes, except, .. } in &analysis.suffixes {
            let mut work = vec![*suffixes];
            while let Some(id) = work.pop() {
                let node = pieces.suffixes.node(id);
                let counts =
                    |token| !except.as_ref().is_some_and(|e| e.contains(token, node.depth()));
                if node.depth() > 0 {
                    let tokens = node.tokens().iter().filter(|&&token| counts(token));
                    found.extend(tokens.map(|&token| (token, node.depth())));
                }
                work.extend(
                    (0..node.bytes().len()).map(|at| pieces.suffixes.child_at(&TRIE, id, at)),
                );
            }
        }
        found
    }

    /// Compares what is found for a piece, given what is known of others, with a walk through the whole vocabulary.
    fn check(pieces: &Pieces, piece: PieceId, name: &str) {
        let (trie, num_words) = (&*TRIE, num_words());
        let found =
            pieces.analysis(trie, num_words, piece, &mut Budget::unlimited()).expect("small");
        let budget = &mut Budget::unlimited();
        let mut at = Analysing::new(pieces, trie, num_words, budget);
        let walked = at.walk(piece, usize::MAX).expect("small").expect("no limit");
        let words = |analysis: &Analysis| analysis.stay.to_words(num_words);
        assert_eq!(words(found), words(&walked), "tokens that stay within {name}");
        assert_eq!(found.ends, walked.ends, "where {name} ends");
        assert_eq!(left_over(pieces, found), left_over(pieces, &walked), "what follows {name}");
    }

    /// Checks what is left of a pattern after some bytes, as long as something is.
    fn check_along(pieces: &Pieces, pattern: &str, bytes: &[u8]) {
        check_all_along(pieces, &regex(pattern), pattern, bytes);
    }

    fn check_all_along(pieces: &Pieces, regex: &Regex, name: &str, bytes: &[u8]) {
        let mut at = piece(pieces, regex);
        for (read, byte) in bytes.iter().copied().map(Some).chain([None]).enumerate() {
            let Some(here) = at else { break };
            check(pieces, here, &format!("{name} after {}", bytes[..read].escape_ascii()));
            let next = |byte| pieces.advance(here, byte, &mut Budget::unlimited()).expect("small");
            at = byte.and_then(next);
        }
    }

    /// Six digits lead back to where none was read, and the lexeme may end there; any text may not.
    #[test]
    fn bytes_that_lead_back_to_the_first_pair_show_that_it_differs_in_its_end() {
        check_along(&Pieces::new(&TRIE), "(1{6})*", b"");
    }

    /// Whatever is left of a count: at once, in the middle of a character, and when it is used up.
    #[test]
    fn pieces_that_count_are_walked_as_their_model_sees_the_vocabulary() {
        let pieces = Pieces::new(&TRIE);
        for pattern in [
            "[ab1é]{0,9}1",
            "[^\",]{3,6}\"",
            "[ab1é]{4}",
            "(?:[^ ]+ +){0,9}[^ ]+",
            "(?:ab|é){2,8},",
        ] {
            check_along(&pieces, pattern, "ab1éab 1ab ab1".as_bytes());
        }
        let merged = |at| pieces.piece(PieceId(at)).merged.get().is_some();
        let num_pieces = pieces.growing().num_pieces as u32;
        assert!((0..num_pieces).filter(|&at| merged(at)).count() >= 4);
    }

    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a",
            "b",
            "e",
            "1",
            "1",
            ",",
            "\"",
            "é",
            "[abe]",
            "[^\"]",
            "[^a]",
            "[abe1]",
            "[1-9]",
            "-",
            "\\\\.",
            "[^\"\\\\]",
        ]);
        let times =
            prop::sample::select(vec!["*", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,9}", "{6}"]);
        leaf.prop_map(str::to_owned).prop_recursive(3, 10, 3, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
                prop::collection::vec(inner.clone(), 2..3)
                    .prop_map(|parts| format!("(?:{})", parts.join("|"))),
                (inner, times.clone()).prop_map(|(inner, times)| format!("(?:{inner}){times}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// In any order, so that any may be the model of any other.
        #[test]
        fn what_is_found_is_what_a_walk_finds(
            patterns in prop::collection::vec(
                (pattern(), prop::collection::vec(prop::sample::select(b"abe11\",-\\".to_vec()), 0..4)),
                1..12,
            ),
        ) {
            let pieces = Pieces::new(&TRIE);
            for (pattern, bytes) in &patterns {
                check_along(&pieces, pattern, bytes);
            }
        }

        /// Whatever is excepted, before and after whatever, and whatever is left of it.
        #[test]
        fn what_is_found_of_exceptions_is_what_a_walk_finds(
            (head, of, rest) in (
                prop::sample::select(vec!["", "\"", " *\"", "a?", "[ab]*1"]),
                prop::sample::select(vec![
                    "[^\"]*", "[^\"\\\\]*", "[abe]*", "(?:[^\"\\\\]|\\\\.)*", "(?:a|b|é|ee)*", "[abe]{0,9}",
                    "[^1]+", "(?:ab|e)*",
                ]),
                prop::sample::select(vec!["\"", "\"[ 1]*,", "1", "e", "(?:-|\"b)", "a*", ""]),
            ),
            but in prop::collection::vec(
                prop::sample::select(vec![
                    "", "a", "ab", "abe", "ea", "b", "é", "aé", "aaaa", "e\\\\", "\\\\\"", "a.*", "[ab]{1,3}", "e*", "[^a]*",
                ]),
                1..5,
            ),
            bytes in prop::collection::vec(prop::sample::select("aabe \"1\\-".as_bytes().to_vec()), 0..6),
        ) {
            let but_regex = Regex::alternate(but.iter().map(|pattern| regex(pattern)));
            let part = Regex::and([regex(of), Regex::complement(but_regex)]);
            let whole = Regex::concat([regex(head), part, regex(rest)]);
            let name = format!("{head:?}, {of:?} but {but:?}, {rest:?}");
            check_all_along(&Pieces::new(&TRIE), &whole, &name, &bytes);
        }
    }

    /// Names but declared ones are not compared with names, byte by byte.
    #[test]
    fn names_are_found_by_their_exceptions() {
        let pieces = Pieces::new(&TRIE);
        let but = Regex::alternate(["ab", "abe", "b-", ""].map(Regex::literal));
        let part = Regex::and([regex("[^\"]*"), Regex::complement(but)]);
        let whole = Regex::concat([regex(" *\""), part, regex("\"")]);
        for bytes in ["", " ", "\"", "\"a", "\"ab"] {
            let after = |piece, &byte| {
                pieces.advance(piece, byte, &mut Budget::unlimited()).expect("small")
            };
            let at = bytes.as_bytes().iter().try_fold(piece(&pieces, &whole).expect("some"), after);
            let budget = &mut Budget::unlimited();
            let mut analysing = Analysing::new(&pieces, &TRIE, num_words(), budget);
            assert!(analysing.excepted(at.expect("some")).expect("small").is_some(), "{bytes:?}");
        }
    }
}

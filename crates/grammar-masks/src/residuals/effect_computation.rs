//! Token effect of a residual: one walk over the vocabulary trie, or a difference from a reference.
//!
//! A residual of which few tokens are left has a short walk. Others are mostly like one that is
//! known already, their [reference](super::references): a string of at most forty more characters
//! is like one of any length, a name that is none of the declared ones like any name, a string in
//! which a date is found like any string. Their effects are a [difference](super::difference), for
//! counts through the vocabulary trie quotiented by the reference
//! ([`quotient_trie`](super::quotient_trie)).

use std::sync::Arc;

use palmette_core::vocabulary_trie::Visit;
use palmette_core::{VocabularyTrie, mask};
use palmette_grammar_regex::ByteSet;
use palmette_grammar_regex::expressions::{Exceeded, ExprId};

use super::Residuals;
use super::bounded_equivalence::BoundedEquivalence;
use super::mask_failure::MaskFailure;
use super::residual_id::ResidualId;
use super::token_effect::{EndGroup, Exceptions, GuardedEnds, TokenEffect};
use super::transitions::Transitions;
use crate::{Budget, Interrupted};

/// More tokens than this, counted for each of the ends that they go on from, are many.
const MANY: usize = if cfg!(test) { 40 } else { 4096 };

/// A walk is short while no more than one node of so many is left to it.
const SHORT: usize = 200;

/// A walk is much shorter than that of all tokens while no more than one node of so many is left.
const MEDIUM: usize = 10;

/// More exceptions than this are not kept: the trie of suffixes is built without them.
const MAX_EXCEPTIONS: usize = 4096;

impl Residuals {
    /// Token effect of a residual, where `num_words` are those of a mask row.
    pub(super) fn effect(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        residual: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<&TokenEffect, MaskFailure> {
        let memo = &self.residual(residual).effect;
        if let Some(known) = memo.get() {
            return Ok(known);
        }
        let mut at = EffectComputation::new(self, trie, num_words, budget);
        let found = at.find(residual)?;
        let except: usize = found
            .suffixes
            .iter()
            .flat_map(|ended| &ended.except)
            .map(|except| size_of_val(&*except.tokens))
            .sum();
        let ends = found.ends.as_ref().map_or(0, |ends| size_of_val(&**ends));
        self.add_bytes(ends + except);
        Ok(memo.get_or_init(|| Box::new(found)))
    }
}

/// A walk for one residual.
pub(super) struct EffectComputation<'a, 'b, 'c> {
    pub(super) residuals: &'a Residuals,
    pub(super) trie: &'a VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) steps: Transitions<'a>,
    pub(super) budget: &'b mut Budget<'c>,
}

impl<'a, 'b, 'c> EffectComputation<'a, 'b, 'c> {
    fn new(
        residuals: &'a Residuals,
        trie: &'a VocabularyTrie,
        num_words: usize,
        budget: &'b mut Budget<'c>,
    ) -> Self {
        Self { residuals, trie, num_words, steps: Transitions::new(residuals), budget }
    }
}

impl EffectComputation<'_, '_, '_> {
    fn find(&mut self, residual: ResidualId) -> Result<TokenEffect, MaskFailure> {
        if self.residuals.is_guarded(residual) {
            return self.find_guarded(residual);
        }
        let home = self.home(residual)?;
        let simpler = if home.is_none() { self.simpler(residual)? } else { None };
        // Once the vocabulary has been seen as a reference sees it, going through that takes less
        // than finding out that a walk is not short.
        let is_known =
            |&simpler: &ResidualId| self.residuals.residual(simpler).quotient.get().is_some();
        let known = simpler.filter(is_known);
        if let Some(simpler) = known
            && let Some(found) = self.by_quotient(residual, simpler)?
        {
            return Ok(found);
        }
        // Where common bytes may come again and again, tokens are many.
        if home.is_none()
            && let Some(found) = self.walk(residual, self.few())?
        {
            return Ok(found);
        }
        if let Some(simpler) = simpler
            && known.is_none()
            && let Some(found) = self.by_quotient(residual, simpler)?
        {
            return Ok(found);
        }
        if let Some(reference) = home.filter(|&home| home != residual).or(simpler) {
            return self.like(residual, reference);
        }
        let reference = self.best_reference(residual)?;
        if home.is_some() {
            self.residuals.add_reference(residual);
        }
        let found = match reference {
            Some((reference, equivalence)) => {
                self.difference(residual, reference, &equivalence, usize::MAX)?
            }
            None => self.walk(residual, usize::MAX)?,
        };
        Ok(found.expect("there are no more nodes"))
    }

    /// Token effect of a guarded residual. Of a name that may be a keyword still, or that comes
    /// where other keywords may, nearly all is what it is of any name.
    fn find_guarded(&mut self, residual: ResidualId) -> Result<TokenEffect, MaskFailure> {
        // To compare it with several others takes longer than a walk that is not quite short.
        if let Some(found) = self.walk(residual, 4 * self.few())? {
            return Ok(found);
        }
        let references = self.residuals.guarded_references();
        for &reference in &references {
            let none = BoundedEquivalence::default();
            if let Some(found) = self.difference(residual, reference, &none, self.few())? {
                return Ok(found);
            }
        }
        // In a comment most tokens are what they are in another, whatever it is that ends them.
        for reference in references {
            let equivalence = self.equivalence(residual, reference)?;
            if equivalence.weight(&self.residuals.shape) <= self.medium() as u64
                && let Some(found) =
                    self.difference(residual, reference, &equivalence, self.medium())?
            {
                return Ok(found);
            }
        }
        let found = self.walk(residual, usize::MAX)?.expect("there are no more nodes");
        self.residuals.add_guarded_reference(residual);
        Ok(found)
    }

    /// With no more nodes left a walk is short.
    pub(super) fn few(&self) -> usize {
        self.trie.num_nodes() / SHORT
    }

    /// With no more nodes left a walk takes much less than that of all tokens.
    fn medium(&self) -> usize {
        self.trie.num_nodes() / MEDIUM
    }

    /// The residual without counts and exceptions, if that is another and no limit is in the way.
    fn simpler(&mut self, residual: ResidualId) -> Result<Option<ResidualId>, Interrupted> {
        match self.residuals.relaxed(residual, self.budget) {
            Err(Exceeded::Interrupted(why)) => Err(why),
            simpler => Ok(simpler.unwrap_or_default()),
        }
    }

    /// Token effect of a residual that is like another.
    fn like(
        &mut self,
        residual: ResidualId,
        reference: ResidualId,
    ) -> Result<TokenEffect, MaskFailure> {
        if let Some(found) =
            self.difference(residual, reference, &BoundedEquivalence::default(), self.few())?
        {
            return Ok(found);
        }
        let equivalence = self.equivalence(residual, reference)?;
        let found = self.difference(residual, reference, &equivalence, usize::MAX)?;
        Ok(found.expect("there are no more nodes"))
    }

    /// Walks all tokens through a residual; `None` where more than `most` nodes are left of them.
    pub(super) fn walk(
        &mut self,
        residual: ResidualId,
        most: usize,
    ) -> Result<Option<TokenEffect>, MaskFailure> {
        let (mut ends, mut guarded) = (Vec::new(), GuardedEnds::default());
        let mut words = vec![0; self.num_words];
        let (trie, root) = (self.trie, self.steps.number(residual)?);
        let (mut path, mut left, mut last) = (Vec::new(), most, 0);
        for first in 0..=u8::MAX {
            // Where few bytes go on at all, most of the time would go into coming by the root's
            // other children.
            let Some(index) = trie.child(0, first) else { continue };
            if self.steps.advance(root, first, self.budget)?.is_none() {
                continue;
            }
            let ended = trie.walk(index..trie.end(index), root, &mut path, |node, &from| {
                self.budget.spend(1)?;
                let Some(next) = self.steps.advance(from, node.byte, self.budget)? else {
                    return Ok(Visit::Past);
                };
                if left == 0 {
                    return Ok(Visit::Stop);
                }
                left -= 1;
                let index = node.index;
                let tokens = trie.tokens_in(trie.own_ranks(index));
                tokens.iter().for_each(|&token| mask::insert(&mut words, token));
                match self.steps.ends_if(next).filter(|_| trie.end(index) > index + 1) {
                    Some(ExprId::ALL) => ends.push(index as u32),
                    Some(condition) => {
                        // PERF: nearly always the one of the last end, and a name may end anywhere.
                        match guarded.get_index_mut(last) {
                            Some((known, nodes)) if *known == condition => nodes.push(index as u32),
                            _ => {
                                let entry = guarded.entry(condition);
                                last = entry.index();
                                entry.or_default().push(index as u32);
                            }
                        }
                    }
                    None => {}
                }
                Ok::<_, MaskFailure>(Visit::Below(next))
            })?;
            if !ended {
                return Ok(None);
            }
        }
        let suffixes = self.suffixes(&ends, ExprId::ALL).into_iter();
        let suffixes = suffixes.chain(self.guarded_suffixes(&guarded)?).collect();
        let consumed = self.residuals.encode(&words, None);
        let ends = (!self.residuals.is_guarded(residual)).then(|| ends.into());
        Ok(Some(TokenEffect { consumed, suffixes, ends }))
    }

    /// Suffix trie of what follows these nodes.
    fn suffixes(&self, ends: &[u32], condition: ExprId) -> Option<EndGroup> {
        let below = |&end: &u32| self.trie.ranks(end as usize).len();
        (!ends.is_empty()).then(|| EndGroup {
            suffixes: self.residuals.suffixes.of(self.trie, ends, 0),
            except: None,
            condition,
            are_many: ends.iter().map(below).sum::<usize>() > MANY,
        })
    }

    /// Suffix tries of what follows these nodes, by the condition there, where that allows
    /// something.
    fn guarded_suffixes(&mut self, ends: &GuardedEnds) -> Result<Vec<EndGroup>, MaskFailure> {
        let mut found = Vec::new();
        for (&condition, nodes) in ends {
            let nodes = nodes.iter().copied();
            let nodes = self.residuals.going_on(self.trie, nodes, condition, self.budget)?;
            found.extend(self.suffixes(&nodes, condition));
        }
        Ok(found)
    }

    /// Token effect of a residual by which the tokens of `words` are consumed, and which ends where
    /// its reference does, but for `removed`, and at `added`, with the conditions there; `None`
    /// where the reference's ends are not told and too many of them are removed.
    pub(super) fn like_reference(
        &mut self,
        reference: &TokenEffect,
        words: &[u32],
        removed: &[(ExprId, u32)],
        added: &GuardedEnds,
    ) -> Result<Option<TokenEffect>, MaskFailure> {
        let mut patched = Some(Vec::with_capacity(reference.suffixes.len()));
        for ended in &reference.suffixes {
            let alike = removed.iter().filter(|(condition, _)| *condition == ended.condition);
            let nodes = alike.map(|&(_, node)| node as usize);
            let allowed = self.residuals.allowed_by(ended.condition, self.budget)?;
            let Some(except) = self.exceptions(nodes, &allowed).filter(|_| ended.except.is_none())
            else {
                patched = None;
                break;
            };
            let except = (!except.tokens.is_empty()).then(|| Arc::new(except));
            patched.as_mut().expect("none yet").push(EndGroup { except, ..*ended });
        }
        let ends = reference.ends.as_ref().map(|ends| {
            let mut gone: Vec<u32> = removed.iter().map(|&(_, node)| node).collect();
            gone.sort_unstable();
            let is_left = |end: &&u32| gone.binary_search(end).is_err();
            let mut left: Vec<u32> = ends.iter().filter(is_left).copied().collect();
            patched.take_if(|_| left.is_empty());
            left.extend(added.values().flatten());
            left.sort_unstable();
            left
        });
        let suffixes = match (patched, &ends) {
            (Some(same), _) => same.into_iter().chain(self.guarded_suffixes(added)?).collect(),
            (None, Some(ends)) => self.suffixes(ends, ExprId::ALL).into_iter().collect(),
            (None, None) => return Ok(None),
        };
        let consumed = self.residuals.encode(words, Some(&reference.consumed));
        Ok(Some(TokenEffect { consumed, suffixes, ends: ends.map(Into::into) }))
    }

    /// The tokens that go on after these nodes with a byte that is allowed there; `None` when they
    /// are many.
    ///
    /// PERF: after the beginning of a keyword a name may end, as long as no letter follows, and
    /// nearly all tokens that go on there do so with a letter.
    fn exceptions(
        &self,
        removed: impl Iterator<Item = usize>,
        allowed: &ByteSet,
    ) -> Option<Exceptions> {
        let (trie, mut tokens) = (self.trie, Vec::new());
        for node in removed {
            let depth = trie.node(node).depth;
            for child in trie.children(node).filter(|child| allowed.contains(child.byte)) {
                for below in child.index..trie.end(child.index) {
                    let left = (trie.node(below).depth - depth) as u32;
                    let own = trie.tokens_in(trie.own_ranks(below));
                    tokens.extend(own.iter().map(|&token| (token, left)));
                }
            }
            if tokens.len() > MAX_EXCEPTIONS {
                return None;
            }
        }
        tokens.sort_unstable();
        Some(Exceptions { tokens: tokens.into() })
    }

    /// Bounded equivalence of two residuals.
    pub(super) fn equivalence(
        &mut self,
        residual: ResidualId,
        reference: ResidualId,
    ) -> Result<BoundedEquivalence, MaskFailure> {
        let pair = (self.steps.number(residual)?, self.steps.number(reference)?);
        BoundedEquivalence::find(&mut self.steps, &self.residuals.shape, pair, self.budget)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use palmette_core::{TokenId, Vocabulary};
    use proptest::prelude::*;

    use super::*;
    use palmette_grammar_regex::Regex;
    use palmette_grammar_regex::parse::{Dialect, Flags, parse_text};

    const LETTERS: &[&str] = &["a", "b", "e", "1", "\"", "\\", ",", "-", " ", "}", "é"];

    /// All texts of up to three characters and some that are longer, so that few tokens are a small
    /// part of them.
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

    /// The residual of all that an expression matches.
    fn residual(residuals: &Residuals, regex: &Regex) -> Option<ResidualId> {
        let mut budget = Budget::unlimited();
        let mut growing = residuals.growing();
        let expr = growing.expressions.making(&mut budget).compile(regex).expect("small");
        residuals.intern(&mut growing, expr, &mut budget).expect("small")
    }

    /// Tokens with how much is left of them where the lexeme has ended, and the condition on that,
    /// where it allows what comes next.
    fn left_over(residuals: &Residuals, effect: &TokenEffect) -> BTreeSet<(TokenId, u32, ExprId)> {
        let mut found = BTreeSet::new();
        for EndGroup { suffixes, except, condition, .. } in &effect.suffixes {
            let allowed =
                residuals.allowed_by(*condition, &mut Budget::unlimited()).expect("small");
            let mut work = vec![*suffixes];
            while let Some(id) = work.pop() {
                let node = residuals.suffixes.node(id);
                let counts =
                    |token| !except.as_ref().is_some_and(|e| e.contains(token, node.depth()));
                if node.depth() > 0 {
                    let tokens = node.tokens().iter().filter(|&&token| counts(token));
                    found.extend(tokens.map(|&token| (token, node.depth(), *condition)));
                }
                let next = node.bytes().iter().zip(0..);
                let next = next.filter(|&(&byte, _)| node.depth() > 0 || allowed.contains(byte));
                work.extend(next.map(|(_, at)| residuals.suffixes.child_at(&TRIE, id, at)));
            }
        }
        found
    }

    /// Compares what is found for a residual, given what is known of others, with a walk through
    /// the whole vocabulary.
    fn check(residuals: &Residuals, residual: ResidualId, name: &str) {
        let (trie, num_words) = (&*TRIE, num_words());
        let found =
            residuals.effect(trie, num_words, residual, &mut Budget::unlimited()).expect("small");
        let budget = &mut Budget::unlimited();
        let mut at = EffectComputation::new(residuals, trie, num_words, budget);
        let walked = at.walk(residual, usize::MAX).expect("small").expect("no limit");
        let words = |effect: &TokenEffect| effect.consumed.to_words(num_words);
        assert_eq!(words(found), words(&walked), "tokens consumed by {name}");
        assert_eq!(found.ends, walked.ends, "where {name} ends");
        assert_eq!(
            left_over(residuals, found),
            left_over(residuals, &walked),
            "what follows {name}"
        );
    }

    /// Checks what is left of a pattern after some bytes, as long as something is.
    fn check_along(residuals: &Residuals, pattern: &str, bytes: &[u8]) {
        check_all_along(residuals, &regex(pattern), pattern, bytes);
    }

    fn check_all_along(residuals: &Residuals, regex: &Regex, name: &str, bytes: &[u8]) {
        let mut at = residual(residuals, regex);
        for (read, byte) in bytes.iter().copied().map(Some).chain([None]).enumerate() {
            let Some(here) = at else { break };
            check(residuals, here, &format!("{name} after {}", bytes[..read].escape_ascii()));
            let next =
                |byte| residuals.advance(here, byte, &mut Budget::unlimited()).expect("small");
            at = byte.and_then(next);
        }
    }

    /// Six digits lead back to where none was read, and the lexeme may end there; any text may not.
    #[test]
    fn bytes_that_lead_back_to_the_first_pair_show_that_it_differs_in_its_end() {
        check_along(&Residuals::new(&TRIE), "(1{6})*", b"");
    }

    /// Counts with any number left: at once, in the middle of a character, and when it is used up.
    #[test]
    fn residuals_that_count_are_differences_from_those_that_do_not() {
        let residuals = Residuals::new(&TRIE);
        for pattern in [
            "[ab1é]{0,9}1",
            "[^\",]{3,6}\"",
            "[ab1é]{4}",
            "(?:[^ ]+ +){0,9}[^ ]+",
            "(?:ab|é){2,8},",
        ] {
            check_along(&residuals, pattern, "ab1éab 1ab ab1".as_bytes());
        }
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

        /// In any order, so that any may be the reference of any other.
        #[test]
        fn what_is_found_is_what_a_walk_finds(
            patterns in prop::collection::vec(
                (pattern(), prop::collection::vec(prop::sample::select(b"abe11\",-\\".to_vec()), 0..4)),
                1..12,
            ),
        ) {
            let residuals = Residuals::new(&TRIE);
            for (pattern, bytes) in &patterns {
                check_along(&residuals, pattern, bytes);
            }
        }

        /// Names that are no keywords, with blanks before them and without, which end where no
        /// letter follows, and comments: whatever the keywords are, and what ends a comment.
        #[test]
        fn what_is_found_of_guarded_residuals_is_what_a_walk_finds(
            names in prop::collection::vec(
                (
                    prop::sample::select(vec!["", " ", " *", "1?"]),
                    prop::sample::select(vec![
                        "[abe]+", "[abeé1]+", "[ab]e*", "-[^,]*", "-[^}]*", "-(?:[^-]|-+[^-}])*", "1[^\\\\]*",
                    ]),
                    prop::collection::vec(prop::sample::select(vec!["a", "ab", "abe", "be+", "é", "eeee"]), 0..3),
                    prop::sample::select(vec!["[abe]", "[abeé1]", ",", "\""]),
                    prop::collection::vec(prop::sample::select(" aabe1-".as_bytes().to_vec()), 0..4),
                ),
                1..8,
            ),
        ) {
            let residuals = Residuals::new(&TRIE);
            for (blanks, name, keywords, follows, bytes) in &names {
                let keywords = Regex::alternate(keywords.iter().map(|pattern| regex(pattern)));
                let part = Regex::and([regex(name), Regex::complement(keywords)]);
                let inner = Arc::new(regex(follows));
                let ends = Regex::Look { inner, behind: false, negated: true };
                let whole = Regex::concat([regex(blanks), part, ends]);
                check_all_along(&residuals, &whole, &format!("{blanks:?}, {name:?} before {follows:?}"), bytes);
            }
        }

        /// Any exceptions, before and after anything, and whatever is left of them.
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
            check_all_along(&Residuals::new(&TRIE), &whole, &name, &bytes);
        }
    }
}

//! Whole masks of JSON whose strings are members, against the definition and a plain string.
//!
//! A list of objects, each with a member and a free text of limited length, is followed token by
//! token. The same schema with a plain string in the set's place is followed beside it: what a set
//! costs is the difference.

use std::sync::Arc;

use palmette_bindings::Bindings;
use palmette_catalog_filter::Filter;
use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use palmette_lexicon::Lexicon;
use serde_json::{Value, json};

use super::compared::{Compared, Draws};
use super::lexicon::prepare;
use super::strings::words;
use super::{MembersBench, MembersError, TimedKind, Times, below, choose, prefixes};
use crate::grammar::{CaseText, GrammarCase};
use crate::random::Random;

/// Members of a filter at most: they are given by their ids.
const MAX_IDS: usize = 10_000;

/// Characters of the free text beside a member at most.
pub(super) const MAX_WHY: usize = 60;

impl MembersBench {
    /// Whole masks: times, and how many differ from the definition.
    pub(super) fn whole(
        &self,
        lexicon: &Arc<Lexicon>,
        words: &[String],
        vocabulary: &Arc<Vocabulary>,
        stage: &mut impl FnMut(&str),
    ) -> Result<(Vec<TimedKind>, Compared), MembersError> {
        let prepared = Arc::new(PreparedVocabulary::new(Arc::clone(vocabulary)));
        prepared.trie().child_lists();
        prepare(lexicon, prepared.trie());
        let member = json!({"type": "string", "x-catalog": "shop"});
        let plain = compile(json!({"type": "string"}), &prepared, GrammarConstraint::new);
        let named = compile(member.clone(), &prepared, GrammarConstraint::new);
        let defined = compile(member, &prepared, GrammarConstraint::by_walking);
        let all = Bindings::new().lexicon("shop", Arc::clone(lexicon));
        let filters: Vec<(Bindings, Vec<usize>)> =
            (0..20).map(|seed| filtered(&all, lexicon, self.seed ^ (100 + seed))).collect();
        let bind = |grammar: &GrammarConstraint, bindings: &Bindings| {
            bindings.bind(grammar).expect("it has members").constraint().clone()
        };
        let mut kinds = Vec::new();
        let texts = self.texts(lexicon, None);
        let (percent, ranks) = &filters[0];
        let of_percent = self.texts(lexicon, Some(ranks));
        let followed = [
            ("plain string", plain, &texts),
            ("all", bind(&named, &all), &texts),
            ("1%", bind(&named, percent), &of_percent),
        ];
        for (what, constraint, texts) in &followed {
            for run in ["", ", again"] {
                kinds.extend(self.follow_texts(
                    &format!("{what}{run}"),
                    constraint,
                    texts,
                    &prepared,
                ));
            }
        }
        let mut binds = Times::default();
        for (bindings, _) in &filters[1..] {
            binds.time(|| bind(&named, bindings));
        }
        kinds.extend(binds.named("bind under a new filter"));
        stage("comparing with the definition");
        let mut compared = Compared::default();
        let half = self.compared / 2;
        let sets = [(&all, None, self.compared - half), (percent, Some(&**ranks), half)];
        for (bindings, of, masks) in sets {
            let both = [&bind(&named, bindings), &bind(&defined, bindings)];
            self.compare(both, &Draws { lexicon, of, words }, masks, &mut compared);
        }
        Ok((kinds, compared))
    }

    /// The texts that are followed, each with the strings as an enumeration of the schema: what an
    /// engine without sets of members reads.
    ///
    /// # Errors
    /// When the vocabulary has no words, or a text cannot be cut into tokens.
    pub fn cases<E: std::fmt::Display>(
        &self,
        vocabulary: &Vocabulary,
        tokenize: impl Fn(&str) -> Result<Vec<TokenId>, E>,
    ) -> Result<Vec<GrammarCase>, MembersError> {
        let (lexicon, ..) = self.build(&words(vocabulary)?, &mut |_| ());
        let text = |rank| String::from_utf8(lexicon.text(rank)).expect("UTF-8");
        let values: Vec<String> = (0..lexicon.len()).map(text).collect();
        let grammar = schema(json!({"enum": values})).to_string();
        let case_text = |text: &String| {
            let tokens = tokenize(text).map_err(|why| MembersError(format!("{text}: {why}")))?;
            Ok(CaseText { valid: true, tokens: tokens.iter().map(|token| token.0).collect() })
        };
        let texts = self.texts(&lexicon, None).iter().map(case_text).collect::<Result<_, _>>()?;
        let name = format!("{} listed", lexicon.len());
        Ok(vec![GrammarCase { name, kind: "json_schema".to_owned(), grammar, texts }])
    }

    /// Texts of the schema with random members.
    fn texts(&self, lexicon: &Lexicon, of: Option<&[usize]>) -> Vec<String> {
        let mut random = Random::new(self.seed ^ 3);
        let mut item = |why: &str| {
            let rank = match of {
                None => below(&mut random, lexicon.len()),
                Some(ranks) => ranks[below(&mut random, ranks.len())],
            };
            let title = String::from_utf8(lexicon.text(rank)).expect("UTF-8");
            json!({"title": title, "why": why})
        };
        let text = |_| json!([item("it is quiet, and 30 % off"), item("")]).to_string();
        (0..self.walks).map(text).collect()
    }

    fn follow_texts(
        &self,
        what: &str,
        constraint: &GrammarConstraint,
        texts: &[String],
        prepared: &PreparedVocabulary,
    ) -> Vec<TimedKind> {
        let (mut random, scratch) = (Random::new(self.seed ^ 9), &mut GrammarScratch::default());
        let mut row = vec![0; mask::num_words(constraint.num_tokens())];
        let (mut within, mut between) = (Times::default(), Times::default());
        let mut commits = Times::default();
        for text in texts {
            let (mut state, mut rest) = (constraint.start(), text.as_bytes());
            while !rest.is_empty() {
                let is_within = state
                    .position()
                    .is_some_and(|at| at.branches().iter().all(|branch| branch.member.is_some()));
                let times = if is_within { &mut within } else { &mut between };
                times.time(|| constraint.fill_mask(&state, scratch, &mut row)).expect("no limit");
                let (token, len) = next_token(&mut random, prepared, rest);
                assert!(
                    mask::contains(&row, token),
                    "{token:?} at {} of {text}",
                    text.len() - rest.len()
                );
                commits
                    .time(|| constraint.commit(&mut state, token, scratch))
                    .expect("it is allowed");
                rest = &rest[len..];
            }
            assert!(constraint.is_accepting(&state, scratch).expect("no limit"), "{text}");
        }
        let kinds = [
            within.named(&format!("{what}: masks within members")),
            between.named(&format!("{what}: other masks")),
            commits.named(&format!("{what}: commits")),
        ];
        kinds.into_iter().flatten().collect()
    }
}

/// A token that a text goes on with, and its length.
pub(super) fn next_token(
    random: &mut Random,
    prepared: &PreparedVocabulary,
    rest: &[u8],
) -> (TokenId, usize) {
    let trie = prepared.trie();
    let tokens: Vec<_> = prefixes(trie, rest).collect();
    let (len, node) = choose(random, &tokens).expect("bytes are tokens");
    (trie.tokens_in(trie.own_ranks(node))[0], len)
}

/// The bindings with a random 1% of the strings, at most [`MAX_IDS`], and these.
fn filtered(all: &Bindings, lexicon: &Lexicon, seed: u64) -> (Bindings, Vec<usize>) {
    let mut random = Random::new(seed);
    let num = (lexicon.len() / 100).clamp(1, MAX_IDS);
    let ranks: Vec<usize> = (0..num).map(|_| below(&mut random, lexicon.len())).collect();
    let text = |&rank: &usize| String::from_utf8(lexicon.text(rank)).expect("UTF-8");
    let ids: Vec<String> = ranks.iter().map(text).collect();
    let filter = Filter::from_value(&json!({"ids": ids})).expect("few ids");
    (all.clone().matching("shop", &filter).expect("it is bound"), ranks)
}

fn schema(string: Value) -> Value {
    json!({"type": "array", "items": {
        "type": "object", "required": ["title", "why"], "additionalProperties": false,
        "properties": {"title": string, "why": {"type": "string", "maxLength": MAX_WHY}}
    }})
}

fn compile(
    string: Value,
    vocabulary: &Arc<PreparedVocabulary>,
    engine: fn(Arc<Recognizer>, Arc<PreparedVocabulary>) -> GrammarConstraint,
) -> GrammarConstraint {
    let schema = schema(string).to_string();
    let grammar = json_schema::parse(&schema, &JsonSchemaOptions::default()).expect("sound");
    let limits = RecognizerLimits::default();
    let ready = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    engine(Arc::new(ready.expect("small")), Arc::clone(vocabulary))
}

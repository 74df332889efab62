//! The cache of compiled grammars.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use palmette_core::{Constraint, TokenId, Vocabulary};
use palmette_grammar::{
    CacheError, CacheLimits, CacheOutcome, CacheStatistics, GrammarCache, GrammarSource,
    PreparedVocabulary,
    frontends::{
        json_schema::{Inexpressible, JsonSchemaOptions},
        regex::RegexOptions,
    },
};

use super::{filled, vocabulary};

fn regex(text: &str) -> GrammarSource {
    GrammarSource::Regex { text: text.to_owned(), options: RegexOptions::default() }
}

fn schema(text: &str) -> GrammarSource {
    GrammarSource::JsonSchema { text: text.to_owned(), options: JsonSchemaOptions::default() }
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[track_caller]
fn ask(
    cache: &GrammarCache,
    source: &GrammarSource,
    vocabulary: &Arc<PreparedVocabulary>,
) -> CacheOutcome {
    cache.get(source, vocabulary, &never()).unwrap().outcome
}

#[test]
fn a_grammar_is_known_by_all_that_it_depends_on() {
    let (cache, first) = (GrammarCache::new(CacheLimits::default()), vocabulary());
    let other = Vocabulary::new([Some("a"), Some("b"), None], [TokenId(2)]).unwrap();
    let other = Arc::new(PreparedVocabulary::new(Arc::new(other)));
    let inexpressible = Inexpressible::Ignored;
    let relaxed = JsonSchemaOptions { inexpressible, ..JsonSchemaOptions::default() };
    let relaxed = GrammarSource::JsonSchema { text: "{}".to_owned(), options: relaxed };
    let sources = [regex("a*"), regex("b*"), schema("{}"), relaxed, regex("{}")];
    for expected in [CacheOutcome::Built, CacheOutcome::Hit] {
        for source in &sources[..4] {
            // An equal vocabulary is the same to it.
            assert_eq!(ask(&cache, source, &vocabulary()), expected, "{source:?}");
            assert_eq!(ask(&cache, source, &other), expected, "{source:?}");
        }
    }
    let found = cache.get(&sources[0], &first, &never()).unwrap().grammar;
    assert_eq!(found.constraint.num_tokens(), first.vocabulary().num_tokens());
    let narrow = cache.get(&sources[0], &other, &never()).unwrap().grammar;
    assert_eq!(filled(&narrow.constraint, &narrow.constraint.start()), [0b101]);
    let warned = cache.get(&schema(r#"{"uniqueItem": true}"#), &first, &never()).unwrap().grammar;
    assert_eq!(warned.warnings.len(), 1);
    let statistics = cache.statistics();
    assert_eq!((statistics.grammars, statistics.hits, statistics.built), (9, 10, 9));
    assert!(statistics.bytes > 0);
}

#[test]
fn one_compiles_and_the_others_wait() {
    let (cache, vocabulary) = (GrammarCache::new(CacheLimits::default()), vocabulary());
    let source = schema(
        r#"{"properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"enum": [1, 2]}}}"#,
    );
    let begin = Barrier::new(8);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let ask = || {
            begin.wait();
            ask(&cache, &source, &vocabulary)
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |outcome| outcomes.iter().filter(|&&found| found == outcome).count() as u64;
    let CacheStatistics { hits, waited, built, .. } = cache.statistics();
    assert_eq!((built, count(CacheOutcome::Built)), (1, 1));
    assert_eq!((waited, hits), (count(CacheOutcome::Waited), count(CacheOutcome::Hit)));
    assert_eq!(waited + hits, 7);
}

#[test]
fn what_was_not_asked_for_longest_goes_first() {
    let vocabulary = vocabulary();
    let sources: Vec<_> = ["a+x", "b+x", "c+x", "d+x"].map(regex).into();
    let size = {
        let cache = GrammarCache::new(CacheLimits::default());
        ask(&cache, &sources[0], &vocabulary);
        cache.statistics().bytes
    };
    let max_bytes = 3 * size + size / 2;
    let cache = GrammarCache::new(CacheLimits { max_bytes, ..CacheLimits::default() });
    sources[..3]
        .iter()
        .for_each(|source| assert_eq!(ask(&cache, source, &vocabulary), CacheOutcome::Built));
    // The first is asked for again, so the second goes.
    assert_eq!(ask(&cache, &sources[0], &vocabulary), CacheOutcome::Hit);
    assert_eq!(ask(&cache, &sources[3], &vocabulary), CacheOutcome::Built);
    assert_eq!(cache.statistics().evicted, 1);
    for kept in [0, 2, 3] {
        assert_eq!(ask(&cache, &sources[kept], &vocabulary), CacheOutcome::Hit, "{kept}");
    }
    assert_eq!(ask(&cache, &sources[1], &vocabulary), CacheOutcome::Built);
    assert!(cache.statistics().bytes <= max_bytes);
}

#[test]
fn grammars_that_grow_make_others_go() {
    let vocabulary = vocabulary();
    let (first, second) = (regex("a+x"), schema("{}"));
    let limits = palmette_grammar::PrecomputeLimits::default();
    let grow = |cache: &GrammarCache| {
        ask(cache, &first, &vocabulary);
        let grown = cache.get(&second, &vocabulary, &never()).unwrap().grammar;
        let before = cache.statistics();
        grown.constraint.precompute(&limits, &never()).unwrap();
        cache.trim();
        (before, cache.statistics())
    };
    let (small, large) = grow(&GrammarCache::new(CacheLimits::default()));
    assert!(large.bytes > small.bytes && (large.grammars, large.evicted) == (2, 0), "{large:?}");
    let max_bytes = usize::midpoint(small.bytes, large.bytes);
    let cache = GrammarCache::new(CacheLimits { max_bytes, ..CacheLimits::default() });
    let (before, after) = grow(&cache);
    assert_eq!((before.grammars, before.evicted), (2, 0));
    assert!(after.evicted > 0 && after.bytes <= max_bytes, "{after:?} of {max_bytes}");
    cache.clear();
    assert_eq!((cache.statistics().grammars, cache.statistics().bytes), (0, 0));
}

#[test]
fn what_alone_is_too_large_is_given_and_not_kept() {
    let vocabulary = vocabulary();
    let cache = GrammarCache::new(CacheLimits { max_bytes: 10, ..CacheLimits::default() });
    for built in 1..3 {
        let found = cache.get(&regex("a*"), &vocabulary, &never()).unwrap();
        let bytes = found.grammar.bytes();
        assert_eq!(found.outcome, CacheOutcome::TooLarge { bytes });
        let statistics = cache.statistics();
        assert_eq!(
            (statistics.too_large, statistics.built, statistics.grammars),
            (built, built, 0)
        );
    }
}

#[test]
fn errors_are_told_and_not_kept() {
    let vocabulary = vocabulary();
    let cache = GrammarCache::new(CacheLimits { steps: 10, ..CacheLimits::default() });
    let error = cache.get(&regex("(a"), &vocabulary, &never()).unwrap_err();
    assert!(matches!(error, CacheError::Source(_)), "{error}");
    let error = cache.get(&schema("{}"), &vocabulary, &never()).unwrap_err();
    assert!(error.to_string().contains("10 steps"), "{error}");
    let statistics = cache.statistics();
    assert_eq!((statistics.grammars, statistics.failed, statistics.built), (0, 2, 0));
}

#[test]
fn a_question_that_is_called_off_leaves_the_others_alone() {
    let (cache, vocabulary) = (GrammarCache::new(CacheLimits::default()), vocabulary());
    let source = schema(r#"{"items": {"type": "array", "items": {"type": "object"}}}"#);
    let cancelled = AtomicBool::new(true);
    let error = cache.get(&source, &vocabulary, &cancelled).unwrap_err();
    assert!(matches!(error, CacheError::Cancelled), "{error}");
    // Many ask at once and some are called off; the others all get it.
    let source = &source;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let (cache, vocabulary) = (&cache, &vocabulary);
        let threads: Vec<_> = (0..12)
            .map(|number| {
                scope.spawn(move || {
                    let cancelled = AtomicBool::new(number % 3 == 0);
                    if number == 1 {
                        std::thread::sleep(Duration::from_millis(1));
                        cancelled.store(false, Ordering::Relaxed);
                    }
                    (number, cache.get(source, vocabulary, &cancelled))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (number, answer) in answers {
        match answer {
            Ok(_) => {}
            Err(CacheError::Cancelled) => assert_eq!(number % 3, 0),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(cache.statistics().grammars, 1);
    assert_eq!(ask(&cache, source, &vocabulary), CacheOutcome::Hit);
}

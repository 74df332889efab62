//! A cache counts what its grammars take: neither half of it nor twice as much.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, mask};
use palmette_grammar::frontends::json_schema::JsonSchemaOptions;
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::{
    CacheLimits, GrammarCache, GrammarScratch, GrammarSource, PreparedVocabulary,
};
use palmette_testkit::allocations::{Counting, held_bytes};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Numbers that look drawn (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

fn schema(random: &mut Numbers, number: usize) -> Value {
    let mut value = || match random.below(6) {
        0 => json!({"type": "string", "maxLength": 5 + random.below(55)}),
        1 => {
            json!({"type": "integer", "minimum": random.below(99), "maximum": 100 + random.below(99_000)})
        }
        2 => json!({"enum": (0..20).map(|at| format!("v{number} {at}")).collect::<Vec<_>>()}),
        3 => json!({"type": "array", "items": {"type": "number"}}),
        4 => {
            json!({"type": "string", "pattern": format!("^[a-z]{{2,{}}}-[0-9]+$", 3 + random.below(9))})
        }
        _ => {
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "additionalProperties": false})
        }
    };
    let names: Vec<_> = (0..8).map(|at| format!("field_{number}_{at}")).collect();
    let properties: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), value())).collect();
    json!({"type": "object", "properties": properties, "required": names[..4], "additionalProperties": false})
}

fn sources(kind: &str, count: usize) -> Vec<GrammarSource> {
    let random = &mut Numbers(1);
    let source = |number: usize| match kind {
        "schemas" => {
            let text = schema(random, number).to_string();
            GrammarSource::JsonSchema { text, options: JsonSchemaOptions::default() }
        }
        "expressions" => {
            let text = format!(
                "(ab|cd){{1,{}}}(x|y){{{number}}}[0-9a-f]{{{number},{}}}",
                100 + number,
                number + 50
            );
            GrammarSource::Regex { text, options: RegexOptions::default() }
        }
        "choices" => {
            let words: Vec<_> = (0..300).map(|at| format!("word {number} {at} of many")).collect();
            GrammarSource::Regex { text: words.join("|"), options: RegexOptions::default() }
        }
        "names" => {
            let options = LarkOptions::default();
            let text = format!(
                "start: e\ne: e \"+\" e | NAME | \"(\" e \")\" | f\nf: NAME \"(\" NAME (\",\" NAME)* \")\"\nNAME: /[a-z]{{1,{}}}/",
                number + 2
            );
            GrammarSource::Lark { text, options }
        }
        _ => unreachable!("{kind}"),
    };
    (0..count).map(source).collect()
}

/// Compiles all, and asks for the masks along texts of each.
fn fill(cache: &GrammarCache, vocabulary: &Arc<PreparedVocabulary>, sources: &[GrammarSource]) {
    let mut words = vec![0; mask::num_words(vocabulary.vocabulary().num_tokens())];
    for source in sources {
        let found = cache.get(source, vocabulary, &AtomicBool::new(false)).unwrap();
        let constraint = &found.grammar.constraint;
        let (mut scratch, random) = (GrammarScratch::default(), &mut Numbers(7));
        let mut state = constraint.start();
        for _ in 0..12 {
            constraint.fill_mask(&state, &mut scratch, &mut words).unwrap();
            let allowed: Vec<_> = mask::iter(&words).collect();
            if allowed.is_empty() || state.ended() {
                break;
            }
            let token = allowed[random.below(allowed.len())];
            constraint.commit(&mut state, token, &mut scratch).unwrap();
        }
    }
}

#[test]
fn a_cache_counts_what_its_grammars_hold() {
    let loaded = palmette_vocabulary::load("r50k_base").unwrap();
    let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
    for kind in ["schemas", "expressions", "choices", "names"] {
        let sources = sources(kind, 12);
        // What grammars over a vocabulary share is there afterwards.
        fill(&GrammarCache::new(CacheLimits::default()), &vocabulary, &sources);
        let before = held_bytes();
        let cache = GrammarCache::new(CacheLimits::default());
        fill(&cache, &vocabulary, &sources);
        cache.trim();
        let (held, counted) = (held_bytes() - before, cache.statistics().bytes);
        eprintln!("{kind}: {held} bytes held, {counted} counted");
        assert!(
            counted as f64 >= 0.75 * held as f64 && counted as f64 <= 1.35 * held as f64,
            "{kind}: {held} bytes are held and {counted} counted"
        );
        cache.clear();
        assert_eq!((cache.statistics().bytes, cache.statistics().grammars), (0, 0));
        assert!(held_bytes() < before + held / 10, "{kind}: {} are left", held_bytes() - before);
    }
}

//! Member sets: what strings that a grammar names cost to build, to keep, and in each mask.
//!
//! - [`MembersBench`]: strings made from a seed as a lexicon, its masks along random members, and
//!   whole masks in JSON beside the same schema with a plain string.
//! - [`DocumentBench`]: the substrings of a document.
//! - [`MembersBench::cases`]: the same texts with the strings as an enumeration, which other
//!   engines can read.
//!
//! Times are processor time of one thread, along tokens of random members: most of the time the
//! longest that fits, sometimes another.

mod compared;
mod definition;
mod documents;
mod lexicon;
mod strings;
mod whole;

use palmette_core::{Budget, Cursor, MemberSet, VocabularyTrie};
use serde::Serialize;

pub use compared::Compared;
pub use documents::{DocumentBench, DocumentReport, UnitReport};
pub use lexicon::{LexiconReport, MembersBench, MembersReport};
pub use strings::MemberKind;

use crate::grammar::Percentiles;
use crate::machine::thread_cpu_s;
use crate::random::Random;

/// Times of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedKind {
    /// Name of the kind.
    pub what: String,
    /// Microseconds.
    pub us: Percentiles,
}

/// A member set cannot be measured. The message names the value, the rule and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MembersError(pub(crate) String);

/// Microseconds of one kind, kept as they come.
#[derive(Debug, Default)]
struct Times(Vec<f64>);

impl Times {
    /// Does some work and keeps its time.
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (value, us) = timed(work);
        self.0.push(us);
        value
    }

    /// The kind, where anything was timed.
    fn named(self, what: &str) -> Option<TimedKind> {
        Some(TimedKind { what: what.to_owned(), us: Percentiles::of(self.0)? })
    }
}

/// A value with the microseconds that this thread took for it.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = thread_cpu_s();
    let value = work();
    (value, (thread_cpu_s() - before) * 1e6)
}

/// A number below `bound`, all alike.
fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// Lengths of the tokens that a text begins with, ascending, with their nodes.
fn prefixes<'a>(
    trie: &'a VocabularyTrie,
    text: &'a [u8],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut node = Some(0);
    (1..=text.len())
        .map_while(move |len| {
            node = node.and_then(|node| trie.child(node, text[len - 1]));
            node.map(|node| (len, node))
        })
        .filter(|&(_, node)| !trie.own_ranks(node).is_empty())
}

/// One of the tokens that a text begins with: the longest, one time in four a random one.
fn choose<T: Copy>(random: &mut Random, tokens: &[T]) -> Option<T> {
    let longest = *tokens.last()?;
    Some(if below(random, 4) > 0 { longest } else { tokens[below(random, tokens.len())] })
}

/// Clears a row and fills it with the tokens that a set consumes.
fn fill(set: &dyn MemberSet, at: &Cursor, trie: &VocabularyTrie, row: &mut [u32]) {
    row.fill(0);
    let (mut ends, budget) = (Vec::new(), &mut Budget::unlimited());
    set.effect(at, trie, 0, row, &mut ends, budget).expect("no limit");
}

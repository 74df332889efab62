//! Measures: processor time of a thread, quantiles, masks of a set.

use palmette_core::{Budget, Cursor, MemberSet, VocabularyTrie};
use rustix::time::{ClockId, clock_gettime};

/// Lengths of the tokens that a text begins with, ascending.
pub(crate) fn prefixes(trie: &VocabularyTrie, text: &[u8]) -> impl Iterator<Item = usize> {
    let mut node = Some(0);
    (1..=text.len())
        .map_while(move |len| {
            node = node.and_then(|node| trie.child(node, text[len - 1]));
            node.map(|node| (len, node))
        })
        .filter(|&(_, node)| !trie.own_ranks(node).is_empty())
        .map(|(len, _)| len)
}

pub(crate) fn fill(set: &dyn MemberSet, at: &Cursor, trie: &VocabularyTrie, row: &mut [u32]) {
    row.fill(0);
    let (mut ends, budget) = (Vec::new(), &mut Budget::unlimited());
    set.effect(at, trie, 0, row, &mut ends, budget).expect("no limit");
}

/// A value with the nanoseconds that this thread took for it.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = nanoseconds(ClockId::ThreadCPUTime);
    let value = work();
    (value, nanoseconds(ClockId::ThreadCPUTime) - before)
}

pub(crate) fn processor_seconds() -> f64 {
    nanoseconds(ClockId::ProcessCPUTime) / 1e9
}

fn nanoseconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

pub(crate) fn report(what: &str, mut ns: Vec<f64>) {
    ns.sort_by(f64::total_cmp);
    let us = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize] / 1e3;
    println!(
        "  {what:22} {:7}  p50 {:7.2}  p90 {:7.2}  p99 {:7.2}  p99.9 {:7.2}  max {:8.2} us",
        ns.len(),
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        us(1.0)
    );
}

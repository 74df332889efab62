//! Lexicon of strings made from a seed: build, file, tables, masks along random members.

use std::sync::Arc;

use palmette_core::{Budget, MemberSet, Vocabulary, VocabularyTrie, mask};
use palmette_lexicon::{
    Check, Lexicon, LexiconBuilder, LexiconSet, MemberSpelling, RankSet, Selection,
};
use serde::Serialize;

use super::compared::Compared;
use super::strings::{MemberKind, words};
use super::{MembersError, TimedKind, Times, below, choose, fill, prefixes, timed};
use crate::machine::{Machine, process_cpu_s};
use crate::random::Random;

/// Measurement of a set of strings.
#[derive(Clone, Debug)]
pub struct MembersBench {
    /// Kind of the strings.
    pub kind: MemberKind,
    /// Strings made; equal ones are one member.
    pub strings: usize,
    /// Random members, or texts with two of them, whose tokens are followed.
    pub walks: usize,
    /// Masks that are compared with the definition.
    pub compared: usize,
    /// Seed of strings, members and filters.
    pub seed: u64,
}

/// Costs of a set of strings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MembersReport {
    /// Kind of the strings.
    pub kind: MemberKind,
    /// Seed of all draws.
    pub seed: u64,
    /// Random members, or texts, whose tokens were followed.
    pub walks: usize,
    /// The lexicon.
    pub lexicon: LexiconReport,
    /// Masks of the set alone, and what else is asked of it.
    pub set: Vec<TimedKind>,
    /// Whole masks in JSON, those of a plain string first.
    pub whole: Vec<TimedKind>,
    /// Whole masks against the definition.
    pub compared: Compared,
    /// Machine of the measurement.
    pub machine: Machine,
}

/// Sizes and times of a lexicon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LexiconReport {
    /// Distinct strings.
    pub strings: usize,
    /// Their bytes.
    pub text_bytes: u64,
    /// Bytes of the lexicon.
    pub bytes: usize,
    /// Bytes of the lexicon for each of the strings'.
    pub bytes_per_text_byte: f64,
    /// Processor time of sorting, all threads.
    pub sort_cpu_s: Option<f64>,
    /// Processor time of the arrays, all threads.
    pub arrays_cpu_s: Option<f64>,
    /// Processor time of opening its file: checking the frame, all sums, every string.
    pub open_ms: [f64; 3],
    /// The first mask of the root, without tables.
    pub first_root_ms: f64,
    /// Making tables of prefixes of 65,536 strings and more.
    pub tables_ms: f64,
    /// Bytes of all tables at the end.
    pub table_bytes: usize,
}

impl MembersBench {
    /// Measures; `stage` hears what is done next.
    ///
    /// # Errors
    /// When there is nothing to measure, or a file cannot be written.
    pub fn run(
        &self,
        vocabulary: &Arc<Vocabulary>,
        mut stage: impl FnMut(&str),
    ) -> Result<MembersReport, MembersError> {
        for (what, number) in [("strings", self.strings), ("walks", self.walks)] {
            if number == 0 {
                return Err(MembersError(format!("there are 0 {what}; measure at least 1")));
            }
        }
        stage("making strings");
        let words = words(vocabulary)?;
        let (lexicon, sort_cpu_s, arrays_cpu_s) = self.build(&words, &mut stage);
        stage("writing and opening a file");
        let open_ms = filed(&lexicon)?;
        let trie = VocabularyTrie::new(vocabulary);
        // What is made once for a vocabulary.
        trie.child_lists();
        let all = lexicon_set(&lexicon, Selection::All);
        let start = all.start().expect("there are members");
        let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
        let first_root_ms = timed(|| fill(&all, &start, &trie, &mut row)).1 / 1e3;
        let tables_ms = timed(|| prepare(&lexicon, &trie)).1 / 1e3;
        stage("following members");
        let set = self.set(&lexicon, &trie, &mut row);
        stage("following texts");
        let (whole, compared) = self.whole(&lexicon, &words, vocabulary, &mut stage)?;
        let text_bytes = lexicon.text_bytes();
        let lexicon = LexiconReport {
            strings: lexicon.len(),
            text_bytes,
            bytes: lexicon.bytes(),
            bytes_per_text_byte: lexicon.bytes() as f64 / text_bytes as f64,
            sort_cpu_s,
            arrays_cpu_s,
            open_ms,
            first_root_ms,
            tables_ms,
            table_bytes: lexicon.table_bytes(),
        };
        let Self { kind, seed, walks, .. } = *self;
        let machine = Machine::here();
        Ok(MembersReport { kind, seed, walks, lexicon, set, whole, compared, machine })
    }

    /// The lexicon, with the seconds that sorting and arrays took.
    pub(super) fn build(
        &self,
        words: &[String],
        stage: &mut impl FnMut(&str),
    ) -> (Arc<Lexicon>, Option<f64>, Option<f64>) {
        let (mut builder, mut random) = (LexiconBuilder::new(), Random::new(self.seed));
        let mut text = String::new();
        for _ in 0..self.strings {
            text.clear();
            self.kind.append(&mut random, words, &mut text);
            builder.push(text.as_bytes()).expect("a short text");
        }
        stage("sorting them");
        let mut seconds = vec![process_cpu_s()];
        let built = builder.finish_while(|_| {
            seconds.push(process_cpu_s());
            true
        });
        let lexicon = Arc::new(built.expect("nothing calls it off"));
        seconds.push(process_cpu_s());
        let since =
            |a: usize, b: usize| Some(seconds.get(b).copied()?? - seconds.get(a).copied()??);
        (lexicon, since(0, 2), since(2, seconds.len() - 1))
    }

    /// Masks of all strings and of a random 1%, each followed twice, and other questions.
    fn set(
        &self,
        lexicon: &Arc<Lexicon>,
        trie: &VocabularyTrie,
        row: &mut [u32],
    ) -> Vec<TimedKind> {
        let mut random = Random::new(self.seed ^ 0xA5);
        let mut kinds = Vec::new();
        let clock = &mut Times::default();
        for _ in 0..1000 {
            clock.time(|| ());
        }
        kinds.extend(std::mem::take(clock).named("(the clock itself)"));
        for (what, filtered) in [("all", false), ("1%", true)] {
            let ranks = filtered.then(|| percent(lexicon.len(), &mut random));
            let selection = ranks.clone().map_or(Selection::All, Selection::Ranks);
            let set = lexicon_set(lexicon, selection);
            let member = |random: &mut Random| match &ranks {
                None => below(random, lexicon.len()),
                Some(ranks) => member_of(ranks, lexicon.len(), random),
            };
            for run in ["", ", again"] {
                kinds.extend(self.follow(&format!("{what}{run}"), &set, trie, row, member));
            }
        }
        let (mut roots, mut texts) = (Times::default(), Times::default());
        for _ in 0..20 {
            let set = lexicon_set(lexicon, Selection::Ranks(percent(lexicon.len(), &mut random)));
            let start = set.start().expect("there are members");
            roots.time(|| fill(&set, &start, trie, row));
        }
        for _ in 0..1000 {
            let rank = below(&mut random, lexicon.len());
            texts.time(|| lexicon.text(rank));
        }
        kinds.extend(roots.named("root under a new 1%"));
        kinds.extend(texts.named("a string by its rank"));
        kinds
    }

    /// Masks along the tokens of members.
    fn follow(
        &self,
        what: &str,
        set: &LexiconSet,
        trie: &VocabularyTrie,
        row: &mut [u32],
        member: impl Fn(&mut Random) -> usize,
    ) -> Vec<TimedKind> {
        let mut random = Random::new(self.seed ^ 3);
        let (mut roots, mut masks) = (Times::default(), Times::default());
        let (mut cursors, mut forced) = (Times::default(), Times::default());
        let (mut spelled, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..self.walks {
            spelled.clear();
            MemberSpelling::JsonString
                .append(&set.lexicon().text(member(&mut random)), &mut spelled);
            let (mut at, mut read) = (set.start().expect("there are members"), 0);
            loop {
                let times = if read == 0 { &mut roots } else { &mut masks };
                times.time(|| fill(set, &at, trie, row));
                bytes.clear();
                forced.time(|| set.forced(&at, &mut bytes));
                let tokens: Vec<_> = prefixes(trie, &spelled[read..]).collect();
                let Some((len, _)) = choose(&mut random, &tokens) else { break };
                let token = &spelled[read..read + len];
                let next = cursors
                    .time(|| token.iter().try_fold(at.clone(), |at, &byte| set.advance(&at, byte)));
                at = next.expect("a member goes on");
                read += len;
            }
        }
        let kinds = [
            roots.named(&format!("{what}: mask of the root")),
            masks.named(&format!("{what}: mask after tokens")),
            cursors.named(&format!("{what}: cursor after a token")),
            forced.named(&format!("{what}: forced bytes")),
        ];
        kinds.into_iter().flatten().collect()
    }
}

pub(super) fn lexicon_set(lexicon: &Arc<Lexicon>, selection: Selection) -> LexiconSet {
    LexiconSet::new(Arc::clone(lexicon), selection, MemberSpelling::JsonString).expect("UTF-8")
}

/// Makes the tables that a segment has when it is opened.
pub(super) fn prepare(lexicon: &Lexicon, trie: &VocabularyTrie) {
    let (spelling, budget) = (MemberSpelling::JsonString, &mut Budget::unlimited());
    lexicon.prepare_tables(trie, 0, spelling, 1 << 16, budget).expect("no limit");
}

/// Random ranks, one in a hundred; at least one.
fn percent(len: usize, random: &mut Random) -> Arc<RankSet> {
    let mut ranks: Vec<u64> = (0..len as u64).filter(|_| below(random, 100) == 0).collect();
    if ranks.is_empty() {
        ranks.push(random.below(len as u64));
    }
    Arc::new(RankSet::from_ranks(len as u64, ranks))
}

fn member_of(ranks: &RankSet, len: usize, random: &mut Random) -> usize {
    loop {
        let from = random.below(len as u64);
        if let Some(rank) = ranks.next_in(from..len as u64) {
            return rank as usize;
        }
    }
}

/// Milliseconds of opening the lexicon's file, by how much is checked.
fn filed(lexicon: &Lexicon) -> Result<[f64; 3], MembersError> {
    let fault = |error: String| MembersError(format!("a temporary file: {error}"));
    let folder = tempfile::tempdir().map_err(|error| fault(error.to_string()))?;
    let path = folder.path().join("members.palm");
    lexicon.write(&path).map_err(|error| fault(error.to_string()))?;
    let mut ms = [0.0; 3];
    for (ms, check) in ms.iter_mut().zip([Check::Frame, Check::Sums, Check::Whole]) {
        let (opened, us) = timed(|| Lexicon::open_with(&path, check));
        opened.map_err(|error| fault(error.to_string()))?;
        *ms = us / 1e3;
    }
    Ok(ms)
}

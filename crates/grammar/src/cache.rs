//! Compiled grammars, kept as long as they are asked for.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_masks::vocabulary::VocabularyFingerprint;
use palmette_grammar_parser::recognizer::CompileError;
use palmette_grammar_syntax::json_schema::Warning;

use crate::grammar_folder::{FolderPlace, GrammarFolder};
use crate::limits::CacheLimits;
use crate::source::{GrammarSource, SourceError};
use crate::{Budget, GrammarConstraint, Interrupted, Recognizer, TokenError};

/// Compiled grammars by content: by their [source](GrammarSource) and the
/// [fingerprint](VocabularyFingerprint) of their vocabulary.
///
/// Threads share it. The first to ask for a grammar compiles it, others who ask meanwhile wait for
/// it, and nobody waits for another grammar. Grammars grow as they are used; when all of them
/// exceed the limit, those that were not asked for longest are let go of. Whoever still has one
/// keeps it.
///
/// With a [folder](GrammarFolder) the masks of a grammar are found out by one process of a machine.
#[derive(Debug)]
pub struct GrammarCache {
    limits: CacheLimits,
    folder: Option<GrammarFolder>,
    kept: Mutex<Contents>,
}

/// A grammar made ready, as a [`GrammarCache`] keeps it.
#[derive(Debug)]
pub struct CompiledGrammar {
    /// The grammar over its vocabulary.
    pub constraint: GrammarConstraint,
    /// Parts of the source without effect.
    pub warnings: Vec<Warning>,
    /// Bytes of the source and of the grammar, and of what each has.
    source_bytes: usize,
    place: FolderPlace,
}

impl CompiledGrammar {
    /// Parts of the source that have no effect, and texts that contextual lexing takes from it, one
    /// sentence each.
    pub fn notes(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(ToString::to_string);
        let dead_ends = self.constraint.recognizer().dead_end_notes().into_iter();
        let placed = |(span, message): (Option<crate::Span>, String)| match span {
            Some(span) => format!("line {}, column {}: {message}", span.line, span.column),
            None => message,
        };
        warnings.chain(dead_ends.map(placed)).collect()
    }

    /// About how much memory it takes by now.
    pub fn bytes(&self) -> usize {
        self.source_bytes + self.constraint.bytes()
    }
}

/// An answer of a [`GrammarCache`].
#[derive(Clone, Debug)]
pub struct Cached {
    /// The grammar.
    pub grammar: Arc<CompiledGrammar>,
    /// The way it came.
    pub outcome: CacheOutcome,
}

/// The way a [`GrammarCache`] came by a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// A grammar that was there.
    Hit,
    /// Somebody else was compiling it.
    Waited,
    /// A grammar that was compiled, and is kept.
    Built,
    /// A grammar that was compiled, but alone takes more than [all may](CacheLimits::max_bytes): it
    /// is not kept, and the next who asks compiles it again.
    TooLarge {
        /// About how much it takes.
        bytes: usize,
    },
}

/// Error of a grammar that was not compiled. Everyone who waited for it gets the same error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CacheError {
    /// The front end refuses it.
    #[error(transparent)]
    Source(Arc<SourceError>),
    /// Grammar that asks for a token that the vocabulary does not have.
    #[error(transparent)]
    Token(TokenError),
    /// Grammar that cannot be made ready.
    #[error(transparent)]
    Compile(Arc<CompileError>),
    /// The flag of this question was set.
    #[error("the compilation was cancelled")]
    Cancelled,
    /// Grammar of the empty language, for who wants to write a text of it.
    #[error(
        "no text is left: nothing fits this grammar, so that no answer could; look for a condition that nothing meets, or a rule that never ends"
    )]
    NoText,
    /// Grammar with slots, for who wants to write a text of it and binds no sets.
    #[error(
        "the grammar names the catalog {slot}, which nobody gives here: catalogs are bound in Rust (`GrammarConstraint::bind`) and by \
         `--catalog` of `palmette generate` and `palmette grammar`; list the values instead (enum)"
    )]
    Unbound {
        /// Name and field of the first slot.
        slot: String,
    },
}

impl CacheError {
    /// True when compiling was called off, so that the same question may be asked again.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

/// Counters of a [`GrammarCache`]: its work so far and its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Grammars held.
    pub grammars: usize,
    /// Memory of them, as of when it was last looked at.
    pub bytes: usize,
    /// Questions for a grammar that was there.
    pub hits: u64,
    /// Questions that waited for another's compilation.
    pub waited: u64,
    /// Compilations that came to a grammar.
    pub built: u64,
    /// Compilations that came to an error.
    pub failed: u64,
    /// Grammars that were let go of for others.
    pub evicted: u64,
    /// Grammars that alone were too large.
    pub too_large: u64,
}

#[derive(Debug, Default)]
struct Contents {
    places: HashMap<Arc<Key>, Place>,
    /// Counts questions.
    now: u64,
    statistics: CacheStatistics,
}

type Key = (GrammarSource, VocabularyFingerprint);

#[derive(Debug)]
enum Place {
    Ready { grammar: Arc<CompiledGrammar>, last_asked: u64, bytes: usize },
    Building(Arc<Build>),
}

/// A compilation that others may wait for.
#[derive(Debug)]
struct Build {
    /// The process whose thread compiles: a child that is forked meanwhile has no such thread.
    process: u32,
    result: Mutex<Option<BuildResult>>,
    done: Condvar,
}

/// `None`: it was given up, so whoever waits tries again.
type BuildResult = Option<Result<Arc<CompiledGrammar>, CacheError>>;

/// Memory that the smallest grammar takes: first pieces of tables that grow by doubling, and the
/// entry itself.
const OF_EACH: usize = 16 << 10;

/// Time between two looks of a waiting thread at its flag.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Number of questions after which the memory of grammars, which grow, is looked at again.
const BETWEEN_TRIMS: u64 = 256;

impl GrammarCache {
    /// An empty cache.
    pub fn new(limits: CacheLimits) -> Self {
        Self { limits, folder: None, kept: Mutex::default() }
    }

    /// The cache with a folder through which it shares masks with other processes. What it answers
    /// does not depend on the folder, only how long masks take.
    #[must_use]
    pub fn with_folder(self, folder: GrammarFolder) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// The folder, where it has one.
    pub fn folder(&self) -> Option<&GrammarFolder> {
        self.folder.as_ref()
    }

    /// The grammar of a source over a vocabulary.
    ///
    /// `cancelled` calls off this question alone: if it is the one that compiles, another that
    /// waits goes on. A vocabulary that is equal to one asked with before need not be the same
    /// object.
    ///
    /// # Errors
    /// When the source is refused, the grammar exceeds a limit, or the flag was set. Errors are not
    /// kept.
    pub fn get(
        &self,
        source: &GrammarSource,
        vocabulary: &Arc<PreparedVocabulary>,
        cancelled: &AtomicBool,
    ) -> Result<Cached, CacheError> {
        let key = Arc::new((source.clone(), vocabulary.fingerprint()));
        loop {
            match self.place(&key) {
                Slot::Ready(grammar) => {
                    self.share(&key.0, &grammar);
                    return Ok(Cached { grammar, outcome: CacheOutcome::Hit });
                }
                Slot::Building(build) => {
                    if let Some(result) = build.wait(cancelled)? {
                        self.lock().statistics.waited += 1;
                        let outcome = CacheOutcome::Waited;
                        return result.map(|grammar| Cached { grammar, outcome });
                    }
                }
                Slot::Nothing(build) => return self.build(&key, &build, vocabulary, cancelled),
            }
        }
    }

    /// Looks at how large the grammars have become, and lets go of some if that is too much.
    /// Questions do so now and then.
    pub fn trim(&self) {
        let ready: Vec<_> =
            self.lock().ready().map(|(key, it)| (key.clone(), it.clone())).collect();
        // Grammars may be busy for a while, so they are not asked under the lock.
        let sizes: Vec<_> = ready.iter().map(|(key, grammar)| (key, grammar.bytes())).collect();
        let mut kept = self.lock();
        for (key, size) in sizes {
            if let Some(Place::Ready { bytes, .. }) = kept.places.get_mut(&**key) {
                *bytes = size;
            }
        }
        kept.evict(self.limits.max_bytes);
    }

    /// Lets go of all grammars. Whoever has one keeps it, and compilations go on.
    pub fn clear(&self) {
        self.lock().places.retain(|_, place| matches!(place, Place::Building(_)));
    }

    /// Limits of the grammars and of their memory.
    pub fn limits(&self) -> &CacheLimits {
        &self.limits
    }

    /// Work so far and contents.
    pub fn statistics(&self) -> CacheStatistics {
        let kept = self.lock();
        CacheStatistics { grammars: kept.ready().count(), bytes: kept.bytes(), ..kept.statistics }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // Nothing here panics halfway.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, key: &Arc<Key>) -> Slot {
        let mut kept = self.lock();
        kept.now += 1;
        let (now, trim) = (kept.now, kept.now.is_multiple_of(BETWEEN_TRIMS));
        let found = match kept.places.get_mut(key) {
            Some(Place::Ready { grammar, last_asked, .. }) => {
                *last_asked = now;
                Slot::Ready(Arc::clone(grammar))
            }
            Some(Place::Building(build)) if build.process == std::process::id() => {
                Slot::Building(Arc::clone(build))
            }
            Some(Place::Building(_)) | None => {
                let build = Arc::new(Build::new());
                kept.places.insert(Arc::clone(key), Place::Building(Arc::clone(&build)));
                Slot::Nothing(build)
            }
        };
        kept.statistics.hits += u64::from(matches!(found, Slot::Ready(_)));
        drop(kept);
        if trim {
            self.trim();
        }
        found
    }

    fn build(
        &self,
        key: &Arc<Key>,
        build: &Build,
        vocabulary: &Arc<PreparedVocabulary>,
        cancelled: &AtomicBool,
    ) -> Result<Cached, CacheError> {
        // Whatever happens, those who wait are told.
        let result = catch_unwind(AssertUnwindSafe(|| self.compile(&key.0, vocabulary, cancelled)));
        let result = match result {
            Ok(Err(CacheError::Cancelled)) | Err(_) => {
                self.lock().places.remove(key);
                build.finish(None);
                return result.unwrap_or_else(|panic| resume_unwind(panic)).map(|_| unreachable!());
            }
            Ok(result) => result.map(Arc::new),
        };
        let mut kept = self.lock();
        let outcome = match &result {
            Ok(grammar) => {
                kept.statistics.built += 1;
                let bytes = grammar.bytes();
                if bytes > self.limits.max_bytes {
                    kept.statistics.too_large += 1;
                    kept.places.remove(key);
                    CacheOutcome::TooLarge { bytes }
                } else {
                    let (grammar, last_asked) = (Arc::clone(grammar), kept.now);
                    kept.places
                        .insert(Arc::clone(key), Place::Ready { grammar, last_asked, bytes });
                    CacheOutcome::Built
                }
            }
            Err(_) => {
                kept.statistics.failed += 1;
                kept.places.remove(key);
                CacheOutcome::Built
            }
        };
        drop(kept);
        build.finish(Some(result.clone()));
        if let Ok(grammar) = &result {
            self.share(&key.0, grammar);
        }
        self.trim();
        result.map(|grammar| Cached { grammar, outcome })
    }

    fn compile(
        &self,
        source: &GrammarSource,
        vocabulary: &Arc<PreparedVocabulary>,
        cancelled: &AtomicBool,
    ) -> Result<CompiledGrammar, CacheError> {
        let budget = &mut Budget::cancellable(self.limits.steps, cancelled);
        let (grammar, warnings) =
            source.parse_with_budget(budget).map_err(|error| match error.interrupted() {
                Some(Interrupted::Cancelled) => CacheError::Cancelled,
                _ => CacheError::Source(Arc::new(error)),
            })?;
        let grammar = grammar.with_tokens_of(vocabulary.vocabulary()).map_err(CacheError::Token)?;
        let recognizer = Recognizer::new(Arc::new(grammar), &self.limits.recognizer, budget);
        let recognizer = recognizer.map_err(|error| match is_cancelled(&error) {
            true => CacheError::Cancelled,
            false => CacheError::Compile(Arc::new(error)),
        })?;
        let (given, kept) = (recognizer.source(), recognizer.grammar());
        let kept = if Arc::ptr_eq(given, kept) { 0 } else { kept.bytes() };
        let source_bytes = OF_EACH + source.text().len() + given.bytes() + kept;
        let constraint = GrammarConstraint::new(Arc::new(recognizer), Arc::clone(vocabulary));
        constraint.check_token_limits().map_err(CacheError::Token)?;
        let place = FolderPlace::default();
        Ok(CompiledGrammar { constraint, warnings, source_bytes, place })
    }

    fn share(&self, source: &GrammarSource, grammar: &CompiledGrammar) {
        if let Some(folder) = &self.folder {
            folder.share(source, &grammar.constraint, &grammar.place);
        }
    }
}

enum Slot {
    Ready(Arc<CompiledGrammar>),
    Building(Arc<Build>),
    /// The place is taken: whoever gets this has to build.
    Nothing(Arc<Build>),
}

impl Contents {
    fn ready(&self) -> impl Iterator<Item = (&Arc<Key>, &Arc<CompiledGrammar>)> {
        self.places.iter().filter_map(|(key, place)| match place {
            Place::Ready { grammar, .. } => Some((key, grammar)),
            Place::Building(_) => None,
        })
    }

    fn bytes(&self) -> usize {
        let sizes = self.places.values().map(|place| match place {
            Place::Ready { bytes, .. } => *bytes,
            Place::Building(_) => 0,
        });
        sizes.sum()
    }

    /// Lets go of what was not asked for longest. Questions are counted, so no two were asked for
    /// at the same time.
    fn evict(&mut self, max_bytes: usize) {
        let mut total = self.bytes();
        while total > max_bytes {
            let ready = self.places.iter().filter_map(|(key, place)| match place {
                Place::Ready { last_asked, bytes, .. } => Some((*last_asked, key.clone(), *bytes)),
                Place::Building(_) => None,
            });
            let oldest = ready.min_by_key(|&(last_asked, ..)| last_asked);
            let Some((_, oldest, bytes)) = oldest else { break };
            self.places.remove(&oldest);
            self.statistics.evicted += 1;
            total -= bytes;
        }
    }
}

impl Build {
    fn new() -> Self {
        Self { process: std::process::id(), result: Mutex::default(), done: Condvar::new() }
    }

    /// Result; `None` when it was given up.
    fn wait(&self, cancelled: &AtomicBool) -> Result<BuildResult, CacheError> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = &*result {
                return Ok(result.clone());
            }
            if cancelled.load(Ordering::Relaxed) {
                return Err(CacheError::Cancelled);
            }
            let waited = self.done.wait_timeout(result, BETWEEN_LOOKS);
            (result, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, found: BuildResult) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        self.done.notify_all();
    }
}

fn is_cancelled(error: &CompileError) -> bool {
    match error {
        CompileError::Interrupted(why) => *why == Interrupted::Cancelled,
        CompileError::Parser(crate::TableError::Interrupted(why)) => *why == Interrupted::Cancelled,
        CompileError::Start(error) => error.is_cancelled(),
        _ => false,
    }
}

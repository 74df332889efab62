//! Folders through which caches share masks, each cache in the place of a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use palmette_core::{Constraint, TokenId, Vocabulary};
use palmette_grammar::{
    CacheLimits, CompiledGrammar, FolderLimits, FolderStatistics, GrammarCache, GrammarFolder,
    GrammarScratch, GrammarSource, GrammarState, MaskBudget, PrecomputeLimits, PreparedVocabulary,
    SavedGrammar,
};
use palmette_testkit::json::schemas;
use proptest::prelude::*;

use super::{filled, lark_source, schema_source, sources, states, vocabulary, walking};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

fn cache_within(path: &Path, limits: FolderLimits) -> GrammarCache {
    let folder = GrammarFolder::open(path, limits).unwrap();
    GrammarCache::new(CacheLimits::default()).with_folder(folder)
}

fn cache(path: &Path) -> GrammarCache {
    cache_within(path, FolderLimits::default())
}

/// The grammar once the folder's thread has seen to it.
#[track_caller]
fn ask(
    cache: &GrammarCache,
    source: &GrammarSource,
    vocabulary: &Arc<PreparedVocabulary>,
) -> Arc<CompiledGrammar> {
    let found = cache.get(source, vocabulary, &AtomicBool::new(false)).unwrap();
    assert!(cache.folder().unwrap().wait(LONG));
    found.grammar
}

/// Counters so far: opened, saved, refused.
fn counted(cache: &GrammarCache) -> (u64, u64, u64) {
    let FolderStatistics { opened, saved, refused } = cache.folder().unwrap().statistics();
    (opened, saved, refused)
}

/// The names in a folder with an ending, ascending.
fn names(path: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    names.sort();
    names
}

/// True when a mask is known without finding out anything.
fn is_known(grammar: &CompiledGrammar, state: &GrammarState) -> bool {
    let constraint = &grammar.constraint;
    let mut row = vec![0; palmette_core::mask::num_words(constraint.num_tokens())];
    let nothing = MaskBudget { explore: 0, walk: 0, ..MaskBudget::unlimited() };
    constraint.fill_mask_within(state, &mut GrammarScratch::default(), &mut row, &nothing).is_ok()
}

/// Masks along random texts are those of a walk over the vocabulary.
#[track_caller]
fn check_masks(grammar: &CompiledGrammar, vocabulary: &Arc<PreparedVocabulary>) {
    let slow = walking(&grammar.constraint, vocabulary);
    for seed in 0..6 {
        let (found, expected) = (states(&grammar.constraint, seed, 10), states(&slow, seed, 10));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(filled(&grammar.constraint, found), filled(&slow, expected));
        }
    }
}

#[test]
fn one_finds_masks_and_the_others_read_them() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let caches = [cache(folder.path()), cache(folder.path())];
    for (number, source) in (1..).zip(sources()) {
        let first = ask(&caches[0], &source, &vocabulary);
        let second = ask(&caches[1], &source, &vocabulary);
        assert_eq!(counted(&caches[0]), (0, number, 0));
        assert_eq!(counted(&caches[1]), (number, 0, 0));
        // What the first found out, the second knows.
        let known = |grammar: &CompiledGrammar| -> Vec<bool> {
            let places = states(&walking(&grammar.constraint, &vocabulary), 1, 10);
            places.iter().map(|state| is_known(grammar, state)).collect()
        };
        assert_eq!(known(&first), known(&second), "{source:?}");
        check_masks(&first, &vocabulary);
        check_masks(&second, &vocabulary);
        // Nothing is done twice.
        ask(&caches[0], &source, &vocabulary);
        ask(&caches[1], &source, &vocabulary);
    }
    let number = sources().len();
    assert_eq!(counted(&caches[0]), (0, number as u64, 0));
    assert_eq!(names(folder.path(), "pmg").len(), number);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), number, "locks are left");
    assert!(caches.iter().all(|cache| cache.folder().unwrap().take_reports().is_empty()));
}

#[test]
fn grammars_that_are_asked_for_at_once_are_found_once() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let caches: Vec<_> = (0..6).map(|_| cache(folder.path())).collect();
    let begin = Barrier::new(caches.len());
    std::thread::scope(|scope| {
        for cache in &caches {
            scope.spawn(|| {
                begin.wait();
                for source in sources() {
                    cache.get(&source, &vocabulary, &AtomicBool::new(false)).unwrap();
                }
                assert!(cache.folder().unwrap().wait(LONG));
            });
        }
    });
    let total =
        |of: fn((u64, u64, u64)) -> u64| -> u64 { caches.iter().map(counted).map(of).sum() };
    let number = sources().len() as u64;
    assert_eq!(total(|(_, saved, _)| saved), number);
    assert_eq!(total(|(opened, ..)| opened), number * (caches.len() as u64 - 1));
    assert_eq!(total(|(.., refused)| refused), 0);
    for source in sources() {
        caches.iter().for_each(|cache| check_masks(&ask(cache, &source, &vocabulary), &vocabulary));
    }
}

#[test]
fn texts_go_on_while_masks_are_read() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    for source in sources() {
        ask(&cache(folder.path()), &source, &vocabulary);
        let cache = cache(folder.path());
        let grammar = cache.get(&source, &vocabulary, &AtomicBool::new(false)).unwrap().grammar;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let slow = walking(&grammar.constraint, &vocabulary);
                    let places = states(&grammar.constraint, 5, 10);
                    let expected: Vec<_> =
                        states(&slow, 5, 10).iter().map(|state| filled(&slow, state)).collect();
                    let check = || {
                        for (state, expected) in places.iter().zip(&expected) {
                            assert_eq!(&filled(&grammar.constraint, state), expected);
                        }
                    };
                    while !cache.folder().unwrap().wait(Duration::ZERO) {
                        check();
                    }
                    check();
                });
            }
        });
        assert_eq!(counted(&cache), (1, 0, 0));
    }
}

/// The folder of [`processes_that_ask_at_once_find_masks_once`], for the processes that it starts.
const FOLDER: &str = "PALMETTE_TEST_GRAMMAR_FOLDER";

#[test]
fn processes_that_ask_at_once_find_masks_once() {
    if let Some(path) = std::env::var_os(FOLDER) {
        let (cache, vocabulary) = (cache(Path::new(&path)), vocabulary());
        for source in sources() {
            check_masks(&ask(&cache, &source, &vocabulary), &vocabulary);
        }
        let (opened, saved, refused) = counted(&cache);
        #[expect(clippy::print_stdout, reason = "the test that started this process reads it")]
        {
            println!("\ncounted {opened} {saved} {refused}");
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let start = |_| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "folder::processes_that_ask_at_once_find_masks_once"]);
        let program = program.args(["--nocapture"]).env(FOLDER, folder.path());
        program.stdout(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<_> = (0..3).map(start).collect();
    let mut total = [0; 3];
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let output = String::from_utf8(output.stdout).unwrap();
        let line = output.lines().find_map(|line| line.strip_prefix("counted ")).unwrap();
        for (total, number) in total.iter_mut().zip(line.split(' ')) {
            *total += number.parse::<usize>().unwrap();
        }
    }
    assert_eq!(total, [sources().len() * 2, sources().len(), 0], "opened, saved, refused");
}

#[test]
fn a_damaged_file_is_refused_by_name_and_made_anew() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let source = &sources()[0];
    ask(&cache(folder.path()), source, &vocabulary);
    let path = names(folder.path(), "pmg").remove(0);
    let sound = std::fs::read(&path).unwrap();
    let mut damages: Vec<Vec<u8>> =
        vec![Vec::new(), b"PALMGRAM".to_vec(), [&*sound, b"\0"].concat()];
    // The header, the table, every section and what is between.
    for at in (0..sound.len()).step_by(sound.len() / 60).chain([
        0,
        8,
        12,
        16,
        24,
        28,
        64,
        sound.len() - 1,
    ]) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x20;
        damages.push(damaged);
        damages.push(sound[..at].to_vec());
    }
    for damaged in damages {
        std::fs::write(&path, &damaged).unwrap();
        let cache = cache(folder.path());
        let grammar = ask(&cache, source, &vocabulary);
        assert_eq!(counted(&cache), (0, 1, 1));
        let reports = cache.folder().unwrap().take_reports();
        assert!(reports.len() == 1 && reports[0].contains(path.to_str().unwrap()), "{reports:?}");
        assert!(cache.folder().unwrap().take_reports().is_empty());
        check_masks(&grammar, &vocabulary);
        assert_eq!(std::fs::read(&path).unwrap(), sound, "it is as it was");
    }
}

#[test]
fn a_file_of_another_grammar_is_not_used() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    ask(&cache(folder.path()), &sources()[0], &vocabulary);
    let first = names(folder.path(), "pmg").remove(0);
    ask(&cache(folder.path()), &sources()[1], &vocabulary);
    let second = names(folder.path(), "pmg").into_iter().find(|path| *path != first).unwrap();
    std::fs::copy(&first, &second).unwrap();
    let cache = cache(folder.path());
    check_masks(&ask(&cache, &sources()[1], &vocabulary), &vocabulary);
    assert_eq!(counted(&cache), (0, 1, 1));
    let reports = cache.folder().unwrap().take_reports();
    assert!(reports[0].contains("is of another grammar"), "{reports:?}");
    assert_eq!(SavedGrammar::open(&second).unwrap().source(), &sources()[1]);
}

#[test]
fn another_vocabulary_or_another_option_shares_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let other = Vocabulary::new([Some("{"), Some("}"), Some("\""), None], [TokenId(3)]).unwrap();
    let other = Arc::new(PreparedVocabulary::new(Arc::new(other)));
    let cache = cache(folder.path());
    let source = schema_source("{}");
    let GrammarSource::JsonSchema { text, mut options } = source.clone() else { unreachable!() };
    options.inexpressible = palmette_grammar::frontends::json_schema::Inexpressible::Ignored;
    let relaxed = GrammarSource::JsonSchema { text, options };
    for (source, vocabulary) in [(&source, &vocabulary()), (&source, &other), (&relaxed, &other)] {
        check_masks(&ask(&cache, source, vocabulary), vocabulary);
    }
    assert_eq!(counted(&cache), (0, 3, 0));
    assert_eq!(names(folder.path(), "pmg").len(), 3);
}

#[test]
fn grammars_without_masks_to_share_are_left_alone() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let cache = cache(folder.path());
    // Sets that are open, lexemes that look back, and limits that no file holds.
    let GrammarSource::JsonSchema { text, mut options } = schema_source("{}") else {
        unreachable!()
    };
    options.limits.max_rules -= 1;
    let sources = [
        schema_source(r#"{"type": "string", "x-catalog": {"name": "shop"}}"#),
        lark_source("start: A B\nA: /a/\nB: /(?<=a)b/"),
        GrammarSource::JsonSchema { text, options },
    ];
    for source in &sources {
        ask(&cache, source, &vocabulary);
    }
    assert_eq!(counted(&cache), (0, 0, 0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_files_written_first_go_first() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let others = ["notes.txt", "abc.pmg"].map(|name| folder.path().join(name));
    others.iter().for_each(|path| std::fs::write(path, [0; 100_000]).unwrap());
    // Three small files, each of which counts as 64 KiB.
    let ahead = PrecomputeLimits { steps: 20_000, ..FolderLimits::default().ahead };
    let limits = FolderLimits { max_bytes: 200_000, ahead };
    let cache = cache_within(folder.path(), limits);
    let mut written: Vec<PathBuf> = Vec::new();
    for number in 0..6 {
        let source = lark_source(&format!("start: \"abc\" \"{number}\""));
        ask(&cache, &source, &vocabulary);
        let found: Vec<_> =
            names(folder.path(), "pmg").into_iter().filter(|path| !others.contains(path)).collect();
        let new: Vec<_> = found.iter().filter(|path| !written.contains(path)).cloned().collect();
        assert_eq!(new.len(), 1);
        // Times of files are coarse: each is a second older than the next.
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + number);
        std::fs::File::options().append(true).open(&new[0]).unwrap().set_modified(time).unwrap();
        written.extend(new);
        let mut last: Vec<_> = written.iter().rev().take(3).cloned().collect();
        last.sort();
        assert_eq!(found, last);
    }
    assert_eq!(counted(&cache), (0, 6, 0));
    assert!(others.iter().all(|path| path.exists()), "files of others stay");
    // One that alone is too large is not written.
    let tight = FolderLimits { max_bytes: 100, ..limits };
    let cache = cache_within(folder.path(), tight);
    check_masks(&ask(&cache, &schema_source("{}"), &vocabulary), &vocabulary);
    assert_eq!(counted(&cache), (0, 0, 0));
}

#[test]
fn what_killed_processes_left_goes() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let (old, new) = (folder.path().join(".tmpOld"), folder.path().join(".tmpNew"));
    let lock = folder.path().join(format!("{:032x}.lock", 7));
    [&old, &new, &lock].iter().for_each(|path| std::fs::write(path, "x").unwrap());
    let hours = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    std::fs::File::options().append(true).open(&old).unwrap().set_modified(hours).unwrap();
    ask(&cache(folder.path()), &sources()[0], &vocabulary);
    assert!(!old.exists() && new.exists() && !lock.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_told_of_once() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let path = folder.path().join("gone");
    let cache = cache(&path);
    std::fs::remove_dir(&path).unwrap();
    for source in sources() {
        check_masks(&ask(&cache, &source, &vocabulary), &vocabulary);
    }
    assert_eq!(counted(&cache), (0, 0, 0));
    let reports = cache.folder().unwrap().take_reports();
    assert!(reports.len() == 1 && reports[0].contains("not shared"), "{reports:?}");
    // Whoever listens is told at once.
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let again = self::cache(&path);
    let listening = Arc::clone(&heard);
    again
        .folder()
        .unwrap()
        .on_report(move |report| listening.lock().unwrap().push(report.to_owned()));
    std::fs::remove_dir(&path).unwrap();
    ask(&again, &sources()[0], &vocabulary);
    assert_eq!(
        (heard.lock().unwrap().clone(), again.folder().unwrap().take_reports()),
        (reports, vec![])
    );
    // A file in the place of the folder.
    std::fs::write(&path, "").unwrap();
    assert!(GrammarFolder::open(&path, FolderLimits::default()).is_err());
}

#[cfg(unix)]
#[test]
fn a_folder_is_its_users_and_one_that_all_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    cache(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = GrammarFolder::open(&path, FolderLimits::default()).unwrap_err();
    assert!(error.to_string().contains("every user may write it (mode 777)"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn masks_of_random_schemas_from_a_file_are_those_compiled(schema in schemas(), seed in any::<u64>()) {
        let source = schema_source(&schema.to_string());
        // Nothing is valid for some, and some cannot be expressed: that is another test's matter.
        prop_assume!(source.parse().is_ok());
        let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
        let ahead = PrecomputeLimits { steps: 500_000, ..FolderLimits::default().ahead };
        let limits = FolderLimits { ahead, ..FolderLimits::default() };
        let alone = GrammarCache::new(CacheLimits::default());
        let compiled = alone.get(&source, &vocabulary, &AtomicBool::new(false)).unwrap().grammar;
        let writer = cache_within(folder.path(), limits);
        let saved = ask(&writer, &source, &vocabulary);
        let reader = cache_within(folder.path(), limits);
        let opened = ask(&reader, &source, &vocabulary);
        prop_assert_eq!((counted(&writer), counted(&reader)), ((0, 1, 0), (1, 0, 0)));
        let all = [&compiled, &saved, &opened].map(|it| states(&it.constraint, seed, 12));
        for (at, state) in all[0].iter().enumerate() {
            let expected = filled(&compiled.constraint, state);
            prop_assert_eq!(&filled(&saved.constraint, &all[1][at]), &expected);
            prop_assert_eq!(&filled(&opened.constraint, &all[2][at]), &expected);
        }
    }
}

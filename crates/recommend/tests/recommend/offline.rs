//! Offline runs: each history answered as alone, and interrupted runs that end in the same bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palmette_decode::run_on;
use palmette_recommend::offline::{
    AnswerCounts, AnswerRecord, AnswerSink, NamedHistory, OfflineError, OfflineRun, PartialFile,
    RunDescription, RunStep,
};
use palmette_recommend::{
    CheckedQuestion, NamedItem, PromptFields, QuestionLimits, RecommendQuestion, Recommender,
    UnknownItems, Worker,
};
use serde_json::{Map, Value, json};

use crate::prompts;
use crate::random::Random;
use crate::shop::{catalog, format, model};

const NUM_ITEMS: u64 = 60;

fn shop() -> Arc<Recommender> {
    Arc::new(Recommender::new(model(), Arc::new(catalog(NUM_ITEMS as u32)), format()).unwrap())
}

/// A narrow question, to be asked about any history.
fn question(recommender: &Recommender, unknown_items: UnknownItems) -> CheckedQuestion {
    let mut question = RecommendQuestion::new(Vec::<NamedItem>::new());
    (question.k, question.beam_width) = (2, Some(4));
    question.unknown_items = unknown_items;
    let view = recommender.view().unwrap();
    question.check(recommender, &view, &QuestionLimits::default(), None).unwrap()
}

/// Histories by ids and codes, of known and unknown items; some cannot be read, some have no user.
fn histories(random: &mut Random, count: usize) -> Vec<NamedHistory> {
    let item = |random: &mut Random| match random.below(8) {
        0 => NamedItem::from(format!("gone{}", random.below(3))),
        1 => NamedItem::Codes(vec![random.below(7) as u32, 1, 2]),
        _ => NamedItem::from(format!("i{}", random.below(NUM_ITEMS))),
    };
    let history = |number| {
        let user = (!random.is(9)).then(|| format!("u{number}"));
        let items = match random.is(11) {
            true => Err(format!("line {number}: \"torn\\")),
            false => Ok((0..random.below(6)).map(|_| item(random)).collect()),
        };
        NamedHistory { user, fields: PromptFields::default(), items }
    };
    (0..count).map(history).collect()
}

/// Records by definition: one history after another, by a worker that answers nothing else.
fn one_by_one(
    recommender: &Arc<Recommender>,
    question: &CheckedQuestion,
    histories: &[NamedHistory],
) -> Vec<AnswerRecord> {
    let record = |history: &NamedHistory| {
        let mut record = AnswerRecord { user: history.user.clone(), ..AnswerRecord::default() };
        let asked = history.items.clone().and_then(|items| {
            question.about(items, PromptFields::default()).map_err(|faults| faults.to_string())
        });
        match asked {
            Err(reason) => record.error = Some(reason),
            Ok(asked) => {
                let mut worker = Worker::new(Arc::clone(recommender), 1);
                let answer = worker.answer(&asked, false, &mut run_on).unwrap();
                let view = answer.view.view();
                let items = || answer.items.iter();
                record.items = Some(items().map(|item| view.id(item.number).to_owned()).collect());
                record.scores = Some(items().map(|item| item.score).collect());
                record.codes = Some(items().map(|item| view.codes(item.number)).collect());
                record.proven = Some(answer.missed_at_most.is_none());
                record.missed_at_most = answer.missed_at_most;
                record.skipped = asked.unknown().len() as u32;
            }
        }
        record
    };
    histories.iter().map(record).collect()
}

fn lines(records: &[AnswerRecord]) -> String {
    records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
}

#[test]
fn each_history_is_answered_as_alone() {
    let recommender = shop();
    let histories = histories(&mut Random(3), 150);
    for unknown in [UnknownItems::Skip, UnknownItems::Error] {
        let question = question(&recommender, unknown);
        let expected = one_by_one(&recommender, &question, &histories);
        for workers in [0, 1, 2] {
            let mut run = OfflineRun::new(&recommender, question.clone(), workers).unwrap();
            let (mut records, mut answered) = (Vec::new(), 0);
            for history in &histories {
                let step = run.push(history.clone(), &mut records).unwrap();
                answered += usize::from(step == RunStep::Answered);
                assert_ne!(step, RunStep::Kept);
                assert_eq!(run.counts().histories, records.len());
            }
            assert!(answered > 0 && records.len() < histories.len());
            let counts = run.finish(&mut records).unwrap();
            assert_eq!(records, expected);

            let skipped = |record: &&AnswerRecord| record.skipped > 0;
            let errors = || expected.iter().filter_map(|record| record.error.as_ref());
            assert_eq!((counts.histories, counts.kept), (150, 0));
            assert_eq!(
                (counts.errors, counts.first_error.as_ref()),
                (errors().count(), errors().next())
            );
            assert_eq!(counts.histories_with_skipped, expected.iter().filter(skipped).count());
            let skipped = expected.iter().map(|record| record.skipped as usize).sum::<usize>();
            assert_eq!(counts.skipped, skipped);
            let proven = |record: &&AnswerRecord| record.proven == Some(true);
            assert_eq!(counts.proven, expected.iter().filter(proven).count());
            let is_stranger = |history: &&NamedHistory| {
                history.items.as_ref().is_ok_and(|items| {
                    let is_gone = |item: &NamedItem| item.to_text().starts_with("gone");
                    !items.is_empty() && items.iter().all(is_gone)
                })
            };
            let strangers = histories.iter().filter(is_stranger).count();
            let are_told = unknown == UnknownItems::Skip;
            assert_eq!(counts.strangers, if are_told { strangers } else { 0 });
            assert_eq!(counts.first_stranger.is_some(), are_told && strangers > 0);
        }
    }
}

/// A history's own query and fields of the user go before the question's, and what no text reads is
/// left out.
#[test]
fn histories_have_prompts_of_their_own() {
    let file = prompts::cases();
    let catalog = prompts::catalog(prompts::items(&file), Some(["a", "b", "c"]));
    let template = json!({"prompt": "{{ query }} {{ user.age }}: {{ history | join('') }}"});
    let dir = prompts::directory("plain", &template);
    let read = prompts::read(dir.path(), &catalog).unwrap();
    let recommender = Arc::new(Recommender::new(prompts::model(), catalog, read).unwrap());
    let fields = |query: Option<&str>, user: &[(&str, u32)]| PromptFields {
        query: query.map(str::to_owned),
        user: user.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect(),
    };
    let asked = |fields: &PromptFields| {
        let PromptFields { query, user } = fields.clone();
        let history = RecommendQuestion::new(vec![NamedItem::from("i3")]);
        let question = RecommendQuestion { k: 3, query, user, ..history };
        let (view, limits) = (recommender.view().unwrap(), QuestionLimits::default());
        question.check(&recommender, &view, &limits, None).unwrap()
    };
    let common = fields(Some("a tent"), &[("age", 30)]);
    let own = [
        (fields(None, &[]), common.clone()),
        (fields(Some("a stove"), &[]), fields(Some("a stove"), &[("age", 30)])),
        (fields(Some("a stove"), &[("age", 4)]), fields(Some("a stove"), &[("age", 4)])),
        (fields(None, &[("age", 4), ("city", 7)]), fields(Some("a tent"), &[("age", 4)])),
    ];
    let mut run = OfflineRun::new(&recommender, asked(&common), 1).unwrap();
    let mut records = Vec::new();
    for (fields, _) in &own {
        let items = Ok(vec![NamedItem::from("i3")]);
        let history = NamedHistory { user: None, fields: fields.clone(), items };
        run.push(history, &mut records).unwrap();
    }
    assert!(run.unread_fields().iter().eq(["user.city"]));
    run.finish(&mut records).unwrap();
    let mut different = std::collections::BTreeSet::new();
    for ((_, whole), record) in own.iter().zip(&records) {
        let mut worker = Worker::new(Arc::clone(&recommender), 1);
        let answer = worker.answer(&asked(whole), false, &mut run_on).unwrap();
        let scores: Vec<f32> = answer.items.iter().map(|item| item.score).collect();
        assert_eq!(record.scores.as_ref(), Some(&scores));
        different.insert(format!("{scores:?}"));
    }
    assert_eq!(different.len(), 4, "each prompt is another");
}

#[test]
fn a_record_is_a_line() {
    let error = AnswerRecord::from_error(Some("a".into()), "no");
    assert_eq!(lines(&[error]), "{\"user\":\"a\",\"error\":\"no\"}\n");
    let none = AnswerRecord {
        items: Some(Vec::new()),
        scores: Some(vec![-0.1]),
        codes: Some(vec![vec![1, 2]]),
        skipped: 3,
        ..AnswerRecord::default()
    };
    let line = "{\"user\":null,\"items\":[],\"scores\":[-0.1],\"codes\":[[1,2]],\"skipped\":3}\n";
    assert_eq!(lines(std::slice::from_ref(&none)), line);
    assert_eq!(serde_json::from_str::<AnswerRecord>(line).unwrap(), none);
}

#[test]
fn a_run_that_is_cancelled_gives_no_records() {
    let recommender = shop();
    let question = question(&recommender, UnknownItems::Skip);
    let looks = AtomicUsize::new(0);
    // In the middle of a search of the second batch, or of a later one.
    let is_cancelled = || looks.fetch_add(1, Ordering::Relaxed) > 500;
    let run = OfflineRun::new(&recommender, question, 1).unwrap();
    let mut run = run.cancel_when(&is_cancelled);
    let mut records = Vec::new();
    let histories = histories(&mut Random(5), 1000);
    let ended = histories.into_iter().find_map(|history| run.push(history, &mut records).err());
    assert!(matches!(ended, Some(OfflineError::Cancelled)), "{ended:?}");
    assert!(records.len() < 1000 && records.len() == run.counts().histories);
    assert!(records.iter().all(|record| !record.error.as_deref().unwrap_or("").contains("cancel")));
}

/// A folder in which the answers of one question are written.
struct Answers {
    dir: tempfile::TempDir,
    recommender: Arc<Recommender>,
    question: CheckedQuestion,
    description: RunDescription,
    histories: Vec<NamedHistory>,
}

impl Answers {
    fn new(histories: Vec<NamedHistory>) -> Self {
        let recommender = shop();
        let question = question(&recommender, UnknownItems::Skip);
        let facts = json!({"catalog": {"generation": 7}, "now": 1.5, "model": "a"});
        let description = description(&question, facts);
        let dir = tempfile::tempdir().unwrap();
        Self { dir, recommender, question, description, histories }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn out(&self) -> PathBuf {
        self.path("out.jsonl")
    }

    fn partial(&self) -> PathBuf {
        self.path("out.jsonl.partial")
    }

    /// Answers what is left, up to the end, where the file is closed as it is.
    fn answer(&self, partial: &mut PartialFile) -> Result<AnswerCounts, OfflineError> {
        let mut run = OfflineRun::new(&self.recommender, self.question.clone(), 1).unwrap();
        for history in &self.histories {
            run.push(history.clone(), partial)?;
        }
        run.finish(partial)
    }

    /// Begins, or goes on with what is there.
    fn begin(&self) -> Result<PartialFile, OfflineError> {
        let earlier = PartialFile::interrupted_run(&self.out())?;
        PartialFile::begin(&self.out(), &self.description, earlier.as_ref())
    }

    /// Leaves these bytes as those of a run that was interrupted.
    fn interrupt(&self, bytes: &[u8]) {
        drop(PartialFile::begin(&self.out(), &self.description, None).unwrap());
        std::fs::write(self.partial(), bytes).unwrap();
    }
}

fn description(question: &CheckedQuestion, facts: Value) -> RunDescription {
    let facts: Map<String, Value> = serde_json::from_value(facts).unwrap();
    RunDescription::new(facts, question)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_interrupted_run_goes_on_from_every_byte() {
    let answers = Answers::new(histories(&mut Random(8), 4));
    let whole = one_by_one(&answers.recommender, &answers.question, &answers.histories);
    let whole = lines(&whole).into_bytes();
    let mut expected = None;
    let tails = [&b""[..], b"\0\0\n", b"{\"user\": \"u"];
    for cut in 0..=whole.len() {
        answers.interrupt(&[&whole[..cut], tails[cut % 3]].concat());
        let mut partial = answers.begin().unwrap();
        let counts = answers.answer(&mut partial).unwrap();
        partial.finish(&counts).unwrap();
        assert!(std::fs::read(answers.out()).unwrap() == whole, "cut at {cut}");
        let kept = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(counts.kept, kept, "cut at {cut}");
        // All but what only the process that met it counts.
        let written = serde_json::to_value(&counts).unwrap();
        assert_eq!(expected.get_or_insert_with(|| written.clone()), &written);
        assert_eq!(names(answers.dir.path()), ["_out.jsonl.run.json", "out.jsonl"]);
    }
    let done = PartialFile::finished_run(&answers.out(), &answers.description).unwrap();
    assert_eq!((done.histories, done.kept), (4, 4));
    // Other questions, and other bytes, are not done.
    let other = description(&answers.question, json!({}));
    assert_eq!(PartialFile::finished_run(&answers.out(), &other), None);
    std::fs::write(answers.out(), &whole[1..]).unwrap();
    assert_eq!(PartialFile::finished_run(&answers.out(), &answers.description), None);
}

#[test]
fn tables_are_made_of_batches() {
    for (records, batches) in [(0, vec![0]), (4096, vec![4096, 0]), (5000, vec![4096, 904])] {
        let answers = Answers::new(Vec::new());
        std::fs::write(answers.out(), "before").unwrap();
        let record = |at| AnswerRecord::from_error(Some(format!("u{at}")), "no");
        let all: Vec<AnswerRecord> = (0..records).map(record).collect();
        let counts = AnswerCounts { histories: records, ..AnswerCounts::default() };

        let mut partial = answers.begin().unwrap();
        partial.push(all.clone()).unwrap();
        let failed = partial.finish_table(&counts, |_, _| Err("no ink"));
        let failed = failed.unwrap_err();
        let source = std::error::Error::source(&failed).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("no ink"), "{failed:?}");
        assert_eq!(std::fs::read_to_string(answers.out()).unwrap(), "before");

        let mut partial = answers.begin().unwrap();
        for at in 0..records {
            let user = format!("u{at}");
            assert_eq!(partial.next_kept(Some(&user)).unwrap().as_ref(), Some(&all[at]));
        }
        let mut sizes = Vec::new();
        let written = partial.finish_table(&counts, |mut file, lines| -> std::io::Result<()> {
            let mut read = Vec::new();
            for batch in lines {
                let batch = batch?;
                sizes.push(batch.len());
                read.extend(batch);
            }
            assert!(read == all);
            std::io::Write::write_all(&mut file, b"a table")
        });
        written.unwrap();
        assert_eq!(sizes, batches);
        assert_eq!(std::fs::read_to_string(answers.out()).unwrap(), "a table");
        assert_eq!(names(answers.dir.path()), ["_out.jsonl.run.json", "out.jsonl"]);
        assert!(PartialFile::finished_run(&answers.out(), &answers.description).is_some());
    }
}

#[test]
fn another_run_is_refused_and_its_answers_stay() {
    let answers = Answers::new(histories(&mut Random(2), 3));
    #[track_caller]
    fn check<T: std::fmt::Debug>(refused: Result<T, OfflineError>, words: &[&str]) {
        let error = refused.unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let interrupted = "{\"user\":\"somebody\",\"error\":\"no\"}\n";
    answers.interrupt(interrupted.as_bytes());
    let earlier = PartialFile::interrupted_run(&answers.out()).unwrap().unwrap();
    assert_eq!((&earlier, earlier.moment()), (&answers.description, Some(1.5)));
    let begin = |facts: Value| {
        let other = description(&answers.question, facts);
        PartialFile::begin(&answers.out(), &other, Some(&earlier))
    };
    let catalog = json!({"catalog": {"generation": 8}, "now": 1.5, "model": "a"});
    check(begin(catalog), &["another catalog;", "generation 7"]);
    check(
        begin(json!({"catalog": {"generation": 7}, "now": 1.5})),
        &["another model;", "as it was"],
    );
    check(begin(json!({"new": 1})), &["another new", "another catalog", "another now"]);

    let mut partial = answers.begin().unwrap();
    check(answers.begin(), &["another run is writing it"]);
    check(answers.answer(&mut partial), &["\"somebody\"", "they have changed"]);
    drop(partial);
    assert_eq!(std::fs::read_to_string(answers.partial()).unwrap(), interrupted);

    let about = answers.path("out.jsonl.partial.json");
    std::fs::write(&about, "[]").unwrap();
    check(answers.begin(), &["is damaged", "begin anew"]);
    std::fs::remove_file(&about).unwrap();
    check(answers.begin(), &["is not known", "begin anew"]);
    // Begun anew, and given up.
    let partial = PartialFile::begin(&answers.out(), &answers.description, None).unwrap();
    partial.discard().unwrap();
    assert_eq!(names(answers.dir.path()), Vec::<String>::new());
}

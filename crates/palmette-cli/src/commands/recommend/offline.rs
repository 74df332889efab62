//! `palmette recommend --histories`: recommendations for everyone.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use palmette_eval::{BadRecord, HistoryRecord, Progress};
use palmette_recommend::{CheckedQuestion, Recommendations, Worker, answer_all};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::partial::{self, Description, OutFormat, Partial, Record};
use super::{Asked, RecommendArgs};
use crate::commands::histories::Notes;
use crate::fingerprint;
use crate::input::is_stdin;
use crate::output::{grouped, make_parent, print, print_json, progress_bar, visible};

/// Histories that are answered side by side, for each thread: enough that threads seldom wait for the last one.
const ASKED_AT_ONCE: usize = 64;

/// Items of such histories, at most about.
const ITEMS_AT_ONCE: usize = 1 << 20;

/// Time between two lines about the progress where there is no terminal to show a bar.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

pub(super) fn run(args: &RecommendArgs, histories: &Path, given: &Path) -> anyhow::Result<()> {
    let format = OutFormat::of(given)?;
    let given = &args.shard.map_or_else(|| given.to_owned(), |shard| shard.file(given));
    let out = given.as_path();
    ensure!(!out.is_dir(), "--out {}: it is a directory; name a file", out.display());
    ensure!(
        !args.resume || !is_stdin(histories),
        "--resume walks the histories again, which standard input cannot; give a file"
    );
    // A link stays, and the file it leads to is replaced.
    let out = std::fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
    let is_out = |path: &Path| std::fs::canonicalize(path).is_ok_and(|path| path == out);
    let filter = args.filter.as_deref().and_then(|filter| filter.strip_prefix('@'));
    let read = [args.rules.as_deref(), args.question.as_deref(), filter.map(Path::new)];
    ensure!(
        !is_out(histories)
            && !is_out(&args.recommender.catalog)
            && !read.into_iter().flatten().any(is_out),
        "--out {} is a file that is read; it would be lost",
        out.display()
    );
    make_parent(&out)?;

    let earlier = if args.resume { partial::interrupted(&out)? } else { None };
    let moment = earlier.as_ref().and_then(|earlier| earlier.get("now")?.as_f64());
    let body = super::given(args)?;
    ensure!(
        body.question.history.is_empty(),
        "--question has a history, and --histories has the others: give one of them"
    );
    let asked = Asked::new(args, &body, super::question(args, &body)?, moment)?;
    let question = asked.question.question();
    ensure!(
        question.explain_items.is_none() && !question.trace && question.fields.is_empty(),
        "explain_items, trace and fields are for one history: leave them out, or give --history"
    );
    let mut workers: Vec<Worker> =
        (0..asked.threads).map(|_| Worker::new(Arc::clone(&asked.recommender), 1)).collect();
    // Wrong widths are said once, not a thousand times.
    workers.iter_mut().try_for_each(|worker| {
        asked.question.with_request(false, |request| worker.prepare(request))
    })?;

    let description = description(args, &asked, histories)?;
    if args.resume
        && earlier.is_none()
        && let Some(counts) = partial::done(&out, &description)
    {
        let counts = Counts { kept: counts.histories, ..counts };
        return report(args, &asked, given, &counts, &Notes::default(), 0.0);
    }
    let mut run = Run {
        asked: &asked,
        workers,
        partial: Partial::begin(&out, &description, earlier.as_ref())?,
        waiting: Vec::new(),
        waiting_items: 0,
        counts: Counts::default(),
        bar: progress_bar(0, "", args.json || is_stdin(histories)),
        start: Instant::now(),
        next_line: BETWEEN_LINES,
        first: None,
        now: Progress::default(),
    };
    run.bar.set_style(ProgressStyle::with_template("{bar:30} {percent}% {msg}")?);
    let mut failed = Ok(());
    let notes =
        args.histories_options.read_part(histories, args.shard, &mut |record, progress| {
            failed = run.take(record, progress);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    notes.say(args.json);
    failed?;
    run.answer_waiting()?;
    run.bar.finish_and_clear();
    let seconds = run.start.elapsed().as_secs_f64();
    let Run { partial, counts, .. } = run;
    if let Some(nothing) = nothing_answered(args, &counts) {
        partial.give_up()?;
        bail!("{}: {nothing}", histories.display());
    }
    partial.finish(format, &counts)?;
    report(args, &asked, given, &counts, &notes, seconds)
}

/// Counts of answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    histories: usize,
    /// Answers kept from an earlier run.
    #[serde(skip)]
    kept: usize,
    errors: usize,
    first_error: Option<String>,
    skipped: usize,
    histories_with_skipped: usize,
    /// Histories of this run all of whose items are unknown, and the first such item.
    #[serde(skip)]
    strangers: usize,
    #[serde(skip)]
    first_stranger: Option<String>,
}

impl Counts {
    fn look_at(&mut self, one: &Waiting) {
        let Ok(question) = &one.question else { return };
        let first = question.unknown().next().filter(|_| question.history().is_empty());
        if let Some(first) = first {
            self.strangers += 1;
            self.first_stranger.get_or_insert_with(|| first.to_string());
        }
    }

    fn add(&mut self, record: &Record) {
        self.histories += 1;
        self.skipped += record.skipped as usize;
        self.histories_with_skipped += usize::from(record.skipped > 0);
        if let Some(error) = &record.error {
            self.errors += 1;
            self.first_error.get_or_insert_with(|| error.clone());
        }
    }
}

/// A history that has been read, and its items where the model can read them.
struct Waiting {
    user: Option<String>,
    question: Result<CheckedQuestion, String>,
}

/// Histories come in, answers go out in their order.
struct Run<'a> {
    asked: &'a Asked,
    workers: Vec<Worker>,
    partial: Partial,
    waiting: Vec<Waiting>,
    waiting_items: usize,
    counts: Counts,
    bar: ProgressBar,
    start: Instant,
    /// Time of the next line about the progress.
    next_line: Duration,
    /// Progress at the first history that was not kept, and now.
    first: Option<Progress>,
    now: Progress,
}

impl Run<'_> {
    fn take(
        &mut self,
        record: Result<HistoryRecord, BadRecord>,
        progress: Progress,
    ) -> anyhow::Result<()> {
        self.bar.set_length(progress.of);
        self.bar.set_position(progress.done);
        let user = match &record {
            Ok(record) => record.user.as_deref(),
            Err(bad) => bad.user.as_deref(),
        };
        if let Some(kept) = self.partial.next_kept(user)? {
            self.counts.add(&kept);
            self.counts.kept += 1;
            return Ok(());
        }
        self.now = progress;
        if self.first.is_none() {
            // Histories of an earlier run say nothing of the pace.
            self.first = Some(progress);
            self.start = Instant::now();
        }
        let waiting = self.find(record);
        self.waiting_items += waiting.question.as_ref().map_or(0, |of| of.named().len());
        self.waiting.push(waiting);
        let most = ASKED_AT_ONCE * self.asked.threads;
        if self.waiting.len() < most && self.waiting_items < ITEMS_AT_ONCE {
            return Ok(());
        }
        self.answer_waiting()
    }

    fn find(&self, record: Result<HistoryRecord, BadRecord>) -> Waiting {
        let record = match record {
            Ok(record) => record,
            Err(bad) => {
                return Waiting { user: bad.user.clone(), question: Err(bad.to_string()) };
            }
        };
        let question = self.asked.question.about(record.items);
        Waiting { user: record.user, question: question.map_err(|faults| faults.to_string()) }
    }

    /// Answers the histories that wait, side by side.
    fn answer_waiting(&mut self) -> anyhow::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_items = 0;
        let questions = waiting.iter().filter_map(|one| one.question.as_ref().ok());
        let mut answers = answer_all(&mut self.workers, questions).into_iter();
        let records: Vec<Record> = waiting
            .iter()
            .map(|one| {
                let answer = match &one.question {
                    Ok(_) => answers.next().expect("one a request").map_err(|e| e.to_string()),
                    Err(reason) => Err(reason.clone()),
                };
                record(one, answer)
            })
            .collect();
        self.partial.push(&records)?;
        records.iter().for_each(|record| self.counts.add(record));
        waiting.iter().for_each(|one| self.counts.look_at(one));
        let new = self.counts.histories - self.counts.kept;
        let elapsed = self.start.elapsed();
        let rate = new as f64 / elapsed.as_secs_f64().max(1e-9);
        let mut done = format!("{} histories, {rate:.0}/s", grouped(self.counts.histories as u64));
        // By the pace of all that were answered here: a bar's own estimate is of its latest steps, which are batches.
        let first = self.first.map_or(0, |first| first.done);
        let (made, left) =
            (self.now.done.saturating_sub(first), self.now.of.saturating_sub(self.now.done));
        if made > 0 && self.now.of > 0 {
            let seconds = elapsed.as_secs_f64() / made as f64 * left as f64;
            done += &format!(
                ", {} left",
                HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            );
        }
        if elapsed >= self.next_line && !std::io::stderr().is_terminal() {
            self.next_line = elapsed + BETWEEN_LINES;
            eprintln!("{done}");
        }
        self.bar.set_message(done);
        Ok(())
    }
}

/// The reason why these answers are no file to put in place of an earlier one; `None` where some history was answered.
///
/// A shard may have no histories, since others have them, or a single one that cannot be answered.
fn nothing_answered(args: &RecommendArgs, counts: &Counts) -> Option<String> {
    const WAY_OUT: &str =
        "no file is written, and one that is there stays; --allow-empty writes it";
    if args.allow_empty {
        return None;
    }
    let fewest = if args.shard.is_some() { 2 } else { 0 };
    if let Some(first) = &counts.first_stranger
        && counts.strangers == counts.histories
        && counts.histories >= fewest
    {
        return Some(format!(
            "none of the {} histories has an item of the catalog; the first item is {}: are these ids of another catalog, or another \
             column? {WAY_OUT}",
            grouped(counts.histories as u64),
            visible(first)
        ));
    }
    if counts.errors < counts.histories || counts.histories < fewest {
        return None;
    }
    Some(match &counts.first_error {
        Some(first) => format!(
            "none of the {} histories could be answered; the first: {}; {WAY_OUT}",
            grouped(counts.histories as u64),
            visible(first)
        ),
        None => format!("it has no histories; {WAY_OUT}"),
    })
}

fn record(of: &Waiting, answer: Result<Recommendations, String>) -> Record {
    let skipped = of.question.as_ref().map_or(0, |question| question.unknown().len());
    let (user, skipped) = (of.user.clone(), u32::try_from(skipped).unwrap_or(u32::MAX));
    match answer {
        Err(error) => Record { user, skipped, error: Some(error), ..Record::default() },
        Ok(answer) => {
            let (view, items) = (answer.view.view(), &answer.items);
            Record {
                user,
                skipped,
                items: Some(items.iter().map(|item| view.id(item.number).to_owned()).collect()),
                scores: Some(items.iter().map(|item| item.score).collect()),
                codes: Some(items.iter().map(|item| view.codes(item.number)).collect()),
                error: None,
            }
        }
    }
}

fn report(
    args: &RecommendArgs,
    asked: &Asked,
    out: &Path,
    counts: &Counts,
    notes: &Notes,
    seconds: f64,
) -> anyhow::Result<()> {
    let rate = (counts.histories - counts.kept) as f64 / seconds.max(1e-9);
    let answered = counts.histories - counts.errors;
    if args.json {
        return print_json(&json!({
            "out": out,
            "shard": args.shard.map(|shard| shard.to_string()),
            "histories": counts.histories,
            "answered": answered,
            "errors": counts.errors,
            "first_error": counts.first_error,
            "skipped": {"items": counts.skipped, "histories": counts.histories_with_skipped},
            "of_earlier_run": counts.kept,
            "notes": notes,
            "k": asked.question.question().k,
            "generation": asked.view().generation(),
            "threads": asked.threads,
            "seconds": seconds,
            "histories_per_second": rate,
        }));
    }
    let count = |count: usize| grouped(count as u64);
    if let Some(first) = &counts.first_error {
        eprintln!(
            "note: {} of {} histories could not be answered, as their records say; the first: {}",
            count(counts.errors),
            count(counts.histories),
            visible(first)
        );
    }
    let mut text = format!("{}: {} histories answered", out.display(), count(answered));
    if counts.skipped > 0 {
        let (items, histories) = (count(counts.skipped), count(counts.histories_with_skipped));
        text += &format!(", without {items} unknown items of {histories} histories");
    }
    if counts.kept > 0 {
        text += &format!(", {} of them by an earlier run", count(counts.kept));
    }
    if counts.kept < counts.histories {
        text += &format!("; {seconds:.1} s ({rate:.0} a second)");
    }
    print(&text)
}

/// Description of all that decides a run's answers: a resumed run must have the same.
fn description(
    args: &RecommendArgs,
    asked: &Asked,
    histories: &Path,
) -> anyhow::Result<Description> {
    let view = asked.view();
    let catalog = match view.generation() {
        Some(generation) => json!({
            "generation": generation,
            "contents": fingerprint::of_view(view),
            "left out": view.damaged().iter().map(|of| of.num_items).sum::<u64>(),
        }),
        None => fingerprint::of_file(&args.recommender.catalog)?,
    };
    let facts = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "histories": args.histories_options.fingerprint(histories, args.shard)?,
        "read": args.histories_options.description(),
        "shard": args.shard.map(|shard| shard.to_string()),
        "catalog": catalog,
        "model": fingerprint::of_folder(&args.recommender.model)?,
        "weights": format!("{:?}", args.recommender.weights),
        "now": asked.question.asks_now().then_some(asked.now),
    });
    match (facts, serde_json::to_value(asked.question.question())?) {
        (Value::Object(mut facts), Value::Object(question)) => {
            facts.extend(question);
            Ok(facts)
        }
        (facts, question) => bail!("{facts} and {question} are no objects"),
    }
}

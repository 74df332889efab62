//! `palmette recommend --histories`: recommendations for everyone.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use palmette_eval::{BadRecord, HistoryRecord, Progress, UnknownItems};
use palmette_recommend::{History, HistoryItem, Recommendations, Request, Worker, recommend_all};
use serde_json::{Map, Value, json};

use super::partial::{OutFormat, Partial, Record};
use super::{Asked, RecommendArgs, find_items};
use crate::input::is_stdin;
use crate::output::{grouped, make_parent, print, print_json, progress_bar, visible};

/// Histories that are answered side by side, for each thread: enough that threads seldom wait for the last one.
const ASKED_AT_ONCE: usize = 64;

/// Items of such histories, at most about.
const ITEMS_AT_ONCE: usize = 1 << 20;

pub(super) fn run(args: &RecommendArgs, histories: &Path, given: &Path) -> anyhow::Result<()> {
    let (out, format) = (given, OutFormat::of(given)?);
    ensure!(!out.is_dir(), "--out {}: it is a directory; name a file", out.display());
    ensure!(
        !args.resume || !is_stdin(histories),
        "--resume walks the histories again, which standard input cannot; give a file"
    );
    // A link stays, and the file it leads to is replaced.
    let out = std::fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
    let is_out = |path: &Path| std::fs::canonicalize(path).is_ok_and(|path| path == out);
    ensure!(
        !is_out(histories) && !is_out(&args.recommender.catalog),
        "--out {} is a file that is read; it would be lost",
        out.display()
    );
    make_parent(&out)?;

    let asked = Asked::new(args)?;
    let request = asked.request(args, History::Items(&[]));
    let mut workers: Vec<Worker> =
        (0..asked.threads).map(|_| Worker::new(Arc::clone(&asked.recommender), 1)).collect();
    // Wrong widths are said once, not a thousand times.
    workers.iter_mut().try_for_each(|worker| worker.prepare(&request))?;

    let description = description(args, &asked, histories)?;
    let mut run = Run {
        args,
        asked: &asked,
        workers,
        partial: Partial::begin(&out, &description, args.resume)?,
        waiting: Vec::new(),
        waiting_items: 0,
        counts: Counts::default(),
        bar: progress_bar(0, "", args.json || is_stdin(histories)),
        start: Instant::now(),
    };
    run.bar.set_style(ProgressStyle::with_template("{bar:30} {percent}% {msg}  {eta} left")?);
    let mut failed = Ok(());
    args.histories_options.read(histories, &mut |record, progress| {
        failed = run.take(record, progress);
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failed?;
    run.answer_waiting()?;
    run.bar.finish_and_clear();
    let seconds = run.start.elapsed().as_secs_f64();
    let Run { partial, counts, .. } = run;
    partial.finish(format)?;
    report(args, &asked, given, &counts, seconds)
}

/// Counts of answers.
#[derive(Debug, Default)]
struct Counts {
    histories: usize,
    /// Of an earlier run.
    kept: usize,
    errors: usize,
    first_error: Option<String>,
    skipped: usize,
    histories_with_skipped: usize,
}

impl Counts {
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
    items: Result<Vec<HistoryItem>, String>,
    skipped: u32,
}

/// Histories come in, answers go out in their order.
struct Run<'a> {
    args: &'a RecommendArgs,
    asked: &'a Asked,
    workers: Vec<Worker>,
    partial: Partial,
    waiting: Vec<Waiting>,
    waiting_items: usize,
    counts: Counts,
    bar: ProgressBar,
    start: Instant,
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
        let waiting = self.find(record);
        self.waiting_items += waiting.items.as_ref().map_or(0, Vec::len);
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
                return Waiting { user: bad.user.clone(), items: Err(bad.to_string()), skipped: 0 };
            }
        };
        match find_items(&self.asked.view, &record.items, self.args.unknown) {
            Ok((items, unknown)) => {
                Waiting { user: record.user, items: Ok(items), skipped: unknown.len() as u32 }
            }
            Err(error) => Waiting { user: record.user, items: Err(error.to_string()), skipped: 0 },
        }
    }

    /// Answers the histories that wait, side by side.
    fn answer_waiting(&mut self) -> anyhow::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_items = 0;
        let found = waiting.iter().filter_map(|one| one.items.as_ref().ok());
        let requests: Vec<Request<'_>> =
            found.map(|items| self.asked.request(self.args, History::Items(items))).collect();
        let mut answers = recommend_all(&mut self.workers, &requests).into_iter();
        let records: Vec<Record> = waiting
            .iter()
            .map(|one| {
                let answer = match &one.items {
                    Ok(_) => answers.next().expect("one a request").map_err(|e| e.to_string()),
                    Err(reason) => Err(reason.clone()),
                };
                record(one, answer)
            })
            .collect();
        self.partial.push(&records)?;
        records.iter().for_each(|record| self.counts.add(record));
        let new = self.counts.histories - self.counts.kept;
        let rate = new as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        let done = grouped(self.counts.histories as u64);
        self.bar.set_message(format!("{done} histories, {rate:.0}/s"));
        Ok(())
    }
}

fn record(of: &Waiting, answer: Result<Recommendations, String>) -> Record {
    let (user, skipped) = (of.user.clone(), of.skipped);
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
    seconds: f64,
) -> anyhow::Result<()> {
    let rate = (counts.histories - counts.kept) as f64 / seconds.max(1e-9);
    let answered = counts.histories - counts.errors;
    if args.json {
        return print_json(&json!({
            "out": out,
            "histories": counts.histories,
            "answered": answered,
            "errors": counts.errors,
            "first_error": counts.first_error,
            "skipped": {"items": counts.skipped, "histories": counts.histories_with_skipped},
            "of_earlier_run": counts.kept,
            "k": args.k,
            "generation": asked.view.view().generation(),
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
        text += &format!(", {} of them by the run that was interrupted", count(counts.kept));
    }
    print(&format!("{text}; {seconds:.1} s ({rate:.0} a second)"))
}

/// Fingerprint of all that decides the answers of a run: one that goes on has to be the same.
fn description(
    args: &RecommendArgs,
    asked: &Asked,
    histories: &Path,
) -> anyhow::Result<Map<String, Value>> {
    let catalog = match asked.view.view().generation() {
        Some(generation) => json!({"generation": generation}),
        None => file_facts(&args.recommender.catalog)?,
    };
    let histories = if is_stdin(histories) { Value::Null } else { file_facts(histories)? };
    let unknown = match args.unknown {
        UnknownItems::Error => "error",
        UnknownItems::Skip => "skip",
    };
    let facts = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "histories": histories,
        "catalog": catalog,
        "model": model_facts(&args.recommender.model)?,
        "weights": format!("{:?}", args.recommender.weights),
        "mode": format!("{:?}", asked.mode),
        "k": args.k,
        "beam width": args.beam_width,
        "widths": args.widths,
        "filter": asked.filter_text,
        "include-seen": args.include_seen,
        "unknown": unknown,
        "query": args.fields.query,
        "user": args.fields.user,
        "think": args.think,
        "temperature": args.think_temperature,
        "seed": args.think_seed,
    });
    match facts {
        Value::Object(facts) => Ok(facts),
        other => bail!("{other} is no object"),
    }
}

/// Length and time of a file's last change.
fn file_facts(path: &Path) -> anyhow::Result<Value> {
    let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    let modified =
        about.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(json!({"bytes": about.len(), "modified": modified.map(|at| at.as_secs_f64())}))
}

fn model_facts(dir: &Path) -> anyhow::Result<Value> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .with_context(|| dir.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.iter().map(|path| file_facts(path)).collect()
}

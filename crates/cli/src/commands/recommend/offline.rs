//! `palmette recommend --histories`: recommendations for everyone.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use palmette_model::DeviceName;
use palmette_recommend::PromptFields;
use palmette_recommend::offline::{
    AnswerCounts, NamedHistory, OfflineRun, PartialFile, RunDescription, RunStep, fingerprint,
};
use palmette_recommend_eval::{BadRecord, HistoryRecord, Progress, unread_fields};
use serde_json::{Value, json};

use super::{MomentQuestion, RecommendArgs};
use crate::commands::histories::Notes;
use crate::input::is_stdin;
use crate::output::{grouped, make_parent, print, print_json, progress_bar, visible};
use crate::tables::{TableFormat, write_answers};

/// Time between two lines about the progress where there is no terminal to show a bar.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Kind of the file that answers become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutFormat {
    JsonLines,
    Table(TableFormat),
}

impl OutFormat {
    fn from_path(path: &Path) -> anyhow::Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let Some("jsonl" | "ndjson") = extension.map(str::to_ascii_lowercase).as_deref() {
            return Ok(Self::JsonLines);
        }
        match TableFormat::from_path(path) {
            // A build that writes none says so before it computes anything.
            Some(format) if cfg!(feature = "tables") => Ok(Self::Table(format)),
            Some(_) => bail!(
                "this build writes no Parquet or Arrow; build with `--features tables`, or end --out in .jsonl"
            ),
            None => bail!(
                "--out {}: the name tells no format; end it in .jsonl, .parquet or .arrow",
                path.display()
            ),
        }
    }
}

pub(super) fn run(args: &RecommendArgs, histories: &Path, given: &Path) -> anyhow::Result<()> {
    let format = OutFormat::from_path(given)?;
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

    let earlier = if args.resume { PartialFile::interrupted_run(&out)? } else { None };
    let moment = earlier.as_ref().and_then(RunDescription::moment);
    let body = super::given(args)?;
    ensure!(
        body.question.history.is_empty(),
        "--question has a history, and --histories has the others: give one of them"
    );
    let asked = MomentQuestion::new(args, &body, super::question(args, &body)?, moment)?;
    let question = asked.question.question();
    ensure!(
        question.explain_items.is_none() && !question.trace && question.fields.is_empty(),
        "explain_items, trace and fields are for one history: leave them out, or give --history"
    );
    ensure!(
        !asked.question.is_paged(),
        "paged and cursor are for one history: leave them out, or give --history"
    );
    let mut run = OfflineRun::new(&asked.recommender, asked.question.clone(), asked.threads)?;

    let description = description(args, &asked, histories)?;
    if args.resume
        && earlier.is_none()
        && let Some(counts) = PartialFile::finished_run(&out, &description)
    {
        return report(args, &asked, given, &counts, &Notes::default(), 0.0);
    }
    let mut partial = PartialFile::begin(&out, &description, earlier.as_ref())?;
    let mut progress = RunProgress::new(args.json || is_stdin(histories))?;
    let mut failed = Ok(RunStep::Waiting);
    let mut notes =
        args.histories_options.read_part(histories, args.shard, &mut |record, read| {
            progress.show(read);
            let (history, before) = (named_history(record), Instant::now());
            failed = run.push(history, &mut partial);
            if let Ok(step) = failed {
                progress.add(step, read, before, run.counts());
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    notes.add(histories, unread_fields(run.unread_fields()));
    notes.say(args.json);
    failed?;
    let counts = run.finish(&mut partial)?;
    let seconds = progress.finish(&counts);
    if let Some(nothing) = nothing_answered(args, &counts) {
        partial.discard()?;
        bail!("{}: {nothing}", histories.display());
    }
    match format {
        OutFormat::JsonLines => partial.finish(&counts)?,
        OutFormat::Table(format) => {
            partial.finish_table(&counts, |file, answers| write_answers(file, answers, format))?
        }
    }
    report(args, &asked, given, &counts, &notes, seconds)
}

/// A record of `palmette-recommend-eval` as a run takes it.
fn named_history(record: Result<HistoryRecord, BadRecord>) -> NamedHistory {
    match record {
        Ok(HistoryRecord { user, items, fields, .. }) => {
            NamedHistory { user, fields, items: Ok(items) }
        }
        Err(bad) => {
            let (fields, items) = (PromptFields::default(), Err(bad.to_string()));
            NamedHistory { user: bad.user, fields, items }
        }
    }
}

/// Progress of a run: a bar, or a line from time to time.
struct RunProgress {
    bar: ProgressBar,
    start: Instant,
    /// Time of the next line.
    next_line: Duration,
    /// Progress of reading at the first history that was not kept, and now.
    first: Option<Progress>,
    now: Progress,
}

impl RunProgress {
    fn new(is_quiet: bool) -> anyhow::Result<Self> {
        let bar = progress_bar(0, "", is_quiet);
        bar.set_style(ProgressStyle::with_template("{bar:30} {percent}% {msg}")?);
        let (first, now) = (None, Progress::default());
        Ok(Self { bar, start: Instant::now(), next_line: BETWEEN_LINES, first, now })
    }

    /// Shows how much has been read.
    fn show(&self, read: Progress) {
        self.bar.set_length(read.of);
        self.bar.set_position(read.done);
    }

    /// Adds a history that was handed to the run `before` it took this step.
    fn add(&mut self, step: RunStep, read: Progress, before: Instant, counts: &AnswerCounts) {
        if step == RunStep::Kept {
            // Histories of an earlier run say nothing of the pace.
            return;
        }
        self.now = read;
        if self.first.is_none() {
            (self.first, self.start) = (Some(read), before);
        }
        if step == RunStep::Answered {
            self.tell(counts);
        }
    }

    /// Takes the bar away; the seconds that the run took.
    fn finish(mut self, counts: &AnswerCounts) -> f64 {
        self.tell(counts);
        self.bar.finish_and_clear();
        self.start.elapsed().as_secs_f64()
    }

    fn tell(&mut self, counts: &AnswerCounts) {
        let new = counts.histories - counts.kept;
        let elapsed = self.start.elapsed();
        let rate = new as f64 / elapsed.as_secs_f64().max(1e-9);
        let mut done = format!("{} histories, {rate:.0}/s", grouped(counts.histories as u64));
        // By the pace of all that were answered here: a bar's own estimate is of its latest steps,
        // which are batches.
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
    }
}

/// The reason why these answers are no file to put in place of an earlier one; `None` where some
/// history was answered.
///
/// A shard may have no histories, since others have them, or a single one that cannot be answered.
fn nothing_answered(args: &RecommendArgs, counts: &AnswerCounts) -> Option<String> {
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

fn report(
    args: &RecommendArgs,
    asked: &MomentQuestion,
    out: &Path,
    counts: &AnswerCounts,
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
            "proven": counts.proven,
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
    if counts.proven > 0 {
        let all = if counts.proven == answered { "all" } else { &count(counts.proven) };
        text += &format!(", {all} of them proven to be the best of every item");
    }
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
    asked: &MomentQuestion,
    histories: &Path,
) -> anyhow::Result<RunDescription> {
    let view = asked.view();
    let catalog = match view.generation() {
        Some(generation) => json!({
            "generation": generation,
            "contents": fingerprint::view(view),
            "left out": view.damaged().iter().map(|of| of.num_items).sum::<u64>(),
        }),
        None => fingerprint::file(&args.recommender.catalog)?,
    };
    let facts = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "histories": args.histories_options.fingerprint(histories, args.shard)?,
        "read": args.histories_options.description(),
        "shard": args.shard.map(|shard| shard.to_string()),
        "catalog": catalog,
        "model": fingerprint::folder(&args.recommender.model)?,
        "weights": format!("{:?}", args.recommender.weights),
        "now": asked.question.asks_now().then_some(asked.now),
    });
    let Value::Object(mut facts) = facts else { bail!("{facts} is no object") };
    let device = args.recommender.device.device;
    if device != DeviceName::Cpu {
        // Its bits are others.
        facts.insert("device".to_owned(), json!(device.to_string()));
    }
    if let Some(step) = args.recommender.history_step {
        facts.insert("history_step".to_owned(), json!(step));
    }
    Ok(RunDescription::new(facts, &asked.question))
}

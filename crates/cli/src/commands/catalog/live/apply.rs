//! `palmette catalog live apply`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use palmette_catalog::ColumnKind;
use palmette_catalog::readers::{Moments, not_text};
use palmette_catalog_live::{Applied, LiveCatalog, LiveError, LiveOptions, SyncPolicy, Update};
use palmette_recommend::{PromptFormat, Prompts};
use serde_json::json;

use super::dead_letters::DeadLetters;
use super::expire::now;
use super::updates::{Line, Lines};
use crate::input::Input;
use crate::output::{grouped, is_same_file, print, print_json, reading_bar, visible};

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// File of updates, or - for the standard input
    updates: PathBuf,
    /// Lines of a batch
    #[arg(long, value_name = "N", default_value_t = 1000)]
    batch: usize,
    /// Apply a batch that is not full once its first line has waited so long: for a feed that never
    /// ends
    #[arg(long, value_name = "MS")]
    flush_ms: Option<u64>,
    /// Append lines that are refused to this file, with the reason, and apply the others
    #[arg(long, value_name = "FILE")]
    dead_letters: Option<PathBuf>,
    /// Refuse items whose codes this model cannot spell
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// After each batch, delete the items whose attribute, a timestamp, has come
    #[arg(long, value_name = "ATTRIBUTE")]
    expire_by: Option<String>,
    /// Print a line for each acknowledged batch: its generation and the last line that it holds
    #[arg(long)]
    progress: bool,
    /// Let the system choose when batches reach the disk: faster; they outlive a crash of the
    /// program and not a power failure
    #[arg(long)]
    no_sync: bool,
    /// Print one JSON document instead of text
    #[arg(long, conflicts_with = "progress")]
    json: bool,
}

pub(super) fn run(args: &ApplyArgs) -> anyhow::Result<()> {
    let most = 1 << 20;
    ensure!((1..=most).contains(&args.batch), "--batch is {}; it must be 1 to {most}", args.batch);
    let start = Instant::now();
    let format = args.model.as_deref().map(|model| Prompts::read(model, None)).transpose()?;
    let format = format.map(|prompts| prompts.format().clone());
    if let Some(path) = args.dead_letters.as_deref() {
        ensure!(
            !is_same_file(path, &args.updates),
            "--dead-letters {} is the file of updates, which would be read as it grows; name another file",
            path.display()
        );
    }
    let dead_letters = args.dead_letters.as_deref().map(DeadLetters::open).transpose()?;
    let sync = if args.no_sync { SyncPolicy::Never } else { SyncPolicy::EveryBatch };
    let live = LiveCatalog::open_with(&args.dir, LiveOptions { sync, ..LiveOptions::default() })?;
    if let Some(attribute) = &args.expire_by {
        live.check_expiry(attribute).context("--expire-by")?;
    }
    let (name, bar, reader): (String, ProgressBar, Box<dyn BufRead + Send>) =
        if args.updates.as_os_str() == "-" {
            let stdin = BufReader::new(std::io::stdin());
            ("standard input".to_owned(), ProgressBar::hidden(), Box::new(stdin))
        } else {
            let name = args.updates.display().to_string();
            let size = std::fs::metadata(&args.updates).map_or(0, |meta| meta.len());
            let bar = reading_bar(size, args.json || args.progress);
            bar.set_message("applying");
            let input = Input::open(&args.updates, |file| Box::new(bar.wrap_read(file)));
            let input = input.with_context(|| name.clone())?;
            if let Some(what) = not_text(&input.head) {
                bail!("{name}: {what}");
            }
            (name, bar, Box::new(input.reader()))
        };
    let generation = live.snapshot().generation();
    let sum = Applied { generation, ..Applied::default() };
    let times = Times::new(&live);
    let mut batches =
        Batches { args, live: &live, name, format, dead_letters, sum, expired: 0, times };
    batches.run(reader)?;
    bar.finish_and_clear();
    batches.times.tell(&batches.name);
    let seconds = start.elapsed().as_secs_f64();
    let num_items = live.snapshot().num_items();
    let refused = batches.dead_letters.as_ref().map_or(0, |letters| letters.count);
    let Applied { generation, upserted, patched, unchanged, deleted, unknown_deletes } =
        batches.sum;
    if args.json {
        return print_json(&json!({
            "generation": generation,
            "items": num_items,
            "upserted": upserted,
            "patched": patched,
            "unchanged": unchanged,
            "deleted": deleted,
            "unknown_deletes": unknown_deletes,
            "expired": batches.expired,
            "refused": refused,
            "seconds": seconds,
        }));
    }
    if unknown_deletes > 0 {
        eprintln!("note: {} deletes named ids that no item has", grouped(unknown_deletes));
    }
    if let Some(path) = args.dead_letters.as_ref().filter(|_| refused > 0) {
        eprintln!("note: {} lines were refused; they are in {}", grouped(refused), path.display());
    }
    let counts =
        [(patched, "patched"), (unchanged, "left as they were"), (batches.expired, "expired")];
    let more = counts.iter().filter(|(count, _)| *count > 0);
    let more: String = more.map(|(count, name)| format!(", {} {name}", grouped(*count))).collect();
    print(&format!(
        "generation {generation}: {} items; {} upserted, {} deleted{more} in {seconds:.1} s",
        grouped(num_items),
        grouped(upserted),
        grouped(deleted)
    ))
}

/// Batches of lines, applied as they fill.
struct Batches<'a> {
    args: &'a ApplyArgs,
    live: &'a LiveCatalog,
    name: String,
    /// Prompt format of the model that must be able to spell the items.
    format: Option<PromptFormat>,
    dead_letters: Option<DeadLetters>,
    sum: Applied,
    expired: u64,
    times: Times,
}

/// Points in time among the updates, read as those of files of items are.
struct Times {
    /// Attributes that are timestamps; later ones never are.
    names: Vec<String>,
    moments: Moments,
}

impl Times {
    fn new(live: &LiveCatalog) -> Self {
        let snapshot = live.snapshot();
        let columns = snapshot.schema().columns.iter();
        let names = columns.filter(|(_, kind)| *kind == ColumnKind::Timestamp);
        Self { names: names.map(|(name, _)| name.clone()).collect(), moments: Moments::default() }
    }

    fn read(&mut self, line: u64, update: &mut Update) {
        let attributes = match update {
            Update::Upsert(item) => &mut item.attributes,
            Update::Patch { attributes, .. } => attributes,
            Update::Delete(_) => return,
        };
        for name in &self.names {
            if let Some(value) = attributes.get_mut(name) {
                *value = self.moments.read(name, value.take(), || format!("line {line}"));
            }
        }
    }

    fn tell(self, name: &str) {
        for note in self.moments.notes() {
            eprintln!("note: {name}, {}", visible(&note));
        }
    }
}

impl Batches<'_> {
    /// Reads on one thread and applies on this one, so that a batch that waits for lines can be
    /// applied in time.
    fn run(&mut self, reader: Box<dyn BufRead + Send>) -> anyhow::Result<()> {
        let mut lines = Lines::new(&self.name, reader);
        let (sender, receiver) = sync_channel(2 * self.args.batch.min(1 << 12));
        // Not joined: after an error it may wait for a line that never comes.
        std::thread::spawn(move || {
            loop {
                let line = lines.next();
                let is_last = !matches!(line, Ok(Some(_)));
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        while self.batch(&receiver)? {}
        Ok(())
    }

    /// Collects a batch and applies it; whether there may be more.
    fn batch(&mut self, lines: &Receiver<anyhow::Result<Option<Line>>>) -> anyhow::Result<bool> {
        let (mut updates, mut held): (Vec<Update>, Vec<Line>) = (Vec::new(), Vec::new());
        let (mut is_end, mut last) = (false, None);
        let mut deadline: Option<Instant> = None;
        while updates.len() < self.args.batch {
            let next = match deadline {
                None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => lines.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let line = match next {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => None,
            };
            let Some(line) = line else {
                is_end = true;
                break;
            };
            deadline = deadline
                .or_else(|| Some(Instant::now() + Duration::from_millis(self.args.flush_ms?)));
            last = Some(line.number);
            match line.update().and_then(|update| self.check_spelling(update)) {
                Ok(mut update) => {
                    self.times.read(line.number, &mut update);
                    updates.push(update);
                    held.push(line);
                }
                Err(error) => self.refuse(&line, &format!("{error:#}"))?,
            }
        }
        if let Some(last) = last {
            self.apply(&updates, &held)?;
            if self.args.progress {
                print(&format!("{} {last}", self.sum.generation))?;
            }
        }
        Ok(!is_end)
    }

    fn apply(&mut self, updates: &[Update], lines: &[Line]) -> anyhow::Result<()> {
        let applied = if self.dead_letters.is_some() {
            // Put aside before the others are acknowledged, so that no line is lost in between.
            for refused in self.live.refused(updates)? {
                let of_item = refused.id.map_or_else(String::new, |id| format!("item {id:?}: "));
                self.refuse(&lines[refused.index], &format!("{of_item}{}", refused.rule))?;
            }
            if let Some(letters) = &self.dead_letters {
                letters.sync()?;
            }
            self.live.apply_valid(updates)?.0
        } else if updates.is_empty() {
            return Ok(());
        } else {
            self.live.apply(updates).map_err(|e| of_line(e, &self.name, lines))?
        };
        self.sum.generation = applied.generation;
        self.sum.upserted += applied.upserted;
        self.sum.patched += applied.patched;
        self.sum.unchanged += applied.unchanged;
        self.sum.deleted += applied.deleted;
        self.sum.unknown_deletes += applied.unknown_deletes;
        if let Some(attribute) = &self.args.expire_by {
            let gone = self.live.expire(attribute, &now()?)?;
            self.sum.generation = gone.generation;
            self.expired += gone.deleted;
        }
        Ok(())
    }

    /// Checks that the model has tokens for an item's codes.
    fn check_spelling(&self, update: Update) -> anyhow::Result<Update> {
        let (Some(format), Update::Upsert(item)) = (&self.format, &update) else {
            return Ok(update);
        };
        let (found, levels) = (item.codes.len(), format.levels.len());
        // Where a token ends each item, it may have fewer.
        let fits = found == levels || (found < levels && !format.end_tokens.is_empty());
        ensure!(fits, "item {:?} has {found} codes, the model spells {levels}", item.id);
        for (level, (&code, of)) in item.codes.iter().zip(&format.levels).enumerate() {
            let size = of.num_codes();
            ensure!(
                code < size,
                "item {:?} has code {code} at level {level}; the model spells codes below {size}",
                item.id
            );
            ensure!(
                of.tokens.token(code).is_some(),
                "item {:?} has code {code} at level {level}; the model has no token for it",
                item.id
            );
        }
        Ok(update)
    }

    fn refuse(&mut self, line: &Line, error: &str) -> anyhow::Result<()> {
        match &mut self.dead_letters {
            Some(letters) => letters.add(line, error),
            None => Err(anyhow!("{}, line {}: {error}", self.name, line.number)),
        }
    }
}

/// Says in which line the update stands that was refused.
fn of_line(error: LiveError, name: &str, lines: &[Line]) -> anyhow::Error {
    let line = error.update_index().and_then(|index| lines.get(index));
    match line {
        Some(line) => anyhow::Error::from(error).context(format!("{name}, line {}", line.number)),
        None => error.into(),
    }
}

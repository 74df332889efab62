//! The answers of a run so far, beside the file they will be: what a run that was interrupted goes on from.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use palmette_storage::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tables::{Answer, AnswerWriter, TableFormat};

/// The answer to one history, or the reason why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) user: Option<String>,
    /// Ids, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scores: Option<Vec<f32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) codes: Option<Vec<Vec<u32>>>,
    /// Unknown items of the history that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) skipped: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl From<Record> for Answer {
    fn from(record: Record) -> Self {
        Self {
            user: record.user,
            items: record.items.unwrap_or_default(),
            scores: record.scores.unwrap_or_default(),
            codes: record.codes.unwrap_or_default(),
            skipped: record.skipped,
            error: record.error,
        }
    }
}

/// Kind of the file that answers become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutFormat {
    JsonLines,
    Table(TableFormat),
}

impl OutFormat {
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let Some("jsonl" | "ndjson") = extension.map(str::to_ascii_lowercase).as_deref() {
            return Ok(Self::JsonLines);
        }
        match TableFormat::from_path(path) {
            // A build that writes none says so before it computes anything.
            Some(format) if cfg!(feature = "tables") => Ok(Self::Table(format)),
            Some(_) => Err(left_out()),
            None => bail!(
                "--out {}: the name tells no format; end it in .jsonl, .parquet or .arrow",
                path.display()
            ),
        }
    }
}

fn left_out() -> anyhow::Error {
    anyhow::anyhow!(
        "this build writes no Parquet or Arrow; build with `--features tables`, or end --out in .jsonl"
    )
}

/// Answers so far: a JSON line each in `OUT.partial`, and what run they are of in `OUT.partial.json`.
///
/// Lines are only ever added, so whatever ended a run, a whole prefix of them is there. A run that goes on walks the
/// histories again, keeps a line for each as long as lines are whole and of the same users, and cuts off the rest.
#[derive(Debug)]
pub(super) struct Partial {
    out: PathBuf,
    path: PathBuf,
    /// Lines of an earlier run that have not been walked yet.
    earlier: Option<BufReader<File>>,
    file: BufWriter<File>,
    /// Bytes of the lines that stay.
    kept_bytes: u64,
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(out);
    name.push(ending);
    name.into()
}

impl Partial {
    /// Begins the answers for `out`, or goes on with those of an earlier run of the same `description`.
    pub(super) fn begin(
        out: &Path,
        description: &Map<String, Value>,
        resume: bool,
    ) -> anyhow::Result<Self> {
        let (path, about) = (beside(out, ".partial"), beside(out, ".partial.json"));
        let to_write = |path: &Path| format!("{}: cannot be written", path.display());
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| to_write(&path))?;
        if file.try_lock().is_err() {
            bail!(
                "{}: another run is writing it; wait for that one or choose another --out",
                path.display()
            );
        }
        let go_on = resume && file.metadata().is_ok_and(|file| file.len() > 0);
        if go_on {
            check_same(&path, &about, description)?;
        } else {
            file.set_len(0).with_context(|| to_write(&path))?;
            let text = serde_json::to_vec_pretty(description)?;
            write_atomically(&about, |file| file.write_all(&text))
                .with_context(|| to_write(&about))?;
        }
        let earlier = match go_on {
            true => Some(BufReader::new(File::open(&path)?)),
            false => None,
        };
        Ok(Self { out: out.to_owned(), path, earlier, file: BufWriter::new(file), kept_bytes: 0 })
    }

    /// The earlier run's answer to the next history, which is of this user; `None` from where there are no more.
    pub(super) fn next_kept(&mut self, user: Option<&str>) -> anyhow::Result<Option<Record>> {
        let Some(earlier) = &mut self.earlier else { return Ok(None) };
        let mut line = Vec::new();
        earlier.read_until(b'\n', &mut line)?;
        let record = match line.last() {
            Some(b'\n') => serde_json::from_slice::<Record>(&line).ok(),
            _ => None,
        };
        let Some(record) = record else {
            self.end_of_kept()?;
            return Ok(None);
        };
        ensure!(
            record.user.as_deref() == user,
            "{}: it answers {:?} where the histories have {:?}: they have changed; leave out --resume to begin anew",
            self.path.display(),
            record.user,
            user
        );
        self.kept_bytes += line.len() as u64;
        Ok(Some(record))
    }

    /// Cuts off what comes after the lines that stay.
    fn end_of_kept(&mut self) -> anyhow::Result<()> {
        if self.earlier.take().is_some() {
            let file = self.file.get_mut();
            file.set_len(self.kept_bytes)?;
            file.seek(SeekFrom::Start(self.kept_bytes))?;
        }
        Ok(())
    }

    /// Adds answers; they outlive this process, though not a failure of the machine.
    pub(super) fn push(&mut self, records: &[Record]) -> anyhow::Result<()> {
        let cannot = || format!("{}: cannot be written", self.path.display());
        for record in records {
            serde_json::to_writer(&mut self.file, record).with_context(cannot)?;
            self.file.write_all(b"\n").with_context(cannot)?;
        }
        self.file.flush().with_context(cannot)
    }

    /// Puts all answers in place, at once, in their format.
    pub(super) fn finish(mut self, format: OutFormat) -> anyhow::Result<()> {
        self.end_of_kept()?;
        self.file.flush()?;
        let cannot = || format!("{}: cannot be written", self.out.display());
        match format {
            OutFormat::JsonLines => {
                self.file.get_ref().sync_all().with_context(cannot)?;
                std::fs::rename(&self.path, &self.out).with_context(cannot)?;
                sync_folder(&self.out).with_context(cannot)?;
            }
            OutFormat::Table(format) => {
                let lines = File::open(&self.path)?;
                let mut done = Ok(());
                let written = write_atomically(&self.out, |file| {
                    done = file
                        .try_clone()
                        .map_err(Into::into)
                        .and_then(|file| as_table(lines, file, format));
                    // What went wrong is said better below.
                    done.as_ref().map(drop).map_err(|_| std::io::Error::other("the table"))
                });
                done.with_context(cannot)?;
                written.with_context(cannot)?;
                std::fs::remove_file(&self.path)?;
            }
        }
        // The answers are there: a description left behind does no harm.
        let _ = std::fs::remove_file(beside(&self.out, ".partial.json"));
        Ok(())
    }
}

/// Refuses an earlier run of other histories, another model or other options.
fn check_same(path: &Path, about: &Path, description: &Map<String, Value>) -> anyhow::Result<()> {
    let anew = "leave out --resume to begin anew";
    let text = std::fs::read(about).with_context(|| {
        format!("{}: what run these answers are of is not known; {anew}", about.display())
    })?;
    let earlier: Map<String, Value> = serde_json::from_slice(&text)
        .with_context(|| format!("{}: is damaged; {anew}", about.display()))?;
    let names =
        description.keys().chain(earlier.keys().filter(|name| !description.contains_key(*name)));
    let differ: Vec<&str> = names
        .filter(|name| description.get(*name) != earlier.get(*name))
        .map(String::as_str)
        .collect();
    ensure!(
        differ.is_empty(),
        "{}: the run that was interrupted had another {}; run it as it was, or {anew}",
        path.display(),
        differ.join(", another ")
    );
    Ok(())
}

/// Writes answers as a table, some thousands at a time.
fn as_table(lines: impl Read, file: File, format: TableFormat) -> anyhow::Result<()> {
    const ROWS: usize = 4096;
    let mut writer = AnswerWriter::new(file, format)?;
    let mut rows: Vec<Answer> = Vec::with_capacity(ROWS);
    for line in BufReader::new(lines).lines() {
        rows.push(serde_json::from_str::<Record>(&line?)?.into());
        if rows.len() == ROWS {
            writer.push(&rows)?;
            rows.clear();
        }
    }
    writer.push(&rows)?;
    writer.finish()?;
    Ok(())
}

#[cfg(unix)]
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

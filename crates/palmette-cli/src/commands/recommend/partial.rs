//! Answers of a run so far, beside the file they will be. An interrupted run continues from them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use palmette_storage::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::offline::Counts;
use crate::fingerprint;
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

/// Description of a run: by name, all that decides its answers.
pub(super) type Description = Map<String, Value>;

/// Record of a run that is done, in `_OUT.run.json`: engines that read a folder pass over such names.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    run: Description,
    /// Fingerprint of the file of answers.
    answers: Value,
    counts: Counts,
}

/// Answers so far: a JSON line each in `OUT.partial`, and what run they are of in `OUT.partial.json`.
///
/// Lines are only ever added, so whatever ended a run, a whole prefix of them is there. A run that goes on walks the
/// histories again, keeps a line for each as long as lines are whole and of the same users, and cuts off the rest.
///
/// When all are there they become the file `OUT`, at once, and a record of the run stays beside it.
#[derive(Debug)]
pub(super) struct Partial {
    out: PathBuf,
    path: PathBuf,
    description: Description,
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

fn record_path(out: &Path) -> PathBuf {
    let mut name = OsString::from("_");
    name.push(out.file_name().unwrap_or_default());
    name.push(".run.json");
    out.with_file_name(name)
}

/// The description of the run that was interrupted; `None` where there is none to go on with.
pub(super) fn interrupted(out: &Path) -> anyhow::Result<Option<Description>> {
    let (path, about) = (beside(out, ".partial"), beside(out, ".partial.json"));
    if !std::fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
        return Ok(None);
    }
    let anew = "leave out --resume to begin anew";
    let text = std::fs::read(&about).with_context(|| {
        format!("{}: what run these answers are of is not known; {anew}", about.display())
    })?;
    let earlier = serde_json::from_slice(&text)
        .with_context(|| format!("{}: is damaged; {anew}", about.display()))?;
    Ok(Some(earlier))
}

/// The counts of a run of this `description` that is done, and whose answers are in `out` as it wrote them.
pub(super) fn done(out: &Path, description: &Description) -> Option<Counts> {
    let done: Done = serde_json::from_slice(&std::fs::read(record_path(out)).ok()?).ok()?;
    let is_same = done.run == *description && done.answers == fingerprint::of_file(out).ok()?;
    is_same.then_some(done.counts)
}

impl Partial {
    /// Begins the answers for `out`, or continues those of the interrupted run.
    pub(super) fn begin(
        out: &Path,
        description: &Description,
        earlier: Option<&Description>,
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
        let earlier = match earlier {
            Some(earlier) => {
                check_same(&path, earlier, description)?;
                Some(BufReader::new(File::open(&path)?))
            }
            None => {
                file.set_len(0).with_context(|| to_write(&path))?;
                let text = serde_json::to_vec_pretty(description)?;
                write_atomically(&about, |file| file.write_all(&text))
                    .with_context(|| to_write(&about))?;
                None
            }
        };
        let (out, description) = (out.to_owned(), description.clone());
        Ok(Self { out, path, description, earlier, file: BufWriter::new(file), kept_bytes: 0 })
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
    ///
    /// Lines are renamed, and the record of the run comes before; a table is made of them, and they stay until the record is
    /// there. So a run that ends in between goes on with the lines, or finds that all is done.
    pub(super) fn finish(mut self, format: OutFormat, counts: &Counts) -> anyhow::Result<()> {
        self.end_of_kept()?;
        self.file.flush()?;
        let cannot = || format!("{}: cannot be written", self.out.display());
        match format {
            OutFormat::JsonLines => {
                self.file.get_ref().sync_all().with_context(cannot)?;
                self.write_record(fingerprint::of_file(&self.path)?, counts)?;
                std::fs::rename(&self.path, &self.out).with_context(cannot)?;
                sync_folder(&self.out).with_context(cannot)?;
            }
            OutFormat::Table(format) => {
                let lines = File::open(&self.path)?;
                let mut done: anyhow::Result<Value> = Ok(Value::Null);
                let written = write_atomically(&self.out, |file| {
                    done = file.try_clone().map_err(anyhow::Error::from).and_then(|table| {
                        as_table(lines, table, format)?;
                        Ok(fingerprint::of_open_file(file.try_clone()?)?)
                    });
                    // What went wrong is said better below.
                    done.as_ref().map(drop).map_err(|_| std::io::Error::other("the table"))
                });
                let answers = done.with_context(cannot)?;
                written.with_context(cannot)?;
                self.write_record(answers, counts)?;
                std::fs::remove_file(&self.path)?;
            }
        }
        // The answers are there: a description left behind does no harm.
        let _ = std::fs::remove_file(beside(&self.out, ".partial.json"));
        Ok(())
    }

    /// Removes the answers so far: nothing is to be resumed, and the file that is there stays.
    pub(super) fn give_up(self) -> anyhow::Result<()> {
        for path in [&self.path, &beside(&self.out, ".partial.json")] {
            std::fs::remove_file(path)
                .with_context(|| format!("{}: cannot be removed", path.display()))?;
        }
        Ok(())
    }

    fn write_record(&self, answers: Value, counts: &Counts) -> anyhow::Result<()> {
        let done = Done { run: self.description.clone(), answers, counts: counts.clone() };
        let text = serde_json::to_vec_pretty(&done)?;
        let path = record_path(&self.out);
        write_atomically(&path, |file| file.write_all(&text))
            .with_context(|| format!("{}: cannot be written", path.display()))
    }
}

/// Refuses an earlier run of other histories, another model or other options.
fn check_same(path: &Path, earlier: &Description, description: &Description) -> anyhow::Result<()> {
    let names =
        description.keys().chain(earlier.keys().filter(|name| !description.contains_key(*name)));
    let differ: Vec<&str> = names
        .filter(|name| description.get(*name) != earlier.get(*name))
        .map(String::as_str)
        .collect();
    let generation = earlier.get("catalog").and_then(|catalog| catalog.get("generation"));
    let way_out = match generation {
        Some(generation) if differ == ["catalog"] => {
            format!("read its generation again (--generation {generation}), where that is kept")
        }
        _ => "run it as it was".to_owned(),
    };
    ensure!(
        differ.is_empty(),
        "{}: the run that was interrupted had another {}; {way_out}, or leave out --resume to begin anew",
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

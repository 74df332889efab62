//! Partial files: the answers of a run so far, from which an interrupted one continues.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use palmette_mapped::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::counts::AnswerCounts;
use super::description::RunDescription;
use super::error::OfflineError;
use super::fingerprint;
use super::record::AnswerRecord;
use super::sink::AnswerSink;

/// Rows that a writer of tables is handed at a time.
const BATCH_ROWS: usize = 4096;

/// Answers so far: a JSON line each in `OUT.partial`, and the description of their run in
/// `OUT.partial.json`.
///
/// Lines are only ever added, so whatever ended a run, a whole prefix of them is there. A resumed
/// run walks the histories again, keeps a line for each as long as lines are whole and of the same
/// users, and cuts off the rest.
///
/// When all are there they become the file `OUT`, at once, and a record of the run stays beside it,
/// in `_OUT.run.json`.
#[derive(Debug)]
pub struct PartialFile {
    out: PathBuf,
    path: PathBuf,
    description: RunDescription,
    /// Lines of an earlier run that have not been walked yet.
    earlier: Option<BufReader<File>>,
    file: BufWriter<File>,
    /// Bytes of the lines that stay.
    kept_bytes: u64,
}

/// Record of a run that is done. Engines that read a folder pass over names that begin as its
/// file's does.
#[derive(Debug, Serialize, Deserialize)]
struct RunRecord {
    run: RunDescription,
    /// Fingerprint of the file of answers.
    answers: Value,
    counts: AnswerCounts,
}

impl PartialFile {
    /// The description of the interrupted run whose answers were to be in `out`; `None` where there
    /// is none to resume.
    ///
    /// # Errors
    /// When there are answers, and what run they are of cannot be read.
    pub fn interrupted_run(out: &Path) -> Result<Option<RunDescription>, OfflineError> {
        let (partial, path) = (partial_path(out), description_path(out));
        if !std::fs::metadata(&partial).is_ok_and(|file| file.len() > 0) {
            return Ok(None);
        }
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(source) => return Err(OfflineError::NoDescription { path, source }),
        };
        match serde_json::from_slice(&text) {
            Ok(description) => Ok(Some(description)),
            Err(source) => Err(OfflineError::DamagedDescription { path, source }),
        }
    }

    /// The counts of a run of this description that is done, and whose answers are in `out` as it
    /// wrote them: all are kept.
    pub fn finished_run(out: &Path, description: &RunDescription) -> Option<AnswerCounts> {
        let text = std::fs::read(record_path(out)).ok()?;
        let RunRecord { run, answers, counts } = serde_json::from_slice(&text).ok()?;
        let is_same = run == *description && answers == fingerprint::file(out).ok()?;
        is_same.then_some(AnswerCounts { kept: counts.histories, ..counts })
    }

    /// Begins the answers for `out`, or continues those of the `earlier` run, which was
    /// interrupted.
    ///
    /// # Errors
    /// When the file cannot be written, another process is writing it, or the earlier run has
    /// another description.
    pub fn begin(
        out: &Path,
        description: &RunDescription,
        earlier: Option<&RunDescription>,
    ) -> Result<Self, OfflineError> {
        let path = partial_path(out);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(OfflineError::writing(&path))?;
        // Held until the file is closed, at the end of this process at the latest.
        if file.try_lock().is_err() {
            return Err(OfflineError::InUse { path });
        }
        let earlier = match earlier {
            Some(earlier) => {
                check_same(&path, earlier, description)?;
                let lines = File::open(&path).map_err(OfflineError::reading(&path))?;
                Some(BufReader::new(lines))
            }
            None => {
                file.set_len(0).map_err(OfflineError::writing(&path))?;
                write_json(&description_path(out), description)?;
                None
            }
        };
        let (out, description) = (out.to_owned(), description.clone());
        Ok(Self { out, path, description, earlier, file: BufWriter::new(file), kept_bytes: 0 })
    }

    /// Puts all answers in place, at once, as JSON lines.
    ///
    /// The record of the run comes before: one that ends in between resumes from the lines, or
    /// finds that all is done.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self, counts: &AnswerCounts) -> Result<(), OfflineError> {
        self.complete()?;
        let cannot = || OfflineError::writing(&self.out);
        self.file.get_ref().sync_all().map_err(cannot())?;
        self.write_record(fingerprint::file(&self.path)?, counts)?;
        std::fs::rename(&self.path, &self.out).map_err(cannot())?;
        sync_folder(&self.out).map_err(cannot())?;
        self.forget_description();
        Ok(())
    }

    /// Puts all answers in place, at once, as a table that `write` makes of them in an empty file.
    ///
    /// The lines stay until the record of the run is there: one that ends in between resumes from
    /// them, or finds that all is done.
    ///
    /// # Errors
    /// When a file cannot be written, or `write` fails.
    pub fn finish_table<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        mut self,
        counts: &AnswerCounts,
        write: impl FnOnce(File, AnswerBatches) -> Result<(), E>,
    ) -> Result<(), OfflineError> {
        self.complete()?;
        let lines = File::open(&self.path).map_err(OfflineError::reading(&self.path))?;
        let mut answers = Value::Null;
        let written = write_atomically(&self.out, |file| {
            write(file.try_clone()?, AnswerBatches::new(lines)).map_err(io::Error::other)?;
            answers = fingerprint::open_file(file.try_clone()?)?;
            Ok(())
        });
        written.map_err(OfflineError::writing(&self.out))?;
        self.write_record(answers, counts)?;
        let path = self.path.clone();
        std::fs::remove_file(&path).map_err(|source| OfflineError::Remove { path, source })?;
        self.forget_description();
        Ok(())
    }

    /// Removes the answers so far: nothing is to be resumed, and the file that is there stays.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn discard(self) -> Result<(), OfflineError> {
        for path in [self.path, description_path(&self.out)] {
            std::fs::remove_file(&path).map_err(|source| OfflineError::Remove { path, source })?;
        }
        Ok(())
    }

    /// Leaves the lines of all answers in the file, and no others.
    fn complete(&mut self) -> Result<(), OfflineError> {
        self.end_of_kept()?;
        self.file.flush().map_err(OfflineError::writing(&self.path))
    }

    /// Cuts off what comes after the lines that stay.
    fn end_of_kept(&mut self) -> Result<(), OfflineError> {
        if self.earlier.take().is_none() {
            return Ok(());
        }
        let file = self.file.get_mut();
        let cut = file.set_len(self.kept_bytes);
        let placed = cut.and_then(|()| file.seek(SeekFrom::Start(self.kept_bytes)));
        placed.map(drop).map_err(OfflineError::writing(&self.path))
    }

    fn write_record(&self, answers: Value, counts: &AnswerCounts) -> Result<(), OfflineError> {
        let (run, counts) = (self.description.clone(), counts.clone());
        write_json(&record_path(&self.out), &RunRecord { run, answers, counts })
    }

    fn forget_description(&self) {
        // The answers are there: a description left behind does no harm.
        let _ = std::fs::remove_file(description_path(&self.out));
    }
}

impl AnswerSink for PartialFile {
    fn next_kept(&mut self, user: Option<&str>) -> Result<Option<AnswerRecord>, OfflineError> {
        let Some(earlier) = &mut self.earlier else { return Ok(None) };
        let mut line = Vec::new();
        earlier.read_until(b'\n', &mut line).map_err(OfflineError::reading(&self.path))?;
        let record = match line.last() {
            Some(b'\n') => serde_json::from_slice::<AnswerRecord>(&line).ok(),
            _ => None,
        };
        let Some(record) = record else {
            self.end_of_kept()?;
            return Ok(None);
        };
        if record.user.as_deref() != user {
            let (answered, read) = (record.user, user.map(str::to_owned));
            return Err(OfflineError::OtherUser { path: self.path.clone(), answered, read });
        }
        self.kept_bytes += line.len() as u64;
        Ok(Some(record))
    }

    /// Adds answers; they outlive this process, though not a failure of the machine.
    fn push(&mut self, records: Vec<AnswerRecord>) -> Result<(), OfflineError> {
        let mut write = || -> io::Result<()> {
            for record in &records {
                serde_json::to_writer(&mut self.file, record)?;
                self.file.write_all(b"\n")?;
            }
            self.file.flush()
        };
        write().map_err(OfflineError::writing(&self.path))
    }
}

/// Batches of a file of answers, in order, for a writer of tables; the last is shorter than the
/// others, and may be empty.
#[derive(Debug)]
pub struct AnswerBatches {
    lines: Option<io::Lines<BufReader<File>>>,
}

impl AnswerBatches {
    fn new(file: File) -> Self {
        Self { lines: Some(BufReader::new(file).lines()) }
    }
}

impl Iterator for AnswerBatches {
    type Item = io::Result<Vec<AnswerRecord>>;

    fn next(&mut self) -> Option<Self::Item> {
        let lines = self.lines.as_mut()?;
        let records = lines.take(BATCH_ROWS).map(|line| Ok(serde_json::from_str(&line?)?));
        let batch: io::Result<Vec<AnswerRecord>> = records.collect();
        if batch.as_ref().map_or(true, |batch| batch.len() < BATCH_ROWS) {
            self.lines = None;
        }
        Some(batch)
    }
}

fn partial_path(out: &Path) -> PathBuf {
    with_ending(out, ".partial")
}

fn description_path(out: &Path) -> PathBuf {
    with_ending(out, ".partial.json")
}

fn with_ending(out: &Path, ending: &str) -> PathBuf {
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

fn write_json(path: &Path, document: &impl Serialize) -> Result<(), OfflineError> {
    let written = serde_json::to_vec_pretty(document).map_err(io::Error::from);
    let written = written.and_then(|text| write_atomically(path, |file| file.write_all(&text)));
    written.map_err(OfflineError::writing(path))
}

/// Refuses an earlier run of other histories, another model or other options.
fn check_same(
    path: &Path,
    earlier: &RunDescription,
    description: &RunDescription,
) -> Result<(), OfflineError> {
    let differ = description.differences(earlier);
    if differ.is_empty() {
        return Ok(());
    }
    let way_out = match earlier.generation() {
        Some(generation) if differ == ["catalog"] => {
            format!("read its generation again (--generation {generation}), where that is kept")
        }
        _ => "run it as it was".to_owned(),
    };
    let members = differ.into_iter().map(str::to_owned).collect();
    Err(OfflineError::OtherRun { path: path.to_owned(), members, way_out })
}

#[cfg(unix)]
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
